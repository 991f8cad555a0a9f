// SPDX-License-Identifier: Apache-2.0
// A small OpenCL program that has work in flight, for the ways to exit.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>
#include <vector>

namespace exits {

/// One line to the standard output, at once: it works while the process ends.
void say(const std::string& line);

/// Buffers that are more than a small budget, and commands on them that have not ended.
class Scene {
 public:
  Scene();
  /// Releases everything, and says so if nothing failed.
  ~Scene();
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  /// Queues some work.
  void work();
  /// "right" if the buffers hold what the work so far makes of them.
  [[nodiscard]] std::string result();
  [[nodiscard]] cl_context context() const { return context_; }
  [[nodiscard]] cl_command_queue queue() const { return queue_; }
  [[nodiscard]] cl_mem buffer(std::size_t number) const { return buffers_[number]; }

 private:
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_program program_ = nullptr;
  cl_kernel kernel_ = nullptr;
  std::vector<cl_mem> buffers_;
  cl_uint rounds_ = 0;
};

}  // namespace exits
