// SPDX-License-Identifier: Apache-2.0
// Which device a program gets: choose() on lists made up here, devices() and Backend::pick() on what is installed.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/devices.hpp>

#include "opencl/api_calls.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using swapmm::test::EmptyAnswer;
using swapmm::test::FailingCall;
using swapmm::test::PretendedDeviceValue;
using swapmm::test::says;
using swapmm::test::text_of;

namespace {

opencl::Device device(cl_device_type type, const std::string& name, const std::string& platform,
                      const std::string& obstacle = {}) {
  opencl::Device made;
  made.type = type;
  made.name = name;
  made.platform = platform;
  made.version = "OpenCL 3.0";
  made.memory = Bytes{std::uint64_t{4096} << 20U};
  made.obstacle = obstacle;
  return made;
}

const opencl::Device gpu = device(CL_DEVICE_TYPE_GPU, "Radeon RX 7800", "AMD Accelerated Parallel Processing");
const opencl::Device second_gpu = device(CL_DEVICE_TYPE_GPU, "GeForce 4090", "NVIDIA CUDA");
const opencl::Device accelerator = device(CL_DEVICE_TYPE_ACCELERATOR, "Alveo U50", "Xilinx");
const opencl::Device cpu = device(CL_DEVICE_TYPE_CPU, "pthread-EPYC", "Portable Computing Language");
const opencl::Device oclgrind = device(CL_DEVICE_TYPE_GPU, "Oclgrind Simulator", "Oclgrind");
const opencl::Device llvmpipe = device(CL_DEVICE_TYPE_GPU, "llvmpipe (LLVM 14)", "rusticl");
const opencl::Device softpipe = device(CL_DEVICE_TYPE_GPU, "softpipe", "rusticl");
const opencl::Device broken = device(CL_DEVICE_TYPE_GPU, "Old GPU", "Vendor", "its OpenCL is older than 1.2");

using Devices = std::vector<opencl::Device>;

/// What choose() says when it refuses: it names every device with its index.
std::string refusal(const Devices& all, const std::string& wanted) {
  const std::string text = text_of<UsageError>([&] { (void)opencl::choose(all, wanted); });
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(says(text, {"Available devices:", opencl::describe(all[i], i)}));
  return text;
}

/// SWAPMM_DEVICE has that value as long as this lives.
class WantedDevice {
 public:
  explicit WantedDevice(const std::string& value) {
    if (const char* const before = std::getenv("SWAPMM_DEVICE")) before_ = before;
    ::setenv("SWAPMM_DEVICE", value.c_str(), 1);
  }
  WantedDevice(const WantedDevice&) = delete;
  WantedDevice& operator=(const WantedDevice&) = delete;
  ~WantedDevice() {
    if (before_) {
      ::setenv("SWAPMM_DEVICE", before_->c_str(), 1);
    } else {
      ::unsetenv("SWAPMM_DEVICE");
    }
  }

 private:
  std::optional<std::string> before_;
};

/// The first installed device as devices() sees it while the drivers say something else of it.
opencl::Device seen_with(cl_device_info what, const std::string& text) {
  const PretendedDeviceValue said(what, text);
  return opencl::devices().at(0);
}
opencl::Device seen_with(cl_device_info what, cl_ulong value) {
  const PretendedDeviceValue said(what, value);
  return opencl::devices().at(0);
}

/// Which of the installed devices pick() takes, and what it says.
std::string pick(std::size_t& index) {
  std::ostringstream said;
  const opencl::Backend backend = opencl::Backend::pick(said);
  const Devices all = opencl::devices();
  index = all.size();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].id == backend.device()) index = i;
  }
  return said.str();
}

}  // namespace

