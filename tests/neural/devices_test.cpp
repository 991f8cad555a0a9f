// SPDX-License-Identifier: Apache-2.0
// Which device an example takes: by what its user says, among the devices of two APIs. And how it loads what computes
// there.
#include "neural/devices.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/backend/device_choice.hpp>
#include <swapmm/error.hpp>

#ifdef NEURAL_ON_CUDA
#include "neural/shared_library.hpp"
#endif

namespace {

using neural::ApiDevices;
using neural::ChosenDevice;

// Chooses as the backends do.
ApiDevices api(const std::string& name, std::vector<ApiDevices::Device> devices) {
  std::vector<swapmm::DeviceChoice> choices;
  for (const auto& device : devices) {
    choices.push_back({"[" + std::to_string(choices.size()) + "] " + device.name,
                       {device.name},
                       device.name == "best" ? 2 : 1,
                       device.usable ? "" : "it is broken"});
  }
  return {name, std::move(devices), [=](std::string_view wanted) {
            return swapmm::choose_device(choices, wanted, name, "There is no " + name + " device.");
          }};
}

std::string choice(const std::string& wanted, const std::vector<ApiDevices>& apis) {
  try {
    const ChosenDevice device = neural::choose_device(wanted, apis);
    return device.api + ":" + std::to_string(device.index);
  } catch (const swapmm::UsageError& error) {
    return error.what();
  }
}

const ApiDevices gpus = api("cuda", {{"H200"}, {"best"}, {"A100 alpha"}});
const ApiDevices others = api("opencl", {{"pthread"}, {"H200 by OpenCL"}, {"best of these"}});
const ApiDevices no_gpu = api("cuda", {});
const ApiDevices broken_gpu = api("cuda", {{"old", false}});

}  // namespace

TEST_CASE("without a word it is the best CUDA device, or where none can be used OpenCL's") {
  CHECK(choice("", {gpus, others}) == "cuda:1");
  CHECK(choice("", {no_gpu, others}) == "opencl:0");
  CHECK(choice("", {broken_gpu, others}) == "opencl:0");
  CHECK(choice("", {others}) == "opencl:0");
  CHECK(choice("", {gpus}) == "cuda:1");
}

TEST_CASE("an API by its name, and its devices by index or name") {
  CHECK(choice("cuda", {gpus, others}) == "cuda:1");
  CHECK(choice("cuda:0", {gpus, others}) == "cuda:0");
  CHECK(choice("cuda:a100", {gpus, others}) == "cuda:2");
  CHECK(choice("opencl", {gpus, others}) == "opencl:0");
  CHECK(choice("opencl:1", {gpus, others}) == "opencl:1");
  CHECK(choice("opencl:H200", {gpus, others}) == "opencl:1");
}

TEST_CASE("a device by its name alone, CUDA's before OpenCL's, and by an index of OpenCL's") {
  CHECK(choice("h200", {gpus, others}) == "cuda:0");
  CHECK(choice("pthread", {gpus, others}) == "opencl:0");
  CHECK(choice("2", {gpus, others}) == "opencl:2");
  CHECK(choice("2", {gpus}) == "cuda:2");
  CHECK(choice("0", {gpus, api("opencl", {})}) == "cuda:0");
}

TEST_CASE("what there is not is refused with what there is") {
  CHECK(choice("cuda", {no_gpu, others}) == "no cuda device can be used.\nThere is no cuda device.");
  CHECK(choice("cuda:1", {no_gpu, others}) == "there is no cuda device with index 1.\nThere is no cuda device.");
  CHECK(choice("cuda", {broken_gpu, others}) == "no cuda device can be used.\nAvailable devices:\n  [0] old");
  CHECK(choice("old", {broken_gpu, others}) ==
        "cuda device [0] old was asked for, but it is broken.\nAvailable devices:\n  [0] old");
  CHECK(choice("cuda", {others}) == "device \"cuda\": this program was built without cuda");
  CHECK(choice("opencl:0", {gpus}) == "device \"opencl:0\": this program was built without opencl");
  CHECK(choice("3", {gpus, others}) ==
        "there is no opencl device with index 3.\nAvailable devices:\n  [0] pthread\n  [1] H200 by OpenCL\n  [2] best "
        "of these");
  CHECK(choice("x9", {no_gpu, others}) ==
        "no cuda device is called \"x9\".\nThere is no cuda device.\n"
        "no opencl device is called \"x9\".\nAvailable devices:\n  [0] pthread\n  [1] H200 by OpenCL\n  [2] best of "
        "these");
  CHECK(choice("", {no_gpu, api("opencl", {})}) ==
        "no cuda device can be used.\nThere is no cuda device.\nno opencl device can be used.\nThere is no opencl "
        "device.");
  CHECK(choice("", {no_gpu}) == "no cuda device can be used.\nThere is no cuda device.");
  CHECK(choice("cudax", {no_gpu}) == "no cuda device is called \"cudax\".\nThere is no cuda device.");
}

#ifdef NEURAL_ON_CUDA
TEST_CASE("a library is the first of some files that is there, and its functions are found by name") {
  const neural::SharedLibrary library("mathematics", {"libno-such-thing.so.1", "libm.so.6", "libc.so.6"});
  CHECK(library.file() == "libm.so.6");
  CHECK(library.function<double(double)>("floor")(2.5) == 2);
  CHECK_THROWS_WITH_AS((void)library.function<void()>("no_such_function"), "libm.so.6 has no function no_such_function",
                       std::runtime_error);
}

TEST_CASE("where a library is not installed, the error says what was tried") {
  try {
    const neural::SharedLibrary library("cuThing", {"libcuthing.so.13", "libcuthing.so"});
    FAIL("loaded ", library.file());
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()) ==
          "cuThing cannot be loaded (LD_LIBRARY_PATH may say where it is). Tried:\n"
          "  libcuthing.so.13: libcuthing.so.13: cannot open shared object file: No such file or directory\n"
          "  libcuthing.so: libcuthing.so: cannot open shared object file: No such file or directory");
  }
}

TEST_CASE("the CUDA devices are asked for by the runtime, which needs no driver to answer") {
  const std::vector<ApiDevices> apis = neural::api_devices();
  REQUIRE(!apis.empty());
  CHECK(apis.front().name == "cuda");
  if (!apis.front().devices.empty()) {
    CHECK(choice("cuda:0", apis) == "cuda:0");
    return;
  }
  CHECK(choice("cuda", apis).find("no CUDA device can be used.\nThere is no CUDA device") == 0);
}
#endif

TEST_CASE("replicas are on devices of one name in turn, wherever their process begins") {
  const std::vector<ApiDevices> apis{api("cuda", {{"A100"}, {"H200"}, {"A100", false}, {"A100"}, {"A100"}})};
  using Indices = std::vector<std::size_t>;
  CHECK(neural::replica_devices({"cuda", 3}, 0, 3, apis).indices == Indices{3, 0, 4});
  CHECK(neural::replica_devices({"cuda", 3}, 2, 3, apis).indices == Indices{4, 3, 0});
  CHECK(neural::replica_devices({"cuda", 1}, 1, 2, apis).indices == Indices{1, 1});
  const neural::ReplicaDevices shared = neural::replica_devices({"cuda", 0}, 0, 4, apis);
  CHECK(shared.indices == Indices{0, 3, 4, 0});
  CHECK(shared.sharing(0) == 2);
  CHECK(shared.sharing(1) == 1);
}
