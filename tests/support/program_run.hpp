// SPDX-License-Identifier: Apache-2.0
#pragma once

// The runner of programs for any device; run_program() is its instance for the simulated one.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/simulated/random.hpp>
#include <swapmm/error.hpp>
#include <swapmm/memory_manager.hpp>

#include "program_addresses.hpp"
#include "program_calls.hpp"
#include "program_device.hpp"
#include "program_launch.hpp"
#include "program_limits.hpp"
#include "program_model.hpp"
#include "program_runner.hpp"

namespace swapmm::test {

/// One run of one program.
template <ProgramDevice D>
class ProgramRun {
 public:
  ProgramRun(const TestProgram& program, const RunSettings& settings)
      : program_(program),
        settings_(settings),
        device_(program),
        calls_(program, result_),
        random_(program.seed ^ 0xEDDF'0000U),
        limits_(Device(device_.backend()).capabilities(), program.manager),
        most_budget_(limits_.budget),
        launcher_(device_, addresses_) {}

  RunResult run() {
    kernels_.reserve(program_.actions.size());
    if (std::string text; attempt([&] { start(); }, text) == accepted) {
      for (std::size_t position = 0; position < program_.actions.size() && ok(); ++position) {
        calls_.go_to(position);
        act(program_.actions[position]);
        check_device();
      }
      if (ok()) calls_.go_to(program_.actions.size());
    } else {
      calls_.fail("the manager could not be made: " + text);
    }
    finish();
    end_everything();
    return std::move(result_);
  }

 private:
  using Device = typename D::Backend;
  using Views = typename ProgramLauncher<D>::Views;
  struct Promise {
    std::optional<PendingDownload<Device>> pending;
    std::vector<std::byte> bytes;
    SlicedBytes layout;
    SliceRange range;
    SliceVersions versions{};
  };

  void start() {
    SchedulerOptions options = program_.scheduler;
    if (!settings_.planning) options.observe = 0;
    scheduler_ = Scheduler(options);
    for (const SavedPlan& saved : settings_.loaded) {
      std::istringstream in(saved.text);
      try {
        scheduler_.load_plan(saved.iteration, in);
      } catch (const PlanRefused&) {
        ++result_.refused;
      }
    }
    backend_.emplace(device_.backend());
    manager_.emplace(*backend_, program_.manager, scheduler_);
  }

  [[nodiscard]] bool ok() const { return result_.failure.empty() && !kernel_failure_.any(); }
  void check_device() {
    if (const std::string violation = device_.violation(); !violation.empty() && ok()) calls_.fail(violation);
    if (kernel_failure_.any()) calls_.fail(kernel_failure_.text());
  }

  // ---- actions

  void act(const Action& action) {
    switch (action.kind) {
      case ActionKind::make: return make(action);
      case ActionKind::destroy: return destroy(action.slot);
      case ActionKind::exchange:
        std::swap(tensors_[action.slot], tensors_[action.other]);
        std::swap(models_[action.slot], models_[action.other]);
        return;
      case ActionKind::begin_iteration: return begin_iteration(action);
      case ActionKind::end_iteration: return end_iteration();
      case ActionKind::operation: return operate(action);
      case ActionKind::upload: return upload(action);
      case ActionKind::download: return download(action);
      case ActionKind::promise: return promise(action);
      case ActionKind::collect: return collect(promises_[action.other]);
      case ActionKind::drop: promises_[action.other].pending.reset(); return;
      case ActionKind::synchronize: (void)calls_.check({}, [&] { manager_->synchronize(); }); return;
      case ActionKind::plan: return plan();
      case ActionKind::set_budget: return set_budget(Bytes{action.bytes});
    }
  }

  void make(const Action& action) {
    destroy(action.slot);
    ModelTensor model;
    model.exists = true;
    model.kept = action.lifetime == Lifetime::kept;
    model.transient = action.lifetime == Lifetime::transient;
    model.local = iteration_.has_value();
    model.uneven = action.uneven;
    const auto unit = action.uneven ? 1U : static_cast<std::uint32_t>(limits_.alignment.value);
    model.layout = {++last_id_, action.bytes, action.slices, unit};
    if (action.bytes < action.slices * unit) model.layout.slices = 1;
    const bool made = calls_.check({}, [&] {
      tensors_[action.slot].emplace(
          manager_->template tensor<std::byte>({action.bytes}, name_of(model), action.lifetime));
    });
    if (made) models_[action.slot] = model;
  }

  void destroy(std::size_t slot) {
    tensors_[slot].reset();
    models_[slot] = {};
  }

  void begin_iteration(const Action& action) {
    const bool inside = iteration_.has_value();
    const bool begun = calls_.check({inside ? misused : accepted, accepted}, [&] {
      Iteration<Device> next = manager_->iteration(iteration_name(action.name));
      iteration_.emplace(std::move(next));
    });
    if (!begun) return;
    iteration_number_ = action.name;
    addresses_.begin_iteration();
  }

  void end_iteration() {
    if (!iteration_) return;
    iteration_.reset();
    for (ModelTensor& tensor : models_) {
      if (tensor.transient && tensor.value == ModelTensor::Value::there) tensor.value = ModelTensor::Value::faded;
      tensor.local = false;
    }
    if (program_.seed % 4 == 0) check_iteration();
  }

  View<std::byte, Device> view_of(std::size_t slot, const SliceRange& range) const {
    const SlicedBytes& layout = models_[slot].layout;
    return tensors_[slot]->slice(layout.begin(range.first), layout.size(range));
  }

  void operate(const Action& action) {
    Expected expected;
    kernels_.emplace_back();
    Kernel& kernel = kernels_.back();
    kernel.number = calls_.position();
    kernel.failure = &kernel_failure_;
    std::vector<Bytes> sizes;
    bool twice = false;
    for (std::size_t i = 0; i < action.part_count; ++i) {
      const Part& part = action.parts[i];
      const ModelTensor& tensor = models_[part.slot];
      if (!tensor.exists) return;
      for (std::size_t j = 0; j < i; ++j) twice = twice || action.parts[j].slot == part.slot;
      const SliceRange range =
          tensor.uneven ? SliceRange{0, tensor.layout.slices} : tensor.layout.range(part.first, part.count);
      kernel.parts[i] = {nullptr, tensor.layout, range, part.access, tensor.versions};
      sizes.push_back(Bytes{tensor.layout.bytes});
      if (part.access == Access::write && tensor.layout.whole(range)) continue;
      const Expected read = calls_.expected_of_read(tensor);
      expected.must |= read.must;
      expected.may |= read.may;
    }
    kernel.part_count = action.part_count;
    kernel.scratch_bytes = action.bytes;
    if (action.bytes != 0) sizes.push_back(Bytes{action.bytes});
    if (!limits_.hold(sizes)) expected = {too_large, accepted};
    if (twice) expected = {misused, accepted};
    const bool done = calls_.check(expected, [&] {
      Views views;
      for (std::size_t i = 0; i < action.part_count; ++i) {
        views[i].emplace(view_of(action.parts[i].slot, kernel.parts[i].range));
      }
      launcher_.run(*manager_, action, kernel, views);
    });
    for (std::size_t i = 0; i < action.part_count; ++i) {
      ModelTensor& tensor = models_[action.parts[i].slot];
      if (!done) calls_.note_drop(tensor);
      if (done && action.parts[i].access != Access::read) tensor.write(kernel.parts[i].range);
    }
  }

  void upload(const Action& action) {
    ModelTensor& tensor = models_[action.slot];
    if (!tensor.exists) return;
    const SliceRange range = tensor.layout.range(action.first, action.slices);
    const bool whole = tensor.layout.whole(range);
    SliceVersions next = tensor.versions;
    for (std::size_t slice = range.first; slice < range.end; ++slice) ++next[slice];
    bytes_.resize(tensor.layout.size(range));
    tensor.layout.fill(bytes_.data(), range, next);
    const Expected expected = whole ? Expected{} : calls_.expected_of_read(tensor);
    if (calls_.check(expected, [&] { view_of(action.slot, range).upload(bytes_); })) {
      tensor.write(range);
    } else {
      calls_.note_drop(tensor);
    }
    std::fill(bytes_.begin(), bytes_.end(), std::byte{0x77});  // the library has its own copy
  }

  void download(const Action& action) {
    ModelTensor& tensor = models_[action.slot];
    if (!tensor.exists) return;
    const SliceRange range = tensor.layout.range(action.first, action.slices);
    bytes_.assign(tensor.layout.size(range), std::byte{0x77});
    const bool done = calls_.check(calls_.expected_of_read(tensor),
                                   [&] { view_of(action.slot, range).download(std::span<std::byte>(bytes_)); });
    if (done) {
      check_bytes(bytes_, tensor.layout, range, tensor.versions);
    } else {
      calls_.note_drop(tensor);
    }
  }

  void promise(const Action& action) {
    ModelTensor& tensor = models_[action.slot];
    Promise& promise = promises_[action.other];
    if (!tensor.exists || promise.pending) return;
    promise.layout = tensor.layout;
    promise.range = tensor.layout.range(action.first, action.slices);
    promise.versions = tensor.versions;
    promise.bytes.assign(tensor.layout.size(promise.range), std::byte{0x77});
    const bool done = calls_.check(calls_.expected_of_read(tensor), [&] {
      promise.pending.emplace(view_of(action.slot, promise.range).download_async(std::span<std::byte>(promise.bytes)));
    });
    if (!done) calls_.note_drop(tensor);
  }

  void collect(Promise& promise) {
    if (!promise.pending) return;
    if (!calls_.check({}, [&] { promise.pending->wait(); })) return;
    check_bytes(promise.bytes, promise.layout, promise.range, promise.versions);
    promise.pending.reset();
  }

  void check_bytes(const std::vector<std::byte>& bytes, const SlicedBytes& layout, const SliceRange& range,
                   const SliceVersions& versions) {
    for (const std::byte byte : bytes) {
      result_.downloads = (result_.downloads ^ static_cast<std::uint64_t>(byte)) * 0x100000001B3U;
    }
    const simulated::Finding finding = layout.check(bytes.data(), range, versions);
    if (finding.found != simulated::Found::exact) calls_.fail("the host reads " + text_of(layout, finding));
  }

  void plan() {
    (void)calls_.check({}, [&] {
      if (auto job = scheduler_.planning_job()) job->run();
    });
  }

  // Refused inside an iteration, and where the device or the host has no room; then it is as before.
  void set_budget(Bytes bytes) {
    const Bytes budget = round_down(bytes, limits_.alignment);
    if (budget.value == 0) return;
    Options now = program_.manager;
    now.device_budget = bytes;
    const bool up = budget > limits_.budget;
    if (!iteration_) most_budget_ = std::max(most_budget_, budget);
    const Expected expected{iteration_ ? misused : accepted, up ? out_of_memory : accepted};
    if (calls_.check(expected, [&] { manager_->set_budget(bytes); })) {
      limits_ = ProgramLimits(Device(*backend_).capabilities(), now);
      ++result_.budget_changes;
    }
    const Report report = manager_->report();
    if (report.device_budget != limits_.budget) calls_.fail("another budget than the one that was set");
    check_report(report);
    if constexpr (requires { device_.taken(bytes); }) {
      if (const std::string wrong = device_.taken(limits_.budget); !wrong.empty()) calls_.fail(wrong);
    }
  }

  // ---- what holds after iterations, and in the end

  void check_report(const Report& report) {
    Options options = program_.manager;
    options.device_budget = most_budget_;
    if (report.device_used > limits_.budget || report.device_peak > options.device_budget) {
      calls_.fail("the device budget is exceeded");
    }
    if (report.host_peak > options.host_budget) calls_.fail("the host budget is exceeded");
    if (report.pinned_used > options.pinned_budget) calls_.fail("the pinned budget is exceeded");
    if (const std::string excess = device_.excess(report, options); !excess.empty()) calls_.fail(excess);
  }

  void check_iteration() {
    const Report report = manager_->report();
    check_report(report);
    const std::string moved = addresses_.check(report, iteration_name(iteration_number_));
    if (!moved.empty()) calls_.fail(moved);
  }

  void finish() {
    if (!manager_) return;
    const Report report = manager_->report();
    if (ok()) check_report(report);
    result_.operations = report.operations;
    result_.iterations_on_demand = report.iterations_on_demand;
    result_.iterations_followed = report.iterations_followed;
    result_.divergences = report.divergences;
    result_.plan_starts = report.plan_starts;
    result_.swaps = report.swap_ins + report.swap_outs;
    result_.notes = report.notes;
    result_.sampled_rounds = report.sampled_rounds;
    result_.plans_remade = report.plans_remade;
    if (!settings_.save_plans) return;
    for (std::uint8_t number = 0; number < 3; ++number) {
      const std::string name(iteration_name(number));
      if (scheduler_.plan(name) == nullptr) continue;
      std::ostringstream out;
      scheduler_.save_plan(name, out);
      result_.plans.push_back({name, out.str(), scheduler_.trace(name)});
    }
  }

  /// Manager, backend, tensors, promises and a begun iteration go in any order; nothing is left.
  void end_everything() {
    std::array<std::size_t, slot_count + promise_count + 3> order{};
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[random_.below(static_cast<std::uint32_t>(i))]);
    }
    for (const std::size_t what : order) {
      end(what);
      check_device();
    }
    scheduler_ = Scheduler();
    if (const std::string left = device_.left_over(); !left.empty()) calls_.fail(left);
    result_.trace_hash = device_.trace_hash();
  }

