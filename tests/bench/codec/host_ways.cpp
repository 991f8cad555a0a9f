// SPDX-License-Identifier: Apache-2.0
// Two ways for an encoded value to reach host memory while its size is known on the device alone, and the host does not
// wait. docs/decisions/0034-zero-codec.md says which was kept.
//
//   stored   the kernels write into host memory
//   copied   they write into device memory; a copy of the size of the last iteration follows, and, once the header is
//   on
//            the host, a callback queues a copy of what is missing
#include <cstdio>
#include <vector>

#include "measuring.hpp"

namespace bench {

namespace {

using swapmm::ZeroElements;
using swapmm::ZeroHeader;

constexpr std::size_t iterations = 20;

// What a way does with the values of the iterations.
struct Cost {
  double milliseconds = 0;  ///< median, from the encoding to the last byte on the host
  std::uint64_t moved = 0;  ///< bytes to the host
  std::size_t late = 0;     ///< iterations with a copy of what was missing
};

struct Input {
  ZeroElements elements;
  std::vector<Buffer> plain;  ///< values of iterations that differ a little in their density
};

Cost measure_stored(Device& device, const Input& input, cl_mem scratch) {
  const cl_command_queue queue = device.backend.queue();
  const auto host = make_buffer(device, zero_worst_case(input.elements).value, CL_MEM_ALLOC_HOST_PTR);
  Cost cost;
  std::size_t i = 0;
  cost.milliseconds = milliseconds_of(iterations, [&] {
    device.codec.encode(queue, input.elements, input.plain[i++ % input.plain.size()].get(), host.get(), scratch);
    clFinish(queue);
  });
  for (i = 0; i < iterations; ++i) {
    device.codec.encode(queue, input.elements, input.plain[i % input.plain.size()].get(), host.get(), scratch);
    cost.moved += header_of(queue, host.get()).bytes;
  }
  return cost;
}

/// One encoded value on its way: lives until the last copy has ended.
struct Transfer {
  Device* device;
  cl_command_queue copies;
  cl_mem encoded;
  std::byte* host;
  std::uint64_t predicted;
  EventHandle complete;  ///< everything is on the host
  EventHandle rest;      ///< of the copy of what was missing
  bool late = false;
};

// Runs on a thread of the driver, once the header is on the host: queues what is missing, but waits for nothing.
void CL_CALLBACK header_arrived(cl_event, cl_int, void* data) {
  auto& transfer = *static_cast<Transfer*>(data);
  ZeroHeader header;
  std::memcpy(&header, transfer.host, sizeof header);
  transfer.late = header.bytes > transfer.predicted;
  if (!transfer.late) {
    clSetUserEventStatus(transfer.complete.get(), CL_COMPLETE);
    return;
  }
  cl_event done = nullptr;
  check(clEnqueueReadBuffer(transfer.copies, transfer.encoded, CL_FALSE, transfer.predicted,
                            header.bytes - transfer.predicted, transfer.host + transfer.predicted, 0, nullptr, &done),
        "clEnqueueReadBuffer");
  transfer.rest.reset(done);
  clFlush(transfer.copies);
  check(clSetEventCallback(
            done, CL_COMPLETE,
            [](cl_event, cl_int, void* event) { clSetUserEventStatus(static_cast<cl_event>(event), CL_COMPLETE); },
            transfer.complete.get()),
        "clSetEventCallback");
}

Cost measure_copied(Device& device, const Input& input, cl_mem scratch) {
  const cl_command_queue queue = device.backend.queue();
  const std::size_t room = zero_worst_case(input.elements).value;
  const auto encoded = make_buffer(device, room);
  const auto host = make_buffer(device, room, CL_MEM_ALLOC_HOST_PTR);
  cl_int status = CL_SUCCESS;
  const swapmm::opencl::Handle<cl_command_queue> copies(
      clCreateCommandQueue(device.backend.context(), device.backend.device(), 0, &status));
  check(status, "clCreateCommandQueue");
  void* const mapped =
      clEnqueueMapBuffer(queue, host.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, room, 0, nullptr, nullptr, &status);
  check(status, "clEnqueueMapBuffer");

  Cost cost;
  Transfer transfer{&device, copies.get(), encoded.get(), static_cast<std::byte*>(mapped), room, {}, {}};
  std::size_t i = 0;
  const auto iteration = [&] {
    transfer.complete.reset(clCreateUserEvent(device.backend.context(), &status));
    check(status, "clCreateUserEvent");
    const EventHandle packed =
        device.codec.encode(queue, input.elements, input.plain[i++ % input.plain.size()].get(), encoded.get(), scratch);
    clFlush(queue);
    cl_event copied = nullptr;
    check(clEnqueueReadBuffer(copies.get(), encoded.get(), CL_FALSE, 0, transfer.predicted, mapped, 1, &packed.object(),
                              &copied),
          "clEnqueueReadBuffer");
    const EventHandle owned(copied);
    check(clSetEventCallback(copied, CL_COMPLETE, header_arrived, &transfer), "clSetEventCallback");
    clFlush(copies.get());
    // The host of a program would go on here. The measurement waits for the end of the value's way.
    check(clWaitForEvents(1, &transfer.complete.object()), "clWaitForEvents");
    ZeroHeader header;
    std::memcpy(&header, mapped, sizeof header);
    cost.moved += std::max(transfer.predicted, header.bytes);
    cost.late += transfer.late ? 1 : 0;
    transfer.predicted = header.bytes;
  };
  iteration();  // the first prediction is the worst case
  cost.moved = 0;
  cost.late = 0;
  cost.milliseconds = milliseconds_of(iterations - 1, iteration);
  check(clEnqueueUnmapMemObject(queue, host.get(), mapped, 0, nullptr, nullptr), "clEnqueueUnmapMemObject");
  clFinish(queue);
  return cost;
}

}  // namespace

void measure_host_ways(Device& device) {
  std::puts(
      "From an encoding to the last byte in host memory; the density changes by up to 2 % from one iteration to the "
      "next");
  std::puts("| MiB | density | way | ms | MB to the host per iteration | late copies |");
  std::puts("|---|---|---|---|---|---|");
  for (const std::size_t mib : {1U, 16U}) {
    const std::size_t size = mib << 20U;
    for (const double density : {0.1, 0.5, 0.8}) {
      Input input{{size / 4, 4}, {}};
      for (const double change : {1.0, 1.01, 0.99, 1.02, 1.0}) {
        input.plain.push_back(make_buffer(device, size));
        write(device.backend.queue(), input.plain.back().get(), sparse_numbers(size / 4, density * change, mib).data(),
              size);
      }
      const auto scratch = make_buffer(device, zero_scratch(input.elements).value);
      const auto print = [&](const char* way, const Cost& cost) {
        std::printf("| %zu | %.1f | %s | %.2f | %.3f | %zu of %zu |\n", mib, density, way, cost.milliseconds,
                    static_cast<double>(cost.moved) / static_cast<double>(iterations) / 1e6, cost.late, iterations);
      };
      print("stored", measure_stored(device, input, scratch.get()));
      print("copied", measure_copied(device, input, scratch.get()));
    }
  }
}

}  // namespace bench
