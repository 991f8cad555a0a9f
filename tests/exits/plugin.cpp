// SPDX-License-Identifier: Apache-2.0
// A library that a program loads and unloads, with a manager that goes with it.

#include <string>

#include "exits/scene.hpp"
#include "exits/watchdog.hpp"

namespace {

using namespace swapmm::test;

struct Plugin {
  DeviceScene scene = started_scene();
  Plugin() = default;
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  ~Plugin() { say(scene.right() ? "the plugin ends" : "the plugin has lost its values"); }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) int start() {
  static Plugin plugin;
  return plugin.scene.right() ? 0 : 1;
}
