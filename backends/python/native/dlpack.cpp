// SPDX-License-Identifier: Apache-2.0
// What is in a DLPack capsule. Its deleter is C, because it may be called when Python has ended.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/c_interface/failure.hpp>

#include "python.h"

namespace swapmm::python {
namespace {

// Of dlpack.h.
struct DlTensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t ndim;
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct DlManagedTensor {
  DlTensor tensor;
  void* manager_ctx;
  void (*deleter)(DlManagedTensor*);
};

struct Owned {
  DlManagedTensor managed;
  std::vector<std::int64_t> extents;
};

void destroy(DlManagedTensor* managed) { delete static_cast<Owned*>(managed->manager_ctx); }

}  // namespace
}  // namespace swapmm::python

swapmm_status swapmm_python_dlpack_create(void* data, int32_t device_type, int32_t device_id, uint8_t code,
                                          uint8_t bits, int32_t ndim, const int64_t* shape, void** managed) {
  using namespace swapmm;  // NOLINT(*-build-using-namespace)
  return c_interface::guarded([&] {
    void*& made = c_interface::required(managed, "the pointer to the new tensor");
    made = nullptr;
    if (ndim < 0) throw UsageError("a negative number of dimensions");
    auto owned = std::make_unique<python::Owned>();
    owned->extents.assign(shape, shape + static_cast<std::size_t>(ndim));
    // Without strides the elements lie as in C.
    owned->managed.tensor = {data, device_type, device_id, ndim, code, bits, 1, owned->extents.data(), nullptr, 0};
    owned->managed.manager_ctx = owned.get();
    owned->managed.deleter = python::destroy;
    made = &owned.release()->managed;
  });
}

void swapmm_python_dlpack_destroy(void* managed) {
  if (managed != nullptr) swapmm::python::destroy(static_cast<swapmm::python::DlManagedTensor*>(managed));
}
