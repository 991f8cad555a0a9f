// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace neural {

/// Pictures of clothes and what they show.
struct Pictures {
  static constexpr std::size_t side = 28;
  static constexpr std::size_t pixels = side * side;
  static constexpr std::size_t classes = 10;

  std::vector<float> images;         ///< one after the other, row by row: about mean 0 and deviation 1
  std::vector<std::uint8_t> labels;  ///< 0 to 9
  [[nodiscard]] std::size_t size() const { return labels.size(); }

  /// Copies those pictures, in that order, as one batch.
  void gather(std::span<const std::uint32_t> which, std::vector<float>& batch_images,
              std::vector<std::uint8_t>& batch_labels) const;
};

/// Fashion-MNIST (Xiao et al., 2017): 60,000 pictures to learn from and 10,000 to be tested with.
struct FashionMnist {
  Pictures train;
  Pictures test;
};

/// The folder that the environment variable SWAPMM_FASHION_MNIST names, else the one of Debian's package.
[[nodiscard]] std::filesystem::path fashion_mnist_folder();

/// Reads the four files as they are distributed (train-images-idx3-ubyte.gz, ...). Throws std::runtime_error, which
/// names the file, for one that is missing (and the package that has it), cut off, or something else.
[[nodiscard]] FashionMnist read_fashion_mnist(const std::filesystem::path& folder = fashion_mnist_folder());

/// Reads one set of that name's two files: "train" or "t10k".
[[nodiscard]] Pictures read_pictures(const std::filesystem::path& folder, const char* set);

}  // namespace neural
