// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm {

namespace detail {

/// Copies in both directions on several devices, timed.
template <Backend B>
class SharedLinksProbe {
 public:
  explicit SharedLinksProbe(std::span<B> backends, Bytes piece) : piece_(piece) {
    for (const B& backend : backends) piece_ = round_up(piece_, backend.capabilities().alignment);
    devices_.reserve(backends.size());
    for (B& backend : backends) devices_.emplace_back(backend, piece_);
  }

  SharedLinksProbe(const SharedLinksProbe&) = delete;
  SharedLinksProbe& operator=(const SharedLinksProbe&) = delete;
  ~SharedLinksProbe() {
    for (Device& device : devices_) {
      try {
        device.backend.set_timing(false);
      } catch (const BackendError&) {  // NOLINT(bugprone-empty-catch): a lost device measures nothing
      }
    }
  }

  [[nodiscard]] LinkCapacities measure() {
    for (Device& device : devices_) device.backend.set_timing(true);
    std::vector<Device*> all;
    for (Device& device : devices_) all.push_back(&device);
    (void)time(all, true, true);  // the first time, pages and queues are new
    // Each copies so much that all of them end at about the same time.
    for (Device* const device : all) {
      device->in.alone = time({device}, true, false);
      device->out.alone = time({device}, false, true);
    }
    const double in_slowest = longest_alone(&Device::in);
    const double out_slowest = longest_alone(&Device::out);
    for (Device* const device : all) {
      device->in.repeat(in_slowest);
      device->out.repeat(out_slowest);
    }
    const double in = time(all, true, false);
    const double out = time(all, false, true);
    const double both = time(all, true, true);
    double both_alone = std::max(in, out);  // one device may be slower, too, if it copies both ways
    for (Device* const device : all) both_alone = std::max(both_alone, time({device}, true, true));
    const double in_bytes = bytes(&Device::in);
    const double out_bytes = bytes(&Device::out);
    return {shared(in_bytes, in, longest_alone(&Device::in)), shared(out_bytes, out, longest_alone(&Device::out)),
            shared(in_bytes + out_bytes, both, both_alone)};
  }

 private:
  struct Lane {
    explicit Lane(B& backend) : begin(backend.make_event()), end(backend.make_event()) {}
    /// Copies as often as takes so long.
    void repeat(double seconds) {
      const double wanted = std::clamp(seconds / alone * copies, 1.0, 64.0);
      const int before = std::exchange(copies, static_cast<int>(wanted));
      alone *= static_cast<double>(copies) / before;
    }
    typename B::Event begin;
    typename B::Event end;
    int copies = 4;    // in a row
    double alone = 0;  // seconds of them, without others
  };
  struct Device {
    Device(B& on, Bytes piece)
        : backend(on),
          memory(on.allocate(piece + piece)),
          in_host(on.allocate_host(piece, HostKind::pinned)),
          out_host(on.allocate_host(piece, HostKind::pinned)),
          in_place(on.address(memory, Bytes{}, piece)),
          out_place(on.address(memory, piece, piece)),
          in(on),
          out(on) {
      std::memset(in_host.data(), 0, static_cast<std::size_t>(piece.value));
    }
    B& backend;
    typename B::DeviceMemory memory;
    typename B::HostMemory in_host;
    typename B::HostMemory out_host;
    typename B::Address in_place;
    typename B::Address out_place;
    Lane in;
    Lane out;
  };

  /// Seconds until all these devices are done.
  double time(const std::vector<Device*>& devices, bool in, bool out) {
    const auto before = std::chrono::steady_clock::now();
    int most = 0;
    for (Device* const device : devices) {
      if (in) device->backend.record(QueueKind::h2d, device->in.begin);
      if (out) device->backend.record(QueueKind::d2h, device->out.begin);
      most = std::max({most, device->in.copies, device->out.copies});
    }
    for (int i = 0; i < most; ++i) {
      for (Device* const device : devices) copy(*device, in && i < device->in.copies, out && i < device->out.copies);
    }
    for (Device* const device : devices) {
      if (in) device->backend.wait(device->in.end);
      if (out) device->backend.wait(device->out.end);
    }
    const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - before;
    std::chrono::nanoseconds longest{1};
    for (Device* const device : devices) {
      for (const auto& [is_used, lane] : {std::pair(in, &device->in), std::pair(out, &device->out)}) {
        if (is_used) longest = std::max(longest, device->backend.elapsed(lane->begin, lane->end).value_or(waited));
      }
    }
    return std::chrono::duration<double>(longest).count();
  }
  void copy(Device& device, bool in, bool out) const {
    B& backend = device.backend;
    if (in) backend.copy_to_device(device.in_place, device.in_host, Bytes{}, piece_, {}, device.in.end);
    if (out) backend.copy_to_host(device.out_host, Bytes{}, device.out_place, piece_, {}, device.out.end);
    backend.flush(QueueKind::h2d);
    backend.flush(QueueKind::d2h);
  }
  [[nodiscard]] double longest_alone(Lane Device::*lane) const {
    double longest = 0;
    for (const Device& device : devices_) longest = std::max(longest, (device.*lane).alone);
    return longest;
  }
  [[nodiscard]] double bytes(Lane Device::*lane) const {
    int copies = 0;
    for (const Device& device : devices_) copies += (device.*lane).copies;
    return static_cast<double>(piece_.value) * copies;
  }

  /// Bytes per second that are shared, if all together are slower than they would be alone by more than noise; else 0.
  static std::uint64_t shared(double bytes, double together, double alone) {
    constexpr double noise = 1.05;
    return together > noise * alone ? static_cast<std::uint64_t>(bytes / together) : 0;
  }

  Bytes piece_;
  std::vector<Device> devices_;
};

}  // namespace detail

/// Measures what devices share on their way to the host, for SharedLinks: how fast copies of each device are alone, and
/// of all of them at once. Takes a tenth of a second or so on real devices. Meanwhile it uses twice `piece` of device
/// memory and of page-locked host memory for each device. Nothing else should run there, so measure before managers are
/// made. All capacities are 0 if nothing is shared, or if there are fewer than two backends. Throws BackendError.
template <Backend B>
[[nodiscard]] LinkCapacities measure_shared_links(std::span<B> backends, Bytes piece = Bytes{32U << 20U}) {
  if (backends.size() < 2) return {};
  return detail::SharedLinksProbe<B>(backends, piece).measure();
}

}  // namespace swapmm