  void end(std::size_t what) {
    if (what < slot_count) {
      tensors_[what].reset();
    } else if (what < slot_count + promise_count) {
      Promise& promise = promises_[what - slot_count];
      if (random_.below(2) == 0) collect(promise);
      promise.pending.reset();
    } else if (what == slot_count + promise_count) {
      iteration_.reset();
    } else if (what == slot_count + promise_count + 1) {
      backend_.reset();
    } else {
      manager_.reset();
    }
  }

  const TestProgram& program_;
  const RunSettings& settings_;
  RunResult result_;
  D device_;
  ProgramCalls calls_;
  KernelFailure kernel_failure_;
  simulated::Random random_;
  ProgramLimits limits_;
  Bytes most_budget_;  // asked for so far

  std::vector<Kernel> kernels_;  // never moves: queued work refers to them
  std::vector<std::byte> bytes_;
  AddressHistory addresses_;
  ProgramLauncher<D> launcher_;
  std::uint8_t iteration_number_ = 0;

  std::optional<Device> backend_;
  Scheduler scheduler_;
  std::array<Promise, promise_count> promises_;
  std::optional<MemoryManager<Device>> manager_;
  std::optional<Iteration<Device>> iteration_;
  std::array<std::optional<Tensor<std::byte, Device>>, slot_count> tensors_;
  std::array<ModelTensor, slot_count> models_;
  std::uint64_t last_id_ = 0;
};

/// Runs the program on a device of its own, as run_program() does.
template <ProgramDevice D>
[[nodiscard]] RunResult run_program_on(const TestProgram& program, const RunSettings& settings = {}) {
  return ProgramRun<D>(program, settings).run();
}

}  // namespace swapmm::test
