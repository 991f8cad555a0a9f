// SPDX-License-Identifier: Apache-2.0
#include "program_runner.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <sstream>

#include <swapmm/backend/simulated.hpp>
#include <swapmm/error.hpp>
#include <swapmm/memory_manager.hpp>

#include "program_kernel.hpp"
#include "program_model.hpp"
#include "refusal.hpp"

namespace swapmm::test {
namespace {

using Device = simulated::Backend;
using Manager = MemoryManager<Device>;

class ProgramRun {
 public:
  ProgramRun(const TestProgram& program, const RunSettings& settings)
      : program_(program), settings_(settings), random_(program.seed ^ 0xEDDF'0000U), probe_(program.device) {}

  RunResult run() {
    kernels_.reserve(program_.actions.size());
    steady_ = program_.steady;
    limited_ = program_.device.host_bytes.has_value() ||
               program_.manager.host_budget.value != std::numeric_limits<std::uint64_t>::max();
    if (attempt([&] { start(); }, text_) == accepted) {
      for (position_ = 0; position_ < program_.actions.size() && ok(); ++position_) {
        act(program_.actions[position_]);
        check_device();
      }
    } else {
      fail("the manager could not be made: " + text_);
    }
    finish();
    end_everything();
    return std::move(result_);
  }

 private:
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
    backend_.emplace(probe_);
    manager_.emplace(*backend_, program_.manager, scheduler_);
  }

  // ---- what went wrong

  [[nodiscard]] bool ok() const { return result_.failure.empty() && kernel_failure_.empty(); }
  void fail(const std::string& text) {
    if (!result_.failure.empty()) return;
    std::ostringstream out;
    out << text;
    if (position_ < program_.actions.size()) {
      out << " (action " << position_ << ": " << program_.actions[position_] << ")";
    }
    result_.failure = out.str();
  }

  void check_device() {
    if (probe_.violation_count() != 0 && ok()) fail("the device's checker: " + probe_.violations().front());
    if (!kernel_failure_.empty() && result_.failure.empty()) fail(kernel_failure_);
  }

  /// True where the call was accepted.
  template <class Call>
  bool check_call(Expected expected, Call&& call) {
    const Refusal refusal = attempt(std::forward<Call>(call), text_);
    last_ = refusal;
    if (refusal == accepted) {
      if (expected.must != accepted) fail("a call that must be refused was accepted");
      return expected.must == accepted;
    }
    if (refusal == dropped_value) ++result_.dropped;
    if (refusal == out_of_memory) steady_ = false;
    ++result_.refused;
    unsigned allowed = expected.must | expected.may;
    if (limited_) allowed |= out_of_memory;
    if ((allowed & refusal) == 0) fail("unexpected: " + text_);
    return false;
  }

  // ---- the model

  /// What a read of that tensor may meet.
  [[nodiscard]] Expected expected_of_read(const ModelTensor& tensor) const {
    switch (tensor.value) {
      case ModelTensor::Value::none: return {undefined_value, accepted};
      case ModelTensor::Value::dropped: return {undefined_value | dropped_value, accepted};
      case ModelTensor::Value::faded: return {accepted, undefined_value | dropped_value};
      case ModelTensor::Value::there: break;
    }
    const bool may_be_dropped = !steady_ && !tensor.kept && (tensor.drops == 0 || tensor.local);
    return {accepted, may_be_dropped ? dropped_value : accepted};
  }

  /// The library says which tensor's value it dropped.
  void note_drop(ModelTensor& tensor) {
    if (last_ != dropped_value || text_.find('"' + name_of(tensor) + '"') == std::string::npos) return;
    if (tensor.value == ModelTensor::Value::there) ++tensor.drops;
    tensor.value = ModelTensor::Value::dropped;
  }

  static std::string name_of(const ModelTensor& tensor) { return "t" + std::to_string(tensor.layout.id); }

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
      case ActionKind::synchronize: (void)check_call({}, [&] { manager_->synchronize(); }); return;
      case ActionKind::plan: return plan();
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
    const auto unit = action.uneven ? 1U : static_cast<std::uint32_t>(program_.device.alignment.value);
    model.layout = {++last_id_, action.bytes, action.slices, unit};
    if (action.bytes < action.slices * unit) model.layout.slices = 1;
    const bool made = check_call({}, [&] {
      tensors_[action.slot].emplace(manager_->tensor<std::byte>({action.bytes}, name_of(model), action.lifetime));
    });
    if (made) models_[action.slot] = model;
  }

  void destroy(std::size_t slot) {
    tensors_[slot].reset();
    models_[slot] = {};
  }

