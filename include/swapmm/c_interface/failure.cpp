// SPDX-License-Identifier: Apache-2.0
#include <swapmm/c_interface/failure.hpp>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include <swapmm/version.hpp>

namespace swapmm::c_interface {
namespace {

struct LastError {
  std::string kept;
  const char* text = "";
};
thread_local LastError last;

swapmm_status note(swapmm_status status, const char* text) noexcept {
  try {
    last.kept = text;
    last.text = last.kept.c_str();
  } catch (...) {
    last.text = "an error whose text finds no memory";
  }
  return status;
}

}  // namespace

swapmm_status failure() noexcept {
  // Derived types come first.
  try {
    throw;
  } catch (const BundleTooLarge& error) {
    return note(SWAPMM_BUNDLE_TOO_LARGE, error.what());
  } catch (const UndefinedValue& error) {
    return note(SWAPMM_UNDEFINED_VALUE, error.what());
  } catch (const ConcurrentUse& error) {
    return note(SWAPMM_CONCURRENT_USE, error.what());
  } catch (const NestedOperation& error) {
    return note(SWAPMM_NESTED_OPERATION, error.what());
  } catch (const UsageError& error) {
    return note(SWAPMM_USAGE_ERROR, error.what());
  } catch (const DroppedValue& error) {
    return note(SWAPMM_DROPPED_VALUE, error.what());
  } catch (const PlanRefused& error) {
    return note(SWAPMM_PLAN_REFUSED, error.what());
  } catch (const AccessViolation& error) {
    return note(SWAPMM_ACCESS_VIOLATION, error.what());
  } catch (const BackendError& error) {
    switch (error.kind) {
      case BackendError::Kind::out_of_device_memory:
      case BackendError::Kind::out_of_host_memory: return note(SWAPMM_OUT_OF_MEMORY, error.what());
      case BackendError::Kind::device_lost: return note(SWAPMM_DEVICE_LOST, error.what());
      case BackendError::Kind::failed: break;
    }
    return note(SWAPMM_BACKEND_ERROR, error.what());
  } catch (const OutOfMemory& error) {
    return note(SWAPMM_OUT_OF_MEMORY, error.what());
  } catch (const DeviceLost& error) {
    return note(SWAPMM_DEVICE_LOST, error.what());
  } catch (const WorkFailed& error) {
    return note(SWAPMM_WORK_FAILED, error.what());
  } catch (const std::bad_alloc&) {
    return note(SWAPMM_OUT_OF_MEMORY, "the process has no memory left");
  } catch (const std::length_error&) {
    return note(SWAPMM_OUT_OF_MEMORY, "more memory is needed than a process can have");
  } catch (const std::exception& error) {
    return note(SWAPMM_INTERNAL_ERROR, error.what());
  } catch (...) {
    return note(SWAPMM_INTERNAL_ERROR, "an exception of an unknown type");
  }
}

}  // namespace swapmm::c_interface

const char* swapmm_last_error(void) { return swapmm::c_interface::last.text; }

#define SWAPMM_TEXT_OF(number) #number
#define SWAPMM_VERSION_TEXT(major, minor, patch) \
  SWAPMM_TEXT_OF(major) "." SWAPMM_TEXT_OF(minor) "." SWAPMM_TEXT_OF(patch)
const char* swapmm_version(void) {
  return SWAPMM_VERSION_TEXT(SWAPMM_VERSION_MAJOR, SWAPMM_VERSION_MINOR, SWAPMM_VERSION_PATCH);
}
