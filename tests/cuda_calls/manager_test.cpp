// SPDX-License-Identifier: Apache-2.0
// Whole programs: what a manager asks of the API on demand and by a plan, and that streams and events order every
// access to every byte.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_calls/support.hpp"
#include "support/effort.hpp"
#include "support/steady_plans.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using Manager = MemoryManager<CheckedBackend>;

constexpr std::size_t layers = 6;
constexpr Bytes half{chain_bytes(layers).value / 2};

struct ManagerFixture {
  ManagerFixture() { fake_cuda::restart(); }
  ~ManagerFixture() {
    CHECK_MESSAGE(fake_cuda::violations().empty(), violations_text());
    CHECK(fake_cuda::objects() == fake_cuda::Objects{});
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
};

std::map<std::string, std::size_t> counted() {
  std::map<std::string, std::size_t> result;
  for (const fake_cuda::Call& call : fake_cuda::calls()) ++result[call.function];
  return result;
}

}  // namespace

TEST_CASE("all accesses are in order, whatever is complete when it is asked") {
  for (const unsigned luck : {0U, 50U, 100U}) {
    for (int seed = 1; seed <= effort(4, 2); ++seed) {
      for (const Form form : {Form::plain, Form::with_event}) {
        for (const DemandMode mode : {DemandMode::least_recently_used, DemandMode::per_operation}) {
          fake_cuda::restart({fake_cuda::FakeDevice{}}, static_cast<std::uint64_t>(seed));
          fake_cuda::set_query_luck(luck);
          {
            Manager manager(fake_backend(), {.device_budget = half, .demand_mode = mode}, steady_plans());
            Chain<CheckedBackend> chain(manager, layers, form);
            for (Number step = 0; step < 8; ++step) chain.iterate(step);
            CHECK(manager.report().iterations_followed == 5);
            Numbers out(chain_length);
            chain.output().download(out);
            for (const auto& weight : chain.weights) weight.download(out);
          }
          CHECK_MESSAGE(fake_cuda::violations().empty(), violations_text());
          CHECK(fake_cuda::objects() == fake_cuda::Objects{});
        }
      }
    }
  }
}

TEST_CASE_FIXTURE(ManagerFixture,
                  "work on a stream of its own comes after copies that the manager's stream waits for") {
  cudaStream_t own = nullptr;
  cudaEvent_t done = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&done, cudaEventDisableTiming) == cudaSuccess);
  {
    Manager manager(fake_backend(), {.device_budget = Bytes{4 * chain_tensor.value}}, steady_plans());
    std::vector<Tensor<Number, CheckedBackend>> tensors;
    for (int i = 0; i < 6; ++i) {
      tensors.push_back(manager.tensor<Number>({chain_length}, "t" + std::to_string(i)));
      tensors.back().upload(numbers(chain_length, static_cast<Number>(i)));
    }
    const auto on_own_stream = [&](const auto& from, const auto& to) {
      manager.run("own", reads(from), updates(to), [&](auto& op, const cuda::WaitList& waits) {
        waits.queue_on(own);
        fake_cuda::launch(own, {bytes_of(op[from], false), bytes_of(op[to], true)}, "own");
        REQUIRE(cudaEventRecord(done, own) == cudaSuccess);
        return cuda::NativeEvent(done);
      });
    };
    for (int round = 0; round < 8; ++round) {
      const auto iteration = manager.iteration("train");
      for (std::size_t i = 0; i < 6; ++i) {
        // The first one makes the manager's stream wait for the tensor, so that the second one's list has no event.
        run_grow(manager, Form::plain, "plain", tensors[i], tensors[(i + 1) % 6]);
        on_own_stream(tensors[i], tensors[(i + 1) % 6]);
      }
    }
    CHECK(manager.report().iterations_followed > 0);
    CHECK(manager.report().swap_ins > 0);
    manager.synchronize();
  }
  CHECK(cudaEventDestroy(done) == cudaSuccess);
  CHECK(cudaStreamDestroy(own) == cudaSuccess);
}

TEST_CASE_FIXTURE(ManagerFixture, "the budget is one allocation, and host memory comes in one slab") {
  Manager manager(fake_backend(), {.device_budget = half}, steady_plans());
  CHECK(fake_cuda::count("cudaMalloc") == 1);
  CHECK(fake_cuda::device_bytes() == half.value);
  Chain<CheckedBackend> chain(manager, layers);
  for (Number step = 0; step < 6; ++step) chain.iterate(step);
  CHECK(fake_cuda::count("cudaMalloc") == 1);
  CHECK(fake_cuda::count("cudaHostAlloc") == 1);  // 56 KiB of values in a slab of 16 MiB
  CHECK(manager.report().pinned_used == Bytes{std::uint64_t{16} << 20U});
}

