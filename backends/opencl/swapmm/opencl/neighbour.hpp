// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <swapmm/backend/neighbour.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/opencl/handle.hpp>

namespace swapmm::opencl {

namespace detail {
class NeighbourLink;  // the queues and the staging memory between a device and a neighbour
}  // namespace detail

/// Memory of a second device of the backend's context. Copies pass through a few pieces of pinned host memory, because
/// a buffer that two devices use may take memory on both. Two reads and writes run at the same time.
class SWAPMM_EXPORT Neighbour final : public swapmm::Neighbour {
 public:
  /// Up to `bytes` on `device`, and `staging` bytes of host memory for copies, a part of Options::host_budget. Throws
  /// UsageError if the device is null, or `staging` less than 4 KiB.
  Neighbour(cl_device_id device, Bytes bytes, Bytes staging);
  ~Neighbour() override;

  [[nodiscard]] cl_device_id device() const { return device_; }  ///< the device whose memory it is

  /// @{
  /// See swapmm::Neighbour.
  [[nodiscard]] Bytes capacity() const override { return bytes_; }
  [[nodiscard]] Bytes alignment() const override { return alignment_; }
  [[nodiscard]] Bytes largest_allocation() const override { return largest_; }
  [[nodiscard]] Bytes staging() const override { return staging_; }
  [[nodiscard]] std::string name() const override { return name_; }
  /// @}

 private:
  friend class Backend;
  cl_device_id device_;
  Bytes bytes_;
  Bytes staging_;
  Bytes alignment_;
  Bytes largest_;
  std::string name_;
  mutable std::weak_ptr<detail::NeighbourLink> link_;  // as long as memory of it exists
};

/// A neighbour for Options::neighbours: see Neighbour. The context of the manager's backend must have the device, too.
[[nodiscard]] SWAPMM_EXPORT std::shared_ptr<Neighbour> neighbour(cl_device_id device, Bytes bytes,
                                                                 Bytes staging = Bytes{8U << 20U});

}  // namespace swapmm::opencl
