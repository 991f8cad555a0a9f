// SPDX-License-Identifier: Apache-2.0
// The steps of a budget change, each by itself: what is copied to the host, what stays as it was where a step fails,
// and what is left where the device gives nothing back.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/options.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/budget_change.hpp>
#include <swapmm/runtime/core/session.hpp>
#include <swapmm/runtime/core/tensor_registry.hpp>

#include "support/failing_new.hpp"
#include "support/null_backend.hpp"
#include "support/small_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

/// A backend whose next allocations of device memory end as they were told to.
class ScriptedBackend : public NullBackend {
 public:
  explicit ScriptedBackend(Bytes max_allocation = 1_KiB) : script_(std::make_shared<Script>()) {
    script_->capabilities = NullBackend::capabilities();
    script_->capabilities.max_allocation = max_allocation;
  }
  [[nodiscard]] const Capabilities& capabilities() const { return script_->capabilities; }
  [[nodiscard]] DeviceMemory allocate(Bytes size) {
    if (!script_->ends.empty()) {
      const std::exception_ptr end = script_->ends.front();
      script_->ends.pop_front();
      if (end != nullptr) std::rethrow_exception(end);
    }
    return NullBackend::allocate(size);
  }
  /// One after the other; null: memory is given.
  void let_allocations_end(std::deque<std::exception_ptr> ends) { script_->ends = std::move(ends); }

 private:
  struct Script {
    Capabilities capabilities;
    std::deque<std::exception_ptr> ends;
  };
  std::shared_ptr<Script> script_;
};

const std::exception_ptr allocation_given = nullptr;
const std::exception_ptr allocation_refused =
    std::make_exception_ptr(BackendError(BackendError::Kind::out_of_device_memory, -4, "none left"));

/// An open manager without its facade, and tensors whose copies the test makes up.
struct BudgetChangeDesk {
  using Rec = runtime::Record<ScriptedBackend>;

  explicit BudgetChangeDesk(Options options = {.device_budget = 256_bytes}, Bytes max_allocation = 1_KiB)
      : backend(max_allocation), session(backend, with_short_queues(options), book), store(session.state.store) {
    book.prepare_budgets({store.budget()});
    book.use_budget(store.budget());
  }
  static Options with_short_queues(Options options) {
    options.queue_depth = 8;
    return options;
  }
  Rec& tensor(std::string_view name) {
    return runtime::TensorRegistry<ScriptedBackend>::create(session, name, tensor_bytes, Lifetime::observed);
  }
  /// Its value is on the device alone.
  Rec& on_device(std::string_view name) {
    Rec& record = tensor(name);
    REQUIRE(session.state.demand.bring_to(record, store.used(), false));
    record.device.valid = true;
    return record;
  }
  void change(Bytes budget) {
    runtime::BudgetChange<ScriptedBackend>(session.state, session.controller, book).to(budget);
  }

  ScriptedBackend backend;
  runtime::ProgramBook book{SchedulerOptions{}};
  runtime::Session<ScriptedBackend> session;
  runtime::Store<ScriptedBackend>& store;
};

}  // namespace

TEST_CASE("a budget change copies to the host what living tensors have on the device alone, and nothing else") {
  BudgetChangeDesk desk;
  auto& alone = desk.on_device("alone");
  auto& both = desk.on_device("both");
  desk.store.ensure_block(both);
  both.host.valid = true;
  auto& ended = desk.on_device("ended");
  desk.store.records.end(ended);
  auto& never_written = desk.on_device("never written");
  never_written.device.valid = false;
  desk.change(128_bytes);
  CHECK(desk.store.traffic.swap_outs == 1);
  CHECK(desk.store.traffic.d2h == tensor_bytes);
  CHECK(desk.store.pool.budget().peak() == tensor_bytes + tensor_bytes);
  CHECK(alone.host.valid);
  CHECK(both.host.valid);
  CHECK(ended.host.block == nullptr);
  CHECK(never_written.host.block == nullptr);
  CHECK(desk.store.used() == 0_bytes);
  CHECK(desk.store.budget() == 128_bytes);
}

