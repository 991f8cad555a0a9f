// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/ids.hpp>

// Internal: names in a text that refer to things by name, which may stand behind them.

namespace swapmm::json {

/// Numbers the names of a text from 0, in the order in which they first appear.
class NameTable {
 public:
  [[nodiscard]] std::uint32_t number_of(std::string_view name) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    const auto number = static_cast<std::uint32_t>(names_.size());
    names_.push_back(&numbers_.emplace(name, number).first->first);
    return number;
  }

  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }

  [[nodiscard]] const std::string& name(std::size_t number) const { return *names_[number]; }
  [[nodiscard]] std::size_t size() const { return names_.size(); }

 private:
  // A text can be made so that all its names have the same hash, so this is no hash table.
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<const std::string*> names_;  ///< by number
};

/// Replaces numbers of names by positions of the elements that have these names.
class NameResolver {
 public:
  /// `kind` names an element in messages: "link". Both references must outlive the resolver.
  template <class Element>
  NameResolver(const NameTable& names, const std::vector<Element>& elements, std::string_view kind)
      : names_(names), positions_(names.size()), kind_(kind) {
    for (std::size_t i = elements.size(); i-- > 0;) {
      if (const auto number = names.find(elements[i].name)) positions_[*number] = static_cast<std::uint32_t>(i);
    }
  }

  /// `id` is the number of a name, and becomes the position of its element. Otherwise says what is wrong:
  /// `"x" is not a link of the machine`.
  template <class Id>
  [[nodiscard]] std::optional<std::string> resolve(Id& id) const {
    const std::optional<std::uint32_t>& position = positions_[index(id)];
    if (!position) return '"' + names_.name(index(id)) + "\" is not " + article() + kind_ + " of the machine";
    id = id_at<Id>(*position);
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::string article() const { return kind_.find_first_of("aeiou") == 0 ? "an " : "a "; }

  const NameTable& names_;
  std::vector<std::optional<std::uint32_t>> positions_;
  std::string kind_;
};

}  // namespace swapmm::json
