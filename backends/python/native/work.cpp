// SPDX-License-Identifier: Apache-2.0
#include "python.h"

#include <atomic>

namespace {

std::atomic<swapmm_python_work> kernels{nullptr};
std::atomic<swapmm_python_work> replays{nullptr};

/// An error that comes before Python has begun to run the function, such as Ctrl-C, is not told to C: no status is one.
int status_of(swapmm_python_work work, void* argument, void* operation) {
  constexpr int none = -1;
  int status = none;
  if (work != nullptr) work(argument, operation, &status);
  return status;
}

}  // namespace

extern "C" {

void swapmm_python_set_work(swapmm_python_work kernel, swapmm_python_work again) {
  kernels = kernel;
  replays = again;
}

int swapmm_python_kernel(void* argument) { return status_of(kernels, argument, nullptr); }

int swapmm_python_again(void* argument, void* operation) { return status_of(replays, argument, operation); }

}  // extern "C"
