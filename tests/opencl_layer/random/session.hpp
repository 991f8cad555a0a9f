// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a schedule through OpenCL, and compares everything that the host sees with the model.
#pragma once

#include <CL/cl.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "program.hpp"
#include "schedule.hpp"

namespace random_opencl {

/// The first device of the first platform that has one; null if there is none.
cl_device_id first_device();
/// Why the programs cannot run there; empty if they can.
std::string missing_in(cl_device_id device);
bool has_images(cl_device_id device);

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The steps that are running now, one of each thread. For the report of a run that hangs.
extern std::atomic<int> running_steps[4];

class Session {
 public:
  Session(cl_device_id device, const Program& program, const Schedule& schedule);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  /// Runs all steps and releases everything. Returns a digest of what the host has seen. If something is wrong, it
  /// prints what and ends the process with 1, since other threads may be inside OpenCL.
  std::uint64_t run();

 private:
  struct Argument {
    Bytes identity;  // equal to that of the call before: need not be set again
    std::size_t size = 0;
    const void* value = nullptr;
  };
  struct KernelObject {
    cl_kernel handle = nullptr;
    std::vector<Bytes> set;  // the identities of its arguments
  };
  /// What belongs to one thread.
  struct Worker {
    std::map<std::tuple<int, Kernel, int>, KernelObject> kernels;
    std::vector<std::thread> setters;
    std::vector<cl_kernel> clones;
  };
  struct Mapped {
    std::uint8_t* pointer = nullptr;
    std::size_t row = 0;
  };

  void run_thread(int section, int thread);
  void run_step(Worker& worker, int number);
  void run_command(Worker& worker, const Step& step, int number);
  void create(const Step& step);
  void create_queue(int number);
  void query(int id);
  void transfer(const Step& step, int number);
  void copy(const Step& step, int number);
  void fill(const Step& step, int number);
  void map(const Step& step, int number);
  void unmap(const Step& step, int number);
  void touch(const Step& step, int number);
  void launch(Worker& worker, const Step& step, int number);
  void run_native(const Step& step, int number);
  bool shared_command(const Step& step, int number);
  void enqueue_launch(cl_kernel kernel, const Step& step, int number);
  void set_arguments(KernelObject& kernel, const Step& step);
  void mark(const Step& step, int number);
  void set_user_event(Worker& worker, const Step& step);
  void wait(const Step& step);
  void wait_for_failure(const Step& step);
  void set_callback(int number);
  void check_read(const Step& step, int number);
  void compare(const Step& step, int number, const std::uint8_t* found, std::size_t row);
  void inspect(int which, int number);
  void release_worker(Worker& worker);
  void release_everything();
  void wait_for_callbacks();

  std::vector<cl_event> waits_of(const Step& step) const;
  cl_event* event_of(const Step& step, int number);
  void note(int number, std::uint64_t seen);
  cl_mem memory(int object) const { return memories_[static_cast<std::size_t>(object)]; }
  const Object& object(int id) const { return program_.objects[static_cast<std::size_t>(id)]; }
  cl_command_queue queue(const Step& step) const { return queues_[static_cast<std::size_t>(step.what.queue)]; }

  cl_device_id device_;
  const Program& program_;
  const Schedule& schedule_;
  std::vector<cl_context> contexts_;
  std::vector<cl_program> programs_;
  std::vector<cl_command_queue> queues_;
  std::vector<cl_mem> memories_;
  std::vector<Bytes> object_memory_;   // of USE_HOST_PTR
  std::vector<std::uint8_t*> shared_;  // shared virtual memory
  std::vector<cl_event> events_;       // by step
  std::vector<Mapped> mapped_;         // by step
  std::vector<Bytes> host_memory_;     // by step
  std::vector<std::uint64_t> seen_;    // by step
  std::vector<Worker> workers_;
  std::atomic<int> callbacks_{0};
  std::atomic<int> wrong_callbacks_{0};
  int expected_callbacks_ = 0;
  std::atomic<int> destroyed_{0};
  std::atomic<int> expected_destroyed_{0};
};

/// Throws Failure if it is not CL_SUCCESS.
void ok(cl_int status, const char* call);

}  // namespace random_opencl
