// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names for the places in the library from which something was called, as a person reads them.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <swapmm/backend/testing/call_site.hpp>

namespace swapmm::test {

/// "runtime/order/timeline.hpp:185 mark".
[[nodiscard]] std::string site_name(const CallSite& where);

/// The calls that led to where it is made. Costs microseconds.
class CallStack {
 public:
  CallStack();
  /// The innermost function of the library: "PlanExecutor::start". Of static functions and of those that were inlined
  /// their callers take the place. Needs a program that exports its symbols.
  [[nodiscard]] std::string site_name() const;

 private:
  static constexpr int most_calls = 48;
  std::array<void*, most_calls> calls_{};
  std::size_t count_ = 0;
};

/// The name alone of a function as compilers write it out, without what stands around it: "Timeline::mark" of
/// "void swapmm::runtime::Timeline<B>::mark(QueueKind) [with B = ...]".
[[nodiscard]] std::string short_name(std::string_view function);

}  // namespace swapmm::test
