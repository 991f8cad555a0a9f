// SPDX-License-Identifier: Apache-2.0
#include "faults/parts/call_sites.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace swapmm::test {
namespace {

/// The words of a declaration up to its parameters, without what stands in <>, () and [].
std::string without_brackets(std::string_view function) {
  // What this function would take for brackets.
  const auto is_operator = [&](std::size_t i) { return function.substr(0, i).ends_with("operator"); };
  std::string text;
  int depth = 0;
  for (std::size_t i = 0; i < function.size(); ++i) {
    const char c = function[i];
    if (function.substr(i).starts_with("(anonymous namespace)")) {
      i += std::string_view("(anonymous namespace)").size() - 1;
      if (depth == 0) text += "_";
      continue;
    }
    if ((c == '<' || c == '>' || c == '(') && is_operator(i)) {
      if (depth == 0) text += c;
      continue;
    }
    if (depth == 0 && (c == '(' || c == '[') && !text.empty()) break;  // the parameters, or [with B = ...]
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    if (depth == 0) text += c;
    if (c == '>' || c == ')' || c == ']' || c == '}') --depth;
  }
  return text;
}

/// "swapmm::runtime::Timeline::mark"
std::string qualified_name(std::string_view function) {
  std::string text = without_brackets(function);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  const std::size_t space = text.rfind(' ');
  if (space != std::string::npos) text.erase(0, space + 1);
  while (!text.empty() && (text.front() == '*' || text.front() == '&')) text.erase(0, 1);
  return text;
}

bool is_of_library(std::string_view qualified) {
  return qualified.starts_with("swapmm::") && !qualified.starts_with("swapmm::test::") &&
         !qualified.starts_with("swapmm::Faulty") && !qualified.starts_with("swapmm::detail::FaultState");
}

/// Empty where it is none of the library's, or nobody knows.
const std::string& name_at(void* address) {
  thread_local std::unordered_map<void*, std::string> known;
  const auto found = known.find(address);
  if (found != known.end()) return found->second;
  Dl_info info{};
  std::string name;
  if (dladdr(address, &info) != 0 && info.dli_sname != nullptr) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), &std::free);
    const std::string qualified = status == 0 ? qualified_name(text.get()) : std::string();
    if (is_of_library(qualified)) name = short_name(text.get());
  }
  return known.emplace(address, std::move(name)).first->second;
}

}  // namespace

std::string short_name(std::string_view function) {
  std::string text = qualified_name(function);
  // Class and function, of free functions the namespace that they are in.
  std::size_t begin = text.rfind("::");
  if (begin != std::string::npos && begin != 0) begin = text.rfind("::", begin - 1);
  if (begin != std::string::npos) text.erase(0, begin + 2);
  return text;
}

std::string site_name(const CallSite& where) {
  std::string_view file = where.file;
  for (const std::string_view folder : {"/swapmm/", "/tests/"}) {
    const std::size_t at = file.rfind(folder);
    if (at != std::string_view::npos) file.remove_prefix(at + folder.size());
  }
  return std::string(file) + ":" + std::to_string(where.line) + " " + short_name(where.function);
}

CallStack::CallStack() { count_ = static_cast<std::size_t>(backtrace(calls_.data(), most_calls)); }

std::string CallStack::site_name() const {
  for (std::size_t i = 0; i < count_; ++i) {
    // The address behind the call may be that of the next function.
    const std::string& name = name_at(static_cast<char*>(calls_[i]) - 1);
    if (!name.empty()) return name;
  }
  return "outside of the library";
}

}  // namespace swapmm::test
