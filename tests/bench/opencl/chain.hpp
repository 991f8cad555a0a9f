// SPDX-License-Identifier: Apache-2.0
#pragma once

// The chain of the peers as a list of operations, for programs that run it twice: with swapmm and without.

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <swapmm/opencl/program.hpp>
#include <swapmm/swapmm.hpp>

#include "peers/chain_kernels.h"

namespace bench {

using Device = swapmm::opencl::Backend;
using Floats = swapmm::Tensor<float, Device>;

/// Tensors of a chain of `layers`: weights 0 to layers - 1, activations layers to 2 layers, the gradient.
struct Chain {
  enum class Kind { forward, loss, backward };
  struct Step {
    Kind kind;
    std::array<std::size_t, 3> tensors;  ///< in the order of the kernel's arguments; loss has two
  };

  explicit Chain(std::size_t layers) : tensors(2 * layers + 2) {
    const auto weight = [](std::size_t i) { return i; };
    const auto activation = [&](std::size_t i) { return layers + i; };
    const std::size_t gradient = 2 * layers + 1;
    for (std::size_t i = 0; i < layers; ++i) {
      steps.push_back({Kind::forward, {activation(i), weight(i), activation(i + 1)}});
    }
    steps.push_back({Kind::loss, {activation(layers), gradient, gradient}});
    for (std::size_t i = layers; i-- > 0;) steps.push_back({Kind::backward, {gradient, weight(i), activation(i)}});
    for (std::size_t i = 0; i <= layers; ++i) persistent.push_back(i);  // the weights and the first activation
  }

  std::size_t tensors;
  std::vector<Step> steps;
  std::vector<std::size_t> persistent;
};

/// What the peers begin with, so that checksums are equal.
inline std::vector<float> first_values(const Chain& chain, std::size_t tensor, std::size_t n) {
  const bool is_weight = tensor != chain.persistent.back();
  std::vector<float> values(n);
  for (std::size_t j = 0; j < n; ++j) {
    values[j] =
        is_weight ? static_cast<float>((j * 31 + tensor * 17) % 101) / 101.F : static_cast<float>(j % 97) / 97.F;
  }
  return values;
}
constexpr std::size_t group = 1024;  ///< work items, as the peers have it

struct Kernels {
  explicit Kernels(const Device& device)
      : program(device, chain_src),
        forward(program.kernel("fwd")),
        loss(program.kernel("loss")),
        backward(program.kernel("bwd")) {}
  swapmm::opencl::Program program;
  swapmm::opencl::Kernel forward;
  swapmm::opencl::Kernel loss;
  swapmm::opencl::Kernel backward;

  /// Sets the arguments of the step's kernel. `buffer(i)` is the cl_mem of its i-th tensor.
  template <class Buffer>
  const swapmm::opencl::Kernel& set(Chain::Kind kind, int inner, Buffer&& buffer) {
    if (kind == Chain::Kind::loss) return loss.set(buffer(0), buffer(1));
    swapmm::opencl::Kernel& kernel = kind == Chain::Kind::forward ? forward : backward;
    return kernel.set(buffer(0), buffer(1), buffer(2), inner);
  }
};

/// The chain on a manager.
class Managed {
 public:
  Managed(swapmm::MemoryManager<Device>& manager, const Chain& chain, Kernels& kernels, std::size_t n, int inner)
      : manager_(manager), chain_(chain), kernels_(kernels), n_(n), inner_(inner) {
    for (std::size_t i = 0; i < chain.tensors; ++i) {
      tensors_.push_back(manager.tensor<float>({n}, "tensor " + std::to_string(i)));
    }
    for (const std::size_t i : chain.persistent) tensors_[i].upload(first_values(chain, i, n));
  }

