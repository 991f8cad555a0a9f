// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/ways.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/v2/planners.hpp>

namespace swapmm::v2 {
namespace {

using Kind = WrittenStep::Kind;
using Finding = std::optional<Problem>;

std::string name_of_command(std::size_t command) { return "commands[" + std::to_string(command) + "]"; }

bool is_step(const Command& command) {
  return command.kind == CommandKind::run || command.kind == CommandKind::encode || command.kind == CommandKind::decode;
}

/// The position of a plan's form among those of the tensor; nothing if the tensor does not have it.
std::optional<std::uint32_t> form_number(const Trace& trace, const Plan& plan, TensorId tensor, FormId id) {
  if (index(tensor) >= trace.tensors.size()) return std::nullopt;
  const TensorForm* const form = find_form(trace, tensor, name_of(plan, id));
  if (form == nullptr) return std::nullopt;
  return static_cast<std::uint32_t>(form - forms_of(trace, tensor).data());
}

/// Finds the ways of a plan: what its commands do on the engine that computes.
class WayFinder {
 public:
  WayFinder(const Trace& trace, const Plan& plan) : trace_(trace), plan_(plan) {}

  Result<WaysBack> run() {
    for (const Division& division : plan_.pieces) ways_.pieces.push_back({division.tensor, division.at});
    std::ranges::sort(ways_.pieces, {}, &TensorPieces::tensor);
    for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
      const Command& command = plan_.commands[c];
      if (!is_step(command)) continue;
      if (!command.position) return Problem{name_of_command(c) + " runs behind all operations"};
      if (command.kind != CommandKind::run) {
        coders_.push_back(c);
      } else if (Finding finding = add_replay(command, c)) {
        return *std::move(finding);
      }
    }
    if (Finding finding = add_codings()) return *std::move(finding);
    return std::move(ways_);
  }

 private:
  Finding add_replay(const Command& command, std::size_t number) {
    if (*command.position <= index(command.operation)) {
      return Problem{name_of_command(number) + " runs an operation of the iteration before again"};
    }
    ways_.replays.push_back({command.operation, static_cast<OperationId>(*command.position)});
    return std::nullopt;
  }

  /// A decoding belongs to the last encoding before it, and an encoding to the first decoding behind it.
  Finding add_codings() {
    const auto key = [&](std::size_t c) {
      const Command& command = plan_.commands[c];
      // Behind an operation come its encodings, then the decodings before the next one.
      const bool decodes = command.kind == CommandKind::decode;
      return std::tuple(index(command.tensor), index(command.form), *command.position, decodes);
    };
    std::ranges::sort(coders_, {}, key);
    std::vector<std::size_t> encodings;  // not decoded yet
    std::optional<std::size_t> last;
    for (std::size_t i = 0; i < coders_.size(); ++i) {
      const Command& command = plan_.commands[coders_[i]];
      const Command* const before = i == 0 ? nullptr : &plan_.commands[coders_[i - 1]];
      const bool is_first = before == nullptr || before->tensor != command.tensor || before->form != command.form;
      if (is_first && !encodings.empty()) break;
      if (is_first) last.reset();
      if (command.kind == CommandKind::encode) {
        encodings.push_back(coders_[i]);
        last = coders_[i];
        continue;
      }
      if (!last) return Problem{name_of_command(coders_[i]) + " decodes what was not encoded before"};
      if (encodings.empty()) encodings.push_back(*last);
      for (const std::size_t encoding : std::exchange(encodings, {})) {
        if (Finding finding = add_coding(encoding, *command.position)) return finding;
      }
    }
    if (encodings.empty()) return std::nullopt;
    return Problem{name_of_command(encodings.front()) + " encodes what is not decoded in the same iteration"};
  }

  Finding add_coding(std::size_t encoding, std::uint32_t before) {
    const Command& command = plan_.commands[encoding];
    const std::optional<std::uint32_t> form = form_number(trace_, plan_, command.tensor, command.form);
    if (!form || *command.position == 0) return Problem{name_of_command(encoding) + " has nothing to encode"};
    ways_.codings.push_back(
        {command.tensor, *form, static_cast<OperationId>(*command.position - 1), static_cast<OperationId>(before)});
    return std::nullopt;
  }

  const Trace& trace_;
  const Plan& plan_;
  std::vector<std::size_t> coders_;  // commands that encode or decode
  WaysBack ways_;
};

/// Turns commands into steps of the written-out program, and tensors' pieces and forms into its tensors.
class StepsOfCommands {
 public:
  StepsOfCommands(const Trace& trace, const Plan& plan, const WrittenTrace& written, swapmm::Machine machine)
      : trace_(trace), plan_(plan), written_(written), device_(*plan.machine.engines[engine_number(plan)].memory) {
    out_.machine = std::move(machine);
    out_.trace_digest = digest(written.trace);
    out_.planner = plan.planner;
  }

