// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/codec/zero_format.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/blocks/host_block.hpp>

namespace swapmm::runtime {

/// Host memory for values in an encoded form. Each block is an allocation of its own, as large as the largest encoded
/// form of its value, and is kept for other values of the same size.
template <Backend B>
class EncodedBlocks {
 public:
  using Block = HostBlock<B>;

  /// A block that was used before; work queued before may still use it. Null if there is none. What reads are promised
  /// from is not given out: they need to know its elements.
  [[nodiscard]] std::unique_ptr<Block> reuse(const ZeroElements& elements) {
    const auto shelf = kept_.find(bytes_of(elements));
    if (shelf == kept_.end()) return nullptr;
    std::unique_ptr<Block> block = shelf->second.pop();
    if (block == nullptr) return nullptr;
    if (block->pending != nullptr) {
      shelf->second.push(std::move(block));
      return nullptr;
    }
    block->encoded->elements = elements;
    unused_ -= block->size;
    use(*block);
    return block;
  }
  /// A new block. Throws what the backend throws.
  [[nodiscard]] std::unique_ptr<Block> make(B& backend, const ZeroElements& elements) {
    (void)kept_[bytes_of(elements)];  // so that release() does not allocate
    auto block = std::make_unique<Block>();
    if constexpr (EncodingBackend<B>) {
      block->encoded.emplace(EncodedValue<B>{backend.allocate_encoded(elements), elements});
    }
    block->place = Home::encoded;
    block->kind = HostKind::pinned;
    block->size = zero_worst_case(elements);
    use(*block);
    return block;
  }
  void release(std::unique_ptr<Block> block) noexcept {
    used_ -= block->size;
    unused_ += block->size;
    kept_.find(bytes_of(block->encoded->elements))->second.push(std::move(block));
  }

  /// Bytes of blocks that hold no value.
  [[nodiscard]] Bytes unused() const { return unused_; }
  /// The most bytes of blocks that held one at a time.
  [[nodiscard]] Bytes most_used() const { return most_used_; }
  /// Frees them, but for those from which reads are promised. No copy may use them any more. Returns how many bytes.
  Bytes free_unused() noexcept {
    const Bytes before = unused_;
    for (auto& [size, blocks] : kept_) {
      blocks.take_if([](const Block& block) { return block.pending == nullptr; },
                     [&](std::unique_ptr<Block> block) noexcept { unused_ -= block->size; });
    }
    return before - unused_;
  }

 private:
  static Bytes bytes_of(const ZeroElements& elements) { return Bytes{elements.count * elements.element_bytes}; }

  void use(const Block& block) noexcept {
    used_ += block.size;
    most_used_ = std::max(most_used_, used_);
  }

  std::map<Bytes, HostBlockList<B>> kept_;  // by the bytes of a plain value
  Bytes unused_;
  Bytes used_;
  Bytes most_used_;
};

}  // namespace swapmm::runtime
