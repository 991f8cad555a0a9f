// SPDX-License-Identifier: Apache-2.0
// What is said where a program's own kernel is wrong, or is used wrongly.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/program.hpp>
#include <swapmm/swapmm.hpp>

#include "opencl/device.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using opencl::argument;

constexpr const char* source = R"(
#include <swapmm/kernel.h>
SWAPMM_KERNEL void scale(SWAPMM_VIEW(float, image), const int factor) { SWAPMM_AT1(image, SWAPMM_ID(0)) *= factor; }
)";

template <class Call>
std::string text_thrown(Call&& call) {
  try {
    call();
  } catch (const BackendError& error) {
    return error.what();
  }
  FAIL("nothing was thrown");
  return {};
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a kernel that does not compile is refused with the compiler's log") {
  const opencl::Backend backend = test::backend();
  const auto refused = [&](const std::string& body, const std::string& options = {}) {
    try {
      const opencl::Program program(backend, "#include <swapmm/kernel.h>\nSWAPMM_KERNEL void k(" + body, options);
    } catch (const BackendError& error) {
      CHECK(error.kind == BackendError::Kind::failed);
      CHECK((error.code == -11 || error.code == -15));  // CL_BUILD_PROGRAM_FAILURE, CL_COMPILE_PROGRAM_FAILURE
      return std::string(error.what());
    }
    FAIL("it compiled");
    return std::string();
  };
  CHECK(has(refused("SWAPMM_VIEW(int, a)) { SWAPMM_AT1(a, 0) = never_declared; }"), "never_declared"));
  // What is read only stays so. The log is more than the call and its status; its words are the compiler's.
  const std::string log = refused("SWAPMM_CONST_VIEW(int, image)) { SWAPMM_AT1(image, 0) = 1; }");
  CHECK(has(log, "_PROGRAM_FAILURE ("));
  CHECK(has(log, "\n"));
  // Options reach the compiler.
  CHECK(
      has(refused("SWAPMM_VIEW(int, a)) { SWAPMM_AT1(a, 0) = WORD; }", "-DWORD=from_the_options"), "from_the_options"));
}

TEST_CASE("a wrong use of a kernel is refused with names and numbers") {
  const opencl::Backend backend = test::backend();
  const opencl::Program program(backend, source);
  MemoryManager manager(backend, {.device_budget = 64_KiB});
  CHECK(has(text_thrown([&] { (void)program.kernel("scalee"); }), "\"scalee\""));

  opencl::Kernel scale = program.kernel("scale");
  auto image = manager.tensor<float>({16}, "image");
  image.upload(std::vector<float>(16, 3));
  manager.run("scale", updates(image), [&](auto& op) {
    const auto view = argument(op[image], image);
    const auto refused = [&](cl_int code, const std::string& argument_text, const auto&... arguments) {
      try {
        scale.set(arguments...);
      } catch (const BackendError& error) {
        INFO(error.what());
        CHECK(error.code == code);
        CHECK(has(error.what(), "\"scale\""));
        CHECK(has(error.what(), argument_text));
        return;
      }
      FAIL("it was taken: " << argument_text);
    };
    refused(CL_INVALID_ARG_SIZE, "argument 2", view, std::int64_t{2});  // the kernel wants an int
    refused(CL_INVALID_ARG_INDEX, "argument 3", view, 2, 3);            // one too many
    const auto incomplete = [&](const auto&... arguments) {
      opencl::Kernel fresh = program.kernel("scale");
      const std::string text = text_thrown([&] { fresh.set(arguments...).enqueue(op.queue(), {16}); });
      CHECK(has(text, "\"scale\""));
      // Drivers that do not know the size of a layout say so when the kernel is queued.
      CHECK((has(text, "CL_INVALID_ARG_SIZE") || has(text, "CL_INVALID_KERNEL_ARGS")));
    };
    incomplete(view);                              // the factor is missing
    incomplete(op[image], 2);                      // the layout is missing
    scale.set(view, 2).enqueue(op.queue(), {16});  // and the kernel is as good as before
  });
  CHECK(image.download() == std::vector<float>(16, 6));
}

TEST_CASE("a range of work items has one to three dimensions") {
  CHECK(opencl::Range{}.dimensions() == 0);
  CHECK(opencl::Range{4}.dimensions() == 1);
  CHECK(opencl::Range{4, 5, 6}.dimensions() == 3);
  CHECK(opencl::Range{4, 5, 6}.data()[2] == 6);
  CHECK_THROWS_AS((opencl::Range{4, 5, 6, 7}), UsageError);
}

