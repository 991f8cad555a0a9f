// SPDX-License-Identifier: Apache-2.0
#include "support/v2/element_order.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

namespace swapmm::test::general {
namespace {

using swapmm::v2::Command;
using swapmm::v2::CommandKind;
using swapmm::v2::Plan;

/// The elements of each engine, in their order. Links without an engine have one of their own.
std::map<std::pair<bool, std::size_t>, std::vector<std::size_t>> elements_by_engine(const Trace& trace,
                                                                                    const Plan& plan,
                                                                                    const Parts& parts) {
  const std::size_t n = trace.operations.size();
  using Rank = std::tuple<std::size_t, bool, std::size_t, std::size_t>;  // position, whether an operation, index, step
  std::map<std::pair<bool, std::size_t>, std::vector<Rank>> ranks;
  for (std::size_t i = 0; i < n; ++i) ranks[{true, parts.engine(i)}].push_back({i, true, 0, i});
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    const Command& command = plan.commands[j];
    if (takes_no_time(command)) continue;
    std::pair<bool, std::size_t> engine{true, index(command.engine)};
    if (command.kind == CommandKind::run) engine.second = parts.engine(index(command.operation));
    if (command.kind == CommandKind::copy) {
      const auto& of_link = plan.machine.links[index(command.link)].engine;
      engine =
          of_link ? std::pair{true, std::size_t{index(*of_link)}} : std::pair{false, std::size_t{index(command.link)}};
    }
    ranks[engine].push_back({command.position.value_or(static_cast<std::uint32_t>(n)), false, j, n + j});
  }
  std::map<std::pair<bool, std::size_t>, std::vector<std::size_t>> result;
  for (auto& [engine, list] : ranks) {
    std::sort(list.begin(), list.end());
    for (const Rank& rank : list) result[engine].push_back(std::get<3>(rank));
  }
  return result;
}

}  // namespace

ElementOrder::ElementOrder(const Trace& trace, const Plan& plan, const Parts& parts, std::size_t iterations)
    : n_(trace.operations.size()),
      steps_(n_ + plan.commands.size()),
      iterations_(static_cast<std::int64_t>(iterations)),
      followers(steps_ * iterations),
      missing(steps_ * iterations, 0) {
  for (std::size_t j = 0; j < plan.commands.size(); ++j) add_command(plan.commands[j], n_ + j);
  for (const auto& [engine, elements] : elements_by_engine(trace, plan, parts)) {
    for (std::size_t e = 0; e < elements.size(); ++e) {
      const bool is_last = e + 1 == elements.size();
      add(elements[e], 0, elements[is_last ? 0 : e + 1], is_last ? 1 : 0);
    }
  }
  for (std::size_t i = 0; i < n_; ++i) {
    for (std::size_t before = 0; before < n_; ++before) {
      add(before, -1, i, 0);
      const bool other_engine = parts.engine(before) != parts.engine(i);
      if (before < i && other_engine && parts.conflict(before, i)) add(before, 0, i, 0);
    }
  }
  find_order(plan);
}

void ElementOrder::add_command(const Command& command, std::size_t step) {
  for (const Wait& wait : command.after) {
    if (wait.on == Wait::On::command) {
      add(n_ + static_cast<std::size_t>(wait.index), wait.previous ? -1 : 0, step, 0);
    } else {
      const bool previous = wait.index < 0;
      add(static_cast<std::size_t>(previous ? wait.index + static_cast<std::int64_t>(n_) : wait.index),
          previous ? -1 : 0, step, 0);
    }
  }
  for (const std::uint32_t operation : command.before_operations) add(step, 0, operation % n_, operation < n_ ? 0 : 1);
}

void ElementOrder::add(std::size_t step, std::int64_t from_shift, std::size_t next, std::int64_t to_shift) {
  for (std::int64_t k = 0; k < iterations_; ++k) {
    const std::int64_t from = k + from_shift;
    const std::int64_t to = k + to_shift;
    if (from < 0 || to >= iterations_) continue;
    const std::size_t follower = static_cast<std::size_t>(to) * steps_ + next;
    followers[static_cast<std::size_t>(from) * steps_ + step].push_back(follower);
    ++missing[follower];
  }
}

void ElementOrder::find_order(const Plan& plan) {
  const std::size_t count = followers.size();
  at_one_time.resize(count);
  constexpr std::size_t bits = 64;
  std::vector<std::vector<std::uint64_t>> ended(count, std::vector<std::uint64_t>(count / bits + 1, 0));
  std::vector<int> left = missing;
  std::vector<std::size_t> next;
  std::vector<std::vector<std::size_t>> preceding(count);
  for (std::size_t step = 0; step < count; ++step) {
    for (const std::size_t follower : followers[step]) preceding[follower].push_back(step);
    if (left[step] == 0) next.push_back(step);
  }
  const auto is_instant = [&](std::size_t step) {
    return step % steps_ >= n_ && takes_no_time(plan.commands[step % steps_ - n_]);
  };
  while (!next.empty()) {
    const std::size_t step = next.back();
    next.pop_back();
    for (const std::uint64_t word : ended[step])
      at_one_time[step].before += static_cast<std::size_t>(std::popcount(word));
    for (const std::size_t before : preceding[step]) {
      const bool of_one_time = is_instant(before) && is_instant(step) && before / steps_ == step / steps_;
      if (of_one_time && ended[before] == ended[step]) {
        at_one_time[step].chain = std::max(at_one_time[step].chain, at_one_time[before].chain + 1);
      }
    }
    for (const std::size_t follower : followers[step]) {
      for (std::size_t word = 0; word < ended[step].size(); ++word) ended[follower][word] |= ended[step][word];
      if (!is_instant(step)) ended[follower][step / bits] |= std::uint64_t{1} << step % bits;
      if (--left[follower] == 0) next.push_back(follower);
    }
  }
}

}  // namespace swapmm::test::general
