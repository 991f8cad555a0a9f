// SPDX-License-Identifier: Apache-2.0

#include <swapmm/opencl/neighbours/link.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <swapmm/opencl/info.hpp>
#include <swapmm/opencl/status.hpp>

namespace swapmm::opencl::detail {

namespace {

cl_uint count_of(std::span<const cl_event> events) { return static_cast<cl_uint>(events.size()); }
const cl_event* list_of(std::span<const cl_event> events) { return events.empty() ? nullptr : events.data(); }

// Adds an event to a list unless it has ended. One that failed is told by whoever queued it, and must not fail what
// comes later.
void add_running(std::vector<cl_event>& list, cl_event event) {
  if (event != nullptr && execution_status(event) > CL_COMPLETE) list.push_back(event);
}

// Drivers may never run a command that waits for one that has failed already.
void require_not_failed(cl_event event) {
  const cl_int status = execution_status(event);
  if (status < 0) throw error_of(status, "a copy of a part between a device and a neighbour");
}

}  // namespace

NeighbourLink::NeighbourLink(std::shared_ptr<Session> session, cl_device_id neighbour, std::size_t path,
                             HostMemory staging, Bytes size)
    : session_(std::move(session)),
      staging_(std::move(staging)),
      slot_bytes_(static_cast<std::size_t>(size.value) / (2 * slots_each)),
      in_{neighbour_in_queue(path), {}, {}},
      out_{neighbour_out_queue(path), {}, {}} {
  std::byte* at = staging_.data();
  for (Direction* const way : {&in_, &out_}) {
    way->queue = session_->add_neighbour_queue(neighbour);
    for (Slot& slot : way->slots) slot.data = std::exchange(at, at + slot_bytes_);
  }
}

// The slots must not go before the copies that use them.
NeighbourLink::~NeighbourLink() {
  try {
    session_->finish();
  } catch (const BackendError&) {  // NOLINT(bugprone-empty-catch): the device is lost, and no longer copies
  }
  for (Direction* const way : {&in_, &out_}) session_->remove_neighbour_queue(way->queue.get());
}

void NeighbourLink::use_first(cl_mem buffer, std::size_t size) {
  const cl_uchar zero = 0;
  cl_event native = nullptr;
  check(clEnqueueFillBuffer(out_.queue.get(), buffer, &zero, sizeof zero, 0, std::min<std::size_t>(size, 128), 0,
                            nullptr, &native),
        "the first use (clEnqueueFillBuffer) of a buffer on a neighbour");
  const Handle<cl_event> filled(native);
  check(clFinish(out_.queue.get()), "the first use (clFinish) of a buffer on a neighbour");
  check(std::min(execution_status(native), CL_SUCCESS), "the first use of a buffer on a neighbour");
}

Handle<cl_event> NeighbourLink::copy_in(const Part& to, const Part& from, std::size_t size,
                                        std::span<const cl_event> waits) {
  return copy(in_, to, from, size, waits);
}

Handle<cl_event> NeighbourLink::copy_out(const Part& to, const Part& from, std::size_t size,
                                         std::span<const cl_event> waits) {
  return copy(out_, to, from, size, waits);
}

// The first command of each part is in the queue that the value comes from, and the second one waits for it.
Handle<cl_event> NeighbourLink::copy(Direction& way, Part to, Part from, std::size_t size,
                                     std::span<const cl_event> waits) {
  cl_command_queue const own = session_->use(way.kind);
  const bool in = &way == &in_;
  cl_command_queue const source = in ? way.queue.get() : own;
  cl_command_queue const target = in ? own : way.queue.get();
  // Waits that were queued on the device's queue are none on the neighbour's, and those for what is given are needed by
  // the other queue, too: the place on the device may still be in use.
  std::vector<cl_event> first(waits.begin(), waits.end());
  add_running(first, session_->barrier_of(way.kind));
  std::size_t parts = 0;
  for (std::size_t done = 0; done < size; ++parts) {
    const std::size_t part = std::min(slot_bytes_, size - done);
    Slot& slot = way.slots[way.next];
    way.next = (way.next + 1) % slots_each;
    const Handle<cl_event> filled = read_into(slot, source, {from.buffer, from.offset + done}, part, first);
    leave(slot, target, {to.buffer, to.offset + done}, part, filled);
    done += part;
    first.clear();  // queues keep their order
  }
  check(clFlush(way.queue.get()), "clFlush");
  return end_of(way, parts);
}

Handle<cl_event> NeighbourLink::read_into(Slot& slot, cl_command_queue queue, const Part& from, std::size_t size,
                                          std::span<const cl_event> waits) {
  std::vector<cl_event> all(waits.begin(), waits.end());
  add_running(all, slot.left.get());
  cl_event native = nullptr;
  check(clEnqueueReadBuffer(queue, from.buffer, CL_FALSE, from.offset, size, slot.data, count_of(all), list_of(all),
                            &native),
        "clEnqueueReadBuffer");
  return Handle<cl_event>(native);
}

void NeighbourLink::leave(Slot& slot, cl_command_queue queue, const Part& to, std::size_t size,
                          const Handle<cl_event>& filled) {
  const cl_event waited = filled.get();
  require_not_failed(waited);
  cl_event native = nullptr;
  check(clEnqueueWriteBuffer(queue, to.buffer, CL_FALSE, to.offset, size, slot.data, 1, &waited, &native),
        "clEnqueueWriteBuffer");
  slot.left.reset(native);
}

// The end also tells of failures of the parts before the last ones, which the slots pass on.
Handle<cl_event> NeighbourLink::end_of(const Direction& way, std::size_t parts) {
  std::vector<cl_event> last;
  for (std::size_t i = 0; i < std::min(parts, slots_each); ++i) {
    last.push_back(way.slots[(way.next + slots_each - 1 - i) % slots_each].left.get());
    require_not_failed(last.back());
  }
  cl_event native = nullptr;
  check(clEnqueueMarkerWithWaitList(session_->use(way.kind), count_of(last), list_of(last), &native),
        "clEnqueueMarkerWithWaitList");
  return Handle<cl_event>(native);
}

void NeighbourLink::read(const Part& from, std::span<std::byte> to) {
  require_own_process();
  check(clEnqueueReadBuffer(in_.queue.get(), from.buffer, CL_TRUE, from.offset, to.size(), to.data(), 0, nullptr,
                            nullptr),
        "clEnqueueReadBuffer");
}

void NeighbourLink::write(const Part& to, std::span<const std::byte> from) {
  require_own_process();
  check(clEnqueueWriteBuffer(out_.queue.get(), to.buffer, CL_TRUE, to.offset, from.size(), from.data(), 0, nullptr,
                             nullptr),
        "clEnqueueWriteBuffer");
}

}  // namespace swapmm::opencl::detail
