// SPDX-License-Identifier: Apache-2.0
// The reports of programs below the layer, however they ended: docs/decisions/0020-report-at-a-signal.md.
#include "layered_reports.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "printable.hpp"
#include "report/text.hpp"

namespace swapmm::cli {
namespace {

namespace fs = std::filesystem;
namespace layer = opencl::layer;

/// Ended, or ended and not yet waited for by its parent.
bool has_ended(std::uint64_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_ends = text.rfind(')');  // the name may have any letters
  if (name_ends == std::string::npos || name_ends + 2 >= text.size()) return true;
  const char state = text[name_ends + 2];
  return state == 'Z' || state == 'X';
}

struct Unmap {
  void operator()(layer::ReportPage* page) const { munmap(page, sizeof *page); }
};
using Page = std::unique_ptr<layer::ReportPage, Unmap>;

/// Null if the process ended before the page was made.
Page page_in(const std::string& name) {
  const int file = open(name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return nullptr;
  struct stat facts {};
  void* memory = MAP_FAILED;
  if (fstat(file, &facts) == 0 && facts.st_size == static_cast<off_t>(sizeof(layer::ReportPage))) {
    memory = mmap(nullptr, sizeof(layer::ReportPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (memory == MAP_FAILED) return nullptr;
  Page page(static_cast<layer::ReportPage*>(memory));
  if (page->layout.load(std::memory_order_acquire) != layer::ReportPage::known_layout) return nullptr;
  return page;
}

bool is_left_alone(layer::ReportPage& page) {
  layer::PageState state = layer::PageState::running;
  return !has_ended(page.process) && page.state.compare_exchange_strong(state, layer::PageState::on_its_own);
}

struct Ended {
  layer::ProcessNumbers numbers;
  std::uint64_t started = 0;
  std::uint64_t ended = 0;
};

/// In the order of their ends, for the last one's file stays. What a process did before exec() ended with that; who was
/// killed ended last.
std::vector<Ended> all_ended(const std::string& folder) {
  std::vector<Ended> all;
  std::error_code unknown;
  for (const auto& entry : fs::directory_iterator(folder, unknown)) {
    const Page page = page_in(entry.path().string());
    if (page == nullptr || is_left_alone(*page)) continue;
    all.push_back({layer::numbers_of(*page), page->started, page->ended.load(std::memory_order_acquire)});
  }
  std::sort(all.begin(), all.end(), [](const Ended& a, const Ended& b) { return a.started > b.started; });
  std::map<std::uint64_t, std::uint64_t> next;  // of a process: when its next program started
  for (Ended& each : all) {
    const auto known = next.find(each.numbers.process);
    if (each.ended == 0) each.ended = known == next.end() ? std::numeric_limits<std::uint64_t>::max() : known->second;
    next[each.numbers.process] = each.started;
  }
  std::stable_sort(all.begin(), all.end(), [](const Ended& a, const Ended& b) { return a.ended < b.ended; });
  return all;
}

}  // namespace

void write_layered_reports(const std::string& folder, const std::string& where) {
  if (where.empty()) return;
  for (const Ended& each : all_ended(folder)) {
    if (layer::write_report(each.numbers, where)) continue;
    std::cerr << "swapmm run: cannot write the report to " << printable(where) << '\n';
  }
}

}  // namespace swapmm::cli
