// SPDX-License-Identifier: Apache-2.0
// What the CUDA class computes, on a GPU, against the plain loops of HostMath in 64 bits; and a stack of blocks that
// learns there, resident and swapped.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/devices.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/swapmm.hpp>

#include "support/missing_device.hpp"
#include "transformer/cuda_math.hpp"
#include "transformer/host_math.hpp"
#include "transformer/network.hpp"

namespace {

using namespace swapmm;
using transformer::Bfloat16;
using transformer::CudaMath;
using HostMath = test::HostMath<double>;
using Values = std::vector<double>;

[[maybe_unused]] const bool needs_a_device = [] {
  test::find_missing_device = [] {
    const cuda::DeviceList list = cuda::devices();
    return list.devices.empty() ? list.why_none : std::string();
  };
  return true;
}();

cuda::Backend cuda_backend() {
  std::ostringstream silent;
  return cuda::Backend::pick(silent);
}
CudaMath& cuda_math() {
  static auto& math = *new CudaMath(cuda_backend());  // for good: the driver may be gone before the last objects
  return math;
}

// As 16-bit numbers have them, so that both sides begin with the same.
Values random_values(std::size_t count, std::uint64_t seed) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<double>(Bfloat16::nearest(2 * transformer::random_number(seed, i)).value());
  }
  return values;
}

/// Runs one function of a Math, on either side.
template <class Math>
class Laboratory {
 public:
  using Number = typename Math::Number;
  using Sum = typename Math::Sum;

  Laboratory(Math& math_, const typename Math::Backend& backend)
      : math(math_), manager(backend, Options{.device_budget = Bytes{std::uint64_t{160} << 20U}}) {}

  [[nodiscard]] auto numbers(const Values& values) { return upload<Number>(values); }
  [[nodiscard]] auto sums(const Values& values) { return upload<Sum>(values); }
  [[nodiscard]] static Values values(const auto& tensor) {
    Values result;
    for (const auto& number : tensor.download()) result.push_back(to_double(number));
    return result;
  }
  // Runs `work(op, area)`; everything is an update, so that nothing is taken for dead.
  template <class Work, class... Tensors>
  void run(std::size_t scratch_bytes, Work&& work, const Tensors&... tensors) {
    manager.run("work", updates(tensors...), scratch(scratch_bytes),
                [&](auto& op) { work(op, transformer::area_of<Math>(op, scratch_bytes)); });
  }

  Math& math;
  MemoryManager<typename Math::Backend> manager;

 private:
  static double to_double(Bfloat16 number) { return static_cast<double>(number.value()); }
  static double to_double(double number) { return number; }
  static double to_double(float number) { return static_cast<double>(number); }

  template <class T>
  auto upload(const Values& given) {
    std::vector<T> converted;
    for (const double value : given) {
      if constexpr (std::is_same_v<T, Bfloat16>) {
        converted.push_back(Bfloat16::nearest(static_cast<float>(value)));
      } else {
        converted.push_back(static_cast<T>(value));
      }
    }
    auto tensor = manager.template tensor<T>({given.size()}, "values");
    tensor.upload(converted);
    return tensor;
  }
};

simulated::Options plain_device() {
  simulated::Options options;
  options.device_bytes = Bytes{std::uint64_t{168} << 20U};
  options.check = false;
  return options;
}

// `work(laboratory)` returns what it computed; both sides' must be the same but for rounding.
template <class Work>
void check_same(double tolerance, Work&& work) {
  HostMath host;
  Laboratory<HostMath> by_hand(host, simulated::Backend(plain_device()));
  Laboratory<CudaMath> on_gpu(cuda_math(), cuda_backend());
  const std::vector<Values> expected = work(by_hand);
  const std::vector<Values> given = work(on_gpu);
  REQUIRE(given.size() == expected.size());
  for (std::size_t which = 0; which < given.size(); ++which) {
    REQUIRE(given[which].size() == expected[which].size());
    double largest = 0;
    for (const double value : expected[which]) largest = std::max(largest, std::abs(value));
    double worst = 0;
    std::size_t where = 0;
    for (std::size_t i = 0; i < given[which].size(); ++i) {
      const double difference =
          std::abs(given[which][i] - expected[which][i]) / (std::abs(expected[which][i]) + 0.02 * largest);
      if (!(difference <= worst)) {  // not a number is the worst
        worst = difference;
        where = i;
      }
    }
    CAPTURE(which);
    CAPTURE(where);
    CAPTURE(given[which][where]);
    CAPTURE(expected[which][where]);
    CHECK(largest > 0);
    CHECK(worst <= tolerance);
  }
}
constexpr double rounding = 1.0 / 128;  // of a result: half a unit of 8 bits is 1/512, and sums of such

}  // namespace

