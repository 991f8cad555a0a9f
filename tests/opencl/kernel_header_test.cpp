// SPDX-License-Identifier: Apache-2.0
// <swapmm/kernel.h> on host and device: what kernels see of tensors.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

#include <swapmm/layout.hpp>
#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/program.hpp>
#include <swapmm/swapmm.hpp>

#include "opencl/device.hpp"
#include "test_data.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using opencl::argument;

using Six = std::array<swapmm_index, SWAPMM_MAX_RANK>;
Six extents(const swapmm_layout& layout) { return std::to_array(layout.extents); }
Six strides(const swapmm_layout& layout) { return std::to_array(layout.strides); }

// write1 to write4 give each element of a view of that rank its indices, read1 to read4 gather all of them in order.
constexpr const char* source = R"(
#include <swapmm/kernel.h>

SWAPMM_KERNEL void fields(SWAPMM_CONST_VIEW(uchar, any), SWAPMM_VIEW(long, out)) {
  out[0] = sizeof(swapmm_layout);
  out[1] = SWAPMM_RANK(any);
  for (int d = 0; d < SWAPMM_MAX_RANK; ++d) out[2 + d] = SWAPMM_EXTENT(any, d);
  for (int d = 0; d < SWAPMM_MAX_RANK; ++d) out[2 + SWAPMM_MAX_RANK + d] = SWAPMM_STRIDE(any, d);
}

SWAPMM_KERNEL void ids(SWAPMM_VIEW(long, out)) {
  const swapmm_index a = SWAPMM_ID(0), b = SWAPMM_ID(1), c = SWAPMM_ID(2);
  SWAPMM_AT3(out, c, b, a) = 10000 * c + 100 * b + a;
}

// The indices of the work item's element: the last dimension runs fastest.
#define INDICES(view)                                                                          \
  swapmm_index rest = SWAPMM_ID(0);                                                            \
  const swapmm_index n = rest;                                                                 \
  swapmm_index at[4] = {0, 0, 0, 0};                                                           \
  for (swapmm_index d = SWAPMM_RANK(view); d-- > 0; rest /= SWAPMM_EXTENT(view, d)) at[d] = rest % SWAPMM_EXTENT(view, d)
#define CODE (1000000 * at[0] + 10000 * at[1] + 100 * at[2] + at[3])

SWAPMM_KERNEL void write1(SWAPMM_VIEW(int, to)) { INDICES(to); SWAPMM_AT1(to, at[0]) = CODE; }
SWAPMM_KERNEL void write2(SWAPMM_VIEW(int, to)) { INDICES(to); SWAPMM_AT2(to, at[0], at[1]) = CODE; }
SWAPMM_KERNEL void write3(SWAPMM_VIEW(int, to)) { INDICES(to); SWAPMM_AT3(to, at[0], at[1], at[2]) = CODE; }
SWAPMM_KERNEL void write4(SWAPMM_VIEW(int, to)) { INDICES(to); SWAPMM_AT4(to, at[0], at[1], at[2], at[3]) = CODE; }

#define READ(rank) SWAPMM_KERNEL void read##rank(SWAPMM_CONST_VIEW(int, from), SWAPMM_VIEW(int, to))
READ(1) { INDICES(from); to[n] = SWAPMM_AT1(from, at[0]); }
READ(2) { INDICES(from); to[n] = SWAPMM_AT2(from, at[0], at[1]); }
READ(3) { INDICES(from); to[n] = SWAPMM_AT3(from, at[0], at[1], at[2]); }
READ(4) { INDICES(from); to[n] = SWAPMM_AT4(from, at[0], at[1], at[2], at[3]); }
)";

struct Device {
  opencl::Backend backend = test::backend();
  opencl::Program program{backend, source};
  MemoryManager<opencl::Backend> manager{backend, {.device_budget = 1_MiB}};
};
// One for all cases, since compiling takes a second. Never destroyed: the driver may be gone before it.
Device& the_device() {
  static Device& device = *new Device;
  return device;
}

struct Element {
  std::size_t place;  // in memory, from the view's first element on
  int code;           // what the kernels write there: its indices
};
// In the order of their indices, the last one fastest.
std::vector<Element> elements(const swapmm_layout& layout) {
  std::vector<Element> result;
  const auto& n = layout.extents;
  const auto& stride = layout.strides;
  for (swapmm_index i = 0; i < n[0]; ++i) {
    for (swapmm_index j = 0; j < n[1]; ++j) {
      for (swapmm_index k = 0; k < n[2]; ++k) {
        for (swapmm_index l = 0; l < n[3]; ++l) {
          const swapmm_index place = i * stride[0] + j * stride[1] + k * stride[2] + l * stride[3];
          result.push_back({static_cast<std::size_t>(place), static_cast<int>(1000000 * i + 10000 * j + 100 * k + l)});
        }
      }
    }
  }
  return result;
}

