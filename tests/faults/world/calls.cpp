// SPDX-License-Identifier: Apache-2.0
// The calls of the programs, but for operations.

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "faults/world/world.hpp"

namespace swapmm::test {

// ---- managers and tensors

void World::make_manager(const Options& options, SchedulerOptions scheduler, std::size_t device) {
  std::optional<MemoryManager<FaultyDevice>> made;
  current_ = managers_.size();
  concerned_.clear();
  const Scheduler shared(std::move(scheduler));
  FaultyDevice& on = device < devices_.size() ? devices_[device] : add_device();
  call("manager", [&] { made.emplace(on, options, shared); });
  managers_.push_back(std::make_unique<Managed>());
  managers_.back()->device = device;
  if (made) managers_.back()->manager.emplace(*std::move(made));
}

void World::move_manager() {
  concerned_.clear();
  Managed* const managed = current();
  if (managed == nullptr) return;
  guarded([&] {
    MemoryManager<FaultyDevice> moved(*std::move(managed->manager));
    managed->manager.emplace(std::move(moved));
  });
}

void World::close_manager() {
  Managed* const managed = current();
  if (managed == nullptr) return;
  concerned_.clear();
  closing_ = true;
  guarded([&] { managed->manager.reset(); });
  closing_ = false;
}

std::size_t World::tensor(std::string name, std::size_t size, Lifetime lifetime, bool temporary) {
  const std::size_t number = items_.size();
  items_.emplace_back();
  Item& item = items_.back();
  item.name = std::move(name);
  item.manager = current_;
  item.temporary = temporary;
  item.is_transient = lifetime == transient;
  item.value.resize(size);
  Managed* const managed = current();
  if (managed == nullptr) return number;
  call("tensor", [&] { item.tensor.emplace(managed->manager->tensor<Element>({size}, item.name, lifetime)); });
  return number;
}

void World::drop(std::size_t tensor) {
  Item& item = items_.at(tensor);
  concerned_.assign(1, tensor);
  guarded([&] { item.tensor.reset(); });
  item.defined = false;
  item.lost = false;
}

void World::upload(std::size_t tensor, Element salt) {
  Item* const item = usable(tensor);
  concerned_.assign(1, tensor);
  if (item == nullptr) return;
  std::vector<Element> data(item->value.size());
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = salt * 2654435761U + static_cast<Element>(i);
  if (!call("upload", [&] { item->tensor->upload(data); })) return;
  item->value = data;
  item->defined = true;
  item->lost = false;
}

void World::upload_part(std::size_t tensor, std::size_t first, std::size_t count, Element salt) {
  Item* const item = usable(tensor);
  concerned_.assign(1, tensor);
  if (item == nullptr || !item->defined) return;
  std::vector<Element> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = salt + static_cast<Element>(i);
  if (!call("upload of a part", [&] { item->tensor->slice(first, count).upload(data); })) return;
  if (item->defined) std::copy(data.begin(), data.end(), item->value.begin() + static_cast<std::ptrdiff_t>(first));
}

void World::download(std::size_t tensor) {
  Item* const item = usable(tensor);
  concerned_.assign(1, tensor);
  if (item == nullptr || !item->defined) return;
  std::vector<Element> seen(item->value.size());
  if (call("download", [&] { item->tensor->download(seen); })) check_value(*item, seen, "download");
}

void World::download_later(std::size_t tensor) {
  Item* const item = usable(tensor);
  concerned_.assign(1, tensor);
  if (item == nullptr || !item->defined) return;
  auto target = std::make_unique<std::vector<Element>>(item->value.size());
  std::optional<PendingDownload<FaultyDevice>> pending;
  if (!call("asynchronous download", [&] { pending.emplace(item->tensor->download_async(*target)); })) return;
  later_.push_back(std::make_unique<Later>(Later{*std::move(pending), std::move(target), item->value, item->manager}));
}

void World::collect() {
  concerned_.clear();
  std::vector<std::unique_ptr<Later>> all;
  all.swap(later_);
  for (const auto& each : all) {
    Later& later = *each;
    const std::size_t used = std::exchange(current_, later.manager);
    const std::size_t lost_reads = reads_of_lost_;
    bool arrived = false;
    const std::size_t most_tries = 1 + std::max<std::size_t>(1, script_.faults().size());
    for (std::size_t tries = 0; tries < most_tries && !arrived && reads_of_lost_ == lost_reads; ++tries) {
      const Outcome outcome = attempt("collect", [&] {
        (void)later.pending.ready();
        later.pending.wait();
      });
      arrived = outcome == Outcome::done;
      if (outcome == Outcome::gone) break;
      if (outcome == Outcome::failed) restore_lost();
      if (tries + 1 == most_tries && !arrived && reads_of_lost_ == lost_reads && !script_.repeats()) {
        problem("collect fails each time");
      }
    }
    if (arrived && *later.target != later.expected) problem("collect: the value is another one");
    current_ = used;
  }
}

// ---- iterations, plans

void World::begin(std::string_view name) {
  concerned_.clear();
  Managed* const managed = current();
  if (managed == nullptr) return;
  call("iteration", [&] { managed->iteration.emplace(managed->manager->iteration(name)); });
  // Even where it did not begin, the one before may have come to its end.
  for (Item& item : items_) {
    if (item.is_transient && item.manager == current_) item.defined = false;
  }
}

void World::end() {
  concerned_.clear();
  if (current_ >= managers_.size()) return;
  guarded([&] { managers_[current_]->iteration.reset(); });
}

void World::synchronize() {
  concerned_.clear();
  if (Managed* const managed = current()) call("synchronize", [&] { managed->manager->synchronize(); });
}

void World::look() {
  concerned_.clear();
  Managed* const managed = current();
  if (managed == nullptr || managed->lost) return;  // a report of a lost device is no error
  call("look", [&] {
    (void)managed->manager->report();
    (void)managed->manager->machine();
  });
}

void World::start_profile() {
  concerned_.clear();
  if (Managed* const managed = current()) {
    call("start profile", [&] { managed->manager->start_profile(); });
  }
}

void World::stop_profile() {
  concerned_.clear();
  Managed* const managed = current();
  if (managed == nullptr || managed->lost) return;
  call("stop profile", [&] {
    if (!managed->manager->profiling()) return;  // it was never started, or a call that failed has ended it
    const Profile profile = managed->manager->stop_profile();
    const bool all_times_known = script_.faults().empty();
    if (all_times_known && peak_used(profile) > profile.device_budget) problem("a profile shows too many bytes");
  });
}

void World::plan_now() {
  concerned_.clear();
  Managed* const managed = current();
  if (managed == nullptr || managed->lost) return;
  call("planning job", [&] {
    if (auto job = managed->manager->scheduler().planning_job()) job->run();
  });
}

void World::set_budget(Bytes bytes) {
  concerned_.clear();
  Managed* const managed = current();
  if (managed == nullptr || managed->lost) return;
  call("setting the budget", [&] { managed->manager->set_budget(bytes); });
}

}  // namespace swapmm::test
