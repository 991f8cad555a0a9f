// SPDX-License-Identifier: Apache-2.0
#ifdef SWAPMM_CLI_HAS_OPENCL
#include "replayer.hpp"

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <memory>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <swapmm/base/text/sha256.hpp>
#include <swapmm/formats/call_log/records.hpp>

#include "failure.hpp"

namespace swapmm::cli {
namespace {

using calls::Call;
using calls::CallKind;
using calls::Object;
using calls::ObjectKind;
using HostBytes = std::vector<unsigned char>;

/// More than a machine has is no buffer of a program.
constexpr std::uint64_t most_host_bytes = std::uint64_t{1} << 40U;

class Replayer {
 public:
  Replayer(const calls::CallLog& log, std::uint64_t seed) : log_(log), seed_(seed) { find_sources(); }

  Replayed replay() && {
    for (const Call& call : log_.calls) {
      settle_before(call.sequence);
      if (call.status != 0) continue;  // it did nothing
      if (const cl_int status = repeat(call); status != CL_SUCCESS) {
        result_.failed.push_back("call " + std::to_string(call.sequence) + " (" + call.function + "): error " +
                                 std::to_string(status));
      }
    }
    settle_before(~std::uint64_t{0});
    for (auto& [queue, object] : queues_) clFinish(object);
    compare_reads();
    return std::move(result_);
  }

 private:
  // ---- what waits for later

  /// Something that the program waited for, until all calls below `until` had begun.
  struct Waiting {
    std::uint64_t until;
    std::vector<cl_event> events;
    cl_command_queue queue;
  };
  /// Memory of the host that a command uses, until its event is complete.
  struct Transfer {
    const Call* call = nullptr;
    std::shared_ptr<HostBytes> bytes;
    const unsigned char* address = nullptr;  ///< of a map; else the bytes
    cl_event event = nullptr;
    bool is_read = false;
  };

  void settle_before(std::uint64_t sequence) {
    bool settled = false;
    for (auto each = waiting_.begin(); each != waiting_.end();) {
      if (each->until > sequence) {
        ++each;
        continue;
      }
      if (!each->events.empty()) clWaitForEvents(static_cast<cl_uint>(each->events.size()), each->events.data());
      if (each->queue != nullptr) clFinish(each->queue);
      each = waiting_.erase(each);
      settled = true;
    }
    if (settled) compare_reads();
  }

