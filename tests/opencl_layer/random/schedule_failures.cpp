// SPDX-License-Identifier: Apache-2.0
// The part of the scheduler for user events that are set to an error. Commands that wait for such an event, or for a
// command that does, never run: what they would write stays as it was, on the device and on the host. No other command
// waits for them. What a queue does with commands behind a failed one that do not name it is not specified, so there
// are none: before a barrier, a marker, a blocking command, or any other command of a queue in order, the event fails,
// and the host waits for all that failed with it. PoCL 3.1 calls no callbacks of failed events, so they have none; and
// it uses such events after it has told that they failed, so they stay to the end.

#include <algorithm>
#include <utility>

#include "scheduler.hpp"

namespace random_opencl {
namespace {

bool can_fail(const Action& action) {
  switch (action.kind) {
    case Kind::write:
    case Kind::read:
    case Kind::copy:
    case Kind::fill:
    case Kind::launch:
    case Kind::native: return !action.blocking;
    default: return false;
  }
}

}  // namespace

bool Scheduler::has_doomed(const FailingEvent& failing, int queue) const {
  return std::any_of(failing.doomed.begin(), failing.doomed.end(),
                     [&](int step) { return schedule_.steps[index(step)].what.queue == queue; });
}

/// Perhaps lets the command wait for an event that fails.
bool Scheduler::doom(Step& step, Random& random) {
  const int queue = step.what.queue;
  const int context = program_.queues[index(queue)].context;
  if (failing_.empty() || !can_fail(step.what) || !random.chance(65)) return false;
  FailingEvent& failing = failing_[random.below(failing_.size())];
  if (failing.thread != thread_ || failing.context != context) return false;
  // Behind commands that another event dooms it would fail with these, too.
  for (std::size_t i = 0; i != failing_.size(); ++i) {
    if (&failing_[i] != &failing && has_doomed(failing_[i], queue)) return false;
  }
  std::vector<int> causes = failing.doomed;
  const bool follows = is_in_order(program_.queues[index(queue)]) && has_doomed(failing, queue);
  if (!follows) causes.push_back(failing.step);
  const int cause = random.one_of(causes);
  if (cause != failing.step) flush(schedule_.steps[index(cause)].what.queue);
  step.waits.push_back(cause);
  if (random.chance(30) && cause != failing.step) step.waits.push_back(failing.step);
  step.what.fails = true;
  step.has_event = true;
  if (step.what.kind == Kind::read) {
    const std::size_t size = end_of(step.what.host);
    step.contents = {random_bytes(data_seed(step.what), size), Bytes(size, 1)};
  }
  failing.doomed.push_back(add(std::move(step)));
  return true;
}

void Scheduler::fail(std::size_t which) {
  const FailingEvent failing = failing_[which];
  failing_.erase(failing_.begin() + static_cast<std::ptrdiff_t>(which));
  Random random(program_.seed + ++inserted_);
  Step set = step_for({});
  set.what.kind = Kind::set_user_event;
  set.what.seed = random.next();
  set.what.fails = true;
  set.target = failing.step;
  set.by_helper = random.chance(30);
  const bool helped = set.by_helper;
  add(std::move(set));
  std::vector<int> queues;
  for (const int doomed : failing.doomed) {
    const int queue = schedule_.steps[index(doomed)].what.queue;
    if (std::find(queues.begin(), queues.end(), queue) == queues.end()) queues.push_back(queue);
  }
  // A command may fail when it could begin: after what is before it in its queue.
  for (const int queue : queues) set_users(order_.all_of(queue), random);
  for (const int doomed : failing.doomed) {
    const int queue = schedule_.steps[index(doomed)].what.queue;
    Step wait = step_for({});
    wait.what.kind = Kind::wait;
    wait.what.fails = true;
    wait.what.queue = queue;
    wait.waits.push_back(doomed);
    add(std::move(wait));
    if (schedule_.steps[index(doomed)].what.kind != Kind::read) continue;
    Step check = step_for({});
    check.what.kind = Kind::check_read;
    check.target = doomed;
    add(std::move(check));
  }
  if (helped) {
    Step join = step_for({});
    join.what.kind = Kind::join_setters;
    add(std::move(join));
  }
  for (const int queue : queues) finish(queue);
}

void Scheduler::settle_failures() {
  for (std::size_t i = failing_.size(); i-- != 0;) {
    if (i < failing_.size() && failing_[i].thread == thread_) fail(i);
  }
}

void Scheduler::settle_failures_of(int queue) {
  for (std::size_t i = failing_.size(); i-- != 0;) {
    if (i < failing_.size() && has_doomed(failing_[i], queue)) fail(i);
  }
}

}  // namespace random_opencl
