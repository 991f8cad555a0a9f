// SPDX-License-Identifier: Apache-2.0
#pragma once

// The implementation of a manager, driven without its facade: the way a layer below an API drives it.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/core/running_operation.hpp>

#include "support/small_program.hpp"

namespace swapmm::test {

struct CoreDesk {
  using Core = runtime::Core<Simulated>;
  using Rec = runtime::Record<Simulated>;
  using Item = runtime::BundleItem<Simulated>;
  using Running = runtime::RunningOperation<Simulated>;

  explicit CoreDesk(const Options& options = {.device_budget = Bytes{256}},
                    const runtime::EntranceOptions& entrance = {})
      : core(std::make_shared<Core>(device, options, std::make_shared<runtime::ProgramBook>(SchedulerOptions{}),
                                    entrance)) {}

  [[nodiscard]] static runtime::TensorKey<Simulated> key(Rec& record) { return {&record, record.tensor.serial}; }
  [[nodiscard]] static Item item(Rec& record, Access access) { return {&record, access, record.tensor.serial}; }

  Rec& tensor(std::string_view name, Bytes bytes = tensor_bytes) { return core->create(name, bytes, Lifetime::kept); }
  Rec& uploaded(std::string_view name, int value) {
    Rec& record = tensor(name);
    const std::vector<int> data(length, value);
    core->upload(key(record), Bytes{}, std::as_bytes(std::span(data)));
    return record;
  }
  /// All elements are `value`, by an operation.
  Rec& written(std::string_view name, int value) {
    Rec& record = tensor(name);
    run({item(record, Access::write)},
        [value](const std::vector<std::span<int>>& all) { std::fill(all[0].begin(), all[0].end(), value); });
    return record;
  }
  [[nodiscard]] bool holds(Rec& record, int value) {
    std::vector<int> data(length);
    core->download(key(record), Bytes{}, std::as_writable_bytes(std::span(data)));
    return std::all_of(data.begin(), data.end(), [&](int element) { return element == value; });
  }

  /// Runs `body(spans)` on the device, with the elements of all tensors of the bundle. The checker is told of accesses
  /// as the items declare them.
  template <class Body>
  void run(const std::vector<Item>& items, Body body, Bytes scratch = {}) {
    const runtime::Request<Simulated> request{"run", items, scratch, scratch.value != 0};
    Running running(*core, request, false);
    std::vector<std::span<int>> spans;
    std::vector<Touch> touches;
    for (const Item& each : items) {
      const auto view = Simulated::View<int>(running.address(*each.record, Bytes{}, each.record->bytes),
                                             static_cast<std::size_t>(each.record->bytes.value / sizeof(int)));
      spans.emplace_back(view.data(), view.size());
      if (each.access != Access::write) touches.push_back(Touch::read(view));
      if (each.access != Access::read) touches.push_back(Touch::write(view));
    }
    device.queue().launch("run", operation_time, touches, [spans, body] { body(spans); });
    running.complete();
  }
  /// Brings the bundle in; then the API refuses the work.
  void cancelled(const std::vector<Item>& items, Bytes scratch = {}, bool as_list = false) {
    const runtime::Request<Simulated> request{"cancelled", items, scratch, scratch.value != 0};
    Running running(*core, request, as_list);
    if (as_list) (void)running.wait_list();
    running.cancel();
  }

  Simulated device;
  std::shared_ptr<Core> core;
};

}  // namespace swapmm::test
