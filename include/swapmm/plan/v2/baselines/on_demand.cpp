// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/baselines/on_demand.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/baselines/command_chain.hpp>
#include <swapmm/plan/v2/baselines/paths.hpp>
#include <swapmm/plan/v2/baselines/residency.hpp>
#include <swapmm/plan/v2/baselines/uses.hpp>
#include <swapmm/plan/v2/baselines/victims.hpp>
#include <swapmm/plan/v2/engines.hpp>

namespace swapmm::v2::planning {
namespace {

/// Iterations until residents repeat; plans that do not by then begin each iteration with what is kept for good.
constexpr int most_iterations = 12;
constexpr int most_tries = 9;  // plans, each without one more store that had no room

class OnDemand {
 public:
  /// `avoided`: of each memory, whether nothing passes it, and nothing is there that need not be.
  OnDemand(const Trace& trace, const Machine& machine, Victim victim, Holes holes, const std::vector<bool>& avoided)
      : trace_(trace),
        machine_(machine),
        victim_(victim),
        engines_(trace, machine),
        uses_(trace),
        avoided_(avoided),
        paths_(machine, typical_size(trace), avoided),
        now_(trace, machine, holes),
        chain_(machine.memories.size(), trace.operations.size()),
        homes_(trace.tensors.size()),
        victims_(trace.tensors.size(), machine.memories.size()) {
    for (std::size_t t = 0; t < trace.tensors.size(); ++t) set_victim_key(id_at<TensorId>(t));
  }

  Result<Plan> plan() {
    Plan plan;
    plan.trace_digest = digest(trace_);
    plan.machine = machine_;
    if (!choose_homes(room_to_pass())) {
      // Without room to pass, as long as nothing has to.
      now_ = Residency(trace_, machine_, now_.holes());
      homes_.assign(trace_.tensors.size(), std::nullopt);
      problem_.reset();
      (void)choose_homes(std::vector<Bytes>(machine_.memories.size()));
    }
    Residency begin = now_;
    bool repeats = false;
    for (int iteration = 0; iteration < most_iterations && !problem_ && !repeats; ++iteration) {
      begin = now_;
      run_iteration();
      // The commands wait for those of the iteration before, so they are those that repeat only if that one was equal.
      repeats = begin == now_ && std::exchange(plan.commands, chain_.next_iteration()) == plan.commands;
    }
    if (!problem_ && !repeats) {
      go_home();
      chain_.next_iteration();
      begin = now_;
      // The first one waits for what was before, the second one for the first one.
      for (int iteration = 0; iteration < 2 && !problem_; ++iteration) {
        run_iteration();
        go_home();
        plan.commands = chain_.next_iteration();
      }
    }
    if (problem_) return *problem_;
    plan.initial = begin.initial();
    return plan;
  }

  /// The memory that stores or was passed, and had no room, if there is no plan because of it.
  [[nodiscard]] std::optional<MemoryId> full() const { return full_; }

 private:
  void fail(std::string message) {
    if (!problem_) problem_ = Problem{std::move(message)};
  }
  [[nodiscard]] std::string name(TensorId tensor) const {
    const std::string& text = trace_.tensors[index(tensor)].name;
    return "tensor " + std::to_string(index(tensor)) + (text.empty() ? "" : " \"" + text + '"');
  }
  [[nodiscard]] Bytes size(TensorId tensor) const { return trace_.tensors[index(tensor)].bytes; }
  [[nodiscard]] bool is_home(TensorId tensor, MemoryId memory) const { return homes_[index(tensor)] == memory; }

  [[nodiscard]] bool may_store(MemoryId memory) const { return !engines_.computes(memory) || memory == machine_.host; }

  /// Memories that run no operation of the trace, nearest to `memory` first, and those without a way back last.
  [[nodiscard]] std::vector<MemoryId> stores_near(MemoryId memory) const {
    std::vector<MemoryId> stores;
    for (std::size_t m = 0; m < machine_.memories.size(); ++m) {
      const auto store = id_at<MemoryId>(m);
      if (may_store(store) && !avoided_[m] && store != memory && paths_.reach(memory, store)) stores.push_back(store);
    }
    std::ranges::stable_sort(stores, {}, [&](MemoryId store) {
      return std::pair(!paths_.reach(store, memory), paths_.seconds(memory, store));
    });
    return stores;
  }

