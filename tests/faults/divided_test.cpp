// SPDX-License-Identifier: Apache-2.0
// Each call of the backend fails, once in each way, while operations work on joined slices of divided tensors: values
// are right, or the program was told.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "support/effort.hpp"
#include "support/faulty_simulated.hpp"
#include "support/numbers.hpp"

namespace swapmm::test {
namespace {

using Device = FaultySimulated;
using simulated::Touch;
using namespace swapmm::literals;

constexpr std::size_t stencil_entries = 24;
constexpr std::size_t stencil_width = 4;

class DividedStencil {
 public:
  DividedStencil(Device& device, Form form)
      : device_(device),
        form_(form),
        manager_(device, {.device_budget = 512_bytes, .queue_depth = 8}),
        from_(manager_.divided<Number>({stencil_entries, stencil_width}, "from", {.entries = 4, .lifetime = kept})),
        to_(manager_.divided<Number>({stencil_entries, stencil_width}, "to", {.entries = 4, .lifetime = kept})),
        from_model_(numbers(stencil_entries * stencil_width, 1)),
        to_model_(numbers(stencil_entries * stencil_width, 2)) {}

  // A program that is told of a failure begins again with the values that it knows.
  void run() {
    restore();
    for (std::size_t i = 0; i < 5; ++i) {
      attempt([&] { iteration(); });
      for (std::size_t k = 0; k < to_model_.size(); ++k) to_model_[k] = value(k, to_model_[k]);
      attempt([&] { manager_.synchronize(); });
      if (told_) restore();
    }
    std::vector<Number> seen;
    attempt([&] { seen = to_.download(); });
    if (!seen.empty()) CHECK(seen == to_model_);
    if (lost) return;
    told_ = false;
    restore();
    CHECK(to_.download() == to_model_);
  }

  bool lost = false;

 private:
  // Of element k: 3 old + what the entries around it sum up to.
  [[nodiscard]] Number value(std::size_t k, Number old) const {
    const std::size_t entry = k / stencil_width;
    Number sum = from_model_[k];
    if (entry > 0) sum += from_model_[k - stencil_width];
    if (entry + 1 < stencil_entries) sum += from_model_[k + stencil_width];
    return 3U * old + sum;
  }

  void iteration() {
    const auto running = manager_.iteration();
    for (std::size_t first = 0; first < stencil_entries; first += 3) {  // slices that begin and end within pieces
      const auto out = to_.slice(first, 3);
      const auto in = from_.slice(first, 3).widened(1, 1);
      const auto queue = [&](auto& op, auto&&... waits) {
        const auto seen = op[in];
        const auto made = op[out];
        const std::size_t before = out.first() - in.first();
        return op.queue().launch("step", std::chrono::nanoseconds{100},
                                 {Touch::read(seen), Touch::read(made), Touch::write(made)}, waits...,
                                 [seen, made, before] {
                                   for (std::size_t i = 0; i < made.size(); ++i) {
                                     const std::size_t middle = i + before * stencil_width;
                                     Number sum = seen[middle];
                                     if (middle >= stencil_width) sum += seen[middle - stencil_width];
                                     if (middle + stencil_width < seen.size()) sum += seen[middle + stencil_width];
                                     made[i] = 3U * made[i] + sum;
                                   }
                                 });
      };
      if (form_ == Form::plain) {
        manager_.run("step", reads(in), updates(out), [&](auto& op) { device_.launch([&] { queue(op); }); });
      } else {
        manager_.run("step", reads(in), updates(out), [&](auto& op, const auto& waits) {
          simulated::NativeEvent end;
          device_.launch([&] { end = queue(op, waits); });
          return end;
        });
      }
    }
  }

