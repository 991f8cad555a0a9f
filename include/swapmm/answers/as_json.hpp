// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/stalls.hpp>

namespace swapmm::answers {

namespace json = boost::json;

/// part / whole; none if `whole` is 0.
[[nodiscard]] std::optional<double> ratio(std::chrono::nanoseconds part, std::chrono::nanoseconds whole);
/// compute / iteration; none if there is no computation, since any iteration is then as good as another.
[[nodiscard]] std::optional<double> fraction_of_ideal(std::chrono::nanoseconds compute,
                                                      std::chrono::nanoseconds iteration);
/// The number, or null.
[[nodiscard]] json::value json_number(std::optional<double> ratio);
/// A name as valid UTF-8.
[[nodiscard]] json::string json_name(std::string_view name);
/// Each of them, as an array.
[[nodiscard]] json::array json_names(const std::vector<std::string>& names);
[[nodiscard]] json::object to_json(const Machine& machine);
[[nodiscard]] json::object to_json(const Prediction& predicted);
/// At most `most` of them.
[[nodiscard]] json::array to_json(const std::vector<Stall>& stalls, std::size_t most, const Trace& trace,
                                  const Plan& plan);

}  // namespace swapmm::answers
