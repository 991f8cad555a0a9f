// SPDX-License-Identifier: Apache-2.0
#include "install.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "../../process/file_name.hpp"
#include "../../process/settings.hpp"
#include "themes.hpp"

namespace swapmm::opencl::layer::record {
namespace {

// Never destroyed: programs call while the process ends.
Recorder* all = nullptr;

}  // namespace

Recorder& recorder() { return *all; }

void install(cl_icd_dispatch& table) {
  if (settings().log.empty()) return;
  const std::string file = file_of_process(settings().log, static_cast<std::uint64_t>(getpid()));
  all = new Recorder(file, settings().log_data);
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
