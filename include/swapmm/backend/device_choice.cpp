// SPDX-License-Identifier: Apache-2.0
#include <swapmm/backend/device_choice.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <swapmm/base/error.hpp>

namespace swapmm {

namespace {

char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string list(std::span<const DeviceChoice> devices, std::string_view why_none) {
  std::string text;
  for (const DeviceChoice& device : devices) text += "\n  " + device.description;
  return text.empty() ? "\n" + std::string(why_none) : "\nAvailable devices:" + text;
}

std::optional<std::size_t> as_index(std::string_view text) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return index;
}

}  // namespace

bool contains_in_any_case(std::string_view text, std::string_view part) {
  const auto equal = [](char a, char b) { return lower_case(a) == lower_case(b); };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), equal) != text.end() || part.empty();
}

std::size_t choose_device(std::span<const DeviceChoice> devices, std::string_view wanted, std::string_view api,
                          std::string_view why_none) {
  const std::string name(api);
  const auto refuse = [&](const std::string& why) -> UsageError { return UsageError(why + list(devices, why_none)); };
  const auto usable = [&](std::size_t index) {
    const DeviceChoice& device = devices[index];
    if (device.obstacle.empty()) return index;
    throw refuse(name + " device " + device.description + " was asked for, but " + device.obstacle + ".");
  };
  if (wanted.empty()) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (!devices[i].obstacle.empty()) continue;
      if (!best || devices[i].preference > devices[*best].preference) best = i;
    }
    if (!best) throw refuse("no " + name + " device can be used.");
    return *best;
  }
  if (const auto index = as_index(wanted)) {
    if (*index < devices.size()) return usable(*index);
    throw refuse("there is no " + name + " device with index " + std::string(wanted) + ".");
  }
  std::optional<std::size_t> match;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& names = devices[i].names;
    if (std::none_of(names.begin(), names.end(), [&](const auto& n) { return contains_in_any_case(n, wanted); })) {
      continue;
    }
    if (match) {
      throw refuse("more than one " + name + " device is called \"" + std::string(wanted) + "\": give its index.");
    }
    match = i;
  }
  if (!match) throw refuse("no " + name + " device is called \"" + std::string(wanted) + "\".");
  return usable(*match);
}

std::string device_from_environment() {
  const char* const wanted = secure_getenv("SWAPMM_DEVICE");  // nothing in a set-uid program
  return wanted == nullptr ? "" : wanted;
}

}  // namespace swapmm