TEST_CASE("a GPU comes before an accelerator, that before a CPU, and simulators come last") {
  CHECK(opencl::choose(Devices{cpu, accelerator, gpu}, "") == 2);
  CHECK(opencl::choose(Devices{cpu, gpu, accelerator}, "") == 1);
  CHECK(opencl::choose(Devices{cpu, accelerator}, "") == 1);
  CHECK(opencl::choose(Devices{oclgrind, llvmpipe, cpu}, "") == 2);
  CHECK(opencl::choose(Devices{cpu, llvmpipe, oclgrind}, "") == 0);
  CHECK(opencl::choose(Devices{oclgrind, llvmpipe}, "") == 1);
  CHECK(opencl::choose(Devices{oclgrind}, "") == 0);
  CHECK(opencl::choose(Devices{softpipe, cpu}, "") == 1);
  CHECK(opencl::choose(Devices{softpipe, oclgrind}, "") == 0);
  // A simulator is also known by its platform, and a renderer by its own name.
  CHECK(opencl::choose(Devices{device(CL_DEVICE_TYPE_GPU, "Simulator", "Oclgrind"), cpu}, "") == 1);
}

TEST_CASE("of two equally good devices the first one is taken") {
  CHECK(opencl::choose(Devices{cpu, second_gpu, gpu}, "") == 1);
  CHECK(opencl::choose(Devices{gpu, second_gpu}, "") == 0);
}

TEST_CASE("a device that cannot be used is never taken by itself") {
  CHECK(opencl::choose(Devices{broken, cpu}, "") == 1);
  CHECK(opencl::choose(Devices{broken, oclgrind}, "") == 1);
  CHECK(says(refusal({broken}, ""), {"no OpenCL device can be used", "its OpenCL is older than 1.2"}));
}

TEST_CASE("a device is named by its index") {
  const Devices all{gpu, cpu, oclgrind};
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(opencl::choose(all, std::to_string(i)) == i);
  CHECK(says(refusal(all, "3"), {"no OpenCL device with index 3"}));
  CHECK(says(refusal(all, "99999999999999999999999"), {"no OpenCL device", "99999999999999999999999"}));
  CHECK(says(refusal(all, "-1"), {"no OpenCL device is called \"-1\""}));
}

TEST_CASE("a device is named by a part of its own or its platform's name, in any case") {
  const Devices all{gpu, second_gpu, cpu};
  CHECK(opencl::choose(all, "radeon") == 0);
  CHECK(opencl::choose(all, "RX 7800") == 0);
  CHECK(opencl::choose(all, "nvidia") == 1);
  CHECK(opencl::choose(all, "PORTABLE") == 2);
  CHECK(opencl::choose(all, "ce 4090") == 1);
}

TEST_CASE("a number is an index, also where it stands in a name") {
  CHECK(says(refusal({gpu, second_gpu}, "4090"), {"no OpenCL device with index 4090"}));
}

TEST_CASE("a name that no device has is refused with the list of all") {
  CHECK(says(refusal({gpu, cpu}, "quadro"), {"no OpenCL device is called \"quadro\""}));
}

TEST_CASE("a name that more than one device has is refused, and the index asked for") {
  CHECK(says(refusal({gpu, cpu, gpu}, "radeon"), {"more than one OpenCL device is called \"radeon\"", "index"}));
}

TEST_CASE("a device that cannot be used is refused with the reason, by index and by name") {
  CHECK(says(refusal({cpu, broken}, "1"), {"[1] Old GPU", "was asked for, but its OpenCL is older than 1.2"}));
  CHECK(says(refusal({cpu, broken}, "old"), {"[1] Old GPU", "was asked for, but its OpenCL is older than 1.2"}));
}

TEST_CASE("without any device the refusal says so, and what to install") {
  for (const char* const wanted : {"", "0", "radeon"}) {
    const std::string text = text_of<UsageError>([&] { (void)opencl::choose({}, wanted); });
    CHECK(says(text, {"There is no OpenCL device", "install", "pocl-opencl-icd"}));
  }
}

TEST_CASE("a device is described in one line") {
  CHECK(opencl::describe(gpu, 3) == "[3] Radeon RX 7800 (AMD Accelerated Parallel Processing), GPU, 4096 MiB");
  CHECK(opencl::describe(cpu, 0) == "[0] pthread-EPYC (Portable Computing Language), CPU, 4096 MiB");
  CHECK(says(opencl::describe(accelerator, 0), {"accelerator"}));
  const opencl::Device other = device(CL_DEVICE_TYPE_CUSTOM, "Codec", "Vendor");
  CHECK(opencl::describe(other, 2) == "[2] Codec (Vendor), device, 4096 MiB");
  CHECK(says(opencl::describe(broken, 1), {"(cannot be used: its OpenCL is older than 1.2)"}));
}

