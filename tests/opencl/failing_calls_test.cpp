// SPDX-License-Identifier: Apache-2.0
// Each call of the API fails once in each way that matters: what the backend makes of it, and that it works on.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/opencl/status.hpp>

#include "opencl/support.hpp"

using namespace swapmm;
using namespace swapmm::test;
using Kind = BackendError::Kind;

namespace {

constexpr std::array<cl_int, 9> statuses{-4, -5, -6, -14, -36, -61, -2, -9999, -30};
constexpr Bytes size{4096};
constexpr Bytes offset{1024};  // of a place: a multiple of every device's alignment
constexpr Bytes place_size{2048};

using Waits = std::vector<const opencl::Event*>;

/// A backend with one object of each kind.
struct Bench {
  /// Bytes go up, through a kernel and down again, over all three queues, and come back right.
  bool works() {
    const std::size_t count = place_size.value / sizeof(Number);
    const Numbers sent = numbers(count, ++salt);
    std::copy_n(reinterpret_cast<const std::byte*>(sent.data()), place_size.value, host.data());
    opencl::DeviceMemory scratch = backend.allocate(size);
    const opencl::Address in = backend.address(scratch, Bytes{0}, place_size);
    const opencl::Address out = backend.address(scratch, place_size, place_size);
    opencl::Event up = backend.make_event();
    opencl::Event computed = backend.make_event();
    opencl::Event down = backend.make_event();
    backend.copy_to_device(in, host, Bytes{0}, place_size, {}, up);
    backend.wait(QueueKind::compute, Waits{&up});
    kernels().affine.set(opencl::View<Number>(in, count), opencl::View<Number>(out, count), salt);
    kernels().affine.enqueue(backend.queue(), {count});
    backend.record(QueueKind::compute, computed);
    backend.copy_to_host(other_host, Bytes{0}, out, place_size, Waits{&computed}, down);
    for (const QueueKind queue : {QueueKind::h2d, QueueKind::compute, QueueKind::d2h}) backend.flush(queue);
    backend.wait(down);
    Numbers expected(count);
    affine(sent, expected, salt);
    return std::equal(expected.begin(), expected.end(), reinterpret_cast<const Number*>(other_host.data()));
  }

  opencl::Backend backend = shared_backend();
  opencl::DeviceMemory memory = backend.allocate(size);
  opencl::Address place = backend.address(memory, offset, place_size);
  opencl::HostMemory host = backend.allocate_host(size, HostKind::pinned);
  opencl::HostMemory other_host = backend.allocate_host(size, HostKind::pinned);
  opencl::Event event = backend.make_event();
  Number salt = 0;
};

struct Case {
  const char* function;  ///< of the API: its n-th call within `act` fails
  std::uint64_t n = 1;
  std::function<void(Bench&)> act;
  std::string text;                         ///< of the error, in front of the status
  std::optional<Kind> refused_memory = {};  ///< what statuses that can mean a lack of memory mean here
  bool told = true;                         ///< false: told only where the device is lost
  bool then_all = false;                    ///< later calls fail, too
};

bool can_mean_lack_of_memory(cl_int status) { return status == -4 || status == -5 || status == -6 || status == -61; }

void check_case(const Case& given, cl_int status) {
  CAPTURE(given.text);
  CAPTURE(status);
  const auto at_rest = objects_at_rest();
  {
    Bench bench;
    const Kind kind =
        given.refused_memory && can_mean_lack_of_memory(status) ? *given.refused_memory : opencl::kind_of(status);
    std::optional<BackendError> error;
    {
      const FailingCall failing(given.function, status, given.n, given.then_all);
      try {
        given.act(bench);
      } catch (const BackendError& thrown) {
        error = thrown;
      }
      CHECK(failing.happened());
    }
    REQUIRE(error.has_value() == (given.told || kind == Kind::device_lost));
    if (error) {
      CHECK(error->kind == kind);
      CHECK(error->code == status);
      CHECK(error->need == (given.refused_memory ? size : Bytes{0}));
      CHECK(std::string(error->what()) ==
            given.text + ": " + std::string(opencl::status_name(status)) + " (" + std::to_string(status) + ")");
    }
    if (kind != Kind::device_lost) {
      given.act(bench);  // the same call works the next time
      bench.backend.finish();
      CHECK(bench.works());
    }
  }
  CHECK(api_objects() == at_rest);
}

void check_all(const std::vector<Case>& cases) {
  for (const Case& given : cases) {
    for (const cl_int status : statuses) check_case(given, status);
  }
}

void record(Bench& bench, QueueKind queue = QueueKind::compute) {
  bench.backend.record(queue, bench.event);
  bench.backend.flush(queue);
}

}  // namespace

