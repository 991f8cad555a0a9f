// SPDX-License-Identifier: Apache-2.0
// Names and kinds of the API's codes, and what a backend's constructor refuses.

#include <doctest/doctest.h>

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/devices.hpp>
#include <swapmm/opencl/status.hpp>

#include "opencl/support.hpp"

using namespace swapmm;
using namespace swapmm::test;
using Kind = BackendError::Kind;

namespace {

// As the API's registry has them: a second list, so that a slip in the first one shows.
constexpr std::array<std::string_view, 73> names{"CL_SUCCESS",
                                                 "CL_DEVICE_NOT_FOUND",
                                                 "CL_DEVICE_NOT_AVAILABLE",
                                                 "CL_COMPILER_NOT_AVAILABLE",
                                                 "CL_MEM_OBJECT_ALLOCATION_FAILURE",
                                                 "CL_OUT_OF_RESOURCES",
                                                 "CL_OUT_OF_HOST_MEMORY",
                                                 "CL_PROFILING_INFO_NOT_AVAILABLE",
                                                 "CL_MEM_COPY_OVERLAP",
                                                 "CL_IMAGE_FORMAT_MISMATCH",
                                                 "CL_IMAGE_FORMAT_NOT_SUPPORTED",
                                                 "CL_BUILD_PROGRAM_FAILURE",
                                                 "CL_MAP_FAILURE",
                                                 "CL_MISALIGNED_SUB_BUFFER_OFFSET",
                                                 "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
                                                 "CL_COMPILE_PROGRAM_FAILURE",
                                                 "CL_LINKER_NOT_AVAILABLE",
                                                 "CL_LINK_PROGRAM_FAILURE",
                                                 "CL_DEVICE_PARTITION_FAILED",
                                                 "CL_KERNEL_ARG_INFO_NOT_AVAILABLE",
                                                 "",
                                                 "",
                                                 "",
                                                 "",
                                                 "",
                                                 "",
                                                 "",
                                                 "",
                                                 "",
                                                 "",
                                                 "CL_INVALID_VALUE",
                                                 "CL_INVALID_DEVICE_TYPE",
                                                 "CL_INVALID_PLATFORM",
                                                 "CL_INVALID_DEVICE",
                                                 "CL_INVALID_CONTEXT",
                                                 "CL_INVALID_QUEUE_PROPERTIES",
                                                 "CL_INVALID_COMMAND_QUEUE",
                                                 "CL_INVALID_HOST_PTR",
                                                 "CL_INVALID_MEM_OBJECT",
                                                 "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR",
                                                 "CL_INVALID_IMAGE_SIZE",
                                                 "CL_INVALID_SAMPLER",
                                                 "CL_INVALID_BINARY",
                                                 "CL_INVALID_BUILD_OPTIONS",
                                                 "CL_INVALID_PROGRAM",
                                                 "CL_INVALID_PROGRAM_EXECUTABLE",
                                                 "CL_INVALID_KERNEL_NAME",
                                                 "CL_INVALID_KERNEL_DEFINITION",
                                                 "CL_INVALID_KERNEL",
                                                 "CL_INVALID_ARG_INDEX",
                                                 "CL_INVALID_ARG_VALUE",
                                                 "CL_INVALID_ARG_SIZE",
                                                 "CL_INVALID_KERNEL_ARGS",
                                                 "CL_INVALID_WORK_DIMENSION",
                                                 "CL_INVALID_WORK_GROUP_SIZE",
                                                 "CL_INVALID_WORK_ITEM_SIZE",
                                                 "CL_INVALID_GLOBAL_OFFSET",
                                                 "CL_INVALID_EVENT_WAIT_LIST",
                                                 "CL_INVALID_EVENT",
                                                 "CL_INVALID_OPERATION",
                                                 "CL_INVALID_GL_OBJECT",
                                                 "CL_INVALID_BUFFER_SIZE",
                                                 "CL_INVALID_MIP_LEVEL",
                                                 "CL_INVALID_GLOBAL_WORK_SIZE",
                                                 "CL_INVALID_PROPERTY",
                                                 "CL_INVALID_IMAGE_DESCRIPTOR",
                                                 "CL_INVALID_COMPILER_OPTIONS",
                                                 "CL_INVALID_LINKER_OPTIONS",
                                                 "CL_INVALID_DEVICE_PARTITION_COUNT",
                                                 "CL_INVALID_PIPE_SIZE",
                                                 "CL_INVALID_DEVICE_QUEUE",
                                                 "CL_INVALID_SPEC_ID",
                                                 "CL_MAX_SIZE_RESTRICTION_EXCEEDED"};

using Context = opencl::Handle<cl_context>;
using Queue = opencl::Handle<cl_command_queue>;

Context context_of(const std::vector<cl_device_id>& devices) {
  cl_int status = CL_SUCCESS;
  Context made(
      clCreateContext(nullptr, static_cast<cl_uint>(devices.size()), devices.data(), nullptr, nullptr, &status));
  REQUIRE(status == CL_SUCCESS);
  return made;
}
Queue queue_of(cl_context context, cl_device_id device, cl_command_queue_properties properties = 0) {
  cl_int status = CL_SUCCESS;
  Queue made(clCreateCommandQueue(context, device, properties, &status));
  REQUIRE(status == CL_SUCCESS);
  return made;
}

std::vector<opencl::Device> usable_devices() {
  std::vector<opencl::Device> usable;
  for (const opencl::Device& device : opencl::devices()) {
    if (device.obstacle.empty()) usable.push_back(device);
  }
  return usable;
}

/// Runs that test case in a process of its own, with two devices of PoCL in one platform; its output.
std::string with_two_devices(const std::string& test_case) {
  std::string self(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size());
  if (length <= 0) return "no path to this program";
  self.resize(static_cast<std::size_t>(length));
  const std::string command = "env -u SWAPMM_DEVICE POCL_DEVICES='pthread pthread' SWAPMM_TEST_DEVICES=2 '" + self +
                              "' --test-case='" + test_case + "' 2>&1";
  std::FILE* const child = ::popen(command.c_str(), "r");
  if (child == nullptr) return "no process";
  std::string output;
  std::array<char, 512> part{};
  while (std::fgets(part.data(), part.size(), child) != nullptr) output += part.data();
  output += ::pclose(child) == 0 ? "exit: success" : "exit: failure";
  return output;
}

/// What the constructor says when it refuses with a UsageError, having made nothing.
std::string refused(cl_context context, cl_device_id device, cl_command_queue queue = nullptr) {
  const auto before = objects_at_rest();
  const std::string text = text_of<UsageError>([&] { const opencl::Backend backend(context, device, queue); });
  CHECK(api_objects() == before);
  return text;
}

}  // namespace

