// SPDX-License-Identifier: Apache-2.0
#pragma once

// The command lines of the smaller examples.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace neural {

/// Options with one value each: "--steps 60 --hidden 128". Every function throws std::invalid_argument, with a text for
/// the user, for what it does not understand.
class Arguments {
 public:
  Arguments(std::span<char* const> words, std::initializer_list<std::string_view> known) {
    for (std::size_t i = 0; i < words.size(); i += 2) {
      const std::string_view name = words[i];
      if (name == "--help" || name == "-h") {
        help_ = true;
        return;
      }
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        throw std::invalid_argument("there is no option " + std::string(name));
      }
      if (i + 1 == words.size()) throw std::invalid_argument(std::string(name) + " needs a value");
      given_.emplace_back(name, words[i + 1]);
    }
  }

  [[nodiscard]] bool help() const { return help_; }
  /// As it was given; the last one counts.
  [[nodiscard]] std::string text(std::string_view name) const {
    std::string result;
    for (const auto& [given, text] : given_) {
      if (given == name) result = text;
    }
    return result;
  }
  /// A whole number.
  [[nodiscard]] std::size_t whole(std::string_view name, std::size_t otherwise, std::size_t least = 1,
                                  std::size_t most = 1'000'000) const {
    return value(name, otherwise, least, most, "a whole number");
  }
  /// A number above 0.
  [[nodiscard]] double number(std::string_view name, double otherwise, double most) const {
    return value(name, otherwise, std::numeric_limits<double>::min(), most, "a number");
  }

 private:
  template <class T>
  [[nodiscard]] T value(std::string_view name, T otherwise, T least, T most, std::string_view what) const {
    T result = otherwise;
    for (const auto& [given, text] : given_) {
      if (given != name) continue;
      const char* const end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, result);
      if (error == std::errc{} && stop == end && result >= least && result <= most) continue;
      std::string range = std::to_string(least) + " to " + std::to_string(most);
      if constexpr (std::is_floating_point_v<T>) range = "above 0, up to " + std::to_string(std::lround(most));
      throw std::invalid_argument(std::string(name) + " takes " + std::string(what) + ", " + range + ", not \"" +
                                  std::string(text) + "\"");
    }
    return result;
  }

  std::vector<std::pair<std::string_view, std::string_view>> given_;
  bool help_ = false;
};

/// What main() returns: what run(arguments) does, 2 where the arguments make no sense, 1 for every other error.
template <class Run>
[[nodiscard]] int run_example(int count, char** words, std::string_view usage,
                              std::initializer_list<std::string_view> known, Run&& run) {
  try {
    const Arguments arguments(std::span(words, static_cast<std::size_t>(count)).subspan(1), known);
    if (!arguments.help()) return run(arguments);
    std::cout << usage;
    return 0;
  } catch (const std::invalid_argument& error) {
    std::cerr << error.what() << "\n\n" << usage;
    return 2;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

}  // namespace neural
