// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

namespace swapmm::opencl::layer {

/// Runs a callback of the program, later, on the layer's own thread. Drivers call back on threads that their own
/// progress needs, and a callback of the program may call the layer, which may wait. May be called on any thread, also
/// within a driver's callback; waits for nothing but memory. The thread starts with the first callback and never ends.
void run_later(std::function<void()> callback);
/// The same after a time, on another thread of the layer.
void run_after(std::chrono::milliseconds time, std::function<void()> callback);

}  // namespace swapmm::opencl::layer
