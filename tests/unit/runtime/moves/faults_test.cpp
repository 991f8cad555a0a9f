// SPDX-License-Identifier: Apache-2.0
// What the errors of a wrong plan say: which tensors, and which of them have lost their values.
#include <doctest/doctest.h>

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <swapmm/runtime/moves/faults.hpp>

#include "support/null_backend.hpp"
#include "support/small_program.hpp"
#include "support/tensor_names.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using runtime::MissingReason;
using FaultItem = runtime::BundleItem<NullBackend>;
using FaultRecord = runtime::Record<NullBackend>;

/// Tensors with copies here and there.
struct FaultTable {
  FaultRecord& tensor(const char* name, bool resident, bool device_valid, bool host_valid) {
    FaultRecord& record = records.add(name, 64_bytes, persistent, 1);
    record.device.resident = resident;
    record.device.valid = device_valid;
    record.host.valid = host_valid;
    return record;
  }
  runtime::RecordTable<NullBackend> records;
};

}  // namespace

TEST_CASE("a tensor was not brought if it has no place, or if it is read and its value is not there") {
  FaultTable table;
  auto& written = table.tensor("written", true, false, false);
  auto& read = table.tensor("read", true, true, false);
  auto& written_nowhere = table.tensor("written nowhere", false, false, false);
  auto& read_on_host = table.tensor("read on the host", true, false, true);
  auto& updated_nowhere = table.tensor("updated nowhere", true, false, false);
  const std::vector<FaultItem> items{{&written, Access::write},
                                     {&written_nowhere, Access::write},
                                     {&read, Access::read},
                                     {&read_on_host, Access::read},
                                     {&updated_nowhere, Access::update}};
  const InternalError error = runtime::not_brought<NullBackend>({"mixed", items, Bytes{}, false});
  CHECK(error.operation() == "mixed");
  CHECK(names_are(error.tensors(), {"written nowhere", "read on the host", "updated nowhere"}));
  CHECK(says(error.what(), {"did not bring", "\"written nowhere\"", "\"read on the host\"", "\"updated nowhere\""}));
  // What is only written needs no value, so none is lost.
  CHECK(names_are(error.lost(), {"updated nowhere"}));
  CHECK(updated_nowhere.value.missing_reason == MissingReason::lost);
  CHECK(written_nowhere.value.missing_reason == MissingReason::never_written);
}

TEST_CASE("a step that cannot run names its tensor, and says that its value is lost if no copy has it") {
  FaultTable table;
  const auto fault_of = [](FaultRecord* record) { return runtime::wrong_step("does this", record, {.name = "t"}); };
  auto& with_value = table.tensor("with a value", false, false, true);
  auto& without = table.tensor("without", true, false, false);
  CHECK(fault_of(nullptr).lost().empty());
  CHECK(fault_of(&with_value).lost().empty());
  CHECK(names_are(fault_of(&without).lost(), {"without"}));
  for (FaultRecord* const record : {static_cast<FaultRecord*>(nullptr), &with_value, &without}) {
    CHECK(names_are(fault_of(record).tensors(), {"t"}));
    CHECK(says(fault_of(record).what(), {"the plan does this: tensor \"t\""}));
  }
}

TEST_CASE("of two tensors in the same bytes those are lost that exist and have their value only there") {
  struct Case {
    bool alive;
    bool device_valid;
    bool host_valid;
    bool named_as_lost;
    MissingReason reason;
  };
  const Case cases[] = {
      {true, true, false, true, MissingReason::lost},
      {true, true, true, false, MissingReason::never_written},
      {true, false, true, false, MissingReason::never_written},
      {true, false, false, false, MissingReason::never_written},
      {false, true, false, false, MissingReason::lost},
      {false, false, false, false, MissingReason::never_written},
  };
  for (const Case& c : cases) {
    CAPTURE(c.alive);
    CAPTURE(c.device_valid);
    CAPTURE(c.host_valid);
    FaultTable table;
    auto& first = table.tensor("first", true, c.device_valid, c.host_valid);
    auto& second = table.tensor("second", true, true, true);
    first.tensor.alive = c.alive;
    const std::exception_ptr given = runtime::give_up_shared_bytes(first, second, nullptr);
    const auto error = thrown<InternalError>([&] { std::rethrow_exception(given); });
    REQUIRE(error);
    CHECK(names_are(error->tensors(), {"first", "second"}));
    CHECK((error->lost().size() == 1) == c.named_as_lost);
    CHECK(first.value.missing_reason == c.reason);
    CHECK(second.value.missing_reason == MissingReason::never_written);
    CHECK(!first.device.valid);
    CHECK(first.host.valid == c.host_valid);
    CHECK(!second.device.valid);
    CHECK(second.host.valid);
  }
}

TEST_CASE("when more tensors turn out to share bytes, one error names all of them") {
  FaultTable table;
  auto& a = table.tensor("a", true, true, false);
  auto& b = table.tensor("b", true, true, false);
  auto& c = table.tensor("c", true, true, false);
  auto& d = table.tensor("d", true, true, true);
  const std::exception_ptr before = runtime::give_up_shared_bytes(a, b, nullptr);
  const std::exception_ptr both = runtime::give_up_shared_bytes(c, d, before);
  const auto error = thrown<InternalError>([&] { std::rethrow_exception(both); });
  REQUIRE(error);
  CHECK(names_are(error->tensors(), {"a", "b", "c", "d"}));
  CHECK(names_are(error->lost(), {"a", "b", "c"}));
  CHECK(says(error->what(), {"hold the same device bytes", "\"a\"", "\"b\"", "\"c\"", "\"d\""}));
}

TEST_CASE("without memory for the text the error is that, and the copies are given up all the same") {
  FaultTable table;
  auto& a = table.tensor("a", true, true, false);
  auto& b = table.tensor("b", true, true, false);
  const std::exception_ptr no_memory = std::make_exception_ptr(std::bad_alloc());
  const std::exception_ptr given = runtime::give_up_shared_bytes(a, b, no_memory);
  REQUIRE(given != nullptr);
  CHECK_THROWS_AS(std::rethrow_exception(given), std::bad_alloc);
  CHECK(!a.has_value());
  CHECK(!b.has_value());
  CHECK(a.value.missing_reason == MissingReason::lost);
}