TEST_CASE("every code of the API has its name") {
  for (std::size_t i = 0; i < names.size(); ++i) {
    CAPTURE(i);
    const std::string_view expected = names[i].empty() ? "an unknown status" : names[i];
    CHECK(opencl::status_name(-static_cast<cl_int>(i)) == expected);
  }
  CHECK(opencl::status_name(-1001) == "CL_PLATFORM_NOT_FOUND_KHR");
  CHECK(says(opencl::status_name(-9999), {"NVIDIA"}));
  for (const cl_int unknown : {1, 17, -73, -1000, -1002, -9998, -2147483647}) {
    CHECK(opencl::status_name(unknown) == "an unknown status");
  }
}

TEST_CASE("a code means lack of memory, a lost device, or a call that failed") {
  const std::map<cl_int, Kind> special{{-4, Kind::out_of_device_memory}, {-61, Kind::out_of_device_memory},
                                       {-6, Kind::out_of_host_memory},   {-2, Kind::device_lost},
                                       {-36, Kind::device_lost},         {-9999, Kind::device_lost}};
  for (cl_int status = -1; status >= -10'000; --status) {
    const auto found = special.find(status);
    const Kind expected = found == special.end() ? Kind::failed : found->second;
    if (opencl::kind_of(status) != expected) FAIL_CHECK("status " << status << " has another kind");
  }
}

TEST_CASE("an error keeps the code, and its text names call, detail and status") {
  const BackendError error = opencl::error_of(-4, "clCreateBuffer", " of 4096 bytes");
  CHECK(error.kind == Kind::out_of_device_memory);
  CHECK(error.code == -4);
  CHECK(std::string(error.what()) == "clCreateBuffer of 4096 bytes: CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)");
  CHECK(std::string(opencl::error_of(-77, "clFlush").what()) == "clFlush: an unknown status (-77)");
}

