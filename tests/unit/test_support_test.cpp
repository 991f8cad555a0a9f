// SPDX-License-Identifier: Apache-2.0
// The tools of the other tests do what those tests believe.

#include <doctest/doctest.h>

#include <cstddef>
#include <istream>
#include <memory>
#include <new>
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

TEST_CASE("a stream in small pieces gives every byte") {
  for (const std::size_t piece : {1U, 2U, 3U, 100U}) {
    FaultyInput buffer("one two three", piece);
    std::istream stream(&buffer);
    std::string text(13, ' ');
    CHECK(stream.read(text.data(), 13));
    CHECK(text == "one two three");
    CHECK(stream.get() == std::char_traits<char>::eof());
    CHECK_FALSE(stream.bad());
    CHECK_FALSE(buffer.fired());
  }
}

TEST_CASE("a stream that fails in the middle ends early or turns bad") {
  for (const auto fault : {StreamFault::ends, StreamFault::throws}) {
    FaultyInput buffer("one two three", never, 5, fault);
    std::istream stream(&buffer);
    std::string text(13, ' ');
    stream.read(text.data(), 13);
    CHECK(text.substr(0, 5) == "one t");
    CHECK_FALSE(stream.good());
    CHECK(stream.bad() == (fault == StreamFault::throws));
    CHECK(buffer.fired());
  }
}

TEST_CASE("a full disk takes what fits and turns the stream bad") {
  for (const auto fault : {StreamFault::ends, StreamFault::throws}) {
    FaultyOutput buffer(7, fault);
    std::ostream stream(&buffer);
    stream << "one "
           << "two three";
    CHECK(buffer.text() == "one two");
    CHECK(stream.bad());
    CHECK(buffer.fired());
  }
}