// Writes every element of `view` by the macros with that layout, then compares the memory of the whole `tensor`, in
// which the view begins at element `first`; then reads every element, and compares again.
template <class Shaped>
void check_elements(Device& device, Tensor<int, opencl::Backend>& tensor, const Shaped& view,
                    const swapmm_layout& layout, std::size_t first) {
  INFO("rank ", layout.rank, ", the view begins at element ", first);
  const std::string rank = std::to_string(layout.rank);
  std::vector<int> memory(tensor.size(), -1);
  tensor.upload(memory);
  std::vector<int> in_order;
  for (const Element& element : elements(layout)) {
    memory.at(first + element.place) = element.code;
    in_order.push_back(element.code);
  }
  const std::size_t count = in_order.size();

  opencl::Kernel write = device.program.kernel("write" + rank);
  device.manager.run("write", updates(view), [&](auto& op) {
    write.set(opencl::ViewArgument{op[view].buffer(), layout}).enqueue(op.queue(), {count});
  });
  CHECK(tensor.download() == memory);

  opencl::Kernel read = device.program.kernel("read" + rank);
  const auto out = device.manager.tensor<int>({count}, "out");
  device.manager.run("read", reads(view), writes(out), [&](auto& op) {
    read.set(opencl::ViewArgument{op[view].buffer(), layout}, argument(op[out], out)).enqueue(op.queue(), {count});
  });
  CHECK(out.download() == in_order);
}

}  // namespace

TEST_CASE("a layout counts elements, the slowest dimension first") {
  struct Case {
    Shape shape;
    Six extents, strides;
  };
  const Case cases[] = {
      {{7}, {7, 1, 1, 1, 1, 1}, {1, 0, 0, 0, 0, 0}},
      {{3, 5}, {3, 5, 1, 1, 1, 1}, {5, 1, 0, 0, 0, 0}},
      {{2, 3, 5}, {2, 3, 5, 1, 1, 1}, {15, 5, 1, 0, 0, 0}},
      {{4, 2, 3, 5}, {4, 2, 3, 5, 1, 1}, {30, 15, 5, 1, 0, 0}},
      {{2, 4, 2, 3, 5}, {2, 4, 2, 3, 5, 1}, {120, 30, 15, 5, 1, 0}},
      {{7, 2, 4, 2, 3, 5}, {7, 2, 4, 2, 3, 5}, {240, 120, 30, 15, 5, 1}},
      {{100000, 100000, 3}, {100000, 100000, 3, 1, 1, 1}, {300000, 3, 1, 0, 0, 0}},
  };
  for (const Case& c : cases) {
    INFO("shape ", c.shape.text());
    const swapmm_layout layout = layout_of(c.shape);
    CHECK(layout.rank == static_cast<swapmm_index>(c.shape.rank()));
    CHECK(extents(layout) == c.extents);
    CHECK(strides(layout) == c.strides);
  }
}

TEST_CASE("a tensor, a slice of it and the same in another shape have layouts of their own") {
  MemoryManager manager{test::backend(), {.device_budget = 64_KiB}};
  const auto tensor = manager.tensor<float>({6, 4, 128});
  CHECK(extents(layout_of(tensor)) == Six{6, 4, 128, 1, 1, 1});
  CHECK(extents(layout_of(tensor.slice(2, 3))) == Six{3, 4, 128, 1, 1, 1});
  CHECK(strides(layout_of(tensor.slice(2, 3))) == Six{512, 128, 1, 0, 0, 0});
  CHECK(extents(layout_of(tensor.reshape({24, 128}))) == Six{24, 128, 1, 1, 1, 1});
}

TEST_CASE("a shape of more dimensions than a view has is refused") {
  for (const Shape& shape : {Shape{1, 2, 3, 4, 5, 6, 7}, Shape{1, 2, 3, 4, 5, 6, 7, 8}}) {
    try {
      (void)layout_of(shape);
      FAIL("it was taken");
    } catch (const UsageError& error) {
      CHECK(std::string(error.what()) == "a kernel's view has at most 6 dimensions, and this shape has " +
                                             std::to_string(shape.rank()) + ": reshape the tensor");
    }
  }
}

TEST_CASE("a layout is the same bytes on host and device") {
  static_assert(std::is_trivially_copyable_v<swapmm_layout>);
  static_assert(sizeof(swapmm_layout) == 13 * 8);
  Device& device = the_device();
  // Every field another number, large ones among them: none can stand for another.
  const swapmm_layout layout{{11, 12, 1LL << 40, 14, 15, 16}, {-21, 22, 23, (1LL << 50) + 1, 25, 26}, 5};
  const auto any = device.manager.tensor<std::uint8_t>({16});
  const auto out = device.manager.tensor<std::int64_t>({14});
  device.manager.run("fields", writes(any, out), [&](auto& op) {
    auto fields = device.program.kernel("fields");
    fields.set(opencl::ViewArgument{op[any].buffer(), layout}, argument(op[out], out)).enqueue(op.queue(), {1});
  });
  CHECK(out.download() == std::vector<std::int64_t>{104, 5, 11, 12, std::int64_t{1} << 40, 14, 15, 16, -21, 22, 23,
                                                    (std::int64_t{1} << 50) + 1, 25, 26});
}

