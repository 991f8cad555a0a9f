// SPDX-License-Identifier: Apache-2.0
#include "faults/script/fault.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

namespace swapmm::test {

std::string_view to_string(CallClass call) {
  if (is_of_backend(call)) return swapmm::to_string(fault_class(call));
  constexpr std::array<std::string_view, call_class_count - fault_class_count> names{"operator_new", "file_read",
                                                                                     "file_write", "file_flush"};
  return names[static_cast<std::size_t>(call) - fault_class_count];
}

std::string_view to_string(Way way) {
  if (way < Way::late_and_lost) return swapmm::to_string(fault_mode(way));
  constexpr std::array<std::string_view, way_count - fault_mode_count> names{"late_and_lost", "part", "cut", "full"};
  return names[static_cast<std::size_t>(way) - fault_mode_count];
}

std::string_view why_not(CallClass call, Way way) {
  if (is_of_backend(call)) {
    if (way > Way::late_and_lost) return "a call of a backend does all or nothing";
    return swapmm::why_not(fault_class(call), fault_mode(way));
  }
  if (way == Way::once) return {};
  if (way == Way::for_ever) return {};
  if (call == CallClass::operator_new) return "it gives memory or throws std::bad_alloc";
  switch (way) {
    case Way::blind: return call != CallClass::file_read ? "" : "what was read is there";
    case Way::thrown: return {};
    case Way::part: return call != CallClass::file_flush ? "" : "it moves no bytes of the stream's";
    case Way::cut: return call == CallClass::file_read ? "" : "only what is read can end";
    case Way::full: return call == CallClass::file_write ? "" : "only what is written takes room; see once for a flush";
    case Way::slow: return "the host waits for it: nothing can overtake";
    default: return "a file is no device";
  }
}

std::string FaultKind::text() const { return std::string(to_string(call)) + " " + std::string(to_string(way)); }

const std::vector<FaultKind>& fault_kinds() {
  static const std::vector<FaultKind> kinds = [] {
    std::vector<FaultKind> all;
    for (std::size_t c = 0; c < call_class_count; ++c) {
      for (std::size_t w = 0; w < way_count; ++w) {
        const FaultKind kind{static_cast<CallClass>(c), static_cast<Way>(w)};
        if (why_not(kind.call, kind.way).empty()) all.push_back(kind);
      }
    }
    return all;
  }();
  return kinds;
}

std::string text_of(const Faults& faults) {
  std::string text;
  for (const Fault& fault : faults) text += (text.empty() ? "" : ", then ") + fault.text();
  return faults.empty() ? "no fault" : text;
}

Faults faults_of(std::string_view text) {
  Faults faults;
  for (;;) {
    const std::string_view one = text.substr(0, text.find(','));
    const auto kind = std::find_if(fault_kinds().begin(), fault_kinds().end(), [&](const FaultKind& known) {
      return one.starts_with(known.text() + " ");  // with the blank: some names begin others
    });
    if (kind == fault_kinds().end()) return faults;
    const std::string_view number = one.substr(kind->text().size() + 1);
    Fault fault{*kind};
    std::from_chars(number.data(), number.data() + number.size(), fault.n);
    faults.push_back(fault);
    constexpr std::string_view next = ", then ";
    text.remove_prefix(one.size());
    if (!text.starts_with(next)) return faults;
    text.remove_prefix(next.size());
  }
}

}  // namespace swapmm::test
