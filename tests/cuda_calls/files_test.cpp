// SPDX-License-Identifier: Apache-2.0
// How reads and writes of files go through streams.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cuda_calls/checked_file.hpp"
#include "cuda_calls/support.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using fake_cuda::Call;
using Event = cuda::Backend::Event;

struct FilesFixture {
  FilesFixture() { fake_cuda::restart(); }
  ~FilesFixture() {
    CHECK_MESSAGE(fake_cuda::violations().empty(), violations_text());
    CHECK(fake_cuda::objects() == fake_cuda::Objects{});
  }
};

std::array<const Event*, 1> behind(const Event& event) { return {&event}; }

// Room for half of a chain on the device; the rest is in the file, past as little host memory as possible.
Options half_of_a_chain(std::size_t layers, const std::shared_ptr<CheckedFile>& file) {
  Options options{.device_budget = Bytes{chain_bytes(layers).value / 2}};
  options.queue_depth = 16;
  options.file = file;
  options.file_staging = Bytes{10 * round_up(Bytes{chain_tensor.value / 2}, Bytes{64}).value};
  options.host_budget = options.file_staging;
  return options;
}

}  // namespace

TEST_CASE_FIXTURE(FilesFixture,
                  "a read and a write wait, run as functions of the host, and record, on streams of their own") {
  CheckedBackend backend = fake_backend();
  auto host = backend.allocate_host(Bytes{4096}, HostKind::pinned);
  CheckedFile file(Bytes{4096}, Bytes{1});
  file.reserve(Bytes{4096});
  Event first = backend.make_event();
  Event second = backend.make_event();
  Event third = backend.make_event();
  CHECK(fake_cuda::objects().streams == 3);
  backend.record(QueueKind::d2h, first);
  fake_cuda::clear_calls();

  for (std::size_t i = 0; i < 512; ++i) host.data()[64 + i] = static_cast<std::byte>(i);
  backend.write_file(file, Bytes{1024}, host, Bytes{64}, Bytes{512}, behind(first), second);
  backend.read_file(file, Bytes{1024}, host, Bytes{2048}, Bytes{512}, behind(second), third);
  std::vector<Call> calls;
  for (const Call& call : fake_cuda::calls()) {
    if (call.stream != nullptr && call.function != "cudaStreamCreateWithFlags") calls.push_back(call);
  }
  REQUIRE(calls.size() == 6);
  for (const std::size_t begin : {0U, 3U}) {
    CHECK(calls[begin].function == "cudaStreamWaitEvent");
    CHECK(calls[begin + 1].function == "cudaLaunchHostFunc");
    CHECK(calls[begin + 2].function == "cudaEventRecord");
    CHECK(calls[begin].stream == calls[begin + 1].stream);
    CHECK(calls[begin + 2].stream == calls[begin + 1].stream);
    CHECK(calls[begin].stream != backend.queue());
  }
  CHECK(calls[0].stream != calls[3].stream);
  CHECK(calls[3].event == calls[2].event);
  CHECK(fake_cuda::objects().streams == 5);
  backend.wait(third);
  CHECK(backend.status(second) == EventStatus::complete);
  CHECK(std::equal(host.data() + 2048, host.data() + 2560, host.data() + 64));
}

TEST_CASE_FIXTURE(FilesFixture, "a file that fails is told by its event alone") {
  CheckedBackend backend = fake_backend();
  auto memory = backend.allocate(Bytes{4096});
  auto host = backend.allocate_host(Bytes{4096}, HostKind::pinned);
  const auto place = backend.address(memory, Bytes{0}, Bytes{512});
  CheckedFile file(Bytes{4096}, Bytes{1});
  file.reserve(Bytes{4096});
  file.failing_read = 1;
  Event read = backend.make_event();
  Event copied = backend.make_event();
  backend.read_file(file, Bytes{0}, host, Bytes{0}, Bytes{512}, {}, read);
  backend.copy_part_to_device(place, Bytes{128}, host, Bytes{0}, Bytes{256}, behind(read), copied);
  backend.wait(copied);
  CHECK(backend.status(copied) == EventStatus::complete);
  std::string text;
  try {
    backend.wait(read);
  } catch (const BackendError& error) {
    text = error.what();
    CHECK(error.kind == BackendError::Kind::failed);
  }
  CHECK(text == "reading: Input/output error");
  CHECK(backend.status(read) == EventStatus::failed);
  backend.record(QueueKind::h2d, read);  // the next point of the same event knows nothing of it
  backend.wait(read);
  CHECK(backend.status(read) == EventStatus::complete);
}

