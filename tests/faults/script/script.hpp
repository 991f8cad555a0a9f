// SPDX-License-Identifier: Apache-2.0
#pragma once

// The gate that all calls of one run pass, and what went wrong there.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/backend/testing/call_site.hpp>
#include <swapmm/backend/testing/fault_plan.hpp>

#include "faults/parts/manager_state.hpp"
#include "faults/script/fault.hpp"
#include "support/failing_new.hpp"
#include "support/faulty_stream.hpp"

namespace swapmm::test {

/// One fault that came about.
struct Hit {
  FaultKind kind;
  std::string site;
  ManagerState state;
};

class FaultScript {
 public:
  /// `look` says what the manager is doing; it is asked from within its calls.
  FaultScript(Faults faults, std::function<ManagerState()> look);
  FaultScript(const FaultScript&) = delete;
  FaultScript& operator=(const FaultScript&) = delete;

  [[nodiscard]] const Faults& faults() const { return faults_; }
  /// From now on nothing goes wrong any more.
  void end() { over_ = true; }

  /// Those that went wrong so far, each once, in their order.
  [[nodiscard]] const std::vector<Hit>& hits() const { return hits_; }
  template <class Condition>
  [[nodiscard]] bool any(Condition&& condition) const {
    return std::any_of(hits_.begin(), hits_.end(), [&](const Hit& hit) { return condition(hit.kind); });
  }
  [[nodiscard]] bool repeats() const {
    return any([](const FaultKind& kind) { return kind.repeats(); });
  }
  [[nodiscard]] bool loses_device() const;
  [[nodiscard]] bool of_class(CallClass call) const {
    return any([&](const FaultKind& kind) { return kind.call == call; });
  }
  [[nodiscard]] bool of_file() const {
    return any([](const FaultKind& kind) { return kind.of_file(); });
  }
  [[nodiscard]] bool of_backend() const {
    return any([](const FaultKind& kind) { return is_of_backend(kind.call); });
  }
  [[nodiscard]] bool in_way(Way way) const {
    return any([&](const FaultKind& kind) { return kind.way == way; });
  }
  [[nodiscard]] bool late() const {
    return any([](const FaultKind& kind) { return kind.late(); });
  }
  /// The device that the faults ask for.
  [[nodiscard]] bool failures_stick() const { return failures_stick_; }

  // ---- the gates

  /// How many there were.
  [[nodiscard]] std::uint64_t file_calls(FileCall call) const { return file_calls_[static_cast<std::size_t>(call)]; }
  [[nodiscard]] std::uint64_t allocations_seen() const { return allocations_seen_; }

  std::optional<FaultPlan> backend_call(FaultClass call, const CallSite& where);
  std::optional<FileFault> file_call(FileCall call);
  /// Allocations of this thread count, and fail, while it lives.
  class Allocations {
   public:
    explicit Allocations(FaultScript& script);
    Allocations(const Allocations&) = delete;
    Allocations& operator=(const Allocations&) = delete;
    ~Allocations();

   private:
    FaultScript& script_;
    FailingNew failing_;
  };

 private:
  struct Armed {
    Fault fault;
    std::uint64_t seen = 0;  // calls of its class since it was armed
    bool fired = false;
  };

  [[nodiscard]] bool due(Armed& armed, CallClass call) const;
  void fired(Armed& armed, std::string site);
  [[nodiscard]] std::uint64_t allocations_left() const;
  void count_allocations();
  std::uint64_t allocation_failed();

  Faults faults_;
  std::function<ManagerState()> look_;
  std::vector<Armed> armed_;
  std::vector<Hit> hits_;
  bool over_ = false;
  bool failures_stick_ = false;
  bool allocating_ = false;           // an Allocations is there
  std::uint64_t allocations_at_ = 0;  // when they were counted last
  std::uint64_t allocations_seen_ = 0;
  std::array<std::uint64_t, 4> file_calls_{};
};

}  // namespace swapmm::test
