// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/runtime/blocks/host_block.hpp>
#include <swapmm/runtime/values/address_book.hpp>

namespace swapmm::runtime {

/// Overwrites host memory with zeros before it is released. No copy may use it any more.
template <Backend B>
void scrub_host([[maybe_unused]] B& backend, typename B::HostMemory& memory, Bytes size) noexcept {
  if constexpr (requires { backend.note_host_access(memory, Bytes{}, size, true); }) {
    backend.note_host_access(memory, Bytes{}, size, true);
  }
  explicit_bzero(memory.data(),
                 static_cast<std::size_t>(size.value));  // the compiler may remove a memset before a delete
}

/// Overwrites a manager's device memory with zeros, by copies of one block, which every backend supports.
template <Backend B>
class Scrubber {
 public:
  /// Size of the block. Copying it takes much longer than starting the copy.
  static constexpr Bytes most{4U << 20U};

  explicit Scrubber(std::unique_ptr<HostBlock<B>> block) : zeros_(std::move(block)) {}

  /// Returns when all bytes are zero. No work may be in flight. Throws BackendError.
  void scrub(B& backend, AddressBook<B>& addresses, Bytes alignment) {
    scrub_block(backend);
    typename B::Event done = backend.make_event();
    addresses.cover(round_down(zeros_->size, alignment), [&](const typename B::Address& place, Bytes size) {
      backend.copy_to_device(place, zeros_->memory(), zeros_->offset, size, {}, done);
      backend.flush(QueueKind::h2d);
      backend.wait(done);
    });
  }

 private:
  void scrub_block([[maybe_unused]] B& backend) {
    if constexpr (requires { backend.note_host_access(zeros_->memory(), Bytes{}, zeros_->size, true); }) {
      backend.note_host_access(zeros_->memory(), zeros_->offset, zeros_->size, true);
    }
    std::memset(zeros_->data(), 0, static_cast<std::size_t>(zeros_->size.value));
  }

  std::unique_ptr<HostBlock<B>> zeros_;
};

}  // namespace swapmm::runtime
