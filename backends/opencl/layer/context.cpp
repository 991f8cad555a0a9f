// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <new>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include <swapmm/base/error.hpp>
#include <swapmm/opencl/info.hpp>
#include <swapmm/opencl/session.hpp>
#include <swapmm/opencl/status.hpp>

#include "cache/plans.hpp"
#include "facts/device.hpp"
#include "memory.hpp"
#include "process/files.hpp"
#include "process/settings.hpp"
#include "profile/pictures.hpp"
#include "queue.hpp"
#include "report/progress.hpp"
#include "report/report.hpp"

namespace swapmm::opencl::layer {
namespace {

struct Contexts {
  std::shared_mutex mutex;
  std::unordered_map<cl_context, Context*> all;
};

// Never destroyed: programs release objects while the process ends.
Contexts& contexts() {
  static Contexts& all = *new Contexts;
  return all;
}

std::vector<cl_device_id> devices_of(cl_context context) {
  std::size_t bytes = 0;
  if (down.clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::vector<cl_device_id> devices(bytes / sizeof(cl_device_id));
  if (down.clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr) != CL_SUCCESS) return {};
  return devices;
}

std::string mebibytes(Bytes bytes) {
  const std::uint64_t tenths = (bytes.value * 10 + (1U << 19U)) >> 20U;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MiB (" + std::to_string(bytes.value) + ")";
}

bool is_of_host(const OutOfMemory& error) { return std::string_view(error.memory) == "host"; }

}  // namespace

// ---- host memory

const std::shared_ptr<runtime::HostLedger>& host_memory() {
  static const auto& ledger =
      *new std::shared_ptr<runtime::HostLedger>(std::make_shared<runtime::HostLedger>(settings().host_budget));
  return ledger;
}

std::uint64_t next_moment() {
  static std::atomic<std::uint64_t> moment{0};
  return ++moment;
}

// ---- all contexts

Context* Context::of(cl_context handle) {
  if (handle == nullptr) return nullptr;
  {
    const std::shared_lock lock(contexts().mutex);
    const auto found = contexts().all.find(handle);
    if (found != contexts().all.end()) return found->second;
  }
  const std::unique_lock lock(contexts().mutex);
  Context*& made = contexts().all[handle];
  if (made == nullptr) {
    auto* const context = new Context(handle);
    if (context->devices_.empty()) {
      contexts().all.erase(handle);
      delete context;
      return nullptr;
    }
    made = context;
  }
  return made;
}

namespace {

SchedulerOptions planning(std::function<std::string()> device) {
  SchedulerOptions options;
  // A program that does not know of plans must not be kept waiting for them.
  options.planning_time = std::chrono::milliseconds{1000};
  options.planning_share = 0.25;
  // Rounds of a program that waits for itself, or is held back, take as long as the program; they say nothing of plans.
  options.trial_iterations = 0;
  // What is found as an iteration may be a part of the program's own, which takes other buffers in the next one.
  options.max_period = 32;
  options.sample_every = 0;
  if (settings().speculates) options.drops = DropRule::observed;
  if (!settings().plans || settings().evict_always) options.observe = 0;
  options.plan_store = plans_in_cache(std::move(device));
  return options;
}

}  // namespace

Context::Context(cl_context handle)
    : handle_(handle),
      scheduler_(planning([this] { return facts::device_facts(device_id_).name; })),
      iterations_(settings().waits_for_values) {
  for (const cl_device_id device : devices_of(handle)) {
    DeviceBudget* const budget = DeviceBudget::of(device);
    if (budget == nullptr) {
      devices_.clear();
      return;
    }
    devices_.push_back(budget);
    device_id_ = device;
  }
  if (!managed()) return;
  try {
    const Bytes largest{opencl::detail::device_value<cl_ulong>(device_id_, CL_DEVICE_MAX_MEM_ALLOC_SIZE)};
    largest_buffer_ = device().reported({device().whole(), largest}).largest;
    alignment_ = Bytes{std::max<std::uint64_t>(
        opencl::detail::device_value<cl_uint>(device_id_, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, 1)};
  } catch (const std::exception&) {  // the driver does not answer
    devices_.clear();
  }
}

Context::~Context() {
  if (core_ == nullptr) return;
  const Lock lock(device().mutex);
  if (recording_) keep_recording(*recording_);
  count_context(device(), *core_);
  count_for_progress(device(), *core_);
  core_->close();
  part_ = Bytes{};
  device().remove(*this);
  publish(device());
}

void Context::drop() {
  std::uint32_t count = holds_.load(std::memory_order_relaxed);
  while (count > 1) {
    if (holds_.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel)) return;
  }
  {
    const std::unique_lock lock(contexts().mutex);
    if (holds_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    contexts().all.erase(handle_);
  }
  const cl_context handle = handle_;
  delete this;
  down.clReleaseContext(handle);
}

bool Context::release_for_program() {
  cl_uint count = references();
  do {
    if (count == 0) return false;
  } while (!references_.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel));
  if (count == 1) drop();
  return true;
}

// ---- the runtime

Core* Context::core() {
  if (any_released_.load(std::memory_order_relaxed)) destroy_released();
  if (core_ != nullptr || refused_) return core_.get();
  DeviceBudget& memory = device();
  const std::string& problem = settings().problem.empty() ? memory.problem() : settings().problem;
  if (!problem.empty()) {
    refused_ = true;
    say(problem + ": nothing is allocated");
    return nullptr;
  }
  Options options;
  options.host_budget = settings().host_budget;
  options.demand_mode = settings().evict_always ? DemandMode::per_operation : DemandMode::least_recently_used;
  memory.add(*this);
  memory.offer(*this);
  Bytes part = part_;
  part_made_ = next_moment();
  for (;;) {
    try {
      Backend backend(handle_, device_id_);
      // Where the device shares the host's memory, page-locked memory is no faster.
      options.pinned_budget =
          backend.capabilities().host_shares_memory ? Bytes{} : Bytes{options.host_budget.value / 4};
      options.device_budget = part;
      use_file(options);
      runtime::EntranceOptions entrance{
          .undefined_reads = true, .shared_host = host_memory(), .identify_by_producer = true};
      if (!settings().speculates) {
        learns_waits_ = true;
        entrance.certainly_dead = [this](const void* owner) { return is_dead(*static_cast<const Memory*>(owner)); };
      }
      core_ = std::make_shared<Core>(std::move(backend), options, SchedulerAccess::book(scheduler_), entrance);
      part_ = part;
      break;
    } catch (const BackendError& error) {
      part = Bytes{part.value / 8 * 7};  // others have taken memory of the device
      const bool memory_short =
          error.kind == BackendError::Kind::out_of_device_memory && part.value > memory.budget().value / 64;
      if (memory_short) continue;
      say(std::string("the device refuses memory: ") + error.what());
    } catch (const std::exception& error) {
      say(error.what());
    }
    part_ = Bytes{};
    memory.remove(*this);
    refused_ = true;
    return nullptr;
  }
  if (timed_) core_->backend().set_timing(true);
  recording_ = record_context(*core_, iterations_);
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    remark("OpenCL layer " SWAPMM_LAYER_VERSION ", budget " + mebibytes(memory.budget()) + " on " + memory.name());
  }
  return core_.get();
}

