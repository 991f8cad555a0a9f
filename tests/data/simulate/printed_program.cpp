// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Random program of seed 1455.
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
  manager_options.device_budget = Bytes{2500};
  manager_options.pinned_budget = Bytes{2317};
  manager_options.queue_depth = 8U;
  SchedulerOptions scheduler_options;
  scheduler_options.observe = 1U;
  scheduler_options.planner = "per-operation";
  scheduler_options.max_period = 2U;
  scheduler_options.planning_limit = std::chrono::milliseconds{0};
  scheduler_options.sample_every = 3U;
  scheduler_options.drops = DropRule::observed;
  Scheduler scheduler(scheduler_options);
  load(scheduler, "train", R"plan({"format": "swapmm-plan", "version": 1, "trace": "a2495d6048e56cd859003875c3c7f8b2b9587ad0b03cccdde1e812139ced822e", "planner": "per-operation",
 "machine": {"format": "swapmm-machine", "version": 1, "name": "simulated", "device_budget_bytes": 2528, "alignment_bytes": 32, "max_allocation_bytes": null, "h2d": {"bytes_per_second": 1600000000, "latency_ns": 0}, "d2h": {"bytes_per_second": 1600000000, "latency_ns": 0}, "duplex": "full"},
 "initial": [],
 "commands": [
  {"kind": "swap_in", "tensor": 0, "offset": 0, "after": [{"command": 2, "iteration": -1}, {"operation": -1}, {"command": 1, "iteration": -1}], "before_operation": 0},
  {"kind": "swap_out", "tensor": 0, "after": [{"operation": 0}], "before_operation": 1},
  {"kind": "release", "tensor": 0, "after": [{"command": 1}]}],
 "predicted": {"iteration_ns": 410, "compute_ns": 400, "lower_bound_ns": 400, "h2d_bytes": 8, "d2h_bytes": 8, "peak_bytes": 32}}
)plan");
  Manager manager(device, manager_options, scheduler);
  std::vector<std::byte> bytes0;
  std::vector<std::byte> bytes3;
  std::optional<PendingDownload<Device>> promise0;
  std::optional<PendingDownload<Device>> promise3;
  std::optional<Iteration<Device>> iteration;
  Handle t0;
  Handle t1;
  Handle t2;
  Handle t3;
  std::vector<std::byte> array0;
  std::vector<std::byte> array1;
  std::vector<std::byte> array2;
  std::vector<std::byte> array3;
  std::optional<HostView<std::byte, Device>> view0;
  std::optional<HostView<std::byte, Device>> view1;
  std::optional<HostView<std::byte, Device>> view2;
  std::optional<HostView<std::byte, Device>> view3;

  t0 = manager.tensor<std::byte>({8}, "t1");
  t0->slice(0, 8).slice(0, 8).upload(value({{8, 4, 1}}));
  t1 = manager.tensor<std::byte>({8}, "t2");
  view1.emplace(t1->slice(0, 8).reshape({2, 4}).host_view(HostViewOptions{.block = Bytes{65536}}));
  t1->upload(value({{8, 8, 1}}));
  t2 = manager.tensor<std::byte>({1896}, "t3", kept);
  t2->reshape({2, 948}).slice(0, 2).upload(value({{448, 12, 1}, {480, 13, 1}, {480, 14, 1}, {488, 15, 1}}));
  t3 = manager.tensor<std::byte>({8}, "t4");
  manager.set_budget(Bytes{1295});
  iteration.emplace(manager.iteration("train"));
  refused([&] { (void)t1->host_view(); });
  refused([&] {
  {
  Bundle<Device> bundle;
  bundle.writes(*t0).reads(t2->reshape({2, 948}).slice(0, 2)).writes(*t3);
  manager.run("op0", bundle, [](auto&) {});
  }
  });
  expect("the host", view1->span().subspan(0, 8), {{8, 8, 1}});
  iteration.reset();
  std::swap(array0, array1);
  std::swap(view0, view1);
  std::swap(t0, t1);
  iteration.emplace(manager.iteration("train"));
  refused([&] {
  {
  Bundle<Device> bundle;
  bundle.reads(*t3).reads(*t1).reads(t0->reshape({2, 4}).slice(0, 2)).updates(t2->slice(0, 1896).slice(0, 1896));
  bundle.scratch(Bytes{472});
  manager.run("op1", bundle, [](auto&) {});
  }
  });
  refused([&] {
  {
  Bundle<Device> bundle;
  bundle.writes(*t3).writes(*t2).writes(t0->slice(0, 8).reshape({2, 4})).updates(*t1);
  manager.run("op200", bundle, [](auto&) {});
  }
  });
  refused([&] {
  {
  Bundle<Device> bundle;
  bundle.writes(t0->reshape({2, 4}).slice(0, 2)).writes(t1->slice(0, 8).slice(0, 8)).writes(*t2).writes(t3->slice(0, 8).reshape({2, 4}));
  bundle.scratch(Bytes{481});
  manager.run("op202", bundle, [](auto&) {});
  }
  });
  iteration.reset();
  iteration.emplace(manager.iteration("train"));
  {
  Bundle<Device> bundle;
  bundle.updates(*t0);
  manager.run("op2", bundle, [&](auto& op, const simulated::WaitList& waits) {
    const auto p0 = op[*t0];
    (void)op.queue().launch("op2", nanoseconds{200}, {Touch::write(p0)}, waits, [=] {
      expect("op2", p0, {{8, 8, 1}});
    });
    return op.queue().launch("op2", nanoseconds{200}, {Touch::write(p0)}, simulated::WaitList(), [=] {
      fill(p0, {{8, 8, 2}});
    });
  });
  }
  iteration.reset();
  bytes3.assign(1896, std::byte{0x77});
  promise3.emplace(t2->slice(0, 1896).reshape({2, 948}).download_async(bytes3));
  view3.emplace(t3->slice(0, 8).reshape({2, 4}).host_view(HostViewOptions{.block = Bytes{65536}}));
  bytes0.assign(968, std::byte{0x77});
  promise0.emplace(t2->slice(928, 968).download_async(bytes0));
  iteration.emplace(manager.iteration("train"));
  refused([&] {
  {
  Bundle<Device> bundle;
  bundle.writes(*t0).reads(*t2).writes(t3->slice(0, 8).slice(0, 8));
  manager.run("op0", bundle, [](auto&) {});
  }
  });
  iteration.reset();
  std::swap(array0, array1);
  std::swap(view0, view1);
  std::swap(t0, t1);
  iteration.emplace(manager.iteration("train"));
  refused([&] {
  {
  Bundle<Device> bundle;
  bundle.reads(*t3).reads(*t1).reads(*t0).updates(*t2);
  bundle.scratch(Bytes{472});
  manager.run("op1", bundle, [](auto&) {});
  }
  });
  iteration.reset();
  manager.set_budget(Bytes{2566});
  iteration.emplace(manager.iteration("train"));
  {
  Bundle<Device> bundle;
  bundle.updates(*t0);
  manager.run("op2", bundle, [&](auto& op, const simulated::WaitList& waits) {
    const auto p0 = op[*t0];
    (void)op.queue().launch("op2", nanoseconds{200}, {Touch::write(p0)}, waits, [=] {
      expect("op2", p0, {{8, 4, 1}});
    });
    return op.queue().launch("op2", nanoseconds{200}, {Touch::write(p0)}, simulated::WaitList(), [=] {
      fill(p0, {{8, 4, 2}});
    });
  });
  }
  view1->prepare_read(0, 8);
  expect("the host", view1->span().subspan(0, 8), {{8, 8, 2}});
  iteration.reset();
  expect("the host", view1->span().subspan(0, 8), {{8, 8, 2}});
  iteration.emplace(manager.iteration("train"));
  {
  Bundle<Device> bundle;
  bundle.writes(*t0).reads(*t2).writes(t3->slice(0, 8).slice(0, 8));
  manager.run("op0", bundle, [&](auto& op) {
    const auto p0 = op[*t0];
    const auto p1 = op[*t2];
    const auto p2 = op[t3->slice(0, 8).slice(0, 8)];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::read(p1), Touch::write(p2)}, [=] {
      expect("op0", p1, {{448, 12, 1}, {480, 13, 1}, {480, 14, 1}, {488, 15, 1}});
    }, [=] {
      expect("op0", p1, {{448, 12, 1}, {480, 13, 1}, {480, 14, 1}, {488, 15, 1}});
      fill(p0, {{8, 4, 3}});
      fill(p2, {{8, 16, 1}});
    });
  });
  }
  iteration.reset();
  std::swap(array0, array1);
  std::swap(view0, view1);
  std::swap(t0, t1);
  iteration.emplace(manager.iteration("train"));
  {
  Bundle<Device> bundle;
  bundle.reads(t3->reshape({2, 4}).slice(0, 2)).reads(t1->reshape({2, 4}).slice(0, 2)).reads(t0->reshape({2, 4}).slice(0, 2)).updates(*t2);
  bundle.scratch(Bytes{472});
  manager.run("op1", bundle, [&](auto& op, const simulated::WaitList& waits) {
    const auto p0 = op[t3->reshape({2, 4}).slice(0, 2)];
    const auto p1 = op[t1->reshape({2, 4}).slice(0, 2)];
    const auto p2 = op[t0->reshape({2, 4}).slice(0, 2)];
    const auto p3 = op[*t2];
    const auto work = op.scratch();
    return op.queue().launch("op1", nanoseconds{150}, {Touch::read(p0), Touch::read(p1), Touch::read(p2), Touch::write(p3), Touch::write(work)}, waits, [=] {
      expect("op1", p0, {{8, 16, 1}});
      expect("op1", p1, {{8, 4, 3}});
      expect("op1", p2, {{8, 8, 2}});
      expect("op1", p3, {{448, 12, 1}, {480, 13, 1}, {480, 14, 1}, {488, 15, 1}});
      fill(work, {{472, 1099511627776U, 48}});
    }, [=] {
      expect("op1", p0, {{8, 16, 1}});
      expect("op1", p1, {{8, 4, 3}});
      expect("op1", p2, {{8, 8, 2}});
      expect("op1", work, {{472, 1099511627776U, 48}});
      fill(p3, {{448, 12, 2}, {480, 13, 2}, {480, 14, 2}, {488, 15, 2}});
    });
  });
  }
  iteration.reset();
  iteration.emplace(manager.iteration("train"));
  {
  Bundle<Device> bundle;
  bundle.updates(t0->reshape({2, 4}).slice(0, 2));
  manager.run("op2", bundle, [&](auto& op, const simulated::WaitList& waits) {
    const auto p0 = op[t0->reshape({2, 4}).slice(0, 2)];
    (void)op.queue().launch("op2", nanoseconds{200}, {Touch::write(p0)}, waits, [=] {
      expect("op2", p0, {{8, 8, 2}});
    });
    return op.queue().launch("op2", nanoseconds{200}, {Touch::write(p0)}, simulated::WaitList(), [=] {
      fill(p0, {{8, 8, 3}});
    });
  });
  }
  iteration.reset();
  view2.emplace(t2->host_view(HostViewOptions{.block = Bytes{65536}}));
  manager.set_budget(Bytes{2538});
  refused([&] { (void)t3->slice(0, 8).slice(0, 8).host_view(); });
  iteration.emplace(manager.iteration("train"));
  {
  Bundle<Device> bundle;
  bundle.writes(*t0).reads(t2->slice(0, 1896).slice(0, 1896)).writes(*t3);
  manager.run("op0", bundle, [&](auto& op) {
    const auto p0 = op[*t0];
    const auto p1 = op[t2->slice(0, 1896).slice(0, 1896)];
    const auto p2 = op[*t3];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::read(p1), Touch::write(p2)}, [=] {
      expect("op0", p1, {{448, 12, 2}, {480, 13, 2}, {480, 14, 2}, {488, 15, 2}});
    }, [=] {
      expect("op0", p1, {{448, 12, 2}, {480, 13, 2}, {480, 14, 2}, {488, 15, 2}});
      fill(p0, {{8, 8, 4}});
      fill(p2, {{8, 16, 2}});
    });
  });
  }
  manager.synchronize();
  iteration.reset();
  view3->prepare_write(0, 8);
  fill(view3->span().subspan(0, 8), {{8, 16, 3}});
  std::swap(array0, array1);
  std::swap(view0, view1);
  std::swap(t0, t1);
  iteration.emplace(manager.iteration("train"));
  {
  Bundle<Device> bundle;
  bundle.reads(t3->slice(0, 8).slice(0, 8)).reads(t1->slice(0, 8).slice(0, 8)).reads(*t0).updates(*t2);
  bundle.scratch(Bytes{472});
  manager.run("op1", bundle, [&](auto& op, const simulated::WaitList& waits) {
    const auto p0 = op[t3->slice(0, 8).slice(0, 8)];
    const auto p1 = op[t1->slice(0, 8).slice(0, 8)];
    const auto p2 = op[*t0];
    const auto p3 = op[*t2];
    const auto work = op.scratch();
    return op.queue().launch("op1", nanoseconds{150}, {Touch::read(p0), Touch::read(p1), Touch::read(p2), Touch::write(p3), Touch::write(work)}, waits, [=] {
      expect("op1", p0, {{8, 16, 3}});
      expect("op1", p1, {{8, 8, 4}});
      expect("op1", p2, {{8, 4, 3}});
      expect("op1", p3, {{448, 12, 2}, {480, 13, 2}, {480, 14, 2}, {488, 15, 2}});
      fill(work, {{472, 1099511627776U, 67}});
    }, [=] {
      expect("op1", p0, {{8, 16, 3}});
      expect("op1", p1, {{8, 8, 4}});
      expect("op1", p2, {{8, 4, 3}});
      expect("op1", work, {{472, 1099511627776U, 67}});
      fill(p3, {{448, 12, 3}, {480, 13, 3}, {480, 14, 3}, {488, 15, 3}});
    });
  });
  }
  iteration.reset();
  refused([&] { (void)t2->slice(1408, 488).host_view(); });
  iteration.emplace(manager.iteration("train"));
  view3.reset();
  {
  Bundle<Device> bundle;
  bundle.updates(t0->slice(0, 8).reshape({2, 4}));
  manager.run("op2", bundle, [&](auto& op, const simulated::WaitList& waits) {
    const auto p0 = op[t0->slice(0, 8).reshape({2, 4})];
    (void)op.queue().launch("op2", nanoseconds{200}, {Touch::write(p0)}, waits, [=] {
      expect("op2", p0, {{8, 4, 3}});
    });
    return op.queue().launch("op2", nanoseconds{200}, {Touch::write(p0)}, simulated::WaitList(), [=] {
      fill(p0, {{8, 4, 4}});
    });
  });
  }
  view2.reset();
  iteration.reset();
  iteration.emplace(manager.iteration("train"));
  {
  Bundle<Device> bundle;
  bundle.writes(*t0).reads(t2->slice(0, 1896).slice(0, 1896)).writes(t3->slice(0, 8).slice(0, 8));
  manager.run("op0", bundle, [&](auto& op) {
    const auto p0 = op[*t0];
    const auto p1 = op[t2->slice(0, 1896).slice(0, 1896)];
    const auto p2 = op[t3->slice(0, 8).slice(0, 8)];
    op.queue().launch("op0", nanoseconds{100}, {Touch::write(p0), Touch::read(p1), Touch::write(p2)}, [=] {
      expect("op0", p1, {{448, 12, 3}, {480, 13, 3}, {480, 14, 3}, {488, 15, 3}});
    }, [=] {
      expect("op0", p1, {{448, 12, 3}, {480, 13, 3}, {480, 14, 3}, {488, 15, 3}});
      fill(p0, {{8, 4, 5}});
      fill(p2, {{8, 16, 4}});
    });
  });
  }
  iteration.reset();
  std::swap(array0, array1);
  std::swap(view0, view1);
  std::swap(t0, t1);
  expect("the host", t0->download(), {{8, 8, 4}});
  expect("the host", t1->download(), {{8, 4, 5}});
  expect("the host", t2->download(), {{448, 12, 3}, {480, 13, 3}, {480, 14, 3}, {488, 15, 3}});
  expect("the host", t3->download(), {{8, 16, 4}});
  t2.reset();
  t3.reset();
  expect("the host", view0->span().subspan(0, 8), {{8, 8, 4}});
  view0.reset();
  { const Manager gone = std::move(manager); }
  t0.reset();
  promise3->wait();
  expect("the host", bytes3, {{448, 12, 1}, {480, 13, 1}, {480, 14, 1}, {488, 15, 1}});
  promise3.reset();
  t1.reset();
  promise0->wait();
  expect("the host", bytes0, {{480, 14, 1}, {488, 15, 1}});
  promise0.reset();
}

}  // namespace

int main() {
  simulated::Options device_options;
  device_options.device_bytes = Bytes{2592};
  device_options.alignment = Bytes{32};
  device_options.host_slab = Bytes{8192};
  device_options.h2d.bytes_per_second = 1600000000U;
  device_options.d2h.bytes_per_second = 1600000000U;
  device_options.order = simulated::Order::uniform;
  device_options.pct_depth = 3;
  device_options.seed = 7406670704995588642U;
  device_options.pieces = 2;
  device_options.needs_flush = true;
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
