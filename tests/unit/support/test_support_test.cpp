// SPDX-License-Identifier: Apache-2.0
// The tools of the other tests do what those tests believe.

#include <doctest/doctest.h>

#include <cstddef>
#include <istream>
#include <memory>
#include <new>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "support/failing_new.hpp"
#include "support/faulty_stream.hpp"

using namespace swapmm::test;

TEST_CASE("exactly the n-th allocation fails, in every form of new") {
  const auto allocate = [](int form) {
    struct alignas(128) Wide {
      char bytes[128];
    };
    // Nobody may use the memory unseen, or the compiler leaves out the allocation.
    [[maybe_unused]] static const void* volatile seen = nullptr;
    if (form == 0) seen = std::make_unique<int>(1).get();
    if (form == 1) seen = std::vector<char>(100).data();
    if (form == 2) seen = std::make_unique<Wide>().get();
  };
  for (int form = 0; form < 3; ++form) {
    const FailingNew failing(3);
    CHECK_NOTHROW(allocate(form));
    CHECK_NOTHROW(allocate(form));
    CHECK_FALSE(failing.fired());
    CHECK_THROWS_AS(allocate(form), std::bad_alloc);
    CHECK(failing.fired());
    CHECK_NOTHROW(allocate(form));
  }
  const auto before = allocations();
  allocate(0);
  CHECK(allocations() == before + 1);
}

namespace {

/// The n-th call of that kind goes wrong.
FileGate nth(FileCall call, std::size_t n, FileFault fault) {
  return [=, seen = std::size_t{0}](FileCall made) mutable -> std::optional<FileFault> {
    if (made != call || ++seen != n) return std::nullopt;
    return fault;
  };
}

struct Read {
  std::string text;
  bool bad;
};
Read read_with(FileFault fault) {
  FaultyInput buffer("one two three", nth(FileCall::read, 2, fault), 5);
  std::istream stream(&buffer);
  std::string text(13, ' ');
  stream.read(text.data(), 13);
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return {text, stream.bad()};
}

struct Written {
  std::string text;
  bool good;
};
Written written_with(FileCall call, FileFault fault) {
  FaultyOutput buffer(nth(call, 2, fault));
  std::ostream stream(&buffer);
  stream << std::string(FaultyOutput::piece, 'a') << std::flush << "bbbb" << std::flush << "cc" << std::flush;
  return {buffer.text().substr(FaultyOutput::piece), stream.good()};
}

}  // namespace

TEST_CASE("a file that is read gives every byte after a short count, and says when it cannot") {
  CHECK(read_with(FileFault::part).text == "one two three");
  CHECK_FALSE(read_with(FileFault::part).bad);
  CHECK(read_with(FileFault::cut).text == "one t");
  CHECK_FALSE(read_with(FileFault::cut).bad);
  for (const FileFault fault : {FileFault::error, FileFault::throws}) {
    CHECK(read_with(fault).text.empty());
    CHECK(read_with(fault).bad);
  }
}

TEST_CASE("a file that is written holds what it took, and the stream knows of the rest") {
  CHECK(written_with(FileCall::write, FileFault::part).text == "bbbbcc");
  CHECK(written_with(FileCall::write, FileFault::part).good);
  CHECK(written_with(FileCall::write, FileFault::full).text == "bb");
  CHECK_FALSE(written_with(FileCall::write, FileFault::full).good);
  CHECK(written_with(FileCall::write, FileFault::error).text.empty());
  CHECK_FALSE(written_with(FileCall::write, FileFault::error).good);
  CHECK(written_with(FileCall::write, FileFault::blind).text == "bbbb");
  CHECK_FALSE(written_with(FileCall::write, FileFault::blind).good);
  CHECK_FALSE(written_with(FileCall::write, FileFault::throws).good);
  CHECK(written_with(FileCall::flush, FileFault::error).text == "bbbb");
  CHECK_FALSE(written_with(FileCall::flush, FileFault::error).good);
}
