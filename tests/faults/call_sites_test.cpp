// SPDX-License-Identifier: Apache-2.0
// What a list of call sites is worth hangs on their names.

#include <doctest/doctest.h>

#include "faults/parts/call_sites.hpp"

using namespace swapmm;
using namespace swapmm::test;

TEST_CASE("of what compilers and linkers write the name of the function stays") {
  CHECK(short_name("void swapmm::runtime::Timeline<B>::mark(swapmm::QueueKind) [with B = swapmm::Faulty<int>]") ==
        "Timeline::mark");
  CHECK(short_name("swapmm::runtime::Timeline<B>::Slot& swapmm::runtime::Timeline<B>::next(QueueKind) [B = int]") ==
        "Timeline::next");
  CHECK(short_name("swapmm::validate(swapmm::Trace const&, std::function<void (int)>)") == "swapmm::validate");
  CHECK(short_name("swapmm::runtime::Store<B>::swap_in(Rec&)::<lambda()> [with B = int]") == "Store::swap_in");
  CHECK(short_name("swapmm::(anonymous namespace)::Search::run(bool)") == "Search::run");
  CHECK(short_name("bool swapmm::operator==(swapmm::Shape const&, swapmm::Shape const&)") == "swapmm::operator==");
}
