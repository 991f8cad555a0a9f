// SPDX-License-Identifier: Apache-2.0
#include "neural/fashion_mnist.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

namespace neural {
namespace {

// A file in the IDX format: two zero bytes, a type (8: bytes), the number of dimensions, each as four bytes with the
// highest first, then the values.
class IdxFile {
 public:
  explicit IdxFile(const std::filesystem::path& path) : path_(path), file_(gzopen(path.c_str(), "rb"), &gzclose) {
    if (file_ == nullptr) {
      fail(
          "cannot be opened. Debian's package dataset-fashion-mnist has it; another folder is named by the "
          "environment variable SWAPMM_FASHION_MNIST");
    }
    gzbuffer(file_.get(), 1U << 18U);
  }

  // Returns the first dimension; the others must be as given.
  std::size_t read_header(std::span<const std::uint32_t> others) {
    const std::uint32_t magic = read_number();
    const auto expected = static_cast<std::uint32_t>(0x800 + 1 + others.size());
    if (magic != expected) {
      fail("is no IDX file of bytes in " + std::to_string(1 + others.size()) + " dimensions: it begins with " +
           std::to_string(magic) + ", not " + std::to_string(expected));
    }
    const std::uint32_t count = read_number();
    for (const std::uint32_t other : others) {
      if (const std::uint32_t found = read_number(); found != other) {
        fail("has pictures of another size: " + std::to_string(found) + " instead of " + std::to_string(other));
      }
    }
    if (count == 0 || count > 1'000'000) fail("claims to hold " + std::to_string(count) + " pictures");
    return count;
  }

  // Whole file read: what is left must be just that long.
  std::vector<std::uint8_t> read_rest(std::size_t size) {
    std::vector<std::uint8_t> bytes(size);
    read(bytes);
    if (gzgetc(file_.get()) != -1) fail("is longer than its header says");
    return bytes;
  }

  [[noreturn]] void fail(const std::string& what) const { throw std::runtime_error(path_.string() + " " + what); }

 private:
  std::uint32_t read_number() {
    std::array<std::uint8_t, 4> bytes{};
    read(bytes);
    return (std::uint32_t{bytes[0]} << 24U) | (std::uint32_t{bytes[1]} << 16U) | (std::uint32_t{bytes[2]} << 8U) |
           bytes[3];
  }
  void read(std::span<std::uint8_t> bytes) {
    const auto got = gzread(file_.get(), bytes.data(), static_cast<unsigned>(bytes.size()));
    if (got < 0 || static_cast<std::size_t>(got) != bytes.size()) {
      int error = Z_OK;
      const std::string text = gzerror(file_.get(), &error);
      fail(error == Z_OK ? "is cut off" : "is cut off or damaged: " + text);
    }
  }

  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

}  // namespace

void Pictures::gather(std::span<const std::uint32_t> which, std::vector<float>& batch_images,
                      std::vector<std::uint8_t>& batch_labels) const {
  batch_images.resize(which.size() * pixels);
  batch_labels.resize(which.size());
  for (std::size_t i = 0; i < which.size(); ++i) {
    const auto from = images.begin() + static_cast<std::ptrdiff_t>(which[i] * pixels);
    std::copy_n(from, pixels, batch_images.begin() + static_cast<std::ptrdiff_t>(i * pixels));
    batch_labels[i] = labels[which[i]];
  }
}

std::filesystem::path fashion_mnist_folder() {
  const char* const named = std::getenv("SWAPMM_FASHION_MNIST");  // NOLINT(concurrency-mt-unsafe): nobody sets any
  return named != nullptr && *named != '\0' ? named : "/usr/share/datasets/fashion-mnist";
}

Pictures read_pictures(const std::filesystem::path& folder, const char* set) {
  IdxFile images(folder / (std::string(set) + "-images-idx3-ubyte.gz"));
  constexpr std::array<std::uint32_t, 2> size{Pictures::side, Pictures::side};
  const std::size_t count = images.read_header(size);
  const std::vector<std::uint8_t> values = images.read_rest(count * Pictures::pixels);

  Pictures pictures;
  pictures.images.resize(values.size());
  std::transform(values.begin(), values.end(), pictures.images.begin(), [](std::uint8_t value) {
    return (static_cast<float>(value) / 255.0F - 0.286F) / 0.353F;  // mean and deviation of all pictures
  });

  IdxFile labels(folder / (std::string(set) + "-labels-idx1-ubyte.gz"));
  if (const std::size_t found = labels.read_header({}); found != count) {
    labels.fail("has " + std::to_string(found) + " labels for " + std::to_string(count) + " pictures");
  }
  pictures.labels = labels.read_rest(count);
  for (const std::uint8_t label : pictures.labels) {
    if (label >= Pictures::classes) labels.fail("has a label that is not 0 to 9: " + std::to_string(label));
  }
  return pictures;
}

FashionMnist read_fashion_mnist(const std::filesystem::path& folder) {
  return {read_pictures(folder, "train"), read_pictures(folder, "t10k")};
}

}  // namespace neural
