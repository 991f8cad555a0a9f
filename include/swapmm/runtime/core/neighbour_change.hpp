// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/neighbour.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/blocks/neighbour_blocks.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/plan_controller.hpp>
#include <swapmm/runtime/core/session_state.hpp>
#include <swapmm/runtime/values/homes.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {

/// Changes the memory that a manager has on a neighbour. If it is to be less, all of it is given back and the rest
/// taken anew, because it is a few allocations; values move away before that.
template <Backend B>
class NeighbourChange {
 public:
  using Rec = Record<B>;

  NeighbourChange(SessionState<B>& state, PlanController<B>& controller, ProgramBook& book)
      : state_(state), store_(state.store), controller_(controller), book_(book), blocks_(store_.pool.neighbours()) {}

  void to(const Neighbour& neighbour, Bytes bytes) {
    const std::optional<Bytes> now = blocks_ != nullptr ? blocks_->bytes_of(neighbour) : std::nullopt;
    if (!now) throw UsageError(neighbour.name() + " is none of the manager's Options::neighbours");
    if (bytes > neighbour.capacity()) {
      throw UsageError(std::to_string(bytes.value) + " bytes of " + neighbour.name() + ", which has " +
                       std::to_string(neighbour.capacity().value));
    }
    bytes = round_down(bytes, neighbour.alignment());
    if (bytes == *now) return;
    const std::size_t path = blocks_->path_of(neighbour);
    NeighbourBytes others = store_.neighbours_budget();
    others[path] -= *now;
    NeighbourBytes next = others;
    next[path] += bytes;
    book_.prepare_budgets({{store_.budget(), next}, {store_.budget(), others}});
    controller_.leave_for_budget();
    store_.timeline.host_wait(store_.timeline.everything());
    if (bytes > *now) {
      take(neighbour, bytes - *now);
    } else {
      give_back(neighbour);
      try {
        take(neighbour, bytes);
      } catch (const OutOfMemory&) {
        if (lost_.tensors.empty()) throw;  // else what was lost is told
      }
    }
    if (!lost_.tensors.empty()) throw lost_values();
  }

 private:
  void take(const Neighbour& neighbour, Bytes bytes) {
    const std::vector<std::size_t> added = blocks_->add(neighbour, bytes);
    try {
      store_.away.match_neighbours(*blocks_);
    } catch (...) {
      blocks_->remove(added);
      store_.away.match_neighbours(*blocks_);
      use();
      throw;
    }
    use();
  }

  void give_back(const Neighbour& neighbour) {
    blocks_->close(neighbour);
    try {
      for (Rec& record : store_.records) move_away(record);
    } catch (...) {
      blocks_->reopen(neighbour);
      throw;
    }
    blocks_->for_each_kept([&](HostBlock<B>& block) { state_.promises.settle(store_, block); });
    store_.backend.finish();  // a driver may keep memory of commands that have ended until somebody waits
    blocks_->remove_closed();
    store_.away.match_neighbours(*blocks_);
    use();
  }

  void use() noexcept { book_.use_budget({store_.budget(), store_.neighbours_budget()}); }

  [[nodiscard]] bool must_go(const std::unique_ptr<HostBlock<B>>& block) const {
    return block != nullptr && is_neighbour(block->home()) && blocks_->is_closed(*block);
  }

  void move_away(Rec& record) {
    if (must_go(record.host.spare)) leave(record.host.spare);
    if (!must_go(record.host.block)) return;
    if (!record.host.valid) return leave(record.host.block);
    if (record.device.valid) {  // all work has ended: it is the same value
      record.device.issue = std::min(record.device.issue, record.host.issue);
      record.host.valid = false;
      return leave(record.host.block);
    }
    std::unique_ptr<HostBlock<B>> to;
    state_.demand.with_host_room(record, [&] { to = store_.pool.acquire(record.bytes); });
    copy(record, std::move(to));
  }

  // The value is lost if it cannot be read.
  void copy(Rec& record, std::unique_ptr<HostBlock<B>> to) {
    state_.promises.settle(store_, *to);
    try {
      store_.settle_pending(*record.host.block);
      store_.timeline.host_wait(to->busy());
      copy_by_host(*record.host.block, *to, record.bytes, store_);
    } catch (const BackendError& error) {
      if (error.kind == BackendError::Kind::device_lost) throw;
      store_.pool.release(std::move(to));
      state_.promises.settle(store_, *record.host.block);  // gives up what cannot be read
      lost_.tensors.push_back(name_of(record));
      lost_.lost.push_back(name_of(record));
      why_ = std::current_exception();
      store_.lose(record);
      return leave(record.host.block);
    }
    std::swap(record.host.block, to);
    store_.pool.release(std::move(to));
  }

  void leave(std::unique_ptr<HostBlock<B>>& block) {
    state_.promises.settle(store_, *block);
    store_.pool.release(std::move(block));
  }

  WorkFailed lost_values() { return runtime::work_failed(WorkFailed::Work::swap_in, std::move(lost_), nullptr, why_); }

  SessionState<B>& state_;
  Store<B>& store_;
  PlanController<B>& controller_;
  ProgramBook& book_;
  NeighbourBlocks<B>* blocks_;
  ErrorDetails lost_;
  std::exception_ptr why_;
};

}  // namespace swapmm::runtime