  void begin_iteration(const Action& action) {
    const bool inside = iteration_.has_value();
    const bool begun = check_call({inside ? misused : accepted, accepted}, [&] {
      Iteration<Device> next = manager_->iteration(iteration_name(action.name));
      iteration_.emplace(std::move(next));
    });
    if (!begun) return;
    iteration_number_ = action.name;
    addresses_.emplace_back();
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
    std::uint64_t need = padded(action.bytes);
    kernels_.emplace_back();
    Kernel& kernel = kernels_.back();
    kernel.number = position_;
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
      need += padded(tensor.layout.bytes);
      sizes.push_back(Bytes{tensor.layout.bytes});
      if (part.access == Access::write && tensor.layout.whole(range)) continue;
      const Expected read = expected_of_read(tensor);
      expected.must |= read.must;
      expected.may |= read.may;
    }
    kernel.part_count = action.part_count;
    kernel.scratch_bytes = action.bytes;
    if (action.bytes != 0) sizes.push_back(Bytes{action.bytes});
    if (need > budget() || !packs(sizes)) expected = {too_large, accepted};
    if (twice) expected = {misused, accepted};
    const bool done = check_call(expected, [&] { launch(action, kernel); });
    for (std::size_t i = 0; i < action.part_count; ++i) {
      ModelTensor& tensor = models_[action.parts[i].slot];
      if (!done) note_drop(tensor);
      if (done && action.parts[i].access != Access::read) tensor.write(kernel.parts[i].range);
    }
  }

  [[nodiscard]] std::uint64_t budget() const {
    return round_down(program_.manager.device_budget, program_.device.alignment).value;
  }
  [[nodiscard]] std::uint64_t padded(std::uint64_t bytes) const {
    return round_up(Bytes{bytes}, program_.device.alignment).value;
  }
  [[nodiscard]] bool packs(std::vector<Bytes>& sizes) const {
    const auto& limit = program_.device.max_allocation;
    if (!limit || limit->value >= budget()) return true;
    const Bytes arena = round_down(*limit, program_.device.alignment);
    return runtime::PlaceMap(Bytes{budget()}, arena, program_.device.alignment).would_pack(sizes);
  }

  void launch(const Action& action, Kernel& kernel) {
    std::array<std::optional<View<std::byte, Device>>, most_parts> views;
    for (std::size_t i = 0; i < action.part_count; ++i) {
      views[i].emplace(view_of(action.parts[i].slot, kernel.parts[i].range));
    }
    const std::string name = operation_name(action.name);
    const auto prepare = [&](auto& op) {
      kernel.touch_count = 0;
      for (std::size_t i = 0; i < action.part_count; ++i) {
        const simulated::View<std::byte> place = op[*views[i]];
        kernel.parts[i].data = place.data();
        kernel.touches[kernel.touch_count++] =
            kernel.parts[i].access == Access::read ? simulated::Touch::read(place) : simulated::Touch::write(place);
        addresses_.back().push_back(place.data() - kernel.parts[i].layout.begin(kernel.parts[i].range.first));
      }
      if (kernel.scratch_bytes != 0) {
        const simulated::View<std::byte> place = op.scratch();
        kernel.scratch = place.data();
        kernel.touches[kernel.touch_count++] = simulated::Touch::write(place);
        addresses_.back().push_back(place.data());
      }
    };
    const auto in_order = [&](auto& op) {
      prepare(op);
      launch_kernel(op.queue(), name, kernel, action.form);
    };
    const auto with_waits = [&](auto& op, const simulated::WaitList& waits) {
      prepare(op);
      return launch_kernel(op.queue(), name, kernel, action.form, waits);
    };
    if (action.form.by_bundle || action.part_count == 0 || action.part_count > 3) {
      bundle_.clear();
      for (std::size_t i = 0; i < action.part_count; ++i) {
        switch (action.parts[i].access) {
          case Access::read: bundle_.reads(*views[i]); break;
          case Access::write: bundle_.writes(*views[i]); break;
          case Access::update: bundle_.updates(*views[i]); break;
        }
      }
      bundle_.scratch(Bytes{action.bytes});
      action.form.gives_event ? manager_->run(name, bundle_, with_waits) : manager_->run(name, bundle_, in_order);
    } else if (action.form.gives_event) {
      run_accesses(action, name, views, with_waits);
    } else {
      run_accesses(action, name, views, in_order);
    }
  }

