// SPDX-License-Identifier: Apache-2.0
#pragma once

// The runner of programs for any device; run_program() is its instance for the simulated one.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/memory_manager.hpp>

#include "support/memory_file.hpp"
#include "support/program/addresses.hpp"
#include "support/program/calls.hpp"
#include "support/program/checks.hpp"
#include "support/program/device.hpp"
#include "support/program/end.hpp"
#include "support/program/host_view.hpp"
#include "support/program/launch.hpp"
#include "support/program/limits.hpp"
#include "support/program/model.hpp"
#include "support/program/runner.hpp"
#include "support/program/view.hpp"

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
        limits_(Device(device_.backend()).capabilities(), program.manager),
        checks_(device_, program.manager, calls_, limits_),
        launcher_(device_, addresses_),
        host_views_(program, calls_, result_) {}

  RunResult run() {
    begin();
    while (step()) {
    }
    return end();
  }

  // ---- the same in parts

  void begin() {
    kernels_.reserve(program_.actions.size());
    result_.outcomes.reserve(program_.actions.size() + slot_count);
    std::string text;
    if (attempt([&] { start(); }, text) != accepted) calls_.fail("the manager could not be made: " + text);
  }
  /// The next action. False if there is none, or something does not hold.
  bool step() {
    if (next_ == program_.actions.size() || !ok()) return false;
    const std::size_t position = next_++;
    calls_.go_to(position);
    act(program_.actions[position]);
    result_.outcomes.push_back(calls_.last());
    checks_.after_action(*manager_);
    look_for_trace();
    check_device();
    return true;
  }
  /// Of the next action.
  [[nodiscard]] std::size_t position() const { return next_; }
  RunResult end() {
    if (ok()) read_all();
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
    if (settings_.keep_trace) options.observe = program_.actions.size() + 1;
    scheduler_ = Scheduler(options);
    for (const SavedPlan& saved : settings_.loaded) {
      std::istringstream in(saved.text);
      try {
        scheduler_.load_plan(saved.iteration, in);
      } catch (const PlanRefused&) {
        ++result_.refused;
        ++result_.loads_refused;
      }
    }
    backend_.emplace(device_.backend());
    Options memory = program_.manager;
    if (program_.file) memory.file = std::make_shared<MemoryFile>(program_.file->capacity, program_.file->alignment);
    if constexpr (requires { D::neighbour(program_.neighbours.front()); }) {
      for (const NeighbourSetup& setup : program_.neighbours) use(D::neighbour(setup), memory);
    }
    if constexpr (requires { D::encodes; }) {
      memory.codec_staging = program_.codec_staging;
      memory.device_budget += program_.codec_staging;
    }
    manager_.emplace(*backend_, memory, scheduler_);
    staging_ = manager_->report().codec_staging;
    checks_.after_start(staging_);
  }

  // What copies pass through counts as the host's, and programs that limit the host have no room for it.
  static void use(std::shared_ptr<Neighbour> neighbour, Options& memory) {
    const bool limited = memory.host_budget != Options().host_budget;
    if (neighbour->staging().value == 0 || !limited) memory.neighbours.push_back(std::move(neighbour));
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
        host_views_.exchange(action.slot, action.other);
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
      case ActionKind::outlived: return use_outlived(action);
      case ActionKind::open_view:
        return host_views_.open(action, models_[action.slot],
                                [&](const SliceRange& range) { return view_of(action.slot, range, action.view); });
      case ActionKind::close_view: return host_views_.close(action.slot, models_[action.slot]);
      case ActionKind::look: return host_views_.look(action, models_[action.slot]);
      case ActionKind::poke: return host_views_.poke(action, models_[action.slot]);
      case ActionKind::write_back: return host_views_.write_back(action.slot);
    }
  }

  void make(const Action& action) {
    destroy(action.slot);
    ModelTensor model = made_tensor(action, ++last_id_, limits_.alignment);
    model.local = iteration_.has_value();
    const bool made = calls_.check({}, [&] {
      tensors_[action.slot].emplace(
          manager_->template tensor<std::byte>({action.bytes}, name_of(model), action.lifetime));
    });
    if (made) models_[action.slot] = model;
  }

  void destroy(std::size_t slot) {
    if (tensors_[slot]) outlived_[slot].emplace(tensors_[slot]->view());
    tensors_[slot].reset();
    host_views_.outlives(slot, models_[slot]);
    models_[slot] = {};
  }

  /// Whoever has the storage by now: nothing may reach it.
  void use_outlived(const Action& action) {
    auto& view = outlived_[action.slot];
    if (!view) return;
    bytes_.assign(view->size(), std::byte{0x77});
    const bool done = calls_.check({misused, accepted}, [&] {
      switch (static_cast<OutlivedUse>(action.other)) {
        case OutlivedUse::upload: return view->upload(bytes_);
        case OutlivedUse::download: return view->download(std::span<std::byte>(bytes_));
        case OutlivedUse::promise: return (void)view->download_async(std::span<std::byte>(bytes_));
        case OutlivedUse::operation: return manager_->run("outlived", updates(*view), [](auto& /*op*/) {});
      }
    });
    if (!done) ++result_.outlived_refused;
  }

  void begin_iteration(const Action& action) {
    const bool inside = iteration_.has_value();
    const bool begun = calls_.check({inside ? misused : accepted, accepted}, [&] {
      Iteration<Device> next = manager_->iteration(iteration_name(action.name));
      iteration_.emplace(std::move(next));
    });
    if (!begun) return;
    name_ = iteration_name(action.name);
    too_large_in_this_ = 0;
    packed_by_plan_in_this_ = 0;
    plans_before_ = plans_followed_or_left();
    followed_before_ = manager_->report().iterations_followed;
    addresses_.begin_iteration();
  }

  void end_iteration() {
    if (!iteration_) return;
    iteration_.reset();
    for (ModelTensor& tensor : models_) {
      if (tensor.transient && tensor.value == ModelTensor::Value::there) tensor.value = ModelTensor::Value::faded;
      tensor.local = false;
    }
    if (manager_->report().iterations_followed != followed_before_) result_.too_large_followed += too_large_in_this_;
    if (packed_by_plan_in_this_ != 0 && plans_followed_or_left() == plans_before_) {
      calls_.fail("a bundle that has no places on demand was accepted without a plan");
    }
    if (program_.seed % 4 == 0) checks_.after_iteration(*manager_, addresses_, name_);
    if (!first_ended_) first_ended_ = name_;
  }

  [[nodiscard]] std::uint64_t plans_followed_or_left() {
    const Report report = manager_->report();
    return report.iterations_followed + report.divergences;
  }

  View<std::byte, Device> view_of(std::size_t slot, const SliceRange& range, ViewForm form) const {
    return view_by(models_[slot].layout.path(range, form), *tensors_[slot]);
  }

  void operate(const Action& action) {
    Expected expected;
    kernels_.emplace_back();
    Kernel& kernel = kernels_.back();
    kernel.number = calls_.position();
    kernel.failure = &kernel_failure_;
    kernel.finished = &kernels_finished_;
    std::vector<Bytes> sizes;
    bool twice = false;
    for (std::size_t i = 0; i < action.part_count; ++i) {
      const Part& part = action.parts[i];
      const ModelTensor& tensor = models_[part.slot];
      if (!tensor.exists) return;
      for (std::size_t j = 0; j < i; ++j) twice = twice || action.parts[j].slot == part.slot;
      const SliceRange range = tensor.range(part);
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
    const bool fits = limits_.fit(sizes);
    const bool packs = fits && limits_.pack(sizes);
    if (!packs)
      expected = fits && iteration_ ? Expected{accepted, expected.must | expected.may | too_large}
                                    : Expected{too_large, accepted};
    if (twice) expected = {misused, accepted};
    const bool done = call(expected, sizes, [&] {
      Views views;
      for (std::size_t i = 0; i < action.part_count; ++i) {
        views[i].emplace(view_of(action.parts[i].slot, kernel.parts[i].range, action.parts[i].view));
      }
      const bool replayable = action.form.replayable && may_be_replayed(program_, calls_.position());
      launcher_.run(*manager_, action, kernel, views, replayable);
    });
    if (done) ++kernels_launched_;
    if (done && !packs) ++packed_by_plan_in_this_;
    for (std::size_t i = 0; i < action.part_count; ++i) {
      ModelTensor& tensor = models_[action.parts[i].slot];
      if (!done) calls_.note_drop(tensor);
      if (action.parts[i].access == Access::read) continue;
      if (done) tensor.write(kernel.parts[i].range);
      host_views_.replaced(action.parts[i].slot, done);
    }
  }

  /// An operation that needs these sizes. Where it can never fit, the device must not notice.
  template <class Call>
  bool call(const Expected& expected, const std::vector<Bytes>& sizes, Call&& operation) {
    const bool copies = host_views_.may_copy_beside(program_.actions[calls_.position()]);
    if (expected.must != too_large || copies) return calls_.check(expected, operation);
    const std::size_t finished = kernels_finished_;
    const auto before = progress();
    if (calls_.check(expected, operation)) return true;
    if (calls_.last() != too_large) return false;  // an earlier call's error came first
    if (progress() != before) calls_.fail("what can never fit is refused after something was queued or waited for");
    // On a real device other work goes on by itself.
    if constexpr (requires { device_.progress(); }) {
      if (kernels_finished_ != finished) calls_.fail("what can never fit is refused after other work went on");
    }
    checks_.check_too_large(operation_name(program_.actions[calls_.position()].name), sizes);
    ++result_.too_large;
    if (iteration_) ++result_.too_large_inside, ++too_large_in_this_;
    if (finished != kernels_launched_) ++result_.too_large_in_flight;
    return false;
  }

  [[nodiscard]] auto progress() const {
    if constexpr (requires { device_.progress(); }) {
      return device_.progress();
    } else {
      return 0;
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
    if (calls_.check(expected, [&] { view_of(action.slot, range, action.view).upload(bytes_); })) {
      tensor.write(range);
    } else {
      calls_.note_drop(tensor);
    }
    host_views_.replaced(action.slot, whole && calls_.last() == accepted);
    std::fill(bytes_.begin(), bytes_.end(), std::byte{0x77});  // the library has its own copy
  }

  void download(const Action& action) {
    ModelTensor& tensor = models_[action.slot];
    if (!tensor.exists) return;
    const SliceRange range = tensor.layout.range(action.first, action.slices);
    bytes_.assign(tensor.layout.size(range), std::byte{0x77});
    const bool done = calls_.check(calls_.expected_of_read(tensor), [&] {
      view_of(action.slot, range, action.view).download(std::span<std::byte>(bytes_));
    });
    if (done) {
      calls_.check_bytes(bytes_, tensor.layout, range, tensor.versions);
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
      const auto view = view_of(action.slot, promise.range, action.view);
      promise.pending.emplace(view.download_async(std::span<std::byte>(promise.bytes)));
    });
    if (!done) calls_.note_drop(tensor);
  }

  void collect(Promise& promise) {
    if (!promise.pending) return;
    if (!calls_.check({}, [&] { promise.pending->wait(); })) return;
    calls_.check_bytes(promise.bytes, promise.layout, promise.range, promise.versions);
    promise.pending.reset();
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
    if (!iteration_) checks_.budget_asked(budget);
    const Expected expected{iteration_ ? misused : accepted, up ? out_of_memory : accepted};
    if (calls_.check(expected, [&] { manager_->set_budget(bytes + staging_); })) {
      limits_ = ProgramLimits(Device(*backend_).capabilities(), now);
      ++result_.budget_changes;
    }
  }

  // ---- the end

  // Behind the last action; a plan may have dropped what no iteration reads there.
  void read_all() {
    calls_.go_to(program_.actions.size());
    if (!program_.reads_all) return;
    calls_.allow_drops();
    Action action;
    action.kind = ActionKind::download;
    for (action.slot = 0; action.slot < slot_count && ok(); ++action.slot) {
      calls_.go_to(program_.actions.size());
      download(action);
      result_.outcomes.push_back(calls_.last());
    }
  }

  /// The scheduler knows an iteration once the next one begins.
  void look_for_trace() {
    if (!settings_.keep_trace || result_.first_trace || !first_ended_) return;
    result_.first_trace = scheduler_.trace(*first_ended_);
  }

  void finish() {
    if (!manager_) return;
    if (settings_.keep_trace && !result_.first_trace && !iteration_) {
      (void)calls_.check({}, [&] { (void)manager_->iteration("behind the program"); });
      look_for_trace();
    }
    const Report report = manager_->report();
    if (ok()) checks_.check_report(report);
    result_.operations = report.operations;
    result_.iterations_on_demand = report.iterations_on_demand;
    result_.iterations_followed = report.iterations_followed;
    result_.divergences = report.divergences;
    result_.plan_starts = report.plan_starts;
    result_.swaps = report.swap_ins + report.swap_outs;
    result_.notes = report.notes;
    result_.sampled_rounds = report.sampled_rounds;
    result_.file_bytes = report.file_read.value + report.file_written.value;
    result_.neighbour_bytes = report.neighbours_read.value + report.neighbours_written.value;
    result_.encoded_bytes = report.encoded_in.value + report.encoded_out.value;
    result_.plans_remade = report.plans_remade;
    result_.turns_taken = report.turns_taken;
    result_.turns_missed = report.turns_missed;
    for (const PlanSummary& plan : report.plans) {
      result_.planners.push_back(plan.planner);
      result_.tells_file = result_.tells_file || plan.tells_file;
      result_.replays = result_.replays || plan.replays != 0;
      result_.plans_encodings = result_.plans_encodings || plan.encoded != 0;
      result_.tells_neighbours = result_.tells_neighbours || plan.tells_neighbours;
    }
    if (!settings_.save_plans) return;
    for (std::uint8_t number = 0; number < 3; ++number) {
      const std::string name(iteration_name(number));
      if (scheduler_.plan(name) == nullptr) continue;
      std::ostringstream out;
      scheduler_.save_plan(name, out);
      result_.plans.push_back({name, out.str(), scheduler_.trace(name)});
    }
  }

  /// Nothing is left of it all.
  void end_everything() {
    for (const Ending& ending : endings(program_)) {
      end(ending);
      check_device();
    }
    outlived_ = {};
    scheduler_ = Scheduler();
    if (const std::string left = device_.left_over(); !left.empty()) calls_.fail(left);
    result_.trace_hash = device_.trace_hash();
  }

  void end(const Ending& ending) {
    switch (ending.what) {
      case Ending::What::tensor:
        host_views_.outlives(ending.number, models_[ending.number]);
        return tensors_[ending.number].reset();
      case Ending::What::host_view:
        if (ending.collect) host_views_.look(look_at_all(ending.number), models_[ending.number]);
        return host_views_.end(ending.number, models_[ending.number]);
      case Ending::What::promise:
        if (ending.collect) collect(promises_[ending.number]);
        return promises_[ending.number].pending.reset();
      case Ending::What::iteration: return iteration_.reset();
      case Ending::What::backend: return backend_.reset();
      case Ending::What::manager:
        for (std::size_t slot = 0; slot < slot_count; ++slot) host_views_.outlives(slot, models_[slot]);
        return manager_.reset();
    }
  }

  const TestProgram& program_;
  const RunSettings& settings_;
  std::size_t next_ = 0;  // action
  RunResult result_;
  D device_;
  ProgramCalls calls_;
  KernelFailure kernel_failure_;
  ProgramLimits limits_;
  Bytes staging_;  // for encodings, beside the budget
  ProgramChecks<D> checks_;

  std::vector<Kernel> kernels_;  // never moves: queued work refers to them
  std::size_t kernels_launched_ = 0;
  std::atomic<std::size_t> kernels_finished_ = 0;
  std::vector<std::byte> bytes_;
  AddressHistory addresses_;
  ProgramLauncher<D> launcher_;
  std::string_view name_;  // of the last iteration
  std::optional<std::string_view> first_ended_;
  std::uint64_t too_large_in_this_ = 0;
  std::uint64_t followed_before_ = 0;
  std::uint64_t packed_by_plan_in_this_ = 0;  // operations
  std::uint64_t plans_before_ = 0;

  std::optional<Device> backend_;
  Scheduler scheduler_;
  std::array<Promise, promise_count> promises_;
  std::optional<MemoryManager<Device>> manager_;
  std::optional<Iteration<Device>> iteration_;
  std::array<std::optional<Tensor<std::byte, Device>>, slot_count> tensors_;
  std::array<std::optional<View<std::byte, Device>>, slot_count> outlived_;  // of the last tensor that ended there
  std::array<ModelTensor, slot_count> models_;
  ProgramHostViews<Device> host_views_;
  std::uint64_t last_id_ = 0;
};

/// Runs the program on a device of its own, as run_program() does.
template <ProgramDevice D>
[[nodiscard]] RunResult run_program_on(const TestProgram& program, const RunSettings& settings = {}) {
  return ProgramRun<D>(program, settings).run();
}

}  // namespace swapmm::test
