// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::test::general {

/// A trace, and a machine with one device that has direct links to one to three memories: a host, which often has a
/// limit, and maybe a near memory and a disk. Links may share an engine or a capacity. All memories together have room
/// for everything.
struct StoreCase {
  Trace trace;
  swapmm::v2::Machine machine;
};

[[nodiscard]] StoreCase store_case(std::mt19937_64& random, std::size_t most_operations);

/// The same, but some memories are reached through others: a disk is behind the host or behind the near memory, and
/// sometimes the host is behind the near memory. Those that values pass have room for that.
[[nodiscard]] StoreCase far_store_case(std::mt19937_64& random, std::size_t most_operations);

}  // namespace swapmm::test::general
