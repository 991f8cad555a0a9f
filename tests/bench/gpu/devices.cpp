// SPDX-License-Identifier: Apache-2.0
// The CUDA devices, as JSON: {"devices": [...], "why_none": "..."}.
#include <exception>
#include <iostream>

#include <boost/json.hpp>

#include <swapmm/cuda/devices.hpp>

int main() {
  try {
    const swapmm::cuda::DeviceList list = swapmm::cuda::devices();
    boost::json::array devices;
    for (const swapmm::cuda::Device& device : list.devices) devices.emplace_back(swapmm::cuda::describe(device));
    std::cout << boost::json::object{{"devices", devices}, {"why_none", list.why_none}} << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