  /// Of each memory: bytes that homes leave free, because values pass it on their way to another one.
  [[nodiscard]] std::vector<Bytes> room_to_pass() const {
    Bytes largest;
    for (const TraceTensor& tensor : trace_.tensors) largest = std::max(largest, tensor.bytes);
    std::vector<Bytes> room(machine_.memories.size());
    for (std::size_t d = 0; d < machine_.memories.size(); ++d) {
      const auto device = id_at<MemoryId>(d);
      if (!engines_.computes(device)) continue;
      for (const MemoryId store : stores_near(device)) {
        for_each_passed(machine_, paths_.links(device, store), [&](std::size_t, MemoryId passed) {
          if (engines_.computes(passed) || now_.unlimited(passed)) return;
          // One value on its way out, and one on its way in.
          room[index(passed)] = std::min(largest + largest, Bytes{machine_.memories[index(passed)].bytes->value / 2});
        });
      }
    }
    return room;
  }

  /// `room`: of each memory, the bytes that stay free. Large tensors come first, because what does not fit near the
  /// devices is then small.
  [[nodiscard]] bool choose_homes(const std::vector<Bytes>& room) {
    std::vector<Bytes> free(machine_.memories.size());
    for (std::size_t m = 0; m < free.size(); ++m) {
      const std::optional<Bytes>& bytes = machine_.memories[m].bytes;
      if (bytes) free[m] = *bytes - room[m];
    }
    std::vector<bool> read_by_host(trace_.tensors.size(), false);
    for (const HostRead& read : trace_.host_reads) read_by_host[index(read.tensor)] = true;
    std::vector<TensorId> order;
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      if (trace_.tensors[t].kind != TensorKind::transient || read_by_host[t]) order.push_back(id_at<TensorId>(t));
    }
    const auto of_host = [&](TensorId t) {
      return read_by_host[index(t)] || trace_.tensors[index(t)].kind == TensorKind::input;
    };
    std::ranges::stable_sort(
        order, [&](TensorId a, TensorId b) { return std::pair(of_host(b), size(b)) < std::pair(of_host(a), size(a)); });
    for (const TensorId tensor : order) {
      const std::vector<MemoryId> stores = of_host(tensor) ? std::vector{machine_.host} : stores_of(tensor);
      for (const MemoryId store : stores) {
        std::optional<Bytes> offset;
        if (!now_.unlimited(store)) {
          if (!of_host(tensor) && size(tensor) > free[index(store)]) continue;
          offset = now_.hole(tensor, store);
          if (!offset) continue;
          now_.take(tensor, store, *offset);
          free[index(store)] -= std::min(free[index(store)], size(tensor));
        }
        homes_[index(tensor)] = store;
        if (trace_.tensors[index(tensor)].kind != TensorKind::transient) now_.add_current(tensor, store);
        break;
      }
      if (!homes_[index(tensor)]) {
        fail(name(tensor) + " of " + std::to_string(size(tensor).value) +
             " bytes has no room in any memory that only stores" +
             (of_host(tensor) ? " (it must be in the host)" : ""));
        return false;
      }
    }
    return true;
  }

  /// Where a tensor can have its home: the host if it has room, then by the way to the first operation that uses it.
  [[nodiscard]] std::vector<MemoryId> stores_of(TensorId tensor) const {
    const auto first = uses_.first(tensor);
    const MemoryId memory = first ? engines_.memory(*first) : engines_.memory(OperationId{0});
    std::vector<MemoryId> stores = stores_near(memory);
    if (!engines_.computes(memory)) stores.insert(stores.begin(), memory);
    std::ranges::stable_sort(
        stores, {}, [&](MemoryId store) { return std::pair(!paths_.reach(store, memory), store != machine_.host); });
    if (memory == machine_.host) stores.insert(stores.begin(), memory);
    return stores;
  }

  void run_iteration() {
    passed_ = begun_++ * trace_.operations.size();
    now_.begin_iteration();
    for (std::size_t i = 0; i < trace_.operations.size() && !problem_; ++i) {
      const auto operation = id_at<OperationId>(i);
      serve_before_gift(operation);
      if (!problem_) run(operation);
      if (!problem_) serve_host(operation);
    }
  }

