// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/file_memory.hpp>
#include <swapmm/backend/neighbour.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/runtime/blocks/encoding_types.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/blocks/host_block.hpp>
#include <swapmm/runtime/order/timeline.hpp>
#include <swapmm/runtime/values/encoded_copies.hpp>
#include <swapmm/runtime/values/file_copies.hpp>
#include <swapmm/runtime/values/host_pool.hpp>
#include <swapmm/runtime/values/neighbour_copies.hpp>

namespace swapmm::runtime {

namespace detail {
struct NoCopies {};  // a backend that cannot use such a memory has none

template <class B>
struct FileCopiesOf {
  using Type = NoCopies;
};
template <FileBackend B>
struct FileCopiesOf<B> {
  using Type = FileCopies<B>;
};
template <class B>
struct NeighbourCopiesOf {
  using Type = NoCopies;
};
template <NeighbourBackend B>
struct NeighbourCopiesOf<B> {
  using Type = NeighbourCopies<B>;
};
template <class B>
struct EncodedCopiesOf {
  using Type = NoCopies;
};
template <EncodingBackend B>
struct EncodedCopiesOf<B> {
  using Type = EncodedCopies<B>;
};
}  // namespace detail

/// The right of a manager to use the memories that its options name, until this is destroyed.
class MemoryHolds {
 public:
  /// Throws UsageError if another manager uses one of them.
  explicit MemoryHolds(const Options& options) {
    if (options.file != nullptr) {
      if (!options.file->take()) {
        throw UsageError("Options::file: another manager uses " + options.file->name() + " already");
      }
      file_ = Held<FileMemory>(options.file);
    }
    for (const std::shared_ptr<Neighbour>& neighbour : options.neighbours) {
      if (neighbour == nullptr) throw UsageError("Options::neighbours: a null pointer");
      neighbours_.reserve(options.neighbours.size());
      if (!neighbour->take()) {
        throw UsageError("Options::neighbours: another manager uses " + neighbour->name() + " already");
      }
      neighbours_.emplace_back(neighbour);
    }
  }

  /// Null if there is none.
  [[nodiscard]] FileMemory* file() const { return file_.get(); }
  /// How many paths they are on.
  [[nodiscard]] std::size_t neighbour_paths() const { return std::min(neighbours_.size(), neighbour_path_count); }

 private:
  struct GivesBack {
    std::shared_ptr<void> keeps;
    template <class Memory>
    void operator()(Memory* memory) const {
      memory->give_back();
    }
  };
  template <class Memory>
  struct Held : std::unique_ptr<Memory, GivesBack> {
    Held() = default;
    explicit Held(const std::shared_ptr<Memory>& memory)
        : std::unique_ptr<Memory, GivesBack>(memory.get(), GivesBack{memory}) {}
  };

  Held<FileMemory> file_;
  std::vector<Held<Neighbour>> neighbours_;
};

/// The copies of values in memories in which the host does not find them as they are: a file, neighbours' memory, and
/// encoded forms.
template <Backend B>
class AwayCopies {
 public:
  using Block = HostBlock<B>;
  using Event = typename B::Event;
  using Waits = std::span<const Event* const>;

  /// Takes the memory that copies to and from a file pass through, and the memory on neighbours. `encoder`: null if no
  /// value is encoded. Throws UsageError if the backend has no such memories.
  AwayCopies(B& backend, Timeline<B>& timeline, HostPool<B>& pool, FileMemory* file_memory, const Options& options,
             typename EncodingTypes<B>::Encoder* encoder) {
    if (options.scrub && file_memory != nullptr) {
      throw UsageError("Options::scrub does not overwrite files: use it without Options::file");
    }
    if (options.scrub && pool.neighbours() != nullptr) {
      throw UsageError("Options::scrub does not overwrite neighbours' memory: use it without Options::neighbours");
    }
    if constexpr (FileBackend<B>) {
      if (file_memory != nullptr) file_.emplace(backend, timeline, pool, *file_memory, options.file_staging);
    } else if (file_memory != nullptr) {
      throw UsageError("Options::file: the backend of " + backend.capabilities().device_name + " cannot use files");
    }
    if constexpr (NeighbourBackend<B>) {
      if (pool.neighbours() != nullptr) neighbours_.emplace(backend, timeline, *pool.neighbours());
    } else if (pool.neighbours() != nullptr) {
      throw UsageError("Options::neighbours: the backend of " + backend.capabilities().device_name +
                       " cannot use other devices");
    }
    if constexpr (EncodingBackend<B>) {
      if (encoder != nullptr) encoded_.emplace(backend, timeline, *encoder);
    }
  }
  AwayCopies(const AwayCopies&) = delete;
  AwayCopies& operator=(const AwayCopies&) = delete;