TEST_CASE_FIXTURE(FilesFixture, "a manager with a file orders all accesses, and leaves nothing") {
  constexpr std::size_t layers = 4;
  for (const Form form : {Form::plain, Form::with_event}) {
    const auto file = std::make_shared<CheckedFile>(Bytes{1U << 20U}, Bytes{64});
    const Options options = half_of_a_chain(layers, file);
    MemoryManager<CheckedBackend> manager(fake_backend(), options);
    Chain<CheckedBackend> chain(manager, layers, form);
    for (Number step = 0; step < 7; ++step) chain.iterate(step);
    manager.synchronize();
    CHECK(manager.report().iterations_followed == 4);
    CHECK(manager.report().file_written.value > 0);
    CHECK(file->bytes_written == manager.report().file_written.value);
  }
}

TEST_CASE_FIXTURE(FilesFixture,
                  "the host waits for what fills pageable memory before a copy takes the bytes at its call") {
  CheckedBackend backend = fake_backend();
  auto memory = backend.allocate(Bytes{4096});
  const auto place = backend.address(memory, Bytes{0}, Bytes{512});
  CheckedFile file(Bytes{4096}, Bytes{1});
  file.reserve(Bytes{4096});
  for (const HostKind kind : {HostKind::pinned, HostKind::pageable}) {
    auto host = backend.allocate_host(Bytes{4096}, kind);
    const auto waits_of = [&](auto&& copy) {
      const std::size_t before = fake_cuda::count("cudaEventSynchronize");
      copy();
      return fake_cuda::count("cudaEventSynchronize") - before;
    };
    Event out = backend.make_event();
    Event part_out = backend.make_event();
    Event read = backend.make_event();
    Event in = backend.make_event();
    Event part_in = backend.make_event();
    // Each copy to the device reads what another queue writes.
    backend.copy_to_host(host, Bytes{0}, place, Bytes{512}, {}, out);
    backend.copy_part_to_host(host, Bytes{512}, place, Bytes{0}, Bytes{512}, {}, part_out);
    backend.read_file(file, Bytes{0}, host, Bytes{1024}, Bytes{512}, {}, read);
    const std::array<const Event*, 3> all{&out, &part_out, &read};
    CHECK(waits_of([&] { backend.copy_to_device(place, host, Bytes{0}, Bytes{512}, all, in); }) ==
          (kind == HostKind::pageable ? 3 : 0));
    backend.read_file(file, Bytes{0}, host, Bytes{0}, Bytes{512}, behind(in), read);
    const std::array<const Event*, 2> both{&read, &in};
    backend.copy_part_to_device(place, Bytes{0}, host, Bytes{0}, Bytes{512}, both, part_in);
    backend.wait(part_in);
  }
}

TEST_CASE_FIXTURE(FilesFixture, "a manager with a file and without pinned memory orders all accesses") {
  constexpr std::size_t layers = 4;
  for (const Form form : {Form::plain, Form::with_event}) {
    const auto file = std::make_shared<CheckedFile>(Bytes{1U << 20U}, Bytes{64});
    Options options = half_of_a_chain(layers, file);
    options.pinned_budget = Bytes{0};
    MemoryManager<CheckedBackend> manager(fake_backend(), options);
    Chain<CheckedBackend> chain(manager, layers, form);
    for (Number step = 0; step < 7; ++step) chain.iterate(step);
    manager.synchronize();
    CHECK(fake_cuda::objects().host_memories == 0);
    CHECK(manager.report().iterations_followed > 0);
    CHECK(file->bytes_read > 0);
  }
}
