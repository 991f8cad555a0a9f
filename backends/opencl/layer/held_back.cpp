// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <exception>
#include <list>
#include <memory>
#include <span>
#include <utility>

#include "process/callbacks.hpp"
#include "queue.hpp"

namespace swapmm::opencl::layer {
namespace {

// Bounds what is held back: memory of the host. How long the device may wait for work: Patience.
constexpr std::size_t most_commands = WaitWatch::most_commands;

void note_coming(const Bundle& bundle) {
  for (const Bundle::Part& part : bundle.parts()) part.root->coming.push(part.access == Access::write);
}

// Gives the oldest command to the driver.
void submit_oldest(Context& context) {
  HeldBackCommand command = std::move(context.held_back.front());
  context.held_back.pop_front();
  const Bundle& bundle = command.intent.bundle;
  if (!bundle.empty()) --context.held_back_on_buffers;
  for (const Bundle::Part& part : bundle.parts()) part.root->coming.pop();
  context.submitting = true;
  cl_event native = nullptr;
  cl_int status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  if (std::none_of(command.after.begin(), command.after.end(),
                   [](const Ref<Event>& event) { return event->failed(); })) {
    status = command.task->submit(context, &native);
    // The program was told that it is queued.
    if (status != CL_SUCCESS) context.untold = status == CL_OUT_OF_HOST_MEMORY ? status : CL_OUT_OF_RESOURCES;
  }
  context.submitting = false;
  if (status == CL_SUCCESS) {
    command.queue->last = context.keep(native);
    if (command.event) {
      command.event->submitted(native);
    } else {
      down.clReleaseEvent(native);
    }
  } else if (command.event) {
    command.event->set_status(status);
  }
}

// Whether the plan drops nothing with the oldest command, or only what is dead.
bool oldest_is_certain(Context& context) {
  const Bundle& bundle = context.held_back.front().intent.bundle;
  if (bundle.empty() || !context.has_core()) return true;
  for (const Bundle::Part& part : bundle.parts()) part.root->coming.pop();
  bool certain = true;
  try {
    certain = context.core()->next_drops_are_certain();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the command meets the failure
  }
  for (const Bundle::Part& part : bundle.parts()) part.root->coming.unpop(part.access == Access::write);
  return certain;
}

void set_alarm(Context& context, Patience::Clock::duration until);

// Lets all commands go once the program pauses without asking for anything, or the oldest one has waited for too long.
void alarm(Context& context) {
  const Lock lock = context.lock();
  context.alarm_set = false;
  if (context.held_back.empty()) return;
  const Patience& patience = context.patience();
  const auto end =
      std::min(context.held_back.back().since + patience.pause(), context.held_back.front().since + patience.time());
  const auto now = Patience::Clock::now();
  if (now < end) return set_alarm(context, end - now);
  submit_held_back(context);
  context.flush();
}

void set_alarm(Context& context, Patience::Clock::duration until) {
  if (std::exchange(context.alarm_set, true)) return;
  // It keeps the context, so it looks often, also if the program may pause for long.
  constexpr Patience::Clock::duration at_most = std::chrono::seconds(3);
  const auto time = std::chrono::ceil<std::chrono::milliseconds>(std::min(until, at_most));
  run_after(time, [kept = ContextRef(context)] { alarm(*kept); });
}

// ---- waits that end when the host has its values

// How many of the oldest commands must run before the host has what a command does: all up to this one; for a read, up
// to the last one that changes what it reads, unless it has to come after another command.
std::size_t needed_by(std::list<HeldBackCommand>::const_iterator read, std::size_t place) {
  if (!read->intent.read || !read->after.empty()) return place + 1;
  const Memory* const root = &read->intent.read->memory->root();
  for (; place != 0; --place) {
    const std::span<const Bundle::Part> parts = (--read)->intent.bundle.parts();
    if (std::any_of(parts.begin(), parts.end(),
                    [root](const Bundle::Part& part) { return part.root == root && part.access != Access::read; }))
      break;
  }
  return place;
}

// Copies what a held-back command will read to the program's memory, outside the sequence of commands. The command
// stays in it, and copies nothing. False if the value cannot be had now.
bool read_early(Context& context, HeldBackCommand& command) {
  const HostRead& read = *command.intent.read;
  try {
    Tensor tensor;
    Memory& root = read.memory->root();
    if (root.native() != nullptr || !root.tensor(tensor)) return false;
    context.core()->download(tensor, Bytes{read.memory->origin() + read.offset}, std::span(read.to, read.size));
    if (command.event) {
      cl_event native = nullptr;
      if (down.clEnqueueMarkerWithWaitList(context.queue(), 0, nullptr, &native) != CL_SUCCESS) return false;
      command.queue->last = context.keep(native);  // who waits for the read waits for its event
      std::exchange(command.event, {})->submitted(native);
    }
  } catch (const std::exception&) {
    return false;
  }
  const auto nothing = [what = read.command, bundle = command.intent.bundle, use = read.memory](Context& on,
                                                                                                cl_event* native) {
    return on.operate(what, bundle, native, [](Running& operation, const WaitList& waits, cl_event* event) {
      return down.clEnqueueMarkerWithWaitList(operation.backend().queue(), waits.size(), waits.data(), event);
    });
  };
  command.task = std::make_unique<SimpleTask<decltype(nothing)>>(nothing);
  command.intent.read.reset();
  command.intent.hidden = true;
  return true;
}

// Whether the driver need not get a command at once.
bool need_not_run_now(const Queue& queue, const Place& place, const Intent& intent) {
  const Context& context = queue.context();
  if (!queue.after.empty() || context.submitting || intent.at_once) return false;
  for (cl_uint i = 0; i < place.wait_count; ++i) {
    const Event* const event = Event::from(place.wait_list[i]);
    if (event->native() == nullptr && !event->held_back) return false;
  }
  const bool initial = std::any_of(intent.bundle.parts().begin(), intent.bundle.parts().end(),
                                   [](const Bundle::Part& part) { return part.root->has_initial(); });
  return !initial && !context.may_fail(token_of(intent.command, intent.bundle.parts()));
}

bool host_sees(const HeldBackCommand& command) {
  return !command.intent.hidden || (command.event && command.event->references() != 0);
}

// Lets those of the `count` oldest commands go that the program waits for, and what they need.
template <class WaitedFor>
void submit_some(Context& context, std::size_t count, WaitedFor&& waited_for) {
  if (context.submitting) return;
  std::size_t needed = 0;
  std::size_t place = 0;
  for (auto each = context.held_back.begin(); place != count; ++each, ++place) {
    if (waited_for(*each)) needed = std::max(needed, needed_by(each, place));
  }
  for (place = 0; place != needed; ++place) submit_oldest(context);
  for (HeldBackCommand& command : context.held_back) {
    if (place++ == count) return;
    if (command.intent.read && waited_for(command) && !read_early(context, command)) return submit_held_back(context);
  }
}

}  // namespace

namespace detail {

bool may_hold_back(const Queue& queue, const Place& place, const Intent& intent) {
  const Context& context = queue.context();
  if (!need_not_run_now(queue, place, intent)) return false;
  if (intent.bundle.empty()) return !context.held_back.empty();
  return context.expected(context.held_back_on_buffers) == token_of(intent.command, intent.bundle.parts());
}

void watch_pause(Context& context) {
  const auto now = std::chrono::steady_clock::now();
  const auto before = std::exchange(context.watched_at, now);
  // A pause that is shorter in one step may be longer in the next one.
  if (before > now || now - before < context.patience().pause() / 2) return;
  context.watched.let_all_go();
  context.note_wait(0);
}

bool watch(const Queue& queue, const Place& place, const Intent& intent) {
  if (!queue.context().held.empty() || !need_not_run_now(queue, place, intent)) return false;
  if (!settings().waits_for_values) return true;
  WaitWatch::Command command;
  for (const Bundle::Part& part : intent.bundle.parts()) {
    if (part.access != Access::read) command.changes.push_back(part.root);
  }
  if (intent.read && place.wait_count == 0) command.read = &intent.read->memory->root();
  command.host_sees = !intent.hidden || place.event != nullptr;  // it may release the event before it waits
  command.has_buffers = !intent.bundle.empty();
  queue.context().watched.called(std::move(command));
  return true;
}

void note_watched(Context& context, const Place& place, bool might_be_held_back) {
  // The time that the layer itself took is no pause: calls whose commands are held back return at once.
  context.watched_at = std::chrono::steady_clock::now();
  if (!might_be_held_back) {
    context.watched.let_all_go();
  } else if (place.blocking) {
    context.watched.let_go_for_host();
    context.watched_at = std::chrono::steady_clock::time_point::max();
  } else if (context.watched.is_full()) {
    context.watched.let_half_go();
  } else {
    return;
  }
  context.note_wait(context.watched.operations());
}

void hold_back(Queue& queue, const Place& place, std::unique_ptr<Task> task, Intent intent) {
  Context& context = queue.context();
  Ref<Event> event;
  if (place.event != nullptr) {
    auto* const made = new Event(context, &queue, place.type);
    event = Ref<Event>(*made);
    event->held_back = true;
    *place.event = made->handle();
  }
  note_coming(intent.bundle);
  if (!intent.bundle.empty()) ++context.held_back_on_buffers;
  std::vector<Ref<Event>> after;
  for (cl_uint i = 0; i < place.wait_count; ++i) {
    Event& before = *Event::from(place.wait_list[i]);
    if (before.native() == nullptr) after.emplace_back(before);
  }
  context.held_back.push_back({std::move(task), std::move(intent), std::move(after), std::move(event),
                               Ref<Queue>(queue), std::chrono::steady_clock::now()});
  while (!context.held_back.empty()) {
    const bool wait = context.holds_back() && context.held_back.size() <= most_commands && !oldest_is_certain(context);
    if (wait) break;
    submit_oldest(context);
  }
  if (!context.held_back.empty()) set_alarm(context, context.patience().pause());
}

}  // namespace detail

void Context::note_wait(std::size_t open) {
  try {
    // Releases that came before are told first.
    if (Core* const runtime = core()) runtime->note_wait(open);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the next command meets the failure
  }
}

void submit_before_next(Context& context) {
  if (context.submitting) return;
  while (!context.held_back.empty()) submit_oldest(context);
}

void submit_held_back(Context& context) {
  submit_before_next(context);
  if (!context.watches_waits() || context.submitting) return;
  context.watched.let_all_go();
  context.note_wait(0);
}

void submit_for_host(Context& context) {
  if (!settings().waits_for_values) return submit_held_back(context);
  if (context.watches_waits()) {
    submit_before_next(context);
    context.watched.let_go_for_host();
    context.watched_at = std::chrono::steady_clock::time_point::max();  // the wait is no pause
    return context.note_wait(context.watched.operations());
  }
  submit_some(context, context.held_back.size(), host_sees);
}

void submit_for(Context& context, std::span<const Ref<Event>> events) {
  if (!settings().waits_for_values || context.watches_waits()) return submit_held_back(context);
  const auto waited_for = [&](const HeldBackCommand& command) {
    return command.event && std::any_of(events.begin(), events.end(),
                                        [&](const Ref<Event>& event) { return event.get() == command.event.get(); });
  };
  std::size_t place = 0;
  std::size_t count = 0;
  for (const HeldBackCommand& command : context.held_back) {
    ++place;
    if (waited_for(command)) count = place;
  }
  // What came before in the queue has ended, too, when an event is complete.
  submit_some(context, count,
              [&](const HeldBackCommand& command) { return waited_for(command) || host_sees(command); });
}

}  // namespace swapmm::opencl::layer