TEST_CASE("a backend needs a context and a device") {
  CHECK(says(refused(nullptr, first_backend().device()), {"needs a context", "null"}));
  CHECK(says(refused(first_backend().context(), nullptr), {"needs a device", "null"}));
}

TEST_CASE("a backend refuses a queue that is of another context, or out of order") {
  const cl_device_id device = first_backend().device();
  const Context one = context_of({device});
  const Context other = context_of({device});
  const Queue foreign = queue_of(other.get(), device);
  CHECK(says(refused(one.get(), device, foreign.get()), {"queue belongs to another context"}));
  cl_int status = CL_SUCCESS;
  const Queue unordered(clCreateCommandQueue(one.get(), device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status));
  if (status != CL_SUCCESS) {
    MESSAGE("not tested: this device has no queue out of order");
    return;
  }
  CHECK(says(refused(one.get(), device, unordered.get()), {"out of order"}));
}

TEST_CASE("a backend refuses a context or a queue of another device of its platform") {
  if (std::getenv("SWAPMM_TEST_DEVICES") == nullptr) {
    bool has_pocl = false;
    for (const opencl::Device& device : usable_devices()) has_pocl |= device.platform == "Portable Computing Language";
    if (!has_pocl) {
      MESSAGE("not tested: PoCL is not installed, which can show one processor as two devices");
      return;
    }
    const std::string output = with_two_devices("a backend refuses a context or a queue of another device of*");
    CAPTURE(output);
    CHECK(says(output, {"test cases:", " 1 passed", "exit: success"}));
    return;
  }
  std::vector<cl_device_id> ids;
  for (const opencl::Device& device : usable_devices()) {
    if (device.platform == "Portable Computing Language") ids.push_back(device.id);
  }
  REQUIRE(ids.size() == 2);
  const Context of_first = context_of({ids[0]});
  const Context of_both = context_of(ids);
  CHECK(says(refused(of_first.get(), ids[1]), {"context does not contain the device"}));
  const Queue queue = queue_of(of_both.get(), ids[1]);
  CHECK(says(refused(of_both.get(), ids[0], queue.get()), {"queue belongs to another device"}));
  // As they belong together they are taken.
  const opencl::Backend fits(of_both.get(), ids[1], queue.get());
  CHECK(fits.device() == ids[1]);
  CHECK(fits.context() == of_both.get());
}

TEST_CASE("a context of another driver's device is refused") {
  const std::vector<opencl::Device> usable = usable_devices();
  for (const opencl::Device& other : usable) {
    if (other.platform == usable[0].platform) continue;
    const Context context = context_of({usable[0].id});
    CHECK(says(refused(context.get(), other.id), {"context does not contain the device", other.name}));
    return;
  }
  MESSAGE("not tested: one driver is installed");
}

TEST_CASE("handles that the API calls invalid are an error with its status, and nothing is left") {
  // A released handle is memory that others may have by now: what the API would say of it is said here in its place.
  const Queue queue = queue_of(first_backend().context(), first_backend().device());
  const auto refuse = [&](const char* call, cl_int status, std::uint64_t n) {
    CAPTURE(call);
    CAPTURE(n);
    const auto before = objects_at_rest();
    const FailingCall failing(call, status, n);
    try {
      const opencl::Backend backend = shared_backend(queue.get());
      FAIL_CHECK("nothing was thrown");
    } catch (const BackendError& error) {
      CHECK(error.code == status);
      CHECK(error.kind == opencl::kind_of(status));
      CHECK(says(error.what(), {call, ": ", opencl::status_name(status)}));
    }
    CHECK(failing.happened());
    CHECK(api_objects() == before);
  };
  for (const std::uint64_t n : {1U, 2U}) refuse("clGetContextInfo", CL_INVALID_CONTEXT, n);
  for (const std::uint64_t n : {1U, 2U, 3U, 4U}) refuse("clGetCommandQueueInfo", CL_INVALID_COMMAND_QUEUE, n);
  for (const std::uint64_t n : {1U, 2U, 3U, 4U, 5U}) refuse("clGetDeviceInfo", CL_INVALID_DEVICE, n);
  for (const std::uint64_t n : {1U, 2U, 3U}) refuse("clCreateCommandQueue", CL_OUT_OF_RESOURCES, n);
}