  void run(OperationId operation) {
    at_ = operation;
    position_ = static_cast<std::uint32_t>(index(operation));
    const MemoryId memory = engines_.memory(operation);
    pinned_.clear();
    if (victim_ == Victim::used_furthest_ahead) {
      for_each_access(trace_.operations[index(operation)], [&](TensorId tensor, Access) { set_victim_key(tensor); });
    }
    may_empty_ = memory;
    bring_bundle(operation, memory);
    if (!std::exchange(may_empty_, std::nullopt)) {  // what is left is in pieces: all leaves, and the bundle returns
      pinned_.clear();
      while (const auto tensor = problem_ ? std::nullopt : find_victim(memory)) evict(*tensor, memory, 0);
      bring_bundle(operation, memory);
    }
    if (problem_) return;
    chain_.run(operation, engines_.engine(operation), memory);
    const bool concerns_host = !uses_.given_at(operation).empty() || !uses_.host_reads_at(operation).empty();
    if (concerns_host && memory != machine_.host) chain_.run(operation, engines_.engine(operation), machine_.host);
    for_each_access(trace_.operations[index(operation)], [&](TensorId tensor, Access access) {
      ++clock_;
      if (victim_ == Victim::least_recently_used) set_victim_key(tensor);
      if (access != Access::read) {
        now_.begin_value(tensor, memory);
        release_all_but(tensor, memory);
      }
    });
    pinned_.clear();
    // Values that died are released at once.
    for_each_access(trace_.operations[index(operation)], [&](TensorId tensor, Access) {
      const bool wanted = uses_.host_reads_after(tensor, operation);
      if (!wanted && uses_.dead_after(tensor, operation)) end_value(tensor);
    });
  }

  /// Until something fails, or there is no room for one of them although nothing else is there: see may_empty_.
  void bring_bundle(OperationId operation, MemoryId memory) {
    const bool may_empty = may_empty_.has_value();
    for_each_access(trace_.operations[index(operation)], [&](TensorId t, Access) { pinned_.emplace_back(t, memory); });
    for_each_access(trace_.operations[index(operation)], [&](TensorId tensor, Access) {
      if (problem_ || may_empty != may_empty_.has_value()) return;
      bring(tensor, memory, !uses_.writes_whole(tensor, operation));
    });
  }

  /// What the host reads at the end of the operation at which it gives the next value must be there before that.
  void serve_before_gift(OperationId operation) {
    at_ = operation;
    position_ = static_cast<std::uint32_t>(index(operation));
    for (const TensorId tensor : uses_.host_reads_at(operation)) {
      const auto given = uses_.given_at(operation);
      if (std::ranges::find(given, tensor) == given.end()) continue;
      const TraceOperation& it = trace_.operations[index(operation)];
      for (const std::vector<TensorId>* list : {&it.writes, &it.updates}) {
        if (std::ranges::find(*list, tensor) == list->end()) continue;
        return fail(
            "operation " + std::to_string(index(operation)) + " changes input " + name(tensor) +
            ", and the host reads it and gives the next value at its end: there is one place in the host for both");
      }
      pinned_.assign(1, {tensor, machine_.host});
      bring(tensor, machine_.host, true);
      pinned_.clear();
    }
  }

  void serve_host(OperationId operation) {
    position_ = static_cast<std::uint32_t>(index(operation) + 1);
    for (const TensorId tensor : uses_.host_reads_at(operation)) {
      pinned_.assign(1, {tensor, machine_.host});
      bring(tensor, machine_.host, true);
      if (problem_) return;
      pinned_.clear();
      if (uses_.dead_after(tensor, operation) && !uses_.host_reads_later(tensor, operation)) end_value(tensor);
    }
    for (const TensorId tensor : uses_.given_at(operation)) {
      end_value(tensor);
      now_.add_current(tensor, machine_.host);
    }
  }