bool Context::set_part(Bytes bytes) {
  if (core_ == nullptr) {
    part_ = bytes;
    return true;
  }
  part_made_ = next_moment();
  destroy_released();
  iterations_.leave(*core_);
  if (!recording_) return change_part(bytes);
  recording_->pause();  // the runtime's budget does not change while a profile is recorded
  const bool done = change_part(bytes);
  recording_->go_on();
  return done;
}

bool Context::change_part(Bytes bytes) {
  for (int attempt = 0;; ++attempt) {
    try {
      core_->set_budget(bytes);
      part_ = bytes;
      return true;
    } catch (const WorkFailed&) {
      if (attempt < 10) continue;
    } catch (const OutOfMemory& error) {
      if (is_of_host(error) && attempt < 1 && take_host_memory(error.sizes.need)) continue;
      if (is_of_host(error)) {
        device().note_host_short();
      } else {
        device().note_refusal(error.what());
        if (attempt < 1) {  // a driver may keep what others have released until somebody waits for their queues
          device().finish_all();
          continue;
        }
      }
    } catch (const std::exception& error) {  // the caller tells the program
      device().note_refusal(error.what());
    }
    // The device may have refused the old bytes, too; then there are none.
    part_ = core_->report().device_budget;
    return false;
  }
}

bool Context::try_again(std::string_view name, int attempt, cl_int& status) {
  if (may_try_again(name, attempt, status)) return true;
  ++device().refused_commands;
  return false;
}

