// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2::simulation {

/// The rates of copies that flow at the same time: max-min fair, in whole bytes per second, as docs/formats.md says
/// ("Times"). Keeps a reference to the machine, and memory for the next call.
class FairRates {
 public:
  explicit FairRates(const Machine& machine);

  /// Sets rates[i] to the rate on flowing[i], for each i. A link is in `flowing` at most once. No rate is 0. Takes the
  /// product of the copies and the capacities that they share.
  void compute(std::span<const LinkId> flowing, std::span<std::uint64_t> rates);

 private:
  /// The smallest of the link's own bandwidth and its shares.
  [[nodiscard]] std::uint64_t offer(const Link& link) const;
  /// The smallest offer to an open copy; sets offers_.
  std::uint64_t make_offers(std::span<const LinkId> flowing);
  bool close_slow_links(std::span<const LinkId> flowing, std::span<std::uint64_t> rates);
  void close(const Link& link, std::uint64_t rate);

  const Machine& machine_;
  std::vector<std::uint64_t> left_;    // of each capacity: what copies that are not open leave
  std::vector<std::uint64_t> open_;    // of each capacity: its open copies; 0 between calls
  std::vector<std::size_t> copies_;    // positions of the open copies
  std::vector<std::uint64_t> offers_;  // to each of these
};

}  // namespace swapmm::v2::simulation
