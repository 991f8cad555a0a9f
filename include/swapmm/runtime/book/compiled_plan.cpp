// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/book/compiled_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace swapmm::runtime {

void Needs::add(QueueKind queue, std::int8_t iterations_back, std::uint32_t point) {
  const std::size_t q = index(queue);
  if (iterations_back > max_back) {
    iterations_back = max_back;
    point = 0;
  }
  const bool later = back[q] < 0 || iterations_back < back[q] || (iterations_back == back[q] && point > ordinal[q]);
  if (!later) return;
  back[q] = iterations_back;
  has_others = has_others || q >= base_queue_count;
  ordinal[q] = point;
}

void Needs::join(const Needs& other) {
  other.for_each([&](QueueKind queue) { add(queue, other.back[index(queue)], other.ordinal[index(queue)]); });
}

namespace {

class Compiler {
 public:
  Compiler(const Program& program, const Plan& plan, const std::vector<HomeCopy>& homes)
      : program_(program),
        plan_(plan),
        homes_(homes),
        n_(program.trace.operations.size()),
        commands_(plan.commands.size()) {}

  std::optional<Problem> run(CompiledPlan& out) {
    if (auto problem = check_supported()) return problem;
    number_copies();
    find_recorded_operations();
    resolve_needs();
    if (auto problem = place_in_slots()) return problem;
    find_uses();
    emit(out);
    return std::nullopt;
  }

 private:
  struct Info {
    std::uint32_t ordinal = 0;      // of a copy: its number on its queue
    std::int64_t predecessor = -1;  // the copy before it on its engine, in this iteration; -1: none
    Needs needs;  // points that must end before it starts; allocate and release have no point, and stand for these
    std::size_t slot = 0;
  };

  static bool is_copy(const Command& command) {
    return command.kind == CommandKind::swap_in || command.kind == CommandKind::swap_out;
  }
  [[nodiscard]] HomeCopy home_of(std::size_t c) const { return homes_.empty() ? HomeCopy{} : homes_[c]; }
  [[nodiscard]] QueueKind queue_of(std::size_t c) const {
    const Home home = home_of(c).home;
    return plan_.commands[c].kind == CommandKind::swap_in ? in_queue(home) : out_queue(home);
  }

  std::optional<Problem> check_supported() const {
    for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
      const Command& command = plan_.commands[c];
      const Role& role = program_.roles[index(command.tensor)];
      if (role.kind == Role::Kind::scratch && is_copy(command)) {
        return Problem{"commands[" + std::to_string(c) + "]: swaps the work area of an operation"};
      }
      if (command.kind == CommandKind::swap_in && role.input && command.before_operation &&
          *command.before_operation >= n_) {
        return Problem{"commands[" + std::to_string(c) + "]: brings in an input before its iteration"};
      }
    }
    for (const Resident& resident : plan_.initial) {
      if (program_.roles[index(resident.tensor)].input) {
        return Problem{"initial: tensor " + std::to_string(index(resident.tensor)) + " is an input"};
      }
    }
    return std::nullopt;
  }