  void iterate() {
    auto iteration = manager_.iteration("chain");
    for (const Chain::Step& step : chain_.steps) {
      const Floats& a = tensors_[step.tensors[0]];
      const Floats& b = tensors_[step.tensors[1]];
      const Floats& c = tensors_[step.tensors[2]];
      const auto queue_it = [&](auto& op, swapmm::opencl::WaitList waits) {
        const auto& kernel = kernels_.set(step.kind, inner_, [&](int i) {
          const Floats& tensor = i == 0 ? a : i == 1 ? b : c;
          return op[tensor].buffer();
        });
        return kernel.enqueue(op.queue(), {n_}, {group}, waits);
      };
      switch (step.kind) {
        case Chain::Kind::forward: manager_.run("forward", swapmm::reads(a, b), swapmm::writes(c), queue_it); break;
        case Chain::Kind::loss: manager_.run("loss", swapmm::reads(a), swapmm::writes(b), queue_it); break;
        case Chain::Kind::backward: manager_.run("backward", swapmm::updates(a, b), swapmm::reads(c), queue_it); break;
      }
    }
  }

  [[nodiscard]] std::vector<float> value(std::size_t tensor) { return tensors_[tensor].download(); }

 private:
  swapmm::MemoryManager<Device>& manager_;
  const Chain& chain_;
  Kernels& kernels_;
  std::size_t n_;
  int inner_;
  std::vector<Floats> tensors_;
};

/// How a program without swapmm may allocate: drivers and caches treat the two differently.
enum class Allocation { buffer_each, parts_of_one };

/// The chain on buffers that are all there, on one in-order queue, as a program without swapmm would have it.
class Raw {
 public:
  Raw(const Device& device, const Chain& chain, Kernels& kernels, std::size_t n, int inner, Allocation allocation)
      : chain_(chain), kernels_(kernels), n_(n), inner_(inner) {
    cl_int status = CL_SUCCESS;
    queue_.reset(clCreateCommandQueue(device.context(), device.device(), 0, &status));
    swapmm::opencl::check(status, "clCreateCommandQueue");
    const std::size_t bytes = n * sizeof(float);
    if (allocation == Allocation::parts_of_one) {
      all_.reset(clCreateBuffer(device.context(), CL_MEM_READ_WRITE, chain.tensors * bytes, nullptr, &status));
      swapmm::opencl::check(status, "clCreateBuffer");
    }
    for (std::size_t i = 0; i < chain.tensors; ++i) {
      const cl_buffer_region part{i * bytes, bytes};
      buffers_.emplace_back(all_ ? clCreateSubBuffer(all_.get(), 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &status)
                                 : clCreateBuffer(device.context(), CL_MEM_READ_WRITE, bytes, nullptr, &status));
      swapmm::opencl::check(status, "clCreateBuffer or clCreateSubBuffer");
    }
    for (const std::size_t i : chain.persistent) {
      const std::vector<float> values = first_values(chain, i, n);
      swapmm::opencl::check(clEnqueueWriteBuffer(queue_.get(), buffers_[i].get(), CL_TRUE, 0, n * sizeof(float),
                                                 values.data(), 0, nullptr, nullptr),
                            "clEnqueueWriteBuffer");
    }
  }

  void iterate() {
    for (const Chain::Step& step : chain_.steps) {
      kernels_.set(step.kind, inner_, [&](int i) { return buffers_[step.tensors[static_cast<std::size_t>(i)]].get(); })
          .enqueue(queue_.get(), {n_}, {group});
    }
  }
  void finish() { swapmm::opencl::check(clFinish(queue_.get()), "clFinish"); }

  [[nodiscard]] std::vector<float> value(std::size_t tensor) {
    std::vector<float> values(n_);
    swapmm::opencl::check(clEnqueueReadBuffer(queue_.get(), buffers_[tensor].get(), CL_TRUE, 0, n_ * sizeof(float),
                                              values.data(), 0, nullptr, nullptr),
                          "clEnqueueReadBuffer");
    return values;
  }

 private:
  const Chain& chain_;
  Kernels& kernels_;
  std::size_t n_;
  int inner_;
  swapmm::opencl::Handle<cl_command_queue> queue_;
  swapmm::opencl::Handle<cl_mem> all_;
  std::vector<swapmm::opencl::Handle<cl_mem>> buffers_;
};

}  // namespace bench
