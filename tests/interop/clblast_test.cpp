// SPDX-License-Identifier: Apache-2.0
// CLBlast on tensors that swapmm moves: the same numbers as without swapmm, and no buffer behind the budget.
#include "opencl/api_calls.hpp"

#include <clblast.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/swapmm.hpp>

#include "interop/linear_network.hpp"
#include "opencl/device.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using test::Gemm;
using test::Network;

using clblast::Layout;
using clblast::StatusCode;

clblast::Transpose transposed(bool yes) { return yes ? clblast::Transpose::kYes : clblast::Transpose::kNo; }

// Rows as long as they are in memory.
std::size_t row_a(const Gemm& g) { return g.transpose_a ? g.m : g.k; }
std::size_t row_b(const Gemm& g) { return g.transpose_b ? g.k : g.n; }

/// Bytes that CLBlast wants beside the three matrices; 0 for small ones, which a kernel of their own multiplies.
std::size_t work_bytes(const Gemm& g, cl_command_queue queue) {
  std::size_t bytes = 0;
  const StatusCode status =
      clblast::GemmTempBufferSize<float>(Layout::kRowMajor, transposed(g.transpose_a), transposed(g.transpose_b), g.m,
                                         g.n, g.k, 0, row_a(g), 0, row_b(g), 0, g.n, &queue, bytes);
  REQUIRE(status == StatusCode::kSuccess);
  return bytes;
}

StatusCode multiply(const Gemm& g, cl_mem a, cl_mem b, cl_mem c, cl_command_queue queue, cl_mem work) {
  return clblast::Gemm<float>(Layout::kRowMajor, transposed(g.transpose_a), transposed(g.transpose_b), g.m, g.n, g.k,
                              1.0F, a, 0, row_a(g), b, 0, row_b(g), 0.0F, c, 0, g.n, &queue, nullptr, work);
}

StatusCode add(const test::Axpy& s, cl_mem x, cl_mem y, cl_command_queue queue) {
  return clblast::Axpy<float>(s.count, s.factor, x, 0, 1, y, 0, 1, &queue);
}

/// CLBlast's own bound between its two ways to multiply is so high on some devices (896 on PoCL) that tests with work
/// areas would be slow.
void multiply_small_matrices_as_large_ones(cl_device_id device) {
  REQUIRE(clblast::OverrideParameters(device, "GemmRoutine", clblast::Precision::kSingle,
                                      {{"XGEMM_MIN_INDIRECT_SIZE", 64}}) == StatusCode::kSuccess);
}

/// All of it on the device, without swapmm.
class RawNetwork {
 public:
  RawNetwork(const Network& network, cl_context context, cl_device_id device) : network_(network) {
    cl_int status = CL_SUCCESS;
    queue_.reset(clCreateCommandQueue(context, device, 0, &status));
    REQUIRE(status == CL_SUCCESS);
    for (const test::Matrix& matrix : network.matrices) {
      std::vector<float> values = matrix.values;
      values.resize(matrix.size());
      buffers_.emplace_back(clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                           values.size() * sizeof(float), values.data(), &status));
      REQUIRE(status == CL_SUCCESS);
    }
  }

  void iterate(cl_mem work = nullptr) {
    for (const auto& step : network_.steps) {
      if (const auto* g = std::get_if<Gemm>(&step)) {
        REQUIRE(multiply(*g, at(g->a), at(g->b), at(g->c), queue(), work) == StatusCode::kSuccess);
      } else {
        const auto& s = std::get<test::Axpy>(step);
        REQUIRE(add(s, at(s.x), at(s.y), queue()) == StatusCode::kSuccess);
      }
    }
  }

  std::vector<float> values(std::size_t matrix) {
    std::vector<float> values(network_.matrices[matrix].size());
    REQUIRE(clEnqueueReadBuffer(queue(), at(matrix), CL_TRUE, 0, values.size() * sizeof(float), values.data(), 0,
                                nullptr, nullptr) == CL_SUCCESS);
    return values;
  }

  [[nodiscard]] cl_command_queue queue() const { return queue_.get(); }
  [[nodiscard]] cl_mem at(std::size_t matrix) const { return buffers_[matrix].get(); }

 private:
  const Network& network_;
  opencl::Handle<cl_command_queue> queue_;
  std::vector<opencl::Handle<cl_mem>> buffers_;
};

