// SPDX-License-Identifier: Apache-2.0
// Loads libraries that use OpenCL, and unloads them before it ends: PROGRAM plugin_is_unloaded|plugin_stays LIBRARY

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Ranges = std::vector<std::pair<std::uintptr_t, std::uintptr_t>>;

/// Where files with that name are mapped.
Ranges places_of(const char* name) {
  Ranges all;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) == std::string::npos) continue;
    std::size_t used = 0;
    const std::uintptr_t begin = std::stoull(line, &used, 16);
    all.emplace_back(begin, std::stoull(line.substr(used + 1), nullptr, 16));
  }
  return all;
}

/// Nothing else will lie there.
void occupy(const Ranges& ranges) {
  for (const auto& [begin, end] : ranges) {
    (void)mmap(reinterpret_cast<void*>(begin), end - begin, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  for (int round = 0; round < 2; ++round) {
    void* const plugin = dlopen(words[2], RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
    const auto start = reinterpret_cast<int (*)()>(dlsym(plugin, "start"));
    if (start == nullptr || start() != 0) return 1;
    if (std::string_view(words[1]) == "plugin_stays") break;
    const Ranges loader = places_of("libOpenCL");
    if (dlclose(plugin) != 0) return 1;
    occupy(loader);  // so the loader is somewhere else the next time, if it is loaded again
  }
  std::printf("the program goes on\n");
  return 0;
}