  template <class Views, class Callable>
  void run_accesses(const Action& action, const std::string& name, const Views& views, Callable& callable) {
    const auto access = [&](std::size_t i) {
      switch (action.parts[i].access) {
        case Access::write: return writes(*views[i]);
        case Access::update: return updates(*views[i]);
        case Access::read: break;
      }
      return reads(*views[i]);
    };
    const Scratch work = scratch(std::size_t{action.bytes});
    switch (action.part_count) {
      case 1: return manager_->run(name, access(0), work, callable);
      case 2: return manager_->run(name, access(0), access(1), work, callable);
      default: return manager_->run(name, access(0), access(1), work, access(2), callable);
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
    const bool done =
        check_call(whole ? Expected{} : expected_of_read(tensor), [&] { view_of(action.slot, range).upload(bytes_); });
    if (done) {
      tensor.write(range);
    } else {
      note_drop(tensor);
    }
    std::fill(bytes_.begin(), bytes_.end(), std::byte{0x77});  // the library has its own copy
  }

  void download(const Action& action) {
    ModelTensor& tensor = models_[action.slot];
    if (!tensor.exists) return;
    const SliceRange range = tensor.layout.range(action.first, action.slices);
    bytes_.assign(tensor.layout.size(range), std::byte{0x77});
    const bool done = check_call(expected_of_read(tensor),
                                 [&] { view_of(action.slot, range).download(std::span<std::byte>(bytes_)); });
    if (done) {
      check_bytes(bytes_, tensor.layout, range, tensor.versions);
    } else {
      note_drop(tensor);
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
    const bool done = check_call(expected_of_read(tensor), [&] {
      promise.pending.emplace(view_of(action.slot, promise.range).download_async(std::span<std::byte>(promise.bytes)));
    });
    if (!done) note_drop(tensor);
  }

  void collect(Promise& promise) {
    if (!promise.pending) return;
    if (!check_call({}, [&] { promise.pending->wait(); })) return;
    check_bytes(promise.bytes, promise.layout, promise.range, promise.versions);
    promise.pending.reset();
  }

  void check_bytes(const std::vector<std::byte>& bytes, const SlicedBytes& layout, const SliceRange& range,
                   const SliceVersions& versions) {
    for (const std::byte byte : bytes) {
      result_.downloads = (result_.downloads ^ static_cast<std::uint64_t>(byte)) * 0x100000001B3U;
    }
    const simulated::Finding finding = layout.check(bytes.data(), range, versions);
    if (finding.found != simulated::Found::exact) fail("the host reads " + text_of(layout, finding));
  }

  void plan() {
    const auto run_job = [&] {
      if (auto job = scheduler_.planning_job()) job->run();
    };
    (void)check_call({}, run_job);
  }

  // ---- what holds after iterations, and in the end

  void check_report(const Report& report) {
    if (report.device_used.value > budget() || report.device_peak.value > budget())
      fail("the device budget is exceeded");
    if (report.host_peak > program_.manager.host_budget) fail("the host budget is exceeded");
    if (report.pinned_used > program_.manager.pinned_budget) fail("the pinned budget is exceeded");
    const simulated::Counters& counters = probe_.counters();
    if (counters.peak_device_bytes.value > budget()) fail("the device holds more than the budget");
    if (counters.peak_host_bytes > program_.manager.host_budget) fail("the host holds more than its budget");
    if (counters.pinned_bytes > program_.manager.pinned_budget) fail("the host holds more than its pinned budget");
    if (counters.host_bytes > report.host_used) fail("the host holds more than the report says");
  }

  /// A followed plan is address-stable: each operation sees the addresses of the same place in the cycle before.
  void check_iteration() {
    const Report report = manager_->report();
    check_report(report);
    const bool followed = report.iterations_followed > last_report_.iterations_followed;
    if (!followed || report.plan_starts != last_report_.plan_starts) stable_from_ = addresses_.size() - 1;
    if (followed) {
      const auto plan = std::find_if(report.plans.begin(), report.plans.end(), [&](const PlanSummary& summary) {
        return summary.iteration == iteration_name(iteration_number_);
      });
      const std::size_t period = plan == report.plans.end() ? 1 : plan->iterations_per_cycle;
      const std::size_t current = addresses_.size() - 1;
      if (current >= stable_from_ + period && addresses_[current] != addresses_[current - period]) {
        fail("a followed plan gives an operation other addresses than before");
      }
    }
    last_report_ = report;
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
      check_device();
    }
    scheduler_ = Scheduler();
    const simulated::Counters& counters = probe_.counters();
    if (counters.device_memories.live + counters.host_memories.live + counters.addresses.live + counters.events.live +
            counters.device_bytes.value + counters.host_bytes.value !=
        0) {
      fail("something is left on the device or the host");
    }
    result_.trace_hash = probe_.trace_hash();
  }

  const TestProgram& program_;
  const RunSettings& settings_;
  RunResult result_;
  Refusal last_ = accepted;
  std::string text_;  // of the last refusal
  std::string kernel_failure_;
  std::size_t position_ = 0;
  bool limited_ = false;
  bool steady_ = false;  // so far
  simulated::Random random_;

  std::vector<Kernel> kernels_;  // never moves: queued work refers to them
  std::vector<std::byte> bytes_;
  std::vector<std::vector<const std::byte*>> addresses_{1};  // of tensors and work areas, per iteration
  std::size_t stable_from_ = 0;
  Report last_report_;
  std::uint8_t iteration_number_ = 0;

  Device probe_;
  std::optional<Device> backend_;
  Scheduler scheduler_;
  std::array<Promise, promise_count> promises_;
  std::optional<Manager> manager_;
  std::optional<Iteration<Device>> iteration_;
  std::array<std::optional<Tensor<std::byte, Device>>, slot_count> tensors_;
  std::array<ModelTensor, slot_count> models_;
  Bundle<Device> bundle_;
  std::uint64_t last_id_ = 0;
};

}  // namespace

RunResult run_program(const TestProgram& program, const RunSettings& settings) {
  return ProgramRun(program, settings).run();
}

}  // namespace swapmm::test