/// The same with a manager, and CLBlast's work areas declared.
class ManagedNetwork {
 public:
  ManagedNetwork(const Network& network, opencl::Backend backend, Bytes budget)
      : network_(network), manager_(backend, {.device_budget = budget}) {
    for (const test::Matrix& matrix : network.matrices) {
      tensors_.push_back(
          manager_.tensor<float>({matrix.rows, matrix.columns}, matrix.name, matrix.given() ? persistent : transient));
      if (matrix.given()) tensors_.back().upload(matrix.values);
    }
    for (const auto& step : network.steps) {
      const auto* g = std::get_if<Gemm>(&step);
      work_.push_back(g == nullptr ? 0 : work_bytes(*g, backend.queue()));
    }
  }

  void iterate() {
    const auto iteration = manager_.iteration("train");
    for (std::size_t i = 0; i < network_.steps.size(); ++i) {
      if (const auto* g = std::get_if<Gemm>(&network_.steps[i])) {
        run(*g, work_[i]);
      } else {
        run(std::get<test::Axpy>(network_.steps[i]));
      }
    }
  }

  std::vector<float> values(std::size_t matrix) { return tensors_[matrix].download(); }
  [[nodiscard]] Report report() const { return manager_.report(); }
  [[nodiscard]] std::size_t largest_work() const { return *std::max_element(work_.begin(), work_.end()); }
  [[nodiscard]] bool some_need_no_work() const {
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (work_[i] == 0 && std::holds_alternative<Gemm>(network_.steps[i])) return true;
    }
    return false;
  }

 private:
  void run(const Gemm& g, std::size_t work) {
    auto& a = tensors_[g.a];
    auto& b = tensors_[g.b];
    auto& c = tensors_[g.c];
    manager_.run(g.name, reads(a, b), writes(c), scratch(work), [&](auto& op) {
      const StatusCode status =
          multiply(g, op[a].buffer(), op[b].buffer(), op[c].buffer(), op.queue(), op.scratch().buffer());
      REQUIRE(status == StatusCode::kSuccess);
    });
  }
  void run(const test::Axpy& s) {
    auto& x = tensors_[s.x];
    auto& y = tensors_[s.y];
    manager_.run(s.name, reads(x), updates(y), [&](auto& op) {
      REQUIRE(add(s, op[x].buffer(), op[y].buffer(), op.queue()) == StatusCode::kSuccess);
    });
  }

  const Network& network_;
  MemoryManager<opencl::Backend> manager_;
  std::vector<Tensor<float, opencl::Backend>> tensors_;
  std::vector<std::size_t> work_;  // bytes, by step
};

/// How far apart they are at most, in parts of the largest value.
double distance(const std::vector<float>& values, const std::vector<double>& exact) {
  double apart = 0;
  double largest = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    apart = std::max(apart, std::abs(static_cast<double>(values[i]) - exact[i]));
    largest = std::max(largest, std::abs(exact[i]));
  }
  return apart / largest;
}

}  // namespace

