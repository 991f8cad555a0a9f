// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/v2/spread/stores.hpp>

namespace swapmm::v2::planning {

/// A memory that keeps what leaves a device, and the ways between both: links, one copy after another.
struct RoutedStore {
  MemoryId memory{};
  std::vector<LinkId> in;   ///< to the device
  std::vector<LinkId> out;  ///< from the device

  /// Whether copies pass other memories.
  [[nodiscard]] bool is_far() const { return in.size() > 1 || out.size() > 1; }
};

/// The memories that keep what leaves a device. Some may be behind others, as a disk is behind the host.
struct StoreRoutes {
  std::vector<RoutedStore> stores;  ///< fastest first
  /// Of each memory: the offset from which on it is free for values that pass it; none: no values pass, or it has no
  /// limit.
  std::vector<std::optional<Bytes>> passing;
  /// A machine that takes about as long, in which each store is linked to the device: its links have the least rate on
  /// the way, and share what ways have in common; its memories end where others begin to pass.
  Machine direct;
  std::vector<Store> links;  ///< of each store, in this machine
};

/// Finds the stores of the only device that computes: those that are linked to it, and those with ways through memories
/// of which a part is free for this: room for eight of the largest tensor, but no more than a quarter of what
/// `in_host`, the tensors that must be in the host, leaves there; room for one in any case.
[[nodiscard]] StoreRoutes find_routes(const Trace& trace, const Machine& machine, MemoryId device,
                                      const std::vector<bool>& in_host);

/// The largest tensor that can pass on the ways of a store; none: any.
[[nodiscard]] std::optional<Bytes> largest_to_pass(const StoreRoutes& routes, const Machine& machine,
                                                   const RoutedStore& store);

}  // namespace swapmm::v2::planning
