// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include <algorithm>
#include <cstring>

namespace swapmm::opencl::layer::access {
namespace {

/// Two different mixtures of the same words.
class Mixer {
 public:
  void add(std::uint64_t word) {
    key_.first = (key_.first ^ word) * 0x9E3779B97F4A7C15U;
    key_.first ^= key_.first >> 32U;
    key_.second = (key_.second + word) * 0xC2B2AE3D27D4EB4FU;
    key_.second ^= key_.second >> 29U;
  }

  void add(std::span<const std::byte> bytes) {
    add(bytes.size());
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
      add(word);
    }
  }

  void add_sizes(const std::size_t* values, cl_uint count) {
    add(values == nullptr ? 0 : 1);
    for (cl_uint i = 0; values != nullptr && i < count; ++i) add(values[i]);
  }

  [[nodiscard]] Key key() const { return key_; }

 private:
  Key key_{0x6A09E667F3BCC908U, 0xBB67AE8584CAA73BU};
};

}  // namespace

Key key_of(std::span<const Bound> arguments, const Sizes& sizes) {
  Mixer mixer;
  mixer.add(sizes.dimensions);
  mixer.add_sizes(sizes.offset, sizes.dimensions);
  mixer.add_sizes(sizes.global, sizes.dimensions);
  mixer.add_sizes(sizes.local, sizes.dimensions);
  mixer.add(arguments.size());
  for (const Bound& argument : arguments) {
    mixer.add(static_cast<std::uint64_t>(argument.kind) * 2 + (argument.is_root ? 1 : 0));
    mixer.add(argument.decides_no_place ? std::span<const std::byte>() : argument.bytes);
    mixer.add(argument.size);
  }
  return mixer.key();
}

}  // namespace swapmm::opencl::layer::access
