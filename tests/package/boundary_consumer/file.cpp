// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <swapmm/error.hpp>
#include <swapmm/file/file.hpp>
#include <swapmm/file/weights.hpp>

#include <vector>

int check_file() {
  using swapmm::Bytes;
  int failed = expect_exception<swapmm::UsageError>("file: no capacity", [] { (void)swapmm::file::open({}); });
  failed += expect_exception<swapmm::BackendError>(
      "file: no folder", [] { (void)swapmm::file::open({.folder = "/no/such/folder", .capacity = Bytes{1U << 20U}}); });
  const auto file = swapmm::file::open({.capacity = Bytes{1U << 20U}});
  return failed + expect("file: its capacity", file->capacity() == Bytes{1U << 20U});
}
