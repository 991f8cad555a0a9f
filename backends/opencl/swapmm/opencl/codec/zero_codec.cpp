// SPDX-License-Identifier: Apache-2.0
#include <swapmm/opencl/codec/zero_codec.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <swapmm/base/error.hpp>
#include <swapmm/opencl/codec/zero_kernels.hpp>
#include <swapmm/opencl/program.hpp>
#include <swapmm/opencl/status.hpp>

namespace swapmm::opencl {

namespace detail {

namespace {

constexpr std::size_t group_size = 128;                            // work items
constexpr std::uint64_t most_groups = std::uint64_t{1} << 24U;     // of a launch: work items fit 32 bits
constexpr std::array<std::uint32_t, 4> element_sizes{1, 2, 4, 8};  // bytes

// One program for all sizes of an element.
std::string source() {
  std::string text(zero_kernels);
  for (const std::uint32_t size : element_sizes) {
    text.append("\n#define SWAPMM_ZERO_ELEMENT_BYTES ").append(std::to_string(size)).append("\n");
    text.append(zero_element_kernels);
  }
  return text;
}

Kernel kernel_of(const Program& program, const Backend& backend, const std::string& name) {
  Kernel kernel = program.kernel(name);
  std::size_t most = 0;
  check(
      clGetKernelWorkGroupInfo(kernel.get(), backend.device(), CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr),
      "clGetKernelWorkGroupInfo");
  if (most < group_size) {
    throw UsageError("the zero codec needs groups of " + std::to_string(group_size) +
                     " work items, and the device runs " + std::to_string(most) + " of kernel " + name);
  }
  return kernel;
}

}  // namespace

/// The kernels that depend on the size of an element.
struct ElementKernels {
  Kernel count;
  Kernel pack;
  Kernel unpack;
};

class ZeroKernels {
 public:
  explicit ZeroKernels(const Backend& backend) : ZeroKernels(backend, Program(backend, source())) {}

  [[nodiscard]] ElementKernels& of(const ZeroElements& elements) {
    return elements_[static_cast<std::size_t>(std::countr_zero(elements.element_bytes))];
  }

  Kernel scan_chunks;
  Kernel begin_encode;
  Kernel begin_decode;
  Kernel move;

 private:
  ZeroKernels(const Backend& backend, const Program& program)
      : scan_chunks(kernel_of(program, backend, "swapmm_zero_scan_chunks")),
        begin_encode(kernel_of(program, backend, "swapmm_zero_begin_encode")),
        begin_decode(kernel_of(program, backend, "swapmm_zero_begin_decode")),
        move(kernel_of(program, backend, "swapmm_zero_move")),
        elements_{element_kernels(program, backend, 1), element_kernels(program, backend, 2),
                  element_kernels(program, backend, 4), element_kernels(program, backend, 8)} {}

  static ElementKernels element_kernels(const Program& program, const Backend& backend, std::uint32_t size) {
    const auto kernel = [&](const std::string& name) {
      return kernel_of(program, backend, "swapmm_zero_" + name + "_" + std::to_string(size));
    };
    return {kernel("count"), kernel("pack"), kernel("unpack")};
  }

  std::array<ElementKernels, element_sizes.size()> elements_;
};

namespace {

std::size_t size_of(cl_mem buffer, std::string_view what) {
  std::size_t size = 0;
  if (buffer == nullptr || clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, nullptr) != CL_SUCCESS) {
    throw UsageError("the zero codec was given no buffer for " + std::string(what));
  }
  return size;
}

void require(cl_mem buffer, Bytes least, std::string_view what) {
  const std::size_t size = size_of(buffer, what);
  if (size < least.value) {
    throw UsageError("the buffer for " + std::string(what) + " has " + std::to_string(size) + " bytes, and " +
                     std::to_string(least.value) + " are needed");
  }
}

void check_buffers(const ZeroElements& elements, cl_mem plain, cl_mem encoded, Bytes least_encoded, cl_mem scratch) {
  require(scratch, zero_scratch(elements), "scratch memory");  // checks the elements as well
  require(encoded, least_encoded, "the encoded value");
  if (elements.count != 0) require(plain, Bytes{elements.count * elements.element_bytes}, "the elements");
  if (plain == encoded || plain == scratch || encoded == scratch) {
    throw UsageError("the zero codec was given one buffer for two purposes");
  }
}

/// Queues kernels that run one after the other, the first of them after the given events.
class Sequence {
 public:
  Sequence(cl_command_queue queue, std::span<const cl_event> waits) : queue_(queue), waits_(waits) {}

  void run(const Kernel& kernel, std::uint64_t groups, std::string_view name) {
    const std::size_t items = static_cast<std::size_t>(groups) * group_size;
    const cl_event before = last_.get();
    const std::span<const cl_event> waits = before != nullptr ? std::span(&before, 1) : waits_;
    cl_event event = nullptr;
    check(clEnqueueNDRangeKernel(queue_, kernel.get(), 1, nullptr, &items, &group_size,
                                 static_cast<cl_uint>(waits.size()), waits.empty() ? nullptr : waits.data(), &event),
          name);
    last_.reset(event);
  }

  /// Calls queue(first, count) for parts of `groups` groups that a launch can take.
  template <class Queue>
  void in_parts(std::uint64_t groups, Queue&& queue) {
    for (std::uint64_t first = 0; first < groups; first += most_groups) {
      queue(static_cast<std::int64_t>(first), std::min(most_groups, groups - first));
    }
  }

