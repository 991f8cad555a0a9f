// SPDX-License-Identifier: Apache-2.0
// The part of the scheduler that orders commands: what they wait for, and what the host waits for.

#include <algorithm>
#include <utility>

#include "scheduler.hpp"

namespace random_opencl {
std::vector<int> Scheduler::order(int queue, const std::vector<Access>& accesses, Random& random) {
  std::vector<int> waits;
  for (;;) {
    const std::vector<int> missing = order_.conflicts(accesses, order_.before(queue, waits, thread_));
    if (missing.empty()) return waits;
    // The latest first: it often follows the others.
    const int step = random.chance(70) ? missing.back() : random.one_of(missing);
    const Node& node = order_.node(step);
    const bool same_queue = node.queue == queue && order_.has_unknown_commands(queue, thread_);
    if (same_queue && random.chance(20)) {
      mark(queue, true, random.chance(50));
      continue;
    }
    if (random.chance(10)) {
      complete(step, random);
      continue;
    }
    const int event = order_.event_for(step, place(), random.next());
    if (event >= 0) {
      wait_for_event(waits, event);
    } else {
      // No event tells of it, and its queue is of this thread, see begin_section().
      if (random.chance(50)) {
        mark(node.queue, false, true);
      } else {
        finish(node.queue);
      }
    }
  }
}

void Scheduler::wait_for_event(std::vector<int>& waits, int event) {
  if (std::find(waits.begin(), waits.end(), event) != waits.end()) return;
  // Events of commands that were not flushed may not be waited for by other queues.
  if (!order_.is_flushed(event)) flush(order_.node(event).queue);
  waits.push_back(event);
}

void Scheduler::flush(int queue) {
  Step step = step_for({});
  step.what.kind = Kind::flush;
  step.what.queue = queue;
  add(std::move(step));
  order_.flush(queue);
}

void Scheduler::finish(int queue) {
  settle_failures_of(queue);
  const StepSet all = order_.all_of(queue);
  Random random(program_.seed + ++inserted_);
  set_users(all, random);
  Step step = step_for({});
  step.what.kind = Kind::finish;
  step.what.queue = queue;
  add(std::move(step));
  order_.set_done(thread_, all);
  order_.flush(queue);
}

void Scheduler::mark(int queue, bool barrier, bool has_event) {
  settle_failures_of(queue);  // it would wait for them, and fail
  Step step = step_for({});
  step.what.kind = barrier ? Kind::barrier : Kind::marker;
  step.what.queue = queue;
  step.what.seed = program_.seed + ++inserted_;
  step.has_event = has_event;
  step.whole_queue = true;
  const int id = add(std::move(step));
  order_.add_all_before(id, queue, barrier, has_event, place());
}

void Scheduler::complete(int step, Random& random) {
  if (order_.done(thread_).contains(step)) return;
  const int event = order_.event_for(step, place(), random.next());
  const int queue = order_.node(step).queue;
  if (event < 0 || (random.chance(20) && order_.all_of(queue).contains(step) && !is_parallel())) {
    finish(queue);
    return;
  }
  const StepSet all = order_.with_before(event);
  set_users(all, random);
  Step wait = step_for({});
  wait.what.kind = Kind::wait;
  wait.what.queue = queue;
  wait.what.seed = random.next();
  wait.waits.push_back(event);
  add(std::move(wait));
  order_.set_done(thread_, all);
  if (!order_.is_flushed(event)) order_.flush(order_.node(event).queue);
}

// User events
// -----------------------------------------------------------------------------------------------------------

void Scheduler::set_users(const StepSet& closure, Random& random) {
  for (UserEvent& user : users_) {
    if (!user.is_set && closure.contains(user.step)) set_user(user, random.chance(30));
  }
}

void Scheduler::set_user(UserEvent& user, bool by_helper) {
  user.is_set = true;
  user.has_helper = by_helper;
  Step step = step_for({});
  step.what.kind = Kind::set_user_event;
  step.what.seed = program_.seed + ++inserted_;
  step.target = user.step;
  step.by_helper = by_helper;
  add(std::move(step));
}

/// Objects may be released only after user events that commands wait for were set.
void Scheduler::settle_users() {
  for (UserEvent& user : users_) {
    if (!user.is_set && user.thread == thread_) set_user(user, false);
  }
  const bool helped = std::any_of(users_.begin(), users_.end(), [&](const UserEvent& user) { return user.has_helper; });
  if (!helped) return;
  Step step = step_for({});
  step.what.kind = Kind::join_setters;
  add(std::move(step));
  for (UserEvent& user : users_) user.has_helper = false;
}

bool Scheduler::is_quiet() const {
  if (!failing_.empty()) return false;
  if (is_parallel() && !program_.sections[index(phase_ / 2)].releases) return false;
  return std::all_of(users_.begin(), users_.end(),
                     [](const UserEvent& user) { return user.is_set && !user.has_helper; });
}

// Maps and reads
// --------------------------------------------------------------------------------------------------------

void Scheduler::touch(const OpenMap& map, Random& random) {
  const Action what = schedule_.steps[index(map.step)].what;
  const int id = what.objects[0];
  Step step = step_for(what);
  step.what.kind = Kind::touch_map;
  step.target = map.step;
  step.contents = memory_.read(id, what.at[0]);
  const std::size_t size = step.contents.bytes.size();
  if (!host_reads(object(id)) || what.map_flags == CL_MAP_WRITE_INVALIDATE_REGION) {
    // The program may not look. What it wrote itself is there, but this is not worth a case of its own.
    step.contents.defined.assign(size, 0);
  }
  if (what.map_flags != CL_MAP_READ) {
    step.change = {random_bytes(random.next(), size), Bytes(size)};
    const std::size_t parts = random.chance(50) ? 1 : random.between(1, 3);
    for (std::size_t part = 0; part != parts; ++part) {
      const bool whole = parts == 1;
      const std::size_t begin = whole ? 0 : random.below(size);
      const std::size_t end = whole ? size : random.between(begin, size);
      std::fill(step.change.defined.begin() + static_cast<std::ptrdiff_t>(begin),
                step.change.defined.begin() + static_cast<std::ptrdiff_t>(end), std::uint8_t{1});
    }
    Contents now = memory_.read(id, what.at[0]);
    for (std::size_t i = 0; i != size; ++i) {
      if (step.change.defined[i] == 0) continue;
      now.bytes[i] = step.change.bytes[i];
      now.defined[i] = 1;
    }
    memory_.write(id, what.at[0], now);
  }
  add(std::move(step));
}

void Scheduler::close(std::size_t which, Random& random) {
  const OpenMap map = maps_[which];
  complete(map.step, random);
  touch(map, random);
  Step step = step_for(schedule_.steps[index(map.step)].what);
  step.what.kind = Kind::unmap;
  step.what.blocking = false;
  step.target = map.step;
  if (!is_parallel() && random.chance(25)) {  // any queue of the context may do it
    const int context = program_.queues[index(step.what.queue)].context;
    std::vector<int> queues;
    for (std::size_t i = 0; i != program_.queues.size(); ++i) {
      if (program_.queues[i].context == context) queues.push_back(static_cast<int>(i));
    }
    step.what.queue = random.one_of(queues);
  }
  maps_.erase(maps_.begin() + static_cast<std::ptrdiff_t>(which));
  enqueue(std::move(step), {map.access}, random);
}

void Scheduler::close_conflicting(const std::vector<Access>& accesses, Random& random) {
  for (std::size_t map = maps_.size(); map-- != 0;) {
    const bool conflict = std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      return order_.do_conflict(access, maps_[map].access);
    });
    if (conflict) close(map, random);
  }
}

