// SPDX-License-Identifier: Apache-2.0
// Boost.Compute's algorithms on tensors that swapmm moves, compared with those of the standard library.
#include <swapmm/opencl/boost_compute.hpp>

#include <doctest/doctest.h>
#include <boost/compute/algorithm/copy.hpp>
#include <boost/compute/algorithm/fill.hpp>
#include <boost/compute/algorithm/inclusive_scan.hpp>
#include <boost/compute/algorithm/max_element.hpp>
#include <boost/compute/algorithm/reduce.hpp>
#include <boost/compute/algorithm/sort.hpp>
#include <boost/compute/algorithm/sort_by_key.hpp>
#include <boost/compute/algorithm/transform.hpp>
#include <boost/compute/function.hpp>
#include <boost/compute/functional/operator.hpp>
#include <boost/compute/kernel.hpp>
#include <boost/compute/program.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "opencl/api_calls.hpp"
#include "opencl/device.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using opencl::as_compute_queue;
using opencl::compute_begin;
using opencl::compute_end;

namespace compute = boost::compute;

using Number = std::uint32_t;  // exact, and overflow is defined
using Numbers = Tensor<Number, opencl::Backend>;

constexpr std::size_t length = 20'011;
constexpr std::size_t columns = 6;

// NOLINTNEXTLINE(readability-identifier-naming): the macro names parameter and function alike
BOOST_COMPUTE_FUNCTION(Number, twist, (Number x), { return x * 2654435761u + 40503u; });
Number host_twist(Number x) { return x * 2654435761U + 40503U; }

std::vector<Number> numbers(Number seed) {
  std::vector<Number> values(length);
  for (Number& value : values) value = seed = seed * 1664525U + 1013904223U;
  return values;
}

/// The device of the tests, as a program with Boost.Compute holds it.
compute::command_queue program_queue(cl_command_queue_properties properties) {
  const opencl::Backend backend = test::backend();
  return {compute::context(backend.context()), compute::device(backend.device()), properties};
}

/// Columns on the host, treated as the device treats those of a Desk.
struct Host {
  std::vector<std::vector<Number>> data;
  std::vector<Number> sums = std::vector<Number>(columns);
  std::vector<Number> sorted = std::vector<Number>(length);
  std::vector<Number> mask = std::vector<Number>(length);

  Host() {
    for (std::size_t i = 0; i < columns; ++i) data.push_back(numbers(static_cast<Number>(i + 1)));
  }
  void twist_all() {
    for (std::size_t i = 0; i < columns; ++i) {
      auto& next = data[(i + 1) % columns];
      std::transform(data[i].begin(), data[i].end(), data[i].begin(), host_twist);
      std::transform(data[i].begin(), data[i].end(), next.begin(), next.begin(), std::plus<>());
    }
    std::fill(mask.begin(), mask.end(), 77U);
    std::transform(mask.begin(), mask.end(), data[0].begin(), mask.begin(), std::bit_xor<>());
  }
  void scan_sort_and_sum() {
    for (std::size_t i = 0; i < columns; ++i) {
      std::inclusive_scan(data[i].begin(), data[i].end(), sorted.begin());
      sums[i] = std::reduce(sorted.begin(), sorted.end(), Number{0});
      std::sort(sorted.begin(), sorted.end());
    }
  }
};

/// Columns of which about half fit on the device.
struct Desk {
  static constexpr Bytes budget = 312_KiB;

  opencl::Backend backend;
  MemoryManager<opencl::Backend> manager{backend, {.device_budget = budget}};
  std::vector<Numbers> data;
  std::vector<Numbers> sums;
  Numbers sorted = manager.tensor<Number>({length}, "sorted", kept);
  Numbers mask = manager.tensor<Number>({length}, "mask", kept);

  explicit Desk(opencl::Backend with) : backend(std::move(with)) {
    for (std::size_t i = 0; i < columns; ++i) {
      data.push_back(manager.tensor<Number>({length}, "column " + std::to_string(i)));
      data.back().upload(numbers(static_cast<Number>(i + 1)));
      sums.push_back(manager.tensor<Number>({1}, "sum " + std::to_string(i), kept));
    }
    REQUIRE(budget.value * 2 <= (columns + 2) * length * sizeof(Number));
  }