bool Context::may_try_again(std::string_view name, int attempt, cl_int& status) {
  constexpr int most = 12;
  try {
    throw;
  } catch (const BundleTooLarge& error) {
    largest_ = std::max(largest_, std::min(error.sizes.need, device().budget()));
    const bool asks = attempt < most && error.sizes.need > part_;
    if (asks && device().give(*this, error.sizes.need)) return true;
    if (asks && device().host_short()) {
      say_of_command("command \"" + std::string(name) + "\" needs " + mebibytes(error.sizes.need) +
                     " on the device; what must leave for it has no room on the host, whose budget is " +
                     mebibytes(host_memory()->limit()));
      status = CL_OUT_OF_HOST_MEMORY;
      return false;
    }
    say_of_command("command \"" + std::string(name) + "\" needs " + mebibytes(error.sizes.need) +
                   " at once; the budget is " + mebibytes(device().budget()) + ", of which " +
                   mebibytes(device().pinned()) + " cannot be swapped" +
                   (asks && !device().refusal().empty() ? "; the device gave no more: " + device().refusal() : ""));
    status = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  } catch (const OutOfMemory& error) {
    if (is_of_host(error) && attempt < 1 && take_host_memory(error.sizes.need)) return true;
    say_of_command("command \"" + std::string(name) + "\": " + error.what());
    status = is_of_host(error) ? CL_OUT_OF_HOST_MEMORY : CL_MEM_OBJECT_ALLOCATION_FAILURE;
  } catch (const WorkFailed& error) {
    // A failure of an earlier command, of which its event tells the program. This command was not queued.
    if (error.work != WorkFailed::Work::earlier && attempt < most) return true;
    say_of_command(error.what());
    status = CL_OUT_OF_RESOURCES;
  } catch (const BackendError& error) {
    if (attempt < 1) return true;  // it may have been an earlier command's
    say_of_command("command \"" + std::string(name) + "\": " + error.what());
    status = error.kind == BackendError::Kind::out_of_host_memory ? CL_OUT_OF_HOST_MEMORY : CL_OUT_OF_RESOURCES;
  } catch (const std::bad_alloc&) {
    status = CL_OUT_OF_HOST_MEMORY;
  } catch (const std::exception& error) {
    say_of_command("command \"" + std::string(name) + "\": " + error.what());
    status = CL_OUT_OF_RESOURCES;
  }
  return false;
}

bool Context::take_host_from_others(Bytes need) {
  bool asked = false;
  for (DeviceBudget* const other : DeviceBudget::all()) {
    // Two contexts that ask each other must not wait for each other.
    std::unique_lock<std::mutex> lock(other->mutex, std::defer_lock);
    if (other != &device() && !lock.try_lock()) continue;
    for (Context* const context : other->contexts()) {
      if (context == this || !context->has_core()) continue;
      context->give_back_host(need);
      asked = true;
    }
  }
  return asked;
}

void Context::give_back_host(Bytes wanted) {
  destroy_released();
  wait_for_kept();
  try {
    core_->give_back_host(wanted);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): of an earlier command, of which its event tells
  }
}

cl_command_queue Context::queue() {
  Core* const runtime = core();
  if (runtime == nullptr) throw std::bad_alloc();
  if (timed_) runtime->backend().set_timing(true);
  return runtime->backend().queue();
}

void Context::flush() {
  if (core_ == nullptr) return;
  for (const QueueKind kind : {QueueKind::h2d, QueueKind::d2h, QueueKind::compute}) {
    try {
      core_->backend().flush(kind);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): waits and events tell the program
    }
  }
}

void Context::time_commands() {
  timed_ = true;
  if (core_ != nullptr) core_->backend().set_timing(true);
}

bool Context::take_host_memory(Bytes need) {
  if (has_core()) give_back_host(need);
  return take_host_from_others(need) || has_core();
}

