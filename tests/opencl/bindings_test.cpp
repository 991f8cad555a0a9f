// SPDX-License-Identifier: Apache-2.0
// Wait lists as objects of the libraries that wrap the API, where they are installed. tests/interop runs programs of
// those libraries.

#if __has_include(<CL/opencl.hpp>)
#include <swapmm/opencl/clhpp.hpp>
#define SWAPMM_TEST_HAS_CLHPP
#endif
#if __has_include(<boost/compute/core.hpp>)
#include <swapmm/opencl/boost_compute.hpp>
#define SWAPMM_TEST_HAS_BOOST_COMPUTE
#endif

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include <swapmm/opencl/backend.hpp>

#include "opencl/api_calls.hpp"
#include "opencl/device.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

/// Calls look(waits, events) with wait lists of several lengths, and with what they have. Afterwards no event is left.
template <class Look>
[[maybe_unused]] void for_wait_lists(Look&& look) {
  opencl::Backend backend = test::backend();
  const std::int64_t at_rest = api_objects().events;
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{11}}) {
    CAPTURE(count);
    std::vector<cl_event> natives;
    std::vector<opencl::Event> events;
    std::vector<const opencl::Event*> waits;
    for (std::size_t i = 0; i < count; ++i) {
      cl_int status = CL_SUCCESS;
      natives.push_back(clCreateUserEvent(backend.context(), &status));
      REQUIRE(status == CL_SUCCESS);
      REQUIRE(clSetUserEventStatus(natives.back(), CL_COMPLETE) == CL_SUCCESS);
      events.push_back(backend.make_event());
      backend.adopt(events.back(), natives.back());
    }
    for (const opencl::Event& event : events) waits.push_back(&event);
    look(backend.wait_list(waits), natives);
    CHECK(api_objects().events == at_rest + static_cast<std::int64_t>(count));
  }
  CHECK(api_objects().events == at_rest);
}

}  // namespace

#ifdef SWAPMM_TEST_HAS_CLHPP
TEST_CASE("the events of CL/opencl.hpp are those of the wait list in order, each with a reference of its own") {
  for_wait_lists([](const opencl::WaitList& waits, const std::vector<cl_event>& natives) {
    const std::int64_t before = api_objects().events;
    const std::vector<cl::Event> events = opencl::as_cl_events(waits);
    std::vector<cl_event> seen;
    for (const cl::Event& event : events) seen.push_back(event());
    CHECK(seen == natives);
    CHECK(api_objects().events == before + static_cast<std::int64_t>(natives.size()));
  });
}
#endif

#ifdef SWAPMM_TEST_HAS_BOOST_COMPUTE
TEST_CASE("the wait list of Boost.Compute has the events in order, each with a reference of its own") {
  for_wait_lists([](const opencl::WaitList& waits, const std::vector<cl_event>& natives) {
    const std::int64_t before = api_objects().events;
    const boost::compute::wait_list list = opencl::as_compute_waits(waits);
    const cl_event* const events = list.get_event_ptr();
    CHECK(std::vector<cl_event>(events, events + list.size()) == natives);
    CHECK(api_objects().events == before + static_cast<std::int64_t>(natives.size()));
  });
}
#endif
