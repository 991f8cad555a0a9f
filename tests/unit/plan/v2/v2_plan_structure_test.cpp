// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>

#include "support/v2/by_hand.hpp"

namespace swapmm::v2::plan_structure_test {
using namespace swapmm::v2::hand;

TEST_CASE("v2: a plan in memory is refused for what no text could say") {
  Trace trace = unused_constants(2);
  trace.forms = {{TensorId{0}, "z", Bytes{8}, Bytes{4}, std::chrono::nanoseconds{1}, std::chrono::nanoseconds{1}}};
  Plan good = plan_of(trace, device(32), {}, {take(0, 0, {op(-1)}), give_back(0, {op(0)})});
  good.forms = {"z"};
  const auto said = [&](const std::function<void(Plan&)>& spoil) {
    Plan plan = good;
    spoil(plan);
    const Check check = check_plan(plan);
    return check ? std::string() : check.problem().message;
  };
  CHECK(said([](Plan&) {}).empty());
  CHECK(said([](Plan& p) { p.commands[1].offset = Bytes{0}; }) == "commands[1].offset: release has none");
  CHECK(said([](Plan& p) { p.commands[0].offset.reset(); }) ==
        "commands[0]: no offset, and a command of kind allocate needs one");
  CHECK(said([](Plan& p) { p.commands[0].offset = Bytes{33}; }) ==
        "commands[0].offset: 33 is beyond the 32 bytes of memory gpu");
  CHECK(said([](Plan& p) { p.commands[0].offset = Bytes{32}; }).empty());  // for a tensor of 0 bytes
  CHECK(said([](Plan& p) { p.commands[1].position = 0; }) ==
        "commands[1].position: a command of kind release has none");
  CHECK(said([](Plan& p) { p.commands[1].memory = MemoryId{2}; }) == "commands[1].memory: does not exist");
  CHECK(said([](Plan& p) { p.commands[1].memory = host; }) ==
        "commands[1].memory: host is without limit, so it has no release");
  CHECK(said([](Plan& p) { p.commands[1] = copy(0, 2, {}); }) == "commands[1].link: does not exist");
  CHECK(said([](Plan& p) { p.commands[1].form = FormId{2}; }) == "commands[1].form: not one of the plan's forms");
  const auto kind = [](CommandKind of) {
    return [of](Plan& p) {
      p.commands[1].kind = of;
      p.commands[1].engine = EngineId{1};
      p.commands[1].form = FormId{of == CommandKind::encode ? 1U : 0U};
    };
  };
  CHECK(said(kind(CommandKind::encode)) == "commands[1].engine: not an engine with a memory");
  CHECK(said(kind(CommandKind::decode)) == "commands[1].form: not the name of an encoding");
  CHECK(said([](Plan& p) {
          p.commands[1].kind = CommandKind::run;
          p.commands[1].offset = Bytes{0};
        }) == "commands[1].offset: run takes no place");
  CHECK(said([](Plan& p) { p.forms = {"z", "z"}; }) == "forms[1]: z stands twice");
  CHECK(said([](Plan& p) { p.forms = {"plain"}; }) == "forms[0]: not the name of an encoding");
  CHECK(said([](Plan& p) { p.predicted.links = {Bytes{0}}; }) == "predicted.links: not one for each link");
  CHECK(said([](Plan& p) { p.predicted.peaks = {Bytes{0}}; }) == "predicted.memories: not one for each memory");
  CHECK(said([](Plan& p) {
          p.initial = {{TensorId{0}, std::nullopt, FormId::plain, host, Bytes{1}, true}};
        }) == "initial[0].offset: memory host is without limit");
}

}  // namespace swapmm::v2::plan_structure_test