  // Those that have ended.
  void compare_reads() {
    for (auto each = transfers_.begin(); each != transfers_.end();) {
      cl_int status = CL_QUEUED;
      if (each->event != nullptr) {
        clGetEventInfo(each->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
      }
      if (status > CL_COMPLETE) {
        ++each;
        continue;
      }
      if (each->is_read && status == CL_COMPLETE) compare(*each);
      if (each->event != nullptr) clReleaseEvent(each->event);
      each = transfers_.erase(each);
    }
    std::string all;
    for (const auto& [sequence, digest] : digests_) all += digest;
    result_.digest = text::hexadecimal(text::sha256(all));
  }

  void compare(const Transfer& transfer) {
    const calls::HostData& host = *transfer.call->host;
    const unsigned char* const first = transfer.address != nullptr ? transfer.address : transfer.bytes->data();
    text::Sha256 hash;
    for_each_row(host, [&](std::uint64_t at, std::uint64_t size) {
      hash.add({reinterpret_cast<const char*>(first) + at, static_cast<std::size_t>(size)});
    });
    const std::string digest = hash.result();
    digests_[transfer.call->sequence] = digest;
    if (!log_.has_content || host.digest.empty()) return;
    ++result_.compared;
    if (digest != host.digest) {
      result_.different.push_back("call " + std::to_string(transfer.call->sequence) + " (" + transfer.call->function +
                                  ")");
    }
  }

  template <class Take>
  static void for_each_row(const calls::HostData& host, Take take) {
    if (!host.box) return take(std::uint64_t{0}, host.bytes);
    const calls::Box& box = *host.box;
    for (std::uint64_t slice = 0; slice < box.region[2]; ++slice) {
      for (std::uint64_t row = 0; row < box.region[1]; ++row) {
        const std::uint64_t at = slice * box.slice + row * box.row;
        if (at > host.bytes || box.region[0] > host.bytes - at) return;  // no real rectangle
        take(at, box.region[0]);
      }
    }
  }

  // ---- objects

  template <class Handle>
  static Handle look_up(const std::unordered_map<Object, Handle>& all, Object object) {
    const auto found = all.find(object);
    return found == all.end() ? nullptr : found->second;
  }

  cl_int skip(const std::string& why) {
    ++result_.skipped[why];
    --result_.calls;
    return CL_SUCCESS;
  }

  cl_device_id device(const std::string& name) {
    cl_uint count = 0;
    std::vector<cl_platform_id> platforms(16);
    if (clGetPlatformIDs(16, platforms.data(), &count) != CL_SUCCESS) count = 0;
    platforms.resize(std::min<std::size_t>(count, platforms.size()));
    cl_device_id chosen = nullptr;
    for (const cl_platform_id platform : platforms) {
      std::vector<cl_device_id> devices(16);
      if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 16, devices.data(), &count) != CL_SUCCESS) continue;
      devices.resize(std::min<std::size_t>(count, devices.size()));
      for (const cl_device_id each : devices) {
        std::string own(256, '\0');
        std::size_t size = 0;
        if (clGetDeviceInfo(each, CL_DEVICE_NAME, own.size(), own.data(), &size) != CL_SUCCESS || size == 0) continue;
        own.resize(size - 1);
        if (chosen != nullptr && own != name) continue;
        chosen = each;
        result_.device = own;
        if (own == name) return chosen;
      }
    }
    if (chosen == nullptr) throw Failure(ExitCode::io, "there is no OpenCL device");
    return chosen;
  }

  /// The host data of a call, as recorded or made from the seed: words from 0 to 3, which no index of a kernel takes
  /// far.
  std::shared_ptr<HostBytes> input(const Call& call) {
    const calls::HostData& host = *call.host;
    auto bytes = std::make_shared<HostBytes>(static_cast<std::size_t>(host.bytes));
    std::uint64_t taken = 0;
    std::uint64_t state = seed_ * 0x9E3779B97F4A7C15U + call.sequence;
    for_each_row(host, [&](std::uint64_t at, std::uint64_t size) {
      for (std::uint64_t i = 0; i < size; ++i, ++taken) {
        unsigned char& byte = (*bytes)[static_cast<std::size_t>(at + i)];
        if (taken < host.content.size()) {
          byte = static_cast<unsigned char>(host.content[static_cast<std::size_t>(taken)]);
        } else if (!log_.has_content && taken % 4 == 0) {
          state = state * 6364136223846793005U + 1442695040888963407U;
          byte = static_cast<unsigned char>(state >> 62U);
        }
      }
    });
    return bytes;
  }

  /// Programs that keep binaries ask a program with a source for them.
  void find_sources() {
    std::unordered_map<Object, std::pair<const Call*, const Call*>> sources;
    for (const Call& call : log_.calls) {
      if (call.kind == CallKind::create && call.object_kind == ObjectKind::program && !call.is_binary) {
        sources[call.object] = {&call, nullptr};
      }
      if (call.kind == CallKind::build) sources[call.object].second = &call;
      if (call.kind == CallKind::other && !call.source_digest.empty() && sources[call.object].first != nullptr) {
        by_binary_[call.source_digest] = sources[call.object];
      }
    }
  }

  // ---- calls

