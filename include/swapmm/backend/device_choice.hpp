// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a program's user says on which device to run, the same for every API.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/export.hpp>

namespace swapmm {

/// A device to choose from.
struct DeviceChoice {
  std::string description;         ///< one line, for lists
  std::vector<std::string> names;  ///< a part of any of them, in any case, names the device
  int preference = 0;              ///< where nobody says which: the highest; the first of equal ones
  std::string obstacle;            ///< why it cannot be used; empty: it can
};

/// The position of the device to use. `wanted` is an index, or a part of a name; empty: the most preferred one that can
/// be used. `api` stands in errors, `why_none` in those about an empty list. Throws UsageError, with the list, where
/// nothing fits or more than one device does.
[[nodiscard]] SWAPMM_EXPORT std::size_t choose_device(std::span<const DeviceChoice> devices, std::string_view wanted,
                                                      std::string_view api, std::string_view why_none);

/// What the environment variable SWAPMM_DEVICE says; empty where it is not set, and in set-uid programs.
[[nodiscard]] SWAPMM_EXPORT std::string device_from_environment();

/// Whether `part` stands in `text`, in any case of ASCII letters.
[[nodiscard]] SWAPMM_EXPORT bool contains_in_any_case(std::string_view text, std::string_view part);

}  // namespace swapmm
