// SPDX-License-Identifier: Apache-2.0
// The records of a manager's tensors: each new tensor takes one, and a record that is free is used again.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/runtime/values/record.hpp>

#include "support/failing_new.hpp"
#include "support/null_backend.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using NullTable = runtime::RecordTable<NullBackend>;
using NullRecord = runtime::Record<NullBackend>;

NullRecord& add_tensor(NullTable& table, Lifetime lifetime = Lifetime::observed, std::uint64_t iteration = 1) {
  return table.add("t", 64_bytes, lifetime, iteration);
}
void end_tensor(NullTable& table, NullRecord& record) {
  table.end(record);
  table.remove(record);
}

}  // namespace

TEST_CASE("a tensor that takes the record of an older one starts without anything of that one but a higher number") {
  NullTable table;
  NullRecord& record = add_tensor(table);
  const std::uint64_t serial = record.tensor.serial;
  record.use = {17, false};
  record.plan.role = 3;
  record.value = {5, 2, runtime::MissingReason::dropped};
  record.log = {4, 1};
  table.end(record);
  CHECK(!record.tensor.alive);
  CHECK(record.tensor.in_use);  // the plan executor may still use it
  CHECK(table.alive() == 0);
  table.remove(record);
  CHECK(!record.tensor.in_use);

  NullRecord& next = table.add("next", 128_bytes, Lifetime::kept, 9);
  CHECK(&next == &record);
  CHECK(table.size() == 1);
  CHECK(table.alive() == 1);
  CHECK(next.name == "next");
  CHECK(next.bytes == 128_bytes);
  CHECK(next.tensor.serial == serial + 1);
  CHECK(next.tensor.alive);
  CHECK(next.tensor.in_use);
  CHECK(next.tensor.lifetime == Lifetime::kept);
  CHECK(next.tensor.born == 9);
  CHECK(next.use.stamp == 0);
  CHECK(next.use.fresh);
  CHECK(next.plan.role == runtime::none);
  CHECK(next.value.written_in == 0);
  CHECK(next.value.outlives == 0);
  CHECK(next.value.missing_reason == runtime::MissingReason::never_written);
  CHECK(next.log.epoch == 0);
}

TEST_CASE("a tensor that ends allocates nothing, and one that begins allocates its record at most") {
  NullTable table;
  std::vector<NullRecord*> records;
  records.reserve(1000);
  for (std::size_t count = 1; count <= 20; ++count) {
    CAPTURE(count);
    records.push_back(&add_tensor(table));
    const std::uint64_t before = allocations();
    for (NullRecord* const record : records) end_tensor(table, *record);
    CHECK(allocations() == before);
    for (std::size_t i = 0; i < count; ++i) (void)add_tensor(table);
    CHECK(table.size() == count);
  }
  const std::uint64_t before = allocations();
  for (std::size_t i = 0; i < 1000; ++i) (void)add_tensor(table);
  CHECK(allocations() - before < 1050);  // the tables that grow are few
}

TEST_CASE("two tables that are swapped go on as each other: records, free records, numbers and counts") {
  NullTable first;
  NullTable second;
  for (int i = 0; i < 3; ++i) (void)add_tensor(first);
  end_tensor(first, first[1]);
  (void)add_tensor(second);
  first.swap(second);
  CHECK(first.size() == 1);
  CHECK(first.alive() == 1);
  CHECK(second.size() == 3);
  CHECK(second.alive() == 2);
  NullRecord& in_second = add_tensor(second);
  CHECK(in_second.id == 1);  // the free one
  CHECK(in_second.tensor.serial == 4);
  NullRecord& in_first = add_tensor(first);
  CHECK(in_first.id == 1);
  CHECK(in_first.tensor.serial == 2);
  CHECK(first.size() == 2);
  CHECK(second.size() == 3);
}