  /// The value is not needed any more.
  void end_value(TensorId tensor) {
    release_all_but(tensor, std::nullopt);
    now_.end_value(tensor);
  }
  /// All places of the tensor but the home and that one are given back.
  void release_all_but(TensorId tensor, std::optional<MemoryId> kept) {
    for (std::size_t m = 0; m < machine_.memories.size(); ++m) {
      if (id_at<MemoryId>(m) != kept) release_if_spare(tensor, id_at<MemoryId>(m));
    }
  }
  void release_if_spare(TensorId tensor, MemoryId memory) {
    if (!now_.unlimited(memory) && !is_home(tensor, memory) && now_.has_place(tensor, memory)) release(tensor, memory);
  }
  void release(TensorId tensor, MemoryId memory) {
    Command command;
    command.kind = CommandKind::release;
    command.tensor = tensor;
    command.memory = memory;
    now_.give_back(tensor, memory);
    victims_.remove(tensor, memory);
    chain_.add(std::move(command), {memory});
  }

  /// Gives the tensor a place in the memory, with its value if needed.
  void bring(TensorId tensor, MemoryId memory, bool with_value) {
    if (with_value) {
      if (now_.is_current(tensor, memory)) return;
      const auto from = nearest(tensor, memory);
      if (!from) return fail(name(tensor) + " has no way to memory " + machine_.memories[index(memory)].name);
      move(tensor, *from, memory, 0);
    } else if (!now_.has_place(tensor, memory)) {
      const auto offset = make_room(tensor, memory, 0);
      if (!offset) return;
      Command command;
      command.kind = CommandKind::allocate;
      command.tensor = tensor;
      command.memory = memory;
      command.offset = *offset;
      take(tensor, memory, *offset);
      chain_.add(std::move(command), {memory});
    }
  }

  [[nodiscard]] std::optional<MemoryId> nearest(TensorId tensor, MemoryId to) const {
    std::optional<MemoryId> best;
    for (const MemoryId from : now_.current(tensor)) {
      if (!paths_.reach(from, to)) continue;
      if (!best || paths_.seconds(from, to) < paths_.seconds(*best, to)) best = from;
    }
    return best;
  }

  /// Copies the value over the fastest way. Places on the way are given back.
  void move(TensorId tensor, MemoryId from, MemoryId to, std::size_t depth) {
    const std::size_t pins = pinned_.size();
    pinned_.emplace_back(tensor, from);
    for (const LinkId id : paths_.links(from, to)) {
      const Link& link = machine_.links[index(id)];
      Command command;
      command.kind = CommandKind::copy;
      command.tensor = tensor;
      command.link = id;
      const bool between_operations = index(engine_of(machine_, id)) < machine_.engines.size() &&
                                      machine_.engines[index(engine_of(machine_, id))].memory;
      if (between_operations) command.position = position_;
      if (!now_.has_place(tensor, link.to)) {
        const auto offset = make_room(tensor, link.to, depth);
        if (!offset && link.to != to && !full_) full_ = link.to;
        if (!offset) break;
        take(tensor, link.to, *offset);
        command.offset = *offset;
      }
      pinned_.emplace_back(tensor, link.to);
      now_.add_current(tensor, link.to);
      chain_.add(std::move(command), {link.from, link.to});
      if (link.from != from) release_if_spare(tensor, link.from);
    }
    pinned_.resize(pins);
  }

  /// A place for the tensor. Others leave if there is none.
  std::optional<Bytes> make_room(TensorId tensor, MemoryId memory, std::size_t depth) {
    while (!problem_) {
      if (const auto offset = now_.hole(tensor, memory)) return offset;
      const auto victim = find_victim(memory);
      if (!victim) break;
      evict(*victim, memory, depth);
    }
    if (may_empty_ == memory) {
      may_empty_.reset();
    } else if (!problem_) {
      if (may_store(memory)) full_ = memory;
      const TraceOperation& operation = trace_.operations[index(at_)];
      fail("operation " + std::to_string(index(at_)) + (operation.name.empty() ? "" : " \"" + operation.name + '"') +
           ": no room for " + name(tensor) + " of " + std::to_string(size(tensor).value) + " bytes in memory " +
           machine_.memories[index(memory)].name + " of " +
           std::to_string(machine_.memories[index(memory)].bytes->value) + " bytes");
    }
    return std::nullopt;
  }

  void take(TensorId tensor, MemoryId memory, Bytes offset) {
    now_.take(tensor, memory, offset);
    if (!is_home(tensor, memory)) victims_.add(tensor, memory);
  }

