// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the values of a program's tensors must be, whatever moves: a version per slice.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <swapmm/backend/testing/simulated/pattern.hpp>
#include <swapmm/options.hpp>

#include "support/program/view.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

/// Slices [first, end).
struct SliceRange {
  std::size_t first = 0;
  std::size_t end = 0;
};

using SliceVersions = std::array<std::uint32_t, most_slices>;

/// Where the slices of a tensor lie, and the bytes that they hold.
struct SlicedBytes {
  std::uint64_t id = 0;  ///< never used twice in a program
  std::uint32_t bytes = 0;
  std::uint32_t slices = 1;
  std::uint32_t unit = 1;  ///< slices begin at multiples of it

  [[nodiscard]] std::size_t begin(std::size_t slice) const {
    if (slice == slices) return bytes;
    const std::size_t even = std::size_t{bytes} * slice / slices;
    return even - even % unit;
  }
  [[nodiscard]] SliceRange range(std::size_t first, std::size_t count) const {
    first %= slices;
    return {first, std::min<std::size_t>(first + count, slices)};
  }
  [[nodiscard]] bool whole(const SliceRange& range) const { return range.first == 0 && range.end == slices; }
  [[nodiscard]] std::size_t size(const SliceRange& range) const { return begin(range.end) - begin(range.first); }

  [[nodiscard]] ViewPath path(const SliceRange& range, ViewForm form) const {
    return {begin(range.first), size(range), bytes, form};
  }
  /// Of the pattern that fills a slice.
  [[nodiscard]] std::uint64_t key(std::size_t slice) const { return id * most_slices + slice; }

  /// `data` is where the range begins. Version 0 is zeros: the first value that a host view gives.
  void fill(std::byte* data, const SliceRange& range, const SliceVersions& versions) const {
    for (std::size_t slice = range.first; slice < range.end; ++slice) {
      const std::span<std::byte> part = at(data, range, slice);
      if (versions[slice] == 0) {
        std::fill(part.begin(), part.end(), std::byte{0});
      } else {
        simulated::fill(part, key(slice), versions[slice]);
      }
    }
  }
  /// The first wrong slice, if any.
  [[nodiscard]] simulated::Finding check(const std::byte* data, const SliceRange& range,
                                         const SliceVersions& versions) const {
    for (std::size_t slice = range.first; slice < range.end; ++slice) {
      const auto part = at(const_cast<std::byte*>(data), range, slice);
      simulated::Finding finding =
          versions[slice] == 0 ? check_zeros(part) : simulated::check(part, key(slice), versions[slice]);
      if (finding.found == simulated::Found::exact) continue;
      finding.offset += begin(slice);
      return finding;
    }
    return {};
  }

 private:
  [[nodiscard]] static simulated::Finding check_zeros(std::span<const std::byte> bytes) {
    const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](std::byte byte) { return byte != std::byte{0}; });
    if (wrong == bytes.end()) return {};
    return {simulated::Found::foreign, static_cast<std::size_t>(wrong - bytes.begin()), 0};
  }
  [[nodiscard]] std::span<std::byte> at(std::byte* data, const SliceRange& range, std::size_t slice) const {
    return {data + (begin(slice) - begin(range.first)), begin(slice + 1) - begin(slice)};
  }
};

/// One tensor as the program must see it.
struct ModelTensor {
  enum class Value : std::uint8_t {
    none,     ///< nobody wrote it
    there,    ///< each read must find it
    faded,    ///< transient, of an iteration that ended: a read finds it or is refused
    dropped,  ///< a read was refused with DroppedValue
  };
  bool exists = false;
  bool kept = false;
  bool transient = false;
  bool local = false;  ///< made in the current iteration: a plan knows it by its place alone
  bool uneven = false;
  bool viewed = false;  ///< the host can see it through a host view: no plan may drop it
  Value value = Value::none;
  std::uint32_t drops = 0;
  SlicedBytes layout;
  SliceVersions versions{};

  void write(const SliceRange& range) {
    for (std::size_t slice = range.first; slice < range.end; ++slice) ++versions[slice];
    value = Value::there;
  }
  /// What an operation uses of it.
  [[nodiscard]] SliceRange range(const Part& part) const {
    return uneven ? SliceRange{0, layout.slices} : layout.range(part.first, part.count);
  }
};

using ModelTensors = std::array<ModelTensor, slot_count>;

/// What ActionKind::make makes.
[[nodiscard]] inline ModelTensor made_tensor(const Action& make, std::uint64_t id, Bytes alignment) {
  ModelTensor tensor;
  tensor.exists = true;
  tensor.kept = make.lifetime == Lifetime::kept;
  tensor.transient = make.lifetime == Lifetime::transient;
  tensor.uneven = make.uneven;
  const auto unit = make.uneven ? 1U : static_cast<std::uint32_t>(alignment.value);
  tensor.layout = {id, make.bytes, make.slices, unit};
  if (make.bytes < make.slices * unit) tensor.layout.slices = 1;
  return tensor;
}

/// The name of its tensor.
[[nodiscard]] inline std::string name_of(const ModelTensor& tensor) { return "t" + std::to_string(tensor.layout.id); }

}  // namespace swapmm::test
