// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <swapmm/backend/testing/faulty.hpp>
#include <swapmm/backend/testing/simulated.hpp>

#include "conformance/conformance.hpp"
#include "conformance/encodings.hpp"
#include "conformance/files.hpp"
#include "conformance/neighbours.hpp"

namespace {

using namespace swapmm;
using simulated::Order;
using simulated::Touch;
using namespace std::chrono_literals;

simulated::Options options(Order order, int pct_depth, QueueKind starved, std::uint64_t seed) {
  simulated::Options options;
  options.device_bytes = Bytes{65536};
  options.max_allocation = Bytes{40000};
  options.alignment = Bytes{48};  // no power of two
  options.order = order;
  options.pct_depth = pct_depth;
  options.starved_queue = starved;
  options.seed = seed;
  options.pieces = 8;
  options.needs_flush = true;
  return options;
}

/// A read of `from` at one step, and a write of `to` at a later one.
template <class View>
auto add_kernel(View from, View to, std::uint8_t value, auto&& launch) {
  return launch(
      simulated::Touches{Touch::read(from), Touch::write(to)},
      [from, to, value] {
        for (std::size_t i = 0; i < to.size() / 2; ++i) to[i] = static_cast<std::uint8_t>(from[i] + value);
      },
      [from, to, value] {
        for (std::size_t i = to.size() / 2; i < to.size(); ++i) to[i] = static_cast<std::uint8_t>(from[i] + value);
      });
}

template <class B>
struct Adaptor {
  using Backend = B;
  using Address = typename B::Address;
  using View = typename B::template View<std::uint8_t>;

  static std::optional<Bytes> device_bytes(B&) { return Bytes{65536}; }
  static std::shared_ptr<Neighbour> neighbour(B&, Bytes bytes) { return simulated::neighbour(bytes); }
  static void add(B& backend, const Address& from, const Address& to, std::size_t size, std::uint8_t value) {
    auto& queue = backend.queue();
    add_kernel(View(from, size), View(to, size), value,
               [&](auto&&... arguments) { queue.launch("add", 10us, arguments...); });
  }
  static typename B::NativeEvent add(B& backend, const typename B::WaitList& waits, const Address& from,
                                     const Address& to, std::size_t size, std::uint8_t value) {
    auto& queue = backend.queue();
    return add_kernel(View(from, size), View(to, size), value,
                      [&](const simulated::Touches& touches, auto read, auto write) {
                        return queue.launch("add", 10us, touches, waits, read, write);
                      });
  }
  static simulated::Backend& device(simulated::Backend& backend) { return backend; }
  static simulated::Backend& device(Faulty<simulated::Backend>& backend) { return backend.inner(); }
  static void verify(B& backend) {
    for (const auto& violation : device(backend).violations()) FAIL_CHECK(violation);
  }
};

template <Order order, int seed, int pct_depth = 2, QueueKind starved = QueueKind::compute>
struct Simulated : Adaptor<simulated::Backend> {
  static simulated::Backend make() { return simulated::Backend(options(order, pct_depth, starved, seed)); }
};

/// The fault adaptor changes nothing as long as nothing is to fail.
template <Order order, int seed>
struct WithoutFault : Adaptor<Faulty<simulated::Backend>> {
  static Faulty<simulated::Backend> make() {
    return Faulty(simulated::Backend(options(order, 2, QueueKind::compute, seed)));
  }
};

using InVirtualTime = Simulated<Order::virtual_time, 1>;
using Uniform1 = Simulated<Order::uniform, 1>;
using Uniform2 = Simulated<Order::uniform, 2>;
using Uniform3 = Simulated<Order::uniform, 3>;
using Uniform4 = Simulated<Order::uniform, 4>;
using Pct2 = Simulated<Order::pct, 1, 2>;
using Pct3 = Simulated<Order::pct, 2, 3>;
using ComputeStarved = Simulated<Order::starved, 1, 2, QueueKind::compute>;
using UploadStarved = Simulated<Order::starved, 2, 2, QueueKind::h2d>;
using DownloadStarved = Simulated<Order::starved, 3, 2, QueueKind::d2h>;
using CopiesFirst = Simulated<Order::copies_first, 1>;
using CopiesLast = Simulated<Order::copies_last, 2>;
using Chosen = Simulated<Order::chosen, 1>;
using TimedWithoutFault = WithoutFault<Order::virtual_time, 1>;
using UniformWithoutFault = WithoutFault<Order::uniform, 5>;

static_assert(NeighbourBackend<Faulty<simulated::Backend>>);

}  // namespace

