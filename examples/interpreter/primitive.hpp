// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "layers.hpp"
#include "pad.hpp"
#include "parameter.hpp"
#include "programs.hpp"

namespace interpreter {

/// What a primitive may be asked, and the right answers.
struct Case {
  std::vector<float> question;
  std::vector<std::size_t> answers;
};

/// What a primitive's network is to learn.
struct PrimitiveTask {
  std::string name;
  std::size_t hidden = 0;  ///< neurons of its hidden layer
  Choices choices;         ///< what its outputs say
  std::vector<Case> cases;
};
/// SUM: the digits under the pointers of the numbers and of the carry; a digit, and whether 1 is carried.
/// INCREMENT: the digit under the carry pointer; the digit that follows.
/// MOVE: a row and a direction; for each pointer: left, right, or not at all.
[[nodiscard]] PrimitiveTask task_of(Program primitive);

/// What the primitive's network is asked when the interpreter calls it.
[[nodiscard]] std::vector<float> question_of(const Call& call, const Pad& pad);
/// Does on the pad what the network has answered.
void act(const Call& call, const std::vector<std::size_t>& answers, Pad& pad);

/// A primitive: a network with one hidden layer.
template <class Memory>
class Primitive {
 public:
  static constexpr std::size_t batch = 32;  ///< cases of one step of training

  Primitive(Memory& memory, Program program, std::mt19937_64& random)
      : memory_(memory),
        task_(task_of(program)),
        first_{task_.cases.front().question.size(), task_.hidden, true},
        second_{task_.hidden, outputs_of(task_.choices), false},
        first_parameter_(memory, task_.name + ".first", first_.weights(), first_.inputs, random),
        second_parameter_(memory, task_.name + ".second", second_.weights(), second_.inputs, random),
        questions_(batch_array(first_.inputs, "questions")),
        hidden_(batch_array(second_.inputs, "hidden")),
        by_hidden_(batch_array(second_.inputs, "hidden.gradient")),
        outputs_(batch_array(second_.outputs, "outputs")),
        by_outputs_(batch_array(second_.outputs, "outputs.gradient")),
        right_(batch_array(task_.choices.size(), "right")),
        totals_(memory.array(3, task_.name + ".totals", Needed::within_iteration)),
        question_(memory.array(first_.inputs, task_.name + ".question", Needed::within_iteration)),
        one_hidden_(memory.array(second_.inputs, task_.name + ".one hidden", Needed::within_iteration)),
        answer_(memory.array(second_.outputs, task_.name + ".answer", Needed::within_iteration)) {}

  [[nodiscard]] const PrimitiveTask& task() const { return task_; }
  [[nodiscard]] std::vector<const Parameter<Memory>*> parameters() const {
    return {&first_parameter_, &second_parameter_};
  }

  /// One step of training, on `batch` of the task's cases.
  void practise(const std::vector<std::size_t>& numbers, float rate) {
    [[maybe_unused]] const auto iteration = memory_.iteration("practise " + task_.name);
    upload(numbers);
    memory_.run("clear", 0, from(), to(totals_), in_place(), [](Floats values) { clear(values); });
    run_forward(batch, questions_, hidden_, outputs_);
    memory_.run("judge", batch * second_.outputs, from(outputs_, right_), to(by_outputs_), in_place(totals_),
                [choices = task_.choices](ConstFloats y, ConstFloats right, Floats by_y, Floats totals) {
                  judge(choices, batch, y, right, by_y, totals);
                });
    for (const auto* parameter : parameters()) parameter->clear_gradient(memory_);
    run_backward();
    ++steps_;
    for (const auto* parameter : parameters()) parameter->learn(memory_, rate, steps_);
  }

  /// Asks the network, and waits for its answers: within an iteration.
  [[nodiscard]] std::vector<std::size_t> answers_to(const std::vector<float>& question) {
    memory_.upload(question_, question);
    run_forward(1, question_, one_hidden_, answer_);
    return chosen(task_.choices, memory_.download(answer_));
  }

  /// How many of the task's cases it answers right.
  [[nodiscard]] std::size_t count_right() {
    std::size_t right = 0;
    for (const Case& each : task_.cases) {
      [[maybe_unused]] const auto iteration = memory_.iteration("ask " + task_.name);
      if (answers_to(each.question) == each.answers) ++right;
    }
    return right;
  }

 private:
  using Array = typename Memory::Array;

  Array batch_array(std::size_t width, const std::string& what) {
    return memory_.array(batch * width, task_.name + '.' + what, Needed::within_iteration);
  }

  void upload(const std::vector<std::size_t>& numbers) {
    std::vector<float> questions;
    std::vector<float> right;
    for (const std::size_t number : numbers) {
      const Case& each = task_.cases[number];
      questions.insert(questions.end(), each.question.begin(), each.question.end());
      for (const std::size_t answer : each.answers) right.push_back(static_cast<float>(answer));
    }
    memory_.upload(questions_, questions);
    memory_.upload(right_, right);
  }

  void run_forward(std::size_t rows, const Array& questions, const Array& hidden, const Array& outputs) {
    const auto run_layer = [&](const Dense& layer, const Array& x, const Array& weights, const Array& y) {
      memory_.run("dense", rows * layer.weights(), from(x, weights), to(y), in_place(),
                  [layer, rows](ConstFloats in, ConstFloats by, Floats out) { dense(layer, rows, in, by, out); });
    };
    run_layer(first_, questions, first_parameter_.weights, hidden);
    run_layer(second_, hidden, second_parameter_.weights, outputs);
  }

  void run_backward() {
    const auto run_weights = [&](const Dense& layer, const Array& x, const Array& y, const Array& by_y,
                                 const Array& gradient) {
      memory_.run("dense.weights", batch * layer.weights(), from(x, y, by_y), to(), in_place(gradient),
                  [layer](ConstFloats in, ConstFloats out, ConstFloats by_out, Floats by_weights) {
                    dense_backward_weights(layer, batch, in, out, by_out, by_weights);
                  });
    };
    run_weights(second_, hidden_, outputs_, by_outputs_, second_parameter_.gradient);
    memory_.run("dense.x", batch * second_.weights(), from(outputs_, by_outputs_, second_parameter_.weights),
                to(by_hidden_), in_place(),
                [layer = second_](ConstFloats out, ConstFloats by_out, ConstFloats weights, Floats by_in) {
                  dense_backward_x(layer, batch, out, by_out, weights, by_in);
                });
    run_weights(first_, questions_, hidden_, by_hidden_, first_parameter_.gradient);
  }

  Memory& memory_;
  PrimitiveTask task_;
  Dense first_;
  Dense second_;
  Parameter<Memory> first_parameter_;
  Parameter<Memory> second_parameter_;
  Array questions_;
  Array hidden_;
  Array by_hidden_;
  Array outputs_;
  Array by_outputs_;
  Array right_;
  Array totals_;
  Array question_;
  Array one_hidden_;
  Array answer_;
  std::size_t steps_ = 0;
};

}  // namespace interpreter
