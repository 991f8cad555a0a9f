// SPDX-License-Identifier: Apache-2.0
#include "install.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "../../process/settings.hpp"
#include "themes.hpp"

namespace swapmm::opencl::layer::record {
namespace {

// Never destroyed: programs call while the process ends.
Recorder* all = nullptr;

std::string with_process(std::string file) {
  if (const std::size_t at = file.find("%p"); at != std::string::npos) file.replace(at, 2, std::to_string(getpid()));
  return file;
}

}  // namespace

Recorder& recorder() { return *all; }

void install(cl_icd_dispatch& table) {
  if (settings().log.empty()) return;
  all = new Recorder(with_process(settings().log), settings().log_data);
  next = table;
#define SWAPMM_ENTRY(name) wrap<&cl_icd_dispatch::name>(table, #name);
#include "../../loader/entries.inc"
#undef SWAPMM_ENTRY
  wrap_objects(table);
  wrap_memory(table);
  wrap_programs(table);
  wrap_kernels(table);
  wrap_transfers(table);
  wrap_rectangles(table);
  wrap_maps(table);
  wrap_foreign(table);
  wrap_waits(table);
  (void)std::atexit([] { all->end(); });
  (void)pthread_atfork(nullptr, nullptr, [] { all->abandon(); });
}

}  // namespace swapmm::opencl::layer::record
