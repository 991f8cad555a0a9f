// SPDX-License-Identifier: Apache-2.0
#include "neural/shared_library.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace neural {

SharedLibrary::SharedLibrary(std::string_view what, std::initializer_list<const char*> files) {
  std::string tried;
  for (const char* const file : files) {
    handle_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      file_ = file;
      return;
    }
    // The loader's text names the file, or the other library that this one lacks.
    const char* const why = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps one per thread
    tried += std::string("\n  ") + file + ": " + (why == nullptr ? "not loaded" : why);
  }
  throw std::runtime_error(std::string(what) +
                           " cannot be loaded (LD_LIBRARY_PATH may say where it is). Tried:" + tried);
}

void* SharedLibrary::address(const char* symbol) const {
  void* const found = dlsym(handle_, symbol);
  if (found == nullptr) throw std::runtime_error(file_ + " has no function " + symbol);
  return found;
}

}  // namespace neural
