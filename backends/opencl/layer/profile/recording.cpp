// SPDX-License-Identifier: Apache-2.0
#include "recording.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <thread>
#include <utility>

#include "../process/settings.hpp"

namespace swapmm::opencl::layer {
namespace {

using Clock = std::chrono::steady_clock;

// Failures of earlier commands come up in between, of which the commands' events tell the program.
constexpr int attempts = 10;
constexpr std::chrono::seconds most_patience{60};

// Commands and copies of a segment.
std::uint64_t segment_length() { return std::max<std::uint64_t>(settings().trace_length / 8, 1); }

std::uint64_t work_of(const Report& counts) { return counts.operations + counts.swap_ins + counts.swap_outs; }

/// Whether everything that was given to the device ends before `until`. Never waits for longer, whatever the device
/// does: the runtime's own waits have no end.
bool all_ends(Backend& backend, Clock::time_point until) {
  std::array<Backend::Event, base_queue_count> ends{backend.make_event(), backend.make_event(), backend.make_event()};
  try {
    for (const QueueKind queue : runtime::base_queues) {
      backend.record(queue, ends.at(index(queue)));
      backend.flush(queue);
    }
    std::chrono::microseconds pause{20};
    for (const Backend::Event& end : ends) {
      while (backend.status(end) == EventStatus::running) {
        if (Clock::now() >= until) return false;
        std::this_thread::sleep_for(pause);
        pause = std::min<std::chrono::microseconds>(2 * pause, std::chrono::milliseconds{1});
      }
    }
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

// More than the budget is never taken. By the driver's times, what is freed and what is taken next may overlap a
// little.
void limit_levels(Profile& profile) {
  for (ProfileLevel& level : profile.levels) level.used = std::min(level.used, profile.device_budget);
}

// stop_profile() ends the profile also if it throws.
void give_up(Core& core) {
  try {
    (void)core.stop_profile();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): nobody wants it
  }
}

}  // namespace

Recording::Recording(Core& core, const Iterations& iterations, std::uint64_t context)
    : core_(core), iterations_(iterations) {
  recorded_.context = context;
  begin();
}

std::uint64_t Recording::commands() {
  core_.count(counts_);
  return counts_.operations;
}

void Recording::begin() {
  for (int attempt = 0; !core_.profiling(); ++attempt) {
    try {
      core_.start_profile();
    } catch (const std::exception& error) {
      if (attempt < attempts) continue;
      ended_ = true;
      say(std::string("what runs on the device is not recorded any more: ") + error.what());
      return;
    }
  }
  start_ = Clock::now().time_since_epoch();
  // What runs before the device has noted this time would have none.
  (void)all_ends(core_.backend(), Clock::now() + std::chrono::milliseconds{100});
  commands_before_ = commands();
  work_before_ = work_of(counts_);
  next_cut_ = work_before_ + segment_length();
  iterations_before_ = last_noted_ = iterations_.ended();
  whole_.clear();
  begins_inside_ = iterations_.inside();
  on_ = true;
}

void Recording::command_done() noexcept {
  if (!on_) return;
  try {
    note_iteration();
    (void)commands();
    const std::uint64_t work = work_of(counts_);
    if (work < next_cut_) return;
    // Better between two iterations, so that a picture of one has no gap.
    if (iterations_.inside() && work < work_before_ + 2 * segment_length()) return;
    if (all_ends(core_.backend(), Clock::now() + patience_)) return cut();
    // A command may wait for what the program does next, or the device has much to do: later, and for longer.
    next_cut_ = work + (work - work_before_);
    patience_ = std::min<std::chrono::milliseconds>(2 * patience_, most_patience);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the next command tries again
  }
}

// If an iteration has ended by itself with the last command.
void Recording::note_iteration() {
  if (iterations_.last_whole() <= last_noted_) return;
  last_noted_ = iterations_.last_whole();
  const auto index = static_cast<std::size_t>(last_noted_ - iterations_before_ - 1);
  if (index != 0 || !begins_inside_) whole_.push_back({index, iterations_.last_length()});
}

void Recording::cut() {
  pause();
  go_on();
}

void Recording::pause() noexcept {
  if (!on_) return;
  on_ = false;
  try {
    Segment segment;
    bool stopped = false;
    for (int attempt = 0; attempt < attempts && core_.profiling(); ++attempt) {
      try {
        core_.synchronize();  // if this fails, the profile goes on
        segment.profile = core_.stop_profile();
        stopped = true;
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): see attempts
      }
    }
    if (core_.profiling()) give_up(core_);
    segment.start = start_;
    segment.commands = commands() - commands_before_;
    if (!stopped) {
      recorded_.commands_lost += segment.commands;
      return;
    }
    limit_levels(segment.profile);
    segment.iterations = std::exchange(whole_, {});
    if (segment.commands != 0) add_segment(recorded_, std::move(segment), settings().trace_length);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory, and no segment
  }
}

void Recording::go_on() noexcept {
  if (on_ || ended_) return;
  try {
    begin();
  } catch (const std::exception&) {
    ended_ = true;
  }
}

bool Recording::finish(Clock::time_point until) noexcept {
  if (!on_) return true;
  if (all_ends(core_.backend(), until)) {
    pause();
    return true;
  }
  on_ = false;
  try {
    recorded_.commands_lost += commands() - commands_before_;
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the runtime is closed
  }
  return false;
}

Recorded Recording::take() noexcept {
  on_ = false;
  ended_ = true;
  return std::exchange(recorded_, {});
}

}  // namespace swapmm::opencl::layer