TEST_CASE("without a driver there are no devices, which is no error") {
  const FailingCall no_platform("clGetPlatformIDs", -1001);
  CHECK(opencl::devices().empty());
  CHECK(no_platform.happened());
}

TEST_CASE("a loader without a driver and a driver without a device may also answer with none") {
  for (const char* const function : {"clGetPlatformIDs", "clGetDeviceIDs"}) {
    const EmptyAnswer none(function);
    CHECK(opencl::devices().empty());
  }
}

TEST_CASE("drivers that cannot be asked are an error that names the call") {
  for (const std::uint64_t n : {1U, 2U}) {  // how many there are, and which
    const FailingCall failing("clGetPlatformIDs", CL_OUT_OF_HOST_MEMORY, n);
    const std::string text = text_of<BackendError>([] { (void)opencl::devices(); });
    CHECK(text == "clGetPlatformIDs: CL_OUT_OF_HOST_MEMORY (-6)");
  }
}

TEST_CASE("a driver without a device is passed over, and the others are found") {
  const Devices all = opencl::devices();
  REQUIRE_FALSE(all.empty());
  std::size_t others = 0;
  for (const opencl::Device& each : all) others += each.platform != all[0].platform ? 1 : 0;
  const FailingCall failing("clGetDeviceIDs", CL_DEVICE_NOT_FOUND);
  CHECK(opencl::devices().size() == others);
  CHECK(failing.happened());
}

TEST_CASE("a device that cannot be asked is an error that names the call") {
  for (const char* const call : {"clGetDeviceIDs", "clGetDeviceInfo"}) {
    const std::uint64_t n = std::string(call) == "clGetDeviceIDs" ? 2 : 5;  // the first one only counts
    const FailingCall failing(call, CL_OUT_OF_RESOURCES, n);
    const std::string text = text_of<BackendError>([] { (void)opencl::devices(); });
    CHECK(text == std::string(call) + ": CL_OUT_OF_RESOURCES (-5)");
  }
}

TEST_CASE("an installed device knows its name, version and memory") {
  for (const opencl::Device& each : opencl::devices()) {
    CAPTURE(each.name);
    CHECK(each.id != nullptr);
    CHECK_FALSE(each.name.empty());
    CHECK_FALSE(each.platform.empty());
    CHECK(each.version.substr(0, 7) == "OpenCL ");
    CHECK(each.memory.value > 0);
    if (each.platform == "Portable Computing Language") CHECK(each.shares_memory);
  }
}

TEST_CASE("a device older than OpenCL 1.2 cannot be used, and one of an unknown version can") {
  const std::string too_old = "its OpenCL is older than 1.2";
  for (const char* const version : {"OpenCL 0.9 Vendor", "OpenCL 1.0 Vendor", "OpenCL 1.1 Vendor", "OpenCL 0.3"}) {
    CAPTURE(version);
    CHECK(seen_with(CL_DEVICE_VERSION, version).obstacle == too_old);
  }
  for (const char* const version :
       {"OpenCL 1.2 Vendor", "OpenCL 1.10", "OpenCL 2.0 Vendor", "OpenCL 2.1", "OpenCL 3.0", "OpenCL", "Vendor 1.0"}) {
    CAPTURE(version);
    CHECK(seen_with(CL_DEVICE_VERSION, version).obstacle.empty());
    CHECK(seen_with(CL_DEVICE_VERSION, version).version == version);
  }
}

TEST_CASE("a device that is not available, or that runs no programs, cannot be used") {
  CHECK(seen_with(CL_DEVICE_AVAILABLE, CL_FALSE).obstacle == "it is not available");
  CHECK(seen_with(CL_DEVICE_AVAILABLE, CL_TRUE).obstacle.empty());
  CHECK(seen_with(CL_DEVICE_TYPE, CL_DEVICE_TYPE_CUSTOM).obstacle == "it runs no programs");
  for (const auto type : {cl_device_type{CL_DEVICE_TYPE_GPU}, cl_device_type{CL_DEVICE_TYPE_ACCELERATOR},
                          cl_device_type{CL_DEVICE_TYPE_CPU}}) {
    CHECK(seen_with(CL_DEVICE_TYPE, type).obstacle.empty());
    CHECK(seen_with(CL_DEVICE_TYPE, type).type == type);
  }
}

