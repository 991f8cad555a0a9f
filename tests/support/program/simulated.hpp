// SPDX-License-Identifier: Apache-2.0
#pragma once

// The simulated device under the runner of programs.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/report.hpp>

#include "support/program/device.hpp"

namespace swapmm::test {

/// With the options of the program. Kernels run on the device's bytes as they are, as one or two launches of one or two
/// phases; the checker of the device looks on.
class SimulatedProgramDevice {
 public:
  using Backend = simulated::Backend;
  using Place = simulated::View<std::byte>;

  /// Values may be encoded.
  static constexpr bool encodes = true;

  explicit SimulatedProgramDevice(const TestProgram& program) : probe_(with_staging(program)) {}

  [[nodiscard]] const Backend& backend() const { return probe_; }
  [[nodiscard]] static std::shared_ptr<Neighbour> neighbour(const NeighbourSetup& setup) {
    simulated::NeighbourOptions options;
    options.bytes = setup.capacity;
    options.alignment = setup.alignment;
    options.largest_allocation = setup.largest_allocation;
    options.in = {.bytes_per_second = setup.in_per_second};
    options.out = {.bytes_per_second = setup.out_per_second};
    return std::make_shared<simulated::Neighbour>(std::move(options));
  }

  static void launch(simulated::Queue& queue, std::string_view name, Kernel& kernel, const LaunchForm& form,
                     std::span<const Place> places) {
    const auto duration = kernel_duration(name);
    const Touched touched(kernel, places);
    const Kernel& ready = kernel;
    const auto read = [&ready] { ready.read(); };
    const auto write = [&ready] { ready.write(); };
    const auto both = [&ready] {
      ready.read();
      ready.write();
    };
    if (form.two_launches) {
      queue.launch(name, duration, touched.all(), read);
      queue.launch(name, duration, touched.all(), write);
    } else if (form.two_phases) {
      queue.launch(name, duration, touched.all(), read, write);
    } else {
      queue.launch(name, duration, touched.all(), both);
    }
  }
  static simulated::NativeEvent launch(simulated::Queue& queue, std::string_view name, Kernel& kernel,
                                       const LaunchForm& form, std::span<const Place> places,
                                       const simulated::WaitList& waits) {
    const auto duration = kernel_duration(name);
    const Touched touched(kernel, places);
    const Kernel& ready = kernel;
    const auto read = [&ready] { ready.read(); };
    const auto write = [&ready] { ready.write(); };
    if (form.two_launches) {
      (void)queue.launch(name, duration, touched.all(), waits, read);
      return queue.launch(name, duration, touched.all(), simulated::WaitList(), write);
    }
    return queue.launch(name, duration, touched.all(), waits, read, write);
  }

  [[nodiscard]] static ProgramPlace place(const Place& place) {
    return {nullptr, reinterpret_cast<std::uintptr_t>(place.data())};
  }

  [[nodiscard]] std::string violation() const {
    if (probe_.violation_count() == 0) return {};
    return "the device's checker: " + probe_.violations().front();
  }
  [[nodiscard]] std::string excess(const Report& report, const Options& options) const {
    const simulated::Counters& counters = probe_.counters();
    if (counters.peak_device_bytes > options.device_budget) return "the device holds more than the budget";
    if (counters.peak_host_bytes > options.host_budget) return "the host holds more than its budget";
    if (counters.pinned_bytes > options.pinned_budget) return "the host holds more than its pinned budget";
    if (counters.host_bytes > report.host_used) return "the host holds more than the report says";
    return {};
  }
  /// What the host has asked the device for, and the time that it has waited.
  [[nodiscard]] auto progress() const {
    const simulated::Counters& counters = probe_.counters();
    return std::tuple(std::to_array(counters.queued), counters.waited_events, counters.host_waits,
                      counters.device_memories.made, counters.host_memories.made, probe_.now());
  }
  /// Exactly the budget is taken from the driver.
  [[nodiscard]] std::string taken(Bytes budget) const {
    return probe_.counters().device_bytes == budget ? std::string() : "the device holds another amount than the budget";
  }
  [[nodiscard]] std::string left_over() const {
    const simulated::Counters& counters = probe_.counters();
    const auto left = counters.device_memories.live + counters.host_memories.live + counters.neighbour_memories.live +
                      counters.addresses.live + counters.events.live + counters.device_bytes.value +
                      counters.host_bytes.value;
    return left == 0 ? std::string() : "something is left on the device or the host";
  }
  [[nodiscard]] std::uint64_t trace_hash() const { return probe_.trace_hash(); }

 private:
  static simulated::Options with_staging(const TestProgram& program) {
    simulated::Options options = program.device;
    const Bytes one_way = round_up(Bytes{program.codec_staging.value / 2}, options.alignment);
    options.device_bytes += one_way + one_way;
    return options;
  }

  /// What a kernel touches, for the checker; its bytes are where the device has them.
  class Touched {
   public:
    Touched(Kernel& kernel, std::span<const Place> places) {
      for (std::size_t i = 0; i < kernel.part_count; ++i) {
        kernel.parts[i].data = places[i].data();
        add(kernel.parts[i].access == Access::read ? simulated::Touch::read(places[i])
                                                   : simulated::Touch::write(places[i]));
      }
      if (kernel.scratch_bytes == 0) return;
      kernel.scratch = places.back().data();
      add(simulated::Touch::write(places.back()));
    }
    [[nodiscard]] std::span<const simulated::Touch> all() const { return {touches_.data(), count_}; }

   private:
    void add(const simulated::Touch& touch) { touches_[count_++] = touch; }
    std::array<simulated::Touch, most_parts + 1> touches_;
    std::size_t count_ = 0;
  };

  Backend probe_;
};

static_assert(ProgramDevice<SimulatedProgramDevice>);

}  // namespace swapmm::test
