// SPDX-License-Identifier: Apache-2.0
// The part of the drawing that makes loops: a body of actions, done again and again with other data.

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "draw.hpp"

namespace random_opencl {
namespace {

constexpr std::size_t most_tries = 1000;

/// Whether Launch::a is a value that goes into the results, and nothing else.
bool is_of_values(Kernel kernel) {
  return kernel == Kernel::hash_fill || kernel == Kernel::stride_fill || kernel == Kernel::scale ||
         kernel == Kernel::bytes;
}

}  // namespace

// Objects in pairs of the same kind can take each other's place.
void Drawing::draw_twin() {
  const int id = pick({}, false, 1);
  if (id < 0 || object(id).parent >= 0) return;
  Object twin = object(id);
  twin.seed = random_.next();
  twins_.push_back({id, add_object(twin)});
}

int Drawing::add_object(const Object& made) {
  Action create = action(Kind::create);
  const int id = static_cast<int>(program_.objects.size());
  create.objects = {id};
  program_.objects.push_back(made);
  alive_.push_back(true);
  owner_.push_back(thread_);
  add(std::move(create));
  return id;
}

bool Drawing::draw_body_action(const Loop& loop) {
  const std::size_t choice = random_.below(100);
  if (choice < 8) return draw_create();
  if (choice < 12) return draw_sub_buffer();
  if (choice < 15) {
    if (!program_.sections[index(section_)].releases) return false;
    const int id = pick({});
    if (id < loop.first_object || owner_[index(root_of(id))] != thread_) return false;
    Action release = action(Kind::release);
    release.objects = {id};
    alive_[index(id)] = false;
    return add(std::move(release));
  }
  if (choice < 24) return draw_transfer(Kind::write);
  if (choice < 28) return loop.reads != Loop::Reads::never && draw_transfer(Kind::read);
  if (choice < 36) return draw_copy();
  if (choice < 43) return draw_fill();
  if (choice < 46) return loop.reads != Loop::Reads::never && draw_map();
  if (choice < 49) return draw_unmap();
  if (choice < 52) return loop.user_events && (random_.chance(50) ? draw_user_event() : draw_set_user_event());
  if (choice < 54) return draw_simple(random_.chance(50) ? Kind::barrier : Kind::marker);
  if (choice < 56) return draw_simple(Kind::flush);
  if (choice < 57) return draw_simple(random_.chance(30) ? Kind::finish : Kind::wait);
  if (choice < 62 && loop.native_kernels) return draw_native();
  return draw_launch();
}

// What the body makes must end: in the same round, one round later, or as the successor of another object.
void Drawing::draw_fates(Loop& loop) {
  const bool releases = program_.sections[index(section_)].releases;
  for (int id = loop.first_object; id != static_cast<int>(program_.objects.size()); ++id) {
    const bool goes_on = std::any_of(loop.successors.begin(), loop.successors.end(),
                                     [&](const auto& successor) { return successor.second == id; });
    if (!alive_[index(id)] || goes_on || !releases) continue;
    Action release = action(Kind::release);
    release.objects = {id};
    if (random_.chance(50)) {
      add(std::move(release));
    } else {
      loop.late.push_back(std::move(release));
    }
    alive_[index(id)] = false;
  }
}

// A new object replaces one that was there, in each round.
void Drawing::draw_successor(Loop& loop) {
  if (!program_.sections[index(section_)].releases) return;
  const int before = pick({Use::copy_source}, false, 4);
  if (before < 0 || before >= loop.first_object || object(before).parent >= 0 || loop.successors.count(before) != 0)
    return;
  if (owner_[index(before)] != thread_) return;
  Object made = object(before);
  made.seed = random_.next();
  const int after = add_object(made);
  if (kernel_reads(made) && kernel_writes(made) && random_.chance(70)) {
    Action launch = action(Kind::launch);
    launch.objects = {before, before, after};
    launch.launch.kernel = Kernel::add;
    launch.launch.end = static_cast<std::uint32_t>(made.size / 4);
    add(std::move(launch));
  } else {
    Action copy = action(Kind::copy);
    copy.objects = {before, after};
    copy.at[0] = copy.at[1] = linear_rect(0, made.size);
    add(std::move(copy));
  }
  loop.successors[before] = after;
  Action release = action(Kind::release);
  release.objects = {before};
  if (random_.chance(50)) {
    add(std::move(release));
  } else {
    loop.late.push_back(std::move(release));
  }
}

void Drawing::draw_loop_section(int section) {
  section_ = section;
  const int threads = program_.sections[index(section)].threads;
  owner_.assign(program_.objects.size(), 0);
  if (threads > 1) {
    for (int& owner : owner_) owner = static_cast<int>(random_.below(index(threads)));
  }
  for (thread_ = 0; thread_ != threads; ++thread_) {
    queues_.clear();
    if (threads == 1) {
      for (std::size_t i = 0; i != program_.queues.size(); ++i) queues_.push_back(static_cast<int>(i));
    } else {
      queues_ = {thread_};
    }
    context_ = program_.queues[index(queues_.front())].context;
    maps_.clear();
    users_.clear();
    twins_.clear();
    draw_loop();
  }
}

void Drawing::draw_some(std::size_t count, const Loop& loop) {
  for (std::size_t tries = 0; count != 0 && tries != most_tries; ++tries) {
    context_ = program_.queues[index(random_.one_of(queues_))].context;
    if (draw_body_action(loop)) --count;
  }
}

void Drawing::draw_loop() {
  // Before the loop.
  for (std::size_t i = random_.between(3, 7); i-- != 0;) {
    context_ = program_.queues[index(random_.one_of(queues_))].context;
    draw_create();
  }
  if (random_.chance(60)) draw_twin();
  for (std::size_t i = random_.below(6), tries = 0; i != 0 && tries != most_tries; ++tries) {
    context_ = program_.queues[index(random_.one_of(queues_))].context;
    if (draw_action()) --i;
  }
  Loop loop;
  loop.first_object = static_cast<int>(program_.objects.size());
  loop.user_events = random_.chance(15);
  loop.native_kernels = random_.chance(15);
  loop.release_at = random_.below(8);
  loop.reads = random_.chance(70)   ? Loop::Reads::every_round
               : random_.chance(50) ? Loop::Reads::at_times
                                    : Loop::Reads::never;
  const auto take = [&](std::size_t begin) {
    std::vector<Action> taken(program_.actions.begin() + static_cast<std::ptrdiff_t>(begin), program_.actions.end());
    program_.actions.resize(begin);
    return taken;
  };
  // The body and an evaluation. What they make is made anew in each round, so none of it is used outside.
  const std::size_t begin = program_.actions.size();
  loop.first_action = static_cast<int>(begin);
  draw_some(random_.between(3, 12), loop);
  while (random_.chance(40)) draw_successor(loop);
  if (loop.reads == Loop::Reads::every_round) {
    for (std::size_t tries = 0; tries != 20 && !draw_transfer(Kind::read); ++tries) {
    }
  }
  draw_fates(loop);
  std::vector<Action> body = take(begin);
  const int evaluation_objects = static_cast<int>(program_.objects.size());
  maps_.clear();
  users_.clear();
  Loop evaluation;
  evaluation.first_object = evaluation_objects;
  evaluation.first_action = loop.first_action;
  if (random_.chance(40)) {
    for (const auto& [before, after] : loop.successors) alive_[index(before)] = alive_[index(after)] = false;
    draw_some(random_.between(1, 5), evaluation);
    if (loop.reads != Loop::Reads::never) draw_transfer(Kind::read);
    draw_fates(evaluation);
    for (Action& late : evaluation.late) add(std::move(late));
    evaluation.late.clear();
  }
  const std::vector<Action> evaluated = take(begin);
  maps_.clear();
  users_.clear();
  repeat(loop, std::move(body), evaluation, evaluated);
}

void Drawing::repeat(const Loop& loop, std::vector<Action> body, const Loop& evaluation,
                     const std::vector<Action>& evaluated) {
  const int drawn = static_cast<int>(program_.objects.size());
  const std::size_t rounds = random_.between(4, 30);
  const std::size_t every = random_.between(2, 6);
  const unsigned diverges = random_.chance(50) ? 0 : 12;  // percent of the rounds
  std::vector<int> now(index(drawn));                     // what takes the place of each object
  std::iota(now.begin(), now.end(), 0);
  std::vector<Action> late;
  // Actions and objects of a drawing, with others in their place. What is drawn first is not done itself.
  const auto perform = [&](const Loop& from, int to, const std::vector<Action>& actions, std::vector<int>& places) {
    for (int id = from.first_object; id != to; ++id) {
      Object made = object(id);
      made.seed = random_.next();
      if (made.parent >= 0) made.parent = places[index(made.parent)];
      places[index(id)] = static_cast<int>(program_.objects.size());
      program_.objects.push_back(made);
      alive_.push_back(false);
      owner_.push_back(thread_);
    }
    const int first = static_cast<int>(program_.actions.size());
    for (Action action : actions) {
      // Now and then an object stays, and is read at the end.
      if (action.kind == Kind::release && random_.chance(3)) action.kind = Kind::flush;
      action.data = random_.next();
      if (is_of_values(action.launch.kernel)) action.launch.a = static_cast<std::uint32_t>(random_.next());
      for (int& id : action.objects) {
        if (id >= 0) id = places[index(id)];
      }
      if (action.target >= from.first_action) action.target += first - from.first_action;
      add(std::move(action));
    }
  };
  const int body_end = evaluation.first_object;
  for (std::size_t round = 0; round != rounds; ++round) {
    const std::size_t begins = program_.actions.size();
    if (round == 0) late.clear();
    std::vector<Action> released = std::exchange(late, {});
    std::vector<Action> actions = body;
    if (round >= 2 && random_.chance(diverges)) diverge(actions);
    perform(loop, body_end, actions, now);
    for (const Action& each : loop.late) {
      late.push_back(each);
      for (int& id : late.back().objects) id = now[index(id)];
    }
    // Releases of the round before, somewhere in this one, so that both rounds' objects exist for a while.
    if (!released.empty()) {
      const std::size_t at = begins + loop.release_at % (program_.actions.size() - begins + 1);
      insert_actions(at, std::move(released));
    }
    for (const auto& [before, after] : loop.successors) now[index(before)] = now[index(after)];
    for (const auto& [a, b] : twins_) {
      if (may_swap(a, b, loop)) std::swap(now[index(a)], now[index(b)]);
    }
    if (!evaluated.empty() && round % every == every - 1) {
      std::vector<int> places = now;
      perform(evaluation, drawn, evaluated, places);
    }
  }
  for (Action& release : late) add(std::move(release));
  // What is still there may be used by later sections.
  for (int id = loop.first_object; id != drawn; ++id) alive_[index(id)] = false;
  for (const auto& [before, after] : loop.successors) {
    alive_[index(before)] = false;
    alive_[index(now[index(before)])] = true;
  }
}

// Inserted actions move the targets of those behind them.
void Drawing::insert_actions(std::size_t at, std::vector<Action> actions) {
  const int count = static_cast<int>(actions.size());
  for (Action& action : program_.actions) {
    if (action.target >= static_cast<int>(at)) action.target += count;
  }
  program_.actions.insert(program_.actions.begin() + static_cast<std::ptrdiff_t>(at), actions.begin(), actions.end());
}

// Parts of them would not move along, and a command may not use a buffer and a part of it.
bool Drawing::may_swap(int a, int b, const Loop& loop) const {
  if (loop.successors.count(a) != 0 || loop.successors.count(b) != 0) return false;
  return std::none_of(program_.objects.begin(), program_.objects.end(),
                      [&](const Object& each) { return each.parent == a || each.parent == b; });
}

void Drawing::diverge(std::vector<Action>& actions) {
  std::vector<std::size_t> commands;
  for (std::size_t i = 0; i != actions.size(); ++i) {
    const Kind kind = actions[i].kind;
    if (kind == Kind::launch || kind == Kind::write || kind == Kind::fill || kind == Kind::read) commands.push_back(i);
  }
  if (commands.empty()) return;
  Action& chosen = actions[random_.one_of(commands)];
  const bool of_elements = chosen.kind == Kind::launch && chosen.launch.kernel != Kernel::to_image &&
                           chosen.launch.kernel != Kernel::from_image && chosen.launch.kernel != Kernel::reverse_local;
  switch (random_.below(4)) {
    case 0: chosen.kind = Kind::flush; return;  // a command less
    case 1:
      // A command more, at the end: actions do not move, for others name them by their place.
      if (chosen.kind != Kind::read) actions.push_back(Action(chosen));
      return;
    case 2:
      if (!of_elements) return;
      chosen.launch.end = chosen.launch.begin + (chosen.launch.end - chosen.launch.begin + 1) / 2;
      return;
    default:
      if (chosen.kind == Kind::launch && chosen.launch.kernel == Kernel::scale)
        chosen.launch.kernel = Kernel::hash_fill;
      if (chosen.kind == Kind::read || chosen.kind == Kind::write) chosen.blocking = !chosen.blocking;
  }
}

}  // namespace random_opencl
