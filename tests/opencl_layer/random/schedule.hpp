// SPDX-License-Identifier: Apache-2.0
// The steps of a random program: its actions, with everything that must be done in between, what they wait for, and
// what they must find.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "memory.hpp"
#include "program.hpp"

namespace random_opencl {

struct Step {
  Action what;
  int action = -1;         // its index in the program; -1: it was inserted
  int target = -1;         // another step, see Kind
  std::vector<int> waits;  // steps whose events are in the wait list
  bool has_event = false;
  bool has_callback = false;
  bool whole_queue = false;      // a barrier or marker without a wait list
  bool by_helper = false;        // set_user_event: another thread sets it a little later
  bool may_release = false;      // no user event is pending, so objects may be released
  bool releases_events = false;  // those whose last use this is
  std::vector<int> last_uses;    // steps whose events nobody names after this one
  Contents contents;             // of the host's memory: what is written, or must be found
  Contents change;               // what the host writes into a map: bytes, and which of them
};

struct Schedule {
  std::vector<Step> steps;
  /// Bytes of the largest command's buffers, or of the largest buffer, with those of all images that are there at once.
  std::size_t need = 0;
  /// Bytes of all buffers and images that are there at once, at most, if threads run one after the other.
  std::size_t peak = 0;
};

struct ScheduleOptions {
  std::vector<bool> keep;  // of the actions; empty: all
  bool spoil = false;      // the model is wrong, so that a test can see that this is noticed
};

Schedule schedule(const Program& program, const ScheduleOptions& options);

/// One line that shows the step.
std::string text_of(const Step& step, std::size_t index, const Program& program);

void print(std::ostream& out, const Program& program, const Schedule& schedule);

}  // namespace random_opencl
