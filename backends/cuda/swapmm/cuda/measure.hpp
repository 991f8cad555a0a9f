// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the backend; not for programs.

namespace swapmm::cuda {
class Backend;
}

namespace swapmm::cuda::detail {

class Session;

/// Measures the number of copy engines: 2 if copies in both directions run at the same time, else 1.
[[nodiscard]] int measured_copy_engines(Backend& backend, Session& session);

}  // namespace swapmm::cuda::detail
