// SPDX-License-Identifier: Apache-2.0
// What a random OpenCL program consists of: objects, queues, and actions that were drawn from a seed. An action says
// what is done, not what it waits for: that follows from the actions before it (schedule.hpp).
#pragma once

#include <CL/cl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace random_opencl {

using Bytes = std::vector<std::uint8_t>;

inline std::size_t index(int number) { return static_cast<std::size_t>(number); }

/// A buffer, a sub-buffer, an image, or shared virtual memory. Images have pixels of 16 bytes.
struct Object {
  int context = 0;
  bool shared = false;     // coarse-grained shared virtual memory
  int parent = -1;         // a buffer, if this is a sub-buffer
  std::size_t origin = 0;  // in the parent
  std::size_t size = 0;    // bytes
  std::size_t width = 0;   // pixels, of an image; 0: not an image
  std::size_t height = 0;
  cl_mem_flags given_flags = 0;  // as in the call
  cl_mem_flags flags = 0;        // with what a sub-buffer inherits
  std::uint64_t seed = 0;        // of what USE_HOST_PTR and COPY_HOST_PTR bring
};

inline bool is_image(const Object& object) { return object.width != 0; }
inline bool is_buffer(const Object& object) { return !is_image(object) && !object.shared; }
inline bool has_contents(const Object& object) {
  return object.parent < 0 && (object.flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)) != 0;
}

struct Queue {
  int context = 0;
  cl_command_queue_properties properties = 0;
};

inline bool is_in_order(const Queue& queue) { return (queue.properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0; }

/// Places in linear memory, as in clEnqueueReadBufferRect. All in bytes; for images, too.
struct Rect {
  std::array<std::size_t, 3> origin{};
  std::array<std::size_t, 3> region{};
  std::size_t row = 0;    // from one row to the next
  std::size_t slice = 0;  // from one slice to the next
};

enum class Kernel : std::uint8_t {
  hash_fill,      // out[i] = hash(i + a)
  stride_fill,    // out[i * b] = hash(i ^ a)
  add,            // z = x + y; any of them may be the same
  scale,          // x = x * factor + addend, from a struct
  copy,           // y = x
  swap,           // x, y = y, x
  gather,         // out[i] = in[index[i] % a]
  mix_constant,   // x[i] ^= table[i % a], a __constant argument
  reverse_local,  // each work-group reverses its elements in local memory
  bytes,          // x[i] = x[i] * 3 + a, of any number of bytes
  maybe_add,      // x[i] += other[i], or a if other is null; b: the difference of two integers that look like handles
  to_image,       // all pixels
  from_image,
};
constexpr int kernel_count = 13;

struct Launch {
  Kernel kernel = Kernel::hash_fill;
  std::uint32_t begin = 0;  // elements; begin is 0 for images and reverse_local
  std::uint32_t end = 0;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  bool by_offset = false;  // begin is the global work offset
  bool no_local = false;   // the driver chooses the local size
  bool two_dimensions = false;
  bool cloned = false;  // by clCloneKernel
  int slot = 0;         // which of two kernel objects of this name
};

enum class Kind : std::uint8_t {
  create,          // objects[0], of any kind
  release,         // objects[0]
  write,           // objects[0], from the host
  read,            // objects[0], to the host
  copy,            // objects[0] to objects[1]
  fill,            // objects[0]
  map,             // objects[0]
  unmap,           // what action `target` mapped
  launch,          // objects: the arguments
  native,          // a function of the host: objects[1][i] = objects[0][i] * 5 + a
  user_event,      // makes one; commands after it may wait for it
  set_user_event,  // of action `target`
  barrier,
  marker,
  finish,
  flush,
  wait,  // clWaitForEvents()
  new_queue,
  // Steps of a schedule only:
  check_read,    // compares what step `target` has read
  touch_map,     // the host reads and changes what step `target` has mapped
  join_setters,  // waits for the threads that set user events
};

struct Action {
  Kind kind{};
  int section = 0;
  int thread = 0;
  std::uint64_t seed = 0;  // of choices that are made later, and of data
  std::uint64_t data = 0;  // of data, beside the seed
  int queue = 0;
  std::vector<int> objects;  // -1: a null argument
  std::array<Rect, 2> at{};  // where in objects[0] and objects[1]
  Rect host;                 // of a read or write
  bool linear = true;        // not clEnqueue...Rect
  bool blocking = false;
  // user_event: it will be set to an error. set_user_event: to an error. Commands: they wait for such an event, or for
  // another command that does, so they never run.
  bool fails = false;
  std::size_t pattern = 0;  // bytes, of a fill
  cl_map_flags map_flags = 0;
  Launch launch;
  int target = -1;
};

inline std::uint64_t data_seed(const Action& action) { return action.seed ^ action.data; }

/// Serial sections run in the main thread, others in several threads of their own.
struct Section {
  int threads = 1;
  bool releases = true;  // otherwise it may have user events, if it is not serial
};

struct Program {
  std::uint64_t seed = 0;
  int contexts = 1;
  std::vector<Queue> queues;
  std::vector<Object> objects;
  std::vector<Section> sections;
  std::vector<Action> actions;
};

struct DrawOptions {
  bool loops = false;  // a body that is repeated
  bool large = false;
  bool images = true;
  bool image_maps = true;
  bool image_copies = true;  // between an image and a buffer
  bool copy_rects = true;    // clEnqueueCopyBufferRect()
  bool native_kernels = true;
  bool shared_memory = true;
  bool failures = true;  // user events that are set to an error
};

Program draw_program(std::uint64_t seed, const DrawOptions& options);

/// Where sub-buffers may begin: a multiple of CL_DEVICE_MEM_BASE_ADDR_ALIGN of every device that we know.
constexpr std::size_t sub_buffer_alignment = 512;

inline bool kernel_reads(const Object& object) { return (object.flags & CL_MEM_WRITE_ONLY) == 0; }
inline bool kernel_writes(const Object& object) { return (object.flags & CL_MEM_READ_ONLY) == 0; }
inline bool host_reads(const Object& object) {
  return (object.flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)) == 0;
}
inline bool host_writes(const Object& object) {
  return (object.flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)) == 0;
}

/// Calls function(offset, packed offset, bytes) for each row of the rectangle.
template <class Function>
void for_rows(const Rect& rect, Function function) {
  std::size_t packed = 0;
  for (std::size_t z = 0; z != rect.region[2]; ++z) {
    for (std::size_t y = 0; y != rect.region[1]; ++y) {
      const std::size_t offset = rect.origin[0] + (rect.origin[1] + y) * rect.row + (rect.origin[2] + z) * rect.slice;
      function(offset, packed, rect.region[0]);
      packed += rect.region[0];
    }
  }
}

inline std::size_t bytes_of(const Rect& rect) { return rect.region[0] * rect.region[1] * rect.region[2]; }

inline std::size_t begin_of(const Rect& rect) {
  return rect.origin[0] + rect.origin[1] * rect.row + rect.origin[2] * rect.slice;
}

/// Where the last byte ends.
inline std::size_t end_of(const Rect& rect) {
  return rect.origin[0] + rect.region[0] + (rect.origin[1] + rect.region[1] - 1) * rect.row +
         (rect.origin[2] + rect.region[2] - 1) * rect.slice;
}

inline Rect linear_rect(std::size_t offset, std::size_t size) { return {{offset, 0, 0}, {size, 1, 1}, size, size}; }

}  // namespace random_opencl