SWAPMM_CONFORMANCE(InVirtualTime);
SWAPMM_FILE_CONFORMANCE(InVirtualTime);
SWAPMM_NEIGHBOUR_CONFORMANCE(InVirtualTime);
SWAPMM_ENCODING_CONFORMANCE(InVirtualTime);
SWAPMM_CONFORMANCE(Uniform1);
SWAPMM_FILE_CONFORMANCE(Uniform1);
SWAPMM_NEIGHBOUR_CONFORMANCE(Uniform1);
SWAPMM_ENCODING_CONFORMANCE(Uniform1);
SWAPMM_CONFORMANCE(Uniform2);
SWAPMM_FILE_CONFORMANCE(Uniform2);
SWAPMM_NEIGHBOUR_CONFORMANCE(Uniform2);
SWAPMM_ENCODING_CONFORMANCE(Uniform2);
SWAPMM_CONFORMANCE(Uniform3);
SWAPMM_FILE_CONFORMANCE(Uniform3);
SWAPMM_NEIGHBOUR_CONFORMANCE(Uniform3);
SWAPMM_ENCODING_CONFORMANCE(Uniform3);
SWAPMM_CONFORMANCE(Uniform4);
SWAPMM_FILE_CONFORMANCE(Uniform4);
SWAPMM_NEIGHBOUR_CONFORMANCE(Uniform4);
SWAPMM_ENCODING_CONFORMANCE(Uniform4);
SWAPMM_CONFORMANCE(Pct2);
SWAPMM_FILE_CONFORMANCE(Pct2);
SWAPMM_NEIGHBOUR_CONFORMANCE(Pct2);
SWAPMM_ENCODING_CONFORMANCE(Pct2);
SWAPMM_CONFORMANCE(Pct3);
SWAPMM_FILE_CONFORMANCE(Pct3);
SWAPMM_NEIGHBOUR_CONFORMANCE(Pct3);
SWAPMM_ENCODING_CONFORMANCE(Pct3);
SWAPMM_CONFORMANCE(ComputeStarved);
SWAPMM_FILE_CONFORMANCE(ComputeStarved);
SWAPMM_NEIGHBOUR_CONFORMANCE(ComputeStarved);
SWAPMM_ENCODING_CONFORMANCE(ComputeStarved);
SWAPMM_CONFORMANCE(UploadStarved);
SWAPMM_FILE_CONFORMANCE(UploadStarved);
SWAPMM_NEIGHBOUR_CONFORMANCE(UploadStarved);
SWAPMM_ENCODING_CONFORMANCE(UploadStarved);
SWAPMM_CONFORMANCE(DownloadStarved);
SWAPMM_FILE_CONFORMANCE(DownloadStarved);
SWAPMM_NEIGHBOUR_CONFORMANCE(DownloadStarved);
SWAPMM_ENCODING_CONFORMANCE(DownloadStarved);
SWAPMM_CONFORMANCE(CopiesFirst);
SWAPMM_FILE_CONFORMANCE(CopiesFirst);
SWAPMM_NEIGHBOUR_CONFORMANCE(CopiesFirst);
SWAPMM_ENCODING_CONFORMANCE(CopiesFirst);
SWAPMM_CONFORMANCE(CopiesLast);
SWAPMM_FILE_CONFORMANCE(CopiesLast);
SWAPMM_NEIGHBOUR_CONFORMANCE(CopiesLast);
SWAPMM_ENCODING_CONFORMANCE(CopiesLast);
SWAPMM_CONFORMANCE(Chosen);
SWAPMM_FILE_CONFORMANCE(Chosen);
SWAPMM_NEIGHBOUR_CONFORMANCE(Chosen);
SWAPMM_ENCODING_CONFORMANCE(Chosen);
SWAPMM_CONFORMANCE(TimedWithoutFault);
SWAPMM_FILE_CONFORMANCE(TimedWithoutFault);
SWAPMM_NEIGHBOUR_CONFORMANCE(TimedWithoutFault);
SWAPMM_ENCODING_CONFORMANCE(TimedWithoutFault);
SWAPMM_CONFORMANCE(UniformWithoutFault);
SWAPMM_FILE_CONFORMANCE(UniformWithoutFault);
SWAPMM_NEIGHBOUR_CONFORMANCE(UniformWithoutFault);
SWAPMM_ENCODING_CONFORMANCE(UniformWithoutFault);