TEST_CASE("memory of the device that is refused at creation or at its first use is out of device memory") {
  constexpr auto refused = Kind::out_of_device_memory;
  const auto allocate = [](Bench& bench) { (void)bench.backend.allocate(size); };
  check_all({
      {"clCreateBuffer", 1, allocate, "clCreateBuffer of 4096 bytes", refused, true, true},  // it is tried again
      {"clEnqueueFillBuffer", 1, allocate, "the first use (clEnqueueFillBuffer) of a buffer of 4096 bytes", refused},
      {"clFinish", 1, allocate, "the first use (clFinish) of a buffer of 4096 bytes", refused},
      {"clGetEventInfo", 1, allocate, "clGetEventInfo"},
  });
}

TEST_CASE("memory whose first use fails behind its call is out of device memory, and one that is used late is not") {
  Bench bench;
  for (const cl_int status : {-4, -5, -6, -61}) {
    const BadNews news(status);
    try {
      (void)bench.backend.allocate(size);
      FAIL_CHECK("nothing was thrown");
    } catch (const BackendError& error) {
      CHECK(error.kind == Kind::out_of_device_memory);
      CHECK(error.code == status);
      CHECK(error.need == size);
      CHECK(std::string(error.what()) ==
            "the first use of a buffer of 4096 bytes: " + std::string(opencl::status_name(status)) + " (" +
                std::to_string(status) + ")");
    }
  }
  const LateNews news;
  (void)bench.backend.allocate(size);
}

TEST_CASE("pinned memory that is refused is out of host memory") {
  constexpr auto refused = Kind::out_of_host_memory;
  const auto allocate = [](Bench& bench) { (void)bench.backend.allocate_host(size, HostKind::pinned); };
  check_all({
      {"clCreateBuffer", 1, allocate, "clCreateBuffer in host memory of 4096 bytes", refused},
      {"clEnqueueMapBuffer", 1, allocate, "clEnqueueMapBuffer of 4096 bytes", refused},
  });
}

TEST_CASE("a place that cannot be made names its size and offset") {
  const auto make = [](Bench& bench) { (void)bench.backend.address(bench.memory, offset, place_size); };
  check_all({{"clCreateSubBuffer", 1, make, "clCreateSubBuffer of 2048 bytes at 1024"}});
}

TEST_CASE("a place beyond its memory is refused, also one as large as the memory, and by drivers that would make it") {
  Bench bench;
  for (const Bytes too_large : {size, Bytes{size.value - offset.value + 1}}) {
    try {
      (void)bench.backend.address(bench.memory, offset, too_large);
      FAIL_CHECK("nothing was thrown");
    } catch (const BackendError& error) {
      CHECK(error.code == CL_INVALID_VALUE);
      CHECK(std::string(error.what()) ==
            "clCreateSubBuffer of " + std::to_string(too_large.value) + " bytes at 1024: CL_INVALID_VALUE (-30)");
    }
  }
}

TEST_CASE("a command that cannot be queued names its call") {
  const auto upload = [](Bench& bench) {
    bench.backend.copy_to_device(bench.place, bench.host, Bytes{0}, place_size, {}, bench.event);
  };
  const auto download = [](Bench& bench) {
    bench.backend.copy_to_host(bench.host, Bytes{0}, bench.place, place_size, {}, bench.event);
  };
  const auto on_device = [](Bench& bench) {
    const opencl::Address other = bench.backend.address(bench.memory, Bytes{0}, offset);
    bench.backend.copy_on_device(other, Bytes{0}, bench.place, Bytes{0}, offset);
  };
  const auto wait = [](Bench& bench) {
    record(bench, QueueKind::h2d);
    bench.backend.wait(QueueKind::compute, Waits{&bench.event});
  };
  const auto mark = [](Bench& bench) { record(bench); };
  const auto adopt = [](Bench& bench) { bench.backend.adopt(bench.event, {}); };
  const auto flush = [](Bench& bench) { bench.backend.flush(QueueKind::d2h); };
  check_all({
      {"clEnqueueWriteBuffer", 1, upload, "clEnqueueWriteBuffer"},
      {"clEnqueueReadBuffer", 1, download, "clEnqueueReadBuffer"},
      {"clEnqueueCopyBuffer", 1, on_device, "clEnqueueCopyBuffer"},
      {"clEnqueueMarkerWithWaitList", 1, mark, "clEnqueueMarkerWithWaitList"},
      {"clEnqueueMarkerWithWaitList", 1, adopt, "clEnqueueMarkerWithWaitList"},
      {"clEnqueueBarrierWithWaitList", 1, wait, "clEnqueueBarrierWithWaitList"},
      {"clFlush", 1, flush, "clFlush"},
  });
}