  void twist_all() {
    for (std::size_t i = 0; i < columns; ++i) {
      auto& one = data[i];
      auto& next = data[(i + 1) % columns];
      manager.run("twist", updates(one, next), [&](auto& op) {
        compute::command_queue queue = as_compute_queue(op.queue());
        compute::transform(compute_begin(op[one]), compute_end(op[one]), compute_begin(op[one]), twist, queue);
        compute::transform(compute_begin(op[one]), compute_end(op[one]), compute_begin(op[next]),
                           compute_begin(op[next]), compute::plus<Number>(), queue);
      });
    }
    manager.run("fill", writes(mask), [&](auto& op) {
      compute::command_queue queue = as_compute_queue(op.queue());
      compute::fill(compute_begin(op[mask]), compute_end(op[mask]), Number{77}, queue);
    });
    manager.run("mask", updates(mask), reads(data[0]), [&](auto& op) {
      compute::command_queue queue = as_compute_queue(op.queue());
      compute::transform(compute_begin(op[mask]), compute_end(op[mask]), compute_begin(op[data[0]]),
                         compute_begin(op[mask]), compute::bit_xor<Number>(), queue);
    });
  }
  void scan_sort_and_sum() {
    for (std::size_t i = 0; i < columns; ++i) {
      manager.run("scan", reads(data[i]), writes(sorted), [&](auto& op) {
        compute::command_queue queue = as_compute_queue(op.queue());
        compute::inclusive_scan(compute_begin(op[data[i]]), compute_end(op[data[i]]), compute_begin(op[sorted]), queue);
      });
      // The result stays on the device, so that the host need not wait for it.
      manager.run("sum", reads(sorted), writes(sums[i]), [&](auto& op) {
        compute::command_queue queue = as_compute_queue(op.queue());
        compute::reduce(compute_begin(op[sorted]), compute_end(op[sorted]), compute_begin(op[sums[i]]),
                        compute::plus<Number>(), queue);
      });
      manager.run("sort", updates(sorted), [&](auto& op) {
        compute::command_queue queue = as_compute_queue(op.queue());
        compute::sort(compute_begin(op[sorted]), compute_end(op[sorted]), compute::less<Number>(), queue);
      });
    }
  }

  void check_against(const Host& host) {
    for (std::size_t i = 0; i < columns; ++i) {
      CAPTURE(i);
      CHECK(data[i].download() == host.data[i]);
    }
    CHECK(mask.download() == host.mask);
  }
};

}  // namespace

TEST_CASE("transform and fill in half of the memory give what the standard library gives, and make no buffer") {
  Desk desk(opencl::make_backend(program_queue(compute::command_queue::enable_profiling)));
  Host host;
  constexpr int iterations = 8;
  test::ApiCalls before{};
  for (int i = 0; i < iterations; ++i) {
    if (i == 4) before = test::api_calls();
    auto iteration = desk.manager.iteration("twist");
    desk.twist_all();
    host.twist_all();
  }
  CHECK(test::api_calls().buffers_made == before.buffers_made);
  CHECK(test::api_calls().sub_buffers_made == before.sub_buffers_made);
  const Report report = desk.manager.report();
  CHECK(report.iterations_followed >= 4);
  CHECK(report.divergences == 0);
  CHECK(report.swap_ins > 0);
  CHECK(report.device_peak <= Desk::budget);
  desk.check_against(host);
}

TEST_CASE("scan, reduce and sort in half of the memory give what the standard library gives") {
  // A queue without times, and one of swapmm's own.
  for (const bool own : {false, true}) {
    const compute::command_queue queue = program_queue(0);
    Desk desk(own ? opencl::make_backend(queue.get_context(), queue.get_device()) : opencl::make_backend(queue));
    Host host;
    for (int i = 0; i < 6; ++i) {
      auto iteration = desk.manager.iteration("all");
      desk.twist_all();
      desk.scan_sort_and_sum();
      host.twist_all();
      host.scan_sort_and_sum();
    }
    CHECK(desk.manager.report().iterations_followed >= 2);
    CHECK(desk.manager.report().divergences == 0);
    for (std::size_t i = 0; i < columns; ++i) CHECK(desk.sums[i].download().front() == host.sums[i]);
    CHECK(desk.sorted.download() == host.sorted);
    desk.check_against(host);
  }
}

