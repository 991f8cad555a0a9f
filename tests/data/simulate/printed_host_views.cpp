// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Random program of seed 2968.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/backend/testing/simulated/pattern.hpp>
#include <swapmm/swapmm.hpp>

using namespace swapmm;

namespace {

using Device = simulated::Backend;
using Manager = MemoryManager<Device>;
using Handle = std::optional<Tensor<std::byte, Device>>;
using simulated::Touch;
using std::chrono::nanoseconds;

bool held = true;

[[maybe_unused]] void fail(const std::string& what) {
  std::cout << what << "\n";
  held = false;
}

/// So many bytes of a pattern that says whose they are, and of which version.
struct Piece {
  std::size_t bytes;
  std::uint64_t whose;
  std::uint64_t version;
};
using Pieces = std::initializer_list<Piece>;

/// Version 0 is zeros.
[[maybe_unused]] void fill(std::span<std::byte> bytes, Pieces pieces) {
  for (const Piece& piece : pieces) {
    for (std::byte& byte : bytes.first(piece.bytes)) byte = std::byte{0};
    if (piece.version != 0) simulated::fill(bytes.first(piece.bytes), piece.whose, piece.version);
    bytes = bytes.subspan(piece.bytes);
  }
}

[[maybe_unused]] std::vector<std::byte> value(Pieces pieces) {
  std::size_t size = 0;
  for (const Piece& piece : pieces) size += piece.bytes;
  std::vector<std::byte> bytes(size);
  fill(bytes, pieces);
  return bytes;
}

simulated::Finding check(std::span<const std::byte> bytes, const Piece& piece) {
  if (piece.version != 0) return simulated::check(bytes, piece.whose, piece.version);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != std::byte{0}) return {simulated::Found::foreign, i, 0};
  }
  return {};
}

[[maybe_unused]] void expect(const std::string& reader, std::span<const std::byte> bytes, Pieces pieces) {
  for (const Piece& piece : pieces) {
    const simulated::Finding finding = check(bytes.first(piece.bytes), piece);
    bytes = bytes.subspan(piece.bytes);
    if (finding.found == simulated::Found::exact) continue;
    fail(reader + " reads bytes that are " + std::string(to_string(finding.found)) + ", from byte " +
         std::to_string(finding.offset) + " of {" + std::to_string(piece.bytes) + ", " + std::to_string(piece.whose) +
         ", " + std::to_string(piece.version) + "}");
  }
}

template <class Call>
void refused(Call&& call) {
  try {
    call();
  } catch (const std::exception& error) {
    std::cout << "refused, as expected: " << error.what() << "\n";
    return;
  }
  fail("a call was accepted that must be refused");
}

[[maybe_unused]] void load(Scheduler& scheduler, const std::string& iteration, const std::string& plan) {
  std::istringstream text(plan);
  try {
    scheduler.load_plan(iteration, text);
  } catch (const PlanRefused& error) {
    std::cout << error.what() << "\n";
  }
}

