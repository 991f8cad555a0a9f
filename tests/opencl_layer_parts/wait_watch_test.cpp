// SPDX-License-Identifier: Apache-2.0
// What waits would let go of commands that are not held back.
#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include "iterations/wait_watch.hpp"

namespace {

using swapmm::opencl::layer::WaitWatch;

const int loss = 0;
const int layer = 0;

WaitWatch::Command launch(const void* changes) { return {.changes = {changes}, .has_buffers = true}; }
WaitWatch::Command read_of(const void* read) {
  return {.changes = {}, .read = read, .host_sees = true, .has_buffers = true};
}

WaitWatch step() {
  WaitWatch watch;
  watch.called(launch(&layer));
  watch.called(launch(&loss));
  watch.called(launch(&layer));
  watch.called({});  // a marker
  watch.called(launch(&layer));
  watch.called(read_of(&loss));
  return watch;
}

}  // namespace

TEST_CASE("a wait for a value lets go what came up to the last command that changes it") {
  WaitWatch watch = step();
  CHECK(watch.operations() == 5);
  watch.let_go_for_host();
  CHECK(watch.operations() == 3);  // two launches, and the read, which was done early
  watch.let_go_for_host();         // nothing more to see
  CHECK(watch.operations() == 3);
  watch.called(read_of(&layer));
  watch.let_go_for_host();
  CHECK(watch.operations() == 2);  // both reads
  watch.let_all_go();
  CHECK(watch.operations() == 0);
}

TEST_CASE("what the host can see in another way is let go with all before it") {
  WaitWatch watch = step();
  WaitWatch::Command prints = launch(&layer);
  prints.host_sees = true;
  watch.called(prints);
  watch.called(launch(&layer));
  watch.let_go_for_host();
  CHECK(watch.operations() == 1);
}

TEST_CASE("no more commands are watched than are held back") {
  WaitWatch watch;
  for (std::size_t i = 0; i < WaitWatch::most_commands; ++i) watch.called(launch(&layer));
  CHECK(!watch.is_full());
  watch.called(launch(&layer));
  CHECK(watch.is_full());
  watch.let_half_go();
  CHECK(watch.operations() == WaitWatch::most_commands / 2 + 1);
}
