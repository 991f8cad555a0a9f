// SPDX-License-Identifier: Apache-2.0
// An iteration as a graph: what is captured, what its runs wait for, and what is refused. That values are right is seen
// on tests/unit/capture_test.cpp's backend, and on a GPU.

#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda_calls/support.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using Manager = MemoryManager<CheckedBackend>;
using NumberTensor = Tensor<Number, CheckedBackend>;

/// Tensors that all survive an iteration, in half of the memory that they take.
struct Loop {
  static constexpr std::size_t tensors = 8;

  explicit Loop(Manager& manager_) : manager(manager_) {
    for (std::size_t i = 0; i < tensors; ++i) {
      fields.push_back(manager.tensor<Number>({chain_length}, "field" + std::to_string(i)));
      fields.back().upload(numbers(chain_length, static_cast<Number>(i)));
    }
  }
  void body() {
    for (std::size_t i = 0; i < tensors; ++i) {
      run_grow(manager, Form::plain, "grow", fields[i], fields[(i + 1) % tensors]);
    }
  }
  void iterate() {
    const auto iteration = manager.iteration("grow");
    body();
  }

  Manager& manager;
  std::vector<NumberTensor> fields;
};
constexpr Bytes half{Loop::tensors / 2 * chain_tensor.value};

struct CaptureFixture {
  CaptureFixture() {
    fake_cuda::restart();
    manager.emplace(fake_backend(), Options{.device_budget = half});
    loop.emplace(*manager);
    for (int i = 0; i < 5; ++i) loop->iterate();
    REQUIRE(manager->report().iterations_followed > 0);
  }
  ~CaptureFixture() {
    loop.reset();
    manager.reset();
    CHECK_MESSAGE(fake_cuda::violations().empty(), violations_text());
    CHECK(fake_cuda::objects() == fake_cuda::Objects{});
  }
  auto capture() {
    return manager->capture("grow", [&] { loop->body(); });
  }
  template <class Call>
  static std::string refusal(Call&& call) {
    try {
      call();
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  }

  std::optional<Manager> manager;
  std::optional<Loop> loop;
};

}  // namespace

TEST_CASE_FIXTURE(CaptureFixture, "a captured iteration has its operations and its swaps, and runs once by itself") {
  const Report before = manager->report();
  fake_cuda::clear_calls();
  const auto captured = capture();
  const Report after = manager->report();
  const std::size_t swaps = after.swap_ins - before.swap_ins + after.swap_outs - before.swap_outs;
  CHECK(swaps > 0);
  CHECK(after.iterations_followed == before.iterations_followed + 1);
  CHECK(fake_cuda::count("cudaStreamBeginCapture") == 1);
  CHECK(fake_cuda::count("cudaGraphLaunch") == 1);
  for (const fake_cuda::Call& call : fake_cuda::calls()) {
    if (call.function == "cudaStreamBeginCapture") CHECK(call.number == cudaStreamCaptureModeThreadLocal);
    if (call.function == "cudaGraphLaunch") CHECK(call.size == Loop::tensors + swaps);
  }
}

TEST_CASE_FIXTURE(CaptureFixture, "a run is one launch, behind everything before and before everything after") {
  auto captured = capture();
  const Report before = manager->report();
  fake_cuda::clear_calls();
  captured.launch();
  CHECK(fake_cuda::count("cudaGraphLaunch") == 1);
  CHECK(fake_cuda::count("cudaMemcpyAsync") == 0);
  CHECK(fake_cuda::count("launch") == 0);
  for (int i = 0; i < 9; ++i) captured.launch();
  const Report after = manager->report();
  CHECK(after.iterations_followed == before.iterations_followed + 10);
  CHECK(after.operations == before.operations + 10 * Loop::tensors);
  CHECK(after.h2d > before.h2d);
  // Runs, ordinary iterations, downloads and uploads in any order: the checker sees every access.
  Numbers out(chain_length);
  for (int i = 0; i < 5; ++i) {
    captured.launch();
    if (i % 2 == 0) manager->synchronize();
    captured.launch();
    for (auto& field : loop->fields) field.download(out);
    auto pending = loop->fields[3].download_async(out);
    captured.launch();
    pending.wait();
  }
  loop->iterate();
  captured.launch();
  loop->iterate();
  for (auto& field : loop->fields) field.download(out);
}