bool Context::make_tensor(const Memory& owner, Tensor& tensor) {
  Core* const runtime = core();
  if (runtime == nullptr) return false;
  for (int attempt = 0; attempt < 12; ++attempt) {
    try {
      auto& record = runtime->create("buffer", Bytes{owner.facts().size}, persistent);
      record.owner = &owner;
      tensor = {&record, record.tensor.serial};
      return true;
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): of an earlier command
    }
  }
  return false;
}

void Context::destroy_tensor(const Tensor& tensor) {
  const std::lock_guard lock(released_mutex_);
  released_.push_back(tensor);
  any_released_.store(true, std::memory_order_relaxed);
}

void Context::destroy_released() {
  std::vector<Tensor> released;
  {
    const std::lock_guard lock(released_mutex_);
    released.swap(released_);
    any_released_.store(false, std::memory_order_relaxed);
  }
  for (const Tensor& tensor : released) core_->destroy(*tensor.record);
}

// ---- commands

cl_int Context::write_initial(const Bundle& bundle) {
  for (const Bundle::Part& part : bundle.parts()) {
    if (!part.root->has_initial()) continue;
    std::shared_ptr<MapArea> area;
    const std::byte* const bytes = part.root->take_initial(area);
    if (part.access == Access::write) continue;
    const std::size_t size = part.root->facts().size;
    Bundle whole;
    whole.add(*part.root, Access::write);
    cl_event written = nullptr;
    const cl_int status =
        operate({"initial bytes"}, whole, &written, [&](Running& operation, const WaitList& waits, cl_event* event) {
          const InAllocation place = place_of(*part.root, operation);
          return down.clEnqueueWriteBuffer(operation.backend().queue(), place.allocation, CL_FALSE, place.offset, size,
                                           bytes, waits.size(), waits.data(), event);
        });
    if (status != CL_SUCCESS) return status;
    down.clReleaseEvent(written);
    if (area != nullptr) keep_until_done(std::move(area));
  }
  return CL_SUCCESS;
}

bool Context::resolve(const Bundle& bundle, bool may_change_nothing, std::vector<Item>& items) {
  items.clear();
  Bytes need;
  for (const Bundle::Part& part : bundle.parts()) {
    Tensor tensor;
    if (!part.root->tensor(tensor)) return false;
    // Bytes that nobody wrote may be anything: whatever the first command finds there is their value from then on.
    const auto& record = *tensor.record;
    const bool undefined = !record.has_value() && record.value.missing_reason == runtime::MissingReason::never_written;
    Access access = may_change_nothing && part.access == Access::write ? Access::update : part.access;
    if (undefined) access = Access::write;
    items.push_back({tensor.record, access, tensor.serial});
    need += round_up(record.bytes, alignment_);
  }
  if (need > largest_) {
    largest_ = need;
    device().note_command(need);
  }
  return true;
}

// Iterations matter once something has left the device.
std::uint64_t Context::begin_command(Core& runtime, const Command& command, const Bundle& bundle) {
  if (!swaps_) swaps_ = scheduler_.options().observe != 0 && runtime.swapped() > Bytes{};
  if (!swaps_) return 0;
  const std::uint64_t token = token_of(command, bundle.parts());
  iterations_.before(runtime, token, command.host);
  return token;
}

void Context::end_command(Core& runtime, std::uint64_t token, bool failed) {
  iteration_command_ended(runtime, token, failed);
  if (recording_) recording_->command_done();
  publish(device());
  show_progress(device());
}

void Context::note_outcome(std::uint64_t token, bool failed) {
  constexpr std::size_t most = 1024;
  if (failed && failing_.size() < most) {
    failing_[token] = true;
  } else if (const auto known = failing_.find(token); known != failing_.end()) {
    known->second = failed;
  }
}

void Context::iteration_command_ended(Core& runtime, std::uint64_t token, bool failed) {
  if (!swaps_) return;
  note_outcome(token, failed);
  iterations_.after(runtime);
  follows_plan_ = !settings().speculates && runtime.follows_plan();  // nothing need be proven then
}

// Asked while a command is being given to the driver: whether a buffer's value is dead behind it.
bool Context::is_dead(const Memory& root) const {
  if (!held.empty()) return false;
  return root.coming.empty() ? root.unreachable() : root.coming.next_overwrites();
}

}  // namespace swapmm::opencl::layer