  cl_int repeat(const Call& call) {
    if (call.host && call.host->bytes > most_host_bytes) return skip("with more host memory than there can be");
    ++result_.calls;
    switch (call.kind) {
      case CallKind::create: return create(call);
      case CallKind::retain: return with_reference(call, true);
      case CallKind::release: return with_reference(call, false);
      case CallKind::build: return build(call);
      case CallKind::set_argument: return set_argument(call);
      case CallKind::flush: return clFlush(look_up(queues_, call.queue));
      case CallKind::finish:
        waiting_.push_back({call.ended_before, {}, look_up(queues_, call.queue)});
        return CL_SUCCESS;
      case CallKind::wait: waiting_.push_back({call.ended_before, events_of(call), nullptr}); return CL_SUCCESS;
      case CallKind::set_event: return set_event(call);
      case CallKind::foreign: return skip("commands on images, shared virtual memory or functions of the host");
      case CallKind::other: --result_.calls; return CL_SUCCESS;  // queries change nothing
      default: return command(call);
    }
  }

  cl_int create(const Call& call) {
    cl_int status = CL_SUCCESS;
    switch (call.object_kind) {
      case ObjectKind::context: {
        const cl_device_id own = device(call.name);
        if (call.bytes > 1) ++result_.skipped["contexts of several devices: they have one here"];
        devices_[call.object] = own;
        contexts_[call.object] = clCreateContext(nullptr, 1, &own, nullptr, nullptr, &status);
        return status;
      }
      case ObjectKind::queue:
        queues_[call.object] = clCreateCommandQueue(look_up(contexts_, call.parent), look_up(devices_, call.parent),
                                                    call.flags & 3U, &status);
        return status;
      case ObjectKind::buffer: return create_buffer(call);
      case ObjectKind::part: {
        const cl_buffer_region region{static_cast<std::size_t>(call.offset), static_cast<std::size_t>(call.bytes)};
        memories_[call.object] = clCreateSubBuffer(look_up(memories_, call.parent), call.flags,
                                                   CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
        return status;
      }
      case ObjectKind::program: return create_program(call);
      case ObjectKind::kernel: return create_kernels(call);
      case ObjectKind::user_event:
        events_[call.object] = clCreateUserEvent(look_up(contexts_, call.parent), &status);
        return status;
      default: return skip("objects of kind " + std::string(to_string(call.object_kind)));
    }
  }

  cl_int create_buffer(const Call& call) {
    void* host = nullptr;
    if (call.host) {
      host_memory_.push_back(input(call));
      host = host_memory_.back()->data();
    }
    cl_int status = CL_SUCCESS;
    memories_[call.object] = clCreateBuffer(look_up(contexts_, call.parent), call.flags,
                                            static_cast<std::size_t>(call.bytes), host, &status);
    return status;
  }

  cl_int create_program(const Call& call) {
    const Call* from = &call;
    const Call* built = nullptr;
    if (call.source.empty()) {
      const auto known = by_binary_.find(call.source_digest);
      if (known == by_binary_.end()) return skip("programs whose source is not in the log");
      std::tie(from, built) = known->second;
      of_binaries_.insert(call.object);
    }
    const cl_context context = look_up(contexts_, call.parent);
    cl_int status = CL_SUCCESS;
    const char* text = from->source.data();
    const std::size_t size = from->source.size();
    if (from->is_binary) {
      const cl_device_id own = look_up(devices_, call.parent);
      const auto* bytes = reinterpret_cast<const unsigned char*>(text);
      programs_[call.object] = clCreateProgramWithBinary(context, 1, &own, &size, &bytes, nullptr, &status);
    } else {
      programs_[call.object] = clCreateProgramWithSource(context, 1, &text, &size, &status);
      if (built != nullptr) options_[call.object] = built->options;
    }
    return status;
  }

  cl_int build(const Call& call) {
    const cl_program program = look_up(programs_, call.object);
    if (program == nullptr) return skip("builds of programs that are not there");
    if (call.function != "clBuildProgram") return skip("programs that are compiled in parts");
    const auto own = options_.find(call.object);  // of the source that stands for a binary
    const std::string& options = own == options_.end() ? call.options : own->second;
    return clBuildProgram(program, 0, nullptr, options.c_str(), nullptr, nullptr);
  }

  cl_int create_kernels(const Call& call) {
    if (const cl_kernel model = look_up(kernels_, call.parent); model != nullptr) return clone(call);
    const cl_program program = look_up(programs_, call.parent);
    if (program == nullptr) return skip("kernels of programs that are not there");
    std::vector<Object> objects = call.objects;
    if (call.object != 0) objects.push_back(call.object);
    std::string_view names = call.name;
    for (const Object object : objects) {
      const std::string name(names.substr(0, names.find(',')));
      names.remove_prefix(std::min(names.size(), name.size() + 1));
      cl_int status = CL_SUCCESS;
      const cl_kernel kernel = clCreateKernel(program, name.c_str(), &status);
      if (status == CL_INVALID_KERNEL_NAME && of_binaries_.contains(call.parent)) {
        (void)skip("kernels of programs that were linked: the source is not all of it");
        continue;
      }
      kernels_[object] = kernel;
      kernel_programs_[object] = program;
      if (status != CL_SUCCESS) return status;
    }
    return CL_SUCCESS;
  }

  // As a kernel of its own with the same arguments: clCloneKernel is not everywhere.
  cl_int clone(const Call& call) {
    cl_int status = CL_SUCCESS;
    const cl_program program = kernel_programs_[call.parent];
    const cl_kernel made = clCreateKernel(program, call.name.c_str(), &status);
    if (status != CL_SUCCESS) return status;
    kernels_[call.object] = made;
    kernel_programs_[call.object] = program;
    set_[call.object] = set_[call.parent];
    for (const auto& [index, argument] : set_[call.object]) {
      if (const cl_int set = give(made, *argument); set != CL_SUCCESS) return set;
    }
    return CL_SUCCESS;
  }

  cl_int set_argument(const Call& call) {
    const cl_kernel kernel = look_up(kernels_, call.object);
    if (kernel == nullptr || !call.argument) return skip("arguments of kernels that are not there");
    const calls::Argument& argument = *call.argument;
    const bool is_lost = argument.type == calls::Argument::Type::opaque ||
                         (argument.object != 0 && look_up(memories_, argument.object) == nullptr);
    if (is_lost) {
      lost_[call.object][argument.index] = true;
      return skip("arguments that are images, samplers or shared virtual memory");
    }
    lost_[call.object].erase(argument.index);
    set_[call.object][argument.index] = &argument;
    return give(kernel, argument);
  }

  cl_int give(cl_kernel kernel, const calls::Argument& argument) {
    switch (argument.type) {
      case calls::Argument::Type::object: {
        const cl_mem memory = look_up(memories_, argument.object);
        return clSetKernelArg(kernel, argument.index, sizeof memory, &memory);
      }
      case calls::Argument::Type::local:
        return clSetKernelArg(kernel, argument.index, static_cast<std::size_t>(argument.bytes), nullptr);
      default: return clSetKernelArg(kernel, argument.index, argument.value.size(), argument.value.data());
    }
  }

  cl_int set_event(const Call& call) {
    const cl_event event = look_up(events_, call.object);
    if (event == nullptr) return skip("events that are not there");
    return clSetUserEventStatus(event, static_cast<cl_int>(call.value));
  }

  // Events are kept to the end: a wait may come later here than there.
  cl_int with_reference(const Call& call, bool more) {
    if (const cl_mem memory = look_up(memories_, call.object)) {
      return more ? clRetainMemObject(memory) : clReleaseMemObject(memory);
    }
    if (const cl_kernel kernel = look_up(kernels_, call.object)) {
      return more ? clRetainKernel(kernel) : clReleaseKernel(kernel);
    }
    return CL_SUCCESS;
  }

  std::vector<cl_event> events_of(const Call& call) const {
    std::vector<cl_event> list;
    for (const Object event : call.waits) {
      if (const cl_event known = look_up(events_, event)) list.push_back(known);
    }
    return list;
  }

  cl_int command(const Call& call) {
    const cl_command_queue queue = look_up(queues_, call.queue);
    if (queue == nullptr) return skip("commands of queues that are not there");
    const std::vector<cl_event> list = events_of(call);
    const Waits waits{static_cast<cl_uint>(list.size()), list.empty() ? nullptr : list.data()};
    cl_event event = nullptr;
    const cl_int status = submit(call, queue, waits, event);
    if (event == nullptr) return status;
    if (call.event != 0) {
      events_[call.event] = event;
      clRetainEvent(event);
    }
    if (call.blocking) {
      waiting_.push_back({call.ended_before, {event}, nullptr});
      kept_.push_back(event);
    } else {
      clReleaseEvent(event);
    }
    return status;
  }

  struct Waits {
    cl_uint count;
    const cl_event* list;
  };

  cl_int submit(const Call& call, cl_command_queue queue, const Waits& waits, cl_event& event) {
    std::vector<cl_mem> memories;
    for (const calls::Operand& operand : call.operands) {
      memories.push_back(look_up(memories_, operand.object));
      if (memories.back() == nullptr) return skip("commands on objects that are not there");
    }
    const auto at = [&](std::size_t i) { return static_cast<std::size_t>(call.operands[i].offset); };
    const auto size = [&](std::size_t i) { return static_cast<std::size_t>(call.operands[i].bytes); };
    switch (call.kind) {
      case CallKind::launch: return launch(call, queue, waits, event);
      case CallKind::read:
      case CallKind::write: return transfer(call, queue, memories, waits, event);
      case CallKind::copy:
        if (memories.size() != 2) return skip("copies without both buffers");
        if (call.operands[0].box && call.operands[1].box) return copy_rectangle(call, queue, memories, waits, event);
        return clEnqueueCopyBuffer(queue, memories[0], memories[1], at(0), at(1), size(0), waits.count, waits.list,
                                   &event);
      case CallKind::fill:
        if (memories.size() != 1 || !call.argument) return skip("fills without a pattern");
        return clEnqueueFillBuffer(queue, memories[0], call.argument->value.data(), call.argument->value.size(), at(0),
                                   size(0), waits.count, waits.list, &event);
      case CallKind::map: return map(call, queue, memories, waits, event);
      case CallKind::unmap: return unmap(call, queue, waits, event);
      case CallKind::mark:
        return (call.flags & 1U) != 0 ? clEnqueueBarrierWithWaitList(queue, waits.count, waits.list, &event)
                                      : clEnqueueMarkerWithWaitList(queue, waits.count, waits.list, &event);
      default: return clEnqueueMarkerWithWaitList(queue, waits.count, waits.list, &event);  // a hint, in order
    }
  }

  /// In place of a launch: zeros in all that it changes, so that what the host reads later does not depend on chance.
  cl_int skip_launch(const std::string& why, const Call& call, cl_command_queue queue, const Waits& waits,
                     cl_event& event) {
    (void)skip(why);
    std::vector<cl_event> filled;
    cl_int status = CL_SUCCESS;
    for (const calls::Operand& operand : call.operands) {
      if (operand.access == Access::read || operand.bytes == 0 || status != CL_SUCCESS) continue;
      constexpr unsigned char zero = 0;
      status = clEnqueueFillBuffer(queue, look_up(memories_, operand.object), &zero, sizeof zero,
                                   static_cast<std::size_t>(operand.offset), static_cast<std::size_t>(operand.bytes),
                                   waits.count, waits.list, &filled.emplace_back());
      if (status != CL_SUCCESS) filled.pop_back();
    }
    if (status == CL_SUCCESS) {
      const bool is_filled = !filled.empty();
      status = clEnqueueMarkerWithWaitList(queue, is_filled ? static_cast<cl_uint>(filled.size()) : waits.count,
                                           is_filled ? filled.data() : waits.list, &event);
    }
    for (const cl_event each : filled) clReleaseEvent(each);
    return status;
  }

  cl_int launch(const Call& call, cl_command_queue queue, const Waits& waits, cl_event& event) {
    const cl_kernel kernel = look_up(kernels_, call.object);
    if (kernel == nullptr) {
      return skip_launch("launches of kernels that are not there", call, queue, waits, event);
    }
    if (const auto lost = lost_.find(call.object); lost != lost_.end() && !lost->second.empty()) {
      return skip_launch("launches with arguments that are not there", call, queue, waits, event);
    }
    const auto sizes = [](const std::vector<std::uint64_t>& values) {
      return std::vector<std::size_t>(values.begin(), values.end());
    };
    const std::vector<std::size_t> offsets = sizes(call.offsets);
    const std::vector<std::size_t> global = sizes(call.global);
    const std::vector<std::size_t> local = sizes(call.local);
    if (global.empty() || (!offsets.empty() && offsets.size() != global.size()) ||
        (!local.empty() && local.size() != global.size())) {
      return skip("launches without a size");
    }
    return clEnqueueNDRangeKernel(queue, kernel, static_cast<cl_uint>(global.size()),
                                  offsets.empty() ? nullptr : offsets.data(), global.data(),
                                  local.empty() ? nullptr : local.data(), waits.count, waits.list, &event);
  }

  void keep(const Call& call, std::shared_ptr<HostBytes> bytes, cl_event event, bool is_read,
            const unsigned char* address = nullptr) {
    if (event == nullptr) return;
    clRetainEvent(event);
    transfers_.push_back({&call, std::move(bytes), address, event, is_read});
    if (transfers_.size() > 256) compare_reads();
  }

  cl_int transfer(const Call& call, cl_command_queue queue, const std::vector<cl_mem>& memories, const Waits& waits,
                  cl_event& event) {
    if (memories.size() != 1 || !call.host) return skip("transfers without a buffer or host memory");
    const bool is_read = call.kind == CallKind::read;
    const calls::Operand& operand = call.operands[0];
    const auto bytes = is_read ? std::make_shared<HostBytes>(static_cast<std::size_t>(call.host->bytes)) : input(call);
    cl_int status = CL_SUCCESS;
    if (operand.box && call.host->box) {
      const calls::Box& device = *operand.box;
      const calls::Box& host = *call.host->box;
      const auto from = std::vector<std::size_t>(device.origin.begin(), device.origin.end());
      const auto region = std::vector<std::size_t>(device.region.begin(), device.region.end());
      const std::size_t zero[3] = {0, 0, 0};  // the bytes begin with the rectangle
      const auto go = [&](auto function, auto* to) {
        return function(queue, memories[0], CL_FALSE, from.data(), zero, region.data(),
                        static_cast<std::size_t>(device.row), static_cast<std::size_t>(device.slice),
                        static_cast<std::size_t>(host.row), static_cast<std::size_t>(host.slice), to, waits.count,
                        waits.list, &event);
      };
      status = is_read ? go(clEnqueueReadBufferRect, static_cast<void*>(bytes->data()))
                       : go(clEnqueueWriteBufferRect, static_cast<const void*>(bytes->data()));
    } else {
      if (call.host->bytes != operand.bytes) return skip("transfers whose sizes differ");
      const auto offset = static_cast<std::size_t>(operand.offset);
      status = is_read ? clEnqueueReadBuffer(queue, memories[0], CL_FALSE, offset, bytes->size(), bytes->data(),
                                             waits.count, waits.list, &event)
                       : clEnqueueWriteBuffer(queue, memories[0], CL_FALSE, offset, bytes->size(), bytes->data(),
                                              waits.count, waits.list, &event);
    }
    keep(call, bytes, event, is_read);
    return status;
  }

  static cl_int copy_rectangle(const Call& call, cl_command_queue queue, const std::vector<cl_mem>& memories,
                               const Waits& waits, cl_event& event) {
    const calls::Box& from = *call.operands[0].box;
    const calls::Box& to = *call.operands[1].box;
    const auto three = [](const std::array<std::uint64_t, 3>& values) {
      return std::vector<std::size_t>(values.begin(), values.end());
    };
    return clEnqueueCopyBufferRect(queue, memories[0], memories[1], three(from.origin).data(), three(to.origin).data(),
                                   three(from.region).data(), static_cast<std::size_t>(from.row),
                                   static_cast<std::size_t>(from.slice), static_cast<std::size_t>(to.row),
                                   static_cast<std::size_t>(to.slice), waits.count, waits.list, &event);
  }

  /// A map that has not ended, by the address that the program had.
  struct Mapped {
    std::uint64_t recorded;
    cl_mem memory;
    unsigned char* address;
    cl_event event;
    std::uint64_t bytes;
  };

  cl_int map(const Call& call, cl_command_queue queue, const std::vector<cl_mem>& memories, const Waits& waits,
             cl_event& event) {
    if (memories.size() != 1 || !call.host) return skip("maps without a buffer");
    const calls::Operand& operand = call.operands[0];
    cl_int status = CL_SUCCESS;
    void* const address =
        clEnqueueMapBuffer(queue, memories[0], CL_FALSE, call.flags, static_cast<std::size_t>(operand.offset),
                           static_cast<std::size_t>(operand.bytes), waits.count, waits.list, &event, &status);
    if (status != CL_SUCCESS) return status;
    auto* const bytes = static_cast<unsigned char*>(address);
    mapped_.push_back({call.host->address, memories[0], bytes, event, operand.bytes});
    clRetainEvent(event);
    if (call.host->bytes == operand.bytes) keep(call, nullptr, event, !call.host->digest.empty(), bytes);
    return CL_SUCCESS;
  }

  cl_int unmap(const Call& call, cl_command_queue queue, const Waits& waits, cl_event& event) {
    const auto found = std::find_if(mapped_.begin(), mapped_.end(), [&](const Mapped& each) {
      return call.host && each.recorded == call.host->address;
    });
    if (found == mapped_.end()) return skip("unmaps of maps that are not there");
    const Mapped map = *found;
    mapped_.erase(found);
    clWaitForEvents(1, &map.event);  // the program had to, too
    clReleaseEvent(map.event);
    compare_reads();
    if (!call.operands.empty() && call.host->bytes == map.bytes) {
      const std::shared_ptr<HostBytes> bytes = input(call);
      std::memcpy(map.address, bytes->data(), bytes->size());
    }
    return clEnqueueUnmapMemObject(queue, map.memory, map.address, waits.count, waits.list, &event);
  }

  const calls::CallLog& log_;
  std::uint64_t seed_;
  Replayed result_;
  std::unordered_map<Object, cl_device_id> devices_;  // by context
  std::unordered_map<Object, cl_context> contexts_;
  std::unordered_map<Object, cl_command_queue> queues_;
  std::unordered_map<Object, cl_mem> memories_;
  std::unordered_map<Object, cl_program> programs_;
  std::unordered_map<Object, cl_kernel> kernels_;
  std::unordered_map<Object, cl_program> kernel_programs_;
  std::unordered_map<Object, cl_event> events_;
  std::unordered_map<Object, std::string> options_;
  std::unordered_map<Object, std::map<std::uint32_t, const calls::Argument*>> set_;
  std::unordered_map<Object, std::map<std::uint32_t, bool>> lost_;
  std::unordered_map<std::string, std::pair<const Call*, const Call*>> by_binary_;  // a source and its build
  std::unordered_set<Object> of_binaries_;  // programs made of one, from that source
  std::list<Waiting> waiting_;
  std::list<Transfer> transfers_;
  std::vector<Mapped> mapped_;
  std::vector<cl_event> kept_;
  std::vector<std::shared_ptr<HostBytes>> host_memory_;  // of buffers that use it
  std::map<std::uint64_t, std::string> digests_;
};

}  // namespace

Replayed replay(const calls::CallLog& log, std::uint64_t seed) { return Replayer(log, seed).replay(); }

}  // namespace swapmm::cli
#endif
