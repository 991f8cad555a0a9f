// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>

namespace swapmm::runtime {

/// The device memory of a manager, as one range of offsets over one or more arenas, and the address objects of places
/// in it. There is one object per place, no matter how often the place is used. On demand, a program whose sizes vary
/// uses ever new places, so the book forgets unused ones when there are many.
template <Backend B>
class AddressBook {
 public:
  /// Allocates budget bytes in arenas of `arena` bytes; the last may be smaller.
  AddressBook(B& backend, Bytes budget, Bytes arena) : backend_(backend), arena_(arena) { take(budget, arena); }

  /// Allocates device memory if there is none: all of it or nothing.
  void take(Bytes budget, Bytes arena) {
    std::vector<typename B::DeviceMemory> taken = arenas_of(backend_, budget, arena);
    arenas_ = std::move(taken);
    arena_ = arena;
    budget_ = budget;
  }
  AddressBook(const AddressBook&) = delete;
  AddressBook& operator=(const AddressBook&) = delete;
  ~AddressBook() { forget_all(); }

  /// Releases all of it. No address may be used afterwards, and no work that uses one may be in flight.
  void give_back() noexcept {
    forget_all();
    arenas_.clear();
    budget_ = Bytes{};
  }
  /// Calls visit(address, size) for all of the memory, in parts of at most `most` bytes, a multiple of the alignment.
  template <class Visit>
  void cover(Bytes most, Visit&& visit) {
    for (Bytes begin; begin < budget_; begin += arena_) {
      typename B::DeviceMemory& memory = arenas_[static_cast<std::size_t>(begin.value / arena_.value)];
      const Bytes arena = std::min(arena_, budget_ - begin);
      for (Bytes offset; offset < arena; offset += most) {
        const Bytes size = std::min(most, arena - offset);
        visit(backend_.address(memory, offset, size), size);
      }
    }
  }

  [[nodiscard]] static std::vector<typename B::DeviceMemory> arenas_of(B& backend, Bytes budget, Bytes arena) {
    std::vector<typename B::DeviceMemory> arenas;
    for (Bytes offset; offset < budget; offset += arena) {
      arenas.push_back(backend.allocate(std::min(arena, budget - offset)));
    }
    return arenas;
  }

  /// The address of a place. Made at the first call, then looked up. Valid until give_back(), forget_all() or
  /// keep_only().
  const typename B::Address* at(Bytes offset, Bytes size) {
    const Place place{offset.value, size.value};
    const auto found = addresses_.find(place);
    if (found != addresses_.end()) return &found->second;
    const typename B::DeviceMemory& memory = arenas_[static_cast<std::size_t>(offset.value / arena_.value)];
    // Room first: an address that exists is in the order, too.
    if (order_.size() == order_.capacity()) order_.reserve(2 * order_.size() + 64);
    const auto made = addresses_
                          .emplace(place, backend_.address(const_cast<typename B::DeviceMemory&>(memory),
                                                           Bytes{offset.value % arena_.value}, size))
                          .first;
    order_.push_back(place);
    return &made->second;
  }

  /// A place as an offset in its arena, which is one allocation of the backend.
  struct InArena {
    const typename B::Address* arena;
    Bytes offset;
  };
  [[nodiscard]] InArena in_arena(Bytes offset) {
    const Bytes begin{offset.value / arena_.value * arena_.value};
    return {at(begin, std::min(arena_, budget_ - begin)), offset - begin};
  }

  /// True if there are so many addresses that it is time to call forget_all() or keep_only().
  [[nodiscard]] bool is_crowded() const { return addresses_.size() > limit_; }
  /// Puts that off until there are twice as many as `count`.
  void allow_for(std::size_t count) noexcept { limit_ = std::max(least_limit, 2 * count); }
  /// True if addresses are objects of the API. Then they go in the opposite order in which they came: places overlap,
  /// and NVIDIA's OpenCL driver (580.159) crashed where a sub-buffer went before a later one that lies within it or
  /// across it.
  static constexpr bool has_order = !std::is_trivially_destructible_v<typename B::Address>;
  /// Forgets all addresses, the latest first. No work that uses one may be in flight.
  void forget_all() noexcept {
    for (auto place = order_.rbegin(); place != order_.rend(); ++place) addresses_.erase(*place);
    order_.clear();
    limit_ = least_limit;
  }
  /// Forgets all addresses except those of these places: for_each_place(visit) calls visit(offset, size) for each of at
  /// most `count` places. Kept addresses do not move. Queued work may still use forgotten ones, but the runtime may
  /// not. Only for addresses without an order. Throws bad_alloc, and then has forgotten nothing. Linear, but called so
  /// rarely that its cost per address is constant.
  template <class ForEachPlace>
    requires(!has_order)
  void keep_only(std::size_t count, ForEachPlace&& for_each_place) {
    Addresses kept;
    kept.reserve(count);
    for_each_place([&](Bytes offset, Bytes size) { kept.insert(addresses_.extract(Place{offset.value, size.value})); });
    forget_all_but(kept);
    addresses_.swap(kept);
    limit_ = std::max(least_limit, 2 * addresses_.size());
  }

  [[nodiscard]] std::size_t size() const { return addresses_.size(); }

 private:
  struct Place {
    std::uint64_t offset;
    std::uint64_t size;
    bool operator==(const Place&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Place& place) const {
      return static_cast<std::size_t>((place.offset * 0x9E3779B97F4A7C15ULL) ^ (place.size + (place.offset >> 29U)));
    }
  };

  using Addresses = std::unordered_map<Place, typename B::Address, Hash>;

  // The order of the kept ones stays.
  void forget_all_but(const Addresses& kept) noexcept {
    for (auto place = order_.rbegin(); place != order_.rend(); ++place) addresses_.erase(*place);
    std::erase_if(order_, [&](const Place& place) { return kept.find(place) == kept.end(); });
  }

  static constexpr std::size_t least_limit = 4096;

  B& backend_;
  Bytes arena_;
  Bytes budget_;
  std::vector<typename B::DeviceMemory> arenas_;
  Addresses addresses_;
  std::vector<Place> order_;  // in which the addresses were made
  std::size_t limit_ = least_limit;
};

}  // namespace swapmm::runtime
