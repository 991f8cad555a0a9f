// SPDX-License-Identifier: Apache-2.0
// What managers that share links offer, ask and measure.

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <optional>

#include <swapmm/plan/v2/joint/devices.hpp>
#include <swapmm/runtime/joint/link_group.hpp>

#include "support/update_program.hpp"

namespace swapmm::test::link_group_test {

using namespace swapmm::runtime;
using namespace std::chrono_literals;
using Verdict = LinkGroup::Verdict;

/// Six operations of 100 ns, each on a tensor of 64 bytes, with room for three of them.
v2::planning::DeviceProgram program(std::size_t operations = 6) {
  Machine machine;
  machine.device_budget = Bytes{192};
  machine.h2d = machine.d2h = {1'000'000'000, 0ns};
  return {test::updates_of(operations, 100ns).trace, machine};
}

std::shared_ptr<LinkGroup> group() {
  return std::make_shared<LinkGroup>(LinkCapacities{.to_devices = 1'000'000'000, .from_devices = 1'000'000'000});
}

TEST_CASE("a question is asked when all have offered, and once") {
  const auto links = group();
  LinkMember a(links);
  LinkMember b(links);
  CHECK(links->take_question() == nullptr);
  const std::uint64_t first = links->offer(a.id(), program());
  CHECK(links->take_question() == nullptr);
  const std::uint64_t second = links->offer(b.id(), program(8));
  std::shared_ptr<JointQuestion> question = links->take_question();
  REQUIRE(question != nullptr);
  CHECK(links->take_question() == nullptr);

  SUBCASE("the answer has a part for each of them") {
    question->answer({});
    CHECK(links->plans() == 1);
    const auto of_a = links->answer_for(a.id());
    const auto of_b = links->answer_for(b.id());
    REQUIRE(of_a != nullptr);
    REQUIRE(of_b != nullptr);
    CHECK(of_a->offer == first);
    CHECK(of_b->offer == second);
    CHECK(of_a->number == of_b->number);
    CHECK(of_a->members == std::vector{a.id(), b.id()});
    CHECK(of_a->plan.trace_digest == digest(program().trace));
    CHECK(of_b->plan.trace_digest == digest(program(8).trace));
    CHECK(of_a->waits.empty());
    CHECK(of_b->published.empty());
    CHECK(links->take_question() == nullptr);
    links->offer(a.id(), program());
    CHECK(links->take_question() != nullptr);
  }
  SUBCASE("who gives up leaves it to the next one") {
    question.reset();
    CHECK(links->take_question() != nullptr);
  }
  SUBCASE("without a plan, all learn why") {
    links->offer(b.id(), program());
    question->answer({});
    v2::planning::DeviceProgram none = program();
    none.machine.device_budget = Bytes{32};
    links->offer(a.id(), none);
    question = links->take_question();
    REQUIRE(question != nullptr);
    question->answer({});
    CHECK(links->plans() == 1);
    CHECK(links->answer_for(b.id())->problem != "");
    CHECK(links->answer_for(b.id())->number > 1);
  }
  SUBCASE("who has left gets none") {
    {
      LinkMember c(links);
      links->offer(c.id(), program());
    }
    CHECK(links->members() == 2);
    question->answer({});
    CHECK(links->answer_for(a.id())->members.size() == 2);
  }
}

TEST_CASE("one manager alone asks nothing, but after the others have left") {
  const auto links = group();
  LinkMember a(links);
  links->offer(a.id(), program());
  CHECK(links->take_question() == nullptr);
  {
    LinkMember b(links);
    links->offer(b.id(), program());
    links->take_question()->answer({});
    REQUIRE(links->answer_for(a.id())->members.size() == 2);
  }
  const std::shared_ptr<JointQuestion> question = links->take_question();
  REQUIRE(question != nullptr);
  question->answer({});
  CHECK(links->answer_for(a.id())->members.size() == 1);
  CHECK(links->answer_for(a.id())->plan.commands.empty());
  CHECK(links->plans() == 1);
}

TEST_CASE("who declines, and who offers nothing for long, is left out") {
  const auto links = group();
  LinkMember a(links);
  LinkMember b(links);
  LinkMember c(links);
  links->offer(a.id(), program());
  links->offer(c.id(), program());
  std::uint64_t calls = 1;
  SUBCASE("declines") {
    links->decline(b.id());
    links->take_question()->answer({});
  }
  SUBCASE("offers nothing") {
    std::shared_ptr<JointQuestion> question;
    for (; (question = links->take_question()) == nullptr; ++calls) REQUIRE(calls < 1000);
    CHECK(calls == 2 * LinkGroup::patience_for_offers + 1);
    question->answer({});
  }
  CHECK(links->answer_for(a.id())->members == std::vector{a.id(), c.id()});
  CHECK(links->answer_for(b.id()) == nullptr);
  // It may come later.
  links->offer(b.id(), program());
  links->take_question()->answer({});
  CHECK(links->answer_for(b.id())->members.size() == 3);
  links->decline(b.id());
  links->take_question()->answer({});
  CHECK(links->answer_for(a.id())->members.size() == 2);
}

TEST_CASE("a question that nobody answers is asked again") {
  const auto links = group();
  LinkMember a(links);
  LinkMember b(links);
  links->offer(a.id(), program());
  links->offer(b.id(), program());
  const std::shared_ptr<JointQuestion> first = links->take_question();
  REQUIRE(first != nullptr);
  std::shared_ptr<JointQuestion> second;
  std::uint64_t calls = 1;
  for (; (second = links->take_question()) == nullptr; ++calls) REQUIRE(calls < 100'000);
  CHECK(calls == 2 * LinkGroup::patience_for_answers + 1);
  second->answer({});
  const std::uint64_t number = links->answer_for(a.id())->number;
  first->answer({});  // late, and as good
  CHECK(links->answer_for(a.id())->number > number);
}

TEST_CASE("a joint plan is kept if its slowest manager got no slower") {
  const auto links = group();
  LinkMember a(links);
  LinkMember b(links);
  links->offer(a.id(), program());
  links->offer(b.id(), program());
  links->take_question()->answer({});
  const std::uint64_t plan = links->answer_for(a.id())->number;
  CHECK(links->judge(a.id(), plan, 90ns, 80ns) == Verdict::open);
  SUBCASE("the other one gained more") {
    CHECK(links->judge(b.id(), plan, 95ns, 100ns) == Verdict::keep);
    CHECK(links->judge(a.id(), plan, 90ns, 80ns) == Verdict::keep);
  }
  SUBCASE("the other one did not") {
    CHECK(links->judge(b.id(), plan, 86ns, 85ns) == Verdict::lose);
    CHECK(links->judge(a.id(), plan, 90ns, 80ns) == Verdict::lose);
  }
  SUBCASE("nobody knows how long the other one took before") {
    CHECK(links->judge(b.id(), plan, 86ns, std::nullopt) == Verdict::superseded);
    CHECK(links->judge(a.id(), plan, 90ns, 80ns) == Verdict::superseded);
  }
  SUBCASE("there is a newer plan") { CHECK(links->judge(b.id(), plan - 1, 860ns, 85ns) == Verdict::superseded); }
  SUBCASE("a verdict stays") {
    CHECK(links->judge(b.id(), plan, 95ns, 100ns) == Verdict::keep);
    CHECK(links->judge(a.id(), plan, 900ns, 80ns) == Verdict::keep);
  }
}

}  // namespace swapmm::test::link_group_test
