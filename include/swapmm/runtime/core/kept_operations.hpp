// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/store.hpp>

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
  bool filled = false;     ///< it has run in this iteration
  bool failed = false;     ///< it has failed once when it was due
  bool succeeded = false;  ///< the last time that it was due
  bool wanted = false;     ///< what it gives is missing, or is needed to give that
  std::unique_ptr<KeptCallable<B>> callable;
  const void* type = nullptr;  ///< distinguishes types of KeptCallable

  [[nodiscard]] Request<B> request() const { return {name, items, scratch, has_scratch, true, true}; }
};

/// The operations of the current iteration that a plan runs again, and those that must run again now, because the plan
/// was left: what the plan dropped can be had in no other way.
template <Backend B>
class KeptOperations {
 public:
  /// False if nothing can be to run again. Any thread may ask.
  [[nodiscard]] bool may_run_again() const { return active_.load(std::memory_order_relaxed); }

  /// Copies an operation that is about to run, under the number that it was observed with. A KeptCallable of that type
  /// is used again. It is kept once keep() is called.
  template <class Kept, class Callable>
  void prepare(std::uint32_t number, const Request<B>& request, Callable&& callable) {
    static const char type{};
    if (operations_.size() <= number) operations_.resize(std::size_t{number} + 1);
    KeptOperation<B>& kept = operations_[number];
    kept.filled = kept.failed = false;
    active_.store(true, std::memory_order_relaxed);
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
  }
  /// The operation has run.
  void keep(std::uint32_t number) noexcept { operations_[number].filled = true; }

  /// The operation with that number; null if it has not run in this iteration.
  [[nodiscard]] KeptOperation<B>* find(std::uint32_t number) {
    return number < operations_.size() && operations_[number].filled ? &operations_[number] : nullptr;
  }

  /// These must run again before anything else does, in this order.
  void require(std::vector<std::uint32_t> numbers) {
    due_ = std::move(numbers);
    forget_progress();
    std::vector<const Record<B>*> updated;  // by wanted ones: they need the value before
    for (auto number = due_.rbegin(); number != due_.rend(); ++number) {
      KeptOperation<B>* const kept = find(*number);
      if (kept == nullptr) continue;
      kept->wanted = std::ranges::any_of(kept->items, [&](const BundleItem<B>& item) {
        if (item.access == Access::read) return false;
        return !item.record->has_value() || std::ranges::find(updated, item.record) != updated.end();
      });
      for (const BundleItem<B>& item : kept->items) {
        if (kept->wanted && item.access == Access::update) updated.push_back(item.record);
      }
    }
  }
  /// An operation of the program has failed, and what it was to change has no value: nothing gives that an older one.
  void give_up(const Request<B>& request) noexcept {
    std::erase_if(due_, [&](std::uint32_t number) {
      const KeptOperation<B>* const kept = find(number);
      return kept != nullptr && std::ranges::any_of(kept->items, [&](const BundleItem<B>& item) {
               return item.access != Access::read && std::ranges::any_of(request.items, [&](const BundleItem<B>& lost) {
                        return lost.access != Access::read && lost.record == item.record;
                      });
             });
    });
  }
  /// The next one of these whose values are missing, or that updates what one of them has just made. The caller runs
  /// it. One that fails is returned once more by the next call.
  [[nodiscard]] KeptOperation<B>* take_due() {
    while (!due_.empty()) {
      KeptOperation<B>* const kept = find(due_.front());
      const bool has_run = std::exchange(is_running_, false) && kept != nullptr;
      const bool has_succeeded = has_run && kept->succeeded;
      const bool fails_again = has_run && !has_succeeded && std::exchange(kept->failed, true);
      if (kept == nullptr || fails_again || has_succeeded || !is_due(*kept)) {
        if (kept != nullptr && !has_succeeded) lose_updated(*kept);
        due_.erase(due_.begin());
        continue;
      }
      is_running_ = true;
      kept->succeeded = false;
      for (const BundleItem<B>& item : kept->items) {
        if (item.access != Access::read) made_.push_back(item.record);
      }
      return kept;
    }
    return nullptr;
  }

  /// What the callables refer to may be gone from now on.
  void end_iteration() {
    for (const std::uint32_t number : due_) {
      KeptOperation<B>* const kept = find(number);
      const bool has_succeeded = std::exchange(is_running_, false) && kept != nullptr && kept->succeeded;
      if (kept != nullptr && !has_succeeded) lose_updated(*kept);
    }
    due_.clear();
    forget_progress();
    if (!may_run_again()) return;
    for (KeptOperation<B>& kept : operations_) {
      kept.filled = false;
      if (kept.callable != nullptr) kept.callable->forget();
    }
    active_.store(false, std::memory_order_relaxed);
  }

 private:
  void forget_progress() {
    made_.clear();
    is_running_ = false;
  }
  // Whether it is wanted, or updates what has been made again, and all that it needs is there.
  [[nodiscard]] bool is_due(const KeptOperation<B>& kept) const {
    bool is_needed = kept.wanted;
    for (const BundleItem<B>& item : kept.items) {
      if (!TensorKey<B>{item.record, item.serial}.exists()) return false;
      const bool has_value = item.record->has_value();
      if (!has_value && item.access != Access::write) return false;
      if (item.access == Access::update && !was_made(*item.record)) return false;
      is_needed = is_needed || item.access == Access::update;
    }
    return is_needed;
  }
  // What it updates has the value that it had before, if it has been made again.
  void lose_updated(const KeptOperation<B>& kept) {
    for (const BundleItem<B>& item : kept.items) {
      if (item.access == Access::update && was_made(*item.record)) Store<B>::lose(*item.record);
    }
  }
  [[nodiscard]] bool was_made(const Record<B>& record) const {
    return std::ranges::find(made_, &record) != made_.end();
  }

  std::vector<KeptOperation<B>> operations_;  // by number
  std::vector<std::uint32_t> due_;
  std::vector<const Record<B>*> made_;  // by those that were due
  bool is_running_ = false;             // the first one of these
  std::atomic<bool> active_{false};
};

}  // namespace swapmm::runtime