TEST_CASE("random numbers and digests are the host's to the bit") {
  check_same(0, [](auto& lab) {
    const auto x = lab.numbers(Values(4104));
    lab.run(
        0, [&](auto& op, auto) { lab.math.random(op.queue(), 4104, 7, 0.5F, 0.25F, op[x]); }, x);
    Values values = lab.values(x);
    for (double& value : values) value = static_cast<double>(Bfloat16::nearest(static_cast<float>(value)).value());
    return std::vector<Values>{values};
  });
  const Values values = random_values(100'008, 3);
  Laboratory<CudaMath> lab(cuda_math(), cuda_backend());
  const auto x = lab.numbers(values);
  auto digest = lab.manager.tensor<std::uint64_t>({1}, "digest");
  digest.upload(std::vector<std::uint64_t>{5});
  lab.run(
      0, [&](auto& op, auto) { lab.math.digest(op.queue(), values.size(), 9, op[x], op[digest]); }, x, digest);
  std::uint64_t expected = 5;
  for (std::size_t i = 0; i < values.size(); ++i) {
    expected += transformer::digest_share(9, i, Bfloat16::nearest(static_cast<float>(values[i])).bits);
  }
  CHECK(digest.download().front() == expected);
}

TEST_CASE("products of whole matrices") {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const float beta : {0.F, 1.F}) {
        check_same(rounding, [&](auto& lab) {
          const transformer::Product p = transformer::whole(transpose_a, transpose_b, 72, 40, 136, beta);
          const auto a = lab.numbers(random_values(p.m * p.k, 1));
          const auto b = lab.numbers(random_values(p.k * p.n, 2));
          const auto c = lab.numbers(random_values(p.m * p.n, 3));
          lab.run(
              lab.math.product_work(p),
              [&](auto& op, const auto& area) { lab.math.product(op.queue(), p, op[a], op[b], op[c], area); }, a, b, c);
          return std::vector<Values>{lab.values(c)};
        });
      }
    }
  }
}

TEST_CASE("products of an attention") {
  const transformer::Settings s{.layers = 1, .width = 48, .heads = 3, .sequence = 24, .batch = 2};
  using Products = transformer::AttentionProducts;
  struct Case {
    transformer::Product (Products::*product)() const;
    std::size_t a;
    std::size_t b;
    std::size_t c;
  };
  const std::size_t qkv = s.rows() * 3 * s.width;
  const std::size_t context = s.rows() * s.width;
  const Case cases[] = {
      {&Products::scores, qkv, qkv, s.scores()},          {&Products::context, s.scores(), qkv, context},
      {&Products::scores_back, context, qkv, s.scores()}, {&Products::values_back, s.scores(), context, qkv},
      {&Products::queries_back, s.scores(), qkv, qkv},    {&Products::keys_back, s.scores(), qkv, qkv}};
  for (const Case& of : cases) {
    check_same(rounding, [&](auto& lab) {
      const auto a = lab.numbers(random_values(of.a, 1));
      const auto b = lab.numbers(random_values(of.b, 2));
      const auto c = lab.numbers(random_values(of.c, 3));
      for (std::size_t sequence = 0; sequence < s.batch; ++sequence) {
        const transformer::Product p = (Products(s, sequence).*of.product)();
        lab.run(
            lab.math.product_work(p),
            [&](auto& op, const auto& area) { lab.math.product(op.queue(), p, op[a], op[b], op[c], area); }, a, b, c);
      }
      return std::vector<Values>{lab.values(c)};
    });
  }
}

TEST_CASE("LayerNorm, and its way back") {
  for (const auto& size : {std::pair<std::size_t, std::size_t>{1, 8}, {5, 520}, {300, 72}, {3, 4096}}) {
    const std::size_t rows = size.first;
    const std::size_t width = size.second;
    CAPTURE(rows);
    CAPTURE(width);
    check_same(rounding, [&](auto& lab) {
      const auto x = lab.numbers(random_values(rows * width, 1));
      const auto weights = lab.numbers(random_values(2 * width, 2));
      const auto out = lab.numbers(Values(rows * width));
      const auto statistics = lab.sums(Values(2 * rows));
      lab.run(
          0,
          [&](auto& op, auto) {
            lab.math.layer_norm(op.queue(), rows, width, op[x], op[weights], op[out], op[statistics]);
          },
          x, weights, out, statistics);
      const auto out_gradient = lab.numbers(random_values(rows * width, 3));
      const auto x_gradient = lab.numbers(random_values(rows * width, 4));
      const auto weights_gradient = lab.numbers(Values(2 * width));
      lab.run(
          lab.math.norm_work(rows, width),
          [&](auto& op, const auto& area) {
            lab.math.layer_norm_backward(op.queue(), rows, width, op[x], op[statistics], op[weights], op[out_gradient],
                                         op[x_gradient], op[weights_gradient], area);
          },
          x, statistics, weights, out_gradient, x_gradient, weights_gradient);
      return std::vector<Values>{lab.values(out), lab.values(statistics), lab.values(x_gradient),
                                 lab.values(weights_gradient)};
    });
  }
}

