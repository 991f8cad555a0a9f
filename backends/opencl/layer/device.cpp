// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include <swapmm/opencl/info.hpp>

#include "context.hpp"
#include "process/settings.hpp"
#include "report/report.hpp"

namespace swapmm::opencl::layer {
namespace {

struct Devices {
  std::mutex mutex;
  std::map<cl_device_id, DeviceBudget*> all;
};

Devices& devices() {
  static Devices& all = *new Devices;
  return all;
}

// The device that a part of a device is made of.
cl_device_id root_of(cl_device_id device) {
  for (;;) {
    cl_device_id parent = nullptr;
    const cl_int status = down.clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, nullptr);
    if (status != CL_SUCCESS || parent == nullptr) return device;
    device = parent;
  }
}

}  // namespace

DeviceBudget* DeviceBudget::of(cl_device_id device) {
  const std::lock_guard lock(devices().mutex);
  DeviceBudget*& known = devices().all[device];
  if (known == nullptr) {
    const cl_device_id root = root_of(device);
    DeviceBudget*& whole = devices().all[root];
    try {
      if (whole == nullptr) whole = new DeviceBudget(root);
    } catch (const std::exception&) {
      return nullptr;
    }
    devices().all[device] = whole;
    return whole;
  }
  return known;
}

DeviceBudget::DeviceBudget(cl_device_id device)
    : device_(device),
      name_(opencl::detail::device_text(device, CL_DEVICE_NAME)),
      whole_{opencl::detail::device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE)},
      budget_(budget_for(whole_, problem_)) {}

DeviceBudget::Reported DeviceBudget::reported(const Reported& own) const {
  Bytes memory = own.memory;
  if (problem_.empty()) {
    if (settings().reported == ReportedMemory::budget) memory = budget_;
    if (settings().reported == ReportedMemory::both) memory = budget_ + settings().host_budget;
  }
  return {memory, std::min(own.largest, memory)};
}

Bytes DeviceBudget::managed() const {
  Bytes sum;
  for (const Context* const context : contexts_) sum += context->part();
  return sum;
}

Bytes DeviceBudget::unused() const {
  const Bytes taken = managed() + pinned();
  return taken < budget_ ? budget_ - taken : Bytes{};
}

void DeviceBudget::note_peak() {
  Bytes wanted = pinned();
  for (const Context* const context : contexts_) wanted += Bytes{context->live.load(std::memory_order_relaxed)};
  wanted_peak_ = std::max(wanted_peak_, wanted);
  pinned_peak_ = std::max(pinned_peak_, pinned());
  publish(*this);
}

void DeviceBudget::count_passed(PassedThrough kind, Bytes size) {
  const auto at = static_cast<std::size_t>(kind);
  passed_objects.at(at).fetch_add(1, std::memory_order_relaxed);
  passed_bytes.at(at).fetch_add(size.value, std::memory_order_relaxed);
}

void DeviceBudget::note_passed(PassedThrough kind, Bytes size) {
  count_passed(kind, size);
  if (!reports()) return;
  const std::lock_guard lock(mutex);
  publish(*this);
}

std::vector<DeviceBudget*> DeviceBudget::all() {
  const std::lock_guard lock(devices().mutex);
  std::vector<DeviceBudget*> found;
  for (const auto& [handle, device] : devices().all) {
    if (std::find(found.begin(), found.end(), device) == found.end()) found.push_back(device);
  }
  return found;
}

void DeviceBudget::remove(Context& context) { std::erase(contexts_, &context); }

// First down to what their largest command needed, then all that is needed. Those that have most give first.
bool DeviceBudget::take_from_others(const Context* asking, Bytes need) {
  for (const bool all : {false, true}) {
    std::vector<Context*> others;
    for (Context* const context : contexts_) {
      if (context != asking) others.push_back(context);
    }
    std::stable_sort(others.begin(), others.end(),
                     [](const Context* a, const Context* b) { return a->part() > b->part(); });
    for (Context* const other : others) {
      if (unused() >= need) return true;
      const Bytes floor = all ? Bytes{} : std::min(other->part(), other->largest());
      const Bytes missing = need - unused();
      const Bytes gives = std::min(other->part() - floor, round_up(missing, other->alignment()));
      if (gives.value == 0) continue;
      if (!other->set_part(round_down(other->part() - gives, other->alignment()))) return false;
    }
  }
  return unused() >= need;
}

Bytes DeviceBudget::idle(const Context* asking) const {
  Bytes sum;
  for (const Context* const context : contexts_) {
    if (context != asking) sum += context->idle();
  }
  return sum;
}

