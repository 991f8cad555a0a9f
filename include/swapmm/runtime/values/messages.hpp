// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm::runtime {

/// Texts of errors, built out of line: they name the operation, the tensors and the numbers.
struct NamedSize {
  std::string name;
  Bytes bytes;
};

/// "a" (1024 bytes), "b" (512 bytes) and 3 more: the largest first.
[[nodiscard]] std::string largest_tensors(std::vector<NamedSize> tensors);

[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string bundle_too_large(std::string_view operation, Bytes need, Bytes budget,
                                                                  std::vector<NamedSize> tensors);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string bundle_does_not_pack(std::string_view operation, Bytes need,
                                                                      Bytes budget, Bytes arena,
                                                                      std::vector<NamedSize> tensors);
/// Whose error it is; the text is built only where there is one.
struct Who {
  std::string_view what;  ///< "operation ", "download of tensor "
  std::string_view name;  ///< may be empty
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string text() const;
};

[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string undefined_value(const Who& who, std::string_view tensor);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string misaligned_view(std::string_view tensor, Bytes offset,
                                                                 Bytes alignment);
/// `tensor`: the name of the one that is gone; null if it is no longer known.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string view_of_no_tensor(std::string_view what, const std::string* tensor);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string no_tensor_in_bundle(std::string_view operation, std::size_t position,
                                                                     const std::string* tensor);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string dropped_value(const Who& who, std::string_view tensor);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string lost_value(const Who& who, std::string_view tensor);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string in_quotes(std::string_view name);
/// A list of quoted names, cut after eight.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string name_list(const std::vector<std::string>& names);

}  // namespace swapmm::runtime
