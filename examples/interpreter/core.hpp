// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "layers.hpp"
#include "pad.hpp"
#include "parameter.hpp"
#include "programs.hpp"

namespace interpreter {

/// What the core sees in a step: the observation, and its call's arguments.
inline constexpr std::size_t seen_size = observation_size + row_count + direction_count;
/// What it says: whether the call ends, and if not, which program or primitive is called with which arguments.
[[nodiscard]] inline Choices step_choices() { return {2, program_count, row_count + 1, direction_count + 1}; }

[[nodiscard]] std::vector<float> seen_by(const Call& call, const Pad& pad);
/// The right values of step_choices(). What is called does not matter if the call ends.
[[nodiscard]] std::vector<float> right_choices(const Step& step);
/// From values of step_choices().
[[nodiscard]] Step step_from(const std::vector<std::size_t>& choices);

/// The steps of one call, as the core learns them.
struct Lesson {
  Program program = Program::add;
  std::size_t steps = 0;
  std::vector<float> seen{};   ///< seen_by() in each step
  std::vector<float> right{};  ///< right_choices() of each step
};

/// The core of the interpreter: an encoder of what it sees, a table of programs, an LSTM, and heads that choose. Each
/// call begins with an empty state (Reed and de Freitas, "Neural programmer-interpreters", 2016).
template <class Memory>
class Core {
 public:
  Core(Memory& memory, std::mt19937_64& random)
      : memory_(memory),
        encoder_parameter_(memory, "encoder", encoder.weights(), encoder.inputs, random),
        table_(memory, "programs", program_count * sizes.embedded, 1, random),
        lstm_parameter_(memory, "lstm", sizes.weights(), sizes.inputs(), random),
        heads_parameter_(memory, "heads", heads_.weights(), heads_.inputs, random),
        by_logits_(step_array(longest_call * heads_.outputs, "logits.gradient")),
        by_hidden_(step_array(longest_call * sizes.width, "hidden.gradient")),
        by_encoded_(step_array(longest_call * sizes.encoded, "encoded.gradient")),
        seen_(step_array(seen_size, "seen")),
        encoded_(step_array(sizes.encoded, "encoded")),
        gates_(step_array(sizes.gates(), "gates")),
        logits_(step_array(heads_.outputs, "logits")),
        totals_(memory.array(3, "totals", Needed::always)) {
    memory.upload(totals_, std::vector<float>(3, 0.0F));
  }

  [[nodiscard]] std::vector<const Parameter<Memory>*> parameters() const {
    return {&encoder_parameter_, &table_, &lstm_parameter_, &heads_parameter_};
  }
  /// The sums of judge() over all lessons so far. Waits for the device.
  [[nodiscard]] std::vector<float> totals() const { return memory_.download(totals_); }

  /// The bytes that its largest operation needs, a step of Adam: no smaller budget is possible.
  [[nodiscard]] static std::size_t largest_bundle() { return 4 * sizes.weights() * sizeof(float); }

  /// One step of training on the calls of one run: within an iteration. Forward through all calls, and back.
  void learn(const std::vector<Lesson>& lessons, float rate) {
    while (calls_.size() < lessons.size()) calls_.push_back(make_call());
    for (std::size_t i = 0; i < lessons.size(); ++i) run_forward(lessons[i], calls_[i]);
    for (const auto* parameter : parameters()) parameter->clear_gradient(memory_);
    for (std::size_t i = lessons.size(); i-- > 0;) run_backward(lessons[i], calls_[i]);
    ++steps_;
    for (const auto* parameter : parameters()) parameter->learn(memory_, rate, steps_);
  }