  Result<swapmm::Plan> run() {
    if (Finding finding = number_all()) return *std::move(finding);
    if (Finding finding = add_places()) return *std::move(finding);
    for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
      Finding finding = is_step(plan_.commands[c]) ? check_step(c) : add_move(c);
      if (finding) return *std::move(finding);
    }
    for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
      if (is_step(plan_.commands[c])) let_wait(c);
    }
    predict();
    return std::move(out_);
  }

 private:
  static std::size_t engine_number(const Plan& plan) { return index(default_engine(plan.machine)); }
  [[nodiscard]] std::int32_t step_count() const { return static_cast<std::int32_t>(written_.steps.size()); }

  /// Numbers moves as commands of version 1, and the others as steps of the program: they are these in their order.
  Finding number_all() {
    number_.assign(plan_.commands.size(), 0);
    std::vector<std::size_t> steps;
    std::int32_t moves = 0;
    for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
      if (is_step(plan_.commands[c])) {
        steps.push_back(c);
      } else {
        number_[c] = moves++;
      }
    }
    std::ranges::stable_sort(steps, {}, [&](std::size_t c) { return *plan_.commands[c].position; });
    auto next = steps.begin();
    for (std::size_t i = 0; i < written_.steps.size(); ++i) {
      if (written_.steps[i].kind == Kind::operation) {
        place_.push_back(static_cast<std::int32_t>(i));
        continue;
      }
      if (next == steps.end() || !is_same(plan_.commands[*next], written_.steps[i])) break;
      const Command& command = plan_.commands[*next];
      if (*command.position != place_.size()) break;
      number_[*next++] = static_cast<std::int32_t>(i);
    }
    if (next == steps.end() && place_.size() == trace_.operations.size()) return std::nullopt;
    const std::string what = next == steps.end() ? std::string("its commands") : name_of_command(*next);
    return Problem{what + ": what runs again, and what is encoded or decoded, is in another order than the program's"};
  }

  [[nodiscard]] bool is_same(const Command& command, const WrittenStep& step) const {
    if (step.kind == Kind::replay) {
      return command.kind == CommandKind::run && index(command.operation) == step.which;
    }
    const bool encodes = step.kind == Kind::encode;
    if (command.kind != (encodes ? CommandKind::encode : CommandKind::decode)) return false;
    const EncodedTensor& encoded = written_.encoded[step.which];
    return command.tensor == encoded.tensor &&
           name_of(plan_, command.form) == forms_of(trace_, encoded.tensor)[encoded.form].name;
  }

  /// The tensor of the written-out program that a place or command means.
  template <class T>
  [[nodiscard]] std::optional<TensorId> part_of(const T& place_or_command) const {
    if (place_or_command.form == FormId::plain) {
      const TensorPart part{place_or_command.tensor, place_or_command.piece};
      const auto key = [](const TensorPart& each) { return std::tuple(index(each.tensor), each.piece); };
      const auto found = std::ranges::lower_bound(written_.parts, key(part), {}, key);
      if (found == written_.parts.end() || *found != part) return std::nullopt;
      return static_cast<TensorId>(found - written_.parts.begin());
    }
    const auto form = form_number(trace_, plan_, place_or_command.tensor, place_or_command.form);
    if (!form) return std::nullopt;
    const EncodedTensor encoded{place_or_command.tensor, *form};
    const auto key = [](const EncodedTensor& each) { return std::tuple(index(each.tensor), each.form); };
    const auto found = std::ranges::lower_bound(written_.encoded, key(encoded), {}, key);
    if (found == written_.encoded.end() || *found != encoded) return std::nullopt;
    return static_cast<TensorId>(written_.parts.size() + static_cast<std::size_t>(found - written_.encoded.begin()));
  }

  /// Of the host's places those are listed whose value is not the newest; the device has it then.
  Finding add_places() {
    std::vector<bool> is_stale(written_.trace.tensors.size(), false);
    for (const Place& place : plan_.initial) {
      const std::optional<TensorId> part = part_of(place);
      if (!part) return Problem{"initial: a part or form that the program does not have"};
      if (place.memory != device_) {
        is_stale[index(*part)] = !place.valid;
      } else if (place.valid) {
        out_.initial.push_back({*part, place.offset, true});
      } else {
        return Problem{"initial: a place on the device without the newest value"};
      }
    }
    for (Resident& resident : out_.initial) resident.host_valid = !is_stale[index(resident.tensor)];
    return std::nullopt;
  }

  Finding add_move(std::size_t number) {
    const Command& command = plan_.commands[number];
    const std::optional<TensorId> part = part_of(command);
    if (!part) return Problem{name_of_command(number) + ": a part or form that the program does not have"};
    if (command.position) return Problem{name_of_command(number) + ": a copy with a position"};
    swapmm::Command& move = out_.commands.emplace_back();
    move.tensor = *part;
    if (command.kind == CommandKind::copy) {
      const bool in = plan_.machine.links[index(command.link)].to == device_;
      move.kind = in ? swapmm::CommandKind::swap_in : swapmm::CommandKind::swap_out;
      if (in && !command.offset) return Problem{name_of_command(number) + " fills a place that is there"};
    } else {
      const bool takes = command.kind == CommandKind::allocate;
      move.kind = takes ? swapmm::CommandKind::allocate : swapmm::CommandKind::release;
    }
    if (has_place(move.kind)) move.offset = *command.offset;
    for (const Wait& wait : command.after) {
      const std::optional<Wait> moved = translated(wait);
      if (!moved) return Problem{name_of_command(number) + " waits for an operation that is not there"};
      move.after.push_back(*moved);
    }
    for (const std::uint32_t operation : command.before_operations) {
      const auto n = static_cast<std::uint32_t>(trace_.operations.size());
      const bool next_iteration = operation >= n;
      if (operation >= 2 * n) return Problem{name_of_command(number) + ": an operation that is not there"};
      let_begin_before(move, place_[operation % n], next_iteration);
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Wait> translated(const Wait& wait) const {
    if (wait.on == Wait::On::operation) {
      const auto n = static_cast<std::int32_t>(trace_.operations.size());
      const bool previous = wait.index < 0;
      const std::int32_t operation = previous ? wait.index + n : wait.index;
      if (operation < 0 || operation >= n) return std::nullopt;
      const std::int32_t step = place_[static_cast<std::size_t>(operation)];
      return Wait{Wait::On::operation, false, previous ? step - step_count() : step};
    }
    const auto command = static_cast<std::size_t>(wait.index);
    if (!is_step(plan_.commands[command])) return Wait{Wait::On::command, wait.previous, number_[command]};
    return Wait{Wait::On::operation, false, wait.previous ? number_[command] - step_count() : number_[command]};
  }

  /// Steps run in order, so that the first one that waits is enough.
  void let_begin_before(swapmm::Command& move, std::int32_t step, bool next_iteration) const {
    const auto before = static_cast<std::uint32_t>(step + (next_iteration ? step_count() : 0));
    move.before_operation = std::min(before, move.before_operation.value_or(before));
  }

  Finding check_step(std::size_t number) const {
    const Command& command = plan_.commands[number];
    if (!command.before_operations.empty()) {
      return Problem{name_of_command(number) + ": operations wait for it, which come behind it anyway"};
    }
    if (command.offset) return Problem{name_of_command(number) + " takes a place of its own"};
    for (const Wait& wait : command.after) {
      if (wait.on == Wait::On::operation || is_step(plan_.commands[static_cast<std::size_t>(wait.index)])) {
        return Problem{name_of_command(number) + " waits for what comes before it anyway"};
      }
    }
    return std::nullopt;
  }

  /// In version 1, the commands say which step waits for them.
  void let_wait(std::size_t number) {
    for (const Wait& wait : plan_.commands[number].after) {
      swapmm::Command& move = out_.commands[static_cast<std::size_t>(number_[static_cast<std::size_t>(wait.index)])];
      let_begin_before(move, number_[number], wait.previous);
    }
  }

  void predict() {
    out_.predicted.iteration = plan_.predicted.iteration;
    out_.predicted.compute = swapmm::planning::compute_time(written_.trace);  // with what the plan adds
    out_.predicted.lower_bound = plan_.predicted.lower_bound;
    for (std::size_t l = 0; l < plan_.predicted.links.size(); ++l) {
      const bool in = plan_.machine.links[l].to == device_;
      (in ? out_.predicted.h2d : out_.predicted.d2h) = plan_.predicted.links[l];
    }
    if (!plan_.predicted.peaks.empty()) out_.predicted.peak = plan_.predicted.peaks[index(device_)];
  }

  const Trace& trace_;
  const Plan& plan_;
  const WrittenTrace& written_;
  MemoryId device_;
  std::vector<std::int32_t> number_;  // per command: of its move, or of its step
  std::vector<std::int32_t> place_;   // per operation: its step
  swapmm::Plan out_;
};

}  // namespace

Result<PlanWithWays> to_ways(const Trace& trace, const Plan& plan) {
  if (digest(trace) != plan.trace_digest) return Problem{"the plan is for another program"};
  if (const Check check = check_plan(plan); !check) return check.problem();
  Result<swapmm::Machine> machine = to_version_1(plan.machine);
  if (!machine) return Problem{"machine: " + machine.problem().message};
  Result<WaysBack> ways = WayFinder(trace, plan).run();
  if (!ways) return ways.problem();
  const Result<WrittenTrace> written = with_ways(trace, *ways);
  if (!written) return written.problem();
  Result<swapmm::Plan> moves = StepsOfCommands(trace, plan, *written, *std::move(machine)).run();
  if (!moves) return moves.problem();
  return PlanWithWays{*std::move(ways), *std::move(moves)};
}

}  // namespace swapmm::v2