TEST_CASE("a name is what the driver says, without the spaces around it") {
  CHECK(seen_with(CL_DEVICE_NAME, "Radeon RX 7800").name == "Radeon RX 7800");
  CHECK(seen_with(CL_DEVICE_NAME, "   Intel(R)  Core(TM) CPU  \n").name == "Intel(R)  Core(TM) CPU");
  CHECK(seen_with(CL_DEVICE_NAME, "x").name == "x");
  CHECK(seen_with(CL_DEVICE_NAME, "   ").name.empty());
  CHECK(seen_with(CL_DEVICE_NAME, "").name.empty());
}

TEST_CASE("a device shares the host's memory if its driver says so or if it is a processor") {
  for (const auto type : {cl_device_type{CL_DEVICE_TYPE_GPU}, cl_device_type{CL_DEVICE_TYPE_CPU}}) {
    for (const auto unified : {cl_bool{CL_FALSE}, cl_bool{CL_TRUE}}) {
      CAPTURE(type);
      CAPTURE(unified);
      const bool shares = type == CL_DEVICE_TYPE_CPU || unified == CL_TRUE;
      const PretendedDeviceValue said(CL_DEVICE_HOST_UNIFIED_MEMORY, unified);
      CHECK(seen_with(CL_DEVICE_TYPE, type).shares_memory == shares);
      const PretendedDeviceValue of_type(CL_DEVICE_TYPE, type);
      std::ostringstream said_by_pick;
      const opencl::Backend backend = opencl::Backend::pick("0", said_by_pick);
      CHECK(backend.capabilities().host_shares_memory == shares);
      CHECK((said_by_pick.str().find("shares the host's memory") != std::string::npos) == shares);
    }
  }
}

TEST_CASE("pick says the device in one line, and that its memory is the host's where it is") {
  const Devices all = opencl::devices();
  std::size_t index = 0;
  const std::string said = pick(index);
  REQUIRE(index < all.size());
  CHECK(says(said, {"swapmm: ", opencl::describe(all[index], index)}));
  CHECK(said.find('\n') == said.size() - 1);
  CHECK((said.find("shares the host's memory") != std::string::npos) == all[index].shares_memory);
}

TEST_CASE("pick takes the device that SWAPMM_DEVICE names by index or by a part of its name") {
  const Devices all = opencl::devices();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].obstacle.empty()) continue;
    std::size_t index = 0;
    {
      const WantedDevice wanted(std::to_string(i));
      CHECK(says(pick(index), {opencl::describe(all[i], i)}));
    }
    CHECK(index == i);
    if (all.size() > 1) continue;  // a name might be another one's, too
    const WantedDevice wanted(all[i].name.substr(1));
    CHECK(says(pick(index), {opencl::describe(all[i], i)}));
    CHECK(index == i);
  }
}

TEST_CASE("pick refuses a SWAPMM_DEVICE that names nothing, with the list of all devices") {
  const WantedDevice wanted("no such thing");
  const std::string text = text_of<UsageError>([] { (void)opencl::Backend::pick(); });
  CHECK(says(text, {"no OpenCL device is called \"no such thing\"", "Available devices:", "[0] "}));
}

TEST_CASE("pick without any driver says what to install") {
  const FailingCall no_platform("clGetPlatformIDs", -1001);
  CHECK(says(text_of<UsageError>([] { (void)opencl::Backend::pick(); }), {"There is no OpenCL device", "install"}));
}

TEST_CASE("a context that cannot be made is an error that names device and status") {
  const auto before = test::api_objects();
  const FailingCall failing("clCreateContext", CL_OUT_OF_HOST_MEMORY);
  std::ostringstream said;
  try {
    (void)opencl::Backend::pick(said);
    FAIL_CHECK("nothing was thrown");
  } catch (const BackendError& error) {
    CHECK(error.kind == BackendError::Kind::out_of_host_memory);
    CHECK(error.code == CL_OUT_OF_HOST_MEMORY);
    CHECK(says(error.what(), {"clCreateContext for [", "CL_OUT_OF_HOST_MEMORY (-6)"}));
  }
  CHECK(said.str().empty());
  CHECK(test::api_objects() == before);
}
