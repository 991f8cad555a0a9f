// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a backend that can use files promises beyond conformance.hpp: see FileBackend.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "conformance/conformance.hpp"
#include "support/memory_file.hpp"

TEST_CASE_TEMPLATE_DEFINE("a value goes to a file and comes back, and its parts to their places", A, c_file) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  test::MemoryFile file(Bytes{4096}, Bytes{1});
  file.reserve(Bytes{4096});
  constexpr std::size_t half = bench.size / 2;
  // Two halves from the host, out in two other parts, to the file crosswise, and back.
  bench.backend.copy_part_to_device(bench.place[0], Bytes{half}, bench.source, Bytes{half}, Bytes{half}, {},
                                    bench.event[0]);
  b.copy_part_to_device(bench.place[0], Bytes{0}, bench.source, Bytes{0}, Bytes{half}, {}, bench.event[0]);
  b.copy_part_to_host(bench.target, Bytes{0}, bench.place[0], Bytes{300}, Bytes{700},
                      conformance::after(bench.event[0]), bench.event[1]);
  b.copy_part_to_host(bench.target, Bytes{700}, bench.place[0], Bytes{0}, Bytes{300}, {}, bench.event[1]);
  b.flush(QueueKind::staged_h2d);
  b.flush(QueueKind::staged_d2h);
  b.write_file(file, Bytes{100}, bench.target, Bytes{0}, Bytes{1000}, conformance::after(bench.event[1]),
               bench.event[2]);
  b.read_file(file, Bytes{800}, bench.target, Bytes{2000}, Bytes{300}, conformance::after(bench.event[2]),
              bench.event[3]);
  b.read_file(file, Bytes{100}, bench.target, Bytes{2300}, Bytes{700}, {}, bench.event[4]);
  b.wait(bench.event[4]);
  CHECK(b.status(bench.event[3]) == EventStatus::complete);  // a queue keeps its order
  CHECK(std::equal(bench.target.data() + 2000, bench.target.data() + 3000, bench.source.data()));
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("work on the device waits for a file, and a file for the device", A, c_file_order) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  test::MemoryFile file(Bytes{8192}, Bytes{1});
  file.reserve(Bytes{8192});
  for (int round = 0; round < 8; ++round) {
    std::fill_n(bench.target.data(), bench.size * bench.places, std::byte{0});
    const std::size_t at = static_cast<std::size_t>(round) * 1000;
    bench.upload(0, bench.event[0]);
    b.flush(QueueKind::h2d);
    bench.wait_on(QueueKind::compute, {&bench.event[0]});
    A::add(b, bench.place[0], bench.place[1], bench.size, 3);
    b.record(QueueKind::compute, bench.event[1]);
    b.flush(QueueKind::compute);
    bench.download(1, bench.event[2], conformance::after(bench.event[1]));
    b.flush(QueueKind::d2h);
    b.write_file(file, Bytes{at}, bench.target, Bytes{bench.size}, Bytes{bench.size},
                 conformance::after(bench.event[2]), bench.event[3]);
    b.read_file(file, Bytes{at}, bench.target, Bytes{2 * bench.size}, Bytes{bench.size},
                conformance::after(bench.event[3]), bench.event[4]);
    b.copy_part_to_device(bench.place[2], Bytes{0}, bench.target, Bytes{2 * bench.size}, Bytes{bench.size},
                          conformance::after(bench.event[4]), bench.event[5]);
    b.flush(QueueKind::staged_h2d);
    bench.download(2, bench.event[0], conformance::after(bench.event[5]));
    b.flush(QueueKind::d2h);
    b.wait(bench.event[0]);
    CHECK(bench.came_back(2, 0, 3));
  }
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("the staged queues have an order of their own, and wait and record as others do", A,
                          c_file_staged) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  for (int round = 0; round < 8; ++round) {
    std::fill_n(bench.target.data(), bench.size * bench.places, std::byte{0});
    b.copy_part_to_device(bench.place[0], Bytes{0}, bench.source, Bytes{0}, Bytes{bench.size}, {}, bench.event[0]);
    b.record(QueueKind::staged_h2d, bench.event[1]);
    b.flush(QueueKind::staged_h2d);
    bench.wait_on(QueueKind::compute, {&bench.event[1]});
    A::add(b, bench.place[0], bench.place[1], bench.size, 5);
    b.record(QueueKind::compute, bench.event[2]);
    b.flush(QueueKind::compute);
    bench.wait_on(QueueKind::staged_d2h, {&bench.event[2]});
    b.copy_part_to_host(bench.target, Bytes{bench.size}, bench.place[1], Bytes{0}, Bytes{bench.size}, {},
                        bench.event[3]);
    b.flush(QueueKind::staged_d2h);
    b.wait(bench.event[3]);
    CHECK(b.status(bench.event[0]) == EventStatus::complete);
    CHECK(bench.came_back(1, 0, 5));
  }
  b.finish();
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("a file that fails tells by its event, with its reason, and nothing else fails", A,
                          c_file_fails) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  test::MemoryFile file(Bytes{4096}, Bytes{1});
  file.reserve(Bytes{4096});
  file.failing_read = 1;
  file.failing_write = 2;
  const auto text_of_wait = [&](const auto& event) -> std::string {
    try {
      b.wait(event);
    } catch (const BackendError& error) {
      CHECK(error.kind == BackendError::Kind::failed);
      return error.what();
    }
    return {};
  };
  b.read_file(file, Bytes{0}, bench.target, Bytes{0}, Bytes{500}, {}, bench.event[0]);
  bench.upload(0, bench.event[1], conformance::after(bench.event[0]));  // runs all the same
  b.flush(QueueKind::h2d);
  b.write_file(file, Bytes{0}, bench.source, Bytes{0}, Bytes{500}, {}, bench.event[2]);
  b.write_file(file, Bytes{500}, bench.source, Bytes{500}, Bytes{500}, {}, bench.event[3]);
  b.read_file(file, Bytes{0}, bench.target, Bytes{0}, Bytes{500}, conformance::after(bench.event[3]), bench.event[4]);
  CHECK(text_of_wait(bench.event[0]) == "reading: Input/output error");
  CHECK(b.status(bench.event[0]) == EventStatus::failed);
  CHECK(text_of_wait(bench.event[1]).empty());
  CHECK(text_of_wait(bench.event[2]).empty());
  CHECK(text_of_wait(bench.event[3]) == "writing: Input/output error");
  CHECK(text_of_wait(bench.event[4]).empty());  // a read asks only for the end of what it waits for
  CHECK(std::equal(bench.target.data(), bench.target.data() + 500, bench.source.data()));
  b.finish();
  bench.download(0, bench.event[5], {});
  b.flush(QueueKind::d2h);
  b.wait(bench.event[5]);
  CHECK(bench.came_back(0, 0, 0));
  A::verify(b);
}

