// SPDX-License-Identifier: Apache-2.0
// Moves that fail: what is where afterwards, and that the books say so.

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "faults/failure_desk.hpp"

using namespace swapmm;
using namespace swapmm::test::failures;

namespace {

/// Four tensors that fill the device; tensor i holds 10 * i + 1, and the host has none of these values.
struct FullDevice : Fixture {
  FullDevice() {
    for (std::size_t i = 0; i < 5; ++i) {
      all.push_back(tensor(names_of[i], static_cast<int>(10 * i)));
      if (i < 4) add_one("add", all.back());
    }
  }
  /// All of them come to the device once, and the values are right.
  void check_values() {
    for (std::size_t i = 0; i < all.size(); ++i) add_one("again", all[i]);
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(i);
      CHECK(all[i].download() == std::vector<int>(size, static_cast<int>(10 * i) + (i < 4 ? 2 : 1)));
    }
  }

  static constexpr const char* names_of[] = {"a", "b", "c", "d", "e"};
  std::vector<IntTensor> all;
};

}  // namespace

TEST_CASE("an eviction that is refused leaves the tensor where it is, and the books as they are") {
  for (const FaultMode mode : {FaultMode::once, FaultMode::blind}) {
    FullDevice f;
    const Report before = f.manager.report();
    CHECK(before.device_used == 1_KiB);
    f.device.restart({FaultClass::copy_to_host, mode, 1});
    CHECK(error_of<BackendError>([&] { f.add_one("evicts", f.all[4]); }).details.operation == "evicts");
    CHECK(f.manager.report().device_used == before.device_used);
    CHECK(f.manager.report().swap_outs == before.swap_outs);
    f.check_values();
    CHECK(f.manager.report().device_used == 1_KiB);
    CHECK(f.manager.report().device_peak == 1_KiB);
  }
}

TEST_CASE("a download that is refused leaves the value on the device, and a later eviction saves it") {
  FullDevice f;
  f.device.restart({FaultClass::copy_to_host, FaultMode::once, 1});
  CHECK(names_are(error_of<BackendError>([&] { (void)f.all[0].download(); }).details.tensors, {"a"}));
  f.check_values();
}

TEST_CASE("an eviction whose copy fails on its way loses that value alone, by name") {
  FullDevice f;
  f.device.restart({FaultClass::copy_to_host, FaultMode::late, 1});
  f.add_one("evicts", f.all[4]);  // pushes a out
  const Caught error = error_of<WorkFailed>([&] { f.manager.synchronize(); });
  CHECK(loses(error, "a"));
  CHECK(loses(error_of<WorkFailed>([&] { (void)f.all[0].download(); }), "a"));
  for (std::size_t i = 1; i < 4; ++i) CHECK(f.all[i].download()[0] == static_cast<int>(10 * i) + 1);
}

TEST_CASE("a download whose copy fails on its way leaves the value on the device, and a later eviction saves it") {
  FullDevice f;
  std::vector<int> target(size);
  f.device.restart({FaultClass::copy_to_host, FaultMode::late, 1});
  auto pending = f.all[0].download_async(target);
  const Caught error = error_of<WorkFailed>([&] { f.manager.synchronize(); });
  CHECK(names_are(error.details.tensors, {"a"}));
  CHECK(error.details.lost.empty());
  f.check_values();
}

TEST_CASE("an operation whose work area gets no address gives the room back") {
  Fixture f;
  const IntTensor t = f.tensor("t", 1);
  f.add_one("add", t);
  const auto with_work_area = [&](Bytes bytes) { f.manager.run("work", updates(t), scratch(bytes), [](auto&) {}); };
  f.device.restart({FaultClass::address_creation, FaultMode::once, 1});
  CHECK(error_of<BackendError>([&] { with_work_area(256_bytes); }).details.operation == "work");
  CHECK(f.manager.report().device_used == 256_bytes);
  with_work_area(768_bytes);  // all that is left
  CHECK(t.download()[0] == 2);
}

TEST_CASE("a device that is lost while an iteration ends is lost for the next call, which says when it was") {
  std::size_t seen = 0;
  for (int iterations = 1; iterations < 9; ++iterations) {  // in some of them the end is timed
    CAPTURE(iterations);
    Fixture f;
    const IntTensor t = f.tensor("t", 1);
    for (int i = 0; i < iterations; ++i) {
      const auto iteration = f.manager.iteration("loop");
      f.add_one("add", t);
      if (i + 1 == iterations) f.device.restart({FaultClass::record, FaultMode::device_lost, 1});
    }
    if (f.device.fired() == 0) continue;
    ++seen;
    const Caught error = error_of<DeviceLost>([&] { f.manager.synchronize(); });
    CHECK(error.text.find("ending iteration \"loop\"") != std::string::npos);
    CHECK(error_of<DeviceLost>([&] { (void)t.download(); }) == error);
    CHECK(error_of<DeviceLost>([&] { (void)f.manager.tensor<int>({size}, "late"); }) == error);
  }
  CHECK(seen > 0);
}
