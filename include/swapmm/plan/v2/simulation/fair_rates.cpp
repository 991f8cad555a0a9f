// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/simulation/fair_rates.hpp>

#include <algorithm>
#include <cassert>
#include <limits>

namespace swapmm::v2::simulation {

FairRates::FairRates(const Machine& machine)
    : machine_(machine), left_(machine.capacities.size()), open_(machine.capacities.size()) {}

std::uint64_t FairRates::offer(const Link& link) const {
  std::uint64_t smallest = link.bytes_per_second;
  for (const CapacityId capacity : link.capacities) {
    smallest = std::min(smallest, left_[index(capacity)] / open_[index(capacity)]);
  }
  return smallest;
}

std::uint64_t FairRates::make_offers(std::span<const LinkId> flowing) {
  std::uint64_t smallest = std::numeric_limits<std::uint64_t>::max();
  offers_.clear();
  for (const std::size_t copy : copies_) {
    offers_.push_back(offer(machine_.links[index(flowing[copy])]));
    smallest = std::min(smallest, offers_.back());
  }
  return smallest;
}

// A link that is slower than the smallest share decides the offer to its copies. Closing them lowers no share,
// not even a rounded one. So one round can close all such copies, whatever their rates are.
bool FairRates::close_slow_links(std::span<const LinkId> flowing, std::span<std::uint64_t> rates) {
  std::uint64_t smallest = std::numeric_limits<std::uint64_t>::max();
  for (const std::size_t copy : copies_) {
    for (const CapacityId capacity : machine_.links[index(flowing[copy])].capacities) {
      smallest = std::min(smallest, left_[index(capacity)] / open_[index(capacity)]);
    }
  }
  return std::erase_if(copies_, [&](std::size_t copy) {
           const Link& link = machine_.links[index(flowing[copy])];
           if (link.bytes_per_second >= smallest) return false;
           close(link, rates[copy] = link.bytes_per_second);
           return true;
         }) != 0;
}

void FairRates::close(const Link& link, std::uint64_t rate) {
  for (const CapacityId capacity : link.capacities) {
    left_[index(capacity)] -= rate;
    --open_[index(capacity)];
  }
}

void FairRates::compute(std::span<const LinkId> flowing, std::span<std::uint64_t> rates) {
  assert(rates.size() == flowing.size());
  copies_.clear();
  for (std::size_t i = 0; i < flowing.size(); ++i) {
    const Link& link = machine_.links[index(flowing[i])];
    if (link.capacities.empty()) {
      rates[i] = link.bytes_per_second;  // it shares nothing, so nothing else depends on it
      continue;
    }
    copies_.push_back(i);
    for (const CapacityId capacity : link.capacities) {
      left_[index(capacity)] = machine_.capacities[index(capacity)].bytes_per_second;
      ++open_[index(capacity)];
    }
  }
  while (!copies_.empty()) {
    if (close_slow_links(flowing, rates)) continue;
    const std::uint64_t rate = make_offers(flowing);
    std::size_t still_open = 0;
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      const std::size_t copy = copies_[i];
      if (offers_[i] != rate) {
        copies_[still_open++] = copy;
        continue;
      }
      close(machine_.links[index(flowing[copy])], rates[copy] = rate);
    }
    copies_.resize(still_open);
  }
}

}  // namespace swapmm::v2::simulation
