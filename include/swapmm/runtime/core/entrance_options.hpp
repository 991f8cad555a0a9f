// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include <swapmm/runtime/values/host_ledger.hpp>

namespace swapmm::runtime {

/// Options for a manager that serves the calls of another API, whose rules differ from those of the facade. The
/// defaults are the facade's rules.
struct EntranceOptions {
  /// A tensor that was never written may be read and updated, and has undefined bytes then. Reading it gives it no
  /// value; updating it, or writing a part of it, does. Values that were dropped or lost are still refused.
  bool undefined_reads = false;
  /// A call waits while another thread is inside the manager, instead of throwing ConcurrentUse. Calls enter in the
  /// order in which they came. A nested call of the same thread still throws NestedOperation.
  bool callers_wait = false;
  /// A limit on host memory that several managers share, beside Options::host_budget. None: null.
  std::shared_ptr<HostLedger> shared_host = nullptr;
  /// Returns whether nothing will read the value of a tensor any more, given its Record::owner. Asked when a followed
  /// plan drops the only copy of a value: a value that is not certainly dead is saved on the host. Null:
  /// SchedulerOptions::drops decides.
  std::function<bool(const void* owner)> certainly_dead = nullptr;
  /// Young tensors are identified by the place where the sequence first used them (see Producer), so programs that make
  /// their tensors anew in each iteration get plans. Tensors must then be created by the operation that first uses
  /// them.
  bool identify_by_producer = false;
  /// An operation that may run again may do so until the call that ends the iteration returns. What a plan has dropped
  /// to make it again is then not lost if the iteration ends early, so plans run operations again although drops must
  /// be proven. The entrance calls run_again_before_end() first.
  bool callables_until_end = false;
};

}  // namespace swapmm::runtime
