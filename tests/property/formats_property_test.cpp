// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <swapmm/formats/machine_json.hpp>
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/limits.hpp>

using namespace swapmm;

namespace {

/// Draws things of the formats, with the extremes that each may hold.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  /// From 0 to n - 1.
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool chance(std::uint64_t one_in) { return below(one_in) == 0; }
  /// From 0 to `most`, small ones as often as large ones, the ends more often.
  std::uint64_t number(std::uint64_t most) {
    if (chance(8)) return most - std::min(most, below(2));
    const std::uint64_t value = random_() % (most + 1);
    return value >> below(60);
  }

  std::string name() {
    static const std::vector<std::string> pieces = {"a",
                                                    "conv",
                                                    "\"",
                                                    "\\",
                                                    "/",
                                                    "\n",
                                                    std::string(1, '\0'),
                                                    "\x1F",
                                                    "\x7F",
                                                    "\xC3\xA4",
                                                    "\xE2\x82\xAC",
                                                    "{",
                                                    "]",
                                                    "\\u0041",
                                                    "\xF0\x9F\x98\x80",
                                                    "\xEF\xBB\xBF",
                                                    "\xED\x9F\xBF",
                                                    "\xEE\x80\x80",
                                                    " ",
                                                    ",",
                                                    ":"};
    std::string text;
    if (chance(50)) text.assign(limits::name_bytes, 'x');
    for (std::uint64_t count = below(6); text.empty() && count > 0; --count) text += pieces[below(pieces.size())];
    return text;
  }

  Trace trace() {
    Trace trace;
    trace.name = name();
    trace.tensors.resize(below(7));
    trace.operations.resize(1 + below(7));
    for (TraceTensor& tensor : trace.tensors) {
      tensor = {name(), Bytes{number(limits::magnitude / 8)}, static_cast<TensorKind>(below(3)), 0};
      if (tensor.kind == TensorKind::input) {
        tensor.available_from = static_cast<std::uint32_t>(below(trace.operations.size()));
      }
    }
    for (TraceOperation& operation : trace.operations) {
      operation.name = name();
      operation.duration = std::chrono::nanoseconds{static_cast<std::int64_t>(number(limits::magnitude / 8))};
    }
    for (std::size_t i = 0; i < trace.operations.size(); ++i) bundle(trace, i);
    for (std::uint64_t count = below(3); count > 0 && !trace.tensors.empty(); --count) host_read(trace);
    return trace;
  }

  Machine machine() {
    Machine machine;
    machine.name = name();
    machine.alignment = Bytes{1 + (chance(2) ? below(1024) : number(limits::alignment_bytes - 1))};
    machine.device_budget = Bytes{1 + number(limits::magnitude - 2)};
    if (chance(2)) {
      machine.max_allocation =
          Bytes{machine.alignment.value * (1 + below((limits::magnitude - 1) / machine.alignment.value))};
    }
    const auto link = [this](Link& one) {
      one = {limits::magnitude - 1 - number(limits::magnitude / 2),
             std::chrono::nanoseconds{static_cast<std::int64_t>(number(limits::magnitude / 2))}};
    };
    link(machine.h2d);
    link(machine.d2h);
    machine.duplex = chance(2) ? Duplex::half : Duplex::full;
    return machine;
  }

  /// Well-formed, but hardly ever one that could run.
  Plan plan() {
    Plan plan;
    while (plan.trace_digest.size() < 64) plan.trace_digest += "0123456789abcdef"[below(16)];
    plan.planner = name();
    plan.machine = machine();
    for (std::uint32_t id = 0; id < 5; ++id) {
      if (chance(2)) plan.initial.push_back({TensorId{id * 7919}, place(plan.machine), chance(2)});
    }
    std::shuffle(plan.initial.begin(), plan.initial.end(), random_);
    plan.commands.resize(below(8));
    for (Command& command : plan.commands) {
      command.kind = static_cast<CommandKind>(below(4));
      command.tensor = TensorId{static_cast<std::uint32_t>(number(limits::tensors - 1))};
      const bool has_place = command.kind == CommandKind::allocate || command.kind == CommandKind::swap_in;
      if (has_place) command.offset = place(plan.machine);
      for (std::uint64_t count = below(4); count > 0; --count) command.after.push_back(wait(plan.commands.size()));
      if (chance(2)) command.before_operation = static_cast<std::uint32_t>(number(2 * limits::operations - 1));
    }
    const auto time = [this] { return std::chrono::nanoseconds{static_cast<std::int64_t>(number(INT64_MAX))}; };
    const auto bytes = [this] { return Bytes{number(INT64_MAX)}; };
    plan.predicted = {time(), time(), time(), bytes(), bytes(), bytes()};
    return plan;
  }

  /// A text with a few bytes changed, removed, inserted or doubled, or cut off.
  std::string spoiled(std::string text) {
    static const std::string bytes = std::string("{}[]\",:0123456789-+.eEtfnul \\\n\x01\x7F\x80\xC3\xED\xFF") + '\0';
    for (std::uint64_t changes = 1 + below(3); changes > 0 && !text.empty(); --changes) {
      const std::size_t position = below(text.size());
      const std::size_t length = 1 + below(std::min<std::size_t>(text.size() - position, chance(4) ? 40 : 3));
      switch (below(6)) {
        case 0: text.resize(position); break;
        case 1: text.erase(position, length); break;
        case 2: text.insert(position, 1, bytes[below(bytes.size())]); break;
        case 3: text.insert(position, text.substr(position, length)); break;
        case 4: text[position] = static_cast<char>(text[position] ^ (1 << below(8))); break;
        default: text[position] = bytes[below(bytes.size())]; break;
      }
    }
    return text;
  }

