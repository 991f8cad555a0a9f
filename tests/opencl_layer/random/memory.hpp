// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program.hpp"

namespace random_opencl {

/// Bytes and which of them the specification defines.
struct Contents {
  Bytes bytes;
  Bytes defined;  // 1 or 0 for each byte
};

/// The host's model of all objects: what each byte must be.
class Memory {
 public:
  explicit Memory(const std::vector<Object>& objects) : objects_(objects), roots_(objects.size()) {}

  void create(int object);
  Contents read(int object, const Rect& rect) const;
  void write(int object, const Rect& rect, const Contents& packed);
  void undefine(int object, const Rect& rect);

  struct Element {
    std::uint32_t value = 0;
    bool defined = true;
  };
  /// The element of `bytes` bytes with that index.
  Element load(int object, std::size_t index, std::size_t bytes = 4) const;
  void store(int object, std::size_t index, Element element, std::size_t bytes = 4);

 private:
  struct Place {
    int root;
    std::size_t origin;
  };
  Place place_of(int object) const;

  const std::vector<Object>& objects_;
  std::vector<Contents> roots_;
};

}  // namespace random_opencl
