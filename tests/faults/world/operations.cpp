// SPDX-License-Identifier: Apache-2.0
// Operations: on the device, and in the model.

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "faults/world/world.hpp"

namespace swapmm::test {

namespace {

using DeviceView = FaultyDevice::View<Element>;

/// Everything in 32-bit numbers, so that the host's model says the same.
struct Kernel {
  std::vector<DeviceView> reads;
  std::vector<DeviceView> writes;
  std::vector<DeviceView> updates;
  std::optional<FaultyDevice::View<std::byte>> scratch;
  Element salt = 0;

  void operator()() const {
    if (scratch) std::fill_n(scratch->data(), scratch->size(), static_cast<std::byte>(salt));
    const auto gathered = [&](std::size_t i) {
      Element value = salt;
      for (const DeviceView& read : reads) value = value * 31 + read[i % read.size()];
      return value;
    };
    for (const DeviceView& view : updates) {
      for (std::size_t i = 0; i < view.size(); ++i) view[i] = view[i] * 5 + gathered(i);
    }
    for (const DeviceView& view : writes) {
      for (std::size_t i = 0; i < view.size(); ++i) view[i] = gathered(i) + static_cast<Element>(i);
    }
  }
};

}  // namespace

void World::launch(const Step& step, Operation<FaultyDevice>& op, const simulated::WaitList* waits,
                   simulated::NativeEvent* event) {
  callable_entered_ = true;
  device().fault_point();
  auto kernel = std::make_shared<Kernel>();
  kernel->salt = step_salt_;
  std::vector<simulated::Touch> touches;
  for (const std::size_t t : step.reads) {
    kernel->reads.push_back(op[*items_[t].tensor]);
    touches.push_back(simulated::Touch::read(kernel->reads.back()));
  }
  for (const std::size_t t : step.updates) {
    kernel->updates.push_back(op[*items_[t].tensor]);
    touches.push_back(simulated::Touch::write(kernel->updates.back()));
  }
  for (const std::size_t t : step.writes) {
    kernel->writes.push_back(op[*items_[t].tensor]);
    touches.push_back(simulated::Touch::write(kernel->writes.back()));
  }
  if (step.scratch_bytes != 0) {
    kernel->scratch = op.scratch();
    touches.push_back(simulated::Touch::write(*kernel->scratch));
  }
  constexpr std::chrono::nanoseconds duration{500};
  device().launch([&] {
    if (waits != nullptr) {
      *event = op.queue().launch(step.name, duration, touches, *waits, [kernel] { (*kernel)(); });
    } else {
      op.queue().launch(step.name, duration, touches, [kernel] { (*kernel)(); });
    }
  });
  device().fault_point();  // an operation may also fail behind the work that it queued
  callable_left_ = true;
}

void World::apply(const Step& step, Element salt) {
  const auto gathered = [&](std::size_t i) {
    Element value = salt;
    for (const std::size_t t : step.reads) value = value * 31 + items_[t].value[i % items_[t].value.size()];
    return value;
  };
  for (const std::size_t t : step.updates) {
    auto& value = items_[t].value;
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = value[i] * 5 + gathered(i);
  }
  for (const std::size_t t : step.writes) {
    auto& value = items_[t].value;
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = gathered(i) + static_cast<Element>(i);
    items_[t].defined = true;
    items_[t].lost = false;
  }
}

void World::lose_outputs(const Step& step) {
  for (const auto* const list : {&step.writes, &step.updates}) {
    for (const std::size_t t : *list) {
      items_[t].defined = false;
      items_[t].lost = true;
    }
  }
}

bool World::run_step(const Step& step, const std::function<void()>& expect_refusal) {
  Managed* const managed = current();
  if (managed == nullptr) return false;
  for (const auto* const list : {&step.reads, &step.writes, &step.updates}) {
    for (const std::size_t t : *list) {
      if (usable(t) == nullptr) return false;
    }
  }
  Bundle<FaultyDevice> bundle;
  for (const std::size_t t : step.reads) bundle.reads(*items_[t].tensor);
  for (const std::size_t t : step.writes) bundle.writes(*items_[t].tensor);
  for (const std::size_t t : step.updates) bundle.updates(*items_[t].tensor);
  bundle.scratch(Bytes{step.scratch_bytes});
  concerned_.clear();
  for (const auto* const list : {&step.reads, &step.writes, &step.updates}) {
    concerned_.insert(concerned_.end(), list->begin(), list->end());
  }
  for (std::size_t tries = 0; tries < 1 + std::max<std::size_t>(1, script_.faults().size()); ++tries) {
    for (const auto* const list : {&step.reads, &step.updates}) {
      for (const std::size_t t : *list) {
        if (!items_[t].defined) return false;
      }
    }
    callable_entered_ = callable_left_ = false;
    step_salt_ = next_salt();
    const Outcome outcome = attempt(step.name, [&] {
      const auto queue_it = [&] {
        if (step.waits_as_list) {
          managed->manager->run(step.name, bundle, [&](Operation<FaultyDevice>& op, const simulated::WaitList& waits) {
            simulated::NativeEvent event;
            launch(step, op, &waits, &event);
            return event;
          });
        } else {
          managed->manager->run(step.name, bundle,
                                [&](Operation<FaultyDevice>& op) { launch(step, op, nullptr, nullptr); });
        }
      };
      if (!expect_refusal) return queue_it();
      try {
        queue_it();
        problem(step.name + " is too large and was not refused");
      } catch (const BundleTooLarge&) {
      }
    });
    const bool entered = std::exchange(callable_entered_, false);
    if (outcome == Outcome::done) {
      if (!expect_refusal) apply(step, step_salt_);
      return true;
    }
    // On a lost device there may have been no memory for the text of its error.
    const bool may_be_gone = script_.loses_device() && script_.of_class(CallClass::operator_new);
    if (entered && callable_left_ && outcome != Outcome::gone && !may_be_gone) {
      problem(step.name + " throws though it was queued");
    }
    if (entered) lose_outputs(step);
    if (outcome == Outcome::gone) return false;
    restore_lost();
  }
  if (!script_.repeats() && !script_.loses_device()) problem(step.name + " fails each time");
  return false;
}

void World::run(const Step& step) { run_step(step, {}); }
void World::run_too_large(const Step& step) {
  run_step(step, [] {});
}

}  // namespace swapmm::test