TEST_CASE("views address each element of a tensor") {
  Device& device = the_device();
  for (const Shape& shape : {Shape{1}, Shape{97}, Shape{5, 7}, Shape{1, 9}, Shape{9, 1}, Shape{3, 5, 7}, Shape{1, 1, 6},
                             Shape{2, 3, 4, 5}, Shape{4, 1, 1, 3}}) {
    auto tensor = device.manager.tensor<int>(shape);
    check_elements(device, tensor, tensor, layout_of(tensor), 0);
  }
}

TEST_CASE("views address each element of a slice, and nothing beside it") {
  Device& device = the_device();
  // A part begins at a multiple of what the device aligns sub-buffers to: 512 bytes are enough for any known one.
  auto rows = device.manager.tensor<int>({8, 128});
  check_elements(device, rows, rows.slice(3, 2), layout_of(rows.slice(3, 2)), 3 * 128);
  auto blocks = device.manager.tensor<int>({5, 16, 8});
  check_elements(device, blocks, blocks.slice(1, 3), layout_of(blocks.slice(1, 3)), 128);
  const auto reshaped = blocks.slice(2, 2).reshape({2, 4, 4, 8});
  check_elements(device, blocks, reshaped, layout_of(reshaped), 2 * 128);
  auto vector = device.manager.tensor<int>({1000});
  check_elements(device, vector, vector.slice(256, 300), layout_of(vector.slice(256, 300)), 256);
}

TEST_CASE("views go by their strides") {
  Device& device = the_device();
  auto tensor = device.manager.tensor<int>({600});
  const swapmm_layout layouts[] = {
      {{20, 1, 1, 1, 1, 1}, {7}, 1},                // every seventh
      {{6, 5, 1, 1, 1, 1}, {1, 6}, 2},              // columns first
      {{5, 6, 1, 1, 1, 1}, {100, 3}, 2},            // a part of each row, every third column
      {{3, 4, 5, 1, 1, 1}, {1, 150, 17}, 3},        // in no order
      {{3, 4, 2, 5, 1, 1}, {200, 40, 18, 2}, 4},    // with gaps everywhere
      {{2, 3, 4, 5, 1, 1}, {1, 2, 6, 24, 0, 0}, 4}  // the first dimension fastest
  };
  for (const swapmm_layout& layout : layouts) check_elements(device, tensor, tensor, layout, 0);
}

TEST_CASE("SWAPMM_ID(0) runs fastest") {
  Device& device = the_device();
  const auto out = device.manager.tensor<std::int64_t>({3, 4, 5});
  device.manager.run("ids", writes(out), [&](auto& op) {
    auto ids = device.program.kernel("ids");
    ids.set(argument(op[out], out)).enqueue(op.queue(), {5, 4, 3});
  });
  std::vector<std::int64_t> expected;
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t b = 0; b < 4; ++b) {
      for (std::int64_t a = 0; a < 5; ++a) expected.push_back(10000 * c + 100 * b + a);
    }
  }
  CHECK(out.download() == expected);
}

// tests/cuda_header compiles the same file as CUDA C++.
TEST_CASE("a kernel source that is also CUDA runs on OpenCL") {
  std::ifstream file(SWAPMM_TEST_DATA "/../cuda_header/kernels.h");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open()) {
    MESSAGE("skipped: the sources are not where the tests were built");
    return;
  }
  REQUIRE(text.find("SWAPMM_KERNEL void scale(") != std::string::npos);
  Device& device = the_device();
  const opencl::Program program(device.backend, text);
  auto image = device.manager.tensor<float>({3, 5});
  auto step = device.manager.tensor<float>({3, 5});
  image.upload(std::vector<float>(15, 2));
  std::vector<float> expected(15);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<float>(i);
  step.upload(expected);
  opencl::Kernel scale = program.kernel("scale");
  opencl::Kernel add = program.kernel("add");
  device.manager.run("scale", updates(image), [&](auto& op) {
    scale.set(argument(op[image], image), 1.5F).enqueue(op.queue(), {8, 8}, {4, 4});  // more work items than elements
  });
  device.manager.run("add", reads(step), updates(image), [&](auto& op) {
    const Shape flat{15};
    add.set(argument(op[step], step.reshape(flat)), argument(op[image], image.reshape(flat))).enqueue(op.queue(), {15});
  });
  for (float& x : expected) x += 3;
  CHECK(image.download() == expected);
}
