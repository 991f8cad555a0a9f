// SPDX-License-Identifier: Apache-2.0
// How a call is made, and how each error of the library is judged.

#include "faults/world.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <utility>

namespace swapmm::test {

std::string Fault::text() const {
  switch (source) {
    case Source::nothing: return "no fault";
    case Source::backend:
      return std::string(to_string(fault_class)) + " " + std::string(to_string(mode)) + " " + std::to_string(n);
    case Source::operator_new: return "operator new " + std::to_string(n);
    case Source::kernel: return "kernel " + std::to_string(n);
    case Source::stream: return "stream " + std::string(to_string(mode)) + " " + std::to_string(n);
  }
  return {};
}

/// The library is being called: allocations count from here on, and the chosen one fails.
class World::Armed {
 public:
  explicit Armed(World& world) : world_(world), before_(allocations()) {
    const bool due = world.fault_.source == Fault::Source::operator_new && !world.new_fired_ && !world.fault_over_ &&
                     world.fault_.n > world.allocations_seen_;
    if (due) failing_.emplace(world.fault_.n - world.allocations_seen_);
    if (world.sites_ != nullptr) world.sites_->start();
  }
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;
  ~Armed() {
    if (world_.sites_ != nullptr) world_.sites_->stop();
    world_.allocations_seen_ += allocations() - before_;
    if (failing_ && failing_->fired()) world_.new_fired_ = true;
  }

 private:
  World& world_;
  std::uint64_t before_;
  std::optional<FailingNew> failing_;
};

World::World(const simulated::Options& options, const Fault& fault, AllocationSites* sites)
    : fault_(fault), device_(simulated::Backend(options), fault.backend_plan()), sites_(sites) {}

World::~World() = default;

void World::problem(const std::string& text) {
  if (problems_.size() < 8) problems_.push_back(text);
}

bool World::fired() const {
  return backend_fired_ || device_.fired() > 0 || new_fired_ || kernel_fired_ || stream_fired_;
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
      const Armed armed(*this);
      body();
    }
    // What had reached the host before the loss is still given out.
    if (lost_before && what != "collect") problem(std::string(what) + " succeeds on a lost device");
    return Outcome::done;
  } catch (const DeviceLost& error) {
    note_device_lost(what, error.what());
    return Outcome::gone;
  } catch (const WorkFailed& error) {
    note_work_failed(what, error.what());
  } catch (const DroppedValue& error) {
    note_dropped(what, error.what());
  } catch (const PlanRefused& error) {
    if (fault_.source != Fault::Source::stream) problem(std::string(what) + ": " + error.what());
    note_error(what, error.what());
  } catch (const BundleTooLarge& error) {
    // A device that refused the memory that it had given before: until it gives some again nothing runs.
    const bool none = current() != nullptr && current()->manager->report().device_budget.value == 0;
    if (!fault_.repeats() || !none) problem(std::string(what) + ": " + error.what());
    note_error(what, error.what());
  } catch (const UsageError& error) {
    problem(std::string(what) + ": " + error.what());
    note_error(what, error.what());
  } catch (const BackendError& error) {
    note_error(what, error.what());
  } catch (const CallbackFault& error) {
    if (!callable_entered_) problem(std::string(what) + ": a callback's error without a callback");
    note_error(what, error.what());
  } catch (const Error& error) {
    // A stream turns whatever its buffer throws into a failure of its own.
    const bool by_stream = fault_.source == Fault::Source::stream || what == "saving a plan";
    if (!by_stream) problem(std::string(what) + ": " + error.what());
    note_error(what, error.what());
  } catch (const OutOfMemory& error) {
    note_error(what, error.what());
  } catch (const std::bad_alloc& error) {
    if (fault_.source != Fault::Source::operator_new) problem(std::string(what) + ": bad_alloc out of nothing");
    note_error(what, error.what());
  } catch (const std::exception& error) {
    problem(std::string(what) + ": an error of no known kind: " + error.what());
    note_error(what, error.what());
  }
  if (lost_before) problem(std::string(what) + ": not the sticky error on a lost device");
  return Outcome::failed;
}

