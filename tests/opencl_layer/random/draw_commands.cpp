// SPDX-License-Identifier: Apache-2.0
// The part of the drawing that makes commands on memory.

#include <algorithm>
#include <array>
#include <utility>

#include "draw.hpp"

namespace random_opencl {
Rect Drawing::draw_range(int id) {
  const std::size_t size = object(id).size;
  if (random_.chance(40)) return linear_rect(0, size);
  const std::size_t begin = random_.below(size);
  return linear_rect(begin, random_.between(1, size - begin));
}

Rect Drawing::draw_image_rect(int id) {
  const Object& image = object(id);
  const std::size_t row = image.width * 16;
  if (random_.chance(40)) return {{0, 0, 0}, {row, image.height, 1}, row, image.size};
  const std::size_t x = random_.below(image.width);
  const std::size_t y = random_.below(image.height);
  return {{x * 16, y, 0},
          {random_.between(1, image.width - x) * 16, random_.between(1, image.height - y), 1},
          row,
          image.size};
}

/// One box in several memories of these sizes, with pitches of their own.
bool Drawing::draw_boxes(const std::vector<std::size_t>& sizes, std::vector<Rect*> rects) {
  const std::size_t least = *std::min_element(sizes.begin(), sizes.end());
  const std::array<std::size_t, 3> region{random_.between(1, std::min<std::size_t>(least, options_.large ? 700 : 40)),
                                          random_.between(1, 6), random_.between(1, 3)};
  for (std::size_t i = 0; i != sizes.size(); ++i) {
    Rect& rect = *rects[i];
    rect.region = region;
    rect.row = region[0] + (random_.chance(50) ? random_.below(9) : 0);
    rect.slice = rect.row * (region[1] + (random_.chance(50) ? random_.below(3) : 0));
    rect.origin = {};
    if (end_of(rect) > sizes[i]) return false;
    if (random_.chance(60)) {
      rect.origin[0] = random_.below(std::max<std::size_t>(rect.row - region[0], 1));
      rect.origin[1] = random_.below(3);
      rect.origin[2] = random_.below(2);
      if (end_of(rect) > sizes[i]) rect.origin = {};
    }
  }
  return true;
}

bool Drawing::draw_transfer(Kind kind) {
  const bool image = random_.chance(15);
  const int id = pick({kind == Kind::write ? Use::host_writes : Use::host_reads}, image);
  if (id < 0) return false;
  Action transfer = action(kind);
  transfer.objects = {id};
  transfer.blocking = random_.chance(40);
  if (image) {
    transfer.linear = false;
    transfer.at[0] = draw_image_rect(id);
    transfer.host = transfer.at[0];
    transfer.host.origin = {};
    transfer.host.row = transfer.host.region[0] + (random_.chance(50) ? random_.below(4) * 16 : 0);
    transfer.host.slice = transfer.host.row * transfer.host.region[1];
  } else if (random_.chance(30)) {
    if (object(id).shared) return false;
    transfer.linear = false;
    const std::size_t host_size = object(id).size * 2 + 64;
    if (!draw_boxes({object(id).size, host_size}, {&transfer.at[0], &transfer.host})) return false;
  } else {
    transfer.at[0] = draw_range(id);
    transfer.host = linear_rect(0, transfer.at[0].region[0]);
  }
  return add(std::move(transfer));
}

bool Drawing::draw_copy() {
  const bool from_image = random_.chance(15);
  const bool to_image = random_.chance(15);
  const int from = pick({Use::copy_source}, from_image);
  const int to = pick({Use::copy_target}, to_image);
  if (from < 0 || to < 0 || object(from).shared != object(to).shared) return false;
  Action copy = action(Kind::copy);
  copy.objects = {from, to};
  const std::size_t from_size = object(from).size;
  const std::size_t to_size = object(to).size;
  if (from_image || to_image) {
    copy.linear = false;
    if (from_image && to_image) {
      if (from == to) return false;
      copy.at[0] = draw_image_rect(from);
      copy.at[1] = draw_image_rect(to);
      for (std::size_t i = 0; i != 2; ++i) {
        const std::size_t region = std::min(copy.at[0].region[i], copy.at[1].region[i]);
        copy.at[0].region[i] = copy.at[1].region[i] = region;
      }
      return add(std::move(copy));
    }
    if (!options_.image_copies) return false;
    const std::size_t image_side = from_image ? 0 : 1;
    const std::size_t buffer_size = from_image ? to_size : from_size;
    copy.at[image_side] = draw_image_rect(from_image ? from : to);
    Rect& buffer = copy.at[1 - image_side];
    buffer.region = copy.at[image_side].region;
    buffer.row = buffer.region[0];
    buffer.slice = buffer.row * buffer.region[1];
    // PoCL 3.1 crashes if it is a sub-buffer.
    if (end_of(buffer) > buffer_size || object(from_image ? to : from).parent >= 0) return false;
    buffer.origin[0] = random_.below(buffer_size - end_of(buffer) + 1);
    return add(std::move(copy));
  }
  if (random_.chance(30)) {
    if (!options_.copy_rects || object(from).shared) return false;
    copy.linear = false;
    // PoCL 3.1 crashes in clEnqueueCopyBufferRect() if one of them is a sub-buffer.
    if (root_of(from) == root_of(to) || object(from).parent >= 0 || object(to).parent >= 0) return false;
    if (!draw_boxes({from_size, to_size}, {&copy.at[0], &copy.at[1]})) return false;
    return add(std::move(copy));
  }
  const Rect place = draw_range(from);
  const std::size_t size = std::min(place.region[0], to_size);
  copy.at[0] = linear_rect(place.origin[0], size);
  copy.at[1] = linear_rect(random_.below(to_size - size + 1), size);
  if (root_of(from) == root_of(to)) {
    const std::size_t begin = object(from).origin + copy.at[0].origin[0];
    const std::size_t other = object(to).origin + copy.at[1].origin[0];
    if (begin < other + size && other < begin + size) return false;
  }
  return add(std::move(copy));
}

bool Drawing::draw_fill() {
  const bool image = random_.chance(10);
  const int id = pick({Use::copy_target}, image);
  if (id < 0) return false;
  Action fill = action(Kind::fill);
  fill.objects = {id};
  fill.pattern = image ? 16 : std::size_t{1} << random_.below(8);
  if (image) {
    fill.linear = false;
    fill.at[0] = draw_image_rect(id);
  } else {
    const Rect range = draw_range(id);
    const std::size_t begin = range.origin[0] / fill.pattern * fill.pattern;
    const std::size_t size = range.region[0] / fill.pattern * fill.pattern;
    if (size == 0) return false;
    fill.at[0] = linear_rect(begin, size);
  }
  return add(std::move(fill));
}

bool Drawing::draw_map() {
  const bool image = random_.chance(10) && options_.image_maps;
  constexpr std::array<cl_map_flags, 4> kinds{CL_MAP_READ, CL_MAP_WRITE, CL_MAP_READ | CL_MAP_WRITE,
                                              CL_MAP_WRITE_INVALIDATE_REGION};
  const cl_map_flags flags = kinds[random_.below(kinds.size())];
  int id = -1;
  if (flags == CL_MAP_READ) id = pick({Use::host_reads}, image);
  if (flags == (CL_MAP_READ | CL_MAP_WRITE)) id = pick({Use::host_reads, Use::host_writes}, image);
  if ((flags & CL_MAP_READ) == 0) id = pick({Use::host_writes}, image);
  if (id < 0) return false;
  Action map = action(Kind::map);
  map.objects = {id};
  map.blocking = random_.chance(50);
  map.map_flags = flags;
  map.linear = !image;
  map.at[0] = image ? draw_image_rect(id) : draw_range(id);
  maps_.push_back(static_cast<int>(program_.actions.size()));
  return add(std::move(map));
}

bool Drawing::draw_unmap() {
  if (maps_.empty()) return false;
  Action unmap = action(Kind::unmap);
  unmap.target = random_.one_of(maps_);  // perhaps again: then it is no longer there
  return add(std::move(unmap));
}

std::optional<std::vector<int>> Drawing::draw_arguments(Kernel kernel) {
  const std::vector<Use> in{Use::reads};
  const std::vector<Use> out{Use::writes};
  const std::vector<Use> both{Use::reads, Use::writes};
  std::vector<int> objects;
  switch (kernel) {
    case Kernel::hash_fill:
    case Kernel::stride_fill: objects = {pick(out, false, 4)}; break;
    case Kernel::scale: objects = {pick(both, false, 4)}; break;
    case Kernel::bytes: objects = {pick(both)}; break;
    case Kernel::add: {
      objects = {pick(in, false, 4), pick(in, false, 4), pick(out, false, 4)};
      if (random_.chance(25)) objects[1] = objects[0];
      if (random_.chance(25)) {
        objects[2] = pick(both, false, 4);
        objects[random_.below(2)] = objects[2];
      }
      break;
    }
    case Kernel::copy: objects = {pick(in, false, 4), pick(out, false, 4)}; break;
    case Kernel::reverse_local: objects = {pick(in, false, 64), pick(out, false, 64)}; break;
    case Kernel::swap: objects = {pick(both, false, 4), pick(both, false, 4)}; break;
    case Kernel::gather: objects = {pick(in, false, 4), pick(in, false, 4), pick(out, false, 4)}; break;
    case Kernel::mix_constant: objects = {pick(in, false, 4), pick(both, false, 4)}; break;
    case Kernel::maybe_add: objects = {pick(both, false, 4), pick(in, false, 4)}; break;
    case Kernel::to_image: objects = {pick(in, false, 16), pick(out, true)}; break;
    case Kernel::from_image: objects = {pick(in, true), pick(out, false, 16)}; break;
  }
  if (kernel == Kernel::maybe_add && (objects[1] < 0 || random_.chance(40))) {
    if (objects[0] < 0) return std::nullopt;
    return std::vector<int>{objects[0], -1};
  }
  for (const int id : objects) {
    if (id < 0) return std::nullopt;
  }
  return objects;
}

bool Drawing::draw_launch() {
  Action launch = action(Kind::launch);
  Launch& how = launch.launch;
  how.kernel = static_cast<Kernel>(random_.below(kernel_count));
  const auto drawn = draw_arguments(how.kernel);
  if (!drawn) return false;
  const std::vector<int>& objects = *drawn;
  launch.objects = objects;
  how.a = static_cast<std::uint32_t>(random_.next());
  how.b = static_cast<std::uint32_t>(random_.next());
  how.slot = static_cast<int>(random_.below(2));
  // The number of elements, and which arguments are written and must not overlap with others.
  std::size_t count = SIZE_MAX;
  const bool of_bytes = how.kernel == Kernel::bytes;
  for (std::size_t i = 0; i != objects.size(); ++i) {
    const bool counts =
        objects[i] >= 0 && !(how.kernel == Kernel::gather && i == 0) && !(how.kernel == Kernel::mix_constant && i == 0);
    if (counts) count = std::min(count, of_bytes ? object(objects[i]).size : elements(objects[i]));
  }
  const bool by_element = how.kernel == Kernel::add || how.kernel == Kernel::maybe_add;
  for (std::size_t i = 0; i != objects.size(); ++i) {
    for (std::size_t j = 0; j != i; ++j) {
      if (objects[i] < 0 || objects[j] < 0 || root_of(objects[i]) != root_of(objects[j])) continue;
      const bool both_read = (how.kernel == Kernel::gather || how.kernel == Kernel::add) && i == 1 && j == 0;
      if (!both_read && !(by_element && objects[i] == objects[j])) return false;
    }
  }
  how.begin = 0;
  how.end = static_cast<std::uint32_t>(count);
  switch (how.kernel) {
    case Kernel::to_image:
    case Kernel::from_image: {
      const std::size_t image = how.kernel == Kernel::to_image ? 1 : 0;
      const std::size_t pixels = object(objects[image]).size / 4;
      if (elements(objects[1 - image]) < pixels) return false;
      how.end = static_cast<std::uint32_t>(pixels);
      return add(std::move(launch));
    }
    case Kernel::reverse_local:
      how.a = random_.chance(50) ? 16 : 8;
      how.end = static_cast<std::uint32_t>(random_.between(1, count / 16) * 16);
      return add(std::move(launch));
    case Kernel::stride_fill:
      how.b = static_cast<std::uint32_t>(random_.between(2, 5));
      how.end = (how.end + how.b - 1) / how.b;
      break;
    case Kernel::gather: how.a = static_cast<std::uint32_t>(elements(objects[0])); break;
    case Kernel::mix_constant:
      how.a = static_cast<std::uint32_t>(elements(objects[0]));
      if (object(objects[0]).size > 65536) return false;  // CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE
      break;
    default: break;
  }
  if (random_.chance(50)) {
    how.begin = static_cast<std::uint32_t>(random_.below(how.end));
    how.end = static_cast<std::uint32_t>(random_.between(how.begin + 1, how.end));
    how.by_offset = random_.chance(50);
  }
  how.two_dimensions = how.begin == 0 && random_.chance(20);
  // PoCL 3.1 crashes if a clone has a null argument.
  how.cloned = random_.chance(10) && std::count(objects.begin(), objects.end(), -1) == 0;
  how.no_local = !how.two_dimensions && how.end <= 4096 && random_.chance(5);
  return add(std::move(launch));
}

/// Whether their numbers tell which was made first: not if two threads of a section made them.
bool Drawing::are_made_in_order(int a, int b) const {
  const auto maker = [&](int id) {
    for (const Action& each : program_.actions) {
      if (each.kind == Kind::create && each.objects[0] == id) return std::pair(each.section, each.thread);
    }
    return std::pair(section_, thread_);
  };
  const auto [section, thread] = maker(a);
  const auto [other_section, other_thread] = maker(b);
  return section != other_section || thread == other_thread;
}

bool Drawing::draw_native() {
  if (!options_.native_kernels) return false;
  const int from = pick({Use::reads}, false, 4);
  const int to = pick({Use::writes}, false, 4);
  if (from < 0 || to < 0 || object(from).shared || object(to).shared) return false;
  // PoCL 3.1 passes the address of the whole buffer in place of a sub-buffer's.
  if (object(from).parent >= 0 || object(to).parent >= 0 || !are_made_in_order(from, to)) return false;
  Action native = action(Kind::native);
  native.objects = {from, to};
  native.launch.a = static_cast<std::uint32_t>(random_.next());
  native.launch.end = static_cast<std::uint32_t>(random_.between(1, std::min(elements(from), elements(to))));
  native.launch.begin = random_.chance(50) ? 0 : static_cast<std::uint32_t>(random_.below(native.launch.end));
  return add(std::move(native));
}

}  // namespace random_opencl
