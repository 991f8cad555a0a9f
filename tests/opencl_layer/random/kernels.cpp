// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include "random_numbers.hpp"

namespace random_opencl {

const char* const kernel_source = R"(
typedef struct { uint factor; ushort shift; uchar flag; uint addend; } Scale;

uint hash(uint value) {
  value ^= value >> 16;
  value *= 0x7feb352du;
  value ^= value >> 15;
  value *= 0x846ca68bu;
  value ^= value >> 16;
  return value;
}

uint place(void) { return (uint)(get_global_id(1) * get_global_size(0) + get_global_id(0)); }

kernel void hash_fill(global uint* out, uint begin, uint end, uint a) {
  uint i = place();
  if (i >= begin && i < end) out[i] = hash(i + a);
}
kernel void stride_fill(global uint* out, uint begin, uint end, uint a, uint b) {
  uint i = place();
  if (i >= begin && i < end) out[i * b] = hash(i ^ a);
}
kernel void add(global const uint* x, global const uint* y, global uint* z, uint begin, uint end) {
  uint i = place();
  if (i >= begin && i < end) z[i] = x[i] + y[i];
}
kernel void scale(global uint* x, Scale s, uint begin, uint end) {
  uint i = place();
  if (i >= begin && i < end) x[i] = ((x[i] * s.factor) >> s.shift) + (s.flag ? s.addend : 1u);
}
kernel void copy(global const uint* x, global uint* y, uint begin, uint end) {
  uint i = place();
  if (i >= begin && i < end) y[i] = x[i];
}
kernel void swap(global uint* x, global uint* y, uint begin, uint end) {
  uint i = place();
  if (i < begin || i >= end) return;
  uint was = x[i];
  x[i] = y[i];
  y[i] = was;
}
kernel void gather(global const uint* in, global const uint* index, global uint* out, uint begin, uint end, uint a) {
  uint i = place();
  if (i >= begin && i < end) out[i] = in[index[i] % a];
}
kernel void mix_constant(constant uint* table, global uint* x, uint begin, uint end, uint a) {
  uint i = place();
  if (i >= begin && i < end) x[i] ^= table[i % a];
}
kernel void reverse_local(global const uint* in, global uint* out, local uint* kept) {
  uint l = (uint)get_local_id(0);
  kept[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = kept[get_local_size(0) - 1 - l];
}
kernel void bytes(global uchar* x, uint begin, uint end, uint a) {
  uint i = place();
  if (i >= begin && i < end) x[i] = (uchar)(x[i] * 3 + a);
}
kernel void maybe_add(global uint* x, global const uint* other, uint begin, uint end, uint a, ulong p, ulong q) {
  uint i = place();
  if (i >= begin && i < end) x[i] += (other ? other[i] : a) + (uint)(p - q);
}
kernel void to_image(global const uint* in, write_only image2d_t out, uint width, uint height) {
  uint x = (uint)get_global_id(0), y = (uint)get_global_id(1);
  if (x >= width || y >= height) return;
  uint i = (y * width + x) * 4;
  write_imageui(out, (int2)((int)x, (int)y), (uint4)(in[i], in[i + 1], in[i + 2], in[i + 3]));
}
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
kernel void from_image(read_only image2d_t in, global uint* out, uint width, uint height) {
  uint x = (uint)get_global_id(0), y = (uint)get_global_id(1);
  if (x >= width || y >= height) return;
  uint4 pixel = read_imageui(in, nearest, (int2)((int)x, (int)y));
  uint i = (y * width + x) * 4;
  out[i] = pixel.x;
  out[i + 1] = pixel.y;
  out[i + 2] = pixel.z;
  out[i + 3] = pixel.w;
}
)";

const char* name_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::hash_fill: return "hash_fill";
    case Kernel::stride_fill: return "stride_fill";
    case Kernel::add: return "add";
    case Kernel::scale: return "scale";
    case Kernel::copy: return "copy";
    case Kernel::swap: return "swap";
    case Kernel::gather: return "gather";
    case Kernel::mix_constant: return "mix_constant";
    case Kernel::reverse_local: return "reverse_local";
    case Kernel::bytes: return "bytes";
    case Kernel::maybe_add: return "maybe_add";
    case Kernel::to_image: return "to_image";
    case Kernel::from_image: return "from_image";
  }
  return "";
}

Scale scale_of(const Launch& launch) {
  return {launch.a | 1U, static_cast<cl_ushort>(launch.b % 3), static_cast<cl_uchar>(launch.b / 3 % 2), launch.b};
}

