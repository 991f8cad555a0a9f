// SPDX-License-Identifier: Apache-2.0
#pragma once

// The test program stands between the library and OpenCL's loader: it defines functions of the API itself, counts what
// passes, and can make a call fail. So what the driver was really asked for is known, from whatever library it came.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <swapmm/opencl/handle.hpp>

namespace swapmm::test {

/// What the API was asked for since the program began, or since reset_api_calls().
struct ApiCalls {
  std::uint64_t buffers_made = 0;
  std::uint64_t device_bytes = 0;       ///< of buffers made; those in host memory (CL_MEM_ALLOC_HOST_PTR) apart
  std::uint64_t most_device_bytes = 0;  ///< of those buffers that were there at one time
  std::uint64_t host_bytes = 0;
  std::uint64_t sub_buffers_made = 0;
  std::uint64_t sub_buffers_out_of_order = 0;  ///< released before one that was made later and overlaps
  std::uint64_t queues_made = 0;
  std::uint64_t kernels = 0;
  std::uint64_t writes = 0;
  std::uint64_t reads = 0;
  std::uint64_t markers = 0;
  std::uint64_t barriers = 0;
  std::uint64_t flushes = 0;
  std::uint64_t finishes = 0;
  std::uint64_t host_waits = 0;
};
[[nodiscard]] const ApiCalls& api_calls();
void reset_api_calls();

/// Objects that the API made and that were not released yet, by reference counts: buffers and sub-buffers, queues,
/// contexts.
struct ApiObjects {
  std::int64_t memories = 0;
  std::int64_t queues = 0;
  std::int64_t contexts = 0;
  std::int64_t events = 0;
  friend bool operator==(const ApiObjects&, const ApiObjects&) = default;
};
[[nodiscard]] const ApiObjects& api_objects();
std::ostream& operator<<(std::ostream& out, const ApiObjects& objects);

/// The n-th call of that function from now on (1: the next one) does nothing and returns the status. One at a time.
/// Only clFinish and clEnqueueUnmapMemObject do their work, too: memory that goes while it is mapped would be the next
/// test's.
class FailingCall {
 public:
  /// `then_all`: all later calls of the function fail, too.
  FailingCall(const char* function, cl_int status, std::uint64_t n = 1, bool then_all = false);
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;
  ~FailingCall();
  [[nodiscard]] bool happened() const;
};

/// From the n-th call on that can fail, whichever it is, the device is gone: what is queued has ended, and every call
/// returns the status. With n = 0 it was gone before, and nothing ends any more. One at a time.
class LosingDevice {
 public:
  LosingDevice(cl_int status, std::uint64_t n);
  LosingDevice(const LosingDevice&) = delete;
  LosingDevice& operator=(const LosingDevice&) = delete;
  ~LosingDevice();
  [[nodiscard]] bool happened() const;
  [[nodiscard]] std::uint64_t refused_calls() const;  ///< calls that returned the status
};

/// As long as it lives, clGetDeviceInfo answers that question with that number or text, for every device. One at a time
/// for each question.
class PretendedDeviceValue {
 public:
  PretendedDeviceValue(cl_device_info what, cl_ulong value);
  PretendedDeviceValue(cl_device_info what, const std::string& text);
  PretendedDeviceValue(const PretendedDeviceValue&) = delete;
  PretendedDeviceValue& operator=(const PretendedDeviceValue&) = delete;
  ~PretendedDeviceValue();

 private:
  cl_device_info what_;
};

/// As long as it lives, clEnqueueWriteBuffer takes the bytes while it queues the command, as NVIDIA's driver does with
/// small pieces of memory that is not page-locked, and the device is one of NVIDIA's. At its end nothing may be queued
/// any more. One at a time.
class EagerWrites {
 public:
  EagerWrites();
  EagerWrites(const EagerWrites&) = delete;
  EagerWrites& operator=(const EagerWrites&) = delete;
  ~EagerWrites();

 private:
  PretendedDeviceValue vendor_;
};

/// As long as it lives, that function (clGetPlatformIDs or clGetDeviceIDs) finds nothing, which is a success. One at a
/// time.
class EmptyAnswer {
 public:
  explicit EmptyAnswer(const char* function);
  EmptyAnswer(const EmptyAnswer&) = delete;
  EmptyAnswer& operator=(const EmptyAnswer&) = delete;
  ~EmptyAnswer();
};

/// As long as it lives, no event is said to be complete: who wants to know waits, however fast the device is. One at a
/// time.
class LateNews {
 public:
  LateNews();
  LateNews(const LateNews&) = delete;
  LateNews& operator=(const LateNews&) = delete;
  ~LateNews();
};

/// As long as it lives, every event that is complete is said to have failed with that status. Not together with
/// LateNews.
class BadNews {
 public:
  explicit BadNews(cl_int status);
  BadNews(const BadNews&) = delete;
  BadNews& operator=(const BadNews&) = delete;
  ~BadNews();
};

/// The next questions for the time of an event have these answers, in this order. One at a time.
class PretendedTimes {
 public:
  explicit PretendedTimes(std::vector<cl_ulong> answers);
  PretendedTimes(const PretendedTimes&) = delete;
  PretendedTimes& operator=(const PretendedTimes&) = delete;
  ~PretendedTimes();
};

}  // namespace swapmm::test
