// SPDX-License-Identifier: Apache-2.0
// What happens before what: by queues, events and waits of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels.hpp"
#include "program.hpp"

namespace random_opencl {

/// A set of steps.
class StepSet {
 public:
  bool contains(int step) const;
  void insert(int step);
  void insert(const StepSet& other);

 private:
  std::vector<std::uint64_t> words_;
};

constexpr int max_threads = 4;

/// A command or user event, by the index of its step.
struct Node {
  int step = -1;
  int queue = -1;  // -1: a user event
  int generation = 0;
  int position = 0;  // in its queue
  int context = 0;
  int section = 0;
  int thread = 0;
  bool has_event = false;
  StepSet before;  // all that is complete before this begins
};

class Order {
 public:
  explicit Order(const Program& program);

  struct Place {
    int section = 0;
    int thread = 0;
  };
  /// Steps that `step` would follow on this queue if it waited for these.
  StepSet before(int queue, const std::vector<int>& waits, int thread) const;
  void add_command(int step, int queue, const std::vector<int>& waits, bool has_event, Place place);
  void add_user_event(int step, int context, Place place);
  /// A barrier or marker without a wait list: all that was enqueued is before it.
  void add_all_before(int step, int queue, bool is_barrier, bool has_event, Place place);
  /// A barrier with a wait list. Later commands of the queue follow it.
  void add_barrier(int step, int queue, const std::vector<int>& waits, bool has_event, Place place);
  /// The queue is another one from now on.
  void renew(int queue);

  void add_access(int step, const Access& access);
  /// Earlier steps that must be complete before these accesses, and that `known` does not contain.
  std::vector<int> conflicts(const std::vector<Access>& accesses, const StepSet& known) const;
  bool do_conflict(const Access& x, const Access& y) const;

  /// The command that has an event and tells of the end of `step`, one that this thread may wait for; -1: none.
  int event_for(int step, Place place, std::uint64_t choice) const;
  const Node& node(int step) const;
  bool is_flushed(int step) const;
  void flush(int queue);
  /// Everything in the queue, and what is before it.
  StepSet all_of(int queue) const;
  bool has_unknown_commands(int queue, int thread) const;

  const StepSet& done(int thread) const { return done_[static_cast<std::size_t>(thread)]; }
  /// The host has waited for them, and so for all before them.
  void set_done(int thread, const StepSet& steps) { done_[static_cast<std::size_t>(thread)].insert(steps); }
  StepSet with_before(int step) const;
  /// All threads know what any knows.
  void join_threads();

  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  struct QueueState {
    std::vector<int> steps;  // since it was made
    int barrier = -1;
    int generation = 0;
    int flushed = 0;
  };
  struct Recorded {
    int step;
    Access access;
  };
  struct Root {
    int object;
    std::size_t begin;
    std::size_t end;
  };
  Root whole(int object) const;
  void add(Node node);

  const Program& program_;
  std::vector<QueueState> queues_;
  std::vector<Node> nodes_;
  std::vector<int> node_of_step_;
  std::vector<Recorded> accesses_;
  std::vector<StepSet> done_;
};

}  // namespace random_opencl
