// SPDX-License-Identifier: Apache-2.0
#include "pictures.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <iterator>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <swapmm/formats/profile_events.hpp>
#include <swapmm/formats/profile_svg.hpp>

#include "../process/file_name.hpp"
#include "../process/settings.hpp"
#include "output_file.hpp"

namespace swapmm::opencl::layer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

/// How long the end of the process may take for what is still running.
constexpr std::chrono::seconds longest_wait{2};

struct Pictures {
  std::atomic<bool> wanted{false};
  std::mutex mutex;  // for the rest
  std::uint64_t contexts = 0;
  std::deque<Recorded> ended;  // of contexts that are gone
  std::uint64_t spans = 0;     // of these
  std::uint64_t contexts_lost = 0;
};

// Never destroyed: programs release objects while the process ends.
Pictures& pictures() {
  static Pictures& all = *new Pictures;
  return all;
}

// ---- texts

std::string count_text(std::uint64_t value) { return std::to_string(value); }

// ", the last 20 of 45 commands" if something was let go.
std::string part_of_commands(const Recorded& recorded) {
  if (recorded.commands_lost == 0) return "";
  return ", the last " + count_text(recorded.commands) + " of " +
         count_text(recorded.commands + recorded.commands_lost) + " commands";
}

std::string title_of(const Recorded& recorded) {
  return std::string(program_invocation_short_name) + " (process " + count_text(static_cast<std::uint64_t>(getpid())) +
         "), context " + count_text(recorded.context);
}

std::string trace_text(const std::vector<Recorded>& all) {
  nanoseconds origin = nanoseconds::max();
  for (const Recorded& recorded : all) origin = std::min(origin, recorded.segments.front().start);
  std::vector<Profile> profiles;
  for (const Recorded& recorded : all) {
    profiles.push_back(joined(recorded, origin));
    profiles.back().title = title_of(recorded) + part_of_commands(recorded);
  }
  std::ostringstream out;
  write_trace_events(out, profiles);
  return std::move(out).str();
}

std::string svg_text(const std::vector<Recorded>& all) {
  const auto busiest = std::max_element(all.begin(), all.end(), [](const Recorded& a, const Recorded& b) {
    return a.commands + a.commands_lost < b.commands + b.commands_lost;
  });
  Profile picture;
  if (auto iteration = typical_iteration(*busiest)) {
    picture = std::move(iteration->profile);
    picture.title = title_of(*busiest) + ", the last iteration of " + count_text(iteration->commands) +
                    (iteration->commands == 1 ? " command" : " commands");
  } else {
    picture = joined(*busiest, busiest->segments.front().start);
    picture.title = title_of(*busiest) + part_of_commands(*busiest);
  }
  std::ostringstream out;
  write_svg(out, picture);
  return std::move(out).str();
}

// ---- the end of the process

/// What is recorded of the device's contexts that exist. False if not all of it has ended, or a thread does not leave
/// the device.
bool collect_from(DeviceBudget& device, Clock::time_point until, std::vector<Recorded>& all) {
  Lock lock(device.mutex, std::try_to_lock);
  while (!lock && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::microseconds{200});
    (void)lock.try_lock();
  }
  if (!lock) return false;
  bool whole = true;
  for (Context* const context : device.contexts()) {
    Recording* const recording = context->recording();
    if (recording == nullptr) continue;
    whole = recording->finish(until) && whole;
    all.push_back(recording->take());
  }
  return whole;
}

void save(const std::string& name, const std::string& text) {
  const std::string file = file_of_process(name, static_cast<std::uint64_t>(getpid()));
  if (const std::string why = write_file(file, text); !why.empty()) say("cannot write " + file + ": " + why);
}

void write_trace(const std::vector<Recorded>& all) {
  for (const Recorded& recorded : all) {
    if (recorded.commands_lost == 0) continue;
    remark("the trace has" + part_of_commands(recorded).substr(1) + " of context " + count_text(recorded.context));
  }
  save(settings().trace_out, trace_text(all));
}

void at_exit() {
  if (!pictures().wanted.exchange(false)) return;
  try {
    std::vector<Recorded> all;
    std::uint64_t contexts_lost = 0;
    {
      const std::lock_guard lock(pictures().mutex);
      std::move(pictures().ended.begin(), pictures().ended.end(), std::back_inserter(all));
      contexts_lost = pictures().contexts_lost;
    }
    const Clock::time_point until = Clock::now() + longest_wait;
    bool whole = true;
    for (DeviceBudget* const device : DeviceBudget::all()) whole = collect_from(*device, until, all) && whole;
    std::erase_if(all, [](const Recorded& recorded) { return recorded.segments.empty(); });
    std::sort(all.begin(), all.end(), [](const Recorded& a, const Recorded& b) { return a.context < b.context; });
    if (!whole) {
      say(std::string(all.empty() ? "there is no picture" : "the end is missing in the picture") +
          ": the device was still busy 2 s after the program's end");
    }
    if (contexts_lost != 0)
      remark("the trace lacks " + count_text(contexts_lost) + " contexts that were released early");
    if (!all.empty() && !settings().trace_out.empty()) write_trace(all);
    if (!all.empty() && !settings().svg.empty()) save(settings().svg, svg_text(all));
    if (all.empty() && whole) remark("there is no picture: no command used a buffer");
  } catch (const std::exception& error) {
    say(std::string("there is no picture: ") + error.what());
  }
}

}  // namespace

void start_pictures() {
  if (settings().trace_out.empty() && settings().svg.empty()) return;
  pictures().wanted = true;
  // The child of a fork() has what its parent recorded.
  (void)pthread_atfork(nullptr, nullptr, [] { pictures().wanted = false; });
  (void)std::atexit(at_exit);
}

std::unique_ptr<Recording> record_context(Core& core, const Iterations& iterations) {
  if (!pictures().wanted.load(std::memory_order_relaxed)) return nullptr;
  std::uint64_t context = 0;
  {
    const std::lock_guard lock(pictures().mutex);
    context = ++pictures().contexts;
  }
  // It asks the driver for times, so it comes before what the driver has registered so far.
  if (context == 1) (void)std::atexit(at_exit);
  try {
    return std::make_unique<Recording>(core, iterations, context);
  } catch (const std::exception&) {
    return nullptr;  // no memory
  }
}

void keep_recording(Recording& recording) {
  if (!pictures().wanted.load(std::memory_order_relaxed)) return;
  recording.pause();
  Recorded recorded = recording.take();
  if (recorded.segments.empty()) return;
  Pictures& all = pictures();
  const std::lock_guard lock(all.mutex);
  all.spans += recorded.spans;
  all.ended.push_back(std::move(recorded));
  while (all.ended.size() > 1 && all.spans - all.ended.front().spans >= settings().trace_length) {
    all.spans -= all.ended.front().spans;
    all.ended.pop_front();
    ++all.contexts_lost;
  }
}

}  // namespace swapmm::opencl::layer
