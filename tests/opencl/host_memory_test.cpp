// SPDX-License-Identifier: Apache-2.0
// Host memory of the backend: what it waits for at its end, what it takes over, and what is said where it is refused.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "opencl/support.hpp"
#include "support/failing_new.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

constexpr Bytes host_bytes{32768};
constexpr HostKind both_kinds[] = {HostKind::pinned, HostKind::pageable};

/// A backend with a place on the device, and copies between it and host memory.
struct Copies {
  void up(const opencl::HostMemory& from) { backend.copy_to_device(place, from, Bytes{0}, host_bytes, {}, event); }
  void down(opencl::HostMemory& to) { backend.copy_to_host(to, Bytes{0}, place, host_bytes, {}, event); }
  /// Uploads and downloads run on different queues: only an event puts one behind the other.
  void up_and_down(opencl::HostMemory& memory) {
    up(memory);
    const opencl::Event* const uploaded = &event;
    backend.copy_to_host(memory, Bytes{0}, place, host_bytes, {&uploaded, 1}, later_event);
  }
  opencl::HostMemory host(HostKind kind) { return backend.allocate_host(host_bytes, kind); }

  opencl::Backend backend = shared_backend();
  opencl::DeviceMemory memory = backend.allocate(host_bytes);
  opencl::Address place = backend.address(memory, Bytes{0}, host_bytes);
  opencl::Event event = backend.make_event();
  opencl::Event later_event = backend.make_event();
};

bool all_bytes_are(const opencl::HostMemory& memory, std::byte value) {
  return std::count(memory.data(), memory.data() + host_bytes.value, value) ==
         static_cast<std::ptrdiff_t>(host_bytes.value);
}

/// How often the host waited for all work of a queue when pinned memory was unmapped.
std::uint64_t unmaps(HostKind kind) { return kind == HostKind::pinned ? 1 : 0; }

}  // namespace

TEST_CASE("host memory waits at its end for the copies that use it, and for no other work") {
  for (const HostKind kind : both_kinds) {
    for (const auto& times : {std::array{0U, 0U}, {1U, 0U}, {0U, 1U}, {1U, 1U}, {2U, 3U}}) {
      const unsigned uploads = times[0];
      const unsigned downloads = times[1];
      CAPTURE(uploads);
      CAPTURE(downloads);
      Copies copies;
      opencl::HostMemory other = copies.host(kind);
      std::optional<opencl::HostMemory> ends(copies.host(kind));
      copies.up(other);
      for (unsigned i = 0; i < uploads; ++i) copies.up(*ends);
      for (unsigned i = 0; i < downloads; ++i) copies.down(*ends);
      reset_api_calls();
      ends.reset();
      CHECK(api_calls().host_waits == std::min(uploads, 1U) + std::min(downloads, 1U));  // the last one of a queue
      CHECK(api_calls().finishes == unmaps(kind));
      if (uploads + downloads > 0) CHECK(copies.backend.status(copies.event) == EventStatus::complete);
    }
  }
}

TEST_CASE("host memory waits for everything where the wait for its copy fails, and for nothing on a lost device") {
  for (const HostKind kind : both_kinds) {
    Copies copies;
    std::optional<opencl::HostMemory> ends(copies.host(kind));
    copies.up(*ends);
    reset_api_calls();
    {
      const FailingCall failing("clWaitForEvents", CL_OUT_OF_RESOURCES);
      ends.reset();
    }
    CHECK(api_calls().finishes == base_queue_count + unmaps(kind));

    ends.emplace(copies.host(kind));
    copies.up_and_down(*ends);
    copies.backend.wait(copies.later_event);  // the device is not really lost, and would go on with the memory
    reset_api_calls();
    {
      const FailingCall lost("clFlush", CL_DEVICE_NOT_AVAILABLE);
      ends.reset();
    }
    CHECK(api_calls().host_waits == 0);
    CHECK(api_calls().finishes == unmaps(kind));
  }
}

