// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include <swapmm/interface/options.hpp>
#include <swapmm/interface/shared_links.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/entrance_options.hpp>
#include <swapmm/runtime/core/failures.hpp>
#include <swapmm/runtime/core/kept_operations.hpp>
#include <swapmm/runtime/joint/link_group.hpp>
#include <swapmm/runtime/joint/turn_board.hpp>
#include <swapmm/runtime/links/neighbour_links.hpp>
#include <swapmm/runtime/moves/demand.hpp>
#include <swapmm/runtime/moves/plan_executor.hpp>
#include <swapmm/runtime/observe/recorder.hpp>
#include <swapmm/runtime/values/promises.hpp>
#include <swapmm/runtime/values/store.hpp>
#include <swapmm/runtime/views/open_views.hpp>

namespace swapmm::runtime {

/// The state of an open manager: the values, the two ways to move them, and known failures.
template <Backend B>
struct SessionState {
  SessionState(B backend, const Options& options, const EntranceOptions& entrance = {})
      : store(std::move(backend), options, entrance.shared_host),
        demand(store, entrance.undefined_reads, options.demand_mode == DemandMode::foreseen),
        executor(store, demand, options.run_ahead, entrance.certainly_dead, entrance.callables_until_end),
        recorder(store, entrance.identify_by_producer),
        failures(store) {
    if (options.shared_links != nullptr) share_links(SharedLinksAccess::group(*options.shared_links));
  }

  Store<B> store;
  Demand<B> demand;
  PlanExecutor<B> executor;
  Recorder<B> recorder;
  Failures<B> failures;
  Promises<B> promises;
  KeptOperations<B> kept;
  OpenViews<B> views;
  std::uint64_t budget_changes = 0;
  std::shared_ptr<LinkMember> link_member;           ///< with Options::shared_links
  std::optional<std::pair<Link, Link>> links_alone;  ///< the same: to the device and back, measured at first
  NeighbourLinks neighbour_links;                    ///< with neighbours: measured at first
  bool in_capture = false;  ///< queued work is captured and does not run yet: see IterationCapture

  void share_links(const std::shared_ptr<LinkGroup>& group) {
    link_member = std::make_shared<LinkMember>(group);
    std::shared_ptr<TurnBoard<B>> board = group->board<B>(link_member->id());
    if (board == nullptr) return;
    board->add(link_member->id(), store.backend);
    executor.turns().join(std::move(board), link_member->id(), in_capture);
  }

  /// The speed that plans are made for if nothing is known, not even after LinkProbe: so slow that a plan moves as
  /// little as it can and begins to move as soon as it can, which is right for any speed.
  static constexpr Link unknown_link{100'000'000, std::chrono::nanoseconds{0}};

  /// False if the machine's links are not given, and no copy was timed in either direction.
  [[nodiscard]] bool knows_links(const ProgramBook& book) const {
    if (book.options().machine) return true;
    return std::ranges::any_of(device_queues, [&](QueueKind queue) { return store.link(queue).link().has_value(); });
  }

  /// The same for those that are to be measured if no copy was timed. Without neighbours it is enough to know one.
  [[nodiscard]] bool knows_all_links(const ProgramBook& book) const {
    bool all = knows_host_link(book);
    for (std::size_t path = 0; path < neighbour_path_count; ++path) all = all && knows_neighbours_link(path);
    return all;
  }
  [[nodiscard]] bool knows_host_link(const ProgramBook& book) const {
    if (store.encodings.history().is_on()) return has_link(Home::host);  // encoded copies are compared with plain ones
    if (book.options().machine || store.pool.neighbours() == nullptr) return knows_links(book);
    return has_link(Home::host);
  }
  /// True if there are none on that path.
  [[nodiscard]] bool knows_neighbours_link(std::size_t path) const {
    return store.neighbours_budget()[path].value == 0 || has_link(neighbour_home(path));
  }

  /// The machine that plans are made for: the manager's device, with links as given or as observed.
  [[nodiscard]] KnownMachine machine(const ProgramBook& book) {
    const Capabilities& can = store.backend.capabilities();
    KnownMachine machine = book.options().machine.value_or(Machine{});
    if (!book.options().machine) {
      std::tie(machine.h2d, machine.d2h) = links(QueueKind::h2d, QueueKind::d2h);
      machine.duplex = can.copy_engines == 1 ? Duplex::half : Duplex::full;
      machine.name = can.device_name;
    }
    machine.links_alone = links_alone;
    machine.device_budget = store.budget();
    machine.alignment = can.alignment;
    machine.max_allocation.reset();
    if (store.places.arena() != store.budget()) machine.max_allocation = store.places.arena();
    if (store.pool.file() == nullptr && store.pool.neighbours() == nullptr) return machine;
    if (store.records.constants() > 0) {
      // Constants stay in their files, so there is nothing to choose. What they copied so far tells their share.
      if (!book.options().machine) machine.h2d = link_with_constants(machine.h2d);
      return machine;
    }
    machine.tiers = tiers();
    if (!book.options().machine) as_if_alone(Home::host, machine.h2d, machine.d2h);
    const bool knows_host = book.options().machine || has_link(Home::host);
    if (!knows_host && machine.tiers->file) {
      std::tie(machine.h2d, machine.d2h) = std::pair(machine.tiers->file->in, machine.tiers->file->out);
    }
    return machine;
  }

