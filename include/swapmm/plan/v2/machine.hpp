// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/machine.hpp>

/// Version 2 of the model: many memories, engines and links (docs/formats.md, "Version 2"). The types of version 1
/// describe one device and one host; from_version_1() converts them.
namespace swapmm::v2 {

/// Position of a memory in Machine::memories.
enum class MemoryId : std::uint32_t {};
/// Position of an engine: one of Machine::engines, or Machine::engines.size() + i for the engine of link i alone. See
/// engine_of().
enum class EngineId : std::uint32_t {};
/// Position of a capacity in Machine::capacities.
enum class CapacityId : std::uint32_t {};
/// Position of a link in Machine::links.
enum class LinkId : std::uint32_t {};

/// Bytes in which values can be: a device, the host, a file.
struct Memory {
  std::string name;                     ///< unique among memories
  std::optional<Bytes> bytes;           ///< size; none: without limit, so that every value has a place there
  Bytes alignment{1};                   ///< every offset is a multiple of this; at least 1
  std::optional<Bytes> max_allocation;  ///< no place crosses a multiple of this; none: one arena

  friend bool operator==(const Memory&, const Memory&) = default;
};

/// Runs its elements (operations, copies and others) one at a time.
struct Engine {
  std::string name;                ///< unique among engines
  std::optional<MemoryId> memory;  ///< where the operations that it runs have their tensors; none: it only copies

  friend bool operator==(const Engine&, const Engine&) = default;
};

/// Bytes per second that several links share.
struct Capacity {
  std::string name;                    ///< unique among capacities
  std::uint64_t bytes_per_second = 0;  ///< at least the number of links that name it

  friend bool operator==(const Capacity&, const Capacity&) = default;
};

/// Copies from one memory to another.
struct Link {
  std::string name;                      ///< unique among links
  MemoryId from{};                       ///< where copies read
  MemoryId to{};                         ///< where copies write; another memory than `from`
  std::uint64_t bytes_per_second = 0;    ///< above 0; less if capacities are shared
  std::chrono::nanoseconds latency{0};   ///< latency of each copy; not negative
  std::optional<EngineId> engine;        ///< the engine that copies occupy; none: one that no other link uses
  std::vector<CapacityId> capacities{};  ///< what copies share with those of other links

  friend bool operator==(const Link&, const Link&) = default;
};

/// A machine with any number of memories. Its file format is `swapmm-machine` version 2.
struct Machine {
  std::string name;                  ///< for people
  std::vector<Memory> memories;      ///< at least one
  std::vector<Engine> engines;       ///< at least one with a memory
  std::vector<Capacity> capacities;  ///< may be empty
  std::vector<Link> links;           ///< may be empty
  MemoryId host{};                   ///< the memory that the program's own code reads and writes

  friend bool operator==(const Machine&, const Machine&) = default;
};

/// Checks the rules of docs/formats.md for machines of version 2. Linear, but for a sort of the names.
[[nodiscard]] SWAPMM_EXPORT Check check_machine(const Machine& machine);

/// The engine that copies on a link occupy.
[[nodiscard]] inline EngineId engine_of(const Machine& machine, LinkId link) {
  const std::optional<EngineId>& engine = machine.links[index(link)].engine;
  return engine ? *engine : id_at<EngineId>(machine.engines.size() + index(link));
}
/// The number of values that an EngineId of the machine can have.
[[nodiscard]] inline std::size_t engine_count(const Machine& machine) {
  return machine.engines.size() + machine.links.size();
}

/// The first engine with a memory: it runs operations that name no engine. The machine must have one.
[[nodiscard]] SWAPMM_EXPORT EngineId default_engine(const Machine& machine);

/// The same machine in version 2: memories `device` and `host`, engines `compute`, `h2d` and, with full duplex, `d2h`,
/// links `h2d` and `d2h`.
[[nodiscard]] SWAPMM_EXPORT Machine from_version_1(const swapmm::Machine& machine);

}  // namespace swapmm::v2
