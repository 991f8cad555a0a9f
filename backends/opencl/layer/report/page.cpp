// SPDX-License-Identifier: Apache-2.0
#include "page.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <new>
#include <string>

#include "../process/environment.hpp"
#include "../process/settings.hpp"

namespace swapmm::opencl::layer {
namespace {

// All of the file must be there: a write to a page that the file system has no room for would be a signal, too.
void* shared_memory() {
  const std::string& folder = settings().report_folder;
  if (folder.empty() || file_size_limit() < sizeof(ReportPage)) return MAP_FAILED;
  // exec() leaves the process's number, and the file of the program before.
  int file = -1;
  for (int count = 0; count < 100 && file < 0; ++count) {
    const std::string name = folder + "/" + std::to_string(getpid()) + "-" + std::to_string(count);
    file = open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  }
  if (file < 0) return MAP_FAILED;
  void* memory = MAP_FAILED;
  if (posix_fallocate(file, 0, sizeof(ReportPage)) == 0) {
    memory = mmap(nullptr, sizeof(ReportPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  return memory;
}

}  // namespace

ReportPage* make_page(bool& shared) {
  void* const memory = shared_memory();
  shared = memory != MAP_FAILED;
  auto* const page = shared ? new (memory) ReportPage : new (std::nothrow) ReportPage;
  if (page == nullptr) return nullptr;
  page->process = static_cast<std::uint64_t>(getpid());
  page->started = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  page->layout.store(ReportPage::known_layout, std::memory_order_release);
  return page;
}

}  // namespace swapmm::opencl::layer
