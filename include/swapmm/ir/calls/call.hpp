// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/ir/trace.hpp>

// Internal: the calls of a program to the API of an accelerator, as they were hooked. The file format is in
// docs/formats.md; formats/call_log reads and writes it.

namespace swapmm::calls {

/// What a call does.
enum class CallKind : std::uint8_t {
  other,         ///< nothing with data: a query, or a call that was passed through
  create,        ///< makes an object
  retain,        ///< adds a reference to one
  release,       ///< takes a reference away
  build,         ///< builds a program
  set_argument,  ///< sets an argument of a kernel
  launch,        ///< a command: runs a kernel
  write,         ///< a command: host to device
  read,          ///< a command: device to host
  copy,          ///< a command: device to device
  fill,          ///< a command: repeats a pattern
  map,           ///< a command: gives the host an address of device data
  unmap,         ///< a command: ends a map
  migrate,       ///< a command: a hint where data should be
  mark,          ///< a command without work: a marker or a barrier
  foreign,       ///< a command on what is not managed: images, shared virtual memory, functions of the host
  flush,         ///< hands commands to the device
  finish,        ///< waits for a queue
  wait,          ///< waits for events
  set_event,     ///< sets the status of an event that the program made
};
inline constexpr std::array<std::string_view, 20> call_kind_names = {
    "other", "create", "retain", "release", "build", "set_argument", "launch", "write",  "read", "copy",
    "fill",  "map",    "unmap",  "migrate", "mark",  "foreign",      "flush",  "finish", "wait", "set_event"};
[[nodiscard]] constexpr std::string_view to_string(CallKind kind) {
  return call_kind_names[static_cast<std::size_t>(kind)];
}
/// Whether the call puts something into a queue.
[[nodiscard]] constexpr bool is_command(CallKind kind) { return kind >= CallKind::launch && kind <= CallKind::foreign; }

/// What an object is.
enum class ObjectKind : std::uint8_t {
  none,
  context,
  queue,
  buffer,
  part,  ///< of a buffer
  image,
  program,
  kernel,
  event,
  user_event,
  sampler,
  other,
};
inline constexpr std::array<std::string_view, 12> object_kind_names = {"none",  "context",    "queue",   "buffer",
                                                                       "part",  "image",      "program", "kernel",
                                                                       "event", "user_event", "sampler", "other"};
[[nodiscard]] constexpr std::string_view to_string(ObjectKind kind) {
  return object_kind_names[static_cast<std::size_t>(kind)];
}

/// An object of the program: 1, 2, 3, ... in the order in which they were made. 0 is none. Never used again.
using Object = std::uint32_t;

/// Rows of a rectangle in memory: the region's rows lie `row` bytes apart, its slices `slice` bytes.
struct Box {
  std::array<std::uint64_t, 3> origin{};  ///< bytes, rows, slices
  std::array<std::uint64_t, 3> region{};  ///< bytes, rows, slices
  std::uint64_t row = 0;
  std::uint64_t slice = 0;

  friend bool operator==(const Box&, const Box&) = default;
};

/// A memory object of a command, and what the command does with it.
struct Operand {
  Object object = 0;
  Access access = Access::update;         ///< of the range: `write` gives all of its bytes a value
  std::uint64_t offset = 0;               ///< in the object
  std::uint64_t bytes = 0;                ///< from the first to the last byte
  std::optional<Box> box;                 ///< if the bytes are a rectangle
  std::optional<std::uint32_t> argument;  ///< of a launch: the argument's number

  friend bool operator==(const Operand&, const Operand&) = default;
};

/// Memory of the host that a call names.
struct HostData {
  std::uint64_t address = 0;  ///< in that process
  std::uint64_t bytes = 0;
  std::optional<Box> box;
  std::string digest;   ///< SHA-256 of the bytes, 32 bytes; empty if unknown
  std::string content;  ///< the bytes, if they were logged: of a rectangle, row after row

  friend bool operator==(const HostData&, const HostData&) = default;
};

/// The value of a kernel's argument.
struct Argument {
  enum class Type : std::uint8_t { value, object, local, opaque };
  std::uint32_t index = 0;
  Type type = Type::value;
  Object object = 0;        ///< `object`: 0 is a null pointer
  std::uint64_t bytes = 0;  ///< `value` and `local`: the size
  std::string value;        ///< `value`: the bytes, as they lie in memory

  friend bool operator==(const Argument&, const Argument&) = default;
};
inline constexpr std::array<std::string_view, 4> argument_type_names = {"value", "object", "local", "opaque"};

/// One hooked call.
struct Call {
  std::uint64_t sequence = 0;         ///< counts the calls in the order in which they began
  std::uint64_t ended_before = 0;     ///< when it returned, all calls below this number had begun, and no others
  std::uint32_t thread = 0;           ///< counts the threads that called
  std::chrono::nanoseconds begin{0};  ///< since the log began
  std::chrono::nanoseconds end{0};
  CallKind kind = CallKind::other;
  std::string function;     ///< the API's name of it
  std::int32_t status = 0;  ///< as the program got it; 0 is success

  ObjectKind object_kind = ObjectKind::none;  ///< of `object`
  Object object = 0;                          ///< that is made, retained, released, built, launched, ...
  Object parent = 0;  ///< of a new object: its context; of a part its buffer, of a kernel its program or model
  Object queue = 0;   ///< of a command
  std::vector<Object> objects;  ///< more objects: kernels that are made together, programs that are linked
  std::vector<Object> waits;    ///< events that a command or a wait comes after
  Object event = 0;             ///< that a command gave to the program
  bool blocking = false;        ///< the call returns when the command has ended
  std::uint64_t flags = 0;      ///< as the API has them: of memory, queues, maps
  std::uint64_t offset = 0;     ///< of a part in its buffer
  std::uint64_t bytes = 0;      ///< of a new memory object; of a pattern
  std::int64_t value = 0;       ///< the status that is set

  std::vector<Operand> operands;
  std::optional<HostData> host;
  std::optional<Argument> argument;
  std::string name;                    ///< of a kernel; of a context's device
  std::vector<std::uint64_t> offsets;  ///< of a launch; empty: none
  std::vector<std::uint64_t> global;
  std::vector<std::uint64_t> local;  ///< empty: the driver chooses
  std::string source;                ///< of a program
  std::string source_digest;         ///< SHA-256 of source or binary, 32 bytes
  bool is_binary = false;            ///< `source` is a binary, for one device
  std::string options;               ///< of a build

  std::optional<std::chrono::nanoseconds> duration;  ///< of a command on the device, if it is known

  friend bool operator==(const Call&, const Call&) = default;
};

/// All calls of one process.
struct CallLog {
  std::vector<Call> calls;             ///< ascending by `sequence`; calls that never returned are missing
  std::uint64_t process = 0;           ///< its id
  bool has_content = false;            ///< the program's inputs are in it
  bool ended = false;                  ///< the process came to its exit
  std::uint64_t incomplete_bytes = 0;  ///< behind the last whole record: the process was killed while it wrote

  friend bool operator==(const CallLog&, const CallLog&) = default;
};

}  // namespace swapmm::calls
