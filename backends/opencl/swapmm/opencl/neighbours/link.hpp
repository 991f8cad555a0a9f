// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the backend; not for programs.

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/handle.hpp>
#include <swapmm/opencl/session.hpp>

namespace swapmm::opencl::detail {

/// The copies between a device and a neighbour, in both directions. A value is copied in parts: the device's queue
/// copies between the device and a slot of host memory, the neighbour's queue between the slot and the neighbour. Both
/// work at the same time, on two slots for each direction. All waits are events.
class NeighbourLink {
 public:
  /// A part of a buffer.
  struct Part {
    cl_mem buffer;
    std::size_t offset;
  };

  /// `path`: its copies are in the queues of that path.
  NeighbourLink(std::shared_ptr<Session> session, cl_device_id neighbour, std::size_t path, HostMemory staging,
                Bytes size);
  NeighbourLink(const NeighbourLink&) = delete;
  NeighbourLink& operator=(const NeighbourLink&) = delete;
  ~NeighbourLink();

  [[nodiscard]] const Session& session() const { return *session_; }
  [[nodiscard]] std::size_t path() const { return neighbour_path(in_.kind); }

  /// Makes the first use of a new buffer, so that a driver that has no memory for it says so here.
  void use_first(cl_mem buffer, std::size_t size);
  /// Queues the copy of `size` bytes from the neighbour to the device, after `waits`. Returns the event of its end.
  [[nodiscard]] Handle<cl_event> copy_in(const Part& to, const Part& from, std::size_t size,
                                         std::span<const cl_event> waits);
  /// The same from the device to the neighbour.
  [[nodiscard]] Handle<cl_event> copy_out(const Part& to, const Part& from, std::size_t size,
                                          std::span<const cl_event> waits);
  /// The host's own copies. They wait until they are done.
  void read(const Part& from, std::span<std::byte> to);
  void write(const Part& to, std::span<const std::byte> from);

 private:
  static constexpr std::size_t slots_each = 2;

  /// Host memory that a part of a value passes through.
  struct Slot {
    std::byte* data = nullptr;
    Handle<cl_event> left;  // the last copy from it: it may be filled again
  };
  struct Direction {
    QueueKind kind;
    Handle<cl_command_queue> queue;  // the neighbour's
    std::array<Slot, slots_each> slots;
    std::size_t next = 0;
  };
  enum class Side : std::uint8_t { device, neighbour };

  [[nodiscard]] Handle<cl_event> copy(Direction& way, Part to, Part from, std::size_t size,
                                      std::span<const cl_event> waits);
  [[nodiscard]] Handle<cl_event> read_into(Slot& slot, cl_command_queue queue, const Part& from, std::size_t size,
                                           std::span<const cl_event> waits);
  void leave(Slot& slot, cl_command_queue queue, const Part& to, std::size_t size, const Handle<cl_event>& filled);
  [[nodiscard]] Handle<cl_event> end_of(const Direction& way, std::size_t parts);

  std::shared_ptr<Session> session_;
  HostMemory staging_;
  std::size_t slot_bytes_;
  Direction in_;
  Direction out_;
};

}  // namespace swapmm::opencl::detail
