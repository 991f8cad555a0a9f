// SPDX-License-Identifier: Apache-2.0
#include "draw.hpp"

#include <algorithm>
#include <utility>

namespace random_opencl {
namespace {

constexpr std::size_t most_objects = 24;

}  // namespace

Drawing::Drawing(std::uint64_t seed, const DrawOptions& options) : options_(options), random_(seed * 2 + 1) {
  program_.seed = seed;
}

void Drawing::draw_queues(std::size_t count) {
  const std::size_t queues = std::max(count, index(program_.contexts));
  for (std::size_t i = 0; i != queues; ++i) {
    Queue queue;
    queue.context = static_cast<int>(i) % program_.contexts;
    if (random_.chance(50)) queue.properties |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    if (random_.chance(30)) queue.properties |= CL_QUEUE_PROFILING_ENABLE;
    program_.queues.push_back(queue);
  }
}

int Drawing::add_section() {
  const std::size_t queues = program_.queues.size();
  Section section;
  if (queues > 1 && random_.chance(40))
    section.threads = static_cast<int>(random_.between(2, std::min<std::size_t>(queues, 3)));
  section.releases = section.threads == 1 || random_.chance(50);
  program_.sections.push_back(section);
  return static_cast<int>(program_.sections.size()) - 1;
}

Program Drawing::draw() {
  if (options_.loops) {
    program_.contexts = random_.chance(10) ? 2 : 1;
    draw_queues(random_.chance(60) ? 1 : random_.between(1, 3));
    const std::size_t sections = random_.chance(80) ? 1 : 2;
    for (std::size_t i = 0; i != sections; ++i) draw_loop_section(add_section());
    return std::move(program_);
  }
  program_.contexts = random_.chance(25) ? 2 : 1;
  draw_queues(random_.between(1, 4));
  const std::size_t sections = random_.between(1, 3);
  for (std::size_t i = 0; i != sections; ++i) draw_section(add_section());
  return std::move(program_);
}

void Drawing::draw_section(int section) {
  section_ = section;
  const int threads = program_.sections[index(section)].threads;
  owner_.assign(program_.objects.size(), 0);
  if (threads > 1) {
    for (int& owner : owner_) owner = static_cast<int>(random_.below(index(threads) + 1)) - 1;
  }
  const std::size_t most = options_.large ? 24 : 36;
  for (thread_ = 0; thread_ != threads; ++thread_) {
    if (threads == 1) {
      queues_.clear();
      for (std::size_t i = 0; i != program_.queues.size(); ++i) queues_.push_back(static_cast<int>(i));
    } else {
      queues_ = {thread_};
      context_ = program_.queues[index(thread_)].context;
    }
    std::size_t left = random_.between(4, most / index(threads));
    if (section == 0) {
      for (std::size_t i = random_.between(2, 6); i-- != 0;) {
        context_ = program_.queues[index(random_.one_of(queues_))].context;
        draw_create();
      }
    }
    for (std::size_t tries = 0; left != 0 && tries != 1000; ++tries) {
      context_ = program_.queues[index(random_.one_of(queues_))].context;
      if (draw_action()) --left;
    }
    if (threads > 1) {
      maps_.clear();
      users_.clear();
    }
  }
}

bool Drawing::draw_action() {
  const std::size_t choice = random_.below(100);
  if (choice < 4) return draw_create();
  if (choice < 9) return draw_sub_buffer();
  if (choice < 12) return draw_release();
  if (choice < 23) return draw_transfer(Kind::write);
  if (choice < 34) return draw_transfer(Kind::read);
  if (choice < 43) return draw_copy();
  if (choice < 48) return draw_fill();
  if (choice < 56) return draw_map();
  if (choice < 60) return draw_unmap();
  if (choice < 63) return draw_user_event();
  if (choice < 66) return draw_set_user_event();
  if (choice < 68) return draw_simple(Kind::barrier);
  if (choice < 70) return draw_simple(Kind::marker);
  if (choice < 71) return draw_simple(Kind::finish);
  if (choice < 73) return draw_simple(Kind::flush);
  if (choice < 74) return draw_simple(Kind::wait);
  if (choice < 75) return draw_simple(Kind::new_queue);
  if (choice < 78) return draw_native();
  return draw_launch();
}

Action Drawing::action(Kind kind) {
  Action action;
  action.kind = kind;
  action.section = section_;
  action.thread = thread_;
  action.seed = random_.next();
  std::vector<int> queues;
  for (const int queue : queues_) {
    if (program_.queues[index(queue)].context == context_) queues.push_back(queue);
  }
  action.queue = random_.one_of(queues);
  return action;
}

bool Drawing::add(Action action) {
  program_.actions.push_back(std::move(action));
  return true;
}

int Drawing::root_of(int id) const { return object(id).parent >= 0 ? object(id).parent : id; }

bool Drawing::may(int id, Use use) const {
  const Object& that = object(id);
  const bool own = owner_[index(root_of(id))] == thread_;
  switch (use) {
    case Use::reads: return kernel_reads(that);
    case Use::writes: return own && kernel_writes(that);
    case Use::host_reads: return host_reads(that);
    case Use::host_writes: return own && host_writes(that);
    case Use::copy_source: return true;
    case Use::copy_target: return own;
  }
  return false;
}

int Drawing::pick(const std::vector<Use>& uses, bool image, std::size_t least) {
  std::vector<int> all;
  for (int id = 0; id != static_cast<int>(alive_.size()); ++id) {
    const Object& that = object(id);
    const int owner = owner_[index(root_of(id))];
    if (!alive_[index(id)] || that.context != context_ || is_image(that) != image || that.size < least) continue;
    if (owner != thread_ && owner != -1) continue;
    if (std::all_of(uses.begin(), uses.end(), [&](Use use) { return may(id, use); })) all.push_back(id);
  }
  return all.empty() ? -1 : random_.one_of(all);
}

// Objects
// ---------------------------------------------------------------------------------------------------------------

std::size_t Drawing::draw_size() {
  if (random_.chance(15)) return random_.between(1, 40);
  const std::size_t unit = options_.large ? 65536 : 512;
  const std::size_t size = random_.between(1, 8) * unit;
  return random_.chance(40) ? size - random_.below(unit) : size;
}

bool Drawing::draw_create() {
  if (program_.objects.size() == most_objects) return false;
  Object object;
  object.context = context_;
  object.seed = random_.next();
  if (options_.images && random_.chance(12)) {
    object.width = random_.between(1, options_.large ? 64 : 20);
    object.height = random_.between(1, options_.large ? 64 : 20);
    object.size = object.width * object.height * 16;
    object.flags = CL_MEM_READ_WRITE;
    if (random_.chance(50)) object.flags |= CL_MEM_COPY_HOST_PTR;
  } else if (options_.shared_memory && random_.chance(7)) {
    object.size = draw_size();
    object.flags = CL_MEM_READ_WRITE;
    object.shared = true;
  } else {
    object.size = draw_size();
    const std::size_t host_pointer = random_.below(10);
    if (host_pointer < 2) object.flags |= CL_MEM_USE_HOST_PTR;
    if (host_pointer >= 2 && host_pointer < 5) object.flags |= CL_MEM_COPY_HOST_PTR;
    if (host_pointer >= 4 && host_pointer < 6) object.flags |= CL_MEM_ALLOC_HOST_PTR;
    const std::size_t access = random_.below(20);
    if (access < 5) object.flags |= CL_MEM_READ_WRITE;
    if (access == 5) object.flags |= CL_MEM_WRITE_ONLY;
    if (access == 6 || access == 7) object.flags |= CL_MEM_READ_ONLY;
    const std::size_t host = random_.below(30);
    if (host == 0) object.flags |= CL_MEM_HOST_NO_ACCESS;
    if (host == 1) object.flags |= CL_MEM_HOST_WRITE_ONLY;
    if (host == 2) object.flags |= CL_MEM_HOST_READ_ONLY;
  }
  object.given_flags = object.flags;
  Action create = action(Kind::create);
  create.objects = {static_cast<int>(program_.objects.size())};
  program_.objects.push_back(object);
  alive_.push_back(true);
  owner_.push_back(thread_);
  return add(std::move(create));
}

bool Drawing::draw_sub_buffer() {
  if (program_.objects.size() == most_objects) return false;
  const int parent = pick({}, false, sub_buffer_alignment);
  if (parent < 0 || object(parent).parent >= 0 || object(parent).shared || owner_[index(parent)] != thread_)
    return false;
  const Object& whole = object(parent);
  Object sub = whole;
  sub.parent = parent;
  sub.origin = random_.below((whole.size + sub_buffer_alignment - 1) / sub_buffer_alignment) * sub_buffer_alignment;
  const std::size_t most = whole.size - sub.origin;
  sub.size = random_.chance(40) ? most : random_.between(1, most);
  sub.given_flags = 0;
  constexpr cl_mem_flags access = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
  if (kernel_reads(whole) && kernel_writes(whole) && random_.chance(30)) {
    sub.given_flags = random_.chance(70) ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE;
    sub.flags = (sub.flags & ~access) | sub.given_flags;
  }
  Action create = action(Kind::create);
  create.objects = {static_cast<int>(program_.objects.size())};
  program_.objects.push_back(sub);
  alive_.push_back(true);
  owner_.push_back(thread_);
  return add(std::move(create));
}

bool Drawing::draw_release() {
  if (!program_.sections[index(section_)].releases) return false;
  const int id = pick({}, random_.chance(10));
  if (id < 0 || owner_[index(root_of(id))] != thread_) return false;
  Action release = action(Kind::release);
  release.objects = {id};
  alive_[index(id)] = false;
  return add(std::move(release));
}

// Order
// -----------------------------------------------------------------------------------------------------------------

bool Drawing::draw_user_event() {
  const Section& section = program_.sections[index(section_)];
  if (section.threads > 1 && section.releases) return false;
  users_.push_back(static_cast<int>(program_.actions.size()));
  Action made = action(Kind::user_event);
  made.fails = options_.failures && random_.chance(50);
  return add(std::move(made));
}

bool Drawing::draw_set_user_event() {
  if (users_.empty()) return false;
  const std::size_t which = random_.below(users_.size());
  Action set = action(Kind::set_user_event);
  set.target = users_[which];
  users_.erase(users_.begin() + static_cast<std::ptrdiff_t>(which));
  return add(std::move(set));
}

bool Drawing::draw_simple(Kind kind) {
  if (kind == Kind::new_queue && !program_.sections[index(section_)].releases) return false;
  return add(action(kind));
}

Program draw_program(std::uint64_t seed, const DrawOptions& options) { return Drawing(seed, options).draw(); }

}  // namespace random_opencl