  /// Decides the next step of the innermost call, and waits for the decision: within an iteration. Calls that are open
  /// keep their states, one for each depth.
  [[nodiscard]] Step decide(std::size_t depth, const Frame& frame, const Pad& pad) {
    while (states_.size() <= depth) states_.push_back(make_state());
    if (frame.steps == 0) {
      memory_.run("begin call", 0, from(), to(states_[depth].hidden, states_[depth].cells), in_place(),
                  [](Floats hidden, Floats cells) {
                    clear(hidden);
                    clear(cells);
                  });
    }
    memory_.upload(seen_, seen_by(frame.call, pad));
    run_step(frame.call.program, states_[depth]);
    return step_from(chosen(step_choices(), memory_.download(logits_)));
  }

 private:
  using Array = typename Memory::Array;

  static constexpr Lstm sizes{.encoded = 24, .embedded = 8, .width = 32};
  static constexpr Dense encoder{.inputs = seen_size, .outputs = sizes.encoded, .is_rectified = true};

  /// What is kept of a call from the way forward to the way back.
  struct CallArrays {
    Array seen;
    Array right;
    Array encoded;
    Array gates;
    Array hidden;
    Array cells;
    Array logits;
  };
  struct State {
    Array hidden;
    Array cells;
  };

  Array step_array(std::size_t size, const std::string& name) {
    return memory_.array(size, name, Needed::within_iteration);
  }
  CallArrays make_call() {
    const std::string call = "call " + std::to_string(calls_.size());
    const auto steps = [&](std::size_t width, const std::string& what) {
      return step_array(longest_call * width, call + '.' + what);
    };
    const std::size_t states = (longest_call + 1) * sizes.width;
    return {steps(seen_size, "seen"),       steps(step_choices().size(), "right"), steps(sizes.encoded, "encoded"),
            steps(sizes.gates(), "gates"),  step_array(states, call + ".hidden"),  step_array(states, call + ".cells"),
            steps(heads_.outputs, "logits")};
  }
  State make_state() {
    const std::string depth = "depth " + std::to_string(states_.size());
    return {step_array(sizes.width, depth + ".hidden"), step_array(sizes.width, depth + ".cells")};
  }

  static std::size_t row_of(Program program) { return static_cast<std::size_t>(program) * sizes.embedded; }

  void run_encoder(std::size_t rows, const Array& seen, const Array& encoded) {
    memory_.run("encode", rows * encoder.weights(), from(seen, encoder_parameter_.weights), to(encoded), in_place(),
                [rows](ConstFloats x, ConstFloats weights, Floats y) { dense(encoder, rows, x, weights, y); });
  }

  void run_forward(const Lesson& lesson, CallArrays& call) {
    const std::size_t steps = lesson.steps;
    upload_rows(call.seen, lesson.seen, seen_size);
    upload_rows(call.right, lesson.right, step_choices().size());
    run_encoder(steps, call.seen, call.encoded);
    memory_.run("lstm", steps * sizes.weights(), from(call.encoded, table_.weights, lstm_parameter_.weights),
                to(call.gates, call.hidden, call.cells), in_place(),
                [steps, row = row_of(lesson.program)](ConstFloats encoded, ConstFloats table, ConstFloats weights,
                                                      Floats gates, Floats hidden, Floats cells) {
                  lstm(sizes, steps, encoded, table.subspan(row, sizes.embedded), weights, gates, hidden, cells);
                });
    memory_.run("heads", steps * heads_.weights(), from(call.hidden, heads_parameter_.weights), to(call.logits),
                in_place(), [steps, heads = heads_](ConstFloats hidden, ConstFloats weights, Floats logits) {
                  dense(heads, steps, hidden.subspan(sizes.width), weights, logits);
                });
  }

