// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "support/program/model.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

/// The bytes that slices of a tensor hold now, as a list of pieces.
[[nodiscard]] std::string cpp_pieces(const ModelTensor& tensor, const SliceRange& range);

/// The call of run() of an operation, whose action has that number. Not `full`: its callable does nothing, for the call
/// is refused.
[[nodiscard]] std::string cpp_of_operation(const Action& action, std::size_t number, const ModelTensors& tensors,
                                           bool full);

}  // namespace swapmm::test
