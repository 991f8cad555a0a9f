// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program of a user of the library, as data: so that it can be drawn from a seed, run again, printed and shrunk.

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/options.hpp>

namespace swapmm::test {

/// Tensors live in numbered slots, promised downloads too, and so do host views: a slot has one at most, which follows
/// its tensor through exchanges, and may outlive it. The value of a tensor is kept in one to four slices.
inline constexpr std::size_t slot_count = 16;
inline constexpr std::size_t promise_count = 6;
inline constexpr std::size_t most_slices = 4;
inline constexpr std::size_t most_parts = 6;

/// What the program does next. An action that makes no sense where it stands (a tensor that does not exist) is left
/// out when the program runs, so any list of actions is a program.
enum class ActionKind : std::uint8_t {
  make,             ///< slot, bytes, lifetime, slices
  destroy,          ///< slot
  exchange,         ///< slot, other: std::swap of two handles
  begin_iteration,  ///< name
  end_iteration,
  operation,  ///< name, parts, form, bytes of scratch
  upload,     ///< slot, slices
  download,   ///< slot, slices
  promise,    ///< slot, slices, other: number of the promise
  collect,    ///< other
  drop,       ///< other
  synchronize,
  plan,        ///< runs the planning job that waits, if any
  set_budget,  ///< bytes: the device budget from now on
  outlived,    ///< slot, other: how a view is used whose tensor was in that slot and is gone; must be refused
  open_view,   ///< slot, slices, other: a host view in that memory; must be refused while another one has these slices
  close_view,  ///< slot
  look,        ///< slot, slices, other: the host reads through the open host view
  poke,        ///< slot, slices, other: it writes through it
  write_back,  ///< slot: what was written there is copied to the tensor
};

/// How an operation is given to the manager and what its callable does.
struct LaunchForm {
  bool gives_event = false;  ///< the second form of a callable
  bool two_phases = false;   ///< reads at one step, writes at a later one
  bool two_launches = false;
  bool by_bundle = true;    ///< run(name, bundle, ...); else reads(), writes(), updates(), where the parts allow it
  bool replayable = false;  ///< declared to be, by bundle, where may_be_replayed() allows it
};

/// By which way through views the program comes to a part of a tensor. The bytes are the same.
enum class ViewForm : std::uint8_t {
  direct,          ///< a slice of the tensor
  slice_of_slice,  ///< what lies behind the part's beginning, and the part of that
  rows,            ///< the tensor as a matrix, and rows of it
  reshaped,        ///< the slice, as a matrix
};
inline constexpr std::size_t view_form_count = 4;

/// What is asked of a view that has outlived its tensor; Action::other.
enum class OutlivedUse : std::uint8_t { upload, download, promise, operation };
inline constexpr std::size_t outlived_use_count = 4;

/// The memory of a host view; Action::other.
enum class ViewMemory : std::uint8_t {
  own,    ///< of the view, lazy where that is possible
  eager,  ///< the same, and never lazy
  array,  ///< of the program
};
inline constexpr std::size_t view_memory_count = 3;

/// How the program comes to memory of a host view; Action::other. The bytes are the same.
enum class ViewTouch : std::uint8_t {
  direct,    ///< a touch, which cannot be refused; where it could be, as the other one
  prepared,  ///< it says before what it will touch
};
inline constexpr std::size_t view_touch_count = 2;

/// Slices [first, first + count) of the tensor in a slot; all of them where it has fewer.
struct Part {
  std::uint8_t slot = 0;
  Access access = Access::read;
  std::uint8_t first = 0;
  std::uint8_t count = most_slices;
  ViewForm view = ViewForm::direct;
};

struct Action {
  ActionKind kind = ActionKind::synchronize;
  std::uint8_t slot = 0;
  std::uint8_t other = 0;
  std::uint8_t first = 0;  ///< slice
  std::uint8_t slices = most_slices;
  std::uint8_t name = 0;
  std::uint8_t part_count = 0;
  bool uneven = false;               ///< of make: slices begin at any byte; operations use the tensor as a whole
  ViewForm view = ViewForm::direct;  ///< of uploads, downloads and promises
  Lifetime lifetime = Lifetime::observed;
  LaunchForm form{};
  std::uint32_t bytes = 0;
  std::array<Part, most_parts> parts{};
};

/// A file for what fits nowhere else.
struct FileSetup {
  Bytes capacity;
  Bytes alignment;
  bool holds_all = false;  ///< it never is too small

  friend bool operator==(const FileSetup&, const FileSetup&) = default;
};

/// Another device's memory, for what does not fit on the device.
struct NeighbourSetup {
  Bytes capacity;
  Bytes alignment;
  Bytes largest_allocation;
  std::uint64_t in_per_second = 0;   ///< bytes of copies from there
  std::uint64_t out_per_second = 0;  ///< bytes of copies to there

  friend bool operator==(const NeighbourSetup&, const NeighbourSetup&) = default;
};

struct TestProgram {
  std::uint64_t seed = 0;  ///< also for the order in which things end
  simulated::Options device{};
  Options manager{};
  std::optional<FileSetup> file{};
  std::vector<NeighbourSetup> neighbours{};
  /// Options::codec_staging, beside the budget of `manager`: its tensors have as much room as without.
  Bytes codec_staging{};
  SchedulerOptions scheduler{};
  /// Each iteration reads values where all others of its place in the cycle read them, so that no value may be lost.
  bool steady = false;
  bool reads_all = false;     ///< behind its last action the host reads each value that there is
  bool ends_plainly = false;  ///< nothing is collected, and everything goes in one order, the manager last
  std::vector<Action> actions{};

  /// Programs that run at the same time, in the same thread, each on a device of its own; all managers share links.
  std::vector<TestProgram> beside{};
  /// Of those; ignored without any.
  struct Sharing {
    LinkCapacities capacities{};
    bool one_clock = true;  ///< the devices have one clock, and can wait for each other
    bool in_turn = true;    ///< an iteration of one program, then one of the next; else action by action, in any order

    friend bool operator==(const Sharing&, const Sharing&) = default;
  } sharing{};
};

/// Whether it, and those beside it, are TestProgram::steady.
[[nodiscard]] bool all_steady(const TestProgram& program);

/// Whether it opens host views.
[[nodiscard]] bool has_host_views(const TestProgram& program);

/// Whether what the operation uses stays until the iteration ends, so that it may be declared replayable.
[[nodiscard]] bool may_be_replayed(const TestProgram& program, std::size_t action);

[[nodiscard]] std::string_view iteration_name(std::uint8_t number);
[[nodiscard]] std::string_view to_string(simulated::Order order);
[[nodiscard]] std::string operation_name(std::uint8_t number);

/// One line per option that is not the default, and one per action.
std::ostream& operator<<(std::ostream& out, const TestProgram& program);
std::ostream& operator<<(std::ostream& out, const Action& action);

}  // namespace swapmm::test
