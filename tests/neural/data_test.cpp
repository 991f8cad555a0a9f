// SPDX-License-Identifier: Apache-2.0
// The reader of Fashion-MNIST, on small files of its format; shuffling, and the schedule of rates.
#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "neural/fashion_mnist.hpp"
#include "neural/random.hpp"

namespace {

using neural::Pictures;

// A folder that goes at the end.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / ("swapmm-neural-" + std::to_string(std::random_device()()))) {
    std::filesystem::create_directory(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  void write(const std::string& name, const std::vector<std::uint8_t>& bytes) const {
    const gzFile file = gzopen((path_ / name).c_str(), "wb1");
    REQUIRE(file != nullptr);
    REQUIRE(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size()));
    REQUIRE(gzclose(file) == Z_OK);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

constexpr std::uint8_t count = 3;

std::vector<std::uint8_t> images() {
  std::vector<std::uint8_t> bytes{0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 28, 0, 0, 0, 28};
  for (std::size_t i = 0; i < count * Pictures::pixels; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 31));
  return bytes;
}
std::vector<std::uint8_t> labels() { return {0, 0, 8, 1, 0, 0, 0, count, 9, 0, 4}; }

const std::string images_name = "t10k-images-idx3-ubyte.gz";
const std::string labels_name = "t10k-labels-idx1-ubyte.gz";

// What reading these two files says. The file's name stands in it.
std::string complaint(const std::vector<std::uint8_t>& image_file, const std::vector<std::uint8_t>& label_file,
                      const std::string& about) {
  const Folder folder;
  folder.write(images_name, image_file);
  folder.write(labels_name, label_file);
  try {
    (void)neural::read_pictures(folder.path(), "t10k");
  } catch (const std::runtime_error& error) {
    std::string text = error.what();
    CHECK(text.find(about) != std::string::npos);
    return text;
  }
  return "no complaint";
}
bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

template <class T>
std::vector<T> changed(std::vector<T> values, std::size_t at, T value) {
  values[at] = value;
  return values;
}

}  // namespace

TEST_CASE("pictures are read as numbers of about mean 0, with their labels, and gathered in any order") {
  const Folder folder;
  folder.write(images_name, images());
  folder.write(labels_name, labels());
  const Pictures pictures = neural::read_pictures(folder.path(), "t10k");
  REQUIRE(pictures.size() == count);
  CHECK(pictures.labels == std::vector<std::uint8_t>{9, 0, 4});
  REQUIRE(pictures.images.size() == count * Pictures::pixels);
  for (const std::size_t i : {0U, 1U, 783U, 784U, 2351U}) {
    const double value = static_cast<double>(static_cast<std::uint8_t>(i * 31)) / 255;
    CHECK(pictures.images[i] == doctest::Approx((value - 0.286) / 0.353).epsilon(1e-5));
  }

  std::vector<float> batch;
  std::vector<std::uint8_t> their;
  const std::vector<std::uint32_t> which{2, 0};
  pictures.gather(which, batch, their);
  CHECK(their == std::vector<std::uint8_t>{4, 9});
  REQUIRE(batch.size() == 2 * Pictures::pixels);
  CHECK(std::equal(batch.begin(), batch.begin() + Pictures::pixels, pictures.images.begin() + 2 * Pictures::pixels));
  CHECK(std::equal(batch.begin() + Pictures::pixels, batch.end(), pictures.images.begin()));
}

TEST_CASE("a missing file is named, and the package that has it") {
  try {
    (void)neural::read_fashion_mnist("/no/such/folder");
    FAIL("read what is not there");
  } catch (const std::runtime_error& error) {
    CHECK(says(error.what(), "/no/such/folder/train-images-idx3-ubyte.gz"));
    CHECK(says(error.what(), "dataset-fashion-mnist"));
    CHECK(says(error.what(), "SWAPMM_FASHION_MNIST"));
  }
}

TEST_CASE("files that are cut off, or something else, are refused by name and reason") {
  CHECK(says(complaint(changed<std::uint8_t>(images(), 3, 1), labels(), images_name), "begins with 2049, not 2051"));
  CHECK(says(complaint({1, 2}, labels(), images_name), "is cut off"));
  std::vector<std::uint8_t> shorter = images();
  shorter.pop_back();
  CHECK(says(complaint(shorter, labels(), images_name), "is cut off"));
  std::vector<std::uint8_t> longer = images();
  longer.push_back(0);
  CHECK(says(complaint(longer, labels(), images_name), "longer than its header"));
  CHECK(says(complaint(changed<std::uint8_t>(images(), 11, 27), labels(), images_name), "27 instead of 28"));
  CHECK(says(complaint(changed<std::uint8_t>(images(), 4, 255), labels(), images_name), "claims to hold"));
  CHECK(says(complaint(images(), changed<std::uint8_t>(labels(), 3, 3), labels_name), "begins with 2051, not 2049"));
  CHECK(says(complaint(images(), changed<std::uint8_t>(labels(), 7, 2), labels_name), "2 labels for 3 pictures"));
  CHECK(says(complaint(images(), changed<std::uint8_t>(labels(), 9, 10), labels_name), "not 0 to 9: 10"));
}

TEST_CASE("a file whose compressed bytes end too early is refused") {
  const Folder folder;
  folder.write(images_name, images());
  folder.write(labels_name, labels());
  std::filesystem::resize_file(folder.path() / images_name,
                               std::filesystem::file_size(folder.path() / images_name) / 2);
  CHECK_THROWS_WITH_AS((void)neural::read_pictures(folder.path(), "t10k"), doctest::Contains("is cut off"),
                       std::runtime_error);
}

TEST_CASE("a shuffled order has each number once, differs from seed to seed, and is the same everywhere") {
  std::vector<std::uint32_t> order = neural::shuffled(1000, 7);
  CHECK(order == neural::shuffled(1000, 7));
  CHECK(order != neural::shuffled(1000, 8));
  const std::vector<std::uint32_t> first(order.begin(), order.begin() + 4);
  CHECK(first == std::vector<std::uint32_t>{271, 697, 56, 967});
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < order.size(); ++i) CHECK(order[i] == i);
}

TEST_CASE("first weights have mean 0, the deviation asked for, and are the same everywhere") {
  std::mt19937 random(1);
  const std::vector<float> values = neural::he_values(10000, 50, random);
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  CHECK(std::abs(sum / 10000) < 0.01);
  CHECK(std::sqrt(squares / 10000) == doctest::Approx(0.2).epsilon(0.03));
  CHECK(values[0] == -0x1.02ad46p-3F);
}

TEST_CASE("the rate goes up over the first tenth, and straight down to 0") {
  CHECK(neural::rate(0, 100, 0.5F) == doctest::Approx(0.05));
  CHECK(neural::rate(9, 100, 0.5F) == 0.5F);
  CHECK(neural::rate(10, 100, 0.5F) == 0.5F);
  CHECK(neural::rate(55, 100, 0.5F) == doctest::Approx(0.25));
  CHECK(neural::rate(99, 100, 0.5F) == doctest::Approx(0.5 / 90));
  CHECK(neural::rate(100, 100, 0.5F) == 0);
  CHECK(neural::rate(0, 1, 0.5F) == 0.5F);
}
