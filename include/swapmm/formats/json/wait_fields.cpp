// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/json/wait_fields.hpp>

#include <swapmm/formats/json/integer_fields.hpp>
#include <swapmm/formats/json/writer.hpp>

namespace swapmm::json {
namespace {

Check end_wait(WaitTarget& target) {
  if (target.operation.has_value() == target.command.has_value()) {
    return Problem{"a wait is for one operation or one command"};
  }
  if (target.operation && target.previous) {
    return Problem{"iteration is for commands, an operation of the iteration before has a negative number"};
  }
  Wait wait;
  wait.on = target.operation ? Wait::On::operation : Wait::On::command;
  wait.previous = target.previous;
  wait.index = static_cast<std::int32_t>(target.operation ? *target.operation : *target.command);
  target.waits.push_back(wait);
  return Done{};
}

void append_wait(std::string& line, const Wait& wait) {
  line += wait.on == Wait::On::operation ? "{\"operation\": " : "{\"command\": ";
  append_number(line, wait.index);
  line += wait.on == Wait::On::command && wait.previous ? ", \"iteration\": -1}" : "}";
}

}  // namespace

Object wait_fields(WaitTarget& target) {
  Object object;
  object.begin = [&target] {
    target.operation.reset();
    target.command.reset();
    target.previous = false;
  };
  object.fields = {
      optional("operation", Integer{.least = -largest_operation - 1,
                                    .most = largest_operation,
                                    .take = [&target](std::int64_t i) { target.operation = i; }}),
      optional("command",
               Integer{.least = 0, .most = largest_command, .take = [&target](std::int64_t i) { target.command = i; }}),
      optional("iteration",
               Integer{.least = -1, .most = -1, .take = [&target](std::int64_t) { target.previous = true; }}),
  };
  object.end = [&target] { return end_wait(target); };
  return object;
}

void append_waits(std::string& line, const std::vector<Wait>& waits) {
  line += '[';
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (i > 0) line += ", ";
    append_wait(line, waits[i]);
  }
  line += ']';
}

}  // namespace swapmm::json
