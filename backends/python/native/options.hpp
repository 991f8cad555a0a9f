// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include <swapmm/answers/machine.hpp>
#include <swapmm/answers/planning.hpp>
#include <swapmm/answers/simulation.hpp>
#include <swapmm/answers/ways/ways.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/base/result.hpp>

// The options of a question: a JSON object whose quantities are texts, which are read as the command reads them.

namespace swapmm::python {

namespace json = boost::json;

/// The value, or UsageError with the Problem.
template <class T>
[[nodiscard]] T required(Result<T> result, std::string_view what) {
  if (!result) throw UsageError(std::string(what) + ": " + result.problem().message);
  return *std::move(result);
}

class Options {
 public:
  /// Throws UsageError if it is no JSON object.
  explicit Options(std::string_view text);

  /// None if the field is missing or null. UsageError if it has another type.
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
  [[nodiscard]] bool is_on(std::string_view name) const;
  [[nodiscard]] std::uint64_t count(std::string_view name, std::uint64_t otherwise) const;

  /// The quantity in a field, by a function that reads it.
  template <class T>
  [[nodiscard]] std::optional<T> quantity(std::string_view name, Result<T> (*parse)(std::string_view)) const {
    const std::optional<std::string> given = text(name);
    if (!given) return std::nullopt;
    return required(parse(*given), name);
  }
  template <class T>
  [[nodiscard]] std::vector<T> quantities(std::string_view name, Result<T> (*parse)(std::string_view)) const {
    std::vector<T> values;
    for (const std::string& given : texts(name)) values.push_back(required(parse(given), name));
    return values;
  }

  [[nodiscard]] answers::MachineFigures figures() const;
  /// The machine for a trace: of `machine`, a text in its format, and the figures.
  [[nodiscard]] Machine machine(const Trace& trace) const;
  [[nodiscard]] answers::TimeLimit limit() const;
  /// Of `ways`, names between commas; all if it is missing.
  [[nodiscard]] Ways ways() const;
  [[nodiscard]] answers::Disturbance disturbance() const;

 private:
  [[nodiscard]] const json::value* find(std::string_view name) const;

  json::object fields_;
};

}  // namespace swapmm::python