  [[nodiscard]] bool has_link(Home home) const {
    return store.link(in_queue(home)).link() || store.link(out_queue(home)).link();
  }

  [[nodiscard]] Link link_with_constants(const Link& from_host) const {
    const std::optional<Link> from_file = store.link(QueueKind::staged_h2d).link();
    if (!from_file) return from_host;
    const bool host_is_known = store.link(QueueKind::h2d).link().has_value();
    const auto all = static_cast<double>(store.traffic.h2d.value);
    const double share = all > 0 ? static_cast<double>(store.traffic.from_file.value) / all : 1;
    return host_is_known ? mixed(from_host, *from_file, share) : *from_file;
  }

  /// The bytes that copies of such a tensor seem to move, because its values are encoded on their way; none: they are
  /// not, or nothing is known.
  [[nodiscard]] std::optional<Bytes> copied_if_encoded(const ProgramBook& book, std::string_view name, Bytes bytes) {
    const EncodingHistory& history = store.encodings.history();
    if (!history.may_encode(bytes) || !has_link(Home::host)) return std::nullopt;
    const std::uint32_t number = history.find(name, bytes);
    if (number == not_encoded) return std::nullopt;
    if (const auto& given = book.options().machine) return history.moved(number, given->h2d, given->d2h);
    const auto [in, out] = links(QueueKind::h2d, QueueKind::d2h);
    return history.moved(number, in, out);
  }

  /// The memories behind the device: what they have for the tensors of the current log and of the plan that is
  /// followed. If there is neither, as after a change of budgets, for all tensors.
  [[nodiscard]] Tiers tiers() {
    const auto is_planned = [&](const Record<B>& record) {
      return record.log.epoch == recorder.epoch() || record.plan.role != none;
    };
    const bool any_planned = std::any_of(store.records.begin(), store.records.end(), is_planned);
    Bytes others = store.pool.staging();
    NeighbourBytes on_neighbours;
    for (const Record<B>& record : store.records) {
      if (!record.tensor.in_use) continue;
      const bool is_other = any_planned && !is_planned(record);
      for (const HostBlock<B>* const block : {is_other ? record.host.block.get() : nullptr, record.host.spare.get()}) {
        if (block == nullptr) continue;
        others += block->host_bytes();
        if (is_neighbour(block->home())) on_neighbours[neighbour_path(block->home())] += block->size;
      }
    }
    Tiers tiers;
    const Bytes all = store.pool.budget().in_use() + store.pool.budget().room(HostKind::pageable);
    tiers.host = all > others ? all - others : Bytes{};
    tiers.host_alignment = store.pool.alignment();
    for (std::size_t path = 0; path < neighbour_path_count; ++path) {
      const Bytes bytes = store.neighbours_budget()[path];
      if (bytes.value == 0) continue;
      const AwayMemory tier = tier_of(neighbour_home(path), bytes - std::min(bytes, on_neighbours[path]),
                                      store.pool.neighbours()->alignment());
      if (tier.bytes.value != 0) tiers.neighbours[path] = tier;
    }
    tiers.between_neighbours = neighbour_links.between;
    tiers.with_host = neighbour_links.with_host;
    if (store.pool.file() != nullptr) {
      const FileMemory& file = store.pool.file()->file();
      tiers.file = tier_of(Home::file, file.capacity(), file.alignment());
    }
    return tiers;
  }

  /// A part stays free, because places may lie so that what is left is in pieces.
  [[nodiscard]] AwayMemory tier_of(Home home, Bytes bytes, Bytes alignment) const {
    auto [in, out] = links(in_queue(home), out_queue(home));
    as_if_alone(home, in, out);
    return {round_down(Bytes{bytes.value - bytes.value / 16}, alignment), alignment, in, out};
  }
  /// Where links share what they carry, copies of the program seem slower than a link is alone.
  void as_if_alone(Home home, Link& in, Link& out) const {
    const LinksAlone* const alone = neighbour_links.of(home);
    if (alone == nullptr) return;
    if (neighbour_links.slowed_in(home)) in = faster(in, alone->in);
    if (neighbour_links.slowed_out(home)) out = faster(out, alone->out);
  }

  /// What is known of both directions. If copies ran in one only, the other is assumed to be alike.
  [[nodiscard]] std::pair<Link, Link> links(QueueKind in_queue, QueueKind out_queue) const {
    const std::optional<Link> in = store.link(in_queue).link();
    const std::optional<Link> out = store.link(out_queue).link();
    const Link known = in ? *in : out.value_or(unknown_link);
    return {known, out ? *out : known};
  }

  /// See Core::give_back_host().
  void give_back_host(Bytes wanted) { demand.give_back_host(wanted, executor.active()); }

  /// Called when nothing refers to the tensor any more. Frees its bytes for use once the work that uses them has ended.
  void free_storage(Record<B>& record) noexcept {
    if (record.host.block != nullptr) promises.settle(store, *record.host.block);
    if (record.host.spare != nullptr) promises.settle(store, *record.host.spare);
    if (record.device.resident) demand.release(record);
    store.free_host(record);
    store.records.remove(record);
  }
};

}  // namespace swapmm::runtime
