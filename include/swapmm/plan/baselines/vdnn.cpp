// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/baselines/vdnn.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <swapmm/plan/schedule/absence_stays.hpp>
#include <swapmm/plan/schedule/fit.hpp>

namespace swapmm::planning {
namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_convolution(const TraceOperation& operation, std::string_view sought) {
  return std::search(operation.name.begin(), operation.name.end(), sought.begin(), sought.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != operation.name.end();
}

class Vdnn {
 public:
  Vdnn(const PlanningCase& planning, const VdnnOptions& options)
      : planning_(planning), options_(options), ledger_(planning), n_(planning.operations), lacking_(n_) {
    const std::vector<Bytes>& live = planning.liveness.live;
    peak_ = static_cast<std::uint32_t>(std::max_element(live.begin(), live.end()) - live.begin());
    for (const TraceOperation& operation : planning.trace.operations) {
      is_convolution_.push_back(is_convolution(operation, options.convolution));
    }
    decide(options.offload);
    if (options.prefetch) prefetch();
  }

  OverlapLedger take() && { return std::move(ledger_); }

 private:
  void decide(VdnnOffload offload) {
    for (Absence& a : ledger_.absences) {
      a.stays = true;
      a.leaves = a.first;
      a.returns = a.is_arrival ? a.first : a.end;  // inputs arrive when they are available
      a.queued = a.returns;
      if (a.is_arrival) a.stays = false;
    }
    for (std::size_t t = 0; t < planning_.sizes.size(); ++t) {
      if (planning_.trace.tensors[t].kind != TensorKind::persistent) decide_feature_map(t, offload);
    }
  }

  /// Sends a feature map out over the absence from its last use in the forward half to the backward half.
  void decide_feature_map(std::size_t tensor, VdnnOffload offload) {
    const std::vector<Use>& uses = planning_.liveness.uses[tensor];
    bool is_read = false;  // in the forward half, by an operation that counts
    for (std::size_t u = 0; u + 1 < uses.size(); ++u) {
      const auto operation = static_cast<std::uint32_t>(uses[u].operation);
      if (operation > peak_) return;
      if (uses[u].access == Access::write)
        is_read = false;
      else
        is_read = is_read || offload == VdnnOffload::all || is_convolution_[operation];
      const std::uint32_t absence = ledger_.absence_after[ledger_.first_use[tensor] + u];
      if (!is_read || absence == no_absence) continue;
      Absence& a = ledger_.absences[absence];
      if (a.end <= peak_ || a.lingers) continue;
      a.stays = false;
      lacking_[a.end].push_back(absence);
    }
  }

  /// Lets each operation of the backward half prefetch what the nearest operation ahead lacks, up to the first
  /// convolution.
  void prefetch() {
    for (std::uint32_t now = peak_ + 1; now < n_; ++now) {
      for (std::uint32_t next = now + 1; next < n_; ++next) {
        if (!lacking_[next].empty()) {
          for (const std::uint32_t absence : lacking_[next]) {
            Absence& a = ledger_.absences[absence];
            a.returns = now;
            a.queued = now;
          }
          lacking_[next].clear();
          break;
        }
        if (is_convolution_[next] && !options_.prefetch_past_convolutions) break;
      }
    }
  }

  const PlanningCase& planning_;
  const VdnnOptions& options_;
  OverlapLedger ledger_;
  std::uint32_t n_;
  std::uint32_t peak_ = 0;
  std::vector<bool> is_convolution_;                 ///< per operation
  std::vector<std::vector<std::uint32_t>> lacking_;  ///< per operation: absences that end with it, not prefetched yet
};

}  // namespace

Result<Plan> build_vdnn_plan(const PlanningCase& planning, const VdnnOptions& options, std::string_view planner) {
  const OverlapLedger policy = Vdnn(planning, options).take();
  return build_fitting_plan(planning, planner, Pace::overlapped, options.fitting, [&](std::uint64_t bytes) {
    OverlapLedger ledger = policy;
    let_go_until_it_fits(ledger, bytes);
    return stays_of(ledger);
  });
}

}  // namespace swapmm::planning
