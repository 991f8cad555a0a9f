// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing/arenas.hpp>

#include <algorithm>

namespace swapmm::planning::packing {
namespace {

constexpr std::size_t items_without_limit = 12;
constexpr std::uint64_t most_steps = 100'000;

/// Places items, largest first, into bins. The bins are the arenas; the capacity may cut the last one short.
class Bins {
 public:
  Bins(const Shape& shape, std::uint64_t capacity) : shape_(shape), offsets_(shape.size(), 0) {
    for (std::uint32_t item = 0; item < shape.size(); ++item) {
      if (shape.items[item].size > 0) order_.push_back(item);
    }
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return shape.items[a].size != shape.items[b].size ? shape.items[a].size > shape.items[b].size : a < b;
    });
    sum_behind_.resize(order_.size() + 1);
    for (std::size_t k = order_.size(); k > 0; --k) {
      sum_behind_[k - 1] = sum_behind_[k] + shape.items[order_[k - 1]].size;
    }
    // More whole arenas than items are not needed.
    const std::uint64_t whole = std::min<std::uint64_t>(capacity / shape.arena, order_.size());
    room_.assign(whole, shape.arena);
    if (whole < order_.size()) room_.push_back(capacity % shape.arena);
    size_ = room_;
  }

  [[nodiscard]] bool is_small() const { return order_.size() <= items_without_limit; }
  [[nodiscard]] bool is_given_up() const { return !is_small() && steps_ > most_steps; }
  [[nodiscard]] const Offsets& offsets() const { return offsets_; }

  /// Places the items from the k-th on.
  bool place(std::size_t k) {
    if (k == order_.size()) return true;
    if (++steps_ > most_steps && !is_small()) return false;
    if (usable(shape_.items[order_.back()].size) < sum_behind_[k]) return false;
    const std::uint32_t item = order_[k];
    const std::uint64_t size = shape_.items[item].size;
    // If the item fills a bin exactly, no other bin is better: any other item for this bin can take its place
    // elsewhere.
    const auto filled = std::find(room_.begin(), room_.end(), size);
    if (filled != room_.end()) return place_in(static_cast<std::size_t>(filled - room_.begin()), k);
    for (std::size_t bin = 0; bin < room_.size(); ++bin) {
      if (room_[bin] < size || has_like_before(bin)) continue;
      if (place_in(bin, k)) return true;
      if (is_given_up()) return false;
    }
    return false;
  }

 private:
  bool place_in(std::size_t bin, std::size_t k) {
    const std::uint32_t item = order_[k];
    offsets_[item] = bin * shape_.arena + size_[bin] - room_[bin];
    room_[bin] -= shape_.items[item].size;
    if (place(k + 1)) return true;
    room_[bin] += shape_.items[item].size;
    return false;
  }

  [[nodiscard]] std::uint64_t usable(std::uint64_t smallest) const {
    std::uint64_t sum = 0;
    for (const std::uint64_t room : room_) sum += room >= smallest ? room : 0;
    return sum;
  }

  [[nodiscard]] bool has_like_before(std::size_t bin) const {
    const auto end = room_.begin() + static_cast<std::ptrdiff_t>(bin);
    return std::find(room_.begin(), end, room_[bin]) != end;
  }

  const Shape& shape_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint64_t> sum_behind_;  ///< bytes of the items from the k-th on
  std::vector<std::uint64_t> room_;        ///< per bin
  std::vector<std::uint64_t> size_;        ///< per bin, when it is empty
  Offsets offsets_;
  std::uint64_t steps_ = 0;
};

}  // namespace

ArenaAnswer pack_arenas(const Shape& shape, std::uint64_t capacity) {
  Bins bins(shape, capacity);
  if (bins.place(0)) return {bins.offsets(), true};
  return {std::nullopt, !bins.is_given_up()};
}

}  // namespace swapmm::planning::packing