void DeviceBudget::take_idle(const Context* asking, Bytes wanted) {
  for (Context* const context : contexts_) {
    if (context == asking || unused() >= wanted) continue;
    const Bytes gives = std::min(context->idle(), round_up(wanted - unused(), context->alignment()));
    if (gives.value != 0) (void)context->set_part(round_down(context->part() - gives, context->alignment()));
  }
}

void DeviceBudget::finish_all() {
  for (const Context* const context : contexts_) {
    if (!context->has_core()) continue;
    try {
      context->core_in_use().backend().finish();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the device is lost, as the next call tells
    }
  }
}

bool DeviceBudget::give(Context& asking, Bytes need) {
  host_short_ = false;
  refusal_.clear();
  if (need > budget_) return false;
  const Bytes fair = std::max(need, Bytes{budget_.value / std::max<std::size_t>(contexts_.size(), 1)});
  Bytes more = need > asking.part() ? need - asking.part() : Bytes{};
  if (unused() < more) {
    const Bytes wished = fair > asking.part() ? fair - asking.part() : Bytes{};
    if (!take_from_others(&asking, wished) && !take_from_others(&asking, more)) return false;
  }
  more = unused();
  const bool given = asking.set_part(round_down(asking.part() + more, asking.alignment()));
  note_peak();
  return given && asking.part() >= need;
}

void DeviceBudget::offer(Context& asking) {
  const Bytes more = unused();
  if (more.value == 0 || (asking.has_core() && more.value < budget_.value / 8)) return;
  (void)asking.set_part(round_down(asking.part() + more, asking.alignment()));
  note_peak();
}

// Another part makes all leave that is on the device, so a little more is not worth it.
void DeviceBudget::grow(Context& asking) {
  const Bytes live{asking.live.load(std::memory_order_relaxed)};
  const std::uint64_t idlings = idlings_.load(std::memory_order_relaxed);
  if (live <= asking.part() || (live <= asking.grown.live && idlings == asking.grown.idlings)) return;
  asking.grown = {live, idlings};
  const Bytes more = live - asking.part();
  const Bytes room = unused() + idle(&asking);
  if (room < std::min(more, Bytes{budget_.value / 8})) return;
  take_idle(&asking, std::max(more, Bytes{room.value / 2}));  // it may need still more soon
  (void)asking.set_part(round_down(asking.part() + unused(), asking.alignment()));
  note_peak();
}

// What cannot fit must not make anything leave, for a program may ask for it in each step. What the program has
// released counts until the driver has destroyed it, a moment after the last command that uses it. It is waited for
// once.
bool DeviceBudget::may_have(Bytes size) {
  constexpr int longest_pause = 32;  // milliseconds
  if (size > budget_) return false;
  const auto fits = [&] { return pinned() + size <= budget_; };
  const std::uint64_t releases = releases_.load(std::memory_order_relaxed);
  if (fits() || releases == releases_waited_for_) return fits();
  for (Context* const context : contexts_) submit_held_back(*context);
  finish_all();
  for (int pause = 1; pause <= longest_pause && !fits(); pause *= 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
  releases_waited_for_ = releases;
  return fits();
}

// Where there is room for more than is asked for now, more is made: each time all that is on the device leaves, and a
// program may ask again and again. First of what no buffer needs, half of it; then as much as was taken before.
bool DeviceBudget::make_room(Bytes size) {
  if (unused() >= size) return true;
  take_idle(nullptr, std::max(size, Bytes{(unused() + idle(nullptr)).value / 2}));
  if (unused() >= size) return true;
  const Bytes more = std::min(pinned(), Bytes{budget_.value / 16});
  return take_from_others(nullptr, size + more) || unused() >= size || take_from_others(nullptr, size);
}

bool DeviceBudget::reserve(Bytes size) {
  const bool fits = problem_.empty() && may_have(size) && make_room(size);
  if (!fits) {
    refused_objects.fetch_add(1, std::memory_order_relaxed);
    publish(*this);
    return false;
  }
  pinned_.fetch_add(size.value, std::memory_order_relaxed);
  note_peak();
  return true;
}

// ---- Reservation

Reservation::Reservation(DeviceBudget& device, Bytes size) : size_(size) {
  const std::lock_guard lock(device.mutex);
  if (device.reserve(size)) device_ = &device;
}

Reservation::Reservation(Reservation&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)), size_(other.size_) {}

Reservation::~Reservation() {
  if (device_ != nullptr) device_->give_back(size_);
}

}  // namespace swapmm::opencl::layer
