// SPDX-License-Identifier: Apache-2.0
// Custom devices in the C interface.
#include <swapmm/swapmm.h>

#include <bit>
#include <cstddef>
#include <memory>
#include <string_view>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/c_interface/custom_backend.hpp>
#include <swapmm/c_interface/failure.hpp>
#include <swapmm/c_interface/handles.hpp>
#include <swapmm/c_interface/manager_on.hpp>
#include <swapmm/c_interface/structs.hpp>

namespace swapmm::c_interface {
namespace {

struct CustomNative {
  static void* address(const custom::Address& address) { return custom::address_of(address.place); }
  static void* queue(custom::Backend& /*backend*/) { return nullptr; }
  static NativeWaits waits(custom::Backend& /*backend*/, const custom::WaitList& /*waits*/) { return {}; }
  static custom::NativeEvent event(void* event) {
    if (event != nullptr) throw UsageError("swapmm_operation_end(): an event, and a custom device has none");
    return {};
  }
};

// What the manager's backend refers to exists before it.
struct Numbers {
  std::shared_ptr<custom::TensorNumbers> numbers = std::make_shared<custom::TensorNumbers>();
};

const ManagerOptions& checked(const custom::Backend& backend, const ManagerOptions& options) {
  if (options.options.file && !backend.copies_parts()) {
    throw UsageError("a manager with a file needs a custom device with copy_part_to_host and copy_part_to_device");
  }
  if (options.options.check_access || options.options.scrub) {
    throw UsageError("SWAPMM_CHECK_ACCESS and SWAPMM_SCRUB are not available for custom devices");
  }
  return options;
}

class CustomManager final : private Numbers, public ManagerOn<custom::Backend, CustomNative> {
 public:
  CustomManager(const custom::Backend& backend, const ManagerOptions& options)
      : ManagerOn(backend.with(numbers), checked(backend, options)) {}

  swapmm_tensor create(std::string_view name, Bytes bytes, Lifetime lifetime) override {
    return known(ManagerOn::create(name, bytes, lifetime));
  }

  swapmm_tensor create_constant(std::string_view name, Bytes bytes, const std::shared_ptr<FileMemory>& source,
                                Bytes offset) override {
    return known(ManagerOn::create_constant(name, bytes, source, offset));
  }

  void destroy(swapmm_tensor tensor) override {
    const std::uint64_t serial = serial_of(tensor);
    ManagerOn::destroy(tensor);
    numbers->forget(serial);
  }

 private:
  // A new tensor, whose number the backend knows then.
  swapmm_tensor known(swapmm_tensor tensor) {
    try {
      numbers->set(serial_of(tensor), tensor);
    } catch (...) {
      ManagerOn::destroy(tensor);
      throw;
    }
    return tensor;
  }
};

using CustomHandle = BackendOn<custom::Backend, CustomManager>;

swapmm_custom_device read_device(const swapmm_custom_device* device) {
  const swapmm_custom_device& given = required(device, "swapmm_custom_device");
  check_struct_size<swapmm_custom_device>(given.struct_size, offsetof(swapmm_custom_device, copy_part_to_host),
                                          "swapmm_custom_device");
  swapmm_custom_device read = read_struct(given, swapmm_custom_device{});
  if (read.bytes == 0) throw UsageError("swapmm_custom_device: bytes is 0");
  if (read.alignment == 0) read.alignment = 64;
  if (!std::has_single_bit(read.alignment)) throw UsageError("swapmm_custom_device: the alignment is no power of 2");
  if (read.copy_to_host == nullptr || read.copy_to_device == nullptr) {
    throw UsageError("swapmm_custom_device: a function is null");
  }
  return read;
}

}  // namespace
}  // namespace swapmm::c_interface

using namespace swapmm::c_interface;  // NOLINT(*-build-using-namespace)

swapmm_status swapmm_custom_create(const swapmm_custom_device* device, swapmm_backend** backend) {
  return make_backend<CustomHandle>(backend, [&] { return swapmm::custom::Backend(read_device(device)); });
}