 private:
  /// Every access where the tensor has a value, so that the trace passes its check.
  void bundle(Trace& trace, std::size_t operation) {
    std::vector<std::uint32_t> ids(trace.tensors.size());
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint32_t>(i);
    std::shuffle(ids.begin(), ids.end(), random_);
    for (const std::uint32_t id : ids) {
      if (trace.tensors[id].available_from > operation || chance(2)) continue;
      TraceOperation& o = trace.operations[operation];
      const bool has_value = trace.tensors[id].kind != TensorKind::transient || written(trace, id, operation);
      const std::uint64_t access = has_value ? below(3) : 0;
      (access == 0 ? o.writes : access == 1 ? o.reads : o.updates).push_back(TensorId{id});
    }
  }

  static bool written(const Trace& trace, std::uint32_t id, std::size_t before) {
    return std::any_of(trace.operations.begin(), trace.operations.begin() + static_cast<std::ptrdiff_t>(before),
                       [id](const TraceOperation& o) {
                         return std::find(o.writes.begin(), o.writes.end(), TensorId{id}) != o.writes.end();
                       });
  }

  void host_read(Trace& trace) {
    const auto id = static_cast<std::uint32_t>(below(trace.tensors.size()));
    const auto operation = static_cast<std::uint32_t>(trace.operations.size() - 1);
    const bool has_value = trace.tensors[id].kind != TensorKind::transient || written(trace, id, operation + 1);
    if (has_value) trace.host_reads.push_back({TensorId{id}, OperationId{operation}});
  }

  Bytes place(const Machine& machine) {
    return Bytes{number(machine.device_budget.value / machine.alignment.value) * machine.alignment.value};
  }

  Wait wait(std::size_t commands) {
    if (chance(2)) return {Wait::On::command, chance(2), static_cast<std::int32_t>(below(commands))};
    const auto operation = static_cast<std::int32_t>(number(limits::operations - 1));
    return {Wait::On::operation, false, chance(2) ? operation : -operation - 1};
  }

  std::mt19937_64 random_;
};

template <class Thing, class Write>
std::string text_of(const Thing& thing, Write write) {
  std::ostringstream out;
  write(out, thing);
  return out.str();
}

/// What is written is read as an equal thing, from memory and from a stream; what is spoiled is refused with a
/// message, or accepted as something that comes back from its own round trip.
template <class Make, class Write, class Read>
void expect_round_trips(std::uint64_t seeds, Make make, Write write, Read read) {
  std::size_t refused = 0;
  std::size_t accepted = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    const auto thing = make(draw);
    const std::string text = text_of(thing, write);
    CAPTURE(text);
    std::istringstream in(text);
    const auto from_text = read(std::string_view(text));
    const auto from_stream = read(in);
    REQUIRE_MESSAGE(from_text.has_value(), from_text.problem().message);
    REQUIRE_MESSAGE(from_stream.has_value(), from_stream.problem().message);
    CHECK(*from_text == thing);
    CHECK(*from_stream == thing);

    for (int change = 0; change < 20; ++change) {
      const std::string bad = draw.spoiled(text);
      CAPTURE(bad);
      const auto outcome = read(std::string_view(bad));
      if (!outcome) {
        ++refused;
        CHECK_FALSE(outcome.problem().message.empty());
        continue;
      }
      ++accepted;
      const auto again = read(std::string_view(text_of(*outcome, write)));
      REQUIRE_MESSAGE(again.has_value(), again.problem().message);
      CHECK(*again == *outcome);
    }
  }
  // Both ends of the property were seen.
  CHECK(refused > seeds);
  CHECK(accepted > seeds / 10);
}

}  // namespace

TEST_CASE("every trace comes back from its text, and spoiled texts are refused or mean what they say") {
  expect_round_trips(
      1500, [](Draw& draw) { return draw.trace(); }, [](auto& out, const Trace& x) { write_trace(out, x); },
      [](auto&& source) { return read_trace(source); });
}

TEST_CASE("every machine comes back from its text, and spoiled texts are refused or mean what they say") {
  expect_round_trips(
      1500, [](Draw& draw) { return draw.machine(); }, [](auto& out, const Machine& x) { write_machine(out, x); },
      [](auto&& source) { return read_machine(source); });
}

TEST_CASE("every plan comes back from its text, and spoiled texts are refused or mean what they say") {
  expect_round_trips(
      1500, [](Draw& draw) { return draw.plan(); }, [](auto& out, const Plan& x) { write_plan(out, x); },
      [](auto&& source) { return read_plan(source); });
}

TEST_CASE("the digest survives the text") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Trace trace = Draw(seed).trace();
    const auto again = read_trace(text_of(trace, [](auto& out, const Trace& x) { write_trace(out, x); }));
    REQUIRE(again.has_value());
    CHECK(digest(*again) == digest(trace));
  }
}
