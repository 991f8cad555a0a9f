// SPDX-License-Identifier: Apache-2.0
// PROGRAM WAY: a process of its own ends in that way, watched by this one. PROGRAM --all: in each. PROGRAM --ways
// NAME...: whether these are all there are.

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "exits/watchdog.hpp"
#include "exits/ways.hpp"
#include "support/missing_device.hpp"

namespace {

using namespace swapmm::test;

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

int go(const Way& way) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);  // some ways end by a signal
  return way.go();
}

bool passes(const Way& way, const std::string& program) {
  const Ending ending = watch({program, "--go", std::string(way.name)});
  const bool as_wanted = ending.in_time && ending.code == (way.signal == 0 ? way.code : -1) &&
                         ending.signal == way.signal && ending.output == text_of(way.lines);
  std::cout << way.name << ": " << (as_wanted ? "as promised, " : "NOT as promised, ") << ending.took.count()
            << " ms\n";
  if (as_wanted) return true;
  if (!ending.in_time) std::cout << "  it had to be killed\n";
  std::cout << "  returned " << ending.code << ", signal " << ending.signal << "; wanted "
            << (way.signal == 0 ? way.code : -1) << ", " << way.signal << "\n  wrote:\n"
            << ending.output << "  wanted:\n"
            << text_of(way.lines);
  return false;
}

bool are_all_ways(std::vector<std::string> names) {
  std::vector<std::string> there;
  for (const Way& way : ways()) there.emplace_back(way.name);
  std::sort(names.begin(), names.end());
  std::sort(there.begin(), there.end());
  if (names != there) std::cout << "there are other ways:\n" << text_of(there);
  return names == there;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view first = count > 1 ? words[1] : "";
  if (first == "--ways") return are_all_ways({words + 2, words + count}) ? 0 : 1;
  const bool child = first == "--go" && count > 2;
  const std::string_view wanted = child ? words[2] : first;
  if (!child) {
    if (const std::string missing = missing_device(); !missing.empty()) {
      std::cout << "skipped: " << missing << '\n';
      return 0;
    }
  }
  std::size_t run = 0;
  std::size_t failed = 0;
  for (const Way& way : ways()) {
    if (way.name != wanted && wanted != "--all") continue;
    if (child) return go(way);
    ++run;
    if (!passes(way, words[0])) ++failed;
  }
  if (run == 0) std::cout << "there is no way \"" << wanted << "\"\n";
  return run > 0 && failed == 0 ? 0 : 1;
}
