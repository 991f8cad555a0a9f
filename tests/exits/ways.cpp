// SPDX-License-Identifier: Apache-2.0
#include "exits/ways.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include <swapmm/backend/testing/faulty.hpp>

#include "exits/scene.hpp"
#include "exits/watchdog.hpp"

namespace swapmm::test {
namespace {

using DeviceTensor = Tensor<int, stage::Device>;

/// Made before all else that ends with the process, it goes last, and says what the others left.
class Observer {
 public:
  Observer() { (void)stage::left_over(); }  // what that asks is made first, and goes after this
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  ~Observer() {
    const std::string left = stage::left_over();
    if (getpid() == process_) {
      say(left.empty() ? "nothing is left" : left);
    } else {
      say(left.empty() || !stage::child_has_device ? "the child ends" : "the child: " + left);
    }
  }

 private:
  pid_t process_ = getpid();
};
void observe_end() { static const Observer observer; }

DeviceScene& static_scene() {
  static DeviceScene scene = started_scene();
  return scene;
}

// ---- main() returns

int main_returns() {
  observe_end();
  const DeviceScene scene = started_scene();
  announce_leaving();
  return 0;
}

int static_manager() {
  observe_end();
  (void)static_scene();
  announce_leaving();
  return 0;
}

int static_tensors_last() {
  observe_end();
  static std::vector<DeviceTensor> tensors;
  DeviceScene& scene = static_scene();
  tensors = std::move(scene.tensors);
  announce_leaving();
  return 0;
}

// What a driver does at the end of a process, it registered later than this manager.
int driver_first() {
  observe_end();
  static std::optional<DeviceScene> scene;
  static std::optional<stage::Device> device;
  device.emplace(stage::make_device());
  scene.emplace(*device);
  scene->start();
  std::atexit(stage::end_driver);
  announce_leaving();
  return 0;
}

int thread_local_manager() {
  observe_end();
  const auto make = [] {
    static thread_local DeviceScene scene = started_scene();
    say(scene.right() ? "right" : "wrong");
    scene.start();
  };
  make();
  std::thread other(make);
  other.join();
  announce_leaving();
  return 0;
}

// ---- exit(), and what is like it

int exit_in_iteration() {
  observe_end();
  DeviceScene& scene = static_scene();
  const auto iteration = scene.manager.iteration("work");
  scene.set(0, 1);
  announce_leaving();
  std::exit(3);
}

int exit_in_callable() {
  observe_end();
  DeviceScene& scene = static_scene();
  scene.manager.run("leave", writes(scene.tensors[0]), [&](auto& op) {
    stage::queue_set(op, scene.tensors[0], 1);
    announce_leaving();
    std::exit(3);
  });
  return 1;
}

int quick_exit() {
  (void)static_scene();
  std::at_quick_exit([] { say("quick"); });
  announce_leaving();
  std::quick_exit(7);
}

int exit_without_cleanup() {
  (void)static_scene();
  announce_leaving();
  _exit(8);
}

int terminated_in_swap() {
  DeviceScene& scene = static_scene();
  scene.manager.run("leave", reads(scene.tensors[0]), [&](auto&) {
    announce_leaving();
    std::raise(SIGTERM);
  });
  return 1;
}

// ---- exceptions

int exception_caught() {
  observe_end();
  try {
    DeviceScene scene = started_scene();
    const auto iteration = scene.manager.iteration("work");
    scene.manager.run("throw", writes(scene.tensors[0]), [&](auto& op) {
      stage::queue_set(op, scene.tensors[0], 1);
      announce_leaving();
      throw std::runtime_error("thrown by a callable");
    });
  } catch (const std::runtime_error& error) {
    say(error.what());
    return 4;
  }
  return 0;
}

int exception_not_caught() {
  const DeviceScene scene = started_scene();
  announce_leaving();
  throw std::runtime_error("nobody catches this");
}

int terminate_handler_exits() {
  observe_end();
  (void)static_scene();
  std::set_terminate([] {
    say("terminate");
    std::exit(5);
  });
  announce_leaving();
  std::terminate();
}

// ---- threads

// The manager's end waits for the thread that is inside; what the thread still has of it says that it is gone.
int exit_while_a_thread_is_inside() {
  observe_end();
  static std::atomic<bool> inside{false};
  static std::atomic<bool> refused{false};
  static const struct Last {
    ~Last() {
      while (!refused) std::this_thread::yield();
      say("refused");
    }
  } behind_the_manager;
  static DeviceScene scene = started_scene();
  std::thread([own = std::move(scene.tensors.back())]() mutable {
    scene.manager.run("long", updates(own), [&](auto& op) {
      inside = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      stage::queue_set(op, own, 1);
    });
    while (!refused) {
      try {
        (void)own.download();
      } catch (const ConcurrentUse&) {  // the manager is about to end
      } catch (const UsageError&) {
        refused = true;
      }
    }
    for (;;) pause();
  }).detach();
  while (!inside) std::this_thread::yield();
  announce_leaving();
  return 0;
}

// Its manager is never destroyed: the thread runs for as long as the process does.
int detached_thread() {
  auto& scene = *new DeviceScene(stage::make_device());
  scene.start();
  static std::atomic<int> rounds{0};
  std::thread([&scene] {
    try {
      for (;; ++rounds) scene.iterate(rounds);
    } catch (const DeviceLost&) {  // the process has ended for a driver
      for (;;) pause();
    }
  }).detach();
  while (rounds < 3) std::this_thread::yield();
  announce_leaving();
  return 0;
}

SchedulerOptions deferred() {
  SchedulerOptions options;
  options.planning = Planning::deferred;
  return options;
}

int planning_job_is_left() {
  observe_end();
  static std::optional<PlanningJob> never_run;
  DeviceScene scene(stage::make_device(), deferred());
  scene.start();
  never_run = scene.scheduler.planning_job();
  say(never_run ? "a job" : "no job");
  announce_leaving();
  return 0;
}

int planning_outlives_the_manager() {
  observe_end();
  std::optional<DeviceScene> scene(std::in_place, stage::make_device(), deferred());
  scene->start();
  std::optional<PlanningJob> job = scene->scheduler.planning_job();
  say(job ? "a job" : "no job");
  std::atomic<bool> gone{false};
  std::thread other([&] {
    while (!gone) std::this_thread::yield();
    job->run();
    say("planned");
  });
  announce_leaving();
  scene.reset();
  gone = true;
  other.join();
  return 0;
}

// ---- fork()

// What the child did is seen by its status.
void fork_and_wait(int (*child)()) {
  const pid_t process = fork();
  if (process == 0) _exit(child());
  int status = 0;
  if (process < 0 || waitpid(process, &status, 0) != process) throw std::runtime_error("no child");
  say(WIFEXITED(status) ? "the child returned " + std::to_string(WEXITSTATUS(status))
                        : "the child ended by signal " + std::to_string(WTERMSIG(status)));
}

int fork_and_leave_alone() {
  observe_end();
  DeviceScene& scene = static_scene();
  announce_leaving();
  fork_and_wait([] { return 9; });
  say(scene.right() ? "right" : "wrong");
  return 0;
}

int fork_and_destroy() {
  observe_end();
  DeviceScene& scene = static_scene();
  announce_leaving();
  fork_and_wait([]() -> int { std::exit(10); });
  say(scene.right() ? "right" : "wrong");
  return 0;
}

int fork_and_use() {
  observe_end();
  DeviceScene& scene = static_scene();
  announce_leaving();
  fork_and_wait([] {
    try {
      return static_scene().right() ? 11 : 1;
    } catch (const DeviceLost&) {
      return 12;
    }
  });
  say(scene.right() ? "right" : "wrong");
  return 0;
}

// ---- libraries

void* load_plugin() {
  void* const plugin = dlopen(SWAPMM_EXITS_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) throw std::runtime_error(dlerror());
  const auto start = reinterpret_cast<int (*)()>(dlsym(plugin, "start"));
  say(start != nullptr && start() == 0 ? "the plugin works" : "the plugin does not work");
  return plugin;
}

int plugin_is_unloaded() {
  void* const plugin = load_plugin();
  announce_leaving();
  if (dlclose(plugin) != 0) throw std::runtime_error(dlerror());
  return 0;
}

int plugin_stays() {
  (void)load_plugin();
  announce_leaving();
  return 0;
}

// ---- values on their way, and a device that is gone

int download_is_pending() {
  observe_end();
  static std::vector<int> target(stage::elements);
  static const struct Judge {
    ~Judge() {
      say(std::all_of(target.begin(), target.end(), [](int element) { return element == 45; }) ? "the value came"
                                                                                               : "no value came");
    }
  } judge_behind_the_manager;
  static std::optional<PendingDownload<stage::Device>> pending;
  DeviceScene& scene = static_scene();
  pending.emplace(scene.tensors.back().download_async(target));
  announce_leaving();
  return 0;
}

int device_is_lost() {
  observe_end();
  using Lossy = Faulty<stage::Device>;
  Lossy device(stage::make_device());
  static std::optional<Scene<Lossy>> scene;
  scene.emplace(device);
  scene->start();
  device.restart({FaultClass::copy_to_device, FaultMode::device_lost, 1});
  try {
    scene->iterate(50);
  } catch (const DeviceLost&) {
    say("lost");
  }
  announce_leaving();
  return 0;
}

const std::string nothing_left = "nothing is left";

}  // namespace

std::span<const Way> ways() {
  static const std::vector<Way> all{
      {"main_returns", main_returns, 0, 0, {nothing_left}},
      {"static_manager", static_manager, 0, 0, {nothing_left}},
      {"static_tensors_last", static_tensors_last, 0, 0, {nothing_left}},
      {"driver_first", driver_first, 0, 0, {nothing_left}},
      {"thread_local_manager", thread_local_manager, 0, 0, {"right", "right", nothing_left}},
      {"exit_in_iteration", exit_in_iteration, 3, 0, {nothing_left}},
      {"exit_in_callable", exit_in_callable, 3, 0, {nothing_left}},
      {"quick_exit", quick_exit, 7, 0, {"quick"}},
      {"exit_without_cleanup", exit_without_cleanup, 8, 0, {}},
      {"terminated_in_swap", terminated_in_swap, -1, SIGTERM, {}},
      {"exception_caught", exception_caught, 4, 0, {"thrown by a callable", nothing_left}},
      {"exception_not_caught", exception_not_caught, -1, SIGABRT, {}},
      {"terminate_handler_exits", terminate_handler_exits, 5, 0, {"terminate", nothing_left}},
      {"exit_while_a_thread_is_inside", exit_while_a_thread_is_inside, 0, 0, {"refused", nothing_left}},
      {"detached_thread", detached_thread, 0, 0, {}},
      {"planning_job_is_left", planning_job_is_left, 0, 0, {"a job", nothing_left}},
      {"planning_outlives_the_manager", planning_outlives_the_manager, 0, 0, {"a job", "planned", nothing_left}},
      {"fork_and_leave_alone", fork_and_leave_alone, 0, 0, {"the child returned 9", "right", nothing_left}},
      {"fork_and_destroy", fork_and_destroy, 0, 0, {"the child ends", "the child returned 10", "right", nothing_left}},
      {"fork_and_use",
       fork_and_use,
       0,
       0,
       {stage::child_has_device ? "the child returned 11" : "the child returned 12", "right", nothing_left}},
      {"plugin_is_unloaded", plugin_is_unloaded, 0, 0, {"the plugin works", "the plugin ends"}},
      {"plugin_stays", plugin_stays, 0, 0, {"the plugin works", "the plugin ends"}},
      {"download_is_pending", download_is_pending, 0, 0, {"the value came", nothing_left}},
      {"device_is_lost", device_is_lost, 0, 0, {"lost", nothing_left}},
  };
  return all;
}

}  // namespace swapmm::test
