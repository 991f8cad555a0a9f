// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <swapmm/runtime/values/host_ledger.hpp>

#include "../loader/table.hpp"

namespace swapmm::opencl::layer::access {

/// A buffer that a launch may change.
struct Changed {
  /// The driver's allocation, and where the buffer begins in it: PoCL 3.1 crashes in some commands on parts of buffers.
  cl_mem allocation = nullptr;
  std::size_t begin = 0;
  std::size_t size = 0;
  std::size_t argument = 0;
  bool in_question = false;  ///< whether the launch overwrites all of it; the launch does not read it
  bool also_read = false;    ///< the launch may read it
};

struct Measurement {
  cl_int status = CL_SUCCESS;  ///< an error: a buffer may have lost its bytes, so the launch must fail
  bool done = false;           ///< false: it was not possible, and nothing has changed
  std::uint64_t whole = 0;     ///< bits of the arguments that the launch overwrites whole
};

/// Gives a launch to the driver: waits, list, event.
using LaunchOnce = std::function<cl_int(cl_uint, const cl_event*, cl_event*)>;

/// Launches twice, with the buffers in question filled with one byte and then with another one, and compares: a byte
/// that differs from both fillings once was written. Then all buffers have the bytes that they had. Blocks until then.
/// What it keeps on the host counts in `host`.
[[nodiscard]] Measurement measure(cl_command_queue queue, cl_uint waits, const cl_event* list,
                                  std::span<const Changed> buffers, runtime::HostLedger& host,
                                  const LaunchOnce& launch);

/// Whether there is time left for measuring: a part of the time that the process has run.
[[nodiscard]] bool time_to_measure();

}  // namespace swapmm::opencl::layer::access
