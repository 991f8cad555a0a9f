// SPDX-License-Identifier: Apache-2.0
// Ways for an OpenCL program to end: PROGRAM WAY. PROGRAM --list names them. The output and the status of each must be
// the same below the layer.

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "scene.hpp"

namespace {

using exits::say;
using exits::Scene;

const char* program = nullptr;

Scene& static_scene() {
  static Scene scene;
  return scene;
}

int main_returns() {
  Scene scene;
  say(scene.result());
  scene.work();
  return 0;
}

int static_objects() {
  say(static_scene().result());
  static_scene().work();
  return 0;
}

// It goes after all that the driver and the loader have registered for the end of the process.
struct Last {
  Scene* scene = nullptr;
  ~Last() { delete scene; }
};
Last last;

int driver_goes_first() {
  last.scene = new Scene;
  say(last.scene->result());
  last.scene->work();
  return 0;
}

int nothing_is_released() {
  auto* const scene = new Scene;
  say(scene->result());
  scene->work();
  return 0;
}

int exit_in_callback() {
  Scene& scene = *new Scene;
  cl_event read = nullptr;
  static cl_uint word = 0;
  if (clEnqueueReadBuffer(scene.queue(), scene.buffer(0), CL_FALSE, 0, sizeof word, &word, 0, nullptr, &read) != 0)
    return 97;
  const auto leave = [](cl_event, cl_int, void*) { std::exit(3); };
  if (clSetEventCallback(read, CL_COMPLETE, leave, nullptr) != CL_SUCCESS) return 96;
  clFlush(scene.queue());
  for (;;) pause();
}

int quick_exit() {
  (void)static_scene();
  std::at_quick_exit([] { say("quick"); });
  std::quick_exit(7);
}

int exit_without_cleanup() {
  (void)static_scene();
  _exit(8);
}

int ended_by_signal() {
  (void)static_scene();
  std::raise(SIGTERM);
  return 1;
}

int exception_not_caught() {
  (void)static_scene();
  throw std::runtime_error("nobody catches this");
}

// What the child did is seen by its status.
void fork_and_wait(int (*child)()) {
  const pid_t process = fork();
  if (process == 0) _exit(child());
  int status = 0;
  if (process < 0 || waitpid(process, &status, 0) != process) throw std::runtime_error("no child");
  say(WIFEXITED(status) ? "the child returned " + std::to_string(WEXITSTATUS(status))
                        : "the child ended by signal " + std::to_string(WTERMSIG(status)));
}

int fork_and_leave() {
  Scene& scene = static_scene();
  fork_and_wait([] { return 9; });
  say(scene.result());
  return 0;
}

// The child must not release what is its parent's, so it has no static objects of OpenCL.
int fork_and_exit() {
  Scene& scene = *new Scene;
  fork_and_wait([]() -> int { std::exit(10); });
  say(scene.result());
  return 0;
}

int fork_and_exec() {
  Scene& scene = static_scene();
  fork_and_wait([]() -> int {
    execl(program, program, "static_objects", nullptr);
    return 95;
  });
  say(scene.result());
  return 0;
}

int fork_before() {
  fork_and_wait([]() -> int {
    Scene scene;
    return scene.result() == "right" ? 11 : 1;
  });
  say(static_scene().result());
  return 0;
}

int thread_inside() {
  static std::atomic<int> rounds{0};
  std::thread([scene = new Scene] {
    for (;; ++rounds) scene->work();
  }).detach();
  while (rounds < 3) std::this_thread::yield();
  return 0;
}

// It waits for an event that nobody sets.
int thread_waits() {
  static std::atomic<bool> waits{false};
  std::thread([scene = new Scene] {
    cl_int status = CL_SUCCESS;
    const cl_event gate = clCreateUserEvent(scene->context(), &status);
    cl_event read = nullptr;
    static cl_uint word = 0;
    (void)clEnqueueReadBuffer(scene->queue(), scene->buffer(0), CL_FALSE, 0, sizeof word, &word, 1, &gate, &read);
    waits = true;
    (void)clWaitForEvents(1, &read);
  }).detach();
  while (!waits) std::this_thread::yield();
  return 0;
}

int command_on_hold() {
  Scene& scene = static_scene();
  cl_int status = CL_SUCCESS;
  static const cl_event gate = clCreateUserEvent(scene.context(), &status);
  const cl_uint zero = 0;
  (void)clEnqueueFillBuffer(scene.queue(), scene.buffer(1), &zero, sizeof zero, 0, 4096, 1, &gate, nullptr);
  exit_without_cleanup();
  return 0;
}

// What was queued goes on for much longer than the program.
int device_is_busy() {
  Scene& scene = *new Scene;
  say(scene.result());
  const auto wait = [](void*) { sleep(8); };
  if (clEnqueueNativeKernel(scene.queue(), wait, nullptr, 0, 0, nullptr, nullptr, 0, nullptr, nullptr) != CL_SUCCESS)
    return 94;
  clFlush(scene.queue());
  return 0;
}

// A command that ends when the program has queued others behind it.
int command_waits_for_program() {
  Scene scene;
  static std::atomic<bool> queued{false};
  const auto wait = [](void*) {
    while (!queued) usleep(1000);
  };
  if (clEnqueueNativeKernel(scene.queue(), wait, nullptr, 0, 0, nullptr, nullptr, 0, nullptr, nullptr) != CL_SUCCESS)
    return 94;
  scene.work();
  queued = true;
  say(scene.result());
  return 0;
}

struct Way {
  std::string_view name;
  int (*go)();
};
constexpr Way ways[] = {
    {"main_returns", main_returns},
    {"static_objects", static_objects},
    {"driver_goes_first", driver_goes_first},
    {"nothing_is_released", nothing_is_released},
    {"exit_in_callback", exit_in_callback},
    {"quick_exit", quick_exit},
    {"exit_without_cleanup", exit_without_cleanup},
    {"ended_by_signal", ended_by_signal},
    {"exception_not_caught", exception_not_caught},
    {"fork_and_leave", fork_and_leave},
    {"fork_and_exit", fork_and_exit},
    {"fork_and_exec", fork_and_exec},
    {"fork_before", fork_before},
    {"thread_inside", thread_inside},
    {"thread_waits", thread_waits},
    {"command_on_hold", command_on_hold},
    {"device_is_busy", device_is_busy},
    {"command_waits_for_program", command_waits_for_program},
};

}  // namespace

int main(int count, char** words) {
  const std::string_view wanted = count == 2 ? words[1] : "";
  program = words[0];
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);  // some ways end by a signal
  for (const Way& way : ways) {
    if (wanted == "--list") std::printf("%s\n", std::string(way.name).c_str());
    if (wanted == way.name) return way.go();
  }
  return wanted == "--list" ? 0 : 2;
}
