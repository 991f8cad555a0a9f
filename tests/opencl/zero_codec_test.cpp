// SPDX-License-Identifier: Apache-2.0
// The codec for tensors with many zeros on OpenCL: the cases of every device, and what is OpenCL's own.
#include <swapmm/opencl/codec/zero_codec.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/status.hpp>
#include <swapmm/swapmm.hpp>

#include "opencl/support.hpp"
#include "support/zero_codec_cases.hpp"
#include "support/zero_reference.hpp"

namespace zero_codec_on_opencl {
namespace {

using namespace swapmm;
using opencl::Handle;
using opencl::NativeEvent;
using opencl::ZeroCodec;
using test::ByteVector;
using test::sparse_elements;

// One for all cases, since compiling takes seconds. Never destroyed: the driver may be gone before it.
struct Device {
  opencl::Backend backend = test::shared_backend();
  ZeroCodec codec{backend};
  cl_command_queue queue = backend.queue();
};
Device& device() {
  static Device& made = *new Device;
  return made;
}

Handle<cl_mem> buffer_of(const ByteVector& bytes, cl_mem_flags flags = 0) {
  cl_int status = CL_SUCCESS;
  Handle<cl_mem> buffer(clCreateBuffer(device().backend.context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR | flags,
                                       bytes.size(), const_cast<std::byte*>(bytes.data()), &status));
  opencl::check(status, "clCreateBuffer");
  return buffer;
}
constexpr std::byte canary{0xa5};
Handle<cl_mem> buffer_of(std::size_t size) { return buffer_of(ByteVector(size, canary)); }

ByteVector bytes_of(cl_mem buffer) {
  std::size_t size = 0;
  opencl::check(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, nullptr), "clGetMemObjectInfo");
  ByteVector bytes(size);
  opencl::check(clEnqueueReadBuffer(device().queue, buffer, CL_TRUE, 0, size, bytes.data(), 0, nullptr, nullptr),
                "clEnqueueReadBuffer");
  return bytes;
}

// See support/zero_codec_cases.hpp.
struct Desk {
  cl_mem_flags encoded_flags = 0;

  ByteVector encode(const ByteVector& plain, const ZeroElements& elements, const ByteVector& encoded,
                    ByteVector& scratch) const {
    const auto from = plain.empty() ? Handle<cl_mem>() : buffer_of(plain);
    const auto to = buffer_of(encoded, encoded_flags);
    const auto work = buffer_of(scratch);
    device().codec.encode(device().queue, elements, from.get(), to.get(), work.get());
    scratch = bytes_of(work.get());
    return bytes_of(to.get());
  }
  ByteVector decode(const ByteVector& encoded, const ZeroElements& elements, const ByteVector& plain,
                    ByteVector& scratch) const {
    const auto from = buffer_of(encoded);
    const auto to = buffer_of(plain);
    const auto work = buffer_of(scratch);
    device().codec.decode(device().queue, elements, from.get(), to.get(), work.get());
    scratch = bytes_of(work.get());
    CHECK(bytes_of(from.get()) == encoded);
    return bytes_of(to.get());
  }
  ByteVector move(const ByteVector& encoded, const ByteVector& target, unsigned groups) const {
    const auto from = buffer_of(encoded);
    const auto to = buffer_of(target, encoded_flags);
    device().codec.move(device().queue, from.get(), to.get(), groups);
    return bytes_of(to.get());
  }
  static bool slow() { return test::device_is_slow(); }
};
Desk desk;
test::ZeroCodecCases<Desk> cases(desk);

}  // namespace

TEST_CASE("elements of every size and number come back bit for bit") { cases.numbers(); }
TEST_CASE("elements of every density come back bit for bit, and the size is exact") { cases.densities(); }
TEST_CASE("a million elements, more than a chunk of blocks, and all or none of them zero") { cases.large(); }
TEST_CASE("numbers whose value is zero, or no number, keep their bits") { cases.values(); }
TEST_CASE("the form is raw from exactly where nothing is gained") { cases.threshold(); }
TEST_CASE("of a damaged value nothing is written outside of the elements, and the status says so") { cases.damaged(); }
TEST_CASE("as many bytes of an encoded value are moved as its header says") { cases.moves(); }
TEST_CASE("noise, and the encoded forms of other tensors, are not decoded") { cases.foreign(); }