TEST_CASE("a network trained with CLBlast in half of its memory is the same bit for bit, and nobody makes a buffer") {
  opencl::Backend backend = test::backend();
  multiply_small_matrices_as_large_ones(backend.device());
  const Network network = test::linear_network(8);
  constexpr Bytes budget = 576_KiB;
  REQUIRE(budget.value * 2 <= network.bytes());

  ManagedNetwork managed(network, backend, budget);
  CHECK(managed.largest_work() > 0);
  CHECK(managed.some_need_no_work());

  constexpr int iterations = 8;
  constexpr int on_demand = 3;  // the first begins with the uploads, the next two are alike
  constexpr int settled = on_demand + 1;
  test::ApiCalls before{};
  for (int i = 0; i < iterations; ++i) {
    if (i == settled) before = test::api_calls();
    managed.iterate();
  }
  const test::ApiCalls& after = test::api_calls();
  CHECK(after.kernels - before.kernels >= network.steps.size() * (iterations - settled));
  CHECK(after.buffers_made == before.buffers_made);
  CHECK(after.sub_buffers_made == before.sub_buffers_made);
  CHECK(after.queues_made == before.queues_made);

  const Report report = managed.report();
  CHECK(report.iterations_followed == iterations - on_demand);
  CHECK(report.divergences == 0);
  CHECK(report.swap_ins > 0);
  CHECK(report.swap_outs > 0);
  CHECK(report.device_peak <= budget);

  RawNetwork raw(network, backend.context(), backend.device());
  test::ExactNetwork exact(network);
  for (int i = 0; i < iterations; ++i) {
    raw.iterate();
    exact.iterate();
  }
  for (const std::size_t weights : network.weights) {
    CAPTURE(network.matrices[weights].name);
    const std::vector<float> values = managed.values(weights);
    CHECK(values == raw.values(weights));
    CHECK(values != network.matrices[weights].values);  // it was trained
    CHECK(distance(values, exact.values(weights)) < 1e-5);
  }
}

TEST_CASE("without a work area CLBlast makes a buffer per multiplication, of just the bytes it names") {
  opencl::Backend backend = test::backend();
  multiply_small_matrices_as_large_ones(backend.device());
  const Network network = test::linear_network(1);
  RawNetwork raw(network, backend.context(), backend.device());
  raw.iterate();  // programs are compiled
  std::uint64_t expected_buffers = 0;
  std::uint64_t expected_bytes = 0;
  std::size_t largest = 0;
  for (const auto& step : network.steps) {
    const auto* g = std::get_if<Gemm>(&step);
    const std::size_t bytes = g == nullptr ? 0 : work_bytes(*g, raw.queue());
    expected_buffers += bytes != 0 ? 1 : 0;
    expected_bytes += bytes;
    largest = std::max(largest, bytes);
  }
  REQUIRE(expected_buffers > 0);

  test::ApiCalls before = test::api_calls();
  raw.iterate();
  CHECK(test::api_calls().buffers_made - before.buffers_made == expected_buffers);
  CHECK(test::api_calls().device_bytes - before.device_bytes == expected_bytes);

  cl_int status = CL_SUCCESS;
  const opencl::Handle<cl_mem> work(clCreateBuffer(backend.context(), CL_MEM_READ_WRITE, largest, nullptr, &status));
  before = test::api_calls();
  raw.iterate(work.get());
  CHECK(test::api_calls().buffers_made == before.buffers_made);
  clFinish(raw.queue());
}

TEST_CASE("CLBlast refuses a work area of too few bytes, for it sees just what was declared") {
  opencl::Backend backend = test::backend();
  multiply_small_matrices_as_large_ones(backend.device());
  const Gemm g{"product", 0, 1, 2, false, false, 90, 130, 130};
  const std::size_t enough = work_bytes(g, backend.queue());
  MemoryManager manager(backend, {.device_budget = 1_MiB});
  auto a = manager.tensor<float>({g.m, g.k}, "a");
  auto b = manager.tensor<float>({g.k, g.n}, "b");
  auto c = manager.tensor<float>({g.m, g.n}, "c");
  a.upload(std::vector<float>(a.size(), 1.0F));
  b.upload(std::vector<float>(b.size(), 2.0F));
  for (const std::size_t bytes : {enough, enough - 1}) {
    manager.run("product", reads(a, b), writes(c), scratch(bytes), [&](auto& op) {
      const StatusCode status =
          multiply(g, op[a].buffer(), op[b].buffer(), op[c].buffer(), op.queue(), op.scratch().buffer());
      CHECK(status == (bytes == enough ? StatusCode::kSuccess : StatusCode::kInsufficientMemoryTemp));
    });
    // What was refused left what the work before it had written.
    CHECK(c.download() == std::vector<float>(c.size(), 260.0F));
  }
}

