// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/stalls.hpp>

// Answers on stdout, for persons and as JSON.

namespace swapmm::cli {

namespace json = boost::json;

/// One line.
void print_json(const json::object& answer);

/// "name             text": a line of an answer for a person.
void print_line(std::string_view name, std::string_view text);

/// Columns as wide as their widest cell, the first to the left, the others to the right.
void print_table(const std::vector<std::vector<std::string>>& rows);

/// part / whole; none if `whole` is 0.
[[nodiscard]] std::optional<double> ratio(std::chrono::nanoseconds part, std::chrono::nanoseconds whole);
/// compute / iteration; none if there is no computation, since any iteration is then as good as another.
[[nodiscard]] std::optional<double> fraction_of_ideal(std::chrono::nanoseconds compute,
                                                      std::chrono::nanoseconds iteration);
/// With three decimals; "n/a" for none.
[[nodiscard]] std::string ratio_text(std::optional<double> ratio);
/// 0.1234 -> "12.3 %"; "n/a" for none.
[[nodiscard]] std::string percent(std::optional<double> share);
/// The number, or null.
[[nodiscard]] json::value json_number(std::optional<double> ratio);
/// What a person is told where a ratio to the computation is "n/a".
inline constexpr std::string_view no_computation = "the operations of the trace take no time";

/// A name as valid UTF-8.
[[nodiscard]] json::string json_name(std::string_view name);
/// Each of them, as an array.
[[nodiscard]] json::array json_names(const std::vector<std::string>& names);
[[nodiscard]] json::object to_json(const Machine& machine);
[[nodiscard]] json::object to_json(const Prediction& predicted);
[[nodiscard]] json::array to_json(const std::vector<Stall>& stalls, std::size_t most, const Trace& trace,
                                  const Plan& plan);

/// The first of them, a line each.
void print_stalls(const std::vector<Stall>& stalls, std::size_t most, const Trace& trace, const Plan& plan);

/// What a plan takes, and the least that any plan takes, a line each.
void print_times(std::chrono::nanoseconds compute, std::chrono::nanoseconds bound, std::chrono::nanoseconds iteration);
/// What a plan takes and copies, a line each.
void print_prediction(const Prediction& predicted);

/// `name` in quotes with its number, as operations and tensors are told: 12 "conv1".
[[nodiscard]] std::string numbered(std::size_t number, std::string_view name);

}  // namespace swapmm::cli