  [[nodiscard]] Handle<cl_event> end() { return std::move(last_); }

 private:
  cl_command_queue queue_;
  std::span<const cl_event> waits_;
  Handle<cl_event> last_;
};

/// Replaces the counts of blocks by sums. They begin at 32-bit word `at` of `counts`, which has `words` of them.
void scan_chunks(Sequence& sequence, Kernel& kernel, const ZeroElements& elements, cl_mem counts, std::int64_t words,
                 std::int64_t at, cl_mem scratch) {
  const std::uint64_t chunks = swapmm::detail::pieces_of(zero_blocks(elements), swapmm::detail::zero_chunk);
  sequence.in_parts(chunks, [&](std::int64_t first, std::uint64_t count) {
    kernel.set(counts, words, at, scratch, static_cast<std::int64_t>(elements.count), first);
    sequence.run(kernel, count, "the kernel swapmm_zero_scan_chunks");
  });
}

/// The number of 32-bit words, and the place of the blocks' counts among them.
std::int64_t words_of(Bytes size) { return static_cast<std::int64_t>(size.value / 4); }
std::int64_t first_count(const ZeroElements& elements) {
  return words_of(zero_scratch(elements)) - static_cast<std::int64_t>(zero_blocks(elements));
}

}  // namespace

}  // namespace detail

ZeroCodec::ZeroCodec(const Backend& backend) : kernels_(std::make_unique<detail::ZeroKernels>(backend)) {}
ZeroCodec::ZeroCodec(ZeroCodec&& other) noexcept = default;
ZeroCodec& ZeroCodec::operator=(ZeroCodec&& other) noexcept = default;
ZeroCodec::~ZeroCodec() = default;

Handle<cl_event> ZeroCodec::encode(cl_command_queue queue, const ZeroElements& elements, cl_mem plain, cl_mem encoded,
                                   cl_mem scratch, std::span<const cl_event> waits) {
  detail::check_buffers(elements, plain, encoded, zero_worst_case(elements), scratch);
  const auto n = static_cast<std::int64_t>(elements.count);
  detail::ElementKernels& kernels = kernels_->of(elements);
  detail::Sequence sequence(queue, waits);
  sequence.in_parts(zero_blocks(elements), [&](std::int64_t first, std::uint64_t groups) {
    sequence.run(kernels.count.set(plain, scratch, n, first), groups, "the kernel swapmm_zero_count");
  });
  detail::scan_chunks(sequence, kernels_->scan_chunks, elements, scratch, detail::words_of(zero_scratch(elements)),
                      detail::first_count(elements), scratch);
  Kernel& begin = kernels_->begin_encode.set(encoded, scratch, n, std::int64_t{elements.element_bytes});
  sequence.run(begin, 1, "the kernel swapmm_zero_begin_encode");
  sequence.in_parts(zero_blocks(elements), [&](std::int64_t first, std::uint64_t groups) {
    sequence.run(kernels.pack.set(plain, encoded, scratch, n, first), groups, "the kernel swapmm_zero_pack");
  });
  return sequence.end();
}

Handle<cl_event> ZeroCodec::decode(cl_command_queue queue, const ZeroElements& elements, cl_mem encoded, cl_mem plain,
                                   cl_mem scratch, std::span<const cl_event> waits) {
  detail::check_buffers(elements, plain, encoded, Bytes{sizeof(ZeroHeader)}, scratch);
  const auto n = static_cast<std::int64_t>(elements.count);
  const Bytes size{detail::size_of(encoded, "the encoded value")};
  detail::ElementKernels& kernels = kernels_->of(elements);
  detail::Sequence sequence(queue, waits);
  detail::scan_chunks(sequence, kernels_->scan_chunks, elements, encoded, detail::words_of(size),
                      std::int64_t{sizeof(ZeroHeader) / 4}, scratch);
  Kernel& begin = kernels_->begin_decode.set(encoded, static_cast<std::int64_t>(size.value), scratch, n,
                                             std::int64_t{elements.element_bytes});
  sequence.run(begin, 1, "the kernel swapmm_zero_begin_decode");
  sequence.in_parts(zero_blocks(elements), [&](std::int64_t first, std::uint64_t groups) {
    sequence.run(kernels.unpack.set(encoded, plain, scratch, n, first), groups, "the kernel swapmm_zero_unpack");
  });
  return sequence.end();
}

Handle<cl_event> ZeroCodec::move(cl_command_queue queue, cl_mem from, cl_mem to, unsigned groups,
                                 std::span<const cl_event> waits) {
  detail::require(from, Bytes{sizeof(ZeroHeader)}, "the encoded value");
  detail::require(to, Bytes{sizeof(ZeroHeader)}, "the moved value");
  if (from == to) throw UsageError("the zero codec was given one buffer for two purposes");
  if (groups == 0 || groups > detail::most_groups) {
    throw UsageError("an encoded value cannot be moved by " + std::to_string(groups) + " groups");
  }
  const std::size_t most = std::min(detail::size_of(from, "the encoded value"), detail::size_of(to, "the moved value"));
  const auto items = static_cast<std::int64_t>(groups * detail::group_size);
  detail::Sequence sequence(queue, waits);
  sequence.run(kernels_->move.set(from, to, static_cast<std::int64_t>(most), items), groups,
               "the kernel swapmm_zero_move");
  return sequence.end();
}

}  // namespace swapmm::opencl
