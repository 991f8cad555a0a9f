// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/runtime/order/clock.hpp>
#include <swapmm/runtime/timing/encoding_history.hpp>

namespace swapmm::runtime {

/// The copies of logs whose times are not known yet. Each has a label, which its command carries. Labels below
/// `first_label` are of operations. Copies are counted on from log to log, so that the time of a copy of a log that was
/// given up is not taken for that of a newer copy.
class TimedCopies {
 public:
  struct Copy {
    QueueKind queue;
    Bytes size;
    std::uint32_t alike;  ///< of one that was encoded: the tensor's number in EncodingHistory; else not_encoded
  };
  static constexpr std::uint32_t first_label = 0x80000000U;

  [[nodiscard]] static bool is_label(std::uint32_t label) { return label >= first_label; }

  /// Returns the label.
  std::uint32_t add(QueueKind queue, Bytes size, std::uint32_t alike = not_encoded) {
    copies_.push_back({queue, size, alike});
    return first_label | (forgotten_ + static_cast<std::uint32_t>(copies_.size() - 1));
  }
  /// Null if the copy was forgotten.
  [[nodiscard]] const Copy* find(std::uint32_t label) const {
    const std::uint32_t position = (label - forgotten_) % first_label;
    return position < copies_.size() ? &copies_[position] : nullptr;
  }
  void forget() noexcept { forget(copies_.size()); }
  /// Forgets the oldest `count`.
  void forget(std::size_t count) noexcept {
    forgotten_ += static_cast<std::uint32_t>(count);
    copies_.erase(copies_.begin(), copies_.begin() + static_cast<std::ptrdiff_t>(count));
  }
  [[nodiscard]] std::size_t count() const { return copies_.size(); }

 private:
  std::vector<Copy> copies_;
  std::uint32_t forgotten_ = 0;  // copies; may wrap
};

}  // namespace swapmm::runtime
