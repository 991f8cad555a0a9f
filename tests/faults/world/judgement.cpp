// SPDX-License-Identifier: Apache-2.0
// What must hold once the fault is over.

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "faults/world/world.hpp"

namespace swapmm::test {

void World::verify(std::size_t tensor) {
  Item& item = items_[tensor];
  std::vector<Element> seen(item.value.size());
  try {
    for (std::size_t tries = 0;; ++tries) {
      // The first use of an object that fails at its first use.
      const auto note_first_use = [&](const std::exception& error) {
        if (!script_.in_way(Way::lazy) || tries == script_.faults().size()) throw;
        note_error("download", error.what());
      };
      try {
        item.tensor->download(seen);
        break;
      } catch (const BackendError& error) {
        note_first_use(error);
      } catch (const OutOfMemory& error) {
        note_first_use(error);
      }
    }
  } catch (const UndefinedValue&) {
    if (item.defined && !item.temporary) problem("tensor \"" + item.name + "\" lost its value without a word");
    return;
  } catch (const DroppedValue& error) {
    if (!item.temporary) problem(std::string("a value that is needed was dropped: ") + error.what());
    return;
  } catch (const WorkFailed& error) {
    if (item.defined && !item.lost) {
      problem("tensor \"" + item.name + "\" lost its value without a word: " + error.what());
    }
    return;
  } catch (const std::exception& error) {
    return problem("reading tensor \"" + item.name + "\" after all faults: " + error.what());
  }
  if (item.temporary && !item.defined) return;
  check_value(item, seen, "at the end");
}

void World::probe() {
  for (current_ = 0; current_ < managers_.size(); ++current_) {
    end();
    synchronize();  // what was found late is reported now
  }
  collect();
  script_.end();
  for (FaultyDevice& device : devices_) {
    device.restart({});
    if (script_.late() && (script_.repeats() || script_.loses_device())) settle_queues(device);
  }
  if (managers_.empty() || std::none_of(managers_.begin(), managers_.end(),
                                        [](const auto& managed) { return managed->manager.has_value(); })) {
    make_manager({.device_budget = usual_budget, .queue_depth = 8});
  }
  for (std::size_t number = 0; number < managers_.size(); ++number) {
    current_ = number;
    if (!managers_[number]->manager) continue;
    managers_[number]->lost ? probe_lost(number) : probe_manager(number);
  }
}

// A failure that no event could tell of, for none could be recorded, is told by the next one. The library has declared
// the values lost; that event should be no operation's of the probe. Nor should a command of the probe take the device
// with it.
void World::settle_queues(FaultyDevice& device) {
  for (std::size_t i = 0; i < device_queue_count; ++i) {
    const auto queue = static_cast<QueueKind>(i);
    try {
      auto event = device.make_event();
      device.record(queue, event);
      device.flush(queue);
      device.wait(event);
    } catch (const BackendError&) {
    }
  }
}

void World::probe_manager(std::size_t number) {
  if (script_.repeats() || script_.loses_device()) {  // an error of before may still be on its way
    constexpr int most_on_their_way = 12;
    for (int i = 0; i < most_on_their_way &&
                    attempt("synchronize", [&] { managers_[number]->manager->synchronize(); }) == Outcome::failed;
         ++i) {
    }
    if (!managers_[number]->lost && script_.loses_device()) notice_loss(number);
    if (managers_[number]->lost) return probe_lost(number);
  }
  if (managers_[number]->manager->report().device_budget < usual_budget) {
    // Where no operation fits, a loss that nobody waited for is noticed here.
    const auto outcome = attempt("setting the budget", [&] { managers_[number]->manager->set_budget(usual_budget); });
    if (outcome == Outcome::gone) return probe_lost(number);
    if (outcome == Outcome::failed) problem("the probe finds no budget: " + errors_.back());
  }
  const std::size_t before = errors_.size();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].manager == number && usable(i) != nullptr) verify(i);
  }
  std::vector<std::size_t> tensors;
  for (int i = 0; i < 6; ++i) tensors.push_back(tensor("probe" + std::to_string(i)));
  for (const std::size_t t : tensors) upload(t, next_salt());
  for (int pass = 0; pass < 4; ++pass) {
    begin("probe");
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      run({.name = "probe", .reads = {tensors[i]}, .writes = {}, .updates = {tensors[(i + 2) % tensors.size()]}});
    }
    download(tensors[0]);
    end();
  }
  for (const std::size_t t : tensors) download(t);
  for (const std::size_t t : tensors) {
    if (!items_[t].defined) problem("the probe did not come to its end");
  }
  synchronize();
  if (managers_[number]->lost && script_.loses_device()) return probe_lost(number);  // by a command of the probe
  // An object that fails at its first use may meet it here.
  const bool may_be_first_use = script_.in_way(Way::lazy);
  const Report seen = managers_[number]->manager->report();
  if (seen.device_peak > std::max(seen.device_budget, usual_budget)) problem("more than the device budget was in use");
  if (errors_.size() != before && !may_be_first_use) problem("the probe meets an error: " + errors_.back());
  for (const std::size_t t : tensors) drop(t);
}

