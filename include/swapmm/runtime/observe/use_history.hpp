// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm::runtime {

/// A tensor in the bundle of an operation, as the history knows it.
struct Use {
  std::uint32_t record = 0;
  std::uint64_t serial = 0;
  Access access = Access::read;
};

/// What the last operations used, and what that tells about the next ones: once four operations came as they came
/// before, the sequence is taken to go on as it went on then. So repeated parts are found wherever they begin, and
/// however they follow one another. Where nothing came before, nothing is told.
///
/// Operations are alike if their tokens are equal; the caller makes tokens. Memory is bounded: the oldest operations
/// are forgotten. An operation costs a few look-ups in tables.
class UseHistory {
 public:
  /// Operations that are remembered.
  static constexpr std::size_t capacity = 4096;
  /// Uses of an operation that are remembered.
  static constexpr std::size_t most_uses = 16;
  /// As many operations must come as they came before.
  static constexpr std::size_t alike = 4;
  /// An answer of distance(): the history does not tell.
  static constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();

  SWAPMM_TEMPLATE_EXPORT UseHistory();

  /// Adds an operation.
  SWAPMM_TEMPLATE_EXPORT void add(std::uint64_t token, std::span<const Use> uses);

  /// What comes next does not follow what came last: a plan was followed between, for example.
  SWAPMM_TEMPLATE_EXPORT void interrupt() noexcept;

  /// After how many operations the tensor of the last operation's use `index` will be used next, if it all goes on as
  /// it did before.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::uint64_t distance(std::size_t index) const;

  /// What the operation `ahead` operations after the last one will use; 1 is the next one. Empty if the history does
  /// not tell, or if it was wrong about that operation the last time.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::span<const Use> upcoming(std::size_t ahead) const;

  /// How many operations were foretold, and how many of them came.
  [[nodiscard]] std::uint64_t foretold() const { return foretold_; }
  [[nodiscard]] std::uint64_t came() const { return came_; }

 private:
  static constexpr std::size_t slots = 2 * capacity;

  struct Operation {
    std::uint64_t token = 0;
    std::uint32_t use_count = 0;
    bool sure = false;  // the operation after it was the one that was foretold
  };
  // The last operations of a sequence of `alike` operations.
  struct Context {
    std::uint64_t hash = 0;
    std::uint64_t operation = 0;
  };
  struct LastUse {
    std::uint64_t serial = 0;
    std::uint64_t operation = 0;
    std::uint32_t use = 0;  // index in the operation
  };

  [[nodiscard]] bool remembers(std::uint64_t operation) const {
    return operation != 0 && operation <= now_ && now_ - operation < capacity;
  }
  [[nodiscard]] Operation& at(std::uint64_t operation) { return operations_[operation % capacity]; }
  [[nodiscard]] const Operation& at(std::uint64_t operation) const { return operations_[operation % capacity]; }
  [[nodiscard]] static std::size_t first_use(std::uint64_t operation) { return operation % capacity * most_uses; }
  [[nodiscard]] std::uint64_t context() const;
  void note_uses(std::span<const Use> uses);

  // Operations are numbered from 1 on.
  std::vector<Operation> operations_;
  std::vector<Use> uses_;
  std::vector<std::uint64_t> distances_;  // of the same uses; 0: not used again yet
  std::vector<Context> contexts_;
  std::vector<LastUse> last_uses_;  // by record
  std::uint64_t now_ = 0;
  std::uint64_t since_ = 0;  // the last operation before the interruption
  std::uint64_t match_ = 0;  // the operation of the past that the last one is like; 0: none
  std::uint64_t foretold_ = 0;
  std::uint64_t came_ = 0;
};

}  // namespace swapmm::runtime