  void run_backward(const Lesson& lesson, const CallArrays& call) {
    const std::size_t steps = lesson.steps;
    memory_.run("judge", steps * heads_.outputs, from(call.logits, call.right), to(by_logits_), in_place(totals_),
                [steps](ConstFloats logits, ConstFloats right, Floats by_logits, Floats totals) {
                  judge(step_choices(), steps, logits, right, by_logits, totals);
                });
    memory_.run("heads.weights", steps * heads_.weights(), from(call.hidden, call.logits, by_logits_), to(),
                in_place(heads_parameter_.gradient),
                [steps, heads = heads_](ConstFloats hidden, ConstFloats logits, ConstFloats by_logits, Floats sum) {
                  dense_backward_weights(heads, steps, hidden.subspan(sizes.width), logits, by_logits, sum);
                });
    memory_.run(
        "heads.x", steps * heads_.weights(), from(call.logits, by_logits_, heads_parameter_.weights), to(by_hidden_),
        in_place(),
        [steps, heads = heads_](ConstFloats logits, ConstFloats by_logits, ConstFloats weights, Floats by_hidden) {
          dense_backward_x(heads, steps, logits, by_logits, weights, by_hidden);
        });
    run_lstm_backward(lesson, call);
    memory_.run("encode.weights", steps * encoder.weights(), from(call.seen, call.encoded, by_encoded_), to(),
                in_place(encoder_parameter_.gradient),
                [steps](ConstFloats seen, ConstFloats encoded, ConstFloats by_encoded, Floats sum) {
                  dense_backward_weights(encoder, steps, seen, encoded, by_encoded, sum);
                });
  }

  void run_lstm_backward(const Lesson& lesson, const CallArrays& call) {
    memory_.run(
        "lstm.backward", 2 * lesson.steps * sizes.weights(),
        from(call.encoded, table_.weights, lstm_parameter_.weights, call.gates, call.hidden, call.cells, by_hidden_),
        to(by_encoded_), in_place(lstm_parameter_.gradient, table_.gradient),
        [steps = lesson.steps, row = row_of(lesson.program)](
            ConstFloats encoded, ConstFloats table, ConstFloats weights, ConstFloats gates, ConstFloats hidden,
            ConstFloats cells, ConstFloats by_hidden, Floats by_encoded, Floats by_weights, Floats by_table) {
          lstm_backward(sizes, steps, encoded, table.subspan(row, sizes.embedded), weights, gates, hidden, cells,
                        by_hidden, by_encoded, by_weights, by_table.subspan(row, sizes.embedded));
        });
  }

  /// One step of a call whose steps are not known beforehand. Its state is changed in place.
  void run_step(Program program, const State& state) {
    run_encoder(1, seen_, encoded_);
    memory_.run("lstm step", sizes.weights(), from(encoded_, table_.weights, lstm_parameter_.weights), to(gates_),
                in_place(state.hidden, state.cells),
                [row = row_of(program)](ConstFloats encoded, ConstFloats table, ConstFloats weights, Floats gates,
                                        Floats hidden, Floats cells) {
                  lstm_step(sizes, encoded, table.subspan(row, sizes.embedded), weights, hidden, cells, gates, hidden,
                            cells);
                });
    memory_.run("heads", heads_.weights(), from(state.hidden, heads_parameter_.weights), to(logits_), in_place(),
                [heads = heads_](ConstFloats hidden, ConstFloats weights, Floats logits) {
                  dense(heads, 1, hidden, weights, logits);
                });
  }

  /// Calls are of different lengths, and their arrays are for the longest.
  void upload_rows(Array& array, std::vector<float> rows, std::size_t width) {
    rows.resize(longest_call * width);
    memory_.upload(array, rows);
  }

  Memory& memory_;
  const Dense heads_{sizes.width, outputs_of(step_choices()), false};
  Parameter<Memory> encoder_parameter_;
  Parameter<Memory> table_;
  Parameter<Memory> lstm_parameter_;
  Parameter<Memory> heads_parameter_;
  std::deque<CallArrays> calls_;
  Array by_logits_;
  Array by_hidden_;
  Array by_encoded_;
  std::deque<State> states_;
  Array seen_;
  Array encoded_;
  Array gates_;
  Array logits_;
  Array totals_;
  std::size_t steps_ = 0;
};

}  // namespace interpreter
