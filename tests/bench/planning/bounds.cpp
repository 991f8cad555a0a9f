// SPDX-License-Identifier: Apache-2.0
#include "bounds.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include <swapmm/formats/machine_json.hpp>
#include <swapmm/plan/relaxation/lower_bound.hpp>

#include "table.hpp"

namespace swapmm::bench {
namespace {

using namespace swapmm::planning;

/// FNV-1a. What it tells apart are files of this benchmark.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 14695981039346656037ULL;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return value;
}

std::string key_of(const Instance& instance) {
  std::ostringstream text;
  for (const TraceOperation& operation : instance.trace.operations) text << operation.duration.count() << ' ';
  for (const TraceTensor& tensor : instance.trace.tensors) text << tensor.available_from << ' ';
  write_machine(text, instance.machine);
  std::ostringstream key;
  key << digest(instance.trace).substr(0, 16) << '-' << std::hex << hash(text.str());
  return key.str();
}

double compute_bound(const Instance& instance) {
  const auto bound = lower_bound(instance.trace, instance.machine, tight_bound_effort);
  return bound ? static_cast<double>(bound->count()) : -1;
}

}  // namespace

Bounds::Bounds(const Settings& settings) : settings_(settings), file_(settings.out + "/bounds.csv") {
  std::ifstream in(file_);
  std::string line;
  while (std::getline(in, line)) {
    const std::size_t comma = line.find(',');
    if (comma != std::string::npos) known_[line.substr(0, comma)] = std::strtod(line.c_str() + comma + 1, nullptr);
  }
}

void Bounds::keep(const std::string& key, double nanoseconds) {
  known_[key] = nanoseconds;
  std::ofstream(file_, std::ios::app) << key << ',' << fixed(nanoseconds, 0) << '\n';
}

void Bounds::provide(const std::vector<const Instance*>& instances) {
  std::vector<std::pair<std::string, const Instance*>> missing;
  for (const Instance* instance : instances) {
    std::string key = key_of(*instance);
    if (!known_.contains(key)) missing.emplace_back(std::move(key), instance);
  }
  if (missing.empty()) return;
  Progress progress("bounds", missing.size(), settings_.quiet);
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < missing.size(); i = next++) {
      const double bound = compute_bound(*missing[i].second);
      const std::scoped_lock lock(mutex);
      keep(missing[i].first, bound);
      progress.step(missing[i].second->name);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < settings_.jobs; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

std::optional<double> Bounds::of(const Instance& instance) {
  const std::string key = key_of(instance);
  if (!known_.contains(key)) keep(key, compute_bound(instance));
  const double bound = known_.at(key);
  return bound < 0 ? std::nullopt : std::optional(bound);
}

}  // namespace swapmm::bench
