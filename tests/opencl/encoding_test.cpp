// SPDX-License-Identifier: Apache-2.0
// Managers that encode values on their way to the host: Options::codec_staging.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <swapmm/opencl/backend.hpp>

#include "larger_than_memory/raw_opencl.hpp"
#include "larger_than_memory/wave.hpp"
#include "larger_than_memory/with_swapmm.hpp"
#include "opencl/support.hpp"
#include "support/steady_plans.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using test::Number;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

using Tensors = std::vector<Tensor<Number, opencl::Backend>>;

constexpr std::size_t values_in_each = 5'000;  // elements of a tensor

Number value_of(std::size_t tensor) { return tensor % 3 == 0 ? 0 : static_cast<Number>(tensor) * 77; }

/// Twelve tensors, of which about three have room on the device; a third of them are zero, the others have no element
/// that is.
Tensors written(MemoryManager<opencl::Backend>& manager) {
  Tensors tensors;
  for (std::size_t i = 0; i < 12; ++i) {
    tensors.push_back(manager.tensor<Number>({values_in_each}, "t" + std::to_string(i)));
    auto& to = tensors.back();
    test::run_kernel(
        manager, "set", test::Form::with_event, test::kernels().set, values_in_each,
        [&](auto& op) { test::kernels().set.set(op[to], value_of(i)); }, writes(to));
  }
  return tensors;
}

Options with_codec() {
  const Bytes staging{2 * encoder_bytes(Bytes{values_in_each * sizeof(Number)}).value};
  return {.device_budget = 64_KiB + staging, .codec_staging = staging};
}

}  // namespace

TEST_CASE("encodings: wave propagation with values that are encoded on their way is right bit for bit") {
  const wave::Problem problem{.size = 20, .steps = 16, .every = 1, .shots = 8};
  const Bytes all = wave::working_set(problem);
  const Bytes staging{all.value / 4};
  const Options options{.device_budget = Bytes{all.value / 4} + staging, .codec_staging = staging};
  const opencl::Backend backend = test::shared_backend();
  const auto outcome = wave::run_with_swapmm(
      backend, problem, options, [](const wave::ShotReport&) {}, test::steady());
  const auto& report = outcome.report;
  INFO(report);
  CHECK(report.iterations_followed > 0);
  CHECK(report.divergences == 0);
  CHECK(report.device_peak <= options.device_budget);
  CHECK(report.codec_staging > 0_bytes);
  CHECK(report.codec_staging <= staging);
  CHECK(report.encoded_out > 0_bytes);
  CHECK(report.encoded_in > 0_bytes);

  const wave::Result raw = wave::run_raw_opencl(backend.context(), backend.device(), problem);
  CHECK(same_bits(outcome.result.image, raw.image));
  CHECK(same_bits(outcome.result.record, raw.record));
  CHECK(same_bits(outcome.result.forward, raw.forward));
  CHECK(same_bits(outcome.result.backward, raw.backward));
}

TEST_CASE("encodings: the device and the host read what was encoded, and all objects go again") {
  const opencl::Backend backend = test::shared_backend();
  const auto before = test::objects_at_rest();
  {
    MemoryManager<opencl::Backend> manager(backend, with_codec());
    Tensors tensors = written(manager);
    CHECK(manager.report().encoded_out >= Bytes{6 * values_in_each * sizeof(Number)});
    // A part by the host.
    std::vector<Number> part(100);
    tensors[1].slice(4'000, 100).download(part);
    CHECK(std::all_of(part.begin(), part.end(), [](Number n) { return n == value_of(1); }));
    // A part that the host changes.
    tensors[0].slice(17, 3).upload(std::vector<Number>{5, 6, 7});
    std::vector<Number> changed(values_in_each, value_of(0));
    std::copy_n(std::vector<Number>{5, 6, 7}.begin(), 3, changed.begin() + 17);
    CHECK(tensors[0].download() == changed);
    // By the device, to others.
    for (std::size_t i = 2; i < 12; ++i) {
      test::run_affine(manager, test::Form::plain, "affine", tensors[i], tensors[1], 1);
      CHECK(tensors[1].download() == std::vector<Number>(values_in_each, 3 * value_of(i) + 1));
    }
    CHECK(manager.report().encoded_in > 0_bytes);
    for (std::size_t i = 2; i < 12; ++i)
      CHECK(tensors[i].download() == std::vector<Number>(values_in_each, value_of(i)));
  }
  CHECK(test::objects_at_rest() == before);
}

TEST_CASE("encodings: memory that the device refuses is an error, and nothing is left") {
  const opencl::Backend backend = test::shared_backend();
  const auto before = test::objects_at_rest();
  const Bytes most = *backend.capabilities().max_allocation;
  const Bytes too_much = most + Bytes{most.value / 4};
  const Options options{.device_budget = Bytes{3 * too_much.value}, .codec_staging = Bytes{2 * too_much.value}};
  CHECK_THROWS_AS((MemoryManager<opencl::Backend>(backend, options)), OutOfMemory);
  CHECK(test::objects_at_rest() == before);
}
