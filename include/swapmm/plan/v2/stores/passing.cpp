// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/stores/passing.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace swapmm::v2::planning {
namespace {

/// How many more copies of the same store and direction begin while a value passes, at most.
constexpr std::size_t most_ahead = 3;

class PassingPlacer {
 public:
  PassingPlacer(const DeviceCase& device, const std::vector<StoreCopy>& copies, std::uint32_t steps,
                const PackingEffort& effort)
      : device_(device), copies_(copies), steps_(steps), effort_(effort), places_(copies.size()) {
    find_limits();
  }

  std::vector<PassingPlaces> run() {
    for (std::size_t ahead = most_ahead;; --ahead) {
      set_times(ahead);
      bool all = true;
      for (std::size_t m = 0; m < device_.machine.memories.size() && all; ++m) all = pack_into(id_at<MemoryId>(m));
      if (all) return std::move(places_);
      if (ahead == 0) break;
    }
    // One by one, each at the beginning of what is free.
    for (std::size_t c = 0; c < copies_.size(); ++c) {
      places_[c].first = places_[c].last = copies_[c].step;
      for_each_passed(c, [&](std::size_t i, MemoryId memory) {
        places_[c].offsets[i] = device_.routes.passing[index(memory)].value_or(Bytes{0});
      });
    }
    return std::move(places_);
  }

 private:
  [[nodiscard]] const std::vector<LinkId>& way(std::size_t copy) const {
    const RoutedStore& store = device_.stores()[copies_[copy].store];
    return copies_[copy].is_in ? store.in : store.out;
  }
  template <class F>
  void for_each_passed(std::size_t copy, F&& f) const {
    for (std::size_t i = 0; i + 1 < way(copy).size(); ++i) f(i, device_.machine.links[index(way(copy)[i])].to);
  }

  /// A tensor has one place in a memory, so a value passes between the tensor's copies before and after.
  void find_limits() {
    limits_.assign(copies_.size(), {0, steps_ == 0 ? 0 : steps_ - 1});
    std::vector<std::optional<std::size_t>> last(device_.trace.tensors.size());
    for (std::size_t c = 0; c < copies_.size(); ++c) {
      std::optional<std::size_t>& before = last[index(copies_[c].tensor)];
      if (before) {
        const std::uint32_t from = copies_[*before].step;
        const std::uint32_t to = copies_[c].step;
        // Between a value's way out and its way in, both have a half of the time.
        const bool comes_back = !copies_[*before].is_in && copies_[c].is_in;
        limits_[*before].second = comes_back ? from + (to - from) / 2 : to - 1;
        limits_[c].first = comes_back ? limits_[*before].second + 1 : from + 1;
      }
      if (copies_[c].is_in && copies_[c].is_given) limits_[c].first = copies_[c].step;
      before = c;
    }
  }

  void set_times(std::size_t ahead) {
    std::vector<std::vector<std::size_t>> of_way(2 * device_.stores().size());
    for (std::size_t c = 0; c < copies_.size(); ++c) {
      places_[c] = {copies_[c].step, copies_[c].step, std::vector<Bytes>(way(c).size() - 1)};
      if (way(c).size() > 1) of_way[2 * copies_[c].store + (copies_[c].is_in ? 1 : 0)].push_back(c);
    }
    for (const std::vector<std::size_t>& list : of_way) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        const std::size_t c = list[i];
        if (copies_[c].is_in) {
          const std::uint32_t early = i < ahead ? 0 : copies_[list[i - ahead]].step;
          places_[c].first = std::min(copies_[c].step, std::max(early, limits_[c].first));
        } else {
          const std::uint32_t late = i + ahead < list.size() ? copies_[list[i + ahead]].step : steps_ - 1;
          places_[c].last = std::max(copies_[c].step, std::min(late, limits_[c].second));
        }
      }
    }
  }

  /// False if what passes the memory finds no places.
  bool pack_into(MemoryId id) {
    const std::optional<Bytes>& from = device_.routes.passing[index(id)];
    const Memory& memory = device_.machine.memories[index(id)];
    if (!from) return true;
    PackingProblem problem;
    problem.slots = std::max<std::uint32_t>(steps_, 1);
    problem.capacity = Bytes{memory.bytes->value - from->value};
    problem.alignment = memory.alignment;
    problem.max_allocation = memory.max_allocation;
    std::vector<Bytes*> offsets;
    for (std::size_t c = 0; c < copies_.size(); ++c) {
      for_each_passed(c, [&](std::size_t i, MemoryId passed) {
        if (passed != id) return;
        offsets.push_back(&places_[c].offsets[i]);
        problem.items.push_back({device_.trace.tensors[index(copies_[c].tensor)].bytes, places_[c].first,
                                 places_[c].last - places_[c].first + 1});
      });
    }
    if (offsets.empty()) return true;
    const Result<Packing> packing = pack_towards(problem, effort_);
    if (!packing) return false;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      if (packing->offsets[i] + problem.items[i].size > problem.capacity) return false;
      *offsets[i] = *from + packing->offsets[i];
    }
    return true;
  }

  const DeviceCase& device_;
  const std::vector<StoreCopy>& copies_;
  const std::uint32_t steps_;
  const PackingEffort& effort_;
  std::vector<PassingPlaces> places_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> limits_;  // of each copy: the first and the last step
};

}  // namespace

std::vector<PassingPlaces> place_passing(const DeviceCase& device, const std::vector<StoreCopy>& copies,
                                         std::uint32_t steps, const PackingEffort& effort) {
  return PassingPlacer(device, copies, steps, effort).run();
}

}  // namespace swapmm::v2::planning
