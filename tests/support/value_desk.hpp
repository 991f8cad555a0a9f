// SPDX-License-Identifier: Apache-2.0
#pragma once

// A store of values, and downloads from it, on a device that writes down what it is told.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/runtime/values/promises.hpp>
#include <swapmm/runtime/values/store.hpp>

#include "support/telling_backend.hpp"

namespace swapmm::test {

using Calls = std::vector<std::string>;

struct ValueDesk {
  using Store = runtime::Store<TellingBackend>;
  using Record = runtime::Record<TellingBackend>;
  static constexpr Bytes size{64};  ///< of each tensor

  explicit ValueDesk(Bytes host_budget = Bytes{4096})
      : store(
            TellingBackend(),
            {.device_budget = Bytes{1024}, .pinned_budget = host_budget, .host_budget = host_budget, .queue_depth = 8}),
        told(store.backend.told()) {}

  /// A tensor with a place on the device; `valid`: its value is there.
  Record& tensor(std::string_view name, bool valid = true) {
    Record& record = store.records.add(name, size, Lifetime::observed, 1);
    place(record);
    record.device.valid = valid;
    return record;
  }
  /// Gives the tensor a place that is free after `after`.
  void place(Record& record, const runtime::Clock& after = {}) {
    const auto free = store.places.take(size);
    store.assign_place(record, free->offset, store.addresses.at(free->offset, size), after);
  }
  /// Copies the tensor's value to the host.
  void swap_out(Record& record) {
    store.ensure_block(record);
    store.swap_out(record, store.before_swap_out(record));
  }
  /// Promises the tensor's value, which is swapped out for that.
  void promise(runtime::PendingRead& read, Record& record, std::span<std::byte> target) {
    promises.prepare(read, record);
    if (!record.host.valid) {
      store.ensure_block_for_swap_out(record);
      store.swap_out(record, store.before_swap_out(record));
    }
    promises.add(read, record, Bytes{}, target);
  }
  [[nodiscard]] Calls calls() const { return store.backend.take_calls(); }

  Store store;
  Told& told;
  runtime::Promises<TellingBackend> promises;
};

}  // namespace swapmm::test