TEST_CASE_FIXTURE(ManagerFixture, "a followed iteration makes no object and waits for nothing but its slots") {
  fake_cuda::set_query_luck(100);
  Manager manager(fake_backend(), {.device_budget = half}, steady_plans());
  Chain<CheckedBackend> chain(manager, layers);
  for (Number step = 0; step < 8; ++step) chain.iterate(step);
  const Report before = manager.report();
  fake_cuda::clear_calls();
  constexpr std::size_t rounds = 5;
  for (Number step = 0; step < rounds; ++step) chain.iterate(step);
  const Report after = manager.report();
  REQUIRE(after.iterations_followed - before.iterations_followed == rounds);
  std::map<std::string, std::size_t> calls = counted();
  for (const char* const slow : {"cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost", "cudaEventCreateWithFlags",
                                 "cudaEventDestroy", "cudaStreamSynchronize", "cudaEventSynchronize"}) {
    CHECK_MESSAGE(calls[slow] == 0, slow);
  }
  CHECK(calls["launch"] == rounds * (2 * layers + 1));
  CHECK(calls["cudaMemcpyAsync"] == after.swap_ins - before.swap_ins + after.swap_outs - before.swap_outs);
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  for (const fake_cuda::Call& call : fake_cuda::calls()) {
    if (call.function != "cudaMemcpyAsync") continue;
    (call.number == cudaMemcpyHostToDevice ? in : out) += call.size;
  }
  CHECK(in == (after.h2d - before.h2d).value);
  CHECK(out == (after.d2h - before.d2h).value);
  // No times on the hot path.
  for (const fake_cuda::Call& call : fake_cuda::calls()) {
    if (call.function == "cudaEventRecord") CHECK(call.number == 0);
  }
}

TEST_CASE_FIXTURE(ManagerFixture,
                  "slices are joined on the compute stream, before the operation's work and behind it") {
  for (const Form form : {Form::plain, Form::with_event}) {
    Manager manager(fake_backend(), {.device_budget = Bytes{1U << 16U}});
    auto field = manager.divided<Number>({8, 33}, "field", {.entries = 4});
    auto by = manager.tensor<Number>({2, 33}, "by");
    field.upload(Numbers(8 * 33));
    by.upload(Numbers(2 * 33));
    const auto slice = field.slice(3, 2);
    fake_cuda::clear_calls();
    run_grow(manager, form, "grow", by, slice);
    std::vector<std::string> on_device;
    std::vector<const void*> streams;
    for (const fake_cuda::Call& call : fake_cuda::calls()) {
      const bool copies = call.function == "cudaMemcpyAsync" && call.number == cudaMemcpyDeviceToDevice;
      if (!copies && call.function != "launch") continue;
      on_device.push_back(copies ? "copy of " + std::to_string(call.size) : call.function);
      streams.push_back(call.stream);
    }
    CHECK(on_device == std::vector<std::string>{"copy of 132", "copy of 132", "launch", "copy of 132", "copy of 132"});
    for (const void* const stream : streams) CHECK(stream == streams.front());
    manager.synchronize();
  }
}

TEST_CASE_FIXTURE(ManagerFixture, "where everything fits, a followed operation is its launch and nothing else") {
  Manager manager(fake_backend(), {.device_budget = chain_bytes(layers)}, steady_plans());
  auto a = manager.tensor<Number>({chain_length}, "a");
  auto b = manager.tensor<Number>({chain_length}, "b");
  a.upload(numbers(chain_length, 1));
  b.upload(numbers(chain_length, 2));
  const auto iterate = [&] {
    const auto iteration = manager.iteration("grow");
    for (int i = 0; i < 20; ++i) run_grow(manager, Form::plain, "grow", a, b);
  };
  for (int step = 0; step < 6; ++step) iterate();
  REQUIRE(manager.report().iterations_followed > 0);
  fake_cuda::set_query_luck(100);
  fake_cuda::clear_calls();
  iterate();
  std::map<std::string, std::size_t> calls = counted();
  CHECK(calls["launch"] == 20);
  CHECK(calls["cudaMemcpyAsync"] == 0);
  CHECK(calls["cudaStreamWaitEvent"] == 0);
  CHECK(calls["cudaEventRecord"] <= 1);  // the end of the round
}