bool World::call(std::string_view what, const std::function<void()>& body) {
  for (int tries = 0; tries < 2; ++tries) {
    const Outcome outcome = attempt(what, body);
    if (outcome == Outcome::done) return true;
    if (outcome == Outcome::gone) return false;
    restore_lost();
  }
  if (!fault_.repeats() && !fault_.loses_device()) problem(std::string(what) + " fails a second time");
  return false;
}

void World::guarded(const std::function<void()>& body) {
  const Armed armed(*this);
  body();
}

// Where a call fails for good, the program goes on without it: then it may read what it never relies on.
void World::note_dropped(std::string_view what, const std::string& text) {
  for (Item& item : items_) {
    if (item.manager != current_ || text.find("tensor \"" + item.name + '"') == std::string::npos) continue;
    item.defined = false;
    if (fault_.repeats() && item.temporary) return;
  }
  problem(std::string(what) + ": " + text);
}

void World::note_error(std::string_view what, const char* text) {
  errors_.push_back(std::string(what) + ": " + text);
  // What a callable threw is the program's own; all else must name what it is about.
  const std::string_view seen = text;
  if (callable_entered_ && !callable_left_) return;
  const bool of_all = what == "synchronize" || what == "manager" || what == "collect" || what.ends_with(" profile");
  if (fault_.source == Fault::Source::backend && !of_all && seen.find('"') == std::string_view::npos) {
    problem(errors_.back() + ": names neither operation nor tensor");
  }
}

void World::note_device_lost(std::string_view what, const std::string& text) {
  if (!fault_.loses_device()) problem(std::string(what) + ": " + text);
  if (current_ >= managers_.size()) {
    errors_.push_back(std::string(what) + ": " + text);
    return;
  }
  Managed& managed = *managers_[current_];
  if (managed.lost) {
    if (text != managed.lost_text) problem("the sticky error changed to " + text);
    return;
  }
  managed.lost = true;
  managed.lost_text = text;
  errors_.push_back(std::string(what) + ": " + text);
  if (text.find("lost") == std::string::npos) problem(text + ": does not say which values are lost");
}

void World::note_work_failed(std::string_view what, const std::string& text) {
  const bool abandoned = text.find("was lost before it reached the host") != std::string::npos;
  if (abandoned) {
    ++reads_of_lost_;
    return;
  }
  errors_.push_back(std::string(what) + ": " + text);
  if (text.find("which an earlier failure left undefined") != std::string::npos) {
    problem(errors_.back() + ": nobody declared the value lost");
    return;
  }
  const bool possible = fault_.source == Fault::Source::kernel ||
                        (fault_.source == Fault::Source::backend && fault_.mode == FaultMode::late);
  if (!possible) problem(errors_.back());
  work_failed_ = true;
  const std::size_t list = text.find("undefined from now on: ");
  if (list == std::string::npos) return;
  const bool more = text.find(" more", list) != std::string::npos;
  for (Item& item : items_) {
    if (item.manager != current_ || !item.defined) continue;
    if (!more && text.find('"' + item.name + '"', list) == std::string::npos) continue;
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
    if (!fault_.repeats() && !fault_.loses_device() && fault_.source != Fault::Source::operator_new) {
      try {
        (void)item.tensor->download();
        problem("tensor \"" + item.name + "\" was declared lost and can be read");
      } catch (const WorkFailed& error) {
        if (std::string_view(error.what()).find('"' + item.name + '"') == std::string_view::npos) {
          problem(std::string("a read of a lost value does not name it: ") + error.what());
        }
      } catch (const std::exception& error) {
        problem("a read of lost tensor \"" + item.name + "\": " + error.what());
      }
    }
    item.lost = false;
    upload(i, next_salt());
  }
  restoring_ = false;
}

void World::check_value(Item& item, const std::vector<Element>& seen, std::string_view where) {
  if (!item.defined) return problem(std::string(where) + ": tensor \"" + item.name + "\" has a value and should not");
  if (seen != item.value) problem(std::string(where) + ": tensor \"" + item.name + "\" has another value");
}

}  // namespace swapmm::test