TEST_CASE("AXPY and GEMV make no buffer; DOT makes one") {
  opencl::Backend backend = test::backend();
  constexpr std::size_t n = 100;
  MemoryManager manager(backend, {.device_budget = 1_MiB});
  auto matrix = manager.tensor<float>({n, n}, "matrix");
  auto x = manager.tensor<float>({n}, "x");
  auto y = manager.tensor<float>({n}, "y");
  auto product = manager.tensor<float>({1}, "product");
  matrix.upload(std::vector<float>(n * n, 0.5F));
  x.upload(std::vector<float>(n, 2.0F));
  y.upload(std::vector<float>(n, 1.0F));
  const auto made_by = [](auto&& routine) {
    const std::uint64_t before = test::api_calls().buffers_made;
    REQUIRE(routine() == StatusCode::kSuccess);
    return test::api_calls().buffers_made - before;
  };
  manager.run("three", reads(matrix, x), updates(y), writes(product), [&](auto& op) {
    cl_command_queue queue = op.queue();
    const cl_mem of_x = op[x].buffer();
    const cl_mem of_y = op[y].buffer();
    CHECK(made_by([&] {
            return clblast::Gemv<float>(Layout::kRowMajor, clblast::Transpose::kNo, n, n, 1.0F, op[matrix].buffer(), 0,
                                        n, of_x, 0, 1, 0.0F, of_y, 0, 1, &queue);
          }) == 0);
    CHECK(made_by([&] { return clblast::Axpy<float>(n, 3.0F, of_x, 0, 1, of_y, 0, 1, &queue); }) == 0);
    CHECK(made_by([&] { return clblast::Dot<float>(n, op[product].buffer(), 0, of_x, 0, 1, of_y, 0, 1, &queue); }) ==
          1);
  });
  CHECK(y.download() == std::vector<float>(n, 106.0F));  // 100 * 0.5 * 2 + 3 * 2
  CHECK(product.download() == std::vector<float>{21200.0F});
}

TEST_CASE("a product of matrices that are larger than the budget each, in panels") {
  opencl::Backend backend = test::backend();
  constexpr std::size_t n = 160;
  constexpr std::size_t panel = 20;
  constexpr Bytes matrix{n * n * sizeof(float)};
  constexpr Bytes budget{matrix.value / 2};  // eight panels have 102,400 bytes
  MemoryManager manager(backend, {.device_budget = budget});
  auto a = manager.divided<float>({n, n}, "a", {.entries = panel});
  auto b = manager.divided<float>({n, n}, "b", {.entries = panel});
  auto c = manager.divided<float>({n, n}, "c", {.entries = panel, .lifetime = kept});
  std::vector<float> in_a(n * n);
  std::vector<float> in_b(n * n);
  for (std::size_t i = 0; i < n * n; ++i) {
    in_a[i] = static_cast<float>(i % 7);
    in_b[i] = static_cast<float>(i % 5) - 2.0F;
  }
  a.upload(in_a);
  b.upload(in_b);
  for (int iteration = 0; iteration < 5; ++iteration) {
    const auto running = manager.iteration("multiply");
    for (std::size_t i = 0; i < c.pieces(); ++i) {
      const auto rows = a.slice_of_piece(i);
      const auto out = c.slice_of_piece(i);
      for (std::size_t k = 0; k < b.pieces(); ++k) {
        const auto across = b.slice_of_piece(k);
        const auto multiply = [&](auto& op) {
          cl_command_queue queue = op.queue();
          const StatusCode status =
              clblast::Gemm<float>(Layout::kRowMajor, clblast::Transpose::kNo, clblast::Transpose::kNo, panel, n, panel,
                                   1.0F, op[rows].buffer(), k * panel, n, op[across].buffer(), 0, n,
                                   k == 0 ? 0.0F : 1.0F, op[out].buffer(), 0, n, &queue);
          CHECK(status == StatusCode::kSuccess);
        };
        if (k == 0) {
          manager.run("begin", reads(rows, across), writes(out), multiply);
        } else {
          manager.run("go on", reads(rows, across), updates(out), multiply);
        }
      }
    }
  }
  std::vector<float> expected(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t j = 0; j < n; ++j) expected[i * n + j] += in_a[i * n + k] * in_b[k * n + j];  // whole numbers
    }
  }
  CHECK(c.download() == expected);
  CHECK(manager.report().device_peak <= budget);
  CHECK(manager.report().iterations_followed > 0);
}
