// SPDX-License-Identifier: Apache-2.0
#include <swapmm/c_interface/custom_backend.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include <swapmm/base/error.hpp>

namespace swapmm::custom {
namespace {

// Bytes of the device that belong to no tensor: they are the host's here.
std::unique_ptr<std::byte[]> free_bytes(Bytes bytes) {
  return std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes.value));
}

BackendError copy_failed(const char* name, int status) {
  return {BackendError::Kind::failed, status,
          std::string(name) + "() of the custom device returned " + std::to_string(status)};
}

}  // namespace

void* address_of(std::uint64_t place) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(place));  // NOLINT(performance-no-int-to-ptr): no memory
}

Backend::Backend(const swapmm_custom_device& device) : device_(device) {
  Capabilities capabilities;
  capabilities.device_name = device.name == nullptr ? "custom device" : device.name;
  capabilities.alignment = Bytes{device.alignment};
  capabilities.view_alignment = capabilities.alignment;
  capabilities_ = std::make_shared<const Capabilities>(std::move(capabilities));
  device_.name = nullptr;  // the program's text may end
}

Backend Backend::with(std::shared_ptr<const TensorNumbers> numbers) const {
  Backend backend = *this;
  backend.numbers_ = std::move(numbers);
  return backend;
}

DeviceMemory Backend::allocate(Bytes bytes) {
  if (bytes.value > device_.bytes) {
    throw BackendError(BackendError::Kind::out_of_device_memory, 0,
                       "the custom device has " + std::to_string(device_.bytes) + " bytes, and " +
                           std::to_string(bytes.value) + " were asked for",
                       bytes);
  }
  return {capabilities_->alignment.value};  // 0 is no address
}

HostMemory Backend::allocate_host(Bytes bytes, HostKind /*kind*/) {
  std::byte* const made = new (std::nothrow) std::byte[static_cast<std::size_t>(bytes.value)];
  if (made == nullptr) {
    throw BackendError(BackendError::Kind::out_of_host_memory, 0, "allocation of host memory", bytes);
  }
  return {std::unique_ptr<std::byte[]>(made)};
}

Address Backend::address(DeviceMemory& memory, Bytes offset, Bytes /*bytes*/) {
  return {memory.first_place + offset.value};
}

void Backend::copy_to_device(const Address& to, const HostMemory& from, Bytes from_offset, Bytes bytes,
                             std::span<const Event* const> /*waits*/, Event& event) {
  const std::span<const std::byte> source{from.data() + from_offset.value, static_cast<std::size_t>(bytes.value)};
  if (const auto serial = std::exchange(serial_, std::nullopt)) {
    const int status = device_.copy_to_device(device_.context, numbers_->of(*serial), address_of(to.place),
                                              source.data(), bytes.value);
    if (status != 0) throw copy_failed("copy_to_device", status);
  } else {
    std::memcpy(free_bytes(bytes).get(), source.data(), source.size());
  }
  mark(event);
}

void Backend::copy_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes bytes,
                           std::span<const Event* const> /*waits*/, Event& event) {
  const std::span<std::byte> target{to.data() + to_offset.value, static_cast<std::size_t>(bytes.value)};
  if (const auto serial = std::exchange(serial_, std::nullopt)) {
    const int status = device_.copy_to_host(device_.context, numbers_->of(*serial), address_of(from.place),
                                            target.data(), bytes.value);
    if (status != 0) throw copy_failed("copy_to_host", status);
  } else {
    std::memcpy(target.data(), free_bytes(bytes).get(), target.size());
  }
  mark(event);
}

void Backend::copy_part_to_device(const Address& to, Bytes to_offset, const HostMemory& from, Bytes from_offset,
                                  Bytes bytes, std::span<const Event* const> /*waits*/, Event& event) {
  if (to_offset.value == 0) serial_of_parts_ = std::exchange(serial_, std::nullopt);
  if (serial_of_parts_) {
    const int status =
        device_.copy_part_to_device(device_.context, numbers_->of(*serial_of_parts_), address_of(to.place),
                                    to_offset.value, from.data() + from_offset.value, bytes.value);
    if (status != 0) throw copy_failed("copy_part_to_device", status);
  }
  mark(event);
}

void Backend::copy_part_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes bytes,
                                std::span<const Event* const> /*waits*/, Event& event) {
  if (from_offset.value == 0) serial_of_parts_ = std::exchange(serial_, std::nullopt);
  if (serial_of_parts_) {
    const int status =
        device_.copy_part_to_host(device_.context, numbers_->of(*serial_of_parts_), address_of(from.place),
                                  from_offset.value, to.data() + to_offset.value, bytes.value);
    if (status != 0) throw copy_failed("copy_part_to_host", status);
  }
  mark(event);
}

void Backend::read_file(FileMemory& file, Bytes file_offset, HostMemory& to, Bytes to_offset, Bytes bytes,
                        std::span<const Event* const> /*waits*/, Event& event) {
  auto transfer = std::make_shared<detail::FileTransfer>(
      file, file_offset, std::span(to.data() + to_offset.value, static_cast<std::size_t>(bytes.value)));
  transfer->run([] { return true; });
  mark(event);
  event.transfer = std::move(transfer);
}

void Backend::write_file(FileMemory& file, Bytes file_offset, const HostMemory& from, Bytes from_offset, Bytes bytes,
                         std::span<const Event* const> waits, Event& event) {
  auto transfer = std::make_shared<detail::FileTransfer>(
      file, file_offset, std::span(from.data() + from_offset.value, static_cast<std::size_t>(bytes.value)));
  transfer->run([&] {
    return std::ranges::none_of(waits, [&](const Event* before) { return status(*before) == EventStatus::failed; });
  });
  mark(event);
  event.transfer = std::move(transfer);
}

std::optional<std::chrono::nanoseconds> Backend::elapsed(const Event& from, const Event& to) const {
  if (!from.time || !to.time) return std::nullopt;
  return *to.time - *from.time;
}

void Backend::mark(Event& event) const {
  event.transfer.reset();
  if (timing_) {
    event.time = std::chrono::steady_clock::now();
  } else {
    event.time.reset();
  }
}

}  // namespace swapmm::custom
