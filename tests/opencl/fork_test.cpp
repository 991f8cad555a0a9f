// SPDX-License-Identifier: Apache-2.0
// A child of fork() has the objects of its parent, and not the threads of the driver: a call of the API could wait for
// ever. The child therefore calls nothing, and is told why.

#include <doctest/doctest.h>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "opencl/support.hpp"
#include "support/failing_new.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

constexpr Bytes kept_bytes{4096};

/// One object of each kind, which the child inherits.
struct Inherited {
  Inherited() {
    backend->set_timing(true);
    backend->record(QueueKind::compute, *first);
    backend->copy_to_device(*place, *pinned, Bytes{0}, kept_bytes, {}, *second);
    backend->finish();
  }
  std::optional<opencl::Backend> backend{shared_backend()};
  std::optional<opencl::DeviceMemory> memory{backend->allocate(kept_bytes)};
  std::optional<opencl::Address> place{backend->address(*memory, Bytes{0}, kept_bytes)};
  std::optional<opencl::HostMemory> pinned{backend->allocate_host(kept_bytes, HostKind::pinned)};
  std::optional<opencl::HostMemory> pageable{backend->allocate_host(kept_bytes, HostKind::pageable)};
  std::optional<opencl::Event> never{backend->make_event()};
  std::optional<opencl::Event> first{backend->make_event()};
  std::optional<opencl::Event> second{backend->make_event()};
};

/// What a child says in its own words before it ends; empty: nothing.
template <class Child>
std::string said_by_child(Child&& child) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t process = ::fork();
  REQUIRE(process >= 0);
  if (process == 0) {
    ::alarm(60);  // ends a child that waits for ever
    const std::string text = child();
    const bool written = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 512> part{};
  for (ssize_t got = 0; (got = ::read(ends[0], part.data(), part.size())) > 0;) {
    said.append(part.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(process, &status, 0) == process);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? said : said + "the child did not end well";
}

/// Runs in the child, where every call of the API would fail. Returns what is wrong.
std::string use_and_destroy(Inherited& has) {
  const LosingDevice gone(CL_OUT_OF_RESOURCES, 0);
  reset_api_calls();
  const ApiObjects before = api_objects();
  std::string problems;
  const auto refuses = [&](const char* what, auto&& call) {
    try {
      call();
      problems += std::string(what) + ": nothing was thrown\n";
    } catch (const BackendError& error) {
      const bool told = says(error.what(), {"this process is a child of fork()", "exec"});
      if (!told || error.kind != BackendError::Kind::device_lost || error.code != 0) {
        problems += std::string(what) + ": " + error.what() + "\n";
      }
    }
  };
  const auto expect = [&](const char* what, bool holds) {
    if (!holds) problems += std::string(what) + "\n";
  };
  opencl::Backend& backend = *has.backend;
  const std::vector<const opencl::Event*> waits{&*has.first};
  std::ostringstream silent;
  refuses("pick", [&] { (void)opencl::Backend::pick(silent); });
  refuses("a backend", [&] { const opencl::Backend made(backend.context(), backend.device()); });
  refuses("allocate", [&] { (void)backend.allocate(kept_bytes); });
  refuses("pinned memory", [&] { (void)backend.allocate_host(kept_bytes, HostKind::pinned); });
  refuses("pageable memory", [&] { (void)backend.allocate_host(kept_bytes, HostKind::pageable); });
  refuses("a place", [&] { (void)backend.address(*has.memory, Bytes{0}, kept_bytes); });
  refuses("a part", [&] { (void)backend.address(*has.memory, Bytes{1024}, Bytes{1024}); });
  refuses("up", [&] { backend.copy_to_device(*has.place, *has.pinned, Bytes{0}, kept_bytes, {}, *has.second); });
  refuses("down", [&] { backend.copy_to_host(*has.pinned, Bytes{0}, *has.place, kept_bytes, {}, *has.second); });
  refuses("a wait of a queue", [&] { backend.wait(QueueKind::d2h, waits); });
  refuses("record", [&] { backend.record(QueueKind::compute, *has.second); });
  refuses("adopt", [&] { backend.adopt(*has.second, {}); });
  refuses("flush", [&] { backend.flush(QueueKind::h2d); });
  refuses("queue", [&] { (void)backend.queue(); });
  refuses("a wait of the host", [&] { backend.wait(*has.first); });
  refuses("finish", [&] { backend.finish(); });
  // What can be told without the device is.
  expect("a wait for a slot that was never recorded", backend.status(*has.never) == EventStatus::complete);
  backend.wait(*has.never);
  expect("the status of an event", backend.status(*has.first) == EventStatus::failed);
  expect("a time", !backend.elapsed(*has.first, *has.second).has_value());
  // And everything ends, without a word to the API.
  has.pinned.reset();
  has.pageable.reset();
  has.place.reset();
  has.memory.reset();
  has.first.reset();
  has.second.reset();
  has.backend.reset();
  expect("an object was released", api_objects() == before);
  expect("the API was called", gone.refused_calls() == 0 && api_calls().finishes == 0);
  return problems;
}

}  // namespace

TEST_CASE("a child of fork() is refused each use of its parent's device, and destroys its objects without the API") {
  const ApiObjects at_rest = objects_at_rest();
  {
    Inherited objects;
    CHECK(said_by_child([&] { return use_and_destroy(objects); }) == "");
    // To the parent nothing has happened.
    objects.backend->record(QueueKind::compute, *objects.second);
    objects.backend->wait(*objects.second);
    CHECK(objects.backend->status(*objects.second) == EventStatus::complete);
    CHECK(objects.backend->queue() != nullptr);
  }
  CHECK(api_objects() == at_rest);
}

TEST_CASE("a child of fork() gives back the pageable memory that it has of its parent") {
  constexpr std::size_t blocks = 20;
  constexpr std::size_t block = 32768;
  const PeakMemory peak;
  opencl::Backend backend = shared_backend();
  std::vector<opencl::HostMemory> parents;
  for (std::size_t i = 0; i < blocks; ++i) parents.push_back(backend.allocate_host(Bytes{block}, HostKind::pageable));
  CHECK(peak.bytes() >= blocks * block);
  const std::string said = said_by_child([&] {
    parents.clear();
    const std::vector<std::vector<std::byte>> own(blocks, std::vector<std::byte>(block));
    return peak.bytes() < (blocks + blocks / 2) * block ? std::string()
                                                        : "it holds both: " + std::to_string(own.size());
  });
  CHECK(said == "");
}
