// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace swapmm::opencl::layer::facts {

// Texts that outlive the process, in the folder swapmm/kernels of the user's cache: what is known of programs and of
// launches. The folder and its files belong to the user alone. Files are replaced as a whole, so several processes may
// use the folder at once. A file that is damaged, or that is not the user's, counts as absent, and one line on stderr
// says so.

/// The text of that name, if there is one.
[[nodiscard]] std::optional<std::string> cached(const std::string& name);
/// Keeps a text. If that fails, one line on stderr says so, and nothing is kept from then on.
void keep_in_cache(const std::string& name, const std::string& text);

}  // namespace swapmm::opencl::layer::facts
