// SPDX-License-Identifier: Apache-2.0
#include "other_loaders.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../process/settings.hpp"

namespace swapmm::opencl::layer {
namespace {

using Base = const void*;  // where a library lies

/// Where the library with that address lies; null: in none.
Base base_of(const void* inside) {
  Dl_info library{};
  return dladdr(inside, &library) != 0 ? library.dli_fbase : nullptr;
}

/// The loaders that have found the layer, or will not.
struct Known {
  std::mutex mutex;
  std::vector<Base> bases;

  bool has(Base base) {
    const std::lock_guard lock(mutex);
    return std::find(bases.begin(), bases.end(), base) != bases.end();
  }
  void add(Base base) {
    const std::lock_guard lock(mutex);
    if (std::find(bases.begin(), bases.end(), base) == bases.end()) bases.push_back(base);
  }
};
Known& known() {
  static Known& loaders = *new Known;
  return loaders;
}

/// How often a library was loaded so far.
unsigned long long loads() {
  unsigned long long count = 0;
  const auto look = [](dl_phdr_info* info, std::size_t, void* into) {
    *static_cast<unsigned long long*>(into) = info->dlpi_adds;
    return 1;  // one library is enough
  };
  (void)dl_iterate_phdr(look, &count);
  return count;
}

/// The files of libraries that are named as OpenCL's loader is.
std::vector<std::string> loader_files() {
  std::vector<std::string> files;
  const auto look = [](dl_phdr_info* info, std::size_t, void* into) {
    const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    const std::string_view name = path.substr(path.find_last_of('/') + 1);
    if (name.starts_with("libOpenCL") && name.find(".so") != name.npos) {
      static_cast<std::vector<std::string>*>(into)->emplace_back(path);
    }
    return 0;
  };
  (void)dl_iterate_phdr(look, &files);
  return files;
}

/// The file of this layer; empty: it is not known.
std::string own_file() {
  Dl_info self{};
  return dladdr(reinterpret_cast<const void*>(&start_other_loaders), &self) != 0 ? self.dli_fname : std::string();
}

constexpr const char* layer_list = "OPENCL_LAYERS";

/// While this exists, loaders that start find this layer alone: what is below it is there already.
class OnlyThisLayer {
 public:
  OnlyThisLayer() {
    const char* const list = secure_getenv(layer_list);
    const std::string own = own_file();
    if (list == nullptr || own.empty()) return;
    before_ = list;
    (void)setenv(layer_list, own.c_str(), 1);
  }
  OnlyThisLayer(const OnlyThisLayer&) = delete;
  OnlyThisLayer& operator=(const OnlyThisLayer&) = delete;
  ~OnlyThisLayer() {
    const char* const now = secure_getenv(layer_list);
    if (before_ && now != nullptr && own_file() == now) (void)setenv(layer_list, before_->c_str(), 1);
  }

 private:
  std::optional<std::string> before_;
};

void start(const std::string& file) {
  // It stays: its functions may be in use, and one that lies in its place later would not be known.
  void* const library = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (library == nullptr) return;  // it has gone
  void* const function = dlsym(library, "clGetPlatformIDs");
  Dl_info found{};
  // Another library that it needs may have the function.
  const bool is_loader = function != nullptr && dladdr(function, &found) != 0 && file == found.dli_fname;
  if (const Base base = found.dli_fbase; is_loader && !known().has(base)) {
    cl_uint count = 0;
    const OnlyThisLayer only;
    (void)reinterpret_cast<decltype(clGetPlatformIDs)*>(function)(0, nullptr, &count);
    if (!known().has(base)) {
      known().add(base);
      say("a second OpenCL loader (" + file + ") does not use this layer: what is done by it is outside of the budget");
    }
  }
  (void)dlclose(library);
}

// ---- functions that look for loaders first

/// A function of the API that looks for loaders before it does its work. One for each entry of the table.
template <auto Entry, class Function>
struct Watched;

template <auto Entry, class Result, class... Arguments>
struct Watched<Entry, Result(CL_API_CALL*)(Arguments...)> {
  static inline Result(CL_API_CALL* work)(Arguments...) = nullptr;
  static Result CL_API_CALL call(Arguments... arguments) {
    start_other_loaders();
    return work(arguments...);
  }
};

template <auto Entry>
void watch(cl_icd_dispatch& table) {
  auto& function = table.*Entry;
  using Here = Watched<Entry, std::remove_reference_t<decltype(function)>>;
  if (function == nullptr) return;
  Here::work = function;
  function = Here::call;
}

}  // namespace

void loader_found_us(const void* inside_loader) {
  if (const Base base = base_of(inside_loader)) known().add(base);
}

void restore_layer_list() {
  const char* const list = secure_getenv(layer_list);
  const std::string own = own_file();
  if (list == nullptr || own.empty() || (":" + std::string(list) + ":").find(":" + own + ":") != std::string::npos)
    return;
  (void)setenv(layer_list, (std::string(list) + ":" + own).c_str(), 1);
}

void start_other_loaders() {
  static std::atomic<unsigned long long> seen{0};
  const unsigned long long now = loads();
  if (now == seen.load(std::memory_order_acquire)) return;
  thread_local bool inside = false;  // loaders that start call the layer
  if (inside) return;
  static std::timed_mutex& mutex = *new std::timed_mutex;
  // Other threads wait. In the child of a fork() the one that has the lock may not be there.
  const std::unique_lock lock(mutex, std::chrono::seconds(5));
  inside = true;
  for (const std::string& file : loader_files()) start(file);
  inside = false;
  seen.store(now, std::memory_order_release);
}

void watch_for_other_loaders(cl_icd_dispatch& table) {
  watch<&cl_icd_dispatch::clCreateContext>(table);
  watch<&cl_icd_dispatch::clCreateContextFromType>(table);
  watch<&cl_icd_dispatch::clGetContextInfo>(table);
  watch<&cl_icd_dispatch::clCreateCommandQueue>(table);
  watch<&cl_icd_dispatch::clCreateCommandQueueWithProperties>(table);
  watch<&cl_icd_dispatch::clGetCommandQueueInfo>(table);
  watch<&cl_icd_dispatch::clCreateBuffer>(table);
  watch<&cl_icd_dispatch::clCreateBufferWithProperties>(table);
  watch<&cl_icd_dispatch::clGetMemObjectInfo>(table);
  watch<&cl_icd_dispatch::clCreateProgramWithSource>(table);
  watch<&cl_icd_dispatch::clCreateProgramWithBinary>(table);
  watch<&cl_icd_dispatch::clCreateKernel>(table);
  watch<&cl_icd_dispatch::clGetDeviceInfo>(table);
  watch<&cl_icd_dispatch::clFlush>(table);
  watch<&cl_icd_dispatch::clFinish>(table);
}

}  // namespace swapmm::opencl::layer
