// SPDX-License-Identifier: Apache-2.0
// Single stories that the loop over all faults found, told one by one.

#include <doctest/doctest.h>

#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/runtime/core/failures.hpp>
#include <swapmm/swapmm.hpp>

#include "faults/failure_desk.hpp"
#include "support/failing_new.hpp"
#include "support/faulty_simulated.hpp"

using namespace swapmm;
using namespace swapmm::literals;
using namespace swapmm::test::failures;

TEST_CASE("an asynchronous download whose copy failed throws each time it is collected") {
  Fixture f;
  const IntTensor t = f.tensor("t", 1);
  f.add_one("add", t);
  std::vector<int> target(size);
  f.device.restart({FaultClass::copy_to_host, FaultMode::late, 1});
  auto pending = t.download_async(target);
  CHECK(names_are(error_of<WorkFailed>([&] { pending.wait(); }).details.tensors, {"t"}));
  CHECK(names_are(error_of<WorkFailed>([&] { pending.wait(); }).details.tensors, {"t"}));
  CHECK(t.download()[0] == 2);  // only the copy failed
}

TEST_CASE("a kernel without an event of its own takes with it what later kernels made of its value") {
  Fixture f;
  const IntTensor a = f.tensor("a", 1);
  const IntTensor b = f.tensor("b", 2);
  const IntTensor c = f.tensor("c", 3);
  for (int i = 0; i < 5; ++i) {
    const auto iteration = f.manager.iteration("loop");
    f.add_one("first", a, i == 4);
    f.add_one("second", b);
    f.add_one("third", c);
  }
  REQUIRE(f.manager.report().iterations_followed >= 1);  // everything fits: no copy waits for the first two
  const Caught error = error_of<WorkFailed>([&] { f.manager.synchronize(); });
  CHECK(loses(error, "a"));
  CHECK(loses(error, "b"));
  CHECK(loses(error, "c"));
  CHECK(loses(error_of<WorkFailed>([&] { (void)a.download(); }), "a"));
}

TEST_CASE("a failure is seen behind a copy that other points have confirmed") {
  Fixture f({.device_budget = 1_KiB, .queue_depth = 8});
  const IntTensor t = f.tensor("t", 1);
  f.add_one("fails", t, true);
  std::vector<int> target(size);
  auto pending = t.download_async(target);
  // Other copies to the host go once around the ring of events and confirm the one of t. Whoever does so says that it
  // came after a failure.
  Caught error;
  const IntTensor u = f.tensor("u", 1);
  for (int i = 0; i < 12 && error.empty(); ++i) {
    std::vector<int> other(size);
    error = error_of<WorkFailed>([&] {
      f.add_one("fine", u);
      (void)u.download_async(other);
    });
  }
  CHECK(loses(error, "t"));
  CHECK(names_are(error_of<WorkFailed>([&] { pending.wait(); }).details.tensors, {"t"}));
}

TEST_CASE(
    "a value that the host gave since is not lost with the work that failed, though a copy of the one before it is") {
  Fixture f;
  const IntTensor t = f.tensor("t", 1);
  IntTensor u = f.tensor("u", 2);
  f.add_one("fine", u);
  f.add_one("fails", t, true);
  std::vector<int> target(size);
  const auto pending = u.download_async(target);  // queued behind the failure
  u.upload(std::vector<int>(size, 7));
  const Caught error = error_of<WorkFailed>([&] { f.manager.synchronize(); });
  CHECK(loses(error, "t"));
  CHECK_FALSE(loses(error, "u"));
  CHECK(u.download()[0] == 7);
}

