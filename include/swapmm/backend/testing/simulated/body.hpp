// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace swapmm::simulated::detail {

/// The body of a kernel: a callable that takes the number of its phase. Small callables are stored in place, so
/// launching them allocates nothing.
class Body {
 public:
  static constexpr std::size_t in_place_bytes = 128;

  Body() = default;
  Body(Body&& other) noexcept { take(other); }
  Body& operator=(Body&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~Body() { reset(); }

  template <std::invocable<int> F>
  explicit Body(F function) {
    if constexpr (sizeof(F) <= in_place_bytes && alignof(F) <= alignof(std::max_align_t) &&
                  std::is_nothrow_move_constructible_v<F>) {
      ::new (static_cast<void*>(storage_)) F(std::move(function));
      actions_ = &in_place<F>;
    } else {
      auto on_heap = [held = std::make_unique<F>(std::move(function))](int phase) { (*held)(phase); };
      using Holder = decltype(on_heap);
      ::new (static_cast<void*>(storage_)) Holder(std::move(on_heap));
      actions_ = &in_place<Holder>;
    }
  }

  void operator()(int phase) { actions_->call(storage_, phase); }

  void reset() noexcept {
    if (actions_ != nullptr) std::exchange(actions_, nullptr)->destroy(storage_);
  }

 private:
  struct Actions {
    void (*call)(void* object, int phase);
    void (*move)(void* from, void* to) noexcept;  // also destroys the source
    void (*destroy)(void* object) noexcept;
  };

  template <class F>
  static constexpr Actions in_place{
      [](void* object, int phase) { (*static_cast<F*>(object))(phase); },
      [](void* from, void* to) noexcept {
        ::new (to) F(std::move(*static_cast<F*>(from)));
        static_cast<F*>(from)->~F();
      },
      [](void* object) noexcept { static_cast<F*>(object)->~F(); },
  };

  void take(Body& other) noexcept {
    actions_ = std::exchange(other.actions_, nullptr);
    if (actions_ != nullptr) actions_->move(other.storage_, storage_);
  }

  const Actions* actions_ = nullptr;
  alignas(std::max_align_t) std::byte storage_[in_place_bytes];
};

}  // namespace swapmm::simulated::detail
