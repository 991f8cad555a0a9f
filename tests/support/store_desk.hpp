// SPDX-License-Identifier: Apache-2.0
#pragma once

// The values of a manager, and swapping on demand, without a manager around them: a test says what is used when.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/backend/testing/faulty.hpp>
#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/options.hpp>
#include <swapmm/runtime/moves/demand.hpp>
#include <swapmm/runtime/values/store.hpp>

#include "support/small_program.hpp"

namespace swapmm::test {

struct StoreDesk {
  using Device = Faulty<Simulated>;
  using Rec = runtime::Record<Device>;
  using Item = runtime::BundleItem<Device>;

  explicit StoreDesk(const Options& options = {.device_budget = Bytes{256}}, const simulated::Options& device = {})
      : inner(device), store(Device(inner), options) {}
  /// On a device that gives memory in pieces of at most 128 bytes.
  [[nodiscard]] static simulated::Options in_pieces() {
    simulated::Options device;
    device.max_allocation = Bytes{128};
    return device;
  }

  Rec& tensor(std::string_view name, Bytes bytes = tensor_bytes) {
    demand.reserve(store.records.size() + 1);
    return store.records.add(name, bytes, Lifetime::observed, 1);
  }
  /// On the device, at that place, with a value that is nowhere else.
  Rec& placed(std::string_view name, Bytes offset, Bytes bytes = tensor_bytes) {
    Rec& record = tensor(name, bytes);
    REQUIRE(demand.bring_to(record, offset, false));
    record.device.valid = true;
    return record;
  }
  /// Brings the bundle of an operation to the device, which is not queued yet.
  runtime::Grant<Device> bring(const std::vector<Item>& items, Bytes scratch = {}) {
    for (const Item& item : items) item.record->use.stamp = stamp + 1;
    const runtime::Request<Device> request{"operation", items, scratch, scratch.value != 0};
    runtime::Grant<Device> grant;
    demand.check_fits(request);
    demand.bring(request, ++stamp, grant);
    return grant;
  }
  /// An operation that gives all of them new values.
  void write(const std::vector<Rec*>& records) {
    std::vector<Item> items;
    for (Rec* const record : records) items.push_back({record, Access::write});
    (void)bring(items);
    for (Rec* const record : records) {
      record->device.valid = true;
      record->host.valid = false;
    }
  }
  /// What is on the device, the least recently used first.
  [[nodiscard]] std::vector<std::string> residents() {
    std::vector<std::string> names;
    demand.for_each_resident([&](const Rec& record) { names.push_back(record.name); });
    return names;
  }

  Simulated inner;
  runtime::Store<Device> store;
  runtime::Demand<Device> demand{store};
  std::uint64_t stamp = 0;
};

}  // namespace swapmm::test
