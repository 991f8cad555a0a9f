// SPDX-License-Identifier: Apache-2.0
// A program's sources, kernels and their references, and the errors of kernels.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "opencl/support.hpp"

using namespace swapmm;
using namespace swapmm::test;
using opencl::Program;

namespace {

constexpr Bytes answer_bytes{64};

/// Runs the program's kernel `answer`, which writes one int.
std::int32_t answer_of(const Program& program) {
  opencl::Backend backend = shared_backend();
  opencl::DeviceMemory memory = backend.allocate(answer_bytes);
  const opencl::Address place = backend.address(memory, Bytes{0}, answer_bytes);
  opencl::HostMemory host = backend.allocate_host(answer_bytes, HostKind::pinned);
  opencl::Event done = backend.make_event();
  program.kernel("answer").set(opencl::View<std::int32_t>(place, 1)).enqueue(backend.queue(), {1});
  backend.record(QueueKind::compute, done);
  const std::vector<const opencl::Event*> waits{&done};
  backend.copy_to_host(host, Bytes{0}, place, answer_bytes, waits, done);
  backend.finish();
  return *reinterpret_cast<const std::int32_t*>(host.data());
}
std::int32_t answer_of(const std::string& text) { return answer_of(Program(first_backend(), text)); }

/// The error of a call, which must have one.
template <class Call>
BackendError error_by(Call&& call) {
  try {
    call();
  } catch (const BackendError& error) {
    return error;
  }
  FAIL("nothing was thrown");
  throw;
}

}  // namespace

TEST_CASE("lines keep their numbers behind the kernel header, however a source includes it") {
  for (const std::string include : {"#include <swapmm/kernel.h>", "#include \"swapmm/kernel.h\"",
                                    "#include<swapmm/kernel.h>", "  # include  <swapmm/kernel.h>  ",
                                    "\t#\tinclude\t<swapmm/kernel.h>\t// views", "#include <swapmm/kernel.h>\r"}) {
    CAPTURE(include);
    const std::string kernel =
        "SWAPMM_KERNEL void answer(__global int* to) { to[0] = 1000 * SWAPMM_MAX_RANK + __LINE__; }";
    std::string text = include;
    text.append("\n").append(kernel);
    CHECK(answer_of(text) == 6002);
    text.assign("\n\n").append(include).append("\n\n \n").append(kernel).append("\n");
    CHECK(answer_of(text) == 6006);
  }
}

TEST_CASE("a source may do without the header, and end in any way") {
  const std::string plain = "__kernel void answer(__global int* to) { to[0] = __LINE__; }";
  CHECK(answer_of(plain) == 1);
  CHECK(answer_of("\n" + plain + "\n\n") == 2);
  CHECK(answer_of("// #include <swapmm/kernel.h>\n" + plain) == 2);
  CHECK(answer_of(plain + "\n#include <swapmm/kernel.h>") == 1);
}

TEST_CASE("a program that cannot be made is an error with the name of the call") {
  const FailingCall failing("clCreateProgramWithSource", CL_OUT_OF_HOST_MEMORY);
  const BackendError error = error_by([] { const Program program(first_backend(), "__kernel void k() {}"); });
  CHECK(failing.happened());
  CHECK(error.kind == BackendError::Kind::out_of_host_memory);
  CHECK(std::string(error.what()) == "clCreateProgramWithSource: CL_OUT_OF_HOST_MEMORY (-6)");
}

TEST_CASE("a kernel that cannot be queued is an error with its name, in both forms of an operation") {
  opencl::Backend backend = shared_backend();
  opencl::Kernel kernel = Program(backend, "__kernel void nothing() {}").kernel("nothing");
  kernel.set();
  const auto refused = [&](auto&& enqueue) {
    const FailingCall failing("clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES);
    const BackendError error = error_by(enqueue);
    CHECK(failing.happened());
    CHECK(error.code == CL_OUT_OF_RESOURCES);
    CHECK(std::string(error.what()) == "kernel \"nothing\": clEnqueueNDRangeKernel: CL_OUT_OF_RESOURCES (-5)");
  };
  refused([&] { kernel.enqueue(backend.queue(), {1}); });
  refused([&] { (void)kernel.enqueue(backend.queue(), {1}, {}, opencl::WaitList()); });
  kernel.enqueue(backend.queue(), {1});
  CHECK(static_cast<bool>(kernel.enqueue(backend.queue(), {1}, {}, opencl::WaitList())));
  backend.finish();
}

TEST_CASE("a kernel with a wrong number of arguments is refused where they are set, with both numbers") {
  opencl::Backend backend = shared_backend();
  opencl::DeviceMemory memory = backend.allocate(answer_bytes);
  const opencl::Address place = backend.address(memory, Bytes{0}, answer_bytes);
  const opencl::View<Number> view(place, 4);
  const auto too_few = [&](const std::string& count, const auto&... arguments) {
    const BackendError error = error_by([&] { kernels().affine.set(arguments...); });
    CHECK(error.code == CL_INVALID_KERNEL_ARGS);
    CHECK(std::string(error.what()) ==
          "kernel \"affine\": it takes 3 arguments (a view with its layout is two), and got " + count +
              ": CL_INVALID_KERNEL_ARGS (-52)");
  };
  too_few("0");
  too_few("1", view);
  too_few("2", view, view);
  kernels().affine.set(view, view, Number{1});
}

TEST_CASE("a program and a kernel that end give back their references") {
  cl_program program = nullptr;
  cl_kernel kernel = nullptr;
  {
    const Program made(first_backend(), "__kernel void nothing() {}");
    const opencl::Kernel of_it = made.kernel("nothing");
    program = made.get();
    kernel = of_it.get();
    REQUIRE(clRetainProgram(program) == CL_SUCCESS);
    REQUIRE(clRetainKernel(kernel) == CL_SUCCESS);
  }
  cl_uint references = 0;
  REQUIRE(clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof references, &references, nullptr) == CL_SUCCESS);
  CHECK(references == 1);
  REQUIRE(clReleaseKernel(kernel) == CL_SUCCESS);
  REQUIRE(clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof references, &references, nullptr) == CL_SUCCESS);
  CHECK(references == 1);
  REQUIRE(clReleaseProgram(program) == CL_SUCCESS);
}
