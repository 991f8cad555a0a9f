// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <type_traits>

#include "other_loaders.hpp"
#include "table.hpp"

namespace swapmm::opencl::layer {
namespace {

/// True while a call is passed on to the layer's own function: what comes back then is one that it does not know.
thread_local bool passes_on = false;

struct PassesOn {
  PassesOn() { passes_on = true; }
  PassesOn(const PassesOn&) = delete;
  PassesOn& operator=(const PassesOn&) = delete;
  ~PassesOn() { passes_on = false; }
};

/// A function of an entry's type that passes the call on, or fails as the API does: by its status, or by null and the
/// last argument.
template <auto Entry, class Function>
struct Trap {
  static Function get() { return nullptr; }  // no function in this version of the header
};

template <auto Entry, class Result, class... Arguments>
struct Trap<Entry, Result(CL_API_CALL*)(Arguments...)> {
  static Result CL_API_CALL call(Arguments... arguments) {
    if (const auto function = layer_table().*Entry; function != nullptr && !passes_on) {
      start_other_loaders();
      const PassesOn now;
      return function(arguments...);
    }
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

template <auto Entry>
void set(cl_icd_dispatch& table) {
  auto& function = table.*Entry;
  function = Trap<Entry, std::remove_reference_t<decltype(function)>>::get();
}

cl_icd_dispatch make_traps() {
  cl_icd_dispatch table{};
#define SWAPMM_ENTRY(name) set<&cl_icd_dispatch::name>(table);
#include "entries.inc"
#undef SWAPMM_ENTRY
  return table;
}

// Not made at the first use: objects compare with its address, and the loader may read it at any time.
const cl_icd_dispatch traps = make_traps();

}  // namespace

const cl_icd_dispatch& trap_table() { return traps; }

}  // namespace swapmm::opencl::layer