namespace swapmm::conformance {

/// Takes its time to read, so that what is queued behind a read is queued before it has ended.
struct SlowFile final : test::MemoryFile {
  using MemoryFile::MemoryFile;
  void read(Bytes offset, std::span<std::byte> to) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    MemoryFile::read(offset, to);
  }
};

}  // namespace swapmm::conformance

TEST_CASE_TEMPLATE_DEFINE("a copy of a part takes from any host memory what the read before it brings there", A,
                          c_file_to_device) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  conformance::SlowFile file(Bytes{4096}, Bytes{1});
  file.reserve(Bytes{4096});
  for (const HostKind kind : {HostKind::pinned, HostKind::pageable}) {
    auto host = b.allocate_host(Bytes{bench.size}, kind);
    for (unsigned round = 0; round < 4; ++round) {
      std::vector<std::byte> wanted(bench.size);
      for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<std::byte>((i * 7 + round) & 0xFFU);
      file.write(Bytes{0}, wanted);
      std::fill_n(bench.target.data(), bench.size, std::byte{0});
      b.read_file(file, Bytes{0}, host, Bytes{0}, Bytes{bench.size}, {}, bench.event[0]);
      b.copy_part_to_device(bench.place[0], Bytes{0}, host, Bytes{0}, Bytes{bench.size},
                            conformance::after(bench.event[0]), bench.event[1]);
      b.flush(QueueKind::staged_h2d);
      b.copy_part_to_host(bench.target, Bytes{0}, bench.place[0], Bytes{0}, Bytes{bench.size},
                          conformance::after(bench.event[1]), bench.event[2]);
      b.flush(QueueKind::staged_d2h);
      b.wait(bench.event[2]);
      CHECK(std::equal(wanted.begin(), wanted.end(), bench.target.data()));
    }
  }
  A::verify(b);
}

#define SWAPMM_FILE_CONFORMANCE(ADAPTOR)              \
  SWAPMM_CONFORMANCE_CASE(c_file, ADAPTOR);           \
  SWAPMM_CONFORMANCE_CASE(c_file_order, ADAPTOR);     \
  SWAPMM_CONFORMANCE_CASE(c_file_staged, ADAPTOR);    \
  SWAPMM_CONFORMANCE_CASE(c_file_to_device, ADAPTOR); \
  SWAPMM_CONFORMANCE_CASE(c_file_fails, ADAPTOR)
