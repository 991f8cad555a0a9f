// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace random_opencl {

/// "0-3,7": which of `count` actions are kept.
std::string text_of_mask(const std::vector<bool>& keep);
/// Throws std::invalid_argument.
std::vector<bool> mask_of_text(const std::string& text, std::size_t count);

/// Removes actions from a program as long as it still fails. Each candidate runs in a process of its own: `command`,
/// with
/// --keep and a mask, at most `seconds`, up to `repeats` times. Returns what is left; all of them if nothing fails.
std::vector<bool> shrink(const std::vector<std::string>& command, std::size_t actions, unsigned seconds,
                         unsigned repeats);

}  // namespace random_opencl
