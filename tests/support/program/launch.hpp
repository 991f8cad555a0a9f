// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/memory_manager.hpp>

#include "support/program/addresses.hpp"
#include "support/program/device.hpp"

namespace swapmm::test {

/// Gives operations to a manager, in every form there is.
template <ProgramDevice D>
class ProgramLauncher {
 public:
  using Device = typename D::Backend;
  using Manager = MemoryManager<Device>;
  using Views = std::array<std::optional<View<std::byte, Device>>, most_parts>;  ///< of the operands

  ProgramLauncher(D& device, AddressHistory& addresses) : device_(device), addresses_(addresses) {}

  void run(Manager& manager, const Action& action, Kernel& kernel, const Views& views, bool replayable = false) {
    const std::string name = operation_name(action.name);
    if (replayable) return run_replayable(manager, action, kernel, views, name);
    const auto in_order = [&](auto& op) {
      find_places(op, kernel, views);
      device_.launch(op.queue(), name, kernel, action.form, places_);
    };
    const auto with_waits = [&](auto& op, const typename Device::WaitList& waits) {
      find_places(op, kernel, views);
      return device_.launch(op.queue(), name, kernel, action.form, places_, waits);
    };
    if (action.form.by_bundle || action.part_count == 0 || action.part_count > 3) {
      fill_bundle(action, views);
      action.form.gives_event ? manager.run(name, bundle_, with_waits) : manager.run(name, bundle_, in_order);
    } else if (action.form.gives_event) {
      run_accesses(manager, action, name, views, with_waits);
    } else {
      run_accesses(manager, action, name, views, in_order);
    }
  }

 private:
  // What is kept runs after this call: it has copies of everything, and a kernel of its own for each run.
  void run_replayable(Manager& manager, const Action& action, const Kernel& kernel, const Views& views,
                      const std::string& name) {
    fill_bundle(action, views);
    bundle_.replayable();
    const auto in_order = [this, &action, &kernel, views, name](auto& op) {
      Kernel& own = own_kernels_.emplace_back(kernel);
      find_places(op, own, views);
      device_.launch(op.queue(), name, own, action.form, places_);
    };
    const auto with_waits = [this, &action, &kernel, views, name](auto& op, const typename Device::WaitList& waits) {
      Kernel& own = own_kernels_.emplace_back(kernel);
      find_places(op, own, views);
      return device_.launch(op.queue(), name, own, action.form, places_, waits);
    };
    action.form.gives_event ? manager.run(name, bundle_, with_waits) : manager.run(name, bundle_, in_order);
  }

  void find_places(auto& op, const Kernel& kernel, const Views& views) {
    places_.clear();
    for (std::size_t i = 0; i < kernel.part_count; ++i) {
      const Kernel::Operand& operand = kernel.parts[i];
      places_.push_back(op[*views[i]]);
      ProgramPlace tensor = device_.place(places_.back());
      tensor.offset -= operand.layout.begin(operand.range.first);
      addresses_.add(tensor);
    }
    if (kernel.scratch_bytes == 0) return;
    places_.push_back(op.scratch());
    addresses_.add(device_.place(places_.back()));
  }

  void fill_bundle(const Action& action, const Views& views) {
    bundle_.clear();
    for (std::size_t i = 0; i < action.part_count; ++i) {
      switch (action.parts[i].access) {
        case Access::read: bundle_.reads(*views[i]); break;
        case Access::write: bundle_.writes(*views[i]); break;
        case Access::update: bundle_.updates(*views[i]); break;
      }
    }
    bundle_.scratch(Bytes{action.bytes});
  }

  template <class Callable>
  void run_accesses(Manager& manager, const Action& action, const std::string& name, const Views& views,
                    Callable& callable) {
    const auto access = [&](std::size_t i) {
      switch (action.parts[i].access) {
        case Access::write: return writes(*views[i]);
        case Access::update: return updates(*views[i]);
        case Access::read: break;
      }
      return reads(*views[i]);
    };
    const Scratch work = scratch(std::size_t{action.bytes});
    switch (action.part_count) {
      case 1: return manager.run(name, access(0), work, callable);
      case 2: return manager.run(name, access(0), access(1), work, callable);
      default: return manager.run(name, access(0), access(1), work, access(2), callable);
    }
  }

  D& device_;
  AddressHistory& addresses_;
  std::vector<typename Device::template View<std::byte>> places_;  // of the operation under way
  Bundle<Device> bundle_;
  std::deque<Kernel> own_kernels_;
};

}  // namespace swapmm::test
