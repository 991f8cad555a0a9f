// SPDX-License-Identifier: Apache-2.0
// Managers that encode values on their way to the host: Options::codec_staging.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda/support.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::literals;

namespace {

constexpr std::size_t count = 1'000'003;  // elements of a tensor
constexpr std::size_t tensors = 10;

unsigned char byte_of(std::size_t tensor) { return tensor % 3 == 0 ? 0 : static_cast<unsigned char>(tensor); }
float value_of(std::size_t tensor) {
  const unsigned char byte = byte_of(tensor);
  float value = 0;
  std::fill_n(reinterpret_cast<unsigned char*>(&value), sizeof value, byte);
  return value;
}

}  // namespace

TEST_CASE("encodings: values that are encoded on their way come back bit for bit, by a plan") {
  const cuda::Backend backend = test::cuda_backend();
  const Bytes staging{2 * encoder_bytes(Bytes{count * sizeof(float)}).value};
  MemoryManager<cuda::Backend> manager(backend, {.device_budget = 16_MiB + staging, .codec_staging = staging});
  std::vector<Tensor<float, cuda::Backend>> hidden;
  for (std::size_t i = 0; i < tensors; ++i) {
    hidden.push_back(manager.tensor<float>({count}, "h" + std::to_string(i), transient));
  }
  auto first = manager.tensor<float>({tensors}, "first");
  first.upload(std::vector<float>(tensors));
  for (int round = 0; round < 8; ++round) {
    auto iteration = manager.iteration("step");
    for (std::size_t i = 0; i < tensors; ++i) {
      manager.run("set", writes(hidden[i]), [&](auto& op) {
        (void)cudaMemsetAsync(op[hidden[i]].data(), byte_of(i), op[hidden[i]].bytes(), op.stream());
      });
    }
    for (std::size_t i = tensors; i-- > 0;) {
      manager.run("take", reads(hidden[i]), updates(first), [&](auto& op) {
        (void)cudaMemcpyAsync(op[first].data() + i, op[hidden[i]].data() + count - 1, sizeof(float),
                              cudaMemcpyDeviceToDevice, op.stream());
      });
    }
  }
  const std::vector<float> values = first.download();
  for (std::size_t i = 0; i < tensors; ++i) CHECK(values[i] == value_of(i));
  const Report report = manager.report();
  INFO(report);
  CHECK(report.encoded_out > 0_bytes);
  CHECK(report.encoded_in > 0_bytes);
  CHECK(report.device_peak <= 16_MiB + staging);
}

TEST_CASE("encodings: the host reads what was encoded, whole and in parts") {
  const Bytes staging{2 * encoder_bytes(Bytes{count * sizeof(float)}).value};
  MemoryManager<cuda::Backend> manager(test::cuda_backend(),
                                       {.device_budget = 16_MiB + staging, .codec_staging = staging});
  std::vector<Tensor<float, cuda::Backend>> values;
  for (std::size_t i = 0; i < tensors; ++i) {
    values.push_back(manager.tensor<float>({count}, "v" + std::to_string(i)));
    manager.run("set", writes(values[i]), [&](auto& op) {
      (void)cudaMemsetAsync(op[values[i]].data(), byte_of(i), op[values[i]].bytes(), op.stream());
    });
  }
  CHECK(manager.report().encoded_out >= Bytes{5 * count * sizeof(float)});
  std::vector<float> part(1000);
  values[1].slice(count - 1000, 1000).download(part);
  CHECK(part == std::vector<float>(1000, value_of(1)));
  values[0].slice(5, 2).upload(std::vector<float>{1.5F, -0.0F});
  std::vector<float> changed(count, value_of(0));
  changed[5] = 1.5F;
  changed[6] = -0.0F;
  CHECK(values[0].download() == changed);
  for (std::size_t i = 1; i < tensors; ++i) CHECK(values[i].download() == std::vector<float>(count, value_of(i)));
}
