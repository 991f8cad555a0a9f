// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/pages/area.hpp>
#include <swapmm/pages/fault_service.hpp>

namespace swapmm::pages {

/// Makes faults in the protected part of an area faults of its target, from construction to destruction. Needs
/// install_handler().
class WatchedArea {
 public:
  /// All must outlive this. `name` is the tensor's, for messages. Throws UsageError if the memory is already watched,
  /// or if there are too many areas.
  SWAPMM_TEMPLATE_EXPORT WatchedArea(Area& area, FaultTarget& target, FaultService& service, std::string_view name);
  WatchedArea(const WatchedArea&) = delete;
  WatchedArea& operator=(const WatchedArea&) = delete;
  SWAPMM_TEMPLATE_EXPORT ~WatchedArea();

  struct Entry;

 private:
  [[nodiscard]] bool in_child() const noexcept;

  std::unique_ptr<Entry> entry_;
};

/// Installs the library's handler of SIGSEGV over the current one, which gets all faults that are no touches of watched
/// areas. Does nothing if it is the current one. Returns why that is impossible; empty if faults will be handled.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string install_handler();

/// True if bytes of this memory belong to a watched area.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool is_watched(std::span<const std::byte> memory) noexcept;
/// Throws UsageError if bytes of this memory belong to a watched area, without touching them.
SWAPMM_TEMPLATE_EXPORT void require_unwatched(std::span<const std::byte> memory);
/// Makes the bytes of watched areas in this memory readable, or writable, as if the program had touched them. Throws
/// UsageError if there is no value. Does nothing for a caller that holds what an area's target waits for.
SWAPMM_TEMPLATE_EXPORT void make_usable(std::span<const std::byte> memory, Want want);

}  // namespace swapmm::pages
