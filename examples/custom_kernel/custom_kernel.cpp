// SPDX-License-Identifier: Apache-2.0
// Kernels of your own on tensors that are larger together than the device's budget: eight images, room for three.
#include <cstddef>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/program.hpp>
#include <swapmm/swapmm.hpp>

using namespace swapmm::literals;
using swapmm::opencl::argument;

constexpr const char* source = R"(
#include <swapmm/kernel.h>

// Each pixel of `to` becomes the mean of the four neighbours in `from`; around the image all is black.
SWAPMM_KERNEL void blur(SWAPMM_CONST_VIEW(float, from), SWAPMM_VIEW(float, to)) {
  const swapmm_index x = SWAPMM_ID(0), y = SWAPMM_ID(1);
  const swapmm_index rows = SWAPMM_EXTENT(from, 0), columns = SWAPMM_EXTENT(from, 1);
  if (y >= rows || x >= columns) return;
  float sum = 0;
  if (y > 0) sum += SWAPMM_AT2(from, y - 1, x);
  if (y + 1 < rows) sum += SWAPMM_AT2(from, y + 1, x);
  if (x > 0) sum += SWAPMM_AT2(from, y, x - 1);
  if (x + 1 < columns) sum += SWAPMM_AT2(from, y, x + 1);
  SWAPMM_AT2(to, y, x) = 0.25f * sum;
}

SWAPMM_KERNEL void blend(SWAPMM_CONST_VIEW(float, other), SWAPMM_VIEW(float, image), const float weight) {
  const swapmm_index i = SWAPMM_ID(0);
  if (i < SWAPMM_EXTENT(image, 0)) SWAPMM_AT1(image, i) += weight * (SWAPMM_AT1(other, i) - SWAPMM_AT1(image, i));
})";

constexpr std::size_t rows = 200, columns = 300, images = 8, steps = 5;

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

int main() try {
  const auto backend = swapmm::opencl::Backend::pick();
  const swapmm::opencl::Program program(backend, source);
  auto blur = program.kernel("blur");
  auto blend = program.kernel("blend");

  swapmm::MemoryManager manager{backend, {.device_budget = 768_KiB}};
  const auto blurred = manager.tensor<float>({rows, columns}, "blurred", swapmm::transient);
  std::vector<swapmm::Tensor<float, swapmm::opencl::Backend>> stack;
  for (std::size_t i = 0; i < images; ++i) {
    stack.push_back(manager.tensor<float>({rows, columns}, "image " + std::to_string(i)));
    stack[i].upload(first_image(i));
  }

  for (std::size_t step = 0; step < steps; ++step) {
    auto iteration = manager.iteration("smooth");
    for (auto& image : stack) {
      // The plain form: queue as many kernels and library calls as you like.
      manager.run("blur", swapmm::reads(image), swapmm::writes(blurred), [&](auto& op) {
        blur.set(argument(op[image], image), argument(op[blurred], blurred)).enqueue(op.queue(), {columns, rows});
      });
      // The second form: one kernel that waits for a list and returns its event needs no barrier. The views have the
      // shape that is handed to argument(), here that of a vector.
      manager.run("blend", swapmm::reads(blurred), swapmm::updates(image), [&](auto& op, const auto& waits) {
        const swapmm::Shape flat{rows * columns};
        blend.set(argument(op[blurred], blurred.reshape(flat)), argument(op[image], image.reshape(flat)), 0.5F);
        return blend.enqueue(op.queue(), {rows * columns}, {}, waits);
      });
    }
  }

  // Few steps on whole numbers: floats hold every value exactly, so the results are equal in each bit.
  bool right = true;
  for (std::size_t i = 0; i < images; ++i) {
    std::vector<float> expected = first_image(i);
    for (std::size_t step = 0; step < steps; ++step) smooth(expected);
    right = right && stack[i].download() == expected;
  }
  std::cout << images << " images, " << steps << " steps: " << (right ? "right" : "WRONG") << "\n\n"
            << manager.report();
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
