// SPDX-License-Identifier: Apache-2.0
#include "order.hpp"

#include <algorithm>
#include <utility>

namespace random_opencl {
bool StepSet::contains(int step) const {
  const std::size_t word = index(step) / 64;
  return word < words_.size() && (words_[word] >> (index(step) % 64) & 1U) != 0;
}

void StepSet::insert(int step) {
  const std::size_t word = index(step) / 64;
  if (word >= words_.size()) words_.resize(word + 1);
  words_[word] |= std::uint64_t{1} << (index(step) % 64);
}

void StepSet::insert(const StepSet& other) {
  if (other.words_.size() > words_.size()) words_.resize(other.words_.size());
  for (std::size_t i = 0; i != other.words_.size(); ++i) words_[i] |= other.words_[i];
}

Order::Order(const Program& program)
    : program_(program), queues_(program.queues.size()), done_(static_cast<std::size_t>(max_threads)) {}

const Node& Order::node(int step) const { return nodes_[index(node_of_step_[index(step)])]; }

StepSet Order::with_before(int step) const {
  StepSet all = node(step).before;
  all.insert(step);
  return all;
}

StepSet Order::before(int queue, const std::vector<int>& waits, int thread) const {
  StepSet all = done(thread);
  if (queue >= 0) {
    const QueueState& state = queues_[index(queue)];
    if (is_in_order(program_.queues[index(queue)])) {
      if (!state.steps.empty()) all.insert(with_before(state.steps.back()));
    } else if (state.barrier >= 0) {
      all.insert(with_before(state.barrier));
    }
  }
  for (const int wait : waits) all.insert(with_before(wait));
  return all;
}

void Order::add(Node node) {
  if (node_of_step_.size() <= index(node.step)) node_of_step_.resize(index(node.step) + 1, -1);
  node_of_step_[index(node.step)] = static_cast<int>(nodes_.size());
  if (node.queue >= 0) {
    QueueState& state = queues_[index(node.queue)];
    node.generation = state.generation;
    node.position = static_cast<int>(state.steps.size());
    state.steps.push_back(node.step);
  }
  nodes_.push_back(std::move(node));
}

void Order::add_command(int step, int queue, const std::vector<int>& waits, bool has_event, Place place) {
  add({step, queue, 0, 0, program_.queues[index(queue)].context, place.section, place.thread, has_event,
       before(queue, waits, place.thread)});
}

void Order::add_user_event(int step, int context, Place place) {
  add({step, -1, 0, 0, context, place.section, place.thread, true, {}});
}

void Order::add_all_before(int step, int queue, bool is_barrier, bool has_event, Place place) {
  StepSet before = all_of(queue);
  before.insert(done(place.thread));
  add({step, queue, 0, 0, program_.queues[index(queue)].context, place.section, place.thread, has_event, before});
  if (is_barrier) queues_[index(queue)].barrier = step;
}

void Order::add_barrier(int step, int queue, const std::vector<int>& waits, bool has_event, Place place) {
  QueueState& state = queues_[index(queue)];
  // With PoCL 3.1 commands after a barrier with a wait list do not follow the barriers before it.
  if (!is_in_order(program_.queues[index(queue)])) state.barrier = -1;
  add_command(step, queue, waits, has_event, place);
  state.barrier = step;
}

void Order::renew(int queue) {
  QueueState& state = queues_[index(queue)];
  state = {{}, -1, state.generation + 1, 0};
}

Order::Root Order::whole(int object) const {
  const Object& that = program_.objects[index(object)];
  if (that.parent >= 0) return {that.parent, that.origin, that.origin + that.size};
  return {object, 0, that.size};
}

bool Order::do_conflict(const Access& x, const Access& y) const {
  if (!x.write && !y.write) return false;
  const Root of_x = whole(x.object);
  const Root of_y = whole(y.object);
  if (of_x.object != of_y.object) return false;
  if (x.object == y.object) return x.begin < y.end && y.begin < x.end;
  // The specification forbids concurrent use of a buffer and its sub-buffer, of overlapping sub-buffers, too, whatever
  // bytes are used.
  return of_x.begin < of_y.end && of_y.begin < of_x.end;
}

void Order::add_access(int step, const Access& access) { accesses_.push_back({step, access}); }

std::vector<int> Order::conflicts(const std::vector<Access>& accesses, const StepSet& known) const {
  std::vector<int> steps;
  for (const Recorded& earlier : accesses_) {
    if (known.contains(earlier.step)) continue;
    for (const Access& access : accesses) {
      if (!do_conflict(earlier.access, access)) continue;
      if (steps.empty() || steps.back() != earlier.step) steps.push_back(earlier.step);
    }
  }
  return steps;
}

int Order::event_for(int step, Place place, std::uint64_t choice) const {
  std::vector<int> candidates;
  for (const Node& that : nodes_) {
    if (!that.has_event || that.queue < 0 || that.context != node(step).context) continue;
    if (that.section == place.section && that.thread != place.thread) continue;
    if (that.step == step || that.before.contains(step)) candidates.push_back(that.step);
  }
  if (candidates.empty()) return -1;
  // Most often its own, which is the first.
  if (choice % 4 != 0) return candidates.front();
  return candidates[choice / 4 % candidates.size()];
}

bool Order::is_flushed(int step) const {
  const Node& that = node(step);
  if (that.queue < 0) return true;
  const QueueState& state = queues_[index(that.queue)];
  return that.generation != state.generation || that.position < state.flushed;
}

void Order::flush(int queue) {
  QueueState& state = queues_[index(queue)];
  state.flushed = static_cast<int>(state.steps.size());
}

StepSet Order::all_of(int queue) const {
  StepSet all;
  for (const int step : queues_[index(queue)].steps) all.insert(with_before(step));
  return all;
}

bool Order::has_unknown_commands(int queue, int thread) const {
  const std::vector<int>& steps = queues_[index(queue)].steps;
  return std::any_of(steps.begin(), steps.end(), [&](int step) { return !done(thread).contains(step); });
}

void Order::join_threads() {
  for (int thread = 1; thread != max_threads; ++thread) done_[0].insert(done_[index(thread)]);
  for (StepSet& set : done_) set = done_[0];
}

}  // namespace random_opencl
