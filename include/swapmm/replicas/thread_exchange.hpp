// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/replicas/exchange.hpp>

namespace swapmm {

/// Connects threads of one process: `count` exchanges, one for each thread. Sending copies the bytes and never waits. A
/// thread that waits for another one whose exchange was destroyed gets ReplicaFailed. Throws UsageError for a count of
/// 0.
[[nodiscard]] SWAPMM_EXPORT std::vector<std::unique_ptr<Exchange>> exchanges_between_threads(std::size_t count);

}  // namespace swapmm
