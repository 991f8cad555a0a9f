// SPDX-License-Identifier: Apache-2.0
// Loads libraries that use OpenCL, and unloads them before it ends: PROGRAM plugin_is_unloaded|plugin_stays LIBRARY

#include <dlfcn.h>

#include <cstdio>
#include <string_view>

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
    if (dlclose(plugin) != 0) return 1;
  }
  std::printf("the program goes on\n");
  return 0;
}
