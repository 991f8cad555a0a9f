// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/runtime/values/bundle.hpp>

namespace swapmm::runtime {

template <Backend B>
class Core;

/// The callable of an operation, kept so that it can run again.
template <Backend B>
class KeptCallable {
 public:
  KeptCallable() = default;
  KeptCallable(const KeptCallable&) = delete;
  KeptCallable& operator=(const KeptCallable&) = delete;
  virtual ~KeptCallable() = default;
  /// Runs the operation. The caller is not inside the manager.
  virtual void run(Core<B>& core, const Request<B>& request) = 0;
  /// Destroys the callable.
  virtual void forget() noexcept = 0;
};

/// An operation of the current iteration, as it was requested.
template <Backend B>
struct KeptOperation {
  std::string name;
  std::vector<BundleItem<B>> items;
  Bytes scratch;
  bool has_scratch = false;
  bool filled = false;  ///< it has run in this iteration
  std::unique_ptr<KeptCallable<B>> callable;
  const void* type = nullptr;  ///< distinguishes types of callables

  [[nodiscard]] Request<B> request() const { return {name, items, scratch, has_scratch, true, true}; }
};

/// The operations of the current iteration that a plan runs again, and those that must run again now, because the plan
/// was left: what the plan dropped can be had in no other way.
template <Backend B>
class KeptOperations {
 public:
  /// False if nothing can be to run again. Any thread may ask.
  [[nodiscard]] bool may_run_again() const { return active_.load(std::memory_order_relaxed); }

  /// Keeps an operation under the number that it was observed with. Allocates nothing if it was kept before with a
  /// callable of that type.
  template <class Kept, class Callable>
  void keep(std::uint32_t number, const Request<B>& request, Callable&& callable) {
    static const char type{};
    if (operations_.size() <= number) operations_.resize(std::size_t{number} + 1);
    KeptOperation<B>& kept = operations_[number];
    kept.filled = false;
    kept.name.assign(request.name);
    kept.items.assign(request.items.begin(), request.items.end());
    kept.scratch = request.scratch;
    kept.has_scratch = request.has_scratch;
    if (kept.type == &type) {
      static_cast<Kept&>(*kept.callable).replace(std::forward<Callable>(callable));
    } else {
      kept.callable = std::make_unique<Kept>(std::forward<Callable>(callable));
      kept.type = &type;
    }
    kept.filled = true;
    active_.store(true, std::memory_order_relaxed);
  }

  /// The operation with that number; null if it has not run in this iteration.
  [[nodiscard]] KeptOperation<B>* find(std::uint32_t number) {
    return number < operations_.size() && operations_[number].filled ? &operations_[number] : nullptr;
  }

  /// These must run again before anything else does, in this order.
  void require(std::vector<std::uint32_t> numbers) { due_ = std::move(numbers); }
  /// The next one of these whose values are missing. It is no longer required.
  [[nodiscard]] KeptOperation<B>* take_due() {
    while (!due_.empty()) {
      KeptOperation<B>* const kept = find(due_.front());
      due_.erase(due_.begin());
      if (kept != nullptr && is_missing(*kept)) return kept;
    }
    return nullptr;
  }

  /// What the callables refer to may be gone from now on.
  void end_iteration() {
    due_.clear();
    if (!may_run_again()) return;
    for (KeptOperation<B>& kept : operations_) {
      kept.filled = false;
      if (kept.callable != nullptr) kept.callable->forget();
    }
    active_.store(false, std::memory_order_relaxed);
  }

 private:
  // Whether a value that it writes is missing, and all that it needs is there.
  [[nodiscard]] static bool is_missing(const KeptOperation<B>& kept) {
    bool missing = false;
    for (const BundleItem<B>& item : kept.items) {
      if (!TensorKey<B>{item.record, item.serial}.exists()) return false;
      if (item.record->has_value()) continue;
      if (item.access != Access::write) return false;
      missing = true;
    }
    return missing;
  }

  std::vector<KeptOperation<B>> operations_;  // by number
  std::vector<std::uint32_t> due_;
  std::atomic<bool> active_{false};
};

}  // namespace swapmm::runtime
