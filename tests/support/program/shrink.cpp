// SPDX-License-Identifier: Apache-2.0
#include "support/program/shrink.hpp"

#include <algorithm>
#include <utility>

#include "support/program/simplify.hpp"

namespace swapmm::test {
namespace {

using Actions = std::vector<Action>;

/// Takes out [begin, end) if the program still fails without it.
bool leave_out(TestProgram& program, std::size_t begin, std::size_t end,
               const std::function<bool(const TestProgram&)>& fails) {
  const auto at = [](Actions& actions, std::size_t position) {
    return actions.begin() + static_cast<Actions::difference_type>(position);
  };
  Actions before = program.actions;
  program.actions.erase(at(program.actions, begin), at(program.actions, end));
  if (fails(program)) return true;
  program.actions = std::move(before);
  return false;
}

bool leave_out_iterations(TestProgram& program, const std::function<bool(const TestProgram&)>& fails) {
  bool smaller = false;
  for (std::size_t end = program.actions.size(); end-- > 0;) {
    if (program.actions[end].kind != ActionKind::end_iteration) continue;
    std::size_t begin = end;
    while (begin > 0 && program.actions[begin].kind != ActionKind::begin_iteration) --begin;
    if (leave_out(program, begin, end + 1, fails)) {
      smaller = true;
      end = begin;
    }
  }
  return smaller;
}

bool leave_out_parts(TestProgram& program, const std::function<bool(const TestProgram&)>& fails) {
  bool smaller = false;
  for (Action& action : program.actions) {
    for (std::size_t part = action.part_count; action.kind == ActionKind::operation && part-- > 0;) {
      const Action before = action;
      std::move(action.parts.begin() + part + 1, action.parts.begin() + action.part_count, action.parts.begin() + part);
      --action.part_count;
      if (fails(program)) {
        smaller = true;
      } else {
        action = before;
      }
    }
  }
  return smaller;
}

TestProgram shrink_alone(TestProgram program, const std::function<bool(const TestProgram&)>& fails) {
  if (std::exchange(program.steady, false)) program.steady = !fails(program);
  for (bool smaller = true; std::exchange(smaller, false);) {
    smaller = leave_out_iterations(program, fails);
    if (program.steady) {  // and stays so: iterations are alike
      smaller = simplify(program, fails) || smaller;
      continue;
    }
    for (std::size_t length = std::max<std::size_t>(program.actions.size() / 2, 1); length > 0; length /= 2) {
      for (std::size_t begin = program.actions.size(); begin >= length;) {
        begin -= length;
        smaller = leave_out(program, begin, begin + length, fails) || smaller;
        begin = std::min(begin, program.actions.size());
      }
    }
    smaller = leave_out_parts(program, fails) || smaller;
    smaller = simplify(program, fails) || smaller;
  }
  return program;
}

}  // namespace

TestProgram shrink(TestProgram program, const std::function<bool(const TestProgram&)>& fails) {
  for (std::size_t i = program.beside.size(); i-- > 0;) {
    TestProgram smaller = program;
    smaller.beside.erase(smaller.beside.begin() + static_cast<std::ptrdiff_t>(i));
    if (fails(smaller)) program = std::move(smaller);
  }
  program = shrink_alone(std::move(program), fails);
  for (std::size_t i = 0; i < program.beside.size(); ++i) {
    program.beside[i] = shrink_alone(program.beside[i], [&](const TestProgram& smaller) {
      TestProgram all = program;
      all.beside[i] = smaller;
      return fails(all);
    });
  }
  return program;
}

}  // namespace swapmm::test
