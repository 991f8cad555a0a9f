// SPDX-License-Identifier: Apache-2.0
// Callables without their types, and copies of them.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/runtime/run/callable.hpp>
#include <swapmm/swapmm.hpp>

namespace swapmm::test::callable_test {
namespace {

using Backend = simulated::Backend;
using Copy = runtime::CallableCopy<Backend>;

/// How many objects of all sizes there are, and the values of those that were called.
int alive = 0;
std::vector<int> called;

/// A callable of that size. Its copies fail if `value` is below 0.
template <std::size_t bytes, std::size_t alignment = alignof(int)>
struct alignas(alignment) Counted {
  explicit Counted(int number) : value(number) { ++alive; }
  Counted(const Counted& other) : value(other.value) {
    if (value < 0) throw std::runtime_error("cannot be copied");
    ++alive;
  }
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --alive; }
  void operator()(Operation<Backend>& /*op*/) {
    called.push_back(value);
    ++value;
  }

  int value;
  std::byte rest[bytes]{};
};

template <class Callable>
runtime::CallableRef<Backend> ref(Callable& callable) {
  return detail::callable_ref<Backend, true>(callable);
}

TEST_CASE("a copy is destroyed once: when the next one comes, when it is given up, and at the end") {
  REQUIRE(alive == 0);
  {
    Counted<8> small(1);
    Counted<200> large(2);
    Copy copy;
    CHECK(copy.ref().type == nullptr);
    copy.assign(ref(small));
    CHECK(alive == 3);
    CHECK(copy.ref().callable != &small);
    CHECK(static_cast<Counted<8>*>(copy.ref().callable)->value == 1);
    copy.assign(ref(large));
    CHECK(alive == 3);
    CHECK(static_cast<Counted<200>*>(copy.ref().callable)->value == 2);
    copy.reset();
    copy.reset();
    CHECK(alive == 2);
    CHECK(copy.ref().type == nullptr);
    copy.assign(ref(small));
    CHECK(alive == 3);
  }
  CHECK(alive == 0);
}

TEST_CASE("memory is used again for what fits it, and is aligned for each") {
  Counted<8> small(1);
  Counted<200> large(2);
  Counted<16, 256> aligned(3);
  Copy copy;
  copy.assign(ref(large));
  const void* const memory = copy.ref().callable;
  copy.assign(ref(small));
  CHECK(copy.ref().callable == memory);
  copy.assign(ref(large));
  CHECK(copy.ref().callable == memory);
  copy.assign(ref(aligned));
  CHECK(reinterpret_cast<std::uintptr_t>(copy.ref().callable) % 256 == 0);
  const void* const aligned_memory = copy.ref().callable;
  copy.assign(ref(small));
  CHECK(copy.ref().callable == aligned_memory);
  CHECK(static_cast<Counted<8>*>(copy.ref().callable)->value == 1);
}

TEST_CASE("after a copy that fails there is none, and the next one is right") {
  Counted<8> first(1);
  Counted<8> broken(-1);
  const int before = alive;
  Copy copy;
  copy.assign(ref(first));
  CHECK_THROWS_AS(copy.assign(ref(broken)), std::runtime_error);
  CHECK(copy.ref().type == nullptr);
  CHECK(alive == before);
  copy.assign(ref(first));
  CHECK(static_cast<Counted<8>*>(copy.ref().callable)->value == 1);
  CHECK(alive == before + 1);
}

TEST_CASE("only what can be copied, and is asked for, has copies") {
  const auto moved_only = [held = std::unique_ptr<int>()](Operation<Backend>&) {};
  const auto any = [](Operation<Backend>&) {};
  const auto has_copies = [](const runtime::CallableRef<Backend>& callable) { return callable.type->copy != nullptr; };
  CHECK(!has_copies(detail::callable_ref<Backend, true>(moved_only)));
  CHECK(!has_copies(detail::callable_ref<Backend, false>(any)));
  CHECK(has_copies(detail::callable_ref<Backend, true>(any)));
  CHECK(!detail::callable_ref<Backend, true>(any).gives_event());
  const auto with_list = [](Operation<Backend>&, Backend::WaitList) { return Backend::NativeEvent{}; };
  CHECK(detail::callable_ref<Backend, true>(with_list).gives_event());
}

int runs_of_function = 0;
void work(Operation<Backend>& op) { runs_of_function += op.name() == "function" ? 1 : 100; }

TEST_CASE("run() takes objects, constant ones, and functions; the program's own object is called") {
  MemoryManager<Backend> manager{Backend(), {.device_budget = Bytes{4096}}};
  auto a = manager.tensor<int>({4}, "a");
  auto b = manager.divided<int>({4, 4}, "b");
  Bundle<Backend> bundle;
  bundle.updates(a);
  Counted<8> counted(5);
  called.clear();
  manager.run("object", counted);
  manager.run("object", writes(a), counted);
  manager.run("object", bundle, counted);
  manager.run("object", reads(a), writes(b), scratch(std::size_t{16}), counted);
  CHECK(called == std::vector<int>{5, 6, 7, 8});
  CHECK(counted.value == 9);

  int constant_calls = 0;
  const auto constant = [&](auto&) { ++constant_calls; };
  manager.run("constant", reads(a), replayable, constant);
  manager.run("constant", bundle, constant);
  CHECK(constant_calls == 2);

  manager.run("function", work);
  manager.run("function", reads(a), replayable, work);
  manager.run("function", bundle, work);
  manager.run("function", reads(a, b), &work);
  CHECK(runs_of_function == 4);
}

}  // namespace
}  // namespace swapmm::test::callable_test