TEST_CASE_FIXTURE(ManagerFixture, "pageable memory takes what cannot be page-locked") {
  Manager manager(fake_backend(), {.device_budget = half}, steady_plans());
  Chain<CheckedBackend> chain(manager, layers);
  {
    fake_cuda::FailingCall refused("cudaHostAlloc", cudaErrorMemoryAllocation, 1);
    chain.iterate(0);
  }
  for (Number step = 0; step < 6; ++step) chain.iterate(step);
  CHECK(manager.report().iterations_followed > 0);
}

TEST_CASE_FIXTURE(ManagerFixture, "device memory that is refused is an error with the API's words") {
  std::string text;
  try {
    Manager manager(fake_backend(), {.device_budget = Bytes{std::uint64_t{2} << 30U}});
  } catch (const OutOfMemory& error) {
    text = error.what();
  }
  CHECK(text ==
        "making a manager with a device budget of 2147483648 bytes: cudaMalloc of 2147483648 bytes: "
        "cudaErrorMemoryAllocation (2): out of memory");
}

TEST_CASE_FIXTURE(ManagerFixture, "NVTX ranges change nothing that is asked of the API") {
  const auto calls_of = [](bool nvtx) {
    fake_cuda::restart();
    fake_cuda::set_query_luck(100);
    Manager manager(fake_backend(nvtx), {.device_budget = half}, steady_plans());
    Chain<CheckedBackend> chain(manager, layers);
    for (Number step = 0; step < 6; ++step) chain.iterate(step);
    return counted();
  };
  CHECK(calls_of(false) == calls_of(true));
}

TEST_CASE_FIXTURE(ManagerFixture, "arguments are pointers by address, as cudaLaunchKernel takes them") {
  Manager manager(fake_backend(), {.device_budget = half}, steady_plans());
  auto a = manager.tensor<Number>({chain_length}, "a");
  auto b = manager.tensor<Number>({chain_length}, "b");
  a.upload(Numbers(chain_length, 1));
  manager.run("launch", reads(a), writes(b), [&](auto& op) {
    const std::vector<void*> arguments{op.argument(a).data(), op.argument(b).data()};
    CHECK(op.argument(a).size() == sizeof(Number*));
    CHECK(*static_cast<Number**>(arguments[0]) == op[a].data());
    CHECK(*static_cast<Number**>(arguments[1]) == op[b].data());
    CHECK(*static_cast<Number**>(op.argument(b.slice(2, 4)).data()) == op[b].data() + 2);
    fake_cuda::launch(op.stream(), {bytes_of(op[a], false), bytes_of(op[b], true)}, "launch");
  });
}

TEST_CASE_FIXTURE(ManagerFixture, "a work area of 0 bytes is a null pointer") {
  Manager manager(fake_backend(), {.device_budget = half}, steady_plans());
  auto a = manager.tensor<Number>({chain_length}, "a");
  manager.run("areas", writes(a), scratch(0), [&](auto& op) {
    const cuda::View<std::byte> work = op.scratch();
    CHECK(work.data() == nullptr);
    CHECK(work.size() == 0);
    CHECK(work.span().empty());
    fake_cuda::launch(op.stream(), {bytes_of(op[a], true)}, "areas");
  });
  manager.run("no areas", reads(a), [&](auto& op) {
    CHECK_THROWS_AS((void)op.scratch(), UsageError);
    fake_cuda::launch(op.stream(), {bytes_of(op[a], false)}, "no areas");
  });
}

TEST_CASE_FIXTURE(ManagerFixture, "reset gives a tensor's bytes back without a copy") {
  Manager manager(fake_backend(), {.device_budget = chain_tensor}, steady_plans());
  auto a = manager.tensor<Number>({chain_length}, "a");
  auto b = manager.tensor<Number>({chain_length}, "b");
  const auto filled = [&](auto& tensor) {
    manager.run("fill", writes(tensor),
                [&](auto& op) { fake_cuda::launch(op.stream(), {bytes_of(op[tensor], true)}, "fill"); });
  };
  filled(a);
  a.reset();
  filled(b);
  a.reset();
  CHECK(manager.report().tensors == 1);
  CHECK(manager.report().swap_outs == 0);
  CHECK_THROWS_AS(filled(a), UsageError);
}
