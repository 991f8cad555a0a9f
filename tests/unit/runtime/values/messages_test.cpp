// SPDX-License-Identifier: Apache-2.0
// The texts of the runtime's exceptions, and the data in them.
#include <doctest/doctest.h>

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/runtime/values/messages.hpp>

using namespace swapmm;
using namespace swapmm::literals;

namespace {

/// t0 of 1 byte, t1 of 2 bytes and so on.
std::vector<TensorName> growing_tensors(std::size_t count) {
  std::vector<TensorName> tensors;
  for (std::size_t i = 0; i < count; ++i) tensors.push_back({i + 1, "t" + std::to_string(i), Bytes{i + 1}});
  return tensors;
}

const std::vector<TensorName> tensors_by_no_order{
    {1, "small", 10_bytes}, {2, "large", 30_bytes}, {3, "middle", 20_bytes}};
const std::vector<TensorName> tensors_by_size{{2, "large", 30_bytes}, {3, "middle", 20_bytes}, {1, "small", 10_bytes}};

std::string message_of(const Error& error) { return error.what(); }

}  // namespace

TEST_CASE("a list of tensors names eight, and says how many more there are") {
  using runtime::names_text;
  CHECK(names_text({}).empty());
  CHECK(names_text(growing_tensors(2)) == R"("t0", "t1")");
  const std::string eight = R"("t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7")";
  CHECK(names_text(growing_tensors(8)) == eight);
  CHECK(names_text(growing_tensors(9)) == eight + " and 1 more");
  CHECK(names_text(growing_tensors(20)) == eight + " and 12 more");
  CHECK(runtime::sizes_text(growing_tensors(2)) == R"("t0" (1 bytes), "t1" (2 bytes))");
}

TEST_CASE("a bundle that is too large lists its tensors and its scratch, the largest first") {
  const BundleTooLarge::Sizes with_scratch{80_bytes, 64_bytes, 64_bytes, 20_bytes};
  const BundleTooLarge first = runtime::bundle_too_large("op", with_scratch, tensors_by_no_order);
  CHECK(message_of(first) ==
        "operation \"op\" needs 80 bytes on the device at once, the budget is 64 bytes; its largest tensors: "
        "\"large\" (30 bytes), \"middle\" (20 bytes), \"scratch\" (20 bytes), \"small\" (10 bytes). Raise "
        "the device budget or split the operation");
  CHECK(first.tensors() == tensors_by_size);
  const BundleTooLarge::Sizes without{60_bytes, 64_bytes, 32_bytes, 0_bytes};
  const BundleTooLarge second = runtime::bundle_does_not_pack("op", without, tensors_by_no_order);
  CHECK(message_of(second) ==
        "operation \"op\" needs 60 bytes of the budget of 64 bytes, but its tensors do not pack into pieces of 32 "
        "bytes, the largest single allocation of the device; its largest tensors: \"large\" (30 bytes), \"middle\" (20 "
        "bytes), \"small\" (10 bytes). Split the operation or its tensors");
  CHECK(second.tensors() == tensors_by_size);
  CHECK(second.operation() == "op");
}

TEST_CASE("an error about an operation names no tensor, and one about a tensor no operation") {
  const runtime::Who operation{"operation ", "op"};
  CHECK(operation.details().operation == "op");
  CHECK(operation.details().tensors.empty());
  const runtime::Who tensor{"download of tensor ", "a", 7, 4_bytes};
  CHECK(tensor.details().operation.empty());
  CHECK(tensor.details().tensors == std::vector<TensorName>{{7, "a", 4_bytes}});
}

TEST_CASE("an error of an inner call keeps the names that it has, and takes those that it lacks from the outer call") {
  const runtime::Who operation{"operation ", "outer"};
  CHECK(operation.details({.operation = "inner"}).operation == "inner");
  CHECK(operation.details({}).operation == "outer");
  const runtime::Who tensor{"upload of tensor ", "outer", 1, 4_bytes};
  const std::vector<TensorName> inner{{2, "inner", 8_bytes}};
  CHECK(tensor.details({.tensors = inner}).tensors == inner);
  CHECK(tensor.details({}).tensors == std::vector<TensorName>{{1, "outer", 4_bytes}});
  const OutOfMemory error = runtime::out_of_memory(tensor, runtime::host_refused({.need = 64_bytes}));
  CHECK(error.what() == std::string("upload of tensor \"outer\": the host refused 64 bytes for a swapped tensor; 0 are "
                                    "in use"));
}

TEST_CASE("work that failed for certain says so, and work whose status is unknown says why") {
  using Work = WorkFailed::Work;
  const WorkFailed certain = runtime::work_failed(Work::operation, {.operation = "op"}, nullptr);
  CHECK(certain.certain);
  CHECK(message_of(certain) == "operation \"op\" failed after it was queued; no value is lost");
  const auto reason = std::make_exception_ptr(std::runtime_error("no answer"));
  const WorkFailed unknown =
      runtime::work_failed(Work::swap_out, {.tensors = {{1, "a", 4_bytes}}, .lost = growing_tensors(1)}, reason);
  CHECK(!unknown.certain);
  CHECK(message_of(unknown) ==
        "swap-out of tensor \"a\" (4 bytes) may have failed: no answer; undefined from now on: \"t0\"");
  const WorkFailed strange = runtime::work_failed(Work::unknown, {}, std::make_exception_ptr(5));
  CHECK(message_of(strange) == "work on the device may have failed: an exception of an unknown type; no value is lost");
}
