// SPDX-License-Identifier: Apache-2.0
// How a call is made, and how each error of the library is judged.

#include "faults/world/world.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <utility>

namespace swapmm::test {

/// The library is being called: allocations count from here on, and the chosen one fails.
class World::Calling {
 public:
  explicit Calling(World& world) : world_(world), allocations_(world.script_) {
    if (world.sites_ != nullptr) world.sites_->start();
  }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;
  ~Calling() {
    if (world_.sites_ != nullptr) world_.sites_->stop();
  }

 private:
  World& world_;
  FaultScript::Allocations allocations_;
};

namespace {

simulated::Options with_sticking_failures(simulated::Options options, bool stick) {
  options.failures_stick = stick;
  return options;
}

}  // namespace

World::World(const simulated::Options& options, Faults faults, AllocationSites* sites)
    : progress_("run with a fault", options.seed),
      script_(std::move(faults), [this] { return look_inside(); }),
      device_options_(with_sticking_failures(options, script_.failures_stick())),
      sites_(sites) {
  add_device();
}

FaultyDevice& World::add_device() {
  FaultyDevice& device = devices_.emplace_back(simulated::Backend(device_options_));
  device.choose_by([this](FaultClass call, const CallSite& where) { return script_.backend_call(call, where); });
  return device;
}

FaultyDevice& World::device() { return devices_[current_ < managers_.size() ? managers_[current_]->device : 0]; }

World::~World() = default;

void World::problem(const std::string& text) {
  if (problems_.size() < 8) problems_.push_back(text);
}

std::array<std::uint64_t, call_class_count> World::calls() const {
  std::array<std::uint64_t, call_class_count> all{};
  for (const FaultyDevice& device : devices_) {
    for (std::size_t i = 0; i < fault_class_count; ++i) all[i] += device.calls(static_cast<FaultClass>(i));
  }
  const auto count = [&](CallClass call) -> std::uint64_t& { return all[static_cast<std::size_t>(call)]; };
  count(CallClass::operator_new) = script_.allocations_seen();
  count(CallClass::file_read) = script_.file_calls(FileCall::read) + script_.file_calls(FileCall::read_at_end);
  count(CallClass::file_write) = script_.file_calls(FileCall::write);
  count(CallClass::file_flush) = script_.file_calls(FileCall::flush);
  return all;
}

bool World::device_lost() const {
  return std::any_of(managers_.begin(), managers_.end(), [](const auto& managed) { return managed->lost; });
}

World::Managed* World::current() {
  if (current_ >= managers_.size() || !managers_[current_]->manager) return nullptr;
  return managers_[current_].get();
}

World::Item* World::usable(std::size_t tensor) {
  Item& item = items_.at(tensor);
  return item.tensor && managers_[item.manager]->manager ? &item : nullptr;
}

std::optional<Report> World::report() {
  Managed* const managed = current();
  if (managed == nullptr) return std::nullopt;
  return managed->manager->report();
}

// ---- calls and their errors

World::Outcome World::attempt(std::string_view what, const std::function<void()>& body) {
  const bool lost_before = current_ < managers_.size() && managers_[current_]->lost && managers_[current_]->manager;
  try {
    {
      const Calling calling(*this);
      body();
    }
    // What had reached the host before the loss is still given out.
    if (lost_before && what != "collect") problem(std::string(what) + " succeeds on a lost device");
    return Outcome::done;
  } catch (const DeviceLost& error) {
    note_device_lost(what, error);
    return Outcome::gone;
  } catch (const WorkFailed& error) {
    note_work_failed(what, error);
  } catch (const DroppedValue& error) {
    note_dropped(what, error);
  } catch (const PlanRefused& error) {
    if (!script_.of_file()) problem(std::string(what) + ": " + error.what());
    errors_.push_back(std::string(what) + ": " + error.what());
  } catch (const BundleTooLarge& error) {
    // A device that refused the memory that it had given before: until it gives some again nothing runs.
    const bool none = current() != nullptr && current()->manager->report().device_budget.value == 0;
    if (!script_.repeats() || !none) problem(std::string(what) + ": " + error.what());
    note_error(what, error.what());
  } catch (const UsageError& error) {
    problem(std::string(what) + ": " + error.what());
    note_error(what, error.what());
  } catch (const BackendError& error) {
    note_error(what, error.what());
  } catch (const CallbackFault& error) {
    if (!callable_entered_) problem(std::string(what) + ": a callback's error without a callback");
    note_error(what, error.what());
  } catch (const InternalError& error) {
    problem(std::string(what) + ": " + error.what());
    note_error(what, error.what());
  } catch (const Error& error) {
    // A stream turns whatever its buffer throws into a failure of its own.
    if (!script_.of_file()) problem(std::string(what) + ": " + error.what());
    errors_.push_back(std::string(what) + ": " + error.what());
  } catch (const OutOfMemory& error) {
    note_error(what, error.what());
  } catch (const std::bad_alloc& error) {
    if (!script_.of_class(CallClass::operator_new)) problem(std::string(what) + ": bad_alloc out of nothing");
    errors_.push_back(std::string(what) + ": " + error.what());
    return Outcome::failed;  // also on a lost device: there was no memory for the text of its error
  } catch (const std::exception& error) {
    problem(std::string(what) + ": an error of no known kind: " + error.what());
    note_error(what, error.what());
  }
  if (lost_before) problem(std::string(what) + ": not the sticky error on a lost device");
  return Outcome::failed;
}

bool World::call(std::string_view what, const std::function<void()>& body) {
  std::size_t tries = 0;
  for (; tries < 1 + std::max<std::size_t>(1, script_.faults().size()); ++tries) {
    const Outcome outcome = attempt(what, body);
    if (outcome == Outcome::done) return true;
    if (outcome == Outcome::gone) return false;
    restore_lost();
  }
  if (!script_.repeats() && !script_.loses_device()) problem(std::string(what) + " fails each time");
  return false;
}

void World::guarded(const std::function<void()>& body) {
  const Calling calling(*this);
  body();
}

// Where a call fails for good, the program goes on without it: then it may read what it never relies on.
void World::note_dropped(std::string_view what, const DroppedValue& error) {
  for (Item& item : items_) {
    if (item.manager != current_ || !has_name(error.lost(), item.name)) continue;
    item.defined = false;
    // What goes wrong more than once leads the program to other places than it was observed at.
    if ((script_.repeats() || script_.faults().size() > 1) && item.temporary) return;
  }
  problem(std::string(what) + ": " + error.what());
}

void World::note_error(std::string_view what, const char* text) {
  errors_.push_back(std::string(what) + ": " + text);
  // What a callable threw is the program's own; all else must name what it is about.
  const std::string_view seen = text;
  if (callable_entered_ && !callable_left_) return;
  const bool of_all = what == "synchronize" || what == "manager" || what == "collect" || what.ends_with(" profile");
  const bool names_budget = what == "setting the budget" && seen.find("device budget to ") != std::string_view::npos;
  if (script_.of_backend() && !of_all && !names_budget && seen.find('"') == std::string_view::npos) {
    problem(errors_.back() + ": names neither operation nor tensor nor budget");
  }
}

void World::note_device_lost(std::string_view what, const DeviceLost& error) {
  const std::string text = error.what();
  if (!script_.loses_device()) problem(std::string(what) + ": " + text);
  if (current_ >= managers_.size()) {
    errors_.push_back(std::string(what) + ": " + text);
    return;
  }
  Managed& managed = *managers_[current_];
  if (managed.lost) {
    if (text != managed.lost_text || error.lost() != managed.lost_values)
      problem("the sticky error changed to " + text);
    return;
  }
  managed.lost = true;
  managed.lost_text = text;
  managed.lost_values = error.lost();
  errors_.push_back(std::string(what) + ": " + text);
  const bool may_lack_memory = script_.of_class(CallClass::operator_new);
  if (!may_lack_memory && text.find("lost") == std::string::npos)
    problem(text + ": does not say which values are lost");
}

void World::note_work_failed(std::string_view what, const WorkFailed& error) {
  if (error.work == WorkFailed::Work::earlier && error.lost().empty()) {  // an asynchronous download
    ++reads_of_lost_;
    return;
  }
  errors_.push_back(std::string(what) + ": " + error.what());
  if (error.work == WorkFailed::Work::earlier) {
    problem(errors_.back() + ": nobody declared the value lost");
    return;
  }
  const bool injected = std::string_view(error.what()).find("injected fault: ") != std::string_view::npos;
  const bool untold = !error.certain && (injected || script_.of_class(CallClass::operator_new));
  if (!untold && !script_.late()) problem(errors_.back());
  for (Item& item : items_) {
    if (item.manager != current_ || !item.defined || !has_name(error.lost(), item.name)) continue;
    item.defined = false;
    item.lost = true;
  }
}

// A sensible program gives lost values anew. Before that, reading one must say what it is.
void World::restore_lost() {
  if (restoring_) return;
  restoring_ = true;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    if (!item.lost || item.manager != current_) continue;
    if (usable(i) == nullptr) {
      item.lost = false;
      continue;
    }
    if (!script_.repeats() && !script_.loses_device() && !script_.of_class(CallClass::operator_new)) {
      try {
        (void)item.tensor->download();
        problem("tensor \"" + item.name + "\" was declared lost and can be read");
      } catch (const WorkFailed& error) {
        if (!has_name(error.tensors(), item.name)) {
          problem(std::string("a read of a lost value does not name it: ") + error.what());
        }
      } catch (const std::exception& error) {
        problem("a read of lost tensor \"" + item.name + "\": " + error.what());
      }
    }
    item.lost = false;
    upload(i, next_salt());
    item.lost = !item.defined;
  }
  restoring_ = false;
}

void World::check_value(Item& item, const std::vector<Element>& seen, std::string_view where) {
  if (!item.defined) return problem(std::string(where) + ": tensor \"" + item.name + "\" has a value and should not");
  if (seen != item.value) problem(std::string(where) + ": tensor \"" + item.name + "\" has another value");
}

}  // namespace swapmm::test