TEST_CASE_FIXTURE(CaptureFixture, "what cannot be captured is refused, and the manager works on") {
  CHECK(refusal([&] {
          (void)manager->capture("other", [&] { loop->body(); });
        }).find("iteration \"other\" follows no plan: run it until") != std::string::npos);
  CHECK(refusal([&] {
          (void)manager->capture("grow", [&] { loop->fields[0].upload(numbers(chain_length, 1)); });
        }).find("inside a captured iteration: a graph cannot take part") != std::string::npos);
  for (int i = 0; i < 5; ++i) loop->iterate();
  CHECK(refusal([&] {
          (void)manager->capture("grow", [&] {
            loop->body();
            (void)loop->fields[0].download();
          });
        }).find("inside a captured iteration: a graph cannot take part") != std::string::npos);
  for (int i = 0; i < 5; ++i) loop->iterate();
  CHECK(refusal([&] {
          (void)manager->capture("grow", [&] {
            run_grow(*manager, Form::plain, "grow", loop->fields[0], loop->fields[1]);
            run_grow(*manager, Form::plain, "grow", loop->fields[5], loop->fields[1]);
          });
        }).find("a captured iteration must do what its plan expects") != std::string::npos);
  for (int i = 0; i < 5; ++i) loop->iterate();
  CHECK(refusal([&] {
          (void)manager->capture("grow",
                                 [&] { run_grow(*manager, Form::plain, "grow", loop->fields[0], loop->fields[1]); });
        }) == "the captured iteration ended before the plan's last operation");
  for (int i = 0; i < 5; ++i) loop->iterate();
  {
    const auto iteration = manager->iteration("grow");
    CHECK_FALSE(refusal([&] { (void)capture(); }).empty());
    loop->body();
  }
  manager->start_profile();
  CHECK(refusal([&] { (void)capture(); }).find("while a profile is being recorded") != std::string::npos);
  (void)manager->stop_profile();
  const auto captured = capture();
}

TEST_CASE_FIXTURE(CaptureFixture, "a run after the plan was left is refused") {
  auto captured = capture();
  run_grow(*manager, Form::plain, "between", loop->fields[0], loop->fields[1]);
  CHECK(refusal([&] { captured.launch(); }) ==
        "the plan of a captured iteration was left before launch(): capture the iteration again");
  for (int i = 0; i < 5; ++i) loop->iterate();
  CHECK_FALSE(refusal([&] { captured.launch(); }).empty());  // the same plan, begun anew
  captured = capture();
  captured.launch();
  loop->fields[2].upload(numbers(chain_length, 7));
  CHECK(refusal([&] { captured.launch(); }).find("a tensor was uploaded since") != std::string::npos);
  for (int i = 0; i < 5; ++i) loop->iterate();
  captured = capture();
  loop->fields.pop_back();
  CHECK(refusal([&] { captured.launch(); }).find("no longer exists") != std::string::npos);
}

TEST_CASE_FIXTURE(CaptureFixture, "a graph may outlive its manager, and runs no more") {
  auto captured = capture();
  captured.launch();
  loop.reset();
  manager.reset();
  CHECK_THROWS_AS(captured.launch(), UsageError);
}

TEST_CASE_FIXTURE(CaptureFixture, "a capture that the API spoils takes the values it was to give, by name") {
  std::string text;
  try {
    (void)manager->capture("grow", [&] {
      loop->body();
      void* memory = nullptr;
      CHECK(cudaMalloc(&memory, 64) == cudaErrorStreamCaptureUnsupported);  // as a careless library would
      (void)cudaGetLastError();
    });
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK_MESSAGE(text.find("field") != std::string::npos, text);
  CHECK(fake_cuda::violations().size() == 1);  // the fake's own word about cudaMalloc
  const std::vector<fake_cuda::FakeDevice> same{fake_cuda::FakeDevice{}};
  for (auto& field : loop->fields) field.upload(numbers(chain_length, 1));
  for (int i = 0; i < 6; ++i) loop->iterate();
  CHECK(manager->report().iterations_followed > 0);
  loop.reset();
  manager.reset();
  fake_cuda::restart(same);
}

TEST_CASE_FIXTURE(CaptureFixture, "memory that ends inside a capture is freed behind it") {
  auto backend = CheckedBackend(manager->backend());
  std::optional<cuda::HostMemory> pinned(backend.allocate_host(Bytes{64}, HostKind::pinned));
  std::optional<cuda::DeviceMemory> memory(backend.allocate(Bytes{64}));
  const auto host_memories = fake_cuda::objects().host_memories;
  auto captured = manager->capture("grow", [&] {
    loop->body();
    pinned.reset();
    memory.reset();
    CHECK(fake_cuda::objects().host_memories == host_memories);
  });
  backend.finish();
  CHECK(fake_cuda::objects().host_memories == host_memories - 1);
}

TEST_CASE_FIXTURE(CaptureFixture, "each call of a capture may fail: values are there, or their loss was told") {
  for (const char* const function :
       {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiateWithFlags", "cudaGraphLaunch",
        "cudaEventRecord", "cudaStreamWaitEvent", "cudaMemcpyAsync", "cudaEventCreateWithFlags"}) {
    for (std::uint64_t n = 1; n < 80; ++n) {
      bool happened = false;
      {
        const fake_cuda::FailingCall fault(function, cudaErrorInvalidValue, n);
        try {
          auto captured = capture();
          captured.launch();
        } catch (const Error&) {
        }
        happened = fault.happened();
      }
      for (auto& field : loop->fields) {
        Numbers out(chain_length);
        try {
          field.download(out);
        } catch (const Error&) {  // lost, and said so
          field.upload(out);
        }
      }
      for (int i = 0; i < 6; ++i) loop->iterate();
      CHECK_MESSAGE(fake_cuda::violations().empty(), std::string(function) << " " << n << ": " << violations_text());
      if (!happened) break;
    }
  }
}
