// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/runtime/moves/demand.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/homes.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Compares the accesses of an operation with its declarations. For debugging only: copies all tensors of the bundle to
/// the host and waits, before and after the operation.
template <Backend B>
class AccessCheck {
 public:
  AccessCheck(Store<B>& store, Demand<B>& demand)
      : store_(store), demand_(demand), event_(store.backend.make_event()) {}
  AccessCheck(const AccessCheck&) = delete;
  AccessCheck& operator=(const AccessCheck&) = delete;
  ~AccessCheck() {
    if (staging_ != nullptr) store_.pool.release(std::move(staging_));
  }

  /// Called when the bundle is on the device and the operation is not yet queued. Fills tensors that the operation
  /// declares to write with poison.
  void before(const Request<B>& request) {
    for (const auto& item : request.items) {
      if (item.access == Access::write) keep_on_host(*item.record);
    }
    store_.drain();
    hashes_.clear();
    demand_.for_each_resident([&](Record<B>& record) {
      const Access* const access = access_of(request, record);
      if (access != nullptr && *access == Access::write) {
        poison(record);
      } else if (access == nullptr || *access == Access::read) {
        hashes_.push_back({&record, access != nullptr, hash(fetch(record), record.bytes)});
      }
    });
  }

  /// Called when the operation was queued. Throws AccessViolation if it did not do what it declares.
  void after(const Request<B>& request) {
    store_.timeline.host_wait(store_.timeline.everything());  // a failed operation is reported elsewhere
    for (const Seen& seen : hashes_) {
      if (hash(fetch(*seen.record), seen.record->bytes) == seen.hash) continue;
      if (seen.declared) throw changed_read(request, *seen.record);
      throw AccessViolation("operation " + in_quotes(request.name) + " changes tensor " + in_quotes(seen.record->name) +
                                ", which is not in its bundle",
                            details(request, *seen.record), AccessViolation::Kind::changed_undeclared);
    }
    for (const auto& item : request.items) {
      if (item.access != Access::write) continue;
      const std::uint64_t left = poisoned_bytes(fetch(*item.record), item.record->bytes);
      if (left == 0) continue;
      throw left_unwritten(request, *item.record, item.record->bytes, left);
    }
  }

  /// @{
  /// The same for a part of a work area that stands for a tensor: while nothing uses it.
  void poison(const typename B::Address& area, Bytes size) {
    HostBlock<B>& block = staging(size);
    store_.note_host_access(block, Bytes{}, size, true);
    std::byte* const data = block.data();
    for (std::uint64_t i = 0; i * word < size.value; ++i) {
      const std::uint64_t value = poison_word(i);
      std::memcpy(data + i * word, &value, std::min(word, size.value - i * word));
    }
    store_.issue([&] {
      store_.backend.copy_to_device(area, block.memory(), block.offset, size, {}, event_);
      wait(QueueKind::h2d);
    });
  }
  [[nodiscard]] std::uint64_t poisoned_bytes(const typename B::Address& area, Bytes size) {
    return poisoned_bytes(fetch(area, size), size);
  }
  [[nodiscard]] std::uint64_t hash(const typename B::Address& area, Bytes size) {
    return hash(fetch(area, size), size);
  }
  /// @}
  /// The errors.
  [[nodiscard]] static AccessViolation changed_read(const Request<B>& request, const Record<B>& record) {
    return {"operation " + in_quotes(request.name) + " changes tensor " + in_quotes(record.name) +
                ", which it declares to read: declare updates()",
            details(request, record), AccessViolation::Kind::changed_read};
  }
  [[nodiscard]] static AccessViolation left_unwritten(const Request<B>& request, const Record<B>& record, Bytes of,
                                                      std::uint64_t left) {
    return {"operation " + in_quotes(request.name) + " declares to write all of tensor " + in_quotes(record.name) +
                ", and leaves " + std::to_string(left) + " of its " + std::to_string(of.value) +
                " bytes as they were before: declare updates()",
            details(request, record), AccessViolation::Kind::left_unwritten, Bytes{left}};
  }