TEST_CASE("softmax, and its way back") {
  for (const auto& size : {std::pair<std::size_t, std::size_t>{3, 8}, {70, 264}, {5, 4104}}) {
    const std::size_t rows = size.first;
    const std::size_t columns = size.second;
    CAPTURE(columns);
    check_same(rounding, [&](auto& lab) {
      const auto x = lab.numbers(random_values(rows * columns, 1));
      lab.run(
          0, [&](auto& op, auto) { lab.math.softmax(op.queue(), rows, columns, op[x]); }, x);
      const auto probabilities = lab.numbers(random_values(rows * columns, 2));
      const auto gradient = lab.numbers(random_values(rows * columns, 3));
      lab.run(
          0,
          [&](auto& op, auto) {
            lab.math.softmax_backward(op.queue(), rows, columns, op[probabilities], op[gradient]);
          },
          probabilities, gradient);
      return std::vector<Values>{lab.values(x), lab.values(gradient)};
    });
  }
}

TEST_CASE("GELU and its way back, copies, steps of learning, the first weights of a LayerNorm") {
  check_same(rounding, [](auto& lab) {
    constexpr std::size_t count = 100'008;
    const auto x = lab.numbers(random_values(count, 1));
    const auto y = lab.numbers(Values(count));
    const auto gradient = lab.numbers(random_values(count, 2));
    const auto value = lab.numbers(random_values(count, 3));
    const auto copied = lab.numbers(Values(count));
    const auto norm = lab.numbers(Values(48));
    lab.run(
        0,
        [&](auto& op, auto) {
          lab.math.gelu(op.queue(), count, op[x], op[y]);
          lab.math.gelu_backward(op.queue(), count, op[x], op[gradient]);
          lab.math.learn(op.queue(), count, 0.25F, op[value], op[x]);
          lab.math.copy(op.queue(), count, op[x], op[copied]);
          lab.math.norm_weights(op.queue(), 24, op[norm]);
        },
        x, y, gradient, value, copied, norm);
    return std::vector<Values>{lab.values(y), lab.values(gradient), lab.values(value), lab.values(copied),
                               lab.values(norm)};
  });
}

TEST_CASE("the mean square and its gradient") {
  for (const std::size_t count : {std::size_t{8}, std::size_t{1'000'008}}) {
    check_same(rounding, [&](auto& lab) {
      const auto x = lab.numbers(random_values(count, 1));
      const auto gradient = lab.numbers(Values(count));
      auto loss = lab.manager.template tensor<double>({1}, "loss");
      loss.upload(Values{0});
      lab.run(
          lab.math.mean_square_work(count),
          [&](auto& op, const auto& area) {
            lab.math.mean_square(op.queue(), count, op[x], op[gradient], op[loss], area);
          },
          x, gradient, loss);
      return std::vector<Values>{loss.download(), lab.values(gradient)};
    });
  }
}

TEST_CASE("a stack of blocks learns on the device as on the host, and the same to the bit in less memory") {
  const transformer::Settings settings{.layers = 3, .width = 64, .heads = 4, .sequence = 96, .batch = 4};
  constexpr int steps = 8;
  constexpr float rate = 0.2F;
  test::HostMath<float> host;
  double expected_first = 0;
  double expected_last = 0;
  {
    MemoryManager manager(simulated::Backend(plain_device()), {.device_budget = Bytes{std::uint64_t{64} << 20U}},
                          Scheduler({.observe = 0}));
    transformer::Network<test::HostMath<float>> network(host, manager, settings);
    for (int step = 0; step < steps; ++step) {
      network.train(rate);
      (step == 0 ? expected_first : expected_last) = network.last_loss();
    }
  }
  struct Result {
    double first = 0;
    double last = 0;
    std::uint64_t digest = 0;
    Liveness live;
    Bytes swapped_in{};
  };
  const auto run = [&](Bytes budget, std::size_t observe) {
    Result result;
    MemoryManager manager(cuda_backend(), {.device_budget = budget}, Scheduler({.observe = observe}));
    transformer::Network<CudaMath> network(cuda_math(), manager, settings);
    network.train(rate);
    result.first = network.last_loss();
    for (int step = 1; step < steps; ++step) network.train(rate);
    result.last = network.last_loss();
    result.digest = network.digest();
    if (const auto trace = manager.scheduler().trace("train")) {
      result.live = analyze_liveness(*trace, manager.machine().alignment);
    }
    result.swapped_in = manager.report().h2d;
    return result;
  };
  const Result resident = run(Bytes{std::uint64_t{256} << 20U}, 2);
  CHECK(resident.first == doctest::Approx(expected_first).epsilon(0.01));
  CHECK(resident.last == doctest::Approx(expected_last).epsilon(0.03));
  CHECK(resident.last < resident.first);
  REQUIRE(resident.live.peak > resident.live.largest_bundle);
  for (const std::size_t observe : {0U, 2U}) {
    // The work area of cuBLAS is larger than all tensors of so small a stack: half of what lives beside the largest
    // operation has to leave.
    const Result swapped = run(Bytes{(resident.live.peak.value + resident.live.largest_bundle.value) / 2}, observe);
    CHECK(swapped.swapped_in > resident.swapped_in);
    CHECK(swapped.first == resident.first);
    CHECK(swapped.last == resident.last);
    CHECK(swapped.digest == resident.digest);
  }
}
