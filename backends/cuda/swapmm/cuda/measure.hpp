// SPDX-License-Identifier: Apache-2.0
#pragma once

// Inside of the backend: not for programs.

namespace swapmm::cuda {
class Backend;
}

namespace swapmm::cuda::detail {

class Session;

/// 1 or 2: whether copies in both directions run at the same time.
[[nodiscard]] int measured_copy_engines(Backend& backend, Session& session);

}  // namespace swapmm::cuda::detail
