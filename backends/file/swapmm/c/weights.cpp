// SPDX-License-Identifier: Apache-2.0
#include <swapmm/c/file.h>

#include <string>

#include <swapmm/c_interface/failure.hpp>
#include <swapmm/c_interface/handles.hpp>
#include <swapmm/c_interface/structs.hpp>
#include <swapmm/file/weights.hpp>

using namespace swapmm::c_interface;  // NOLINT(*-build-using-namespace)

swapmm_status swapmm_weights_open(const char* path, swapmm_file** file) {
  return make_object(file, "the pointer to the file", [&] {
    return new swapmm_file{swapmm::file::open_weights(std::string(&required(path, "the path")))};
  });
}
