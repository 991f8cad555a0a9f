// SPDX-License-Identifier: Apache-2.0
// Drivers destroy a buffer a moment after its release: the next allocation waits for it.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include <swapmm/opencl/released_memory.hpp>

#include "opencl/support.hpp"

using namespace swapmm;
using namespace swapmm::test;
using opencl::Handle;
using opencl::detail::ReleasedMemory;

namespace {

using Buffer = Handle<cl_mem>;

Buffer buffer() {
  cl_int status = CL_SUCCESS;
  Buffer made(clCreateBuffer(first_backend().context(), CL_MEM_READ_WRITE, 4096, nullptr, &status));
  REQUIRE(status == CL_SUCCESS);
  return made;
}

void CL_CALLBACK note(cl_mem, void* destroyed) { static_cast<std::atomic<bool>*>(destroyed)->store(true); }

/// Refuses memory the first `refusals` times.
struct Allocation {
  int refusals;
  cl_int refusal = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  int calls = 0;
  cl_int operator()() { return ++calls > refusals ? CL_SUCCESS : refusal; }
};

}  // namespace

TEST_CASE("an allocation begins when the driver has destroyed what was released") {
  ReleasedMemory& released = *new ReleasedMemory;  // callbacks may come at any time
  std::atomic<bool> destroyed{false};
  Buffer memory = buffer();
  REQUIRE(released.follow(memory.get()));
  // The callback that is set last is called first.
  REQUIRE(clSetMemObjectDestructorCallback(memory.get(), note, &destroyed) == CL_SUCCESS);
  Buffer of_driver = Buffer::retain(memory.get());
  released.leaving();
  memory.reset();
  std::thread driver([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    of_driver.reset();
  });
  released.wait();
  const bool waited = destroyed;
  driver.join();
  CHECK(waited);
}

TEST_CASE("a buffer that stays is waited for once") {
  ReleasedMemory& released = *new ReleasedMemory;
  std::vector<Buffer> kept;
  kept.push_back(buffer());
  REQUIRE(released.follow(kept.front().get()));
  released.leaving();
  Allocation allocation{0};
  CHECK(released.allocate(std::ref(allocation)) == CL_SUCCESS);
  CHECK(allocation.calls == 1);
  // What was given up does not hide what is released later.
  std::atomic<bool> destroyed{false};
  Buffer next = buffer();
  REQUIRE(released.follow(next.get()));
  REQUIRE(clSetMemObjectDestructorCallback(next.get(), note, &destroyed) == CL_SUCCESS);
  released.leaving();
  next.reset();
  released.wait();
  CHECK(destroyed);
  kept.clear();
}

TEST_CASE("a refusal just after a release is tried again, and no other") {
  ReleasedMemory& released = *new ReleasedMemory;
  Allocation before{1};
  CHECK(released.allocate(std::ref(before)) == CL_MEM_OBJECT_ALLOCATION_FAILURE);
  CHECK(before.calls == 1);
  released.left();
  Allocation after{2};
  CHECK(released.allocate(std::ref(after)) == CL_SUCCESS);
  CHECK(after.calls == 3);
  Allocation wrong{1, CL_INVALID_VALUE};
  CHECK(released.allocate(std::ref(wrong)) == CL_INVALID_VALUE);
  CHECK(wrong.calls == 1);
  Allocation never{1000};
  CHECK(released.allocate(std::ref(never)) == CL_MEM_OBJECT_ALLOCATION_FAILURE);
  CHECK(never.calls > 3);
  CHECK(never.calls < 20);
}
