// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/blocks/place_map.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <functional>
#include <iterator>

namespace swapmm::runtime {

PlaceMap::PlaceMap(Bytes budget, Bytes arena, Bytes alignment)
    : budget_(round_down(budget, alignment)), arena_(arena), alignment_(alignment) {
  reset(Clock{});
}

void PlaceMap::reset(const Clock& after) {
  free_.clear();
  used_ = Bytes{};
  places_ = 0;
  for (Bytes offset; offset < budget_; offset += arena_) {
    free_.push_back({offset, std::min(arena_, budget_ - offset), after});
  }
}

bool PlaceMap::same_arena(Bytes a, Bytes b) const { return a.value / arena_.value == b.value / arena_.value; }

std::optional<FreePlace> PlaceMap::take(Bytes size) { return take_below(size, budget_); }

std::optional<FreePlace> PlaceMap::take_below(Bytes size, Bytes end) {
  const Piece* best = nullptr;
  for (const Piece& piece : free_) {
    if (piece.offset > end || end - piece.offset < size) break;
    if (piece.bytes >= size && (best == nullptr || piece.bytes < best->bytes)) best = &piece;
  }
  if (best == nullptr) return std::nullopt;
  return take_at(best->offset, size);
}

std::optional<FreePlace> PlaceMap::take_lowest(Bytes size) {
  const auto found = std::find_if(free_.begin(), free_.end(), [&](const Piece& piece) { return piece.bytes >= size; });
  if (found == free_.end()) return std::nullopt;
  return take_at(found->offset, size);
}

std::optional<FreePlace> PlaceMap::take_at(Bytes offset, Bytes size) {
  size = round_up(size, alignment_);
  const auto next = std::upper_bound(free_.begin(), free_.end(), offset,
                                     [](Bytes wanted, const Piece& piece) { return wanted < piece.offset; });
  if (next == free_.begin()) return std::nullopt;
  const auto offset_of_found = std::prev(next) - free_.begin();
  const Piece piece = *std::prev(next);
  if (offset + size > piece.offset + piece.bytes) return std::nullopt;
  // There are never more free pieces than places and arenas together. With this reservation, give_back() never
  // allocates.
  reserve(places_ + 1);
  const auto position = free_.begin() + offset_of_found;
  const Piece before{piece.offset, offset - piece.offset, piece.after};
  const Piece behind{offset + size, piece.offset + piece.bytes - (offset + size), piece.after};
  const bool keep_before = before.bytes.value != 0;
  const bool keep_behind = behind.bytes.value != 0;
  if (keep_before) {
    *position = before;
    if (keep_behind) free_.insert(position + 1, behind);
  } else if (keep_behind) {
    *position = behind;
  } else {
    free_.erase(position);
  }
  ++places_;
  used_ += size;
  assert(used_ <= budget_);
  return FreePlace{offset, piece.after};
}

void PlaceMap::give_back(Bytes offset, Bytes size, const Clock& after) noexcept {
  size = round_up(size, alignment_);
  auto next = std::lower_bound(free_.begin(), free_.end(), offset,
                               [](const Piece& piece, Bytes wanted) { return piece.offset < wanted; });
  used_ -= size;
  --places_;
  const bool joins_next = next != free_.end() && next->offset == offset + size && same_arena(offset, next->offset);
  if (next != free_.begin()) {
    Piece& before = *std::prev(next);
    if (before.offset + before.bytes == offset && same_arena(before.offset, offset)) {
      before.bytes += size;
      before.after.join(after);
      if (joins_next) {
        before.bytes += next->bytes;
        before.after.join(next->after);
        free_.erase(next);
      }
      return;
    }
  }
  if (joins_next) {
    next->offset = offset;
    next->bytes += size;
    next->after.join(after);
    return;
  }
  free_.insert(next, {offset, size, after});
}

void PlaceMap::reserve(std::size_t places) {
  const std::size_t most = places + static_cast<std::size_t>(budget_.value / arena_.value) + 2;
  if (free_.capacity() < most) free_.reserve(2 * most);
}

bool PlaceMap::would_pack(std::vector<Bytes>& sizes) const {
  std::sort(sizes.begin(), sizes.end(), std::greater<>{});
  std::vector<Bytes> room;
  for (Bytes offset; offset < budget_; offset += arena_) room.push_back(std::min(arena_, budget_ - offset));
  for (const Bytes size : sizes) {
    const Bytes rounded = round_up(size, alignment_);
    Bytes* best = nullptr;  // chosen as in take()
    for (Bytes& left : room) {
      if (left >= rounded && (best == nullptr || left < *best)) best = &left;
    }
    if (best == nullptr) return false;
    *best -= rounded;
  }
  return true;
}

}  // namespace swapmm::runtime
