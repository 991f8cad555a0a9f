// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <swapmm/error.hpp>

namespace swapmm::test {

/// Whether these are the names of the tensors, in their order.
[[nodiscard]] inline bool names_are(const std::vector<TensorName>& tensors,
                                    std::initializer_list<std::string_view> names) {
  return std::equal(tensors.begin(), tensors.end(), names.begin(), names.end(),
                    [](const TensorName& tensor, std::string_view name) { return tensor.name == name; });
}

/// Whether a tensor of that name is among them.
[[nodiscard]] inline bool has_name(const std::vector<TensorName>& tensors, std::string_view name) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const TensorName& each) { return each.name == name; });
}

}  // namespace swapmm::test
