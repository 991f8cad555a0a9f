// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/runtime/core/running_operation.hpp>
#include <swapmm/runtime/slices/slice_layout.hpp>

namespace swapmm::runtime {

/// What the runtime does with a program's callable, whatever its type is. So all that runs an operation is compiled
/// once for each backend, and not for each callable again.
template <Backend B>
struct CallableType {
  /// Calls the first form of MemoryManager::run(). `slices` are those of the bundle; null: there are none.
  void (*queue)(void* callable, RunningOperation<B>& running, const SliceLayout<B>* slices) = nullptr;
  /// Calls the second form; null if the callable has the first one.
  typename B::NativeEvent (*queue_after)(void* callable, RunningOperation<B>& running, const SliceLayout<B>* slices,
                                         typename B::WaitList waits) = nullptr;
  /// Makes a copy at an address; null if there can be none.
  void (*copy)(void* to, const void* callable) = nullptr;
  /// Destroys a copy.
  void (*destroy)(void* copy) noexcept = nullptr;
  std::size_t bytes = 0;      ///< of a copy
  std::size_t alignment = 1;  ///< of a copy
};

/// A program's callable. Refers to it.
template <Backend B>
struct CallableRef {
  void* callable = nullptr;
  const CallableType<B>* type = nullptr;

  /// Whether it has the second form.
  [[nodiscard]] bool gives_event() const { return type->queue_after != nullptr; }
  void queue(RunningOperation<B>& running, const SliceLayout<B>* slices) const {
    type->queue(callable, running, slices);
  }
  [[nodiscard]] typename B::NativeEvent queue_after(RunningOperation<B>& running, const SliceLayout<B>* slices,
                                                    typename B::WaitList waits) const {
    return type->queue_after(callable, running, slices, std::move(waits));
  }
};

/// A copy of a program's callable. Its memory is used again for the next one, if that is not larger.
template <Backend B>
class CallableCopy {
 public:
  CallableCopy() = default;
  CallableCopy(const CallableCopy&) = delete;
  CallableCopy& operator=(const CallableCopy&) = delete;
  ~CallableCopy() { reset(); }

  /// `given` can be copied. If that throws, there is no copy.
  void assign(const CallableRef<B>& given) {
    reset();
    if (given.type->bytes > bytes_ || given.type->alignment > alignment_) {
      memory_.reset();
      bytes_ = 0;
      memory_ = Memory(::operator new (given.type->bytes, std::align_val_t{given.type->alignment}),
                       Free{given.type->alignment});
      bytes_ = given.type->bytes;
      alignment_ = given.type->alignment;
    }
    given.type->copy(memory_.get(), given.callable);
    type_ = given.type;
  }
  void reset() noexcept {
    if (type_ != nullptr) std::exchange(type_, nullptr)->destroy(memory_.get());
  }
  [[nodiscard]] CallableRef<B> ref() const { return {memory_.get(), type_}; }

 private:
  struct Free {
    std::size_t alignment;
    void operator()(void* memory) const noexcept { ::operator delete (memory, std::align_val_t{alignment}); }
  };
  using Memory = std::unique_ptr<void, Free>;

  Memory memory_{nullptr, Free{1}};
  std::size_t bytes_ = 0;  // of the memory
  std::size_t alignment_ = 1;
  const CallableType<B>* type_ = nullptr;  // of the copy that is there; null: none
};

}  // namespace swapmm::runtime
