// SPDX-License-Identifier: Apache-2.0
// Kernels of your own, and cuBLAS, on tensors that are larger together than the device's budget: eight images, room for
// three. The twin of examples/custom_kernel.
#include <cstddef>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/devices.hpp>
#include <swapmm/layout.hpp>
#include <swapmm/swapmm.hpp>

#include "cuda_custom_kernel/kernels.hpp"
#include "neural/cublas.hpp"

using namespace swapmm::literals;
using swapmm::layout_of;

constexpr std::size_t rows = 200, columns = 300, images = 8, steps = 5;
const swapmm::Shape flat{rows * columns};

std::vector<float> first_image(std::size_t number) {
  std::vector<float> image(rows * columns);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>((i * i + 31 * i + number) % 256);
  return image;
}
// What the kernels do, on the host.
void smooth(std::vector<float>& image) {
  const std::vector<float> from = image;
  for (std::size_t y = 0; y < rows; ++y) {
    for (std::size_t x = 0; x < columns; ++x) {
      const std::size_t i = y * columns + x;
      const float sum = (y > 0 ? from[i - columns] : 0) + (y + 1 < rows ? from[i + columns] : 0) +
                        (x > 0 ? from[i - 1] : 0) + (x + 1 < columns ? from[i + 1] : 0);
      image[i] += 0.5F * (0.25F * sum - image[i]);
    }
  }
}
// The image at half of its width: a product with this matrix of two ones per column. It adds two numbers, and zeros.
std::vector<float> pairs() {
  std::vector<float> matrix(columns * columns / 2);
  for (std::size_t i = 0; i < columns; ++i) matrix[i * (columns / 2) + i / 2] = 1;
  return matrix;
}
std::vector<float> halved(const std::vector<float>& image) {
  std::vector<float> narrow(image.size() / 2);
  for (std::size_t i = 0; i < narrow.size(); ++i) narrow[i] = image[2 * i] + image[2 * i + 1];
  return narrow;
}

// cuBLAS is loaded where it is installed; a program that links it would not start elsewhere.
std::unique_ptr<neural::Cublas> load_cublas() try {
  return std::make_unique<neural::Cublas>();
} catch (const std::exception& error) {
  std::cout << "without cuBLAS: " << error.what() << '\n';
  return nullptr;
}

int main() try {
  if (const auto list = swapmm::cuda::devices(); list.devices.empty()) {
    std::cout << "no CUDA device: " << list.why_none << '\n';
    return 0;
  }
  const auto backend = swapmm::cuda::Backend::pick();
  const auto cublas = load_cublas();

  swapmm::MemoryManager manager{backend, {.device_budget = 768_KiB}};
  const auto blurred = manager.tensor<float>({rows, columns}, "blurred", swapmm::transient);
  auto matrix = manager.tensor<float>({columns, columns / 2}, "matrix");
  std::vector<swapmm::Tensor<float, swapmm::cuda::Backend>> stack, halves;
  matrix.upload(pairs());
  for (std::size_t i = 0; i < images; ++i) {
    stack.push_back(manager.tensor<float>({rows, columns}, "image " + std::to_string(i)));
    // No iteration reads these: kept for the download at the end.
    halves.push_back(manager.tensor<float>({rows, columns / 2}, "half " + std::to_string(i), swapmm::kept));
    stack[i].upload(first_image(i));
  }

  for (std::size_t step = 0; step < steps; ++step) {
    auto iteration = manager.iteration("smooth");
    for (std::size_t i = 0; i < images; ++i) {
      const auto& image = stack[i];
      // The plain form: queue on op.stream() as many kernels and library calls as you like.
      manager.run("blur", swapmm::reads(image), swapmm::writes(blurred),
                  [&](auto& op) { queue_blur(op.stream(), op[image].data(), op[blurred].data(), layout_of(image)); });
      // The second form takes the events to wait for, and may return one that it recorded itself.
      manager.run("blend", swapmm::reads(blurred), swapmm::updates(image), [&](auto& op, const auto& waits) {
        waits.queue_on(op.stream());
        queue_blend(op.stream(), op[blurred].data(), op[image].data(), layout_of(flat), 0.5F);
        return swapmm::cuda::NativeEvent();
      });
      // cuBLAS gets its work area from the budget.
      if (cublas == nullptr) continue;
      const neural::Gemm product{.m = rows, .n = columns / 2, .k = columns};
      manager.run("halve", swapmm::reads(image, matrix), swapmm::writes(halves[i]), swapmm::scratch(64_KiB),
                  [&](auto& op) {
                    const auto work = op.scratch();
                    cublas->gemm(op.stream(), product, op[image], op[matrix], 0, op[halves[i]], work, work.size());
                  });
    }
  }

  // Few steps on whole numbers: floats hold every value exactly, so the results are equal in each bit.
  bool right = true;
  for (std::size_t i = 0; i < images; ++i) {
    std::vector<float> expected = first_image(i);
    for (std::size_t step = 0; step < steps; ++step) smooth(expected);
    right = right && stack[i].download() == expected;
    right = right && (cublas == nullptr || halves[i].download() == halved(expected));
  }
  std::cout << images << " images, " << steps << " steps: " << (right ? "right" : "WRONG") << "\n\n"
            << manager.report();
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
