// SPDX-License-Identifier: Apache-2.0
// What crosses the boundary of the libraries: exceptions are caught by their type, calls find their functions, and a
// thread is the same thread on both sides.
#include "check.hpp"

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/validate.hpp>
#include <swapmm/swapmm.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace {

using swapmm::Bytes;
namespace simulated = swapmm::simulated;

int check_exceptions() {
  int failed = 0;
  // Thrown by compiled functions of the library.
  swapmm::Scheduler scheduler;
  failed += expect_exception<swapmm::UsageError>("save_plan of no plan", [&] {
    std::ostringstream out;
    scheduler.save_plan("nothing", out);
  });
  failed += expect_exception<swapmm::PlanRefused>("load_plan of no plan", [&] {
    std::istringstream in("no plan");
    scheduler.load_plan("x", in);
  });
  failed += expect_exception<std::runtime_error>("by the standard's type", [&] {
    std::istringstream in("no plan");
    scheduler.load_plan("x", in);
  });
  const simulated::Backend device({.device_bytes = Bytes{4096}});
  failed += expect_exception<swapmm::BackendError>("memory that the device lacks", [&] {
    auto copy = device;
    (void)copy.allocate(Bytes{1 << 20U});
  });

  // Thrown by templates, whichever side they are compiled on.
  failed += expect_exception<swapmm::OutOfMemory>("a budget above the device", [&] {
    swapmm::MemoryManager manager{device, {.device_budget = Bytes{1 << 20U}}};
  });
  swapmm::MemoryManager manager{device, {.device_budget = Bytes{4096}}};
  auto small = manager.tensor<float>({16}, "small");
  auto large = manager.tensor<float>({4096}, "large");
  const auto nothing = [](auto&) {};
  failed += expect_exception<swapmm::BundleTooLarge>("a bundle above the budget",
                                                     [&] { manager.run("large", swapmm::writes(large), nothing); });
  failed += expect_exception<swapmm::UndefinedValue>("a value that nobody wrote",
                                                     [&] { manager.run("read", swapmm::reads(small), nothing); });
  failed +=
      expect_exception<swapmm::UsageError>("an upload of another size", [&] { small.upload(std::vector<float>(3)); });
  // The manager knows its caller: the same thread inside a callable, not a second one.
  failed += expect_exception<swapmm::NestedOperation>("a call from within an operation", [&] {
    manager.run("outer", swapmm::writes(small), [&](auto&) { small.upload(std::vector<float>(16)); });
  });
  struct Own {};
  failed += expect_exception<Own>("an exception of the program's own",
                                  [&] { manager.run("own", swapmm::writes(small), [](auto&) { throw Own{}; }); });
  return failed;
}

int check_run() {
  swapmm::MemoryManager manager{simulated::Backend({.device_bytes = Bytes{1 << 16U}}), {.device_budget = Bytes{8192}}};
  auto a = manager.tensor<float>({1024}, "a");
  auto b = manager.tensor<float>({1024}, "b", swapmm::kept);
  auto c = manager.tensor<float>({1024}, "c", swapmm::kept);
  for (int i = 0; i < 8; ++i) {
    const auto iteration = manager.iteration("train");
    a.upload(std::vector<float>(1024, static_cast<float>(i)));
    for (auto* to : {&b, &c}) {
      manager.run("copy", swapmm::reads(a), swapmm::writes(*to), [&](auto& op) {
        const auto from = op[a];
        const auto into = op[*to];
        op.queue().launch("copy", std::chrono::microseconds{1},
                          {simulated::Touch::read(from), simulated::Touch::write(into)},
                          [from, into] { std::copy(from.begin(), from.end(), into.begin()); });
      });
    }
  }
  int failed = expect("the last value", b.download() == std::vector<float>(1024, 7) && c.download() == b.download());
  const swapmm::Report report = manager.report();
  failed += expect("a plan was followed", report.iterations_followed > 0 && report.swap_ins > 0);
  std::ostringstream text;
  text << report;
  failed += expect("the report has a text", text.str().find("train") != std::string::npos);
  const auto trace = manager.scheduler().trace("train");
  failed += expect("the trace is there", trace.has_value() && swapmm::digest(*trace).size() == 64);
  if (!trace) return failed;
  std::ostringstream written;
  swapmm::write_trace(written, *trace);
  const auto again = swapmm::read_trace(written.str());
  failed += expect("the trace is read as it was written", again.has_value() && *again == *trace);
  const auto plan = swapmm::make_plan("best", *trace, manager.machine());
  failed += expect("a plan is made, and is valid", plan.has_value() && swapmm::validate(*trace, *plan).empty());
  return failed;
}

}  // namespace

int main() {
  int failed = check_exceptions() + check_run();
#ifdef HAS_opencl
  failed += check_opencl();
#endif
#ifdef HAS_cuda
  failed += check_cuda();
#endif
#ifdef HAS_file
  failed += check_file();
#endif
#ifdef HAS_ilp
  failed += check_ilp();
#endif
#ifdef HAS_mpi
  failed += check_mpi();
#endif
  std::cout << failed << " checks failed\n";
  return failed == 0 ? 0 : 1;
}
