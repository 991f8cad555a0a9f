// SPDX-License-Identifier: Apache-2.0
#include <swapmm/c/file.h>

#include <string>

#include <swapmm/base/bytes.hpp>
#include <swapmm/c_interface/failure.hpp>
#include <swapmm/c_interface/handles.hpp>
#include <swapmm/c_interface/structs.hpp>
#include <swapmm/file/file.hpp>

using namespace swapmm::c_interface;  // NOLINT(*-build-using-namespace)

swapmm_status swapmm_file_open(const char* folder, uint64_t capacity, swapmm_file** file) {
  return make_object(file, "the pointer to the file", [&] {
    swapmm::file::Options options;
    if (folder != nullptr) options.folder = folder;
    options.capacity = swapmm::Bytes{capacity};
    return new swapmm_file{swapmm::file::open(options)};
  });
}