// A command that takes the device with it may stand where nobody waits for it.
void World::notice_loss(std::size_t number) {
  try {
    device().finish();
  } catch (const BackendError&) {
    MemoryManager<FaultyDevice>& manager = *managers_[number]->manager;
    attempt("notice", [&] { manager.run("notice", writes(manager.tensor<Element>({4}, "notice")), [](auto&) {}); });
  }
}

void World::probe_lost(std::size_t number) {
  Managed& managed = *managers_[number];
  const auto sticks = [&](std::string_view what, auto&& body) {
    try {
      body();
      problem(std::string(what) + " succeeds on a lost device");
    } catch (const DeviceLost& error) {
      if (error.what() != managed.lost_text)
        problem(std::string(what) + ": another error than before: " + error.what());
    } catch (const std::exception& error) {
      problem(std::string(what) + " on a lost device: " + error.what());
    }
  };
  sticks("tensor", [&] { (void)managed.manager->tensor<Element>({4}, "late"); });
  sticks("iteration", [&] { (void)managed.manager->iteration("late"); });
  sticks("synchronize", [&] { managed.manager->synchronize(); });
  for (Item& item : items_) {
    if (item.manager != number || !item.tensor) continue;
    sticks("download", [&] { (void)item.tensor->download(); });
    sticks("upload", [&] { item.tensor->upload(item.value); });
    sticks("operation", [&] { managed.manager->run("late", updates(*item.tensor), [](auto&) {}); });
  }
  const Report report = managed.manager->report();
  if (report.device_peak > usual_budget + report.codec_staging) problem("above the budget");
}

void World::tear_down(std::uint64_t variant) {
  const auto end_tensors = [&] {
    for (Item& item : items_) item.tensor.reset();
  };
  closing_ = true;
  const auto end_managers = [&] {
    for (auto& managed : managers_) managed->manager.reset();
  };
  if (variant % 3 == 0) later_.clear();
  if (variant % 2 == 0) {
    end_tensors();
    end_managers();
  } else {
    end_managers();
    end_tensors();
  }
  for (auto& managed : managers_) managed->iteration.reset();
  later_.clear();
  items_.clear();
  for (FaultyDevice& device : devices_) nothing_left(device.inner());
}

void World::nothing_left(const simulated::Backend& device) {
  const simulated::Counters& left = device.counters();
  const auto none_left = [&](std::string_view what, std::uint64_t count) {
    if (count != 0) problem(std::to_string(count) + " " + std::string(what) + " left after the teardown");
  };
  none_left("device memories", left.device_memories.live);
  none_left("device bytes", left.device_bytes.value);
  none_left("host memories", left.host_memories.live);
  none_left("host bytes", left.host_bytes.value);
  none_left("pinned bytes", left.pinned_bytes.value);
  none_left("events", left.events.live);
  none_left("addresses", left.addresses.live);
  for (const std::string& violation : device.violations()) problem("checker: " + violation);
}

}  // namespace swapmm::test
