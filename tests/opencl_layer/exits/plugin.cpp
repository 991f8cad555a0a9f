// SPDX-License-Identifier: Apache-2.0
// A library that uses OpenCL, for a program that does not.

#include "scene.hpp"

extern "C" __attribute__((visibility("default"))) int start() {
  static exits::Scene scene;
  exits::say(scene.result());
  scene.work();
  return 0;
}