TEST_CASE("a copy from pageable memory is refused where the wait for what fills the memory fails") {
  const EagerWrites eager;
  Copies copies;
  opencl::HostMemory host = copies.host(HostKind::pageable);
  cl_int status = CL_SUCCESS;
  const opencl::Handle<cl_event> gate(clCreateUserEvent(copies.backend.context(), &status));
  REQUIRE(status == CL_SUCCESS);
  opencl::Event gated = copies.backend.make_event();
  copies.backend.adopt(gated, opencl::NativeEvent(opencl::Handle<cl_event>::retain(gate.get()).release()));
  const opencl::Event* const waits = &gated;
  copies.backend.copy_to_host(host, Bytes{0}, copies.place, host_bytes, {&waits, 1}, copies.event);
  {
    const FailingCall failing("clWaitForEvents", CL_OUT_OF_RESOURCES);
    CHECK_THROWS_AS(copies.up(host), BackendError);
    CHECK(failing.happened());
  }
  REQUIRE(clSetUserEventStatus(gate.get(), CL_COMPLETE) == CL_SUCCESS);
  copies.up(host);
  copies.backend.finish();
}

TEST_CASE("host memory that takes over another's gives back its own, and keeps the bytes and the copies of the other") {
  const ApiObjects at_rest = objects_at_rest();
  for (const HostKind kind : both_kinds) {
    for (const HostKind kind_of_other : both_kinds) {
      {
        Copies copies;
        std::optional<opencl::HostMemory> target(copies.host(kind));
        opencl::HostMemory other = copies.host(kind_of_other);
        std::fill_n(other.data(), host_bytes.value, std::byte{7});
        const std::byte* const bytes = other.data();
        copies.down(*target);
        copies.backend.finish();  // nothing writes the place after the upload of the other
        copies.up_and_down(other);
        const std::int64_t buffers = api_objects().memories;
        reset_api_calls();
        *target = std::move(other);
        CHECK(api_calls().host_waits == 1);
        CHECK(api_calls().finishes == unmaps(kind));
        CHECK(api_objects().memories == buffers - static_cast<std::int64_t>(unmaps(kind)));
        CHECK(target->data() == bytes);
        copies.backend.finish();
        CHECK(all_bytes_are(*target, std::byte{7}));
        reset_api_calls();
        target.reset();
        CHECK(api_calls().host_waits == 2);
        CHECK(api_calls().finishes == unmaps(kind_of_other));
        CHECK(api_objects().memories == buffers - static_cast<std::int64_t>(unmaps(kind) + unmaps(kind_of_other)));
      }
      CHECK(api_objects() == at_rest);
    }
  }
}

TEST_CASE("host memory that is moved to itself stays as it is") {
  for (const HostKind kind : both_kinds) {
    Copies copies;
    opencl::HostMemory memory = copies.host(kind);
    const ApiObjects before = api_objects();
    std::fill_n(memory.data(), host_bytes.value, std::byte{3});
    const std::byte* const bytes = memory.data();
    opencl::HostMemory& same = memory;
    reset_api_calls();
    memory = std::move(same);
    CHECK(memory.data() == bytes);
    CHECK(all_bytes_are(memory, std::byte{3}));
    CHECK(api_objects() == before);
    CHECK(api_calls().finishes == 0);
    copies.up(memory);
    reset_api_calls();
    { const opencl::HostMemory ends = std::move(memory); }
    CHECK(api_calls().host_waits == 1);
  }
}

TEST_CASE("pageable memory is no buffer of the API, and goes back to the program") {
  Copies copies;
  reset_api_calls();
  const PeakMemory peak;
  for (int i = 0; i < 100; ++i) (void)copies.host(HostKind::pageable);
  CHECK(peak.bytes() >= host_bytes.value);
  CHECK(peak.bytes() < 4 * host_bytes.value);
  CHECK(api_calls().buffers_made == 0);
  (void)copies.host(HostKind::pinned);
  CHECK(api_calls().host_bytes == host_bytes.value);
}

TEST_CASE("pageable memory that is refused is out of host memory, with its size") {
  Copies copies;
  std::optional<BackendError> error;
  {
    const FailingNew refusal(1);
    try {
      (void)copies.host(HostKind::pageable);
    } catch (const BackendError& thrown) {
      error = thrown;
    }
  }
  REQUIRE(error.has_value());
  CHECK(error->kind == BackendError::Kind::out_of_host_memory);
  CHECK(error->code == 0);
  CHECK(error->need == host_bytes);
  CHECK(std::string(error->what()) == "operator new of 32768 bytes: no memory");
  CHECK(copies.host(HostKind::pageable).data() != nullptr);
}
