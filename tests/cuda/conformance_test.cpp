// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <swapmm/backend/testing/faulty.hpp>
#include <swapmm/cuda/devices.hpp>

#include "conformance/conformance.hpp"
#include "conformance/encodings.hpp"
#include "conformance/files.hpp"
#include "cuda/support.hpp"
#include "support/missing_device.hpp"

namespace {

using namespace swapmm;

std::string missing() {
  const cuda::DeviceList list = cuda::devices();
  for (const cuda::Device& device : list.devices) {
    if (device.obstacle.empty()) return {};
  }
  return list.devices.empty() ? list.why_none : "no CUDA device can be used: " + list.devices.front().obstacle;
}
[[maybe_unused]] const bool needs_a_device = [] {
  test::find_missing_device = missing;
  return true;
}();

/// What all adaptors share; `B` is the backend or something around it.
template <class B>
struct Adaptor {
  using Backend = B;
  using Address = typename B::Address;
  using View = typename B::template View<std::uint8_t>;

  // Less may be free, and more may be taken back in the meantime: nothing to count on.
  static std::optional<Bytes> device_bytes(B&) { return std::nullopt; }

  static void add(B& backend, const Address& from, const Address& to, std::size_t size, std::uint8_t value) {
    test::launch_add(backend.queue(), View(from, size).data(), View(to, size).data(), size, value);
  }
  static typename B::NativeEvent add(B& backend, const typename B::WaitList& waits, const Address& from,
                                     const Address& to, std::size_t size, std::uint8_t value) {
    waits.queue_on(backend.queue());
    add(backend, from, to, size, value);
    return {};
  }
  static void verify(B&) { CHECK(cudaPeekAtLastError() == cudaSuccess); }
};

struct Own : Adaptor<cuda::Backend> {
  static cuda::Backend make() { return test::cuda_backend(); }
};

/// Operations of the second form run on a stream of the callable's, and give an event recorded there.
struct OtherStream : Adaptor<cuda::Backend> {
  static cuda::Backend make() { return test::cuda_backend(); }
  using Adaptor::add;
  static cuda::NativeEvent add(cuda::Backend&, const cuda::WaitList& waits, const Address& from, const Address& to,
                               std::size_t size, std::uint8_t value) {
    static const cudaStream_t other = [] {
      cudaStream_t made = nullptr;
      REQUIRE(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking) == cudaSuccess);
      return made;
    }();
    static const cudaEvent_t behind = [] {
      cudaEvent_t made = nullptr;
      REQUIRE(cudaEventCreateWithFlags(&made, cudaEventDisableTiming) == cudaSuccess);
      return made;
    }();
    waits.queue_on(other);
    test::launch_add(other, View(from, size).data(), View(to, size).data(), size, value);
    REQUIRE(cudaEventRecord(behind, other) == cudaSuccess);
    return behind;
  }
};

/// Operations run on a stream of the program's.
struct GivenStream : Adaptor<cuda::Backend> {
  static cuda::Backend make() {
    static const cudaStream_t given = [] {
      (void)test::cuda_backend();  // makes its device the current one
      cudaStream_t made = nullptr;
      REQUIRE(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking) == cudaSuccess);
      return made;
    }();
    return test::cuda_backend({.stream = given});
  }
};
struct DefaultStream : Adaptor<cuda::Backend> {
  static cuda::Backend make() { return test::cuda_backend({.stream = nullptr}); }
};

struct WithoutFault : Adaptor<Faulty<cuda::Backend>> {
  static Faulty<cuda::Backend> make() { return Faulty(test::cuda_backend()); }
};

static_assert(Backend<Faulty<cuda::Backend>>);

}  // namespace

SWAPMM_CONFORMANCE(Own);
SWAPMM_FILE_CONFORMANCE(Own);
SWAPMM_ENCODING_CONFORMANCE(Own);
SWAPMM_CONFORMANCE(OtherStream);
SWAPMM_FILE_CONFORMANCE(OtherStream);
SWAPMM_ENCODING_CONFORMANCE(OtherStream);
SWAPMM_CONFORMANCE(GivenStream);
SWAPMM_FILE_CONFORMANCE(GivenStream);
SWAPMM_ENCODING_CONFORMANCE(GivenStream);
SWAPMM_CONFORMANCE(DefaultStream);
SWAPMM_FILE_CONFORMANCE(DefaultStream);
SWAPMM_CONFORMANCE(WithoutFault);
SWAPMM_FILE_CONFORMANCE(WithoutFault);
SWAPMM_ENCODING_CONFORMANCE(WithoutFault);

// Not run but under compute-sanitizer, which must see it.
TEST_CASE("planted: a kernel writes behind the end of its tensor" * doctest::skip()) {
  cuda::Backend backend = test::cuda_backend();
  cuda::DeviceMemory memory = backend.allocate(Bytes{256});
  const cuda::Address whole = backend.address(memory, Bytes{0}, Bytes{256});
  test::launch_write_behind(backend.queue(), cuda::View<std::uint8_t>(whole, 256), 256);
  backend.finish();
}
