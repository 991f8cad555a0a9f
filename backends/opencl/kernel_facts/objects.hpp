// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallBitVector.h>

namespace llvm {
class Value;
class Function;
}  // namespace llvm

namespace swapmm::kernel_facts {

/// What a value depends on beyond constants, sizes of the launch, structures of scalars and the work item's global id.
/// Bits.
using Dependence = std::uint64_t;
constexpr Dependence on_nothing = 0;
constexpr Dependence on_data = 1;        ///< contents of memory, or what only the driver knows
constexpr Dependence on_local_size = 2;  ///< how the driver divides the launch, if the program does not say
/// The value of a scalar argument. Those behind the first 61 share a bit.
constexpr Dependence on_scalar(unsigned argument) { return Dependence{4} << (argument < 61 ? argument : 61); }

/// A piece of memory that a kernel can reach, and what the kernel does with it.
struct MemoryObject {
  enum class Kind : std::uint8_t {
    unknown,   ///< a pointer that comes from memory: anything
    buffer,    ///< of an argument in global or constant memory
    scratch,   ///< private or local memory: its contents are the kernel's own
    table,     ///< constant data of the program
    variable,  ///< a variable of the program that keeps its value between launches
  } kind = Kind::unknown;
  bool read = false;
  bool written = false;
  Dependence contents = on_nothing;  ///< what its bytes depend on
  Dependence places = on_nothing;    ///< what the addresses of stores depend on, and whether they happen
};

/// All objects of a kernel; number 0 is the unknown one.
class Objects {
 public:
  /// False if an argument is of a kind that is not understood.
  [[nodiscard]] bool collect(const llvm::Function& kernel);

  [[nodiscard]] std::size_t size() const { return all_.size(); }
  MemoryObject& operator[](std::size_t number) { return all_[number]; }
  /// The object that an argument, variable or alloca is; 0 if it is none that is known.
  [[nodiscard]] std::size_t number(const llvm::Value* value) const {
    const auto found = numbers_.find(value);
    return found == numbers_.end() ? 0 : found->second;
  }

 private:
  void add(const llvm::Value& value, MemoryObject object) {
    numbers_[&value] = all_.size();
    all_.push_back(object);
  }
  std::vector<MemoryObject> all_;
  llvm::DenseMap<const llvm::Value*, std::size_t> numbers_;
};

/// True for images, samplers, events and other things that only functions of the language understand.
[[nodiscard]] bool is_opaque(const llvm::Value& pointer);

}  // namespace swapmm::kernel_facts
