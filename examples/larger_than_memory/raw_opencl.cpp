// SPDX-License-Identifier: Apache-2.0
#include "larger_than_memory/raw_opencl.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <swapmm/kernel.h>
#include <swapmm/opencl/program.hpp>  // for the text of kernel.h alone
#include <swapmm/opencl/status.hpp>

namespace wave {
namespace {

using swapmm::opencl::check;
using swapmm::opencl::Handle;

// What a view of kernel.h takes: two arguments.
struct Field {
  Handle<cl_mem> buffer;
  swapmm_layout layout{};
};

Handle<cl_program> build(cl_context context, cl_device_id device) {
  std::array texts{swapmm::opencl::kernel_header.data(), kernels.data()};
  const std::array sizes{swapmm::opencl::kernel_header.size(), kernels.size()};
  cl_int status = CL_SUCCESS;
  Handle<cl_program> program(clCreateProgramWithSource(context, 2, texts.data(), sizes.data(), &status));
  check(status, "clCreateProgramWithSource");
  check(clBuildProgram(program.get(), 1, &device, "", nullptr, nullptr), "clBuildProgram");
  return program;
}

class Shooting {
 public:
  Shooting(cl_context context, cl_device_id device, const Problem& problem)
      : problem_(problem), context_(context), program_(build(context, device)) {
    cl_int status = CL_SUCCESS;
    queue_.reset(clCreateCommandQueue(context, device, 0, &status));
    check(status, "clCreateCommandQueue");
    for (Field* block : {&now_, &other_, &back_now_, &back_other_, &rock_, &image_}) *block = field(problem.size);
    for (std::size_t i = 0; i < checkpoints(problem); ++i) checkpoints_.push_back(field(problem.size));
    record_ = field(problem.steps);
    upload(rock_, rock(problem));
    upload(image_, std::vector<float>(cells(problem)));
  }
  ~Shooting() { clFinish(queue_.get()); }  // buffers may go once nothing uses them

  void shoot(std::size_t shot) {
    forward(shot);
    backward();
  }
  [[nodiscard]] Result result() const {
    return {download(image_), download(record_), download(now_), download(back_now_)};
  }

 private:
  void forward(std::size_t shot) {
    run(silence_, block_, now_);
    run(silence_, block_, other_);
    const auto [z, y, x] = source(problem_, shot);
    for (std::size_t step = 0; step < problem_.steps; ++step) {
      run(fire_, {1, 1, 1}, now_, z, y, x, loudness(step));
      run(advance_, block_, now_, rock_, other_, whole_, whole_, size_);
      std::swap(now_, other_);
      run(record_kernel_, plane_, now_, record_, receiver_depth(problem_), static_cast<std::int64_t>(step));
      if ((step + 1) % problem_.every == 0) run(keep_, block_, now_, checkpoints_[step / problem_.every]);
    }
  }
  void backward() {
    run(silence_, block_, back_now_);
    run(silence_, block_, back_other_);
    for (std::size_t step = problem_.steps; step-- > 0;) {
      run(play_, plane_, record_, back_now_, receiver_depth(problem_), static_cast<std::int64_t>(step));
      if ((step + 1) % problem_.every == 0) {
        run(correlate_, block_, checkpoints_[step / problem_.every], back_now_, image_);
      }
      run(advance_, block_, back_now_, rock_, back_other_, whole_, whole_, size_);
      std::swap(back_now_, back_other_);
    }
  }

  using Items = std::array<std::size_t, 3>;  // of work, the fastest dimension first

  template <class... Arguments>
  void run(const Handle<cl_kernel>& kernel, const Items& items, const Arguments&... arguments) {
    cl_uint index = 0;
    (set(kernel.get(), index, arguments), ...);
    check(clEnqueueNDRangeKernel(queue_.get(), kernel.get(), 3, nullptr, items.data(), nullptr, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
  }
  static void set(cl_kernel kernel, cl_uint& index, const Field& field) {
    const cl_mem buffer = field.buffer.get();
    set(kernel, index, buffer);
    set(kernel, index, field.layout);
  }
  template <class T>
  static void set(cl_kernel kernel, cl_uint& index, const T& value) {
    check(clSetKernelArg(kernel, index++, sizeof value, &value), "clSetKernelArg");
  }

  [[nodiscard]] Field field(std::size_t planes) const {
    const auto side = static_cast<swapmm_index>(problem_.size);
    Field made;
    made.layout = {{static_cast<swapmm_index>(planes), side, side, 1, 1, 1}, {side * side, side, 1}, 3};
    cl_int status = CL_SUCCESS;
    made.buffer.reset(clCreateBuffer(context_, CL_MEM_READ_WRITE, count(made) * sizeof(float), nullptr, &status));
    check(status, "clCreateBuffer");
    return made;
  }
  static std::size_t count(const Field& field) {
    return static_cast<std::size_t>(field.layout.extents[0] * field.layout.strides[0]);
  }
  void upload(const Field& to, const std::vector<float>& values) const {
    check(clEnqueueWriteBuffer(queue_.get(), to.buffer.get(), CL_TRUE, 0, values.size() * sizeof(float), values.data(),
                               0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
  }
  [[nodiscard]] std::vector<float> download(const Field& from) const {
    std::vector<float> values(count(from));
    check(clEnqueueReadBuffer(queue_.get(), from.buffer.get(), CL_TRUE, 0, values.size() * sizeof(float), values.data(),
                              0, nullptr, nullptr),
          "clEnqueueReadBuffer");
    return values;
  }
  [[nodiscard]] Handle<cl_kernel> kernel(const char* name) const {
    cl_int status = CL_SUCCESS;
    Handle<cl_kernel> made(clCreateKernel(program_.get(), name, &status));
    check(status, name);
    return made;
  }

  Problem problem_;
  Items block_{problem_.size, problem_.size, problem_.size};
  Items plane_{problem_.size, problem_.size, 1};
  std::int64_t size_ = static_cast<std::int64_t>(problem_.size);
  static constexpr std::int64_t whole_ = 0;  // the first plane of a whole field
  cl_context context_;
  Handle<cl_program> program_;
  Handle<cl_command_queue> queue_;
  Field now_, other_, back_now_, back_other_, rock_, image_, record_;
  std::vector<Field> checkpoints_;
  Handle<cl_kernel> silence_ = kernel("silence");
  Handle<cl_kernel> fire_ = kernel("fire");
  Handle<cl_kernel> advance_ = kernel("advance");
  Handle<cl_kernel> record_kernel_ = kernel("record");
  Handle<cl_kernel> play_ = kernel("play");
  Handle<cl_kernel> keep_ = kernel("keep");
  Handle<cl_kernel> correlate_ = kernel("correlate");
};

}  // namespace

Result run_raw_opencl(cl_context context, cl_device_id device, const Problem& problem) {
  Shooting shooting(context, device, problem);
  for (std::size_t shot = 0; shot < problem.shots; ++shot) shooting.shoot(shot);
  return shooting.result();
}

}  // namespace wave