  /// The tensor that is used furthest ahead, or was used longest ago, has the smallest key. Operations count on from
  /// iteration to iteration.
  void set_victim_key(TensorId tensor) {
    if (victim_ == Victim::least_recently_used) return victims_.set_key(tensor, clock_);
    constexpr std::uint64_t never = ~std::uint64_t{0};
    const std::uint64_t distance = trace_.operations.empty() ? never : uses_.distance(tensor, at_);
    victims_.set_key(tensor, distance == never ? 0 : never - (passed_ + index(at_) + distance));
  }

  [[nodiscard]] std::optional<TensorId> find_victim(MemoryId memory) const {
    return victims_.first(memory, [&](TensorId tensor) {
      return std::ranges::find(pinned_, std::pair(tensor, memory)) == pinned_.end();
    });
  }

  void evict(TensorId tensor, MemoryId memory, std::size_t depth) {
    const bool only_copy = now_.is_current(tensor, memory) && now_.current(tensor).size() == 1;
    if (only_copy && !leave(tensor, memory, depth)) {
      return fail("no memory has room for " + name(tensor) + " of " + std::to_string(size(tensor).value) +
                  " bytes, which must leave memory " + machine_.memories[index(memory)].name);
    }
    if (!problem_) release(tensor, memory);
  }

  /// Copies the value to its home, or to the nearest memory with room.
  bool leave(TensorId tensor, MemoryId memory, std::size_t depth) {
    if (depth >= machine_.memories.size()) return false;  // what leaves makes others leave, but not in a circle
    if (const auto home = homes_[index(tensor)]; home && paths_.reach(memory, *home)) {
      move(tensor, memory, *home, depth + 1);
      return true;
    }
    const std::vector<MemoryId> stores = stores_near(memory);
    for (const MemoryId store : stores) {
      if (!now_.has_place(tensor, store) && !now_.hole(tensor, store)) continue;
      move(tensor, memory, store, depth + 1);
      return true;
    }
    // All are full: what is there moves on.
    for (const MemoryId store : stores) {
      if (size(tensor) > *machine_.memories[index(store)].bytes || !find_victim(store)) continue;
      move(tensor, memory, store, depth + 1);
      return true;
    }
    return false;
  }

  /// Everything returns to its home, and all other places are given back.
  void go_home() {
    at_ = OperationId{0};
    position_ = static_cast<std::uint32_t>(trace_.operations.size());
    for (std::size_t t = 0; t < trace_.tensors.size() && !problem_; ++t) {
      const auto tensor = id_at<TensorId>(t);
      const auto home = homes_[t];
      if (home && !now_.current(tensor).empty() && !now_.is_current(tensor, *home)) {
        const auto from = nearest(tensor, *home);
        if (!from)
          return fail(name(tensor) + " has no way to its home, memory " + machine_.memories[index(*home)].name);
        move(tensor, *from, *home, 0);
      }
      release_all_but(tensor, std::nullopt);
    }
  }

  const Trace& trace_;
  const Machine& machine_;
  const Victim victim_;
  const detail::Engines engines_;
  const Uses uses_;
  const std::vector<bool>& avoided_;
  const Paths paths_;
  Residency now_;
  CommandChain chain_;
  std::vector<std::optional<MemoryId>> homes_;  // of each tensor
  Victims victims_;                             // without homes
  std::uint64_t clock_ = 0;                     // uses so far
  std::uint64_t begun_ = 0;                     // iterations
  std::uint64_t passed_ = 0;                    // operations before this iteration
  OperationId at_{};                            // the operation for which things move
  std::uint32_t position_ = 0;                  // of copies on engines that run operations, too
  std::vector<std::pair<TensorId, MemoryId>> pinned_;
  std::optional<MemoryId> may_empty_;  // a bundle is brought there, and has always found room
  std::optional<MemoryId> full_;
  std::optional<Problem> problem_;
};

}  // namespace

Result<Plan> on_demand(const Trace& trace, const Machine& machine, Victim victim, Holes holes) {
  std::vector<bool> avoided(machine.memories.size(), false);
  std::optional<Problem> problem;
  for (int tries = 0; tries < most_tries; ++tries) {
    OnDemand search(trace, machine, victim, holes, avoided);
    Result<Plan> plan = search.plan();
    if (plan) return plan;
    if (!problem) problem = plan.problem();
    const auto full = search.full();
    if (!full || avoided[index(*full)]) break;
    avoided[index(*full)] = true;
  }
  return *problem;
}

}  // namespace swapmm::v2::planning