TEST_CASE("a look or a wait that fails names its call, and the next one tells of the work") {
  const auto status = [](Bench& bench) {
    record(bench);
    (void)bench.backend.status(bench.event);
  };
  const auto wait = [](Bench& bench) {
    record(bench);
    bench.backend.wait(bench.event);
    CHECK(bench.backend.status(bench.event) == EventStatus::complete);
  };
  check_all({
      {"clGetEventInfo", 1, status, "clGetEventInfo"},
      {"clGetEventInfo", 1, wait, "clGetEventInfo"},
      {"clWaitForEvents", 1, wait, "clWaitForEvents"},
  });
}

TEST_CASE("finish tells of a failing call only where the device is lost") {
  const auto finish = [](Bench& bench) { bench.backend.finish(); };
  for (const std::uint64_t queue : {1U, 2U, 3U}) {
    check_all({
        {"clFinish", queue, finish, "clFinish", {}, false},
        {"clFlush", queue, finish, "clFlush", {}, false},
    });
  }
}

TEST_CASE("a change to timed queues that fails is told, and tried again at the next command") {
  // A chain of kernels that only gives the right number in the right order, on queues that change in between.
  const auto change = [](Bench& bench) {
    const opencl::View<Number> view(bench.place, 1);
    kernels().set.set(view, Number{1});
    kernels().set.enqueue(bench.backend.queue(), {1});
    kernels().affine.set(view, view, Number{2});
    bench.backend.set_timing(true);
    try {
      kernels().affine.enqueue(bench.backend.queue(), {1});
    } catch (...) {
      bench.backend.set_timing(false);
      throw;
    }
    kernels().affine.enqueue(bench.backend.queue(), {1});
    bench.backend.set_timing(false);
    kernels().affine.enqueue(bench.backend.queue(), {1});
    bench.backend.record(QueueKind::compute, bench.event);
    bench.backend.copy_to_host(bench.host, Bytes{0}, bench.place, Bytes{4}, Waits{&bench.event}, bench.event);
    bench.backend.finish();
    CHECK(*reinterpret_cast<const Number*>(bench.host.data()) == 27 + 18 + 6 + 2);
  };
  check_all({
      {"clCreateCommandQueue", 1, change, "clCreateCommandQueue"},
      {"clEnqueueMarkerWithWaitList", 1, change, "clEnqueueMarkerWithWaitList"},
      {"clFlush", 1, change, "clFlush"},
      {"clGetEventInfo", 1, change, "clGetEventInfo"},
  });
}

TEST_CASE("times that the API does not give are no times, and no error") {
  for (const std::uint64_t n : {1U, 2U}) {
    Bench bench;
    opencl::Event end = bench.backend.make_event();
    bench.backend.set_timing(true);
    record(bench);
    bench.backend.record(QueueKind::compute, end);
    bench.backend.finish();
    const bool has_times = bench.backend.elapsed(bench.event, end).has_value();
    if (!has_times) MESSAGE("this device knows no times of markers");
    {
      const FailingCall failing("clGetEventProfilingInfo", CL_PROFILING_INFO_NOT_AVAILABLE, n);
      CHECK_FALSE(bench.backend.elapsed(bench.event, end).has_value());
      if (has_times) CHECK(failing.happened());
    }
    CHECK(bench.backend.elapsed(bench.event, end).has_value() == has_times);
  }
}

TEST_CASE("more than the largest allocation is refused with its size before the API is asked") {
  const PretendedDeviceValue largest(CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8192);  // the driver itself would give more
  Bench bench;
  CHECK(*bench.backend.capabilities().max_allocation == Bytes{8192});
  const std::uint64_t made = api_calls().buffers_made;
  try {
    (void)bench.backend.allocate(Bytes{8193});
    FAIL_CHECK("nothing was thrown");
  } catch (const BackendError& error) {
    CHECK(error.kind == Kind::out_of_device_memory);
    CHECK(error.code == CL_INVALID_BUFFER_SIZE);
    CHECK(error.need == Bytes{8193});
    CHECK(std::string(error.what()) == "clCreateBuffer of 8193 bytes: CL_INVALID_BUFFER_SIZE (-61)");
  }
  CHECK(api_calls().buffers_made == made);
  (void)bench.backend.allocate(Bytes{8192});
  CHECK(api_calls().buffers_made == made + 1);
  CHECK(bench.works());
}

TEST_CASE("host memory ends though a call at its end fails") {
  for (const char* const function : {"clEnqueueUnmapMemObject", "clFinish", "clWaitForEvents", "clFlush"}) {
    for (const cl_int status : {-5, -36}) {
      CAPTURE(function);
      CAPTURE(status);
      const auto at_rest = objects_at_rest();
      {
        Bench bench;
        std::optional<opencl::HostMemory> ends(bench.backend.allocate_host(size, HostKind::pinned));
        bench.backend.copy_to_device(bench.place, *ends, Bytes{0}, place_size, {}, bench.event);
        bench.backend.finish();
        const FailingCall failing(function, status);
        ends.reset();
        CHECK(failing.happened());
      }
      CHECK(api_objects() == at_rest);
    }
  }
}
