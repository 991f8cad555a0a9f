// SPDX-License-Identifier: Apache-2.0
#include <swapmm/cuda/status.hpp>

#include <string>
#include <string_view>

namespace swapmm::cuda {

// By number, because not every version of the headers has all names.
bool sticks(cudaError_t status) {
  switch (static_cast<int>(status)) {
    case 4:    // cudaErrorCudartUnloading: the process ends
    case 214:  // cudaErrorECCUncorrectable
    case 220:  // cudaErrorNvlinkUncorrectable
    case 226:  // cudaErrorContained
    case 700:  // cudaErrorIllegalAddress
    case 702:  // cudaErrorLaunchTimeout
    case 709:  // cudaErrorContextIsDestroyed
    case 710:  // cudaErrorAssert
    case 714:  // cudaErrorHardwareStackError
    case 715:  // cudaErrorIllegalInstruction
    case 716:  // cudaErrorMisalignedAddress
    case 717:  // cudaErrorInvalidAddressSpace
    case 718:  // cudaErrorInvalidPc
    case 719:  // cudaErrorLaunchFailure
    case 721:  // cudaErrorTensorMemoryLeak
    case 810:  // cudaErrorMpsClientTerminated
    case 911:  // cudaErrorExternalDevice
    case 999:  // cudaErrorUnknown
      return true;
    default: return false;
  }
}

BackendError::Kind kind_of(cudaError_t status) {
  if (status == cudaErrorMemoryAllocation) return BackendError::Kind::out_of_device_memory;
  return sticks(status) ? BackendError::Kind::device_lost : BackendError::Kind::failed;
}

void forget(cudaError_t status) noexcept {
  if (!sticks(status) && cudaPeekAtLastError() == status) (void)cudaGetLastError();
}

BackendError error_of(cudaError_t status, std::string_view call, const std::string& detail) {
  forget(status);
  return {kind_of(status), static_cast<long>(status),
          std::string(call) + detail + ": " + cudaGetErrorName(status) + " (" +
              std::to_string(static_cast<int>(status)) + "): " + cudaGetErrorString(status)};
}

}  // namespace swapmm::cuda
