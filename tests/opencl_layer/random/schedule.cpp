// SPDX-License-Identifier: Apache-2.0
#include "schedule.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler.hpp"

namespace random_opencl {
Scheduler::Scheduler(const Program& program, const ScheduleOptions& options)
    : program_(program),
      options_(options),
      order_(program),
      memory_(program.objects),
      alive_(program.objects.size()),
      step_of_action_(program.actions.size(), -1) {}

Step Scheduler::step_for(const Action& action) const {
  Step step;
  step.what = action;
  step.what.section = phase_;
  step.what.thread = thread_;
  return step;
}

int Scheduler::add(Step step) {
  schedule_.steps.push_back(std::move(step));
  return static_cast<int>(schedule_.steps.size()) - 1;
}

bool Scheduler::is_legal(const Action& action) const {
  switch (action.kind) {
    case Kind::create: {
      const int parent = object(action.objects[0]).parent;
      return parent < 0 || alive_[index(parent)];
    }
    case Kind::unmap:
    case Kind::set_user_event: return step_of_action_[index(action.target)] >= 0;
    default:
      return std::all_of(action.objects.begin(), action.objects.end(),
                         [&](int id) { return id < 0 || alive_[index(id)]; });
  }
}

void Scheduler::take(int number) {
  const Action& action = program_.actions[index(number)];
  if (!is_legal(action)) return;
  Random random(action.seed ^ 0x5eedU);
  Step step = step_for(action);
  step.action = number;
  switch (action.kind) {
    case Kind::create: create(std::move(step)); break;
    case Kind::release: release(std::move(step)); break;
    case Kind::unmap: {
      const int target = step_of_action_[index(action.target)];
      const auto map =
          std::find_if(maps_.begin(), maps_.end(), [&](const OpenMap& that) { return that.step == target; });
      if (map == maps_.end()) break;
      if (random.chance(25)) {
        complete(map->step, random);
        touch(*map, random);
      } else {
        close(static_cast<std::size_t>(map - maps_.begin()), random);
      }
      break;
    }
    case Kind::user_event: {
      const int context = program_.queues[index(action.queue)].context;
      const int id = add(std::move(step));
      step_of_action_[index(number)] = id;
      if (action.fails) {
        failing_.push_back({id, thread_, context, {}});
        break;
      }
      order_.add_user_event(id, context, place());
      users_.push_back({id, thread_, context});
      break;
    }
    case Kind::set_user_event: {
      const int target = step_of_action_[index(action.target)];
      for (UserEvent& user : users_) {
        if (user.step == target && !user.is_set) set_user(user, random.chance(40));
      }
      for (std::size_t i = 0; i != failing_.size(); ++i) {
        if (failing_[i].step != target) continue;
        fail(i);
        break;
      }
      break;
    }
    case Kind::barrier:
    case Kind::marker:
    case Kind::finish:
    case Kind::flush:
    case Kind::wait: synchronize(std::move(step)); break;
    case Kind::new_queue: renew_queue(std::move(step)); break;
    default: command(std::move(step)); break;
  }
  if (!pending_reads_.empty() && random.chance(25)) check(random.below(pending_reads_.size()), random);
}

void Scheduler::create(Step step) {
  const int id = step.what.objects[0];
  alive_[index(id)] = true;
  memory_.create(id);
  if (!is_buffer(object(id))) image_bytes_ += object(id).size;
  largest_images_ = std::max(largest_images_, image_bytes_);
  if (object(id).parent < 0) live_bytes_ += (object(id).size + 511) / 512 * 512;
  most_live_bytes_ = std::max(most_live_bytes_, live_bytes_);
  if (is_buffer(object(id))) largest_command_ = std::max(largest_command_, (object(id).size + 511) / 512 * 512);
  add(std::move(step));
}

void Scheduler::release(Step step) {
  const int id = step.what.objects[0];
  Random random(step.what.seed);
  for (std::size_t map = maps_.size(); map-- != 0;) {
    if (maps_[map].access.object == id) close(map, random);
  }
  settle_users();
  settle_failures();
  alive_[index(id)] = false;
  if (object(id).shared) {  // by a command
    for (int queue = 0; program_.queues[index(step.what.queue)].context != object(id).context; ++queue)
      step.what.queue = queue;
    enqueue(std::move(step), {{id, 0, object(id).size, true}}, random);
    return;
  }
  if (object(id).parent < 0 && is_buffer(object(id))) live_bytes_ -= (object(id).size + 511) / 512 * 512;
  // The bytes of an image or of shared memory count until its last command is complete: to the end, as far as we know.
  add(std::move(step));
}

void Scheduler::renew_queue(Step step) {
  const int queue = step.what.queue;
  Random random(step.what.seed);
  settle_users();
  settle_failures();
  if (random.chance(50)) {
    finish(queue);
  } else {
    mark(queue, false, true);  // later waits need an event
  }
  add(std::move(step));
  order_.renew(queue);
}

void Scheduler::synchronize(Step step) {
  Random random(step.what.seed);
  const int queue = step.what.queue;
  switch (step.what.kind) {
    case Kind::barrier:
    case Kind::marker: {
      const bool barrier = step.what.kind == Kind::barrier;
      std::vector<int> waits;
      if (random.chance(50)) add_noise(step, random);
      if (step.waits.empty()) {
        mark(queue, barrier, random.chance(70));
        break;
      }
      if (is_in_order(program_.queues[index(queue)])) settle_failures_of(queue);
      step.has_event = random.chance(70);
      waits = step.waits;
      const bool has_event = step.has_event;
      const int id = add(std::move(step));
      if (barrier) {
        order_.add_barrier(id, queue, waits, has_event, place());
      } else {
        order_.add_command(id, queue, waits, has_event, place());
      }
      break;
    }
    case Kind::finish: finish(queue); break;
    case Kind::flush: flush(queue); break;
    default: {
      std::vector<int> candidates;
      for (const Node& node : order_.nodes()) {
        if (node.queue == queue && node.has_event && !is_concurrent(node)) {
          candidates.push_back(node.step);
        }
      }
      if (!candidates.empty()) complete(random.one_of(candidates), random);
    }
  }
}

void Scheduler::command(Step step) {
  Random random(step.what.seed ^ 0xc0deU);
  const std::vector<Access> accesses = accesses_of(step.what, program_.objects);
  close_conflicting(accesses, random);
  std::map<int, std::size_t> roots;
  std::size_t bytes = 0;
  for (const Access& access : accesses) {
    const int parent = object(access.object).parent;
    const int root = parent < 0 ? access.object : parent;
    if (is_buffer(object(root))) roots[root] = (object(root).size + 511) / 512 * 512;
  }
  for (const auto& [root, size] : roots) bytes += size;
  largest_command_ = std::max(largest_command_, bytes);
  if (doom(step, random)) return;
  const int number = step.action;
  const Kind kind = step.what.kind;
  const bool blocking = step.what.blocking;
  const int id = enqueue(std::move(step), accesses, random);
  if (kind == Kind::map) {
    if (number >= 0) step_of_action_[index(number)] = id;
    maps_.push_back({id, accesses[0]});
    if (blocking && random.chance(50)) touch(maps_.back(), random);
  }
  if (kind == Kind::read && !blocking) pending_reads_.push_back(id);
}

int Scheduler::enqueue(Step step, const std::vector<Access>& accesses, Random& random) {
  const int queue = step.what.queue;
  // Whether what an in-order queue holds behind a failed command runs differs.
  if (step.what.blocking || is_in_order(program_.queues[index(queue)])) settle_failures_of(queue);
  for (const int wait : order(queue, accesses, random)) step.waits.push_back(wait);
  add_noise(step, random);
  StepSet before = order_.before(queue, step.waits, thread_);
  if (step.what.blocking) {
    before.insert(order_.all_of(queue));  // PoCL 3.1 waits for the whole queue, out of order or not
    set_users(before, random);
  }
  step.has_event = random.chance(80);
  step.has_callback = step.has_event && random.chance(15);
  step.may_release = is_quiet();
  apply(step);
  const bool blocking = step.what.blocking;
  const std::vector<int> waits = step.waits;
  const bool has_event = step.has_event;
  const int id = add(std::move(step));
  order_.add_command(id, queue, waits, has_event, place());
  for (const Access& access : accesses) order_.add_access(id, access);
  if (blocking) {
    order_.set_done(thread_, order_.with_before(id));
    order_.flush(queue);
  }
  return id;
}

void Scheduler::add_noise(Step& step, Random& random) {
  const int context = program_.queues[index(step.what.queue)].context;
  for (UserEvent& user : users_) {
    if (user.context != context || user.thread != thread_ || !random.chance(user.is_set ? 20 : 50)) continue;
    step.waits.push_back(user.step);
  }
  if (!random.chance(15)) return;
  std::vector<int> events;
  for (const Node& node : order_.nodes()) {
    if (node.has_event && node.queue >= 0 && node.context == context && !is_concurrent(node)) {
      events.push_back(node.step);
    }
  }
  for (std::size_t i = 0; i != 2 && !events.empty(); ++i) wait_for_event(step.waits, random.one_of(events));
}

void Scheduler::apply(Step& step) {
  const Action& what = step.what;
  const auto in = [&](std::size_t which) { return what.at[which]; };
  switch (what.kind) {
    case Kind::write: {
      const std::size_t size = end_of(what.host);
      step.contents = {random_bytes(data_seed(what), size), Bytes(size, 1)};
      Contents packed{Bytes(bytes_of(what.host)), Bytes(bytes_of(what.host), 1)};
      for_rows(what.host, [&](std::size_t from, std::size_t to, std::size_t bytes) {
        std::copy_n(step.contents.bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                    packed.bytes.begin() + static_cast<std::ptrdiff_t>(to));
      });
      memory_.write(what.objects[0], in(0), packed);
      break;
    }
    case Kind::read: {
      // What the read does not name must stay as it was.
      const std::size_t size = end_of(what.host);
      step.contents = {random_bytes(data_seed(what), size), Bytes(size, 1)};
      const Contents packed = memory_.read(what.objects[0], in(0));
      for_rows(what.host, [&](std::size_t to, std::size_t from, std::size_t bytes) {
        for (std::size_t i = 0; i != bytes; ++i) {
          step.contents.bytes[to + i] = packed.bytes[from + i];
          step.contents.defined[to + i] = packed.defined[from + i];
        }
      });
      break;
    }
    case Kind::copy: memory_.write(what.objects[1], in(1), memory_.read(what.objects[0], in(0))); break;
    case Kind::fill: {
      const Bytes pattern = random_bytes(data_seed(what), what.pattern);
      Contents packed{Bytes(bytes_of(in(0))), Bytes(bytes_of(in(0)), 1)};
      for (std::size_t i = 0; i != packed.bytes.size(); ++i) packed.bytes[i] = pattern[i % what.pattern];
      memory_.write(what.objects[0], in(0), packed);
      break;
    }
    case Kind::map:
      if ((what.map_flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0) memory_.undefine(what.objects[0], in(0));
      break;
    case Kind::native: run_on_host(what, memory_); break;
    case Kind::launch:
      run_on_host(what, memory_);
      if (options_.spoil) {
        for (const Access& access : accesses_of(what, program_.objects)) {
          if (!access.write) continue;
          Memory::Element element = memory_.load(access.object, access.begin, 1);
          element.value ^= 1U;
          memory_.store(access.object, access.begin, element, 1);
        }
      }
      break;
    default: break;
  }
}

namespace {

/// Events are released after their last use, if no other thread may use them.
void find_last_uses(Schedule& schedule, std::uint64_t seed) {
  std::vector<int> last(schedule.steps.size(), -1);
  for (std::size_t i = 0; i != schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (step.has_event) last[i] = static_cast<int>(i);
    for (const int wait : step.waits) last[index(wait)] = static_cast<int>(i);
    if (step.target >= 0) last[index(step.target)] = static_cast<int>(i);
  }
  Random random(seed);
  for (std::size_t i = 0; i != last.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (last[i] < 0 || !step.has_event || step.what.fails || random.chance(50)) continue;
    Step& use = schedule.steps[index(last[i])];
    if (use.what.section == step.what.section && use.what.thread == step.what.thread) {
      use.last_uses.push_back(static_cast<int>(i));
    }
  }
}

}  // namespace

Schedule Scheduler::result() {
  schedule_.need = largest_command_ + (largest_images_ + 511) / 512 * 512;
  schedule_.peak = most_live_bytes_;
  find_last_uses(schedule_, program_.seed);
  return std::move(schedule_);
}

Schedule schedule(const Program& program, const ScheduleOptions& options) {
  Scheduler scheduler(program, options);
  for (int section = 0; section != static_cast<int>(program.sections.size()); ++section) {
    scheduler.begin_section(section);
    for (int thread = 0; thread != program.sections[index(section)].threads; ++thread) {
      scheduler.begin_thread(thread);
      for (std::size_t action = 0; action != program.actions.size(); ++action) {
        const Action& that = program.actions[action];
        if (that.section != section || that.thread != thread) continue;
        if (!options.keep.empty() && !options.keep[action]) continue;
        scheduler.take(static_cast<int>(action));
      }
      scheduler.end_thread();
    }
    scheduler.end_section();
  }
  scheduler.end();
  return scheduler.result();
}

}  // namespace random_opencl
