// SPDX-License-Identifier: Apache-2.0
#pragma once

// Choosing the device to run on, in the same way for every API.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/export.hpp>

namespace swapmm {

/// A device that can be chosen.
struct DeviceChoice {
  std::string description;         ///< one line of text for lists
  std::vector<std::string> names;  ///< a part of any of these, in upper or lower case, selects the device
  int preference = 0;              ///< without a selection the highest one is used; the first of equal ones
  std::string obstacle;            ///< why the device cannot be used; empty if it can
};

/// Returns the position of the device to use. `wanted` is an index or a part of a name; if it is empty, the usable
/// device with the highest preference is chosen. `api` appears in errors, and `why_none` in errors about an empty list.
/// Throws UsageError with the list if no device or more than one matches.
[[nodiscard]] SWAPMM_EXPORT std::size_t choose_device(std::span<const DeviceChoice> devices, std::string_view wanted,
                                                      std::string_view api, std::string_view why_none);

/// The value of the environment variable SWAPMM_DEVICE. Empty if it is not set, and in set-uid programs.
[[nodiscard]] SWAPMM_EXPORT std::string device_from_environment();

/// Returns whether `text` contains `part`. The case of ASCII letters is ignored.
[[nodiscard]] SWAPMM_EXPORT bool contains_in_any_case(std::string_view text, std::string_view part);

}  // namespace swapmm