TEST_CASE("a range of a shape has a work item per element, the last extent first") {
  const auto sizes = [](const opencl::Range& range) {
    return std::vector<std::size_t>(range.data(), range.data() + range.dimensions());
  };
  CHECK(sizes(opencl::Range::of({7})) == std::vector<std::size_t>{7});
  CHECK(sizes(opencl::Range::of({2, 3})) == std::vector<std::size_t>{3, 2});
  CHECK(sizes(opencl::Range::of({2, 3, 4})) == std::vector<std::size_t>{4, 3, 2});
  try {
    (void)opencl::Range::of({2, 3, 4, 5});
    FAIL("it was taken");
  } catch (const UsageError& error) {
    CHECK(has(error.what(), "2 x 3 x 4 x 5"));
  }

  // Every element is written once, by the item of its place.
  const opencl::Backend backend = test::backend();
  const opencl::Program program(backend, R"(
    __kernel void place(__global int* to) {
      const size_t i = (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0);
      to[i] += 100 * (int)get_global_id(2) + 10 * (int)get_global_id(1) + (int)get_global_id(0);
    })");
  MemoryManager manager(backend, {.device_budget = 64_KiB});
  auto cube = manager.tensor<int>({2, 3, 4}, "cube");
  cube.upload(std::vector<int>(24, 1000));
  opencl::Kernel place = program.kernel("place");
  manager.run("place", updates(cube),
              [&](auto& op) { place.set(op[cube]).enqueue(op.queue(), opencl::Range::of(cube.shape())); });
  std::vector<int> expected;
  for (int x = 0; x < 2; ++x) {
    for (int y = 0; y < 3; ++y) {
      for (int z = 0; z < 4; ++z) expected.push_back(1000 + 100 * x + 10 * y + z);
    }
  }
  CHECK(cube.download() == expected);
}

TEST_CASE("a raw launch takes arguments by size and address, and an empty work area is a null buffer") {
  const opencl::Backend backend = test::backend();
  const opencl::Program program(backend, R"(
    __kernel void sum(__global const int* a, __global int* b, __global uchar* work, int value) {
      b[get_global_id(0)] = a[get_global_id(0)] + value + (work == 0 ? 1 : 0);
    })");
  MemoryManager manager(backend, {.device_budget = 64_KiB});
  // Large enough for a part that the device can address: NVIDIA's wants multiples of 512 bytes.
  const std::size_t half = std::max<std::size_t>(32, backend.capabilities().view_alignment.value / sizeof(int));
  const std::size_t items = 2 * half;
  auto a = manager.tensor<int>({items}, "a");
  auto b = manager.tensor<int>({items}, "b");
  a.upload(std::vector<int>(items, 20));
  opencl::Kernel sum = program.kernel("sum");
  manager.run("sum", reads(a), writes(b), scratch(0), [&](auto& op) {
    const Argument from = op.argument(a);
    const int value = 7;
    CHECK(from.size() == sizeof(cl_mem));
    CHECK(*static_cast<cl_mem*>(from.data()) == op[a].buffer());
    CHECK(clSetKernelArg(sum.get(), 0, from.size(), from.data()) == CL_SUCCESS);
    CHECK(clSetKernelArg(sum.get(), 1, op.argument(b).size(), op.argument(b).data()) == CL_SUCCESS);
    const opencl::View<std::byte> work = op.scratch();
    CHECK(work.buffer() == nullptr);
    CHECK(work.size() == 0);
    const cl_mem none = work.buffer();
    CHECK(clSetKernelArg(sum.get(), 2, sizeof none, &none) == CL_SUCCESS);
    CHECK(clSetKernelArg(sum.get(), 3, sizeof value, &value) == CL_SUCCESS);
    CHECK(clEnqueueNDRangeKernel(op.queue(), sum.get(), 1, nullptr, &items, nullptr, 0, nullptr, nullptr) ==
          CL_SUCCESS);
  });
  CHECK(b.download() == std::vector<int>(items, 28));
  // The same by Kernel::set, and of a part.
  manager.run("sum", updates(a), writes(b), scratch(0), [&](auto& op) {
    sum.set(op.argument(a), op.argument(b), op.scratch(), 30).enqueue(op.queue(), {items});
    sum.set(op.argument(b), op.argument(a.slice(half, half)), op.scratch(), 100).enqueue(op.queue(), {half});
  });
  CHECK(b.download() == std::vector<int>(items, 51));
  std::vector<int> expected(items, 20);
  std::fill(expected.begin() + static_cast<std::ptrdiff_t>(half), expected.end(), 152);
  CHECK(a.download() == expected);
}

TEST_CASE("reset gives a tensor's memory back to the others") {
  const opencl::Backend backend = test::backend();
  MemoryManager manager(backend, {.device_budget = 64_KiB});
  const opencl::Program program(backend, "__kernel void fill(__global int* to) { to[get_global_id(0)] = 9; }");
  opencl::Kernel fill = program.kernel("fill");
  auto a = manager.tensor<int>({16384}, "a");
  auto b = manager.tensor<int>({16384}, "b");
  const auto filled = [&](auto& tensor) {
    manager.run("fill", writes(tensor), [&](auto& op) { fill.set(op[tensor]).enqueue(op.queue(), {16384}); });
  };
  filled(a);
  a.reset();
  filled(b);
  const Report report = manager.report();
  CHECK(report.tensors == 1);
  CHECK(report.swap_outs == 0);  // it is gone, and not on the host
  CHECK(b.download() == std::vector<int>(16384, 9));
  a.reset();
  CHECK_THROWS_AS((void)a.download(), UsageError);
}
