// SPDX-License-Identifier: Apache-2.0
// The part of the session that enqueues commands.

#include <algorithm>
#include <array>
#include <cstring>
#include <iomanip>
#include <sstream>

#include "kernels.hpp"
#include "random_numbers.hpp"
#include "session.hpp"

namespace random_opencl {
namespace {

cl_uint count_of(const std::vector<cl_event>& events) { return static_cast<cl_uint>(events.size()); }
const cl_event* list_of(const std::vector<cl_event>& events) { return events.empty() ? nullptr : events.data(); }

using Three = std::array<std::size_t, 3>;

Three in_pixels(const Three& bytes) { return {bytes[0] / 16, bytes[1], bytes[2]}; }

/// 0 means the same where nothing lies between rows or slices.
std::size_t row_pitch(const Rect& rect, std::uint64_t seed) {
  return rect.row == rect.region[0] && seed % 2 == 0 ? 0 : rect.row;
}
std::size_t slice_pitch(const Rect& rect, std::uint64_t seed) {
  return rect.slice == rect.row * rect.region[1] && seed % 3 == 0 ? 0 : rect.slice;
}

}  // namespace

void Session::transfer(const Step& step, int number) {
  const Action& what = step.what;
  const std::vector<cl_event> waits = waits_of(step);
  cl_event* const event = event_of(step, number);
  const cl_bool blocking = what.blocking ? CL_TRUE : CL_FALSE;
  cl_mem memory = this->memory(what.objects[0]);
  const Rect& at = what.at[0];
  Bytes& host = host_memory_[index(number)];
  host = random_bytes(data_seed(what), end_of(what.host));
  const bool write = what.kind == Kind::write;
  if (is_image(object(what.objects[0]))) {
    const Three origin = in_pixels(at.origin);
    const Three region = in_pixels(at.region);
    const std::size_t row = row_pitch(what.host, what.seed);
    if (write) {
      ok(clEnqueueWriteImage(queue(step), memory, blocking, origin.data(), region.data(), row, 0, host.data(),
                             count_of(waits), list_of(waits), event),
         "clEnqueueWriteImage");
    } else {
      ok(clEnqueueReadImage(queue(step), memory, blocking, origin.data(), region.data(), row, 0, host.data(),
                            count_of(waits), list_of(waits), event),
         "clEnqueueReadImage");
    }
  } else if (what.linear && write) {
    ok(clEnqueueWriteBuffer(queue(step), memory, blocking, at.origin[0], at.region[0], host.data(), count_of(waits),
                            list_of(waits), event),
       "clEnqueueWriteBuffer");
  } else if (what.linear) {
    ok(clEnqueueReadBuffer(queue(step), memory, blocking, at.origin[0], at.region[0], host.data(), count_of(waits),
                           list_of(waits), event),
       "clEnqueueReadBuffer");
  } else {
    const auto call = [&](auto function, const char* name) {
      ok(function(queue(step), memory, blocking, at.origin.data(), what.host.origin.data(), at.region.data(),
                  row_pitch(at, what.seed), slice_pitch(at, what.seed), row_pitch(what.host, what.seed),
                  slice_pitch(what.host, what.seed), host.data(), count_of(waits), list_of(waits), event),
         name);
    };
    if (write) {
      call(clEnqueueWriteBufferRect, "clEnqueueWriteBufferRect");
    } else {
      call(clEnqueueReadBufferRect, "clEnqueueReadBufferRect");
    }
  }
  if (!what.blocking) return;
  if (write) {
    std::fill(host.begin(), host.end(), std::uint8_t{0xee});  // the call has read it
  } else {
    check_read(step, number);
  }
}

void Session::copy(const Step& step, int number) {
  const Action& what = step.what;
  const std::vector<cl_event> waits = waits_of(step);
  cl_event* const event = event_of(step, number);
  const cl_mem from = memory(what.objects[0]);
  const cl_mem to = memory(what.objects[1]);
  const Rect& at = what.at[0];
  const Rect& target = what.at[1];
  const bool from_image = is_image(object(what.objects[0]));
  const bool to_image = is_image(object(what.objects[1]));
  const Three pixels = in_pixels(at.region);
  if (from_image && to_image) {
    ok(clEnqueueCopyImage(queue(step), from, to, in_pixels(at.origin).data(), in_pixels(target.origin).data(),
                          pixels.data(), count_of(waits), list_of(waits), event),
       "clEnqueueCopyImage");
  } else if (from_image) {
    ok(clEnqueueCopyImageToBuffer(queue(step), from, to, in_pixels(at.origin).data(), pixels.data(), target.origin[0],
                                  count_of(waits), list_of(waits), event),
       "clEnqueueCopyImageToBuffer");
  } else if (to_image) {
    ok(clEnqueueCopyBufferToImage(queue(step), from, to, at.origin[0], in_pixels(target.origin).data(), pixels.data(),
                                  count_of(waits), list_of(waits), event),
       "clEnqueueCopyBufferToImage");
  } else if (what.linear) {
    ok(clEnqueueCopyBuffer(queue(step), from, to, at.origin[0], target.origin[0], at.region[0], count_of(waits),
                           list_of(waits), event),
       "clEnqueueCopyBuffer");
  } else {
    ok(clEnqueueCopyBufferRect(queue(step), from, to, at.origin.data(), target.origin.data(), at.region.data(),
                               row_pitch(at, what.seed), slice_pitch(at, what.seed), row_pitch(target, what.seed),
                               slice_pitch(target, what.seed), count_of(waits), list_of(waits), event),
       "clEnqueueCopyBufferRect");
  }
}

void Session::fill(const Step& step, int number) {
  const Action& what = step.what;
  const std::vector<cl_event> waits = waits_of(step);
  cl_event* const event = event_of(step, number);
  const Bytes pattern = random_bytes(data_seed(what), what.pattern);
  const cl_mem memory = this->memory(what.objects[0]);
  const Rect& at = what.at[0];
  if (is_image(object(what.objects[0]))) {
    ok(clEnqueueFillImage(queue(step), memory, pattern.data(), in_pixels(at.origin).data(), in_pixels(at.region).data(),
                          count_of(waits), list_of(waits), event),
       "clEnqueueFillImage");
  } else {
    ok(clEnqueueFillBuffer(queue(step), memory, pattern.data(), pattern.size(), at.origin[0], at.region[0],
                           count_of(waits), list_of(waits), event),
       "clEnqueueFillBuffer");
  }
}

void Session::map(const Step& step, int number) {
  const Action& what = step.what;
  const std::vector<cl_event> waits = waits_of(step);
  cl_event* const event = event_of(step, number);
  const cl_bool blocking = what.blocking ? CL_TRUE : CL_FALSE;
  const int id = what.objects[0];
  const Rect& at = what.at[0];
  Mapped& mapped = mapped_[index(number)];
  cl_int status = CL_SUCCESS;
  if (is_image(object(id))) {
    mapped.pointer = static_cast<std::uint8_t*>(clEnqueueMapImage(
        queue(step), memory(id), blocking, what.map_flags, in_pixels(at.origin).data(), in_pixels(at.region).data(),
        &mapped.row, nullptr, count_of(waits), list_of(waits), event, &status));
    ok(status, "clEnqueueMapImage");
    return;
  }
  mapped.row = at.region[0];
  mapped.pointer =
      static_cast<std::uint8_t*>(clEnqueueMapBuffer(queue(step), memory(id), blocking, what.map_flags, at.origin[0],
                                                    at.region[0], count_of(waits), list_of(waits), event, &status));
  ok(status, "clEnqueueMapBuffer");
  const int root = object(id).parent < 0 ? id : object(id).parent;
  if ((object(root).flags & CL_MEM_USE_HOST_PTR) == 0) return;
  void* host = nullptr;
  ok(clGetMemObjectInfo(memory(id), CL_MEM_HOST_PTR, sizeof(host), &host, nullptr), "clGetMemObjectInfo");
  if (mapped.pointer != static_cast<std::uint8_t*>(host) + at.origin[0]) {
    throw Failure("a map of a buffer with CL_MEM_USE_HOST_PTR is not at its host pointer");
  }
}

void Session::unmap(const Step& step, int number) {
  const std::vector<cl_event> waits = waits_of(step);
  ok(clEnqueueUnmapMemObject(queue(step), memory(step.what.objects[0]), mapped_[index(step.target)].pointer,
                             count_of(waits), list_of(waits), event_of(step, number)),
     "clEnqueueUnmapMemObject");
}

void Session::touch(const Step& step, int number) {
  const Mapped& mapped = mapped_[index(step.target)];
  compare(step, number, mapped.pointer, mapped.row);
  if (step.change.bytes.empty()) return;
  Rect packed = step.what.at[0];
  packed.origin = {};
  packed.row = mapped.row;
  packed.slice = packed.row * packed.region[1];
  for_rows(packed, [&](std::size_t to, std::size_t from, std::size_t bytes) {
    for (std::size_t i = 0; i != bytes; ++i) {
      if (step.change.defined[from + i] != 0) mapped.pointer[to + i] = step.change.bytes[from + i];
    }
  });
}

void Session::check_read(const Step& step, int number) {
  const std::size_t size = step.contents.bytes.size();
  Step linear;
  linear.what.at[0] = linear_rect(0, size);
  linear.contents = step.contents;
  compare(linear, number, host_memory_[index(number)].data(), size);
}

void Session::compare(const Step& step, int number, const std::uint8_t* found, std::size_t row) {
  Rect packed = step.what.at[0];
  packed.origin = {};
  packed.row = row;
  packed.slice = row * packed.region[1];
  std::uint64_t digest = 14695981039346656037U;
  std::size_t wrong = 0;
  std::ostringstream text;
  text << std::hex << std::setfill('0');
  for_rows(packed, [&](std::size_t at, std::size_t expected, std::size_t bytes) {
    for (std::size_t i = 0; i != bytes; ++i) {
      if (step.contents.defined[expected + i] == 0) continue;
      const unsigned is = found[at + i];
      const unsigned should = step.contents.bytes[expected + i];
      digest = (digest ^ is) * 1099511628211U;
      if (is == should || wrong++ != 0) continue;
      text << "byte " << std::dec << expected + i << " of " << step.contents.bytes.size() << std::hex << " is 0x"
           << std::setw(2) << is << ", not 0x" << std::setw(2) << should;
    }
  });
  note(number, digest);
  if (wrong == 0) return;
  std::ostringstream all;
  all << "what step " << number << " has read is wrong: " << text.str() << "; " << wrong << " bytes are wrong";
  throw Failure(all.str());
}

void Session::mark(const Step& step, int number) {
  const std::vector<cl_event> waits = waits_of(step);
  cl_event* const event = event_of(step, number);
  const bool old = step.what.seed % 3 == 0;
  if (step.what.kind == Kind::marker) {
    if (old && waits.empty() && event != nullptr) {
      ok(clEnqueueMarker(queue(step), event), "clEnqueueMarker");
    } else {
      ok(clEnqueueMarkerWithWaitList(queue(step), count_of(waits), list_of(waits), event),
         "clEnqueueMarkerWithWaitList");
    }
  } else if (old && waits.empty() && event == nullptr) {
    ok(clEnqueueBarrier(queue(step)), "clEnqueueBarrier");
  } else {  // PoCL 3.1 has no clEnqueueWaitForEvents()
    ok(clEnqueueBarrierWithWaitList(queue(step), count_of(waits), list_of(waits), event),
       "clEnqueueBarrierWithWaitList");
  }
}

// Launches
// --------------------------------------------------------------------------------------------------------------

void Session::set_arguments(KernelObject& kernel, const Step& step) {
  const Launch& how = step.what.launch;
  cl_uint number = 0;
  const auto set = [&](const Bytes& identity, std::size_t size, const void* value) {
    if (kernel.set.size() <= number) kernel.set.resize(number + 1);
    // What was set stays, but setting it again must be harmless.
    if (kernel.set[number] != identity || (step.what.seed + number) % 4 == 0) {
      ok(clSetKernelArg(kernel.handle, number, size, value), "clSetKernelArg");
      kernel.set[number] = identity;
    }
    ++number;
  };
  const auto bytes_of_value = [](const auto& value) {
    Bytes bytes(sizeof(value) + 1, 1);
    std::memcpy(bytes.data(), &value, sizeof(value));
    return bytes;
  };
  const auto set_value = [&](const auto& value) { set(bytes_of_value(value), sizeof(value), &value); };
  // Memory objects are told apart by their numbers: a handle may come again.
  std::vector<int> objects = step.what.objects;
  for (const int id : objects) {
    if (id < 0) {
      set({0}, sizeof(cl_mem), nullptr);
      continue;
    }
    if (object(id).shared) {
      if (kernel.set.size() <= number) kernel.set.resize(number + 1);
      ok(clSetKernelArgSVMPointer(kernel.handle, number, shared_[index(id)]), "clSetKernelArgSVMPointer");
      kernel.set[number++] = bytes_of_value(id);
      continue;
    }
    const cl_mem handle = memory(id);
    set(bytes_of_value(id), sizeof(handle), static_cast<const void*>(&handle));
  }
  switch (how.kernel) {
    case Kernel::reverse_local: set(bytes_of_value(how.a), how.a * sizeof(cl_uint), nullptr); return;
    case Kernel::to_image:
    case Kernel::from_image: {
      const Object& image = object(objects[how.kernel == Kernel::to_image ? 1 : 0]);
      set_value(static_cast<cl_uint>(image.width));
      set_value(static_cast<cl_uint>(image.height));
      return;
    }
    case Kernel::scale: {
      Scale scale;
      std::memset(&scale, 0, sizeof(scale));
      scale = scale_of(how);
      set_value(scale);
      break;
    }
    default: break;
  }
  set_value(how.begin);
  set_value(how.end);
  switch (how.kernel) {
    case Kernel::hash_fill:
    case Kernel::gather:
    case Kernel::mix_constant:
    case Kernel::bytes: set_value(how.a); break;
    case Kernel::stride_fill:
      set_value(how.a);
      set_value(how.b);
      break;
    case Kernel::maybe_add: {
      // Two integers that look like handles.
      const cl_ulong p = reinterpret_cast<std::uintptr_t>(memory(objects[0]));
      const cl_ulong q = p - how.b;
      set_value(how.a);
      set_value(p);
      set_value(q);
      break;
    }
    default: break;
  }
}

void Session::enqueue_launch(cl_kernel kernel, const Step& step, int number) {
  const Launch& how = step.what.launch;
  const std::vector<cl_event> waits = waits_of(step);
  const auto up = [](std::size_t size, std::size_t unit) { return (size + unit - 1) / unit * unit; };
  std::array<std::size_t, 2> offset{how.by_offset ? how.begin : 0, 0};
  std::array<std::size_t, 2> global{up(how.end - offset[0], 16), 1};
  std::array<std::size_t, 2> local{16, 1};
  cl_uint dimensions = 1;
  if (how.kernel == Kernel::to_image || how.kernel == Kernel::from_image) {
    const Object& image = object(step.what.objects[how.kernel == Kernel::to_image ? 1 : 0]);
    global = {up(image.width, 8), up(image.height, 2)};
    local = {8, 2};
    dimensions = 2;
  } else if (how.kernel == Kernel::reverse_local) {
    global[0] = how.end;
    local[0] = how.a;
  } else if (how.two_dimensions) {
    global = {32, up(up(how.end, 32) / 32, 2)};
    local = {8, 2};
    dimensions = 2;
  }
  ok(clEnqueueNDRangeKernel(queue(step), kernel, dimensions, how.by_offset ? offset.data() : nullptr, global.data(),
                            how.no_local ? nullptr : local.data(), count_of(waits), list_of(waits),
                            event_of(step, number)),
     "clEnqueueNDRangeKernel");
}

void Session::launch(Worker& worker, const Step& step, int number) {
  const Launch& how = step.what.launch;
  const int context = program_.queues[index(step.what.queue)].context;
  KernelObject& kernel = worker.kernels[{context, how.kernel, how.slot}];
  cl_int status = CL_SUCCESS;
  if (kernel.handle == nullptr) {
    kernel.handle = clCreateKernel(programs_[index(context)], name_of(how.kernel), &status);
    ok(status, "clCreateKernel");
  }
  set_arguments(kernel, step);
  if (how.cloned) {
    cl_kernel clone = clCloneKernel(kernel.handle, &status);
    ok(status, "clCloneKernel");
    // The clone has arguments of its own.
    if (how.kernel != Kernel::reverse_local && step.what.seed % 2 == 0) {
      const auto last = static_cast<cl_uint>(kernel.set.size() - 1);
      if (last >= step.what.objects.size()) {
        const std::array<cl_uchar, 16> other{};
        ok(clSetKernelArg(kernel.handle, last, kernel.set[last].size() - 1, other.data()), "clSetKernelArg");
        kernel.set[last].clear();
      }
    }
    enqueue_launch(clone, step, number);
    if (step.may_release) {
      ok(clReleaseKernel(clone), "clReleaseKernel");
    } else {
      worker.clones.push_back(clone);
    }
    return;
  }
  enqueue_launch(kernel.handle, step, number);
  if (!step.may_release) return;
  if (step.what.seed % 16 == 0) {  // while it is queued
    ok(clReleaseKernel(kernel.handle), "clReleaseKernel");
    worker.kernels.erase({context, how.kernel, how.slot});
  } else if (step.what.seed % 16 == 1 && !object(step.what.objects[0]).shared) {
    const cl_mem memory = this->memory(step.what.objects[0]);
    ok(clRetainMemObject(memory), "clRetainMemObject");
    ok(clReleaseMemObject(memory), "clReleaseMemObject");
  }
}

}  // namespace random_opencl
