// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/spread/stores.hpp>

#include <algorithm>
#include <string>

#include <swapmm/plan/packing.hpp>
#include <swapmm/plan/v2/baselines/paths.hpp>

namespace swapmm::v2::planning {
namespace {

double rate_of(const Machine& machine, LinkId id) {
  return static_cast<double>(rate_alone(machine, machine.links[index(id)]));
}

/// Fills one limited memory after another.
class Assignment {
 public:
  Assignment(const Machine& machine, const std::vector<std::vector<Store>>& stores,
             const std::vector<StoredTensor>& tensors, std::uint32_t steps)
      : machine_(machine),
        stores_(stores),
        tensors_(tensors),
        steps_(steps),
        chosen_(tensors.size()),
        places_(tensors.size()) {}

  Result<std::vector<StoredPlace>> run() {
    put_into_host();
    if (problem_) return *problem_;
    std::size_t most = 0;
    for (const auto& of_device : stores_) most = std::max(most, of_device.size());
    for (std::size_t rank = 0; rank < most; ++rank) fill(rank, true);
    for (std::size_t rank = 0; rank < most; ++rank) fill(rank, false);  // what is left, wherever there is room
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (chosen_[t]) continue;
      return Problem{"no memory that is linked to its device has room for tensor " +
                     std::to_string(index(tensors_[t].tensor)) + " of " + std::to_string(tensors_[t].bytes.value) +
                     " bytes"};
    }
    if (problem_) return *problem_;
    for (std::size_t t = 0; t < tensors_.size(); ++t) places_[t].store = *chosen_[t];
    return places_;
  }

 private:
  [[nodiscard]] MemoryId memory_of(std::size_t tensor, std::size_t rank) const {
    return stores_[tensors_[tensor].part][rank].memory;
  }
  [[nodiscard]] bool unlimited(MemoryId memory) const { return !machine_.memories[index(memory)].bytes; }

  void put_into_host() {
    bool any = false;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (!tensors_[t].in_host) continue;
      const auto& of_device = stores_[tensors_[t].part];
      const auto host = std::ranges::find(of_device, machine_.host, &Store::memory);
      if (host == of_device.end()) {
        problem_ = Problem{"the host is not linked to a device directly"};
        return;
      }
      chosen_[t] = static_cast<std::size_t>(host - of_device.begin());
      any = true;
    }
    if (any && !pack_into(machine_.host)) problem_ = Problem{"the host has no room for what it gives and reads"};
  }

  /// Puts what is left into the stores of that rank: no more than their part of the traffic if `balanced`.
  void fill(std::size_t rank, bool balanced) {
    for (std::size_t part = 0; part < stores_.size(); ++part) {
      if (rank >= stores_[part].size()) continue;
      std::vector<std::size_t> left;
      double traffic = 0;  // of all tensors of the device
      double here = 0;     // of those that are in this store already
      for (std::size_t t = 0; t < tensors_.size(); ++t) {
        if (tensors_[t].part != part) continue;
        traffic += static_cast<double>(tensors_[t].traffic.value);
        if (chosen_[t] == rank) here += static_cast<double>(tensors_[t].traffic.value);
        if (!chosen_[t]) left.push_back(t);
      }
      std::ranges::stable_sort(left, std::greater{}, [&](std::size_t t) {
        const double space = static_cast<double>(tensors_[t].bytes.value) * tensors_[t].length;
        return static_cast<double>(tensors_[t].traffic.value) / std::max(space, 1.0);
      });
      if (balanced) {
        double all = 0;
        for (const Store& store : stores_[part]) all += rate_of(machine_, store.in);
        const double share = traffic * rate_of(machine_, stores_[part][rank].in) / all;
        std::size_t count = 0;
        while (count < left.size() && here < share) here += static_cast<double>(tensors_[left[count++]].traffic.value);
        left.resize(count);
      }
      add_as_many(part, rank, left);
    }
  }

  /// The most of the first tensors for which there are places.
  void add_as_many(std::size_t part, std::size_t rank, const std::vector<std::size_t>& wanted) {
    const MemoryId memory = stores_[part][rank].memory;
    const auto try_first = [&](std::size_t count) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        chosen_[wanted[i]] = i < count ? std::optional{rank} : std::nullopt;
      }
      return unlimited(memory) || pack_into(memory);
    };
    if (try_first(wanted.size())) return;
    std::size_t fits = 0;
    std::size_t fails = wanted.size();
    while (fits + 1 < fails) {
      const std::size_t middle = (fits + fails) / 2;
      (try_first(middle) ? fits : fails) = middle;
    }
    if (!try_first(fits)) problem_ = Problem{"memory " + machine_.memories[index(memory)].name + " is full"};
  }

  /// Finds places for all tensors in that memory. False, and no change of places, if there are none.
  bool pack_into(MemoryId memory) {
    if (unlimited(memory)) return true;
    const Memory& in = machine_.memories[index(memory)];
    PackingProblem problem;
    problem.slots = std::max<std::uint32_t>(steps_, 1);
    problem.capacity = *in.bytes;
    problem.alignment = in.alignment;
    problem.max_allocation = in.max_allocation;
    std::vector<std::size_t> members;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (!chosen_[t] || memory_of(t, *chosen_[t]) != memory) continue;
      members.push_back(t);
      problem.items.push_back({tensors_[t].bytes, tensors_[t].start, tensors_[t].length});
      if (in.max_allocation && tensors_[t].bytes > *in.max_allocation) return false;
    }
    const Result<Packing> packing = pack(problem);
    if (!packing) return false;
    for (std::size_t i = 0; i < members.size(); ++i) places_[members[i]].offset = packing->offsets[i];
    return true;
  }

  const Machine& machine_;
  const std::vector<std::vector<Store>>& stores_;
  const std::vector<StoredTensor>& tensors_;
  const std::uint32_t steps_;
  std::vector<std::optional<std::size_t>> chosen_;  // of each tensor, the rank of its store
  std::vector<StoredPlace> places_;
  std::optional<Problem> problem_;
};

}  // namespace

std::vector<std::vector<Store>> find_stores(const Machine& machine, const std::vector<MemoryId>& devices) {
  std::vector<std::vector<Store>> stores;
  for (const MemoryId device : devices) {
    std::vector<Store>& of_device = stores.emplace_back();
    for (std::size_t m = 0; m < machine.memories.size(); ++m) {
      const auto memory = id_at<MemoryId>(m);
      if (std::ranges::find(devices, memory) != devices.end()) continue;
      const auto in = fastest_link(machine, memory, device);
      const auto out = fastest_link(machine, device, memory);
      if (in && out) of_device.push_back({memory, *in, *out});
    }
    std::ranges::stable_sort(of_device, std::greater{}, [&](const Store& store) { return rate_of(machine, store.in); });
  }
  return stores;
}

Result<std::vector<StoredPlace>> assign_stores(const Machine& machine, const std::vector<std::vector<Store>>& stores,
                                               const std::vector<StoredTensor>& tensors, std::uint32_t steps) {
  return Assignment(machine, stores, tensors, steps).run();
}

}  // namespace swapmm::v2::planning
