// SPDX-License-Identifier: Apache-2.0
#include "pending.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include <swapmm/formats/call_log/writer.hpp>

#include "host_bytes.hpp"
#include "recorder.hpp"

namespace swapmm::opencl::layer::record {
namespace {

constexpr std::size_t most_times = 4096;
constexpr std::size_t most_reads = 64;

enum class Progress : std::uint8_t { running, done, failed };

Progress progress(const Event& event) {
  if (event.failed()) return Progress::failed;
  const cl_event native = event.native();
  if (native == nullptr) return Progress::running;
  cl_int status = CL_QUEUED;
  if (down.clGetEventInfo(native, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) != CL_SUCCESS) {
    return Progress::failed;
  }
  return status == CL_COMPLETE ? Progress::done : status < 0 ? Progress::failed : Progress::running;
}

std::optional<std::chrono::nanoseconds> duration(const Event& event) {
  cl_ulong begin = 0;
  cl_ulong end = 0;
  const auto ask = [&](cl_profiling_info what, cl_ulong& time) {
    return down.clGetEventProfilingInfo(event.native(), what, sizeof time, &time, nullptr) == CL_SUCCESS;
  };
  if (!ask(CL_PROFILING_COMMAND_START, begin) || !ask(CL_PROFILING_COMMAND_END, end) || end < begin) return {};
  return std::chrono::nanoseconds{static_cast<std::int64_t>(end - begin)};
}

}  // namespace

void Pending::add_time(std::uint64_t sequence, Event& event) {
  const std::lock_guard lock(mutex_);
  if (times_.size() >= most_times) times_.pop_front();
  times_.push_back({sequence, Ref<Event>(event)});
}

void Pending::add_read(std::uint64_t sequence, Event& event, const calls::HostData& host) {
  const std::lock_guard lock(mutex_);
  if (reads_.size() < most_reads) reads_.push_back({sequence, Ref<Event>(event), host});
}

void Pending::settle() {
  const std::lock_guard lock(mutex_);
  std::string records;
  std::erase_if(reads_, [&](const Read& read) {
    const Progress reached = progress(*read.event);
    if (reached == Progress::done) call_log::append_digest(records, read.sequence, digest_of(read.host));
    return reached != Progress::running;
  });
  // The commands of a context end in the order in which they began, so the first one tells enough.
  while (!times_.empty()) {
    const Progress reached = progress(*times_.front().event);
    if (reached == Progress::running) break;
    if (reached == Progress::done) {
      if (const auto known = duration(*times_.front().event)) {
        call_log::append_duration(records, times_.front().sequence, *known);
      }
    }
    times_.pop_front();
  }
  if (!records.empty()) recorder_.write(records);
}

void Pending::forget_reads() {
  const std::lock_guard lock(mutex_);
  reads_.clear();
}

void Pending::forget_reads(const void* address) {
  const std::lock_guard lock(mutex_);
  std::erase_if(reads_,
                [&](const Read& read) { return read.host.address == reinterpret_cast<std::uintptr_t>(address); });
}

}  // namespace swapmm::opencl::layer::record
