// SPDX-License-Identifier: Apache-2.0
#include "support/golden.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "test_data.hpp"

namespace swapmm::test {

void check_golden(const std::string& name, std::string_view text) {
  const std::filesystem::path expected_path = std::filesystem::path(SWAPMM_TEST_DATA) / name;
  std::ifstream file(expected_path, std::ios::binary);
  const std::string expected{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const bool same = file.is_open() && expected == text;
  if (same) {
    CHECK(same);
    return;
  }
  const std::filesystem::path new_path =
      std::filesystem::temp_directory_path() / ("swapmm-new-" + expected_path.filename().string());
  std::ofstream(new_path, std::ios::binary) << text;
  FAIL_CHECK("what is written now differs from " << expected_path.string() << ".\n"
                                                 << "It is in " << new_path.string()
                                                 << ": compare, look at it, and if it is right, accept it with\n  cp "
                                                 << new_path.string() << " " << expected_path.string());
}

}  // namespace swapmm::test
