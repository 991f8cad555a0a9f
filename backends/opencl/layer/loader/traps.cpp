// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <type_traits>

#include "table.hpp"

namespace swapmm::opencl::layer {
namespace {

/// A function of an entry's type that fails as the API does: by its status, or by null and the last argument.
template <class Function>
struct Trap {
  static Function get() { return nullptr; }  // no function in this version of the header
};

template <class Result, class... Arguments>
struct Trap<Result(CL_API_CALL*)(Arguments...)> {
  static Result CL_API_CALL call(Arguments... arguments) {
    if constexpr (std::is_same_v<Result, cl_int>) {
      return CL_INVALID_OPERATION;
    } else if constexpr (!std::is_void_v<Result>) {
      (tell(arguments), ...);
      return Result{};
    }
  }
  static auto get() -> Result(CL_API_CALL*)(Arguments...) { return call; }

 private:
  template <class T>
  static void tell(T argument) {
    if constexpr (std::is_same_v<T, cl_int*>) {
      if (argument != nullptr) *argument = CL_INVALID_OPERATION;
    }
  }
};

template <class Entry>
void set(Entry& entry) {
  entry = Trap<Entry>::get();
}

cl_icd_dispatch make_traps() {
  cl_icd_dispatch table{};
#define SWAPMM_ENTRY(name) set(table.name);
#include "entries.inc"
#undef SWAPMM_ENTRY
  return table;
}

// Not made at the first use: objects compare with its address, and the loader may read it at any time.
const cl_icd_dispatch traps = make_traps();

}  // namespace

const cl_icd_dispatch& trap_table() { return traps; }

}  // namespace swapmm::opencl::layer
