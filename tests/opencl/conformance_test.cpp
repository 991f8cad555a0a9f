// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <swapmm/backend/testing/faulty.hpp>
#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/neighbour.hpp>
#include <swapmm/opencl/program.hpp>

#include "conformance/conformance.hpp"
#include "conformance/encodings.hpp"
#include "conformance/files.hpp"
#include "conformance/neighbours.hpp"
#include "opencl/support.hpp"
#include "opencl/two_devices.hpp"

namespace {

using namespace swapmm;

constexpr const char* add_source = R"(
__kernel void add(__global const uchar* from, __global uchar* to, uchar value) {
  size_t i = get_global_id(0);
  to[i] = from[i] + value;
})";

/// What all adaptors share; `B` is the backend or something around it.
template <class B>
struct Adaptor {
  using Backend = B;
  using Address = typename B::Address;
  using View = typename B::template View<std::uint8_t>;

  // A device of OpenCL gives no limit that it keeps.
  static std::optional<Bytes> device_bytes(B&) { return std::nullopt; }
  // Slots of 1 KiB.
  static std::shared_ptr<Neighbour> neighbour(B&, Bytes bytes) {
    return opencl::neighbour(test::second_device(), bytes, Bytes{4096});
  }

  static opencl::Backend& device(opencl::Backend& backend) { return backend; }
  static opencl::Backend& device(Faulty<opencl::Backend>& backend) { return backend.inner(); }

  static opencl::Kernel kernel(B& backend, const Address& from, const Address& to, std::size_t size,
                               std::uint8_t value) {
    // The last program stays, and with it its context: no other one can be at that address. It is never destroyed,
    // for the driver may be gone before it.
    static auto& program = *new std::optional<opencl::Program>;
    static cl_context of = nullptr;
    if (!program || of != device(backend).context()) {
      program.emplace(device(backend), add_source);
      of = device(backend).context();
    }
    opencl::Kernel kernel = program->kernel("add");
    // One by a view, the other by its argument.
    kernel.set(static_cast<const opencl::View<std::uint8_t>&>(View(from, size)), to.argument(), value);
    return kernel;
  }
  static void add(B& backend, const Address& from, const Address& to, std::size_t size, std::uint8_t value) {
    kernel(backend, from, to, size, value).enqueue(backend.queue(), {size});
  }
  static typename B::NativeEvent add(B& backend, const typename B::WaitList& waits, const Address& from,
                                     const Address& to, std::size_t size, std::uint8_t value) {
    return kernel(backend, from, to, size, value).enqueue(backend.queue(), {size}, {}, waits);
  }
  static void verify(B&) {}
};

struct Own : Adaptor<opencl::Backend> {
  static opencl::Backend make() { return test::fresh_backend(); }
};

/// Its context has a second device, if there is one.
struct WithNeighbour : Adaptor<opencl::Backend> {
  static opencl::Backend make() { return test::backend_with_neighbour(); }
};
struct WithNeighbourAndFaults : Adaptor<Faulty<opencl::Backend>> {
  static Faulty<opencl::Backend> make() { return Faulty(test::backend_with_neighbour()); }
};

/// Operations run on a queue of the program's, with or without profiling.
template <cl_command_queue_properties properties>
struct Given : Adaptor<opencl::Backend> {
  static opencl::Backend make() {
    const opencl::Backend one = test::fresh_backend();
    cl_int status = CL_SUCCESS;
    const opencl::Handle<cl_command_queue> queue(
        clCreateCommandQueue(one.context(), one.device(), properties, &status));
    REQUIRE(status == CL_SUCCESS);
    return {one.context(), one.device(), queue.get()};
  }
};
using GivenQueue = Given<0>;
using GivenProfilingQueue = Given<CL_QUEUE_PROFILING_ENABLE>;

struct WithoutFault : Adaptor<Faulty<opencl::Backend>> {
  static Faulty<opencl::Backend> make() { return Faulty(test::fresh_backend()); }
};

static_assert(NeighbourBackend<Faulty<opencl::Backend>>);

}  // namespace

SWAPMM_CONFORMANCE(Own);
SWAPMM_FILE_CONFORMANCE(Own);
SWAPMM_ENCODING_CONFORMANCE(Own);
SWAPMM_NEIGHBOUR_CONFORMANCE(WithNeighbour);
SWAPMM_NEIGHBOUR_CONFORMANCE(WithNeighbourAndFaults);
SWAPMM_CONFORMANCE(GivenQueue);
SWAPMM_FILE_CONFORMANCE(GivenQueue);
SWAPMM_ENCODING_CONFORMANCE(GivenQueue);
SWAPMM_CONFORMANCE(GivenProfilingQueue);
SWAPMM_FILE_CONFORMANCE(GivenProfilingQueue);
SWAPMM_CONFORMANCE(WithoutFault);
SWAPMM_FILE_CONFORMANCE(WithoutFault);
SWAPMM_ENCODING_CONFORMANCE(WithoutFault);

// Not run but on oclgrind, which must see what is wrong: see tests/OpenclTests.cmake.
TEST_CASE("planted: a kernel writes behind the end of its tensor" * doctest::skip()) {
  opencl::Backend backend = test::backend();
  opencl::DeviceMemory memory = backend.allocate(Bytes{256});
  const opencl::Address whole = backend.address(memory, Bytes{0}, Bytes{256});
  const opencl::Program program(backend, "__kernel void plant(__global uchar* to) { to[get_global_id(0)] = 1; }");
  program.kernel("plant").set(opencl::View<std::uint8_t>(whole, 256)).enqueue(backend.queue(), {257});
  backend.finish();
}

TEST_CASE("planted: a kernel passes on what nobody wrote" * doctest::skip()) {
  opencl::Backend backend = test::backend();
  const auto buffer = [&] {
    cl_int status = CL_SUCCESS;
    opencl::Handle<cl_mem> made(clCreateBuffer(backend.context(), CL_MEM_READ_WRITE, 256, nullptr, &status));
    REQUIRE(status == CL_SUCCESS);
    return made;
  };
  const auto from = buffer();
  const auto to = buffer();
  const opencl::Program program(
      backend, "__kernel void plant(__global const uchar* from, __global uchar* to) { to[0] = from[0] + 1; }");
  program.kernel("plant").set(from.get(), to.get()).enqueue(backend.queue(), {1});
  backend.finish();
}
