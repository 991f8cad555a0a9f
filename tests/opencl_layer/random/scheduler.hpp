// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "memory.hpp"
#include "order.hpp"
#include "random_numbers.hpp"
#include "schedule.hpp"

namespace random_opencl {

/// Makes a schedule from a program, action by action. The threads of a section come one after the other: what they do
/// is independent.
class Scheduler {
 public:
  Scheduler(const Program& program, const ScheduleOptions& options);

  void begin_section(int section);
  void begin_thread(int thread);
  void take(int number);
  void end_thread();
  void end_section();
  /// Reads everything that is still there.
  void end();
  Schedule result();

 private:
  struct OpenMap {
    int step;
    Access access;
  };
  struct UserEvent {
    int step;
    int thread;
    int context;
    bool is_set = false;  // or will be, by a helper
    bool has_helper = false;
  };

  /// A user event that will be set to an error, and what waits for it.
  struct FailingEvent {
    int step;
    int thread;
    int context;
    std::vector<int> doomed;  // commands that never run, because they wait for the event or for another of them
  };

  bool is_legal(const Action& action) const;
  Step step_for(const Action& action) const;
  int add(Step step);
  // Commands.
  void create(Step step);
  void release(Step step);
  void command(Step step);
  void synchronize(Step step);
  void renew_queue(Step step);
  int enqueue(Step step, const std::vector<Access>& accesses, Random& random);
  void add_noise(Step& step, Random& random);
  void apply(Step& step);
  // Order.
  std::vector<int> order(int queue, const std::vector<Access>& accesses, Random& random);

  void wait_for_event(std::vector<int>& waits, int event);
  void flush(int queue);
  void finish(int queue);
  void mark(int queue, bool barrier, bool has_event);
  void complete(int step, Random& random);
  // User events.
  void set_users(const StepSet& closure, Random& random);
  void set_user(UserEvent& user, bool by_helper);
  void settle_users();
  bool is_quiet() const;
  // User events that fail.
  bool doom(Step& step, Random& random);
  bool has_doomed(const FailingEvent& failing, int queue) const;
  void fail(std::size_t which);
  void settle_failures();
  void settle_failures_of(int queue);
  // Maps and reads.
  void touch(const OpenMap& map, Random& random);
  void close(std::size_t which, Random& random);
  void close_conflicting(const std::vector<Access>& accesses, Random& random);
  void check(std::size_t pending, Random& random);

  Order::Place place() const { return {phase_, thread_}; }
  /// Whether it was enqueued by a thread that runs beside this one.
  bool is_concurrent(const Node& node) const { return node.section == phase_ && node.thread != thread_; }
  bool is_parallel() const {
    return phase_ % 2 == 1 && program_.sections[static_cast<std::size_t>(phase_ / 2)].threads > 1;
  }
  const Object& object(int id) const { return program_.objects[static_cast<std::size_t>(id)]; }

  const Program& program_;
  const ScheduleOptions& options_;
  Order order_;
  Memory memory_;
  Schedule schedule_;
  int phase_ = 0;  // 2 n: before section n, in the main thread; 2 n + 1: in it
  int thread_ = 0;
  std::uint64_t inserted_ = 0;  // number of steps inserted, for their seeds
  std::vector<bool> alive_;
  std::vector<int> step_of_action_;
  std::vector<OpenMap> maps_;
  std::vector<UserEvent> users_;
  std::vector<FailingEvent> failing_;
  std::vector<int> pending_reads_;
  std::size_t image_bytes_ = 0;
  std::size_t largest_images_ = 0;
  std::size_t largest_command_ = 0;
  std::size_t live_bytes_ = 0;
  std::size_t most_live_bytes_ = 0;
};

}  // namespace random_opencl