void program(const Device& device) {
  Options manager_options;
  manager_options.device_budget = Bytes{192};
  manager_options.queue_depth = 8U;
  manager_options.run_ahead = 1U;
  manager_options.demand_mode = DemandMode::per_operation;
  SchedulerOptions scheduler_options;
  scheduler_options.observe = 3U;
  scheduler_options.planner = "slack";
  scheduler_options.planning = Planning::deferred;
  scheduler_options.max_period = 1U;
  scheduler_options.planning_limit = std::chrono::milliseconds{0};
  scheduler_options.replan_above = 1e-9;
  Scheduler scheduler(scheduler_options);
  Manager manager(device, manager_options, scheduler);
  std::optional<Iteration<Device>> iteration;
  Handle t0;
  Handle t1;
  Handle t2;
  Handle t3;
  Handle t4;
  Handle t5;
  Handle t6;
  Handle t7;
  Handle t8;
  std::vector<std::byte> array0;
  std::vector<std::byte> array1;
  std::vector<std::byte> array3;
  std::vector<std::byte> array5;
  std::vector<std::byte> array6;
  std::vector<std::byte> array7;
  std::optional<HostView<std::byte, Device>> view0;
  std::optional<HostView<std::byte, Device>> view1;
  std::optional<HostView<std::byte, Device>> view3;
  std::optional<HostView<std::byte, Device>> view5;
  std::optional<HostView<std::byte, Device>> view6;
  std::optional<HostView<std::byte, Device>> view7;

  t0 = manager.tensor<std::byte>({56}, "t1", kept);
  t1 = manager.tensor<std::byte>({56}, "t2", kept);
  t1->slice(0, 56).slice(0, 56).upload(value({{56, 8, 1}}));
  view0.emplace(t0->slice(0, 56).reshape({2, 28}).host_view(HostViewOptions{.block = Bytes{65536}}));
  t2 = manager.tensor<std::byte>({56}, "t3", transient);
  t3 = manager.tensor<std::byte>({51}, "t4");
  t4 = manager.tensor<std::byte>({51}, "t5");
  t4->slice(0, 51).slice(0, 51).upload(value({{51, 20, 1}}));
  view0->write_back();
  view0.reset();
  manager.set_budget(Bytes{1240});
  t5 = manager.tensor<std::byte>({56}, "t6");
  t5->slice(0, 56).reshape({2, 28}).upload(value({{56, 24, 1}}));
  t6 = manager.tensor<std::byte>({51}, "t7");
  t6->upload(value({{51, 28, 1}}));
  t7 = manager.tensor<std::byte>({83}, "t8");
  t8 = manager.tensor<std::byte>({51}, "t9");
  t8->slice(0, 51).reshape({1, 51}).upload(value({{51, 36, 1}}));
  manager.set_budget(Bytes{192});
  iteration.emplace(manager.iteration("train"));
  manager.run("op0", writes(*t0), writes(*t7), [&](auto& op) {
    const auto p0 = op[*t0];
    const auto p1 = op[*t7];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::write(p1)}, [=] {
      fill(p0, {{56, 4, 1}});
      fill(p1, {{83, 32, 1}});
    });
  });
  iteration.reset();
  iteration.emplace(manager.iteration("train"));
  view3.emplace(t3->slice(0, 51).slice(0, 51).host_view(HostViewOptions{.block = Bytes{65536}, .lazy = false}));
  manager.run("op0", writes(t0->reshape({2, 28}).slice(0, 2)), writes(*t7), [&](auto& op) {
    const auto p0 = op[t0->reshape({2, 28}).slice(0, 2)];
    const auto p1 = op[*t7];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::write(p1)}, [=] {
      fill(p0, {{56, 4, 2}});
      fill(p1, {{83, 32, 2}});
    });
  });
  iteration.reset();
  view3->prepare_write(0, 51);
  fill(view3->span().subspan(0, 51), {{51, 16, 1}});
  if (auto job = scheduler.planning_job()) job->run();
  iteration.emplace(manager.iteration("train"));
  manager.run("op0", writes(t0->slice(0, 56).reshape({2, 28})), writes(*t7), [&](auto& op) {
    const auto p0 = op[t0->slice(0, 56).reshape({2, 28})];
    const auto p1 = op[*t7];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::write(p1)}, [=] {
      fill(p0, {{56, 4, 3}});
      fill(p1, {{83, 32, 3}});
    });
  });
  iteration.reset();
  iteration.emplace(manager.iteration("train"));
  manager.run("op0", writes(*t0), writes(*t7), [&](auto& op) {
    const auto p0 = op[*t0];
    const auto p1 = op[*t7];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::write(p1)}, [=] {
      fill(p0, {{56, 4, 4}});
      fill(p1, {{83, 32, 4}});
    });
  });
  iteration.reset();
  iteration.emplace(manager.iteration("train"));
  manager.run("op0", writes(*t0), writes(*t7), [&](auto& op) {
    const auto p0 = op[*t0];
    const auto p1 = op[*t7];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::write(p1)}, [=] {
      fill(p0, {{56, 4, 5}});
      fill(p1, {{83, 32, 5}});
    });
  });
  iteration.reset();
  if (auto job = scheduler.planning_job()) job->run();
  iteration.emplace(manager.iteration("train"));
  view7.emplace(t7->reshape({1, 83}).slice(0, 1).host_view(HostViewOptions{.block = Bytes{65536}}));
  manager.run("op0", writes(t0->slice(0, 56).slice(0, 56)), writes(*t7), [&](auto& op) {
    const auto p0 = op[t0->slice(0, 56).slice(0, 56)];
    const auto p1 = op[*t7];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::write(p1)}, [=] {
      fill(p0, {{56, 4, 6}});
      fill(p1, {{83, 32, 6}});
    });
  });
  array5.assign(62, std::byte{0x77});
  view5.emplace(t5->host_view(std::span(array5).subspan(3, 56), HostViewOptions{.block = Bytes{65536}}));
  iteration.reset();
  view5->prepare_read(0, 56);
  expect("the host", view5->span().subspan(0, 56), {{56, 24, 1}});
  iteration.emplace(manager.iteration("train"));
  manager.run("op0", writes(t0->reshape({2, 28}).slice(0, 2)), writes(t7->reshape({1, 83}).slice(0, 1)), [&](auto& op) {
    const auto p0 = op[t0->reshape({2, 28}).slice(0, 2)];
    const auto p1 = op[t7->reshape({1, 83}).slice(0, 1)];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::write(p1)}, [=] {
      fill(p0, {{56, 4, 7}});
      fill(p1, {{83, 32, 7}});
    });
  });
  iteration.reset();
  iteration.emplace(manager.iteration("train"));
  manager.run("op0", writes(*t0), writes(t7->slice(0, 83).reshape({1, 83})), [&](auto& op) {
    const auto p0 = op[*t0];
    const auto p1 = op[t7->slice(0, 83).reshape({1, 83})];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::write(p1)}, [=] {
      fill(p0, {{56, 4, 8}});
      fill(p1, {{83, 32, 8}});
    });
  });
  view1.emplace(t1->host_view(HostViewOptions{.block = Bytes{65536}, .lazy = false}));
  iteration.reset();
  view6.emplace(t6->reshape({1, 51}).slice(0, 1).host_view(HostViewOptions{.block = Bytes{65536}, .lazy = false}));
  iteration.emplace(manager.iteration("train"));
  view5->write_back();
  view5.reset();
  manager.run("op0", writes(*t0), writes(t7->reshape({1, 83}).slice(0, 1)), [&](auto& op) {
    const auto p0 = op[*t0];
    const auto p1 = op[t7->reshape({1, 83}).slice(0, 1)];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::write(p1)}, [=] {
      fill(p0, {{56, 4, 9}});
      fill(p1, {{83, 32, 9}});
    });
  });
  iteration.reset();
  iteration.emplace(manager.iteration("train"));
  manager.run("op0", writes(*t0), writes(*t7), [&](auto& op) {
    const auto p0 = op[*t0];
    const auto p1 = op[*t7];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::write(p1)}, [=] {
      fill(p0, {{56, 4, 10}});
      fill(p1, {{83, 32, 10}});
    });
  });
  iteration.reset();
  iteration.emplace(manager.iteration("train"));
  manager.run("op0", writes(*t0), writes(*t7), [&](auto& op) {
    const auto p0 = op[*t0];
    const auto p1 = op[*t7];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::write(p1)}, [=] {
      fill(p0, {{56, 4, 11}});
      fill(p1, {{83, 32, 11}});
    });
  });
  iteration.reset();
  if (auto job = scheduler.planning_job()) job->run();
  iteration.emplace(manager.iteration("train"));
  manager.run("op0", writes(*t0), writes(t7->reshape({1, 83}).slice(0, 1)), [&](auto& op) {
    const auto p0 = op[*t0];
    const auto p1 = op[t7->reshape({1, 83}).slice(0, 1)];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::write(p1)}, [=] {
      fill(p0, {{56, 4, 12}});
      fill(p1, {{83, 32, 12}});
    });
  });
  iteration.reset();
  { const Manager gone = std::move(manager); }
  t7.reset();
  t8.reset();
  t6.reset();
  t1.reset();
  t2.reset();
  expect("the host", view3->span().subspan(0, 51), {{51, 16, 1}});
  view3.reset();
  view7.reset();
  t5.reset();
  t3.reset();
  view6.reset();
  t0.reset();
  expect("the host", view1->span().subspan(0, 56), {{56, 8, 1}});
  view1.reset();
  t4.reset();
}

}  // namespace

int main() {
  simulated::Options device_options;
  device_options.device_bytes = Bytes{1280};
  device_options.alignment = Bytes{64};
  device_options.host_bytes = Bytes{526714};
  device_options.h2d.bytes_per_second = 3200000000U;
  device_options.d2h.bytes_per_second = 100000000U;
  device_options.order = simulated::Order::starved;
  device_options.starved_queue = QueueKind::d2h;
  device_options.seed = 11997643001086983006U;
  device_options.pieces = 7;
  const Device device(device_options);
  try {
    program(device);
  } catch (const std::exception& error) {
    fail(std::string("unexpected: ") + error.what());
  }
  for (const std::string& violation : device.violations()) fail("the device's checker: " + violation);
  const simulated::Counters& left = device.counters();
  if (left.device_memories.live + left.host_memories.live + left.addresses.live + left.events.live != 0) {
    fail("something is left on the device or the host");
  }
  std::cout << (held ? "all held" : "it does not hold") << ", trace hash " << device.trace_hash() << "\n";
  return held ? 0 : 1;
}