TEST_CASE("an operation of the second form gives its wait list to Boost.Compute, and returns its event") {
  const compute::command_queue program = program_queue(compute::command_queue::enable_profiling);
  compute::kernel twist_kernel = compute::program::build_with_source(
                                     "__kernel void twist(__global uint* x) {"
                                     "  size_t i = get_global_id(0); x[i] = x[i] * 2654435761u + 40503u; }",
                                     program.get_context())
                                     .create_kernel("twist");
  Desk desk(opencl::make_backend(program));
  Host host;
  for (int i = 0; i < 6; ++i) {
    auto iteration = desk.manager.iteration("twist");
    for (std::size_t c = 0; c < columns; ++c) {
      desk.manager.run("twist", updates(desk.data[c]), [&](auto& op, const opencl::WaitList& waits) {
        twist_kernel.set_arg(0, opencl::as_compute_buffer(op[desk.data[c]]));
        return opencl::native_event(
            as_compute_queue(op.queue())
                .enqueue_1d_range_kernel(twist_kernel, 0, length, 0, opencl::as_compute_waits(waits)));
      });
      std::transform(host.data[c].begin(), host.data[c].end(), host.data[c].begin(), host_twist);
    }
  }
  CHECK(desk.manager.report().iterations_followed >= 2);
  CHECK(desk.manager.report().swap_ins > 0);
  for (std::size_t c = 0; c < columns; ++c) CHECK(desk.data[c].download() == host.data[c]);
}

TEST_CASE(
    "transform, fill and copy make no buffer, reduce and scan at most small ones, sort one as large as its range") {
  constexpr std::size_t count = std::size_t{1} << 20U;
  constexpr std::uint64_t bytes = count * sizeof(Number);
  compute::command_queue queue = program_queue(0);
  const compute::context context = queue.get_context();
  const compute::buffer buffers[] = {compute::buffer(context, bytes), compute::buffer(context, bytes),
                                     compute::buffer(context, bytes), compute::buffer(context, sizeof(Number))};
  using Iterator = compute::buffer_iterator<Number>;
  const Iterator from(buffers[0], 0);
  const Iterator to(buffers[1], 0);
  const Iterator values(buffers[2], 0);
  const Iterator one(buffers[3], 0);
  compute::fill(from, from + count, Number{3}, queue);
  compute::fill(values, values + count, Number{5}, queue);

  // The second run counts: the first one compiles.
  const auto taken_by = [&](const std::string& name, auto&& algorithm) {
    algorithm();
    queue.finish();
    const test::ApiCalls before = test::api_calls();
    algorithm();
    queue.finish();
    const test::ApiCalls& after = test::api_calls();
    const std::uint64_t taken = after.device_bytes + after.host_bytes - before.device_bytes - before.host_bytes;
    MESSAGE(name << " of " << bytes << " bytes: " << after.buffers_made - before.buffers_made << " buffers of " << taken
                 << " bytes, " << after.reads - before.reads << " reads that the host waits for");
    return taken;
  };
  CHECK(taken_by("fill", [&] { compute::fill(to, to + count, Number{7}, queue); }) == 0);
  CHECK(taken_by("copy", [&] { compute::copy(from, from + count, to, queue); }) == 0);
  CHECK(taken_by("transform", [&] { compute::transform(from, from + count, to, twist, queue); }) == 0);
  CHECK(taken_by("inclusive_scan", [&] { compute::inclusive_scan(from, from + count, to, queue); }) < bytes / 8);
  const auto plus = compute::plus<Number>();
  CHECK(taken_by("reduce to a tensor", [&] { compute::reduce(from, from + count, one, plus, queue); }) < bytes / 8);
  Number sum = 0;
  CHECK(taken_by("reduce to the host", [&] { compute::reduce(from, from + count, &sum, plus, queue); }) < bytes / 8);
  CHECK(sum == 3 * static_cast<Number>(count));
  CHECK(taken_by("max_element", [&] { (void)compute::max_element(from, from + count, queue); }) < bytes / 8);
  CHECK(taken_by("sort", [&] { compute::sort(to, to + count, compute::less<Number>(), queue); }) >= bytes);
  CHECK(taken_by("sort_by_key", [&] { compute::sort_by_key(to, to + count, values, queue); }) >= 2 * bytes);
}