  /// Queues the copy of a value to a place on the device, after `waits` on in_queue(), and records `end` there.
  [[gnu::cold, gnu::noinline]] void to_device(const typename B::Address& to, Block& from, Bytes size, Waits waits,
                                              const CommandLabel& label, Event& end) {
    if (is_neighbour(from.home())) {
      if constexpr (NeighbourBackend<B>) neighbours_->to_device(to, from, size, waits, end);
    } else if (from.home() == Home::encoded) {
      if constexpr (EncodingBackend<B>) encoded_->to_device(to, from, waits, end);
    } else {
      if constexpr (FileBackend<B>) file_->to_device(to, from, size, waits, label, end);
    }
  }
  /// Queues the copy of a value from a place on the device, after `waits` on out_queue(), which then comes after
  /// `gained`, and records `end` there. The value is in the block after block.ready().
  [[gnu::cold, gnu::noinline]] void from_device(Block& to, const typename B::Address& from, Bytes size, Waits waits,
                                                const Clock& gained, const CommandLabel& label, Event& end) {
    if (is_neighbour(to.home())) {
      if constexpr (NeighbourBackend<B>) neighbours_->from_device(to, from, size, waits, end);
    } else if (to.home() == Home::encoded) {
      if constexpr (EncodingBackend<B>) encoded_->from_device(to, from, waits, end);
    } else {
      if constexpr (FileBackend<B>) file_->to_file(to, from, size, waits, gained, label, end);
    }
  }

  /// Reads a part of a block's value into memory of the host. Waits for the value, and for the memory.
  void read(const Block& from, Bytes offset, std::span<std::byte> to) {
    if (is_neighbour(from.home())) {
      if constexpr (NeighbourBackend<B>) neighbours_->read(from, offset, to);
    } else if (from.home() == Home::encoded) {
      if constexpr (EncodingBackend<B>) encoded_->read(from, offset, to);
    } else {
      if constexpr (FileBackend<B>) file_->read(from, offset, to);
    }
  }
  /// Writes memory of the host into a part of a block that holds a value of `size` bytes. The rest of the value stays
  /// as it is. Work that uses the block must have ended. Waits for the memory. If it throws, and `began` is true, the
  /// block has no value any more.
  void write(Block& to, Bytes size, Bytes offset, std::span<const std::byte> from, bool& began) {
    if (is_neighbour(to.home())) {
      if constexpr (NeighbourBackend<B>) neighbours_->write(to, offset, from, began);
    } else if (to.home() == Home::encoded) {
      if constexpr (EncodingBackend<B>) encoded_->write(to, offset, from, began);
    } else {
      if constexpr (FileBackend<B>) file_->write(to, size, offset, from, began);
    }
  }

  /// Called when arenas of neighbours were removed or added. Nothing may use the removed ones. Throws BackendError.
  void match_neighbours([[maybe_unused]] const NeighbourBlocks<B>& blocks) {
    if constexpr (NeighbourBackend<B>) neighbours_->match(blocks);
  }

  /// So many bytes of the copies of neighbours so far were no values.
  void discount([[maybe_unused]] Bytes read, [[maybe_unused]] Bytes written) {
    if constexpr (NeighbourBackend<B>) neighbours_->discount(read, written);
  }
  /// What was read from a file, or from all neighbours, so far.
  [[nodiscard]] Bytes bytes_read(Home home) const {
    return of(home, [](const auto& copies) { return copies.bytes_read(); });
  }
  /// What was written there so far.
  [[nodiscard]] Bytes bytes_written(Home home) const {
    return of(home, [](const auto& copies) { return copies.bytes_written(); });
  }

 private:
  template <class Ask>
  [[nodiscard]] Bytes of(Home home, Ask&& ask) const {
    if constexpr (FileBackend<B>) {
      if (home == Home::file && file_) return ask(*file_);
    }
    if constexpr (NeighbourBackend<B>) {
      if (is_neighbour(home) && neighbours_) return ask(*neighbours_);
    }
    return {};
  }

  std::optional<typename detail::FileCopiesOf<B>::Type> file_;
  std::optional<typename detail::NeighbourCopiesOf<B>::Type> neighbours_;
  std::optional<typename detail::EncodedCopiesOf<B>::Type> encoded_;
};

}  // namespace swapmm::runtime
