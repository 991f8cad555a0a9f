// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace swapmm::kernel_facts {

/// What a function of the language does with memory and with the work item's place.
enum class Builtin : std::uint8_t {
  unknown,      ///< anything, with all that its arguments point to
  place,        ///< tells the work item's place in the launch: get_global_id()
  group_place,  ///< tells its place in a group, whose size the driver may choose: get_local_id()
  nothing,      ///< neither reads nor writes: barrier()
  load,         ///< reads through its last argument, which is an address: vload4()
  store,        ///< writes its first argument through its last: vstore4()
  copy,         ///< writes through the first argument what it reads through the second: async_work_group_copy()
  atomic,       ///< reads and writes through its first argument
  outputs,      ///< writes a result through a pointer, beside the one that it returns: sincos()
  image_read,   ///< result from an image: its bytes, its size
  image_write,  ///< changes an image
  calculates,   ///< result from its arguments alone: sin()
};

/// A declared function by the name that clang gives it, and whether it is declared to read no memory. `trusted`: the
/// program has no functions from elsewhere, so that what is declared so is a function of the language.
[[nodiscard]] Builtin builtin(std::string_view name, bool reads_no_memory, bool trusted);

}  // namespace swapmm::kernel_facts