void Scheduler::check(std::size_t pending, Random& random) {
  const int read = pending_reads_[pending];
  pending_reads_.erase(pending_reads_.begin() + static_cast<std::ptrdiff_t>(pending));
  complete(read, random);
  Step step = step_for({});
  step.what.kind = Kind::check_read;
  step.target = read;
  add(std::move(step));
}

// Sections
// --------------------------------------------------------------------------------------------------------------

void Scheduler::begin_section(int section) {
  phase_ = 2 * section;
  if (program_.sections[index(section)].threads > 1) {
    // What follows may wait for events alone, since other threads use the other queues.
    for (int queue = 0; queue != static_cast<int>(program_.queues.size()); ++queue) {
      Random random(program_.seed + ++inserted_);
      if (random.chance(60)) {
        finish(queue);
      } else {
        mark(queue, false, true);
        flush(queue);
      }
    }
    order_.join_threads();
  }
  phase_ = 2 * section + 1;
}

void Scheduler::begin_thread(int thread) { thread_ = thread; }

void Scheduler::end_thread() {
  Random random(program_.seed + ++inserted_);
  const std::size_t next = static_cast<std::size_t>(phase_ / 2) + 1;
  const bool ends = is_parallel() || next == program_.sections.size() || program_.sections[next].threads > 1;
  if (!ends) return;
  while (!maps_.empty()) close(random.below(maps_.size()), random);
  while (!pending_reads_.empty()) check(random.below(pending_reads_.size()), random);
  settle_users();
  settle_failures();
}

void Scheduler::end_section() {
  order_.join_threads();
  thread_ = 0;
}

void Scheduler::end() {
  phase_ = 2 * static_cast<int>(program_.sections.size());
  thread_ = 0;
  for (std::size_t id = 0; id != program_.objects.size(); ++id) {
    const Object& that = program_.objects[id];
    if (!alive_[id] || !host_reads(that)) continue;
    Random random(program_.seed * 31 + id);
    Action action;
    action.kind = Kind::read;
    action.seed = random.next();
    action.objects = {static_cast<int>(id)};
    action.at[0] = linear_rect(0, that.size);
    if (is_image(that)) action.at[0] = {{0, 0, 0}, {that.width * 16, that.height, 1}, that.width * 16, that.size};
    action.linear = !is_image(that);
    action.host = action.at[0];
    action.blocking = random.chance(50);
    std::vector<int> queues;
    for (std::size_t i = 0; i != program_.queues.size(); ++i) {
      if (program_.queues[i].context == that.context) queues.push_back(static_cast<int>(i));
    }
    action.queue = random.one_of(queues);
    command(step_for(action));
  }
  Random random(program_.seed);
  while (!pending_reads_.empty()) check(random.below(pending_reads_.size()), random);
  for (int queue = 0; queue != static_cast<int>(program_.queues.size()); ++queue) finish(queue);
}

}  // namespace random_opencl