  void number_copies() {
    std::array<std::uint32_t, device_queue_count> next{};
    std::array<std::int64_t, device_queue_count> last;
    last.fill(-1);
    const bool shared_engine = plan_.machine.duplex == Duplex::half;
    for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
      const Command& command = plan_.commands[c];
      if (!is_copy(command)) continue;
      const std::size_t queue = index(queue_of(c));
      const std::size_t engine = shared_engine ? index(QueueKind::h2d) : queue;
      commands_[c].ordinal = next[queue]++;
      commands_[c].predecessor = last[engine];
      last[engine] = static_cast<std::int64_t>(c);
    }
    copies_ = next;
  }

  struct Target {
    std::size_t index;
    std::int8_t back;
  };
  Target operation_of(const Wait& wait) const {
    if (wait.index >= 0) return {static_cast<std::size_t>(wait.index), 0};
    return {static_cast<std::size_t>(wait.index + static_cast<std::int64_t>(n_)), 1};
  }

  // Records an event after each operation that a copy waits for, directly or through an allocate or a release.
  void find_recorded_operations() {
    recorded_.assign(n_, false);
    for (const Command& command : plan_.commands) {
      for (const Wait& wait : command.after) {
        if (wait.on == Wait::On::operation) recorded_[operation_of(wait).index] = true;
      }
    }
    recorded_[n_ - 1] = true;  // the host counts its run-ahead at this point
    ordinal_.assign(n_, 0);
    std::uint32_t point = static_cast<std::uint32_t>(std::count(recorded_.begin(), recorded_.end(), true));
    copies_[index(QueueKind::compute)] = point;
    for (std::size_t i = n_; i-- > 0;) {
      if (recorded_[i]) --point;
      ordinal_[i] = point;
    }
  }

  // Works out the queue points that must have ended before each command starts.
  void resolve_needs() {
    // A command that is not a copy has no point of its own. It stands for the points it waits for. Such commands may
    // wait for each other, in any list order and across iterations. Repeated joins resolve all chains, in as many
    // rounds as the longest chain has links. Joins only grow, so a round without a change comes in the end.
    bool changed = true;
    while (changed) {
      changed = false;
      for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
        Needs needs;
        for (const Wait& wait : plan_.commands[c].after) add_wait(needs, wait);
        if (needs != commands_[c].needs) {
          commands_[c].needs = needs;
          changed = changed || !is_copy(plan_.commands[c]);
        }
      }
    }
    if (plan_.machine.duplex == Duplex::half) share_engine();
    operation_needs_.assign(n_, {});
    for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
      const Command& command = plan_.commands[c];
      if (!command.before_operation) continue;
      const std::size_t before = *command.before_operation;
      const auto back = static_cast<std::int8_t>(before / n_);
      add_command(operation_needs_[before % n_], c, back);
    }
  }

  void add_wait(Needs& needs, const Wait& wait) const {
    if (wait.on == Wait::On::operation) {
      const Target target = operation_of(wait);
      needs.add(QueueKind::compute, target.back, ordinal_[target.index]);
    } else {
      add_command(needs, static_cast<std::size_t>(wait.index), wait.previous ? 1 : 0);
    }
  }

  void add_command(Needs& needs, std::size_t c, std::int8_t back) const {
    const Command& command = plan_.commands[c];
    if (is_copy(command)) {
      needs.add(queue_of(c), back, commands_[c].ordinal);
      return;
    }
    const Needs& through = commands_[c].needs;
    through.for_each([&](QueueKind queue) {
      const std::size_t q = index(queue);
      needs.add(queue, static_cast<std::int8_t>(through.back[q] + back), through.ordinal[q]);
    });
  }

  // One copy engine serves both directions: each copy comes after the copy before it in the list.
  void share_engine() {
    std::int64_t last = -1;
    for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
      if (is_copy(plan_.commands[c])) last = static_cast<std::int64_t>(c);
    }
    for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
      if (!is_copy(plan_.commands[c])) continue;
      const std::int64_t before = commands_[c].predecessor;
      add_command(commands_[c].needs, static_cast<std::size_t>(before >= 0 ? before : last), before >= 0 ? 0 : 1);
    }
  }

  // Finds the slot of each command: the first one at which everything it waits for has been issued, and, for an input,
  // its value has been uploaded. Then sorts the commands by slot, and within a slot in the order that the waits demand,
  // releases first. A command that waits for a release, directly or through other commands, is thus issued after it, so
  // that bytes and tensors are given back before they are taken again.
  std::optional<Problem> place_in_slots() {
    const std::size_t count = plan_.commands.size();
    std::vector<std::vector<std::uint32_t>> followers(count);
    std::vector<std::uint32_t> open(count, 0);
    for (std::size_t c = 0; c < count; ++c) {
      const auto depend = [&](std::size_t other) {
        followers[other].push_back(static_cast<std::uint32_t>(c));
        ++open[c];
      };
      commands_[c].slot = first_slot(plan_.commands[c]);
      if (commands_[c].predecessor >= 0) depend(static_cast<std::size_t>(commands_[c].predecessor));
      for (const Wait& wait : plan_.commands[c].after) {
        if (wait.on == Wait::On::command && !wait.previous) depend(static_cast<std::size_t>(wait.index));
        if (wait.on == Wait::On::operation && wait.index >= 0) {
          commands_[c].slot = std::max(commands_[c].slot, 2 * static_cast<std::size_t>(wait.index) + 1);
        }
      }
    }
    // The same walk runs twice. The first pass finds the slots; the second pass uses them to find the order.
    std::vector<std::uint32_t> left = open;
    std::vector<std::uint32_t> ready;
    for (std::uint32_t c = 0; c < count; ++c) {
      if (left[c] == 0) ready.push_back(c);
    }
    for (std::size_t next = 0; next < ready.size(); ++next) {
      for (const std::uint32_t follower : followers[ready[next]]) {
        commands_[follower].slot = std::max(commands_[follower].slot, commands_[ready[next]].slot);
        if (--left[follower] == 0) ready.push_back(follower);
      }
    }
    if (ready.size() != count) return Problem{"waits go in a circle"};
    using Key = std::tuple<std::size_t, bool, std::uint32_t>;  // slot, not a release, list order
    const auto key = [&](std::uint32_t c) {
      return Key{commands_[c].slot, plan_.commands[c].kind != CommandKind::release, c};
    };
    std::priority_queue<Key, std::vector<Key>, std::greater<>> queue;
    for (std::uint32_t c = 0; c < count; ++c) {
      if (open[c] == 0) queue.push(key(c));
    }
    while (!queue.empty()) {
      const std::uint32_t c = std::get<2>(queue.top());
      queue.pop();
      order_.push_back(c);
      for (const std::uint32_t follower : followers[c]) {
        if (--open[follower] == 0) queue.push(key(follower));
      }
    }
    for (std::size_t c = 0; c < count; ++c) {
      const auto before = plan_.commands[c].before_operation;
      if (before && commands_[c].slot > 2 * std::size_t{*before}) {
        return Problem{"commands[" + std::to_string(c) + "] cannot be issued before operation " +
                       std::to_string(*before)};
      }
    }
    return values_of_one_handle_apart();
  }

  // The plan treats each value that the host uploads to a tensor as a tensor of its own. The program has only one
  // tensor, and that tensor has at most one device copy at a time, in the order in which the host issues commands.
  std::optional<Problem> values_of_one_handle_apart() const {
    std::unordered_map<std::uint64_t, std::size_t> resident;  // serial -> role
    for (const Resident& start : plan_.initial) {
      const Role& role = program_.roles[index(start.tensor)];
      if (role.kind == Role::Kind::handle) resident[role.serial] = index(start.tensor);
    }
    for (const std::uint32_t c : order_) {
      const std::size_t tensor = index(plan_.commands[c].tensor);
      const Role& role = program_.roles[tensor];
      if (role.kind != Role::Kind::handle) continue;
      if (plan_.commands[c].kind == CommandKind::release) {
        resident.erase(role.serial);
      } else if (plan_.commands[c].kind != CommandKind::swap_out) {
        const bool is_alone = resident.emplace(role.serial, tensor).second;
        if (!is_alone) {
          return Problem{"it would have two values of tensor \"" + program_.trace.tensors[tensor].name +
                         "\" on the device at once, as the host uploads one while operations use another: use a second "
                         "tensor"};
        }
      }
    }
    return std::nullopt;
  }

  // Whether the command drops a value, and what uses its tensor next in the iteration is a replay that writes it.
  [[nodiscard]] bool is_made_again(std::size_t c) const {
    const Command& command = plan_.commands[c];
    if (program_.replays.empty() || command.kind != CommandKind::release) return false;
    const auto next = static_cast<std::uint32_t>((commands_[c].slot + 1) / 2);  // the operation after the command
    const std::vector<std::uint32_t>& uses = uses_[index(command.tensor)];
    const auto use = std::ranges::lower_bound(uses, next);
    if (use == uses.end() || !program_.replays.is_replay[*use]) return false;
    const std::vector<TensorId>& writes = program_.trace.operations[*use].writes;
    return std::ranges::find(writes, command.tensor) != writes.end();
  }

  void find_uses() {
    if (program_.replays.empty()) return;
    uses_.resize(program_.roles.size());
    for (std::uint32_t i = 0; i < n_; ++i) {
      for_each_access(program_.trace.operations[i],
                      [&](TensorId tensor, Access) { uses_[index(tensor)].push_back(i); });
    }
  }

  std::size_t first_slot(const Command& command) const {
    if (command.kind != CommandKind::swap_in) return 0;
    return 2 * std::size_t{program_.trace.tensors[index(command.tensor)].available_from};  // 0 if not an input
  }

  void emit(CompiledPlan& out) {
    out.first_step.assign(2 * n_ + 1, 0);
    out.swapped_out.assign(program_.roles.size(), false);
    for (const std::uint32_t c : order_) {
      const Command& command = plan_.commands[c];
      out.steps.push_back({command.kind, static_cast<std::uint32_t>(command.tensor), command.offset, commands_[c].needs,
                           home_of(c), is_made_again(c), c});
      ++out.first_step[commands_[c].slot + 1];
      if (command.kind == CommandKind::swap_out) out.swapped_out[index(command.tensor)] = true;
      if (command.kind == CommandKind::swap_in || command.kind == CommandKind::allocate) {
        out.footprint = std::max(out.footprint, command.offset + program_.roles[index(command.tensor)].bytes);
      }
    }
    for (const Resident& resident : plan_.initial) {
      out.footprint = std::max(out.footprint, resident.offset + program_.roles[index(resident.tensor)].bytes);
    }
    std::partial_sum(out.first_step.begin(), out.first_step.end(), out.first_step.begin());
    for (std::size_t i = 0; i < n_; ++i) out.operations.push_back({operation_needs_[i], recorded_[i], ordinal_[i]});
    out.points = copies_;
  }

  const Program& program_;
  const Plan& plan_;
  const std::vector<HomeCopy>& homes_;
  std::size_t n_;
  std::vector<Info> commands_;
  std::array<std::uint32_t, device_queue_count> copies_{};
  std::vector<bool> recorded_;
  std::vector<std::uint32_t> ordinal_;
  std::vector<Needs> operation_needs_;
  std::vector<std::uint32_t> order_;
  std::vector<std::vector<std::uint32_t>> uses_;  // per tensor, ascending; empty if nothing runs again
};

}  // namespace

std::string CompiledPlan::observed_digest() const {
  return without_replays != nullptr ? digest(without_replays->trace) : plan.trace_digest;
}

Result<CompiledPlan> compile(Program program, Plan plan, const std::vector<HomeCopy>& copies) {
  CompiledPlan out;
  if (auto problem = Compiler(program, plan, copies).run(out)) return *std::move(problem);
  out.tells_homes = !copies.empty();
  out.program = std::move(program);
  out.plan = std::move(plan);
  return out;
}

}  // namespace swapmm::runtime
