// SPDX-License-Identifier: Apache-2.0
// Files of weights: as constants of a manager, and in the format safetensors.
#include <doctest/doctest.h>

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/file/weights.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

/// A file with that content, as long as this lives.
class GivenPath {
 public:
  explicit GivenPath(const std::string& content)
      : path_(std::filesystem::temp_directory_path() / ("swapmm-weights-" + std::to_string(::getpid()))) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  GivenPath(const GivenPath&) = delete;
  GivenPath& operator=(const GivenPath&) = delete;
  ~GivenPath() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::shared_ptr<FileMemory> open() const { return file::open_weights(path_.string()); }

 private:
  std::filesystem::path path_;
};

std::string raw(const std::vector<int>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int)};
}

std::string safetensors(const std::string& head, const std::string& bytes, std::uint64_t length = ~std::uint64_t{0}) {
  if (length == ~std::uint64_t{0}) length = head.size();
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(length >> (8 * i) & 0xFFU);
  return text + head + bytes;
}

std::string problem_of(const std::string& content) {
  const GivenPath given(content);
  const Result<std::vector<file::Weight>> weights = file::read_safetensors(*given.open());
  if (weights.has_value()) return "no problem";
  CHECK(says(weights.problem().message, {given.path().string() + ": "}));
  return weights.problem().message;
}

}  // namespace

TEST_CASE("the bytes of a file are those of a constant, and the file may go from its folder") {
  std::string content = "head";
  for (int i = 0; i < 12; ++i) content += raw(std::vector<int>(length, i + 1));
  auto given = std::make_unique<GivenPath>(content);
  const std::shared_ptr<FileMemory> file = given->open();
  CHECK(file->size().value == content.size());
  CHECK(file->capacity() == 0_bytes);
  CHECK(file->alignment() == 1_bytes);
  CHECK(file->name() == given->path().string());
  given.reset();

  Simulated device;
  Options options{.device_budget = 256_bytes, .file = file};
  options.file_staging = 1_KiB;
  MemoryManager<Simulated> manager(device, options);
  std::vector<Tensor<int, Simulated>> weights;
  for (std::uint64_t i = 0; i < 12; ++i) {
    weights.push_back(manager.constant<int>({length}, file, Bytes{4 + i * 64}, "w" + std::to_string(i)));
  }
  auto sum = manager.tensor<int>({length}, "sum");
  for (int round = 0; round < 6; ++round) {
    const auto iteration = manager.iteration("infer");
    set(manager, sum, 0);
    for (const auto& weight : weights) accumulate(manager, weight, sum);
    CHECK(holds(sum, 78));
  }
  CHECK(manager.report().iterations_followed > 0);
  CHECK(manager.report().file_written == 0_bytes);
  CHECK(device.violation_count() == 0);
}

TEST_CASE("a file of weights is only read") {
  const GivenPath given("12345678");
  const std::shared_ptr<FileMemory> file = given.open();
  std::array<std::byte, 4> bytes{};
  const std::optional<BackendError> refused = thrown<BackendError>([&] { file->write(0_bytes, bytes); });
  REQUIRE(refused.has_value());
  CHECK(refused->code == EROFS);
  const std::optional<BackendError> no_room = thrown<BackendError>([&] { file->reserve(1_bytes); });
  REQUIRE(no_room.has_value());
  CHECK(no_room->kind == BackendError::Kind::out_of_host_memory);
  file->read(3_bytes, bytes);
  CHECK(bytes == std::array<std::byte, 4>{std::byte{'4'}, std::byte{'5'}, std::byte{'6'}, std::byte{'7'}});
}

TEST_CASE("a file that becomes shorter is an error that says where it ends") {
  const GivenPath given(std::string(1000, 'x'));
  const std::shared_ptr<FileMemory> file = given.open();
  std::filesystem::resize_file(given.path(), 600);
  std::vector<std::byte> bytes(200);
  file->read(400_bytes, bytes);
  CHECK(says(
      text_of<BackendError>([&] { file->read(500_bytes, bytes); }),
      {"reading 200 bytes at 500 of ", given.path().string(), "it ends at byte 600", "1000 bytes when it was opened"}));
}

TEST_CASE("what is no file is refused by name") {
  CHECK(says(text_of<BackendError>([] { (void)file::open_weights("/nowhere/at all"); }),
             {"opening /nowhere/at all: ", "No such file"}));
  const std::string folder = std::filesystem::temp_directory_path().string();
  const std::optional<BackendError> error = thrown<BackendError>([&] { (void)file::open_weights(folder); });
  REQUIRE(error.has_value());
  CHECK(error->code == EISDIR);
}

TEST_CASE("the tensors of a file of the format safetensors, by the order of their bytes") {
  const std::string head =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},)"
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"none":{"dtype":"I64","shape":[0,5],"data_offsets":[8,8]},)"
      R"("one":{"dtype":"U8","shape":[],"data_offsets":[20,21]}}   )";
  const GivenPath given(safetensors(head, std::string(21, 'x')));
  const Result<std::vector<file::Weight>> weights = file::read_safetensors(*given.open());
  REQUIRE(weights.has_value());
  const Bytes data{8 + head.size()};
  CHECK(*weights == std::vector<file::Weight>{{"a", "F32", {2}, data, 8_bytes},
                                              {"none", "I64", {0, 5}, data + 8_bytes, 0_bytes},
                                              {"b", "BF16", {2, 3}, data + 8_bytes, 12_bytes},
                                              {"one", "U8", {}, data + 20_bytes, 1_bytes}});
}

TEST_CASE("files that are no safetensors, or not whole, are refused with the reason") {
  CHECK(says(problem_of("abc"), {"3 bytes, too few for a head"}));
  CHECK(says(problem_of(safetensors("{}", "", 3)), {"its head is to have 3 bytes; it has 10 in all"}));
  CHECK(says(problem_of(safetensors("{}", "", 1ULL << 40U)), {"a head at most 100000000"}));
  CHECK(says(problem_of(safetensors("{]", "")), {"its head is not JSON"}));
  CHECK(says(problem_of(safetensors(std::string(100, '['), "")), {"its head is not JSON"}));
  CHECK(says(problem_of(safetensors("[]", "")), {"its head is not a JSON object"}));
  const auto tensor = [](const std::string& entry) {
    return problem_of(safetensors(R"({"t":)" + entry + "}", "12345678"));
  };
  CHECK(says(tensor("3"), {"tensor \"t\" is not an object"}));
  CHECK(says(tensor(R"({"shape":[2],"data_offsets":[0,8]})"), {"has no \"dtype\""}));
  CHECK(says(tensor(R"({"dtype":"F33","shape":[2],"data_offsets":[0,8]})"), {"unknown type \"F33\""}));
  CHECK(says(tensor(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), {"no \"shape\" of whole numbers"}));
  CHECK(says(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), {"no range in \"data_offsets\""}));
  CHECK(says(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"), {"no range in \"data_offsets\""}));
  CHECK(
      says(tensor(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), {"has 8 bytes, and its shape and type 12"}));
  CHECK(says(tensor(R"({"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,8]})"),
             {"more than 64 bits can count"}));
  CHECK(says(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})"),
             {"ends at byte 12 behind the head, and the file has 8"}));
  CHECK(says(problem_of(safetensors(R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},)"
                                    R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                                    "12345678")),
             {"tensors \"a\" and \"b\" overlap"}));
}
