// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a backend that can encode values on their way promises beyond conformance.hpp: see EncodingBackend.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/codec/zero_format.hpp>

#include "conformance/conformance.hpp"

namespace swapmm::conformance {

template <class A>
struct EncodingBench : Bench<A> {
  using Bench<A>::size;

  /// Elements of four bytes that fill a place.
  static constexpr ZeroElements words{size / 4, 4};

  std::optional<typename A::Backend::Encoder> encoder{this->backend.make_encoder(Bytes{size})};

  [[nodiscard]] typename A::Backend::EncodedMemory memory(const ZeroElements& elements = words) {
    return this->backend.allocate_encoded(elements);
  }
  /// In each place of the source, `percent` of the bytes are not zero.
  void thin_out(unsigned percent) {
    for (std::size_t i = 0; i < size * this->places; ++i) {
      this->source.data()[i] = i * 7 % 100 < percent ? this->original(i) : std::byte{0};
    }
  }
};

}  // namespace swapmm::conformance

TEST_CASE_TEMPLATE_DEFINE("a value is encoded on its way to the host and decoded on its way back", A, c_encoding) {
  using namespace swapmm;
  conformance::EncodingBench<A> bench;
  auto& b = bench.backend;
  for (const std::uint32_t element : {1U, 2U, 4U, 8U}) {
    for (const unsigned percent : {0U, 3U, 60U, 100U}) {
      for (const std::size_t bytes : {bench.size, std::size_t{8}}) {
        CAPTURE(element);
        CAPTURE(percent);
        CAPTURE(bytes);
        const ZeroElements elements{bytes / element, element};
        auto memory = bench.memory(elements);
        bench.thin_out(percent);
        std::fill_n(bench.target.data(), bench.size * bench.places, std::byte{0});
        bench.upload(1, bench.event[0]);
        bench.upload(2, bench.event[1]);
        b.flush(QueueKind::h2d);
        b.copy_encoded_to_host(*bench.encoder, memory, bench.place[1], elements, conformance::after(bench.event[0]),
                               bench.event[2]);
        b.flush(QueueKind::d2h);
        bench.wait_on(QueueKind::h2d, {&bench.event[1], &bench.event[2]});
        b.copy_encoded_to_device(*bench.encoder, bench.place[2], memory, elements, {}, bench.event[3]);
        b.flush(QueueKind::h2d);
        bench.download(2, bench.event[4], conformance::after(bench.event[3]));
        b.flush(QueueKind::d2h);
        b.wait(bench.event[4]);
        const std::byte* const got = bench.target.data() + 2 * bench.size;
        CHECK(std::equal(got, got + bytes, bench.source.data() + bench.size));
        CHECK(std::equal(got + bytes, got + bench.size, bench.source.data() + 2 * bench.size + bytes));
      }
    }
  }
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("encoded copies wait for the device and for each other, and the device for them", A,
                          c_encoding_order) {
  using namespace swapmm;
  conformance::EncodingBench<A> bench;
  auto& b = bench.backend;
  auto first = bench.memory();
  auto second = bench.memory();
  for (int round = 0; round < 6; ++round) {
    std::fill_n(bench.target.data(), bench.size * bench.places, std::byte{0});
    bench.upload(0, bench.event[0]);
    b.flush(QueueKind::h2d);
    bench.wait_on(QueueKind::compute, {&bench.event[0]});
    A::add(b, bench.place[0], bench.place[1], bench.size, 3);
    b.record(QueueKind::compute, bench.event[1]);
    b.flush(QueueKind::compute);
    // Two values pass through the encoder one after the other.
    b.copy_encoded_to_host(*bench.encoder, first, bench.place[1], bench.words, conformance::after(bench.event[1]),
                           bench.event[2]);
    b.copy_encoded_to_host(*bench.encoder, second, bench.place[0], bench.words, {}, bench.event[3]);
    b.flush(QueueKind::d2h);
    bench.wait_on(QueueKind::h2d, {&bench.event[2], &bench.event[3]});
    b.copy_encoded_to_device(*bench.encoder, bench.place[2], first, bench.words, {}, bench.event[4]);
    b.copy_encoded_to_device(*bench.encoder, bench.place[3], second, bench.words, {}, bench.event[5]);
    b.flush(QueueKind::h2d);
    bench.wait_on(QueueKind::compute, {&bench.event[4], &bench.event[5]});
    A::add(b, bench.place[2], bench.place[1], bench.size, 4);
    A::add(b, bench.place[3], bench.place[2], bench.size, 9);
    b.record(QueueKind::compute, bench.event[1]);
    b.flush(QueueKind::compute);
    bench.download(1, bench.event[0], conformance::after(bench.event[1]));
    bench.download(2, bench.event[2], {});
    b.flush(QueueKind::d2h);
    b.wait(bench.event[2]);
    CHECK(b.status(bench.event[5]) == EventStatus::complete);
    CHECK(bench.came_back(1, 0, 7));
    CHECK(bench.came_back(2, 0, 9));
  }
  b.finish();
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("the host reads and changes what was encoded", A, c_encoding_host) {
  using namespace swapmm;
  conformance::EncodingBench<A> bench;
  auto& b = bench.backend;
  auto memory = bench.memory();
  bench.thin_out(30);
  bench.upload(0, bench.event[0]);
  b.flush(QueueKind::h2d);
  b.copy_encoded_to_host(*bench.encoder, memory, bench.place[0], bench.words, conformance::after(bench.event[0]),
                         bench.event[1]);
  b.flush(QueueKind::d2h);
  b.wait(bench.event[1]);
  std::vector<std::byte> seen(333);
  b.read_encoded(memory, bench.words, Bytes{101}, seen);
  CHECK(std::equal(seen.begin(), seen.end(), bench.source.data() + 101));
  // A part, then read back by the device.
  const std::vector<std::byte> part(50, std::byte{0x5a});
  b.write_encoded(memory, bench.words, Bytes{7}, part);
  b.copy_encoded_to_device(*bench.encoder, bench.place[1], memory, bench.words, {}, bench.event[2]);
  b.flush(QueueKind::h2d);
  bench.download(1, bench.event[3], conformance::after(bench.event[2]));
  b.flush(QueueKind::d2h);
  b.wait(bench.event[3]);
  std::vector<std::byte> expected(bench.source.data(), bench.source.data() + bench.size);
  std::copy(part.begin(), part.end(), expected.begin() + 7);
  CHECK(std::equal(expected.begin(), expected.end(), bench.target.data() + bench.size));
  // A value that only the host has written.
  auto other = bench.memory();
  b.write_encoded(other, bench.words, Bytes{0}, expected);
  b.copy_encoded_to_device(*bench.encoder, bench.place[2], other, bench.words, {}, bench.event[4]);
  b.flush(QueueKind::h2d);
  bench.download(2, bench.event[5], conformance::after(bench.event[4]));
  b.flush(QueueKind::d2h);
  b.wait(bench.event[5]);
  CHECK(std::equal(expected.begin(), expected.end(), bench.target.data() + 2 * bench.size));
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("an encoder and encoded memory may be released while work uses them", A,
                          c_encoding_released) {
  using namespace swapmm;
  conformance::EncodingBench<A> bench;
  auto& b = bench.backend;
  bench.upload(0, bench.event[0]);
  b.flush(QueueKind::h2d);
  {
    auto memory = bench.memory();
    b.copy_encoded_to_host(*bench.encoder, memory, bench.place[0], bench.words, conformance::after(bench.event[0]),
                           bench.event[1]);
    b.flush(QueueKind::d2h);
    b.copy_encoded_to_device(*bench.encoder, bench.place[1], memory, bench.words, conformance::after(bench.event[1]),
                             bench.event[2]);
    b.flush(QueueKind::h2d);
  }
  bench.encoder.reset();
  bench.download(1, bench.event[3], conformance::after(bench.event[2]));
  b.flush(QueueKind::d2h);
  b.wait(bench.event[3]);
  CHECK(bench.came_back(1, 0, 0));
  A::verify(b);
}

#define SWAPMM_ENCODING_CONFORMANCE(ADAPTOR)          \
  SWAPMM_CONFORMANCE_CASE(c_encoding, ADAPTOR);       \
  SWAPMM_CONFORMANCE_CASE(c_encoding_order, ADAPTOR); \
  SWAPMM_CONFORMANCE_CASE(c_encoding_host, ADAPTOR);  \
  SWAPMM_CONFORMANCE_CASE(c_encoding_released, ADAPTOR)