TEST_CASE("the size of encoded numbers of 4 bytes is the one that is documented") {
  for (const std::uint64_t n : {std::uint64_t{100}, std::uint64_t{4096}, std::uint64_t{100'001}}) {
    for (const std::uint64_t nonzeros : {std::uint64_t{0}, n / 3}) {
      CHECK(zero_encoded_size({n, 4}, nonzeros).value ==
            64 + 4 * ((n + 4095) / 4096) + 4 * ((n + 31) / 32) + 4 * nonzeros);
    }
  }
  CHECK(zero_worst_case({1000, 2}) == Bytes{2064});
  CHECK(zero_encoded_size({1000, 2}, 1000) == Bytes{2064});
}

TEST_CASE("an encoded value may lie in host memory, and sub-buffers hold all parts") {
  const ByteVector plain = sparse_elements(5'000, 4, 0.25, 3);
  const ByteVector expected = test::encoded_by_reference(plain, 4);
  Desk host_desk{CL_MEM_ALLOC_HOST_PTR};
  CHECK(test::ZeroCodecCases<Desk>(host_desk).encoded(plain, 4) == expected);

  const auto whole = buffer_of(ByteVector(1U << 18U, canary));
  const auto part = [&](std::size_t origin, std::size_t size) {
    const cl_buffer_region region{origin, size};
    cl_int status = CL_SUCCESS;
    Handle<cl_mem> made(
        clCreateSubBuffer(whole.get(), CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &status));
    opencl::check(status, "clCreateSubBuffer");
    return made;
  };
  const auto from = part(0, plain.size());
  const auto to = part(std::size_t{1} << 16U, 20'064);
  const auto scratch = part(std::size_t{1} << 17U, 4096);
  opencl::check(
      clEnqueueWriteBuffer(device().queue, from.get(), CL_TRUE, 0, plain.size(), plain.data(), 0, nullptr, nullptr),
      "clEnqueueWriteBuffer");
  device().codec.encode(device().queue, {5'000, 4}, from.get(), to.get(), scratch.get());
  ByteVector encoded = bytes_of(to.get());
  encoded.resize(expected.size());
  CHECK(encoded == expected);
}

TEST_CASE("work on a queue without an order waits for the events it is given, and its own event ends it") {
  cl_int status = CL_SUCCESS;
  const Handle<cl_command_queue> queue(clCreateCommandQueue(device().backend.context(), device().backend.device(),
                                                            CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status));
  if (status != CL_SUCCESS) return;  // a device without such queues
  const ByteVector plain = sparse_elements(5'000, 4, 0.5, 4);
  const ZeroElements elements{5'000, 4};
  const auto from = buffer_of(ByteVector(plain.size(), canary));
  const auto packed = buffer_of(zero_worst_case(elements).value);
  const auto to = buffer_of(plain.size());
  const auto scratch = buffer_of(zero_scratch(elements).value);
  const Handle<cl_event> go(clCreateUserEvent(device().backend.context(), &status));
  opencl::check(status, "clCreateUserEvent");
  cl_event filled = nullptr;
  const cl_event gate = go.get();
  opencl::check(
      clEnqueueWriteBuffer(queue.get(), from.get(), CL_FALSE, 0, plain.size(), plain.data(), 1, &gate, &filled),
      "clEnqueueWriteBuffer");
  const Handle<cl_event> filled_handle(filled);
  const auto encoded =
      device().codec.encode(queue.get(), elements, from.get(), packed.get(), scratch.get(), {&filled, 1});
  const auto decoded =
      device().codec.decode(queue.get(), elements, packed.get(), to.get(), scratch.get(), {&encoded.object(), 1});
  opencl::check(clSetUserEventStatus(go.get(), CL_COMPLETE), "clSetUserEventStatus");
  opencl::check(clWaitForEvents(1, &decoded.object()), "clWaitForEvents");
  CHECK(bytes_of(to.get()) == plain);
}

TEST_CASE("wrong arguments are refused before anything is queued") {
  const ZeroElements elements{1000, 4};
  const auto plain = buffer_of(4000);
  const auto encoded = buffer_of(4064);
  const auto scratch = buffer_of(zero_scratch(elements).value);
  const auto small = buffer_of(63);
  const auto refused = [&](const ZeroElements& of, cl_mem from, cl_mem to, cl_mem work) {
    std::string text;
    try {
      device().codec.encode(device().queue, of, from, to, work);
    } catch (const UsageError& error) {
      text = error.what();
    }
    return text;
  };
  CHECK(refused({1000, 3}, plain.get(), encoded.get(), scratch.get()) ==
        "the zero codec takes elements of 1, 2, 4 or 8 bytes, and these have 3");
  CHECK(refused({std::uint64_t{1} << 61U, 4}, plain.get(), encoded.get(), scratch.get()).find("up to 2^62 bytes") !=
        std::string::npos);
  CHECK(refused({1001, 4}, plain.get(), encoded.get(), scratch.get()) ==
        "the buffer for the encoded value has 4064 bytes, and 4068 are needed");
  CHECK(refused(elements, small.get(), encoded.get(), scratch.get()) ==
        "the buffer for the elements has 63 bytes, and 4000 are needed");
  CHECK(refused(elements, plain.get(), encoded.get(), nullptr) ==
        "the zero codec was given no buffer for scratch memory");
  CHECK(refused({100'000, 1}, plain.get(), encoded.get(), scratch.get()) ==
        "the buffer for scratch memory has 28 bytes, and 124 are needed");
  CHECK(refused(elements, encoded.get(), encoded.get(), scratch.get()) ==
        "the zero codec was given one buffer for two purposes");
  CHECK_THROWS_AS(device().codec.decode(device().queue, elements, small.get(), plain.get(), scratch.get()), UsageError);
  CHECK_THROWS_AS((void)zero_encoded_size(elements, 1001), UsageError);
  CHECK(bytes_of(encoded.get()) == ByteVector(4064, canary));
  CHECK(bytes_of(plain.get()) == ByteVector(4000, canary));
}

TEST_CASE("an operation of a manager encodes and decodes managed tensors") {
  using namespace swapmm::literals;
  MemoryManager manager{device().backend, {.device_budget = 1_MiB}};
  const ZeroElements elements{5'000, 4};
  auto plain = manager.tensor<float>({elements.count});
  auto encoded = manager.tensor<std::uint8_t>({zero_worst_case(elements).value});
  auto back = manager.tensor<float>({elements.count});
  std::vector<float> values(elements.count);
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = static_cast<float>(i) + 1;
  plain.upload(values);
  const auto scratch = swapmm::scratch(zero_scratch(elements));
  manager.run("encode", reads(plain), writes(encoded), scratch, [&](auto& op, const opencl::WaitList& waits) {
    auto event = device().codec.encode(op.queue(), elements, op[plain].buffer(), op[encoded].buffer(),
                                       op.scratch().buffer(), {waits.data(), waits.size()});
    return NativeEvent(event.release());
  });
  manager.run("decode", reads(encoded), writes(back), scratch, [&](auto& op) {
    device().codec.decode(op.queue(), elements, op[encoded].buffer(), op[back].buffer(), op.scratch().buffer());
  });
  CHECK(back.download() == values);
}

// Run by ctest, which names the folder, before zero_codec.py decodes the files.
TEST_CASE("files: encoded values for another language" * doctest::skip()) {
  const char* const folder = std::getenv("SWAPMM_ZERO_CODEC_FOLDER");
  REQUIRE(folder != nullptr);
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{8}}) {
    for (const std::size_t n : {std::size_t{0}, std::size_t{33}, std::size_t{4097}, std::size_t{50'001}}) {
      for (const double density : {0.0, 0.3, 1.0}) {
        const ByteVector plain = sparse_elements(n, size, density, n + size);
        const std::string name = std::string(folder) + "/" + std::to_string(size) + "-" + std::to_string(n) + "-" +
                                 std::to_string(static_cast<int>(density * 100));
        const auto write = [](const std::string& path, const ByteVector& bytes) {
          std::ofstream(path, std::ios::binary)
              .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        };
        write(name + ".plain", plain);
        write(name + ".encoded", cases.encoded(plain, size));
      }
    }
  }
}

}  // namespace zero_codec_on_opencl
