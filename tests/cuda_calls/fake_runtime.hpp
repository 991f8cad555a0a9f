// SPDX-License-Identifier: Apache-2.0
#pragma once

// The CUDA runtime's functions that the backend calls, defined by the test program itself. Nothing runs: calls are
// written down and checked (live objects, the right device, ranges inside of allocations, the order of accesses, the
// rules of captures), a call can be made to fail, and events are complete as late as a seed likes.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda_calls/order_checker.hpp"

namespace swapmm::test::fake_cuda {

struct FakeDevice {
  std::string name = "Fake GPU";
  std::size_t memory = std::size_t{1} << 30U;
  bool integrated = false;
  int copy_engines = 2;       ///< what it says
  int real_copy_engines = 2;  ///< what its clock does
  std::string bus = "0000:3B:00.0";
  double h2d_gb_per_s = 10;     ///< of its clock
  double d2h_gb_per_s = 12.5;   ///< likewise
  double fill_gb_per_s = 1000;  ///< likewise
  bool reaches_others = true;   ///< other devices may access its memory
  double peer_gb_per_s = 50;    ///< of its clock, with other devices
};

/// One call that did what it should.
struct Call {
  std::string function;
  const void* stream = nullptr;
  const void* event = nullptr;
  const void* to = nullptr;
  const void* from = nullptr;
  std::size_t size = 0;
  int number = 0;  ///< a kind, flags, a device
};

/// Objects that were made and not destroyed.
struct Objects {
  std::int64_t streams = 0;
  std::int64_t events = 0;
  std::int64_t device_memories = 0;
  std::int64_t host_memories = 0;
  std::int64_t graphs = 0;
  friend bool operator==(const Objects&, const Objects&) = default;
};
std::ostream& operator<<(std::ostream& out, const Objects& objects);

/// Forgets everything: these devices, no calls, no objects. Objects of before must be gone.
void restart(std::vector<FakeDevice> devices = {FakeDevice{}}, std::uint64_t seed = 1);
/// What cudaGetDeviceCount returns, instead of the devices.
void set_device_count_status(cudaError_t status);
/// Chance in percent that cudaEventQuery says an event has ended whose end nobody has waited for. Default 50.
void set_query_luck(unsigned percent);

[[nodiscard]] const std::vector<Call>& calls();
void clear_calls();
[[nodiscard]] std::size_t count(const std::string& function);
[[nodiscard]] const Objects& objects();
/// Bytes allocated on the device now.
[[nodiscard]] std::size_t device_bytes();
/// What was done against the rules so far, at most 20 texts.
[[nodiscard]] const std::vector<std::string>& violations();
/// The thread's current device, as the runtime keeps it.
[[nodiscard]] int current_device();

/// A kernel, as user code would launch it: reads and writes are declared. Launches may fail as planned by FailingCall
/// "launch", which leaves the error where cudaGetLastError() finds it, as a launch with <<<>>> does.
void launch(cudaStream_t stream, const std::vector<ByteAccess>& accesses, const std::string& name = "kernel");
/// The host reads or writes these bytes itself.
void host_access(const void* begin, std::size_t size, bool write, const std::string& name = "the host");

/// The function of the host that runs now, queued on a stream, reads or writes these bytes. Outside of such a function
/// it is the host that does.
void function_access(const void* begin, std::size_t size, bool write, const std::string& name);

/// The n-th call of that function ("any": of all but those that ask and set the device) from now on (1: the next one)
/// does nothing and returns the status. Clean-up is done all the same. One at a time.
class FailingCall {
 public:
  FailingCall(std::string function, cudaError_t status, std::uint64_t n = 1);
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;
  ~FailingCall();
  [[nodiscard]] bool happened() const;
};

/// From the n-th call on that can fail, every call returns the status, which sticks.
class LosingDevice {
 public:
  LosingDevice(cudaError_t status, std::uint64_t n);
  LosingDevice(const LosingDevice&) = delete;
  LosingDevice& operator=(const LosingDevice&) = delete;
  ~LosingDevice();
  [[nodiscard]] bool happened() const;
};

}  // namespace swapmm::test::fake_cuda
