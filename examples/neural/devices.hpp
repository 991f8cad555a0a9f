// SPDX-License-Identifier: Apache-2.0
#pragma once

// On which device an example runs: of those of each API that the program was built with, the one that its user names.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifdef NEURAL_ON_CUDA
#include "neural/cuda_math.hpp"
#endif
#ifdef NEURAL_ON_OPENCL
#include "neural/opencl_math.hpp"
#endif

namespace neural {

/// For the usage of a program.
inline constexpr std::string_view device_usage =
    "  --device  cuda, opencl, one of their devices (cuda:0, opencl:1), or a part of a device's name; default: what "
    "the\n"
    "            environment variable SWAPMM_DEVICE says, else a CUDA device if there is one, else the best of "
    "OpenCL\n";

/// An API that the program was built with, and its devices.
struct ApiDevices {
  struct Device {
    std::string name;
    bool usable = true;
  };

  std::string name;  ///< as a user says it: "cuda", "opencl"
  std::vector<Device> devices;
  /// The position of the device that an index or a part of a name says; empty: the best. Throws swapmm::UsageError with
  /// a list of what there is.
  std::function<std::size_t(std::string_view)> choose;
};

struct ChosenDevice {
  std::string api;
  std::size_t index = 0;
};

/// What `wanted` names: "cuda", "cuda:0", "cuda:H200", and the same of "opencl"; a part of a name of whatever API, CUDA
/// before OpenCL; an index, of OpenCL's devices where it has any. Empty: the best device of the first API that has one
/// to use. Throws swapmm::UsageError.
[[nodiscard]] ChosenDevice choose_device(std::string_view wanted, std::span<const ApiDevices> apis);

/// Those that the program was built with, CUDA before OpenCL. Asks the drivers.
[[nodiscard]] std::vector<ApiDevices> api_devices();

/// Calls run(math) with an OpenclMath or a CudaMath for the device that `wanted` names, or the environment variable
/// SWAPMM_DEVICE where it is empty, and returns what that returns. Says on `say` which device it is. `convolutions`
/// ("gemm", "cudnn", or empty) is CUDA's alone. Throws swapmm::UsageError where there is no such device.
template <class Run>
int on_device(std::string_view wanted, std::ostream& say, Run&& run, std::string_view convolutions = {});

/// The same for `count` replicas: calls run(maths, devices) with a math for each, and where they are. Replica 0 of all
/// processes is on the device that `wanted` names, the next ones are on others of the same name, and again from the
/// first of these on if there are fewer devices than replicas. `first` is the number of the first replica here.
template <class Run>
int on_devices(std::string_view wanted, std::size_t first, std::size_t count, std::ostream& say, Run&& run,
               std::string_view convolutions = {});

/// A device for each replica.
struct ReplicaDevices {
  std::string api;
  std::vector<std::size_t> indices;  ///< among all of the API
  /// How many of these replicas share a device with replica `i`, itself included.
  [[nodiscard]] std::size_t sharing(std::size_t i) const {
    return static_cast<std::size_t>(std::count(indices.begin(), indices.end(), indices[i]));
  }
};

/// Devices for replicas `first` to `first` + `count` - 1, see on_devices().
[[nodiscard]] ReplicaDevices replica_devices(const ChosenDevice& chosen, std::size_t first, std::size_t count,
                                             std::span<const ApiDevices> apis);

// ---- the rest is how

namespace detail {

[[nodiscard]] ChosenDevice choose_device(std::string_view wanted);
/// Throws swapmm::UsageError for "cudnn".
void refuse_cudnn(std::string_view convolutions);
#ifdef NEURAL_ON_CUDA
/// Says on `say` which libraries compute, too.
[[nodiscard]] std::unique_ptr<CudaMath> make_cuda_math(std::size_t device, std::string_view convolutions,
                                                       std::ostream& say);
#endif
#ifdef NEURAL_ON_OPENCL
/// Those on one platform have one context.
[[nodiscard]] std::vector<std::unique_ptr<OpenclMath>> make_opencl_maths(std::span<const std::size_t> devices,
                                                                         std::ostream& say);
#endif

}  // namespace detail

template <class Run>
int on_device(std::string_view wanted, std::ostream& say, Run&& run, [[maybe_unused]] std::string_view convolutions) {
  const ChosenDevice chosen = detail::choose_device(wanted);
#ifdef NEURAL_ON_CUDA
  if (chosen.api == "cuda") return run(*detail::make_cuda_math(chosen.index, convolutions, say));
#endif
#ifdef NEURAL_ON_OPENCL
  if (chosen.api == "opencl") {
    detail::refuse_cudnn(convolutions);
    return run(*detail::make_opencl_maths({&chosen.index, 1}, say).front());
  }
#endif
  throw std::logic_error("no program for " + chosen.api);
}

namespace detail {

template <class Run, class Math>
int on_made(const ReplicaDevices& devices, Run& run, const std::vector<std::unique_ptr<Math>>& made) {
  std::vector<Math*> maths;
  for (const std::unique_ptr<Math>& math : made) maths.push_back(math.get());
  return run(std::as_const(maths), devices);
}

}  // namespace detail

template <class Run>
int on_devices(std::string_view wanted, std::size_t first, std::size_t count, std::ostream& say, Run&& run,
               [[maybe_unused]] std::string_view convolutions) {
  const ReplicaDevices devices = replica_devices(detail::choose_device(wanted), first, count, api_devices());
#ifdef NEURAL_ON_CUDA
  if (devices.api == "cuda") {
    std::vector<std::unique_ptr<CudaMath>> maths;
    for (const std::size_t index : devices.indices) maths.push_back(detail::make_cuda_math(index, convolutions, say));
    return detail::on_made(devices, run, maths);
  }
#endif
#ifdef NEURAL_ON_OPENCL
  if (devices.api == "opencl") {
    detail::refuse_cudnn(convolutions);
    return detail::on_made(devices, run, detail::make_opencl_maths(devices.indices, say));
  }
#endif
  throw std::logic_error("no program for " + devices.api);
}

}  // namespace neural