  template <class Work>
  void attempt(Work&& work) {
    if (lost) return;
    try {
      work();
    } catch (const DeviceLost&) {
      lost = true;
    } catch (const Error&) {
      told_ = true;
    }
  }
  void restore() {
    for (int i = 0; i < 3 && !lost; ++i) {  // uploads may fail as well
      told_ = false;
      attempt([&] {
        from_.upload(from_model_);
        to_.upload(to_model_);
        manager_.synchronize();
      });
      if (!told_) return;
    }
  }

  Device& device_;
  Form form_;
  MemoryManager<Device> manager_;
  DividedTensor<Number, Device> from_, to_;
  Numbers from_model_, to_model_;
  bool told_ = false;
};

}  // namespace

TEST_CASE("operations on joined slices leave no wrong values behind whichever call fails") {
  constexpr std::array classes{FaultClass::launch,       FaultClass::record,          FaultClass::barrier_wait,
                               FaultClass::queue_access, FaultClass::adopt,           FaultClass::event_creation,
                               FaultClass::flush,        FaultClass::address_creation};
  constexpr std::array modes{FaultMode::once, FaultMode::blind, FaultMode::late, FaultMode::device_lost};
  for (const Form form : {Form::plain, Form::with_event}) {
    std::array<std::uint64_t, fault_class_count> calls{};
    {
      Device device{simulated::Backend()};
      DividedStencil(device, form).run();
      for (std::size_t i = 0; i < calls.size(); ++i) calls[i] = device.calls(static_cast<FaultClass>(i));
    }
    std::uint64_t fired = 0;
    for (const FaultClass fault_class : classes) {
      const std::uint64_t all = calls[static_cast<std::size_t>(fault_class)];
      const std::uint64_t apart = 1 + all / static_cast<std::uint64_t>(effort(24, 4));
      for (std::uint64_t call = 1; call <= all; call += apart) {
        for (const FaultMode mode : modes) {
          CAPTURE(to_string(fault_class));
          CAPTURE(to_string(mode));
          CAPTURE(call);
          Device device{simulated::Backend()};
          try {
            DividedStencil stencil(device, form);
            device.restart({.fault_class = fault_class, .mode = mode, .n = call});
            stencil.run();
          } catch (const Error& error) {
            FAIL_CHECK(std::string(error.what()));
          }
          fired += device.fired();
          for (const std::string& violation : device.inner().violations()) FAIL_CHECK(violation);
        }
      }
    }
    CHECK(fired > 50);
  }
}

TEST_CASE("a copy of a joined slice that cannot be queued is an error of the operation, and loses nothing") {
  for (const Form form : {Form::plain, Form::with_event}) {
    for (const FaultMode mode : {FaultMode::once, FaultMode::device_lost}) {
      Device device{simulated::Backend()};
      MemoryManager<Device> manager(device, {.device_budget = Bytes{512}});
      auto field = manager.divided<Number>({8, 4}, "field", {.entries = 4});
      const Numbers value = numbers(32, 1);
      field.upload(value);
      const auto slice = field.slice(3, 2);
      bool called = false;
      const auto use = [&] {
        if (form == Form::plain) {
          manager.run("use", updates(slice), [&](auto&) { called = true; });
        } else {
          manager.run("use", updates(slice), [&](auto& op, const auto& waits) {
            called = true;
            return op.queue().launch("use", std::chrono::nanoseconds{1}, {Touch::write(op[slice])}, waits, [] {});
          });
        }
      };
      device.restart({.fault_class = FaultClass::launch, .mode = mode, .n = 2});
      if (mode == FaultMode::device_lost) {
        CHECK_THROWS_AS(use(), DeviceLost);
        continue;
      }
      try {
        use();
        FAIL("no error");
      } catch (const BackendError& error) {
        CHECK(error.kind == BackendError::Kind::failed);
        CHECK(std::string(error.what()).find("operation \"use\"") != std::string::npos);
      }
      CHECK_FALSE(called);
      CHECK(field.download() == value);
      use();
      CHECK(called);
      CHECK(field.download() == value);
    }
  }
}

}  // namespace swapmm::test