namespace {

const Object& object_of(const std::vector<Object>& objects, int object) {
  return objects[static_cast<std::size_t>(object)];
}

std::vector<Access> accesses_of_launch(const Action& action, const std::vector<Object>& objects) {
  const Launch& launch = action.launch;
  const std::vector<int>& argument = action.objects;
  std::vector<Access> all;
  const auto elements = [&](std::size_t which, bool write, std::size_t scale = 4) {
    if (argument[which] >= 0) all.push_back({argument[which], launch.begin * scale, launch.end * scale, write});
  };
  const auto whole = [&](std::size_t which, bool write) {
    all.push_back({argument[which], 0, object_of(objects, argument[which]).size, write});
  };
  switch (launch.kernel) {
    case Kernel::hash_fill:
    case Kernel::scale: elements(0, true); break;
    case Kernel::stride_fill:
      all.push_back({argument[0], std::size_t{launch.begin} * launch.b * 4,
                     (std::size_t{launch.end - 1} * launch.b + 1) * 4, true});
      break;
    case Kernel::add:
      elements(0, false);
      elements(1, false);
      elements(2, true);
      break;
    case Kernel::reverse_local:
    case Kernel::copy:
      elements(0, false);
      elements(1, true);
      break;
    case Kernel::swap:
      elements(0, true);
      elements(1, true);
      break;
    case Kernel::gather:
      all.push_back({argument[0], 0, std::size_t{launch.a} * 4, false});
      elements(1, false);
      elements(2, true);
      break;
    case Kernel::mix_constant:
      whole(0, false);
      elements(1, true);
      break;
    case Kernel::bytes: elements(0, true, 1); break;
    case Kernel::maybe_add:
      elements(0, true);
      elements(1, false);
      break;
    case Kernel::to_image:
      all.push_back({argument[0], 0, object_of(objects, argument[1]).size, false});
      whole(1, true);
      break;
    case Kernel::from_image:
      whole(0, false);
      all.push_back({argument[1], 0, object_of(objects, argument[0]).size, true});
      break;
  }
  return all;
}

}  // namespace

std::vector<Access> accesses_of(const Action& action, const std::vector<Object>& objects) {
  if (action.kind == Kind::launch) return accesses_of_launch(action, objects);
  const auto place = [&](std::size_t which, bool write) {
    Access access{action.objects[which], begin_of(action.at[which]), end_of(action.at[which]), write};
    // A rectangle of an image is not a range of bytes.
    if (is_image(object_of(objects, access.object))) {
      access.begin = 0;
      access.end = object_of(objects, access.object).size;
    }
    return access;
  };
  switch (action.kind) {
    case Kind::write:
    case Kind::fill: return {place(0, true)};
    case Kind::read: return {place(0, false)};
    case Kind::copy: return {place(0, false), place(1, true)};
    // Maps of shared memory are told apart by their addresses, so they do not overlap.
    case Kind::map: return {place(0, action.map_flags != CL_MAP_READ || object_of(objects, action.objects[0]).shared)};
    case Kind::native: {
      const std::size_t begin = std::size_t{action.launch.begin} * 4;
      const std::size_t end = std::size_t{action.launch.end} * 4;
      return {{action.objects[0], begin, end, false}, {action.objects[1], begin, end, true}};
    }
    default: return {};
  }
}

void run_on_host(const Action& action, Memory& memory) {
  const Launch& launch = action.launch;
  const std::vector<int>& argument = action.objects;
  using Element = Memory::Element;
  const auto known = [](std::uint32_t value) { return Element{value, true}; };
  const auto sum = [](Element x, Element y) { return Element{x.value + y.value, x.defined && y.defined}; };
  if (action.kind == Kind::native) {
    for (std::uint32_t i = launch.begin; i != launch.end; ++i) {
      const Element x = memory.load(argument[0], i);
      memory.store(argument[1], i, {native_element(x.value, launch.a), x.defined});
    }
    return;
  }
  if (launch.kernel == Kernel::reverse_local) {
    const std::uint32_t group = launch.a;
    std::vector<Element> kept(launch.end);
    for (std::uint32_t i = 0; i != launch.end; ++i) kept[i] = memory.load(argument[0], i);
    for (std::uint32_t i = 0; i != launch.end; ++i) {
      memory.store(argument[1], i, kept[i / group * group + (group - 1 - i % group)]);
    }
    return;
  }
  for (std::uint32_t i = launch.begin; i != launch.end; ++i) {
    switch (launch.kernel) {
      case Kernel::hash_fill: memory.store(argument[0], i, known(hash_of(i + launch.a))); break;
      case Kernel::stride_fill:
        memory.store(argument[0], std::size_t{i} * launch.b, known(hash_of(i ^ launch.a)));
        break;
      case Kernel::add:
        memory.store(argument[2], i, sum(memory.load(argument[0], i), memory.load(argument[1], i)));
        break;
      case Kernel::scale: {
        const Scale scale = scale_of(launch);
        Element x = memory.load(argument[0], i);
        x.value = ((x.value * scale.factor) >> scale.shift) + (scale.flag != 0 ? scale.addend : 1U);
        memory.store(argument[0], i, x);
        break;
      }
      case Kernel::to_image:
      case Kernel::from_image:
      case Kernel::copy: memory.store(argument[1], i, memory.load(argument[0], i)); break;
      case Kernel::swap: {
        const Element x = memory.load(argument[0], i);
        memory.store(argument[0], i, memory.load(argument[1], i));
        memory.store(argument[1], i, x);
        break;
      }
      case Kernel::gather: {
        const Element index = memory.load(argument[1], i);
        Element x = memory.load(argument[0], index.value % launch.a);
        x.defined = x.defined && index.defined;
        memory.store(argument[2], i, x);
        break;
      }
      case Kernel::mix_constant: {
        const Element table = memory.load(argument[0], i % launch.a);
        const Element x = memory.load(argument[1], i);
        memory.store(argument[1], i, {x.value ^ table.value, x.defined && table.defined});
        break;
      }
      case Kernel::bytes: {
        Element x = memory.load(argument[0], i, 1);
        x.value = x.value * 3 + launch.a;
        memory.store(argument[0], i, x, 1);
        break;
      }
      case Kernel::maybe_add: {
        const Element other = argument[1] < 0 ? known(launch.a) : memory.load(argument[1], i);
        memory.store(argument[0], i, sum(sum(memory.load(argument[0], i), other), known(launch.b)));
        break;
      }
      case Kernel::reverse_local: break;
    }
  }
}

}  // namespace random_opencl
