// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ways through slices and shapes by which programs come to a part of a tensor of bytes.

#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>

#include <swapmm/tensor.hpp>

#include "support/test_program.hpp"

namespace swapmm::test {

/// `size` bytes of a tensor of `all`, from `first` on.
struct ViewPath {
  std::size_t first = 0;
  std::size_t size = 0;
  std::size_t all = 0;
  ViewForm form = ViewForm::direct;

  /// Of rows such that the part begins and ends with one.
  [[nodiscard]] std::size_t width() const {
    const std::size_t width = std::gcd(std::gcd(first, size), all);
    return width == size && width % 2 == 0 ? width / 2 : width;
  }
  /// The extents of the part as a matrix.
  [[nodiscard]] std::size_t rows() const { return size % 2 == 0 ? 2 : 1; }
};

template <Backend B>
[[nodiscard]] View<std::byte, B> view_by(const ViewPath& path, const Tensor<std::byte, B>& tensor) {
  switch (path.form) {
    case ViewForm::direct: break;
    case ViewForm::slice_of_slice: return tensor.slice(path.first, path.all - path.first).slice(0, path.size);
    case ViewForm::rows: {
      const std::size_t width = path.width();
      return tensor.reshape({path.all / width, width}).slice(path.first / width, path.size / width);
    }
    case ViewForm::reshaped: return tensor.slice(path.first, path.size).reshape({path.rows(), path.size / path.rows()});
  }
  return tensor.slice(path.first, path.size);
}

/// The same as C++, for a tensor that `handle` points to; the tensor itself where nothing else is asked for.
[[nodiscard]] std::string text_of_view(const ViewPath& path, std::string_view handle);

}  // namespace swapmm::test
