// SPDX-License-Identifier: Apache-2.0
// Encoding and decoding numbers of 4 bytes, by density and size, beside a copy on the device.
#include <cstdio>

#include "measuring.hpp"

namespace bench {

void measure_speed(Device& device) {
  std::puts("Gigabytes of plain numbers per second; ratio: plain bytes / encoded bytes");
  std::puts("| MiB | density | ratio | encode GB/s | decode GB/s | copy on the device GB/s |");
  std::puts("|---|---|---|---|---|---|");
  const cl_command_queue queue = device.backend.queue();
  for (const std::size_t mib : {1U, 16U, 64U}) {
    const std::size_t size = mib << 20U;
    const swapmm::ZeroElements elements{size / 4, 4};
    const auto plain = make_buffer(device, size);
    const auto back = make_buffer(device, size);
    const auto encoded = make_buffer(device, zero_worst_case(elements).value);
    const auto scratch = make_buffer(device, zero_scratch(elements).value);
    for (const double density : {0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0}) {
      write(queue, plain.get(), sparse_numbers(size / 4, density, mib).data(), size);
      const std::size_t rounds = mib == 1 ? 31 : 7;
      const double encode = milliseconds_of(rounds, [&] {
        device.codec.encode(queue, elements, plain.get(), encoded.get(), scratch.get());
        clFinish(queue);
      });
      const double decode = milliseconds_of(rounds, [&] {
        device.codec.decode(queue, elements, encoded.get(), back.get(), scratch.get());
        clFinish(queue);
      });
      const double copy = milliseconds_of(rounds, [&] {
        check(clEnqueueCopyBuffer(queue, plain.get(), back.get(), 0, 0, size, 0, nullptr, nullptr),
              "clEnqueueCopyBuffer");
        clFinish(queue);
      });
      const std::uint64_t bytes = header_of(queue, encoded.get()).bytes;
      std::printf("| %zu | %.2f | %.2f | %.2f | %.2f | %.2f |\n", mib, density,
                  static_cast<double>(size) / static_cast<double>(bytes), rate(size, encode), rate(size, decode),
                  rate(size, copy));
    }
  }
}

}  // namespace bench
