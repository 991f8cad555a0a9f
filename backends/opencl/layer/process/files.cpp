// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <algorithm>

#ifdef SWAPMM_LAYER_HAS_FILES
#include <swapmm/file/file.hpp>
#endif

#include "settings.hpp"

namespace swapmm::opencl::layer {

void use_file([[maybe_unused]] Options& options) {
#ifdef SWAPMM_LAYER_HAS_FILES
  if (settings().file_folder.empty()) return;
  constexpr Bytes least_staging{160U << 10U};
  const Bytes part{options.host_budget.value / 8};
  options.file = file::open({.folder = settings().file_folder, .capacity = settings().file_size});
  options.file_staging = std::clamp(part, least_staging, std::max(least_staging, Options{}.file_staging));
#endif
}

}  // namespace swapmm::opencl::layer
