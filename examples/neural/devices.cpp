// SPDX-License-Identifier: Apache-2.0
#include "neural/devices.hpp"

#include <algorithm>
#include <array>
#include <ostream>

#include <swapmm/backend/device_choice.hpp>
#include <swapmm/error.hpp>

#ifdef NEURAL_ON_CUDA
#include <swapmm/cuda/devices.hpp>
#endif
#ifdef NEURAL_ON_OPENCL
#include <swapmm/opencl/devices.hpp>
#endif

namespace neural {
namespace {

using swapmm::UsageError;

constexpr std::array<std::string_view, 2> all_apis{"cuda", "opencl"};

bool has_usable(const ApiDevices& api) {
  return std::any_of(api.devices.begin(), api.devices.end(), [](const auto& device) { return device.usable; });
}
bool has_name(const ApiDevices& api, std::string_view part) {
  return std::any_of(api.devices.begin(), api.devices.end(),
                     [&](const auto& device) { return swapmm::contains_in_any_case(device.name, part); });
}
bool is_index(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

ChosenDevice chosen(const ApiDevices& api, std::string_view wanted) { return {api.name, api.choose(wanted)}; }

// What every API says to it: none has such a device.
[[noreturn]] void refuse(std::string_view wanted, std::span<const ApiDevices> apis) {
  std::string text;
  for (const ApiDevices& api : apis) {
    try {
      (void)api.choose(wanted);
    } catch (const UsageError& error) {
      text += (text.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  throw UsageError(text);
}

}  // namespace

ChosenDevice choose_device(std::string_view wanted, std::span<const ApiDevices> apis) {
  for (const std::string_view name : all_apis) {
    if (!wanted.starts_with(name)) continue;
    std::string_view rest = wanted.substr(name.size());
    if (!rest.empty() && rest.front() != ':') continue;
    const auto api = std::find_if(apis.begin(), apis.end(), [&](const ApiDevices& one) { return one.name == name; });
    if (api == apis.end()) {
      throw UsageError("device \"" + std::string(wanted) + "\": this program was built without " + std::string(name));
    }
    if (!rest.empty()) rest.remove_prefix(1);
    return chosen(*api, rest);
  }
  if (wanted.empty()) {
    for (const ApiDevices& api : apis) {
      if (has_usable(api)) return chosen(api, {});
    }
    refuse(wanted, apis);
  }
  if (is_index(wanted)) {
    for (auto api = apis.rbegin(); api != apis.rend(); ++api) {
      if (!api->devices.empty()) return chosen(*api, wanted);
    }
    refuse(wanted, apis);
  }
  for (const ApiDevices& api : apis) {
    if (has_name(api, wanted)) return chosen(api, wanted);
  }
  refuse(wanted, apis);
}

ReplicaDevices replica_devices(const ChosenDevice& chosen, std::size_t first, std::size_t count,
                               std::span<const ApiDevices> apis) {
  ReplicaDevices made{chosen.api, {}};
  std::vector<std::size_t> alike{chosen.index};
  for (const ApiDevices& api : apis) {
    if (api.name != chosen.api) continue;
    for (std::size_t i = 0; i < api.devices.size(); ++i) {
      const bool same = api.devices[i].usable && api.devices[i].name == api.devices[chosen.index].name;
      if (same && i != chosen.index) alike.push_back(i);
    }
  }
  for (std::size_t i = first; i < first + count; ++i) made.indices.push_back(alike[i % alike.size()]);
  return made;
}

std::vector<ApiDevices> api_devices() {
  std::vector<ApiDevices> apis;
#ifdef NEURAL_ON_CUDA
  {
    swapmm::cuda::DeviceList list;
    try {
      list = swapmm::cuda::devices();
    } catch (const swapmm::BackendError& error) {
      list.why_none = error.what();  // of no matter to who wants another API
    }
    ApiDevices& api = apis.emplace_back();
    api.name = "cuda";
    for (const auto& device : list.devices) api.devices.push_back({device.name, device.obstacle.empty()});
    api.choose = [list = std::move(list)](std::string_view wanted) { return swapmm::cuda::choose(list, wanted); };
  }
#endif
#ifdef NEURAL_ON_OPENCL
  {
    std::vector<swapmm::opencl::Device> list = swapmm::opencl::devices();
    ApiDevices& api = apis.emplace_back();
    api.name = "opencl";
    for (const auto& device : list) {
      api.devices.push_back({device.name + " / " + device.platform, device.obstacle.empty()});
    }
    api.choose = [list = std::move(list)](std::string_view wanted) { return swapmm::opencl::choose(list, wanted); };
  }
#endif
  return apis;
}

namespace detail {

ChosenDevice choose_device(std::string_view wanted) {
  return neural::choose_device(wanted.empty() ? swapmm::device_from_environment() : std::string(wanted), api_devices());
}

void refuse_cudnn(std::string_view convolutions) {
  if (convolutions == "cudnn") throw UsageError("cuDNN computes on CUDA devices alone, and this one is OpenCL's");
}

#ifdef NEURAL_ON_CUDA
std::unique_ptr<CudaMath> make_cuda_math(std::size_t device, std::string_view convolutions, std::ostream& say) {
  Convolutions by = Convolutions::automatic;
  if (convolutions == "gemm") by = Convolutions::gemm;
  if (convolutions == "cudnn") by = Convolutions::cudnn;
  auto math = std::make_unique<CudaMath>(swapmm::cuda::Backend::pick(std::to_string(device), say), by);
  say << "swapmm: " << math->libraries() << '\n';
  return math;
}
#endif
#ifdef NEURAL_ON_OPENCL
std::vector<std::unique_ptr<OpenclMath>> make_opencl_maths(std::span<const std::size_t> devices, std::ostream& say) {
  std::vector<std::unique_ptr<OpenclMath>> made;
  for (swapmm::opencl::Backend& backend : swapmm::opencl::Backend::on_devices(devices, say)) {
    made.push_back(std::make_unique<OpenclMath>(std::move(backend)));
  }
  return made;
}
#endif

}  // namespace detail
}  // namespace neural
