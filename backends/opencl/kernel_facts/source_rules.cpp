// SPDX-License-Identifier: Apache-2.0
#include "source_rules.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>

namespace swapmm::kernel_facts {
namespace {

// ---- options

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size()) {
      word += text[++i];
      inside = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      inside = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(std::move(word));
  return words;
}

std::string name_in(std::string_view definition) {
  return std::string(definition.substr(0, definition.find_first_of("=(")));
}

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

// Options that change values but not what is read and written. Those that allow a compiler to calculate in another
// way are not passed on, because the strict way makes more conditions depend on data, never fewer.
constexpr std::array<std::string_view, 20> values_only{"-cl-single-precision-constant",
                                                       "-cl-denorms-are-zero",
                                                       "-cl-fp32-correctly-rounded-divide-sqrt",
                                                       "-cl-opt-disable",
                                                       "-cl-mad-enable",
                                                       "-cl-no-signed-zeros",
                                                       "-cl-unsafe-math-optimizations",
                                                       "-cl-finite-math-only",
                                                       "-cl-fast-relaxed-math",
                                                       "-cl-kernel-arg-info",
                                                       "-cl-strict-aliasing",
                                                       "-cl-uniform-work-group-size",
                                                       "-cl-no-subgroup-ifp",
                                                       "-cl-nv-verbose",
                                                       "-cl-intel-greater-than-4GB-buffer-required",
                                                       "-w",
                                                       "-Werror",
                                                       "-g",
                                                       "-O3",
                                                       "-O2"};

// ---- the source as words

struct Word {
  std::string_view text;
  bool in_directive = false;
};

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The text with lines that were continued by a backslash joined.
std::string joined(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      std::size_t end = i + 1;
      while (end < text.size() && (text[end] == ' ' || text[end] == '\t' || text[end] == '\r')) ++end;
      if (end < text.size() && text[end] == '\n') {
        i = end;
        continue;
      }
    }
    result += text[i];
  }
  return result;
}

// Comments are blanks, and strings have no words. In a directive, the first word is its name.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  bool next(Word& word) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++at_;
        line_begins_ = true;
        directive_ = false;
      } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        ++at_;
      } else if (begins(text_.substr(at_), "//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (begins(text_.substr(at_), "/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else if (c == '"' || c == '\'') {
        skip_string(c);
      } else if (is_letter(c)) {
        const std::size_t begin = at_;
        while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
        line_begins_ = false;
        word = {text_.substr(begin, at_ - begin), directive_};
        return true;
      } else {
        if (c == '#' && line_begins_) directive_ = true;
        line_begins_ = false;
        ++at_;
        if (c == '#') {
          word = {text_.substr(at_ - 1, 1), directive_};
          return true;
        }
      }
    }
    return false;
  }

 private:
  void skip_string(char quote) {
    line_begins_ = false;
    for (++at_; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    if (at_ < text_.size() && text_[at_] == quote) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool line_begins_ = true;
  bool directive_ = false;
};

// Names with two underscores that mean the same to every compiler, or that compile() defines for the device.
const std::set<std::string_view>& known_names() {
  static const std::set<std::string_view> names{"__kernel",
                                                "__global",
                                                "__local",
                                                "__constant",
                                                "__private",
                                                "__generic",
                                                "__read_only",
                                                "__write_only",
                                                "__read_write",
                                                "__attribute__",
                                                "__attribute",
                                                "__const",
                                                "__const__",
                                                "__volatile",
                                                "__volatile__",
                                                "__restrict",
                                                "__restrict__",
                                                "__inline",
                                                "__inline__",
                                                "__signed",
                                                "__signed__",
                                                "__aligned__",
                                                "__packed__",
                                                "__unused__",
                                                "__always_inline__",
                                                "__noinline__",
                                                "__FILE__",
                                                "__LINE__",
                                                "__func__",
                                                "__OPENCL_VERSION__",
                                                "__OPENCL_C_VERSION__",
                                                "__ENDIAN_LITTLE__",
                                                "__IMAGE_SUPPORT__",
                                                "__FAST_RELAXED_MATH__",
                                                "__kernel_exec",
                                                "__builtin_expect",
                                                "__VA_ARGS__"};
  return names;
}

bool is_reserved(std::string_view name) {
  return begins(name, "__") || begins(name, "POCL_") ||
         (name.size() > 1 && name[0] == '_' && std::isupper(static_cast<unsigned char>(name[1])) != 0);
}

void collect_definitions(std::string_view text, std::set<std::string, std::less<>>& defined) {
  Words words(text);
  Word before;
  for (Word word; words.next(word); before = word) {
    if (word.in_directive && (before.text == "define" || before.text == "undef") && before.in_directive) {
      defined.emplace(word.text);
    }
  }
}

bool check_text(std::string_view text, const Request& request, const std::set<std::string, std::less<>>& defined,
                std::string& reason) {
  if (text.find("??") != std::string_view::npos || text.find("%:") != std::string_view::npos) {
    reason = "it has trigraphs or digraphs";
    return false;
  }
  Words words(text);
  Word before;
  for (Word word; words.next(word); before = word) {
    const bool directive_name = word.in_directive && before.text == "#" && before.in_directive;
    const bool includes = word.text == "include" || word.text == "include_next" || word.text == "import";
    if (directive_name && includes && request.headers.empty()) {
      reason = "it includes files";
      return false;
    }
    if (!is_reserved(word.text) || known_names().contains(word.text) || defined.contains(word.text)) continue;
    reason = "it uses " + std::string(word.text);
    return false;
  }
  return true;
}

}  // namespace

bool read_options(const Request& request, BuildOptions& options, std::string& reason) {
  bool has_version = false;
  const std::vector<std::string> words = split(request.options);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (begins(word, "-D") || begins(word, "-U")) {
      const bool apart = word.size() == 2;
      if (apart && i + 1 == words.size()) {
        reason = "its last option is incomplete";
        return false;
      }
      const std::string definition = apart ? words[++i] : word.substr(2);
      options.defined.push_back(name_in(definition));
      options.compiler.push_back(word.substr(0, 2) + definition);
    } else if (begins(word, "-I")) {
      if (word.size() == 2) ++i;  // sources that include files are not known anyway
    } else if (begins(word, "-cl-std=")) {
      has_version = true;
      options.compiler.push_back(word);
    } else if (std::find(values_only.begin(), values_only.end(), word) == values_only.end()) {
      reason = "option " + word;
      return false;
    }
    if (word == "-cl-fast-relaxed-math") options.compiler.emplace_back("-D__FAST_RELAXED_MATH__=1");
  }
  if (!has_version) options.compiler.push_back("-cl-std=" + request.c_version);
  return true;
}

bool same_for_every_compiler(const Request& request, const BuildOptions& options, std::string& reason) {
  std::set<std::string, std::less<>> defined(options.defined.begin(), options.defined.end());
  std::vector<std::string> texts{joined(request.source)};
  for (const Request::Header& header : request.headers) texts.push_back(joined(header.text));
  for (const std::string& text : texts) collect_definitions(text, defined);
  return std::all_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return check_text(text, request, defined, reason); });
}

}  // namespace swapmm::kernel_facts
