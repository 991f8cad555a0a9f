// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

#include <swapmm/ir/calls/call.hpp>

#include "recorder.hpp"

// A function of the table with a record around it.

namespace swapmm::opencl::layer::record {

/// One call while it runs.
class Hook {
 public:
  explicit Hook(const char* function);
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  calls::Call call;
  cl_event own_event = nullptr;  ///< of a command, if the program wants none
  cl_event* event = nullptr;     ///< where the event of a command comes
  cl_int own_status = CL_SUCCESS;
  cl_int* status = nullptr;  ///< where the status comes, for functions that return a handle
  bool wants_event = false;  ///< the time of the command, or its end, is of interest

  [[nodiscard]] bool succeeded() const { return call.status == CL_SUCCESS; }

  /// Takes what the types of the arguments tell: objects, wait list, event. Arguments in the order of the function.
  template <class... Arguments>
  void take_all(Arguments&... arguments) {
    (take(arguments), ...);
  }
  /// The last argument of a function that returns a handle.
  void take_status(cl_int*& where) {
    if (where == nullptr) where = &own_status;
    status = where;
  }
  template <class Other>
  void take_status(Other& /*argument*/) {}

  /// What the call returned. Then its record is written.
  void returned();
  /// Runs a part of the recording. The program must not meet its exceptions: the log ends instead.
  template <class Part>
  void guarded(Part part) {
    try {
      if (recorder().is_on()) part();
    } catch (const std::exception& error) {
      recorder().fail(error.what());
    }
  }

  /// A new object of the program.
  calls::Object made(const void* handle, calls::ObjectKind kind);
  /// What a command brings to the host: its digest, now or when it has ended.
  void note_output(calls::HostData host);

 private:
  void take(cl_uint& count) { count_ = count; }
  void take(const cl_event*& list);
  void take(cl_event*& where);
  void take(cl_command_queue& handle);
  void take(cl_mem& handle) { object(handle); }
  void take(cl_context& handle) { object(handle); }
  void take(cl_program& handle) { object(handle); }
  void take(cl_kernel& handle) { object(handle); }
  void take(cl_event& handle) { object(handle); }
  void take(cl_sampler& handle) { object(handle); }
  template <class Other>
  void take(Other& /*argument*/) {}
  void object(const void* handle);

  cl_uint count_ = 0;  // the last number, which is that of a list behind it
  bool has_output_ = false;
};

/// Wraps an entry of the table. `Special` may have functions before(Hook&, arguments&...), which is called before the
/// layer's function and may change the arguments, and after(Hook&, result, arguments...). With a member `timed` the
/// time of the command is logged.
template <auto entry, class Special, class Function>
struct Wrapper {
  static constexpr bool exists = false;  // not a function in this version of the API's headers
};

template <auto entry, class Special, class Result, class... Arguments>
struct Wrapper<entry, Special, Result(CL_API_CALL*)(Arguments...)> {
  static constexpr bool exists = true;
  static inline const char* name = "";

  static Result CL_API_CALL call(Arguments... arguments) {
    Hook hook(name);
    hook.guarded([&] {
      if constexpr (requires { Special::timed; }) hook.wants_event = true;
      hook.take_all(arguments...);
      if constexpr (std::is_pointer_v<Result>) {
        hook.take_status(std::get<sizeof...(Arguments) - 1>(std::tie(arguments...)));
      }
      if constexpr (requires { Special::before(hook, arguments...); }) Special::before(hook, arguments...);
    });
    if constexpr (std::is_void_v<Result>) {
      (next.*entry)(arguments...);
      hook.returned();
    } else {
      const Result result = (next.*entry)(arguments...);
      if constexpr (std::is_same_v<Result, cl_int>) {
        hook.call.status = result;
      } else if (hook.status != nullptr) {
        hook.call.status = *hook.status;
      }
      if constexpr (requires { Special::after(hook, result, arguments...); }) {
        hook.guarded([&] { Special::after(hook, result, arguments...); });
      }
      hook.returned();
      return result;
    }
  }
};

/// A function without anything special.
struct Plain {};

template <auto entry, class Special = Plain>
void wrap(cl_icd_dispatch& table, const char* name) {
  using Function = std::remove_cvref_t<decltype(table.*entry)>;
  using Wrapped = Wrapper<entry, Special, Function>;
  if constexpr (Wrapped::exists) {
    if (next.*entry == nullptr) return;
    Wrapped::name = name;
    table.*entry = &Wrapped::call;
  }
}

#define SWAPMM_WRAP(name, Special) wrap<&cl_icd_dispatch::name, Special>(table, #name)

}  // namespace swapmm::opencl::layer::record