TEST_CASE("an upload that fails leaves the value before it") {
  std::uint64_t n = 0;
  for (bool fired = true; fired;) {
    Fixture f;
    IntTensor t = f.tensor("t", 1);
    const auto iteration = f.manager.iteration("loop");
    f.add_one("add", t);
    std::vector<int> target(size);
    auto pending = t.download_async(target);  // its host memory is in use: the upload takes the other slot
    const std::vector<int> next(size, 7);
    bool failed = false;
    {
      const test::FailingNew failing(++n);
      try {
        t.upload(next);
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      fired = failing.fired();
    }
    CAPTURE(n);
    CHECK(t.download()[0] == (failed ? 2 : 7));
    pending.wait();
    CHECK(target[0] == 2);
  }
  CHECK(n > 1);
}

TEST_CASE("a plan that memory was too short for is made when the iteration comes again") {
  std::size_t failures = 0;
  std::uint64_t n = 0;
  for (bool fired = true; fired; n += 7) {
    Fixture f;
    const IntTensor t = f.tensor("t", 1);
    for (int i = 0; i < 3; ++i) {
      const auto iteration = f.manager.iteration("loop");
      f.add_one("add", t);
    }
    {
      const test::FailingNew failing(n + 1);
      try {
        const auto iteration = f.manager.iteration("loop");
        f.add_one("add", t);
      } catch (const std::bad_alloc&) {
        ++failures;
      }
      fired = failing.fired();
    }
    for (int i = 0; i < 5; ++i) {
      const auto iteration = f.manager.iteration("loop");
      f.add_one("add", t);
    }
    CAPTURE(n);
    CHECK(f.manager.report().iterations_followed >= 2);
  }
  CHECK(failures > 5);
}

TEST_CASE("a wait list that cannot be made names the operation and leaves the values") {
  Fixture f;
  const IntTensor t = f.tensor("t", 5);
  f.device.restart({FaultClass::queue_access, FaultMode::once, 1});
  const Caught error = error_of<BackendError>([&] {
    f.manager.run("listed", writes(t), [&](auto&, simulated::WaitList) { return simulated::NativeEvent(); });
  });
  CHECK(error.details.operation == "listed");
  CHECK(t.download()[0] == 5);
}

TEST_CASE("host memory that is refused is reported with the tensor it was for") {
  Fixture f({.device_budget = 1_KiB, .pinned_budget = Bytes{0}});
  IntTensor t = f.manager.tensor<int>({size}, "refused");
  f.device.restart({FaultClass::pageable_allocation, FaultMode::for_ever, 1});
  const Caught error = error_of<OutOfMemory>([&] { t.upload(std::vector<int>(size, 1)); });
  CHECK(has_name(error.details.tensors, "refused"));
}

TEST_CASE("the error of a lost device names the lost values, and stays as it was first") {
  Fixture f;
  const IntTensor t = f.tensor("t", 1);
  const IntTensor u = f.tensor("u", 1);
  f.add_one("add", t);
  f.device.restart({FaultClass::queue_access, FaultMode::device_lost, 1});
  CHECK_THROWS_AS(f.add_one("lost", u), BackendError);  // what the callable met
  const Caught error = error_of<DeviceLost>([&] { (void)t.download(); });
  CHECK(loses(error, "t"));
  CHECK(error_of<DeviceLost>([&] { f.manager.synchronize(); }) == error);
  f.device.restart({});
  CHECK(error_of<DeviceLost>([&] { (void)u.download(); }) == error);
}

TEST_CASE("a checked operation that does not come about leaves the value that it was to overwrite") {
  for (const FaultClass fault_class : {FaultClass::copy_to_device, FaultClass::copy_to_host, FaultClass::flush,
                                       FaultClass::host_wait, FaultClass::barrier_wait, FaultClass::status_query}) {
    for (std::uint64_t n = 1; n <= 12; ++n) {
      Fixture f({.device_budget = 1_KiB, .check_access = true});
      const IntTensor t = f.tensor("t", 1);
      f.add_one("add", t);
      f.device.restart({fault_class, FaultMode::once, n});
      bool queued = false;
      try {
        f.manager.run("write", writes(t), [&](auto& op) {
          auto view = op[t];
          op.queue().launch("write", std::chrono::nanoseconds{10}, {Touch::write(view)}, [view] {
            for (int& element : view) element = 9;
          });
          queued = true;
        });
      } catch (const BackendError&) {
        CHECK_FALSE(queued);
      }
      f.device.restart({});
      try {
        f.manager.synchronize();
      } catch (const BackendError&) {  // found behind the operation
        CHECK(queued);
      }
      CAPTURE(n);
      CHECK(t.download()[0] == (queued ? 9 : 2));
    }
  }
}

TEST_CASE("a loss that there was no memory to tell of is told by the next call") {
  std::uint64_t n = 0;
  std::size_t short_of_memory = 0;
  for (bool fired = true; fired;) {
    Fixture f;
    const IntTensor t = f.tensor("t", 1);
    f.add_one("fails", t, true);
    std::exception_ptr told;
    {
      const test::FailingNew failing(++n);
      try {
        f.manager.synchronize();
      } catch (const WorkFailed&) {
        told = std::current_exception();
      } catch (const std::bad_alloc&) {
        ++short_of_memory;
      }
      fired = failing.fired();
    }
    CAPTURE(n);
    const Caught error = error_of<WorkFailed>([&] {
      if (told) std::rethrow_exception(told);
      f.manager.synchronize();
    });
    CHECK(loses(error, "t"));
    f.manager.synchronize();
    CHECK(loses(error_of<WorkFailed>([&] { (void)t.download(); }), "t"));
  }
  CHECK(short_of_memory > 2);
}

TEST_CASE("a query that fails once behind work that failed does not cost the device") {
  std::uint64_t n = 0;
  for (bool fired = true; fired;) {
    Fixture f;
    const IntTensor t = f.tensor("t", 1);
    const IntTensor u = f.tensor("u", 2);
    f.add_one("fails", t, true);
    f.device.restart({FaultClass::status_query, FaultMode::once, ++n});
    Caught error;
    for (int tries = 0; tries < 2 && error.empty(); ++tries) {
      try {
        error = error_of<WorkFailed>([&] { f.manager.synchronize(); });
      } catch (const BackendError&) {  // the query itself
      }
    }
    fired = f.device.fired() > 0;
    CAPTURE(n);
    CHECK(loses(error, "t"));
    f.device.restart({});
    CHECK(u.download()[0] == 2);
  }
  CHECK(n > 2);
}

TEST_CASE("work fails, and the event behind it is refused: another event tells, or the value counts as lost") {
  // blind: recorded and refused, and then no later event tells.
  for (const FaultMode mode : {FaultMode::once, FaultMode::for_ever, FaultMode::blind}) {
    CAPTURE(mode);
    Fixture f;
    const IntTensor t = f.tensor("t", 1);
    const IntTensor u = f.tensor("u", 2);
    f.device.restart({FaultClass::record, mode, 1});
    f.add_one("fails", t, true);
    REQUIRE(f.device.fired() > 0);
    f.device.restart({});
    const Caught error = error_of<WorkFailed>([&] { f.manager.synchronize(); });
    CHECK(loses(error, "t"));
    CHECK_FALSE(loses(error, "u"));
    const bool nobody_tells = error.text.find("operation \"fails\" may have failed: injected fault: record") == 0;
    CHECK(nobody_tells == (mode == FaultMode::for_ever));
    if (nobody_tells) CHECK(error.details.operation == "fails");
    CHECK(loses(error_of<WorkFailed>([&] { (void)t.download(); }), "t"));
    CHECK(u.download()[0] == 2);
  }
}

TEST_CASE("work that failed is no access that was not declared, whether an event tells of it or not") {
  for (const FaultMode mode : {FaultMode::once, FaultMode::for_ever, FaultMode::blind}) {
    CAPTURE(mode);
    Device device{simulated::Backend()};
    MemoryManager<Device> manager(device, {.device_budget = 1_KiB, .check_access = true});
    IntTensor t = manager.tensor<int>({size}, "t");
    t.upload(std::vector<int>(size, 1));
    device.restart({FaultClass::record, mode, 1});
    manager.run("fails", writes(t), [&](auto& op) {
      auto view = op[t];
      op.queue().launch("fails", std::chrono::nanoseconds{10}, {Touch::write(view)},
                        [] { throw std::runtime_error("a kernel"); });
    });
    REQUIRE(device.fired() > 0);
    device.restart({});
    CHECK(loses(error_of<WorkFailed>([&] { manager.synchronize(); }), "t"));
  }
}

TEST_CASE("errors that were found too late are told one by one, and none that declares a loss is forgotten") {
  runtime::Store<simulated::Backend> store(simulated::Backend(), {.device_budget = 1_KiB});
  runtime::Failures<simulated::Backend> failures(store);
  const auto harmless = std::make_exception_ptr(BackendError(BackendError::Kind::failed, 1, "harmless"));
  for (int i = 0; i < 20; ++i) failures.postpone(harmless, false);
  failures.postpone(std::make_exception_ptr(WorkFailed("a value is lost", {}, WorkFailed::Work::unknown)), true);
  std::vector<std::string> told;
  for (std::string text = "none yet"; !text.empty();) {
    text = error_of<Error>([&] { failures.check(); }).text;
    if (!text.empty()) told.push_back(text);
  }
  REQUIRE(told.size() > 2);
  CHECK(told.front() == "harmless");
  CHECK(told.back() == "a value is lost");
}

TEST_CASE("where failures stick, work that fails late takes the device with it, once and for all") {
  simulated::Options options;
  options.failures_stick = true;
  Device device{simulated::Backend(options)};
  MemoryManager<Device> manager(device, {.device_budget = 1_KiB});
  IntTensor t = manager.tensor<int>({size}, "t");
  t.upload(std::vector<int>(size, 1));
  device.restart({FaultClass::copy_to_device, FaultMode::late, 1});
  manager.run("read", reads(t), [](auto&) {});
  const Caught error = error_of<DeviceLost>([&] { manager.synchronize(); });
  CHECK(error.details.lost.empty());
  CHECK(error.text.find("no value is lost") != std::string::npos);
  CHECK(error_of<DeviceLost>([&] { (void)t.download(); }) == error);
  CHECK(error_of<DeviceLost>([&] { (void)manager.tensor<int>({size}, "late"); }) == error);
  CHECK_THROWS_AS(MemoryManager<Device>(device, {.device_budget = 1_KiB}), Error);
}
