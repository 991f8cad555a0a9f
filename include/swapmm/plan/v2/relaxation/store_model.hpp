// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/relaxation/swap_model.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2::planning {

/// A memory that values go to from a device, as the bound sees it.
struct StoreOfModel {
  MemoryId memory{};
  std::optional<double> space;  ///< bytes; none: without limit
};

/// Something that copies share: a link, an engine of several links, or a capacity.
struct SharedRate {
  std::vector<double> in;   ///< of each store: nanoseconds for a byte from it; 0: such copies do not use this
  std::vector<double> out;  ///< the same for copies to it
};

/// Values of a tensor that no operation writes.
struct CleanValue {
  std::vector<std::uint32_t> windows;  ///< positions in SwapModel::clean
  bool is_in_host = false;             ///< an input, which the host has in any case
};

/// The problem of the bound for a device that is linked to several memories, which are not linked to each other.
struct StoreModel {
  swapmm::planning::relaxation::SwapModel swaps;
  std::vector<StoreOfModel> stores;
  std::vector<SharedRate> rates;
  std::vector<CleanValue> clean;
  std::optional<std::size_t> host;  ///< the store that is the host

  /// Values that no operation writes, then those that one does.
  [[nodiscard]] std::size_t values() const { return clean.size() + swaps.values.size(); }
  /// Bytes of one of these; 0 if nothing is decided for it.
  [[nodiscard]] double bytes_of(std::size_t value) const;
  /// Whether a copy of it is required.
  [[nodiscard]] bool must_move(std::size_t value) const;
};

/// Whether the bound for stores holds for a device: one to five memories are linked to it in both directions, no other
/// memory is, and no link joins other memories.
[[nodiscard]] bool has_only_stores(const Machine& machine, MemoryId device);

/// Makes the model. The machine must fulfil has_only_stores(). The ledger is for the device with all other memories
/// merged to one host.
[[nodiscard]] StoreModel make_store_model(const Machine& machine, MemoryId device,
                                          const swapmm::planning::PlanningCase& planning,
                                          const swapmm::planning::OverlapLedger& ledger);

}  // namespace swapmm::v2::planning
