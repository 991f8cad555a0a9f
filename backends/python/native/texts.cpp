// SPDX-License-Identifier: Apache-2.0
#include "python.h"

#include <swapmm/base/error.hpp>
#include <swapmm/c_interface/failure.hpp>
#include <swapmm/formats/quantity.hpp>

using swapmm::c_interface::guarded;
using swapmm::c_interface::required;

swapmm_status swapmm_python_size(const char* text, uint64_t* bytes) {
  return guarded([&] {
    const auto size = swapmm::quantity::parse_size(&required(text, "the text"));
    if (!size) throw swapmm::UsageError(size.problem().message);
    required(bytes, "the pointer to the size") = size->value;
  });
}