TEST_CASE("where the host refuses memory for one value, no tensor keeps what it got, and none loses what it had") {
  BudgetChangeDesk desk({.device_budget = 256_bytes, .host_budget = 128_bytes});
  auto& with_memory = desk.on_device("with memory");
  desk.store.ensure_block(with_memory);
  const auto* const block = with_memory.host.block.get();
  auto& first = desk.on_device("first");
  auto& second = desk.on_device("second");
  (void)text_of<OutOfMemory>([&] { desk.change(128_bytes); });
  CHECK(with_memory.host.block.get() == block);
  CHECK(first.host.block == nullptr);
  CHECK(second.host.block == nullptr);
  CHECK(desk.store.traffic.swap_outs == 0);
  CHECK(desk.store.budget() == 256_bytes);
  CHECK(desk.store.used() == 192_bytes);
}

TEST_CASE("a budget change that runs out of memory gives host memory to all tensors that need it, or to none") {
  std::size_t before_copies = 0;
  std::uint64_t n = 0;
  for (bool fired = true; fired;) {
    BudgetChangeDesk desk;
    const std::vector<BudgetChangeDesk::Rec*> records{&desk.on_device("a"), &desk.on_device("b"), &desk.on_device("c")};
    bool short_of_memory = false;
    {
      const FailingNew failing(++n);
      try {
        desk.change(128_bytes);
      } catch (const std::bad_alloc&) {
        short_of_memory = true;
      }
      fired = failing.fired();
    }
    CAPTURE(n);
    if (!short_of_memory || desk.store.traffic.swap_outs != 0) continue;
    ++before_copies;
    CHECK(desk.store.budget() == 256_bytes);
    for (const auto* const record : records) {
      CHECK((record->host.block == nullptr) == (records[0]->host.block == nullptr));
      CHECK(record->device.valid);
    }
  }
  CHECK(before_copies > 3);
}

TEST_CASE("a value that was promised waits in its own memory while the next one is copied out for a new budget") {
  BudgetChangeDesk desk;
  auto& record = desk.on_device("promised");
  std::vector<std::byte> target(tensor_bytes.value);
  runtime::PendingRead read;
  desk.session.host.promise(read, record, Bytes{}, target, {"download of tensor ", record.name});
  const auto* const block = record.host.block.get();
  record.host.valid = false;  // an operation writes the next value
  desk.change(128_bytes);
  CHECK(record.host.valid);
  CHECK(read.state == runtime::PendingRead::State::waiting);
  CHECK(record.host.block.get() != block);
  CHECK(record.host.spare.get() == block);
  desk.session.state.promises.collect(desk.store, read);
  CHECK(read.state == runtime::PendingRead::State::done);
}

TEST_CASE("a new budget comes with room to book the places of all tensors and of one work area") {
  for (const std::size_t places : {3U, 16U}) {
    for (const std::size_t tensors : {0U, 1U, 2U, 12U}) {
      CAPTURE(places);
      CAPTURE(tensors);
      BudgetChangeDesk desk({.device_budget = 256_bytes}, tensor_bytes);
      for (std::size_t i = 0; i < tensors; ++i) (void)desk.tensor("t");
      desk.change(Bytes{places * tensor_bytes.value});
      const std::uint64_t allocated = allocations();
      std::size_t taken = 0;
      for (std::size_t i = 0; i <= tensors; ++i) taken += desk.store.places.take(tensor_bytes) ? 1 : 0;
      CHECK(allocations() == allocated);
      CHECK(taken == std::min(tensors + 1, places));
    }
  }
}

TEST_CASE("where the device is lost while the old memory is taken again, this is what is told") {
  BudgetChangeDesk desk;
  auto& record = desk.on_device("a");
  const BackendError gone(BackendError::Kind::device_lost, 9, "gone");
  desk.backend.let_allocations_end({allocation_given, allocation_refused, std::make_exception_ptr(gone)});
  const auto error = thrown<BackendError>([&] { desk.change(512_bytes); });
  REQUIRE(error);
  CHECK(error->kind == BackendError::Kind::device_lost);
  CHECK(error->code == 9);
  CHECK(desk.store.budget() == 0_bytes);
  CHECK(record.host.valid);
}

TEST_CASE(
    "where memory runs out while the old device memory is taken again, there is none, and the next change works") {
  BudgetChangeDesk desk;
  auto& record = desk.on_device("a");
  desk.backend.let_allocations_end({allocation_given, allocation_refused, std::make_exception_ptr(std::bad_alloc())});
  CHECK(thrown<std::bad_alloc>([&] { desk.change(512_bytes); }).has_value());
  CHECK(desk.store.budget() == 0_bytes);
  CHECK(desk.session.state.budget_changes == 0);
  CHECK(record.host.valid);
  desk.change(128_bytes);
  CHECK(desk.store.budget() == 128_bytes);
  CHECK(desk.session.state.budget_changes == 1);
}