  /// Called after after(), for an operation that is declared replayable: remembers what it wrote or, if it has run
  /// again, compares. Throws AccessViolation if the values differ.
  void compare_runs(const Request<B>& request) {
    std::vector<std::uint64_t> wrote;
    for (const auto& item : request.items) {
      if (item.access == Access::write) wrote.push_back(hash(fetch(*item.record), item.record->bytes));
    }
    const std::vector<std::uint64_t> before = std::exchange(wrote_, wrote);
    if (!request.again || before == wrote) return;
    std::size_t next = 0;
    for (const auto& item : request.items) {
      if (item.access != Access::write) continue;
      const std::size_t written = next++;
      if (written < before.size() && before[written] == wrote[written]) continue;
      throw AccessViolation("operation " + in_quotes(request.name) +
                                " is declared replayable, and wrote another value to tensor " +
                                in_quotes(item.record->name) + " when it ran again with the same inputs",
                            details(request, *item.record), AccessViolation::Kind::not_replayable);
    }
  }

 private:
  static constexpr std::uint64_t word = 8;
  struct Seen {
    Record<B>* record;
    bool declared;
    std::uint64_t hash;
  };

  static ErrorDetails details(const Request<B>& request, const Record<B>& record) {
    return {.operation = std::string(request.name), .tensors = {name_of(record)}};
  }

  static const Access* access_of(const Request<B>& request, const Record<B>& record) {
    for (const auto& item : request.items) {
      if (item.record == &record) return &item.access;
    }
    return nullptr;
  }

  // Poison replaces a value that is to be overwritten. If the operation is not queued, the value is kept.
  void keep_on_host(Record<B>& record) {
    if (!record.device.valid) return;
    if (!record.host.valid) {
      store_.ensure_block_for_swap_out(record);
      store_.swap_out(record, store_.before_swap_out(record));
    }
    record.device.valid = false;
  }

  // Differs from word to word, so that poison copied to another place is not mistaken for poison there.
  static std::uint64_t poison_word(std::uint64_t position) {
    return 0x5A5A0BADF00D0000ULL ^ (position * 0x9E3779B97F4A7C15ULL);
  }

  static std::uint64_t hash(const std::byte* data, Bytes size) {
    std::uint64_t value = 0xCBF29CE484222325ULL;
    for (std::uint64_t i = 0; i < size.value; ++i)
      value = (value ^ static_cast<std::uint64_t>(data[i])) * 0x100000001B3ULL;
    return value;
  }

  // Counts bytes of whole words that are still poison. Half a word at the end counts too; with fewer bytes, an equal
  // real value is too likely.
  static std::uint64_t poisoned_bytes(const std::byte* data, Bytes size) {
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i * word < size.value; ++i) {
      const std::uint64_t length = std::min(word, size.value - i * word);
      const std::uint64_t poison = poison_word(i);
      if (length >= word / 2 && std::memcmp(data + i * word, &poison, length) == 0) count += length;
    }
    return count;
  }

  HostBlock<B>& staging(Bytes size) {
    if (staging_ == nullptr || staging_->size < size) {
      if (staging_ != nullptr) store_.pool.release(std::move(staging_));
      staging_ = acquire_free(store_, size);
    }
    return *staging_;
  }

  const std::byte* fetch(Record<B>& record) { return fetch(*record.device.address, record.bytes); }
  const std::byte* fetch(const typename B::Address& from, Bytes size) {
    HostBlock<B>& block = staging(size);
    store_.issue([&] {
      store_.backend.copy_to_host(block.memory(), block.offset, from, size, {}, event_);
      wait(QueueKind::d2h);
    });
    store_.note_host_access(block, Bytes{}, size, false);
    return block.data();
  }
  void poison(Record<B>& record) { poison(*record.device.address, record.bytes); }

  void wait(QueueKind queue) {
    store_.backend.flush(queue);
    store_.backend.wait(event_);
  }

  Store<B>& store_;
  Demand<B>& demand_;
  typename B::Event event_;
  std::unique_ptr<HostBlock<B>> staging_;
  std::vector<Seen> hashes_;
  std::vector<std::uint64_t> wrote_;  // by the last operation that is replayable
};

}  // namespace swapmm::runtime
