// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/stores/passing.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <swapmm/plan/v2/baselines/paths.hpp>

namespace swapmm::v2::planning {
namespace {

/// How often places are looked for, at most.
constexpr int attempts = 6;

class PassingPlacer {
 public:
  PassingPlacer(const DeviceCase& device, const std::vector<StoreCopy>& copies, std::uint32_t steps,
                const PackingEffort& effort)
      : device_(device), copies_(copies), steps_(steps), effort_(effort), places_(copies.size()) {
    effort_.keep_most = true;
    find_limits();
  }

  std::vector<PassingPlaces> run() {
    for (const std::size_t at_once : {12U, 6U, 3U}) {
      set_times(at_once);
      for (int attempt = 0; attempt < attempts; ++attempt) {
        shortened_ = false;
        bool all = true;
        for (std::size_t m = 0; m < device_.machine.memories.size(); ++m) {
          all = pack_into(id_at<MemoryId>(m)) && all;
        }
        if (all) return std::move(places_);
        if (!shortened_) break;
      }
    }
    // One by one, each at the beginning of what is free.
    for (std::size_t c = 0; c < copies_.size(); ++c) {
      places_[c].first = places_[c].last = copies_[c].step;
      for_each_passed(device_.machine, way(c), [&](std::size_t i, MemoryId memory) {
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

  void set_times(std::size_t at_once) {
    std::vector<std::size_t> far;
    for (std::size_t c = 0; c < copies_.size(); ++c) {
      places_[c] = {copies_[c].step, copies_[c].step, std::vector<Bytes>(way(c).size() - 1)};
      if (way(c).size() > 1) far.push_back(c);
    }
    for (std::size_t i = 0; i < far.size(); ++i) {
      const std::size_t c = far[i];
      if (copies_[c].is_in) {
        const std::uint32_t early = i < at_once ? 0 : copies_[far[i - at_once]].step + 1;
        places_[c].first = std::min(copies_[c].step, std::max(early, limits_[c].first));
      } else {
        const std::uint32_t late = i + at_once < far.size() ? copies_[far[i + at_once]].step - 1 : steps_ - 1;
        places_[c].last = std::max(copies_[c].step, std::min(late, limits_[c].second));
      }
    }
  }

  /// Lets a value keep its places for no longer than it must.
  void shorten(std::size_t copy) {
    PassingPlaces& place = places_[copy];
    shortened_ = shortened_ || place.first < place.last;
    place.first = place.last = copies_[copy].step;
  }

  /// False if something that passes the memory finds no place. That is shortened; or else, what is there at its step.
  bool pack_into(MemoryId id) {
    const std::optional<Bytes>& from = device_.routes.passing[index(id)];
    const Memory& memory = device_.machine.memories[index(id)];
    if (!from) return true;
    PackingProblem problem;
    problem.slots = std::max<std::uint32_t>(steps_, 1);
    problem.capacity = Bytes{memory.bytes->value - from->value};
    problem.alignment = memory.alignment;
    // What passes is in one arena, or in whole ones.
    if (memory.max_allocation && from->value % memory.max_allocation->value == 0) {
      problem.max_allocation = memory.max_allocation;
    }
    std::vector<Bytes*> offsets;
    std::vector<std::size_t> members;
    for (std::size_t c = 0; c < copies_.size(); ++c) {
      for_each_passed(device_.machine, way(c), [&](std::size_t i, MemoryId passed) {
        if (passed != id) return;
        members.push_back(c);
        offsets.push_back(&places_[c].offsets[i]);
        problem.items.push_back({device_.trace.tensors[index(copies_[c].tensor)].bytes, places_[c].first,
                                 places_[c].last - places_[c].first + 1});
      });
    }
    if (offsets.empty()) return true;
    const Result<Packing> packing = pack_towards(problem, effort_);
    if (!packing) return false;
    bool all = true;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const bool has_place = packing->offsets[i] + problem.items[i].size <= problem.capacity;
      *offsets[i] = *from + packing->offsets[i];
      if (has_place) continue;
      all = false;
      const std::size_t copy = members[i];
      if (places_[copy].first < places_[copy].last) {
        shorten(copy);
        continue;
      }
      for (const std::size_t other : members) {
        const std::uint32_t step = copies_[copy].step;
        if (other != copy && places_[other].first <= step && step <= places_[other].last) shorten(other);
      }
    }
    return all;
  }

  const DeviceCase& device_;
  const std::vector<StoreCopy>& copies_;
  const std::uint32_t steps_;
  PackingEffort effort_;
  std::vector<PassingPlaces> places_;
  bool shortened_ = false;                                       // something was, since this was set
  std::vector<std::pair<std::uint32_t, std::uint32_t>> limits_;  // of each copy: the first and the last step
};

}  // namespace

std::vector<PassingPlaces> place_passing(const DeviceCase& device, const std::vector<StoreCopy>& copies,
                                         std::uint32_t steps, const PackingEffort& effort) {
  return PassingPlacer(device, copies, steps, effort).run();
}

}  // namespace swapmm::v2::planning
