// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/runtime/blocks/host_block.hpp>
#include <swapmm/runtime/order/timeline.hpp>

namespace swapmm::runtime {

/// The copies of values that are encoded on their way to the host.
template <EncodingBackend B>
class EncodedCopies {
 public:
  using Block = HostBlock<B>;
  using Event = typename B::Event;

  EncodedCopies(B& backend, Timeline<B>& timeline, typename B::Encoder& encoder)
      : backend_(backend), timeline_(timeline), encoder_(encoder) {}
  EncodedCopies(const EncodedCopies&) = delete;
  EncodedCopies& operator=(const EncodedCopies&) = delete;

  /// Queues the copy of a value from a block to a place, after `waits` on h2d, and records `end` there. The caller
  /// commits the point.
  void to_device(const typename B::Address& to, const Block& from, std::span<const Event* const> waits, Event& end) {
    backend_.copy_encoded_to_device(encoder_, to, from.encoded->memory, from.encoded->elements, waits, end);
  }
  /// Queues the copy of a value from a place to a block, after `waits` on d2h, and records `end` there.
  void from_device(Block& to, const typename B::Address& from, std::span<const Event* const> waits, Event& end) {
    backend_.copy_encoded_to_host(encoder_, to.encoded->memory, from, to.encoded->elements, waits, end);
  }

  /// Reads a part of a block's value into memory of the host. Waits for the value.
  void read(const Block& from, Bytes offset, std::span<std::byte> to) {
    timeline_.host_wait(from.busy());
    backend_.read_encoded(from.encoded->memory, from.encoded->elements, offset, to);
  }
  /// Writes memory of the host into a part of a block's value. Work that uses the block must have ended. If it throws,
  /// and `began` is true, the block has no value any more.
  void write(Block& to, Bytes offset, std::span<const std::byte> from, bool& began) {
    began = true;
    backend_.write_encoded(to.encoded->memory, to.encoded->elements, offset, from);
  }

 private:
  B& backend_;
  Timeline<B>& timeline_;
  typename B::Encoder& encoder_;
};

}  // namespace swapmm::runtime
