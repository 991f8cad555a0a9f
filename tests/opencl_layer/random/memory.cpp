// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <algorithm>

#include "random_numbers.hpp"

namespace random_opencl {
namespace {

std::ptrdiff_t at(std::size_t offset) { return static_cast<std::ptrdiff_t>(offset); }

}  // namespace

Memory::Place Memory::place_of(int object) const {
  const Object& that = objects_[static_cast<std::size_t>(object)];
  if (that.parent >= 0) return {that.parent, that.origin};
  return {object, 0};
}

void Memory::create(int object) {
  const Object& that = objects_[static_cast<std::size_t>(object)];
  if (that.parent >= 0) return;
  Contents& contents = roots_[static_cast<std::size_t>(object)];
  contents.bytes = has_contents(that) ? random_bytes(that.seed, that.size) : Bytes(that.size);
  contents.defined.assign(that.size, has_contents(that) ? 1 : 0);
}

Contents Memory::read(int object, const Rect& rect) const {
  const Place place = place_of(object);
  const Contents& from = roots_[static_cast<std::size_t>(place.root)];
  Contents packed{Bytes(bytes_of(rect)), Bytes(bytes_of(rect))};
  for_rows(rect, [&](std::size_t offset, std::size_t to, std::size_t size) {
    offset += place.origin;
    std::copy_n(from.bytes.begin() + at(offset), size, packed.bytes.begin() + at(to));
    std::copy_n(from.defined.begin() + at(offset), size, packed.defined.begin() + at(to));
  });
  return packed;
}

void Memory::write(int object, const Rect& rect, const Contents& packed) {
  const Place place = place_of(object);
  Contents& to = roots_[static_cast<std::size_t>(place.root)];
  for_rows(rect, [&](std::size_t offset, std::size_t from, std::size_t size) {
    offset += place.origin;
    std::copy_n(packed.bytes.begin() + at(from), size, to.bytes.begin() + at(offset));
    std::copy_n(packed.defined.begin() + at(from), size, to.defined.begin() + at(offset));
  });
}

void Memory::undefine(int object, const Rect& rect) {
  write(object, rect, {Bytes(bytes_of(rect)), Bytes(bytes_of(rect))});
}

Memory::Element Memory::load(int object, std::size_t index, std::size_t bytes) const {
  const Place place = place_of(object);
  const Contents& from = roots_[static_cast<std::size_t>(place.root)];
  Element element;
  for (std::size_t i = 0; i != bytes; ++i) {
    const std::size_t offset = place.origin + index * bytes + i;
    element.value |= static_cast<std::uint32_t>(from.bytes[offset]) << (8 * i);
    element.defined = element.defined && from.defined[offset] != 0;
  }
  return element;
}

void Memory::store(int object, std::size_t index, Element element, std::size_t bytes) {
  const Place place = place_of(object);
  Contents& to = roots_[static_cast<std::size_t>(place.root)];
  for (std::size_t i = 0; i != bytes; ++i) {
    const std::size_t offset = place.origin + index * bytes + i;
    to.bytes[offset] = static_cast<std::uint8_t>(element.value >> (8 * i));
    to.defined[offset] = element.defined ? 1 : 0;
  }
}

}  // namespace random_opencl
