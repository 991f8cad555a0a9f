// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string_view>
#include <type_traits>
#include <unordered_set>

#include <swapmm/swapmm.h>
#include <swapmm/backend/file_memory.hpp>
#include <swapmm/backend/neighbour.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/c_interface/options.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/interface/report.hpp>
#include <swapmm/interface/shared_links.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/scheduler.hpp>

// What the opaque types of the C interface are: objects that hide the backend's type. ManagerOn and BackendOn implement
// them for each backend.

namespace swapmm::c_interface {

/// A kernel of the simulated backend, as programs pass it.
struct SimulatedKernel {
  std::chrono::nanoseconds duration{0};
  int (*run)(void* argument) = nullptr;
  void* argument = nullptr;
};

}  // namespace swapmm::c_interface

struct swapmm_file {
  std::shared_ptr<swapmm::FileMemory> memory;
};

struct swapmm_neighbour {
  std::shared_ptr<swapmm::Neighbour> memory;
};

struct swapmm_shared_links {
  std::shared_ptr<swapmm::SharedLinks> links;
};

struct swapmm_manager {
  swapmm_manager() = default;
  swapmm_manager(const swapmm_manager&) = delete;
  swapmm_manager& operator=(const swapmm_manager&) = delete;
  virtual ~swapmm_manager() = default;

  /// Throws NestedOperation if an operation has begun and not ended. Called before those of the other calls that an
  /// operation does not allow.
  virtual void require_no_operation(const char* call) const = 0;

  virtual swapmm_tensor create(std::string_view name, swapmm::Bytes bytes, swapmm::Lifetime lifetime) = 0;
  virtual swapmm_tensor create_constant(std::string_view name, swapmm::Bytes bytes,
                                        const std::shared_ptr<swapmm::FileMemory>& source, swapmm::Bytes offset) = 0;
  /// Needs no turn.
  virtual void destroy(swapmm_tensor tensor) = 0;
  virtual void upload(swapmm_tensor tensor, swapmm::Bytes offset, std::span<const std::byte> data) = 0;
  virtual void download(swapmm_tensor tensor, swapmm::Bytes offset, std::span<std::byte> data) = 0;

  virtual void begin_iteration(std::string_view name) = 0;
  virtual void end_iteration() = 0;

  virtual void begin_operation(swapmm_operation& operation) = 0;
  [[nodiscard]] virtual void* address(swapmm_tensor tensor, swapmm::Bytes offset, swapmm::Bytes bytes) = 0;
  virtual void end_operation(void* event) = 0;
  virtual void fail_operation() = 0;
  virtual void cancel_operation() = 0;
  /// Returns what the operation's end takes, or null.
  virtual void* launch(const swapmm::c_interface::SimulatedKernel& /*kernel*/) {
    throw swapmm::UsageError("swapmm_simulated_launch() needs a manager on a simulated device");
  }

  virtual void set_budget(swapmm::Bytes bytes) = 0;
  virtual void set_neighbour_budget(const swapmm::Neighbour& neighbour, swapmm::Bytes bytes) = 0;
  virtual void synchronize() = 0;
  [[nodiscard]] virtual swapmm::Report report() = 0;
  /// Without plans, and what the scheduler knows.
  [[nodiscard]] virtual const swapmm::Report& count() = 0;
  [[nodiscard]] virtual swapmm::Scheduler& scheduler() = 0;

  /// Who is inside.
  struct alignas(8) Callers {
    std::uint16_t has_turn = 0;      ///< 1: a call works with the manager
    std::uint16_t is_destroyed = 0;  ///< 1: it ends when nobody is inside any more
    std::uint32_t calls = 0;         ///< that have begun and not ended, also those that have given their turn away
  };
  static_assert(std::has_unique_object_representations_v<Callers>, "it is compared as bytes");
  std::atomic<Callers> callers{};
};

namespace swapmm::c_interface {

/// Changes who is inside, and returns who was before.
template <class Change>
swapmm_manager::Callers change(std::atomic<swapmm_manager::Callers>& callers, Change&& to) {
  swapmm_manager::Callers before = callers.load();
  for (;;) {
    swapmm_manager::Callers after = before;
    to(after);
    if (callers.compare_exchange_weak(before, after)) return before;
  }
}

/// The managers that were made and not destroyed. A handle may be used by another thread that is late.
class LiveManagers {
 public:
  static LiveManagers& all() {
    static auto* const managers = new LiveManagers;  // it outlives what programs keep until their end
    return *managers;
  }
  void add(const swapmm_manager& manager) {
    const std::unique_lock lock(mutex_);
    known_.insert(&manager);
  }
  /// Calls f if there is the manager, which stays there meanwhile. Returns whether there was.
  template <class F>
  bool with(const swapmm_manager& manager, F&& f) const {
    const std::shared_lock lock(mutex_);
    if (!known_.contains(&manager)) return false;
    f();
    return true;
  }
  /// Returns whether it was there.
  bool remove(const swapmm_manager& manager) {
    const std::unique_lock lock(mutex_);
    return known_.erase(&manager) != 0;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_set<const swapmm_manager*> known_;
};

/// A caller's turn with a manager. A second caller at the same time gets an exception. A manager that was destroyed
/// meanwhile ends with the last call.
class Turn {
 public:
  explicit Turn(swapmm_manager& manager) : manager_(manager) {
    bool is_free = true;
    if (!LiveManagers::all().with(manager, [&] { is_free = take(); })) throw UsageError("the manager was destroyed");
    if (!is_free) {
      throw ConcurrentUse("the manager is in use: by another thread, or by the kernel that makes this call");
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    const swapmm_manager::Callers before = change(manager_.callers, [](swapmm_manager::Callers& callers) {
      callers.has_turn = 0;
      --callers.calls;
    });
    if (before.is_destroyed != 0 && before.calls == 1) delete &manager_;
  }

 private:
  [[nodiscard]] bool take() {
    bool is_free = true;
    change(manager_.callers, [&](swapmm_manager::Callers& callers) {
      is_free = callers.has_turn == 0;
      if (!is_free) return;
      callers.has_turn = 1;
      ++callers.calls;
    });
    return is_free;
  }

  swapmm_manager& manager_;
};

}  // namespace swapmm::c_interface

struct swapmm_backend {
  swapmm_backend() = default;
  swapmm_backend(const swapmm_backend&) = delete;
  swapmm_backend& operator=(const swapmm_backend&) = delete;
  virtual ~swapmm_backend() = default;

  [[nodiscard]] virtual std::unique_ptr<swapmm_manager> make_manager(
      const swapmm::c_interface::ManagerOptions& options) const = 0;
  /// What the devices of backends of one type share, this one among them. Throws UsageError if they are of several.
  [[nodiscard]] virtual swapmm::LinkCapacities measure_shared_links(std::span<const swapmm_backend* const> backends,
                                                                    swapmm::Bytes piece) const = 0;
  /// An address that only backends of one type return.
  [[nodiscard]] virtual const void* type() const noexcept = 0;
};
