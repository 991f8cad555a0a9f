// SPDX-License-Identifier: Apache-2.0
// NVTX ranges, and the other work around an operation.
#include <swapmm/cuda/ranges.hpp>

#include <sys/auxv.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <nvtx3/nvToolsExt.h>

#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/session.hpp>
#include <swapmm/cuda/status.hpp>

namespace swapmm::cuda {

namespace {

// NVTX loads the library that the environment variable NVTX_INJECTION64_PATH names, even in set-uid programs. Therefore
// set-uid programs do not call NVTX.
bool ranges_are_safe() {
  static const bool safe = getauxval(AT_SECURE) == 0;
  return safe;
}

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t made = nvtxDomainCreateA("swapmm");
  return made;
}

std::string_view text_of(AnnotationKind kind) {
  switch (kind) {
    case AnnotationKind::swap_in: return "swap in ";
    case AnnotationKind::swap_out: return "swap out ";
    case AnnotationKind::device_wait: return "waits queued before ";
    case AnnotationKind::host_wait: return "host waits ";
  }
  return {};
}

}  // namespace

namespace detail {

void push_range(std::string_view what, std::string_view name) noexcept {
  if (!ranges_are_safe()) return;
  std::array<char, 128> text{};  // names longer than that are cut
  const std::size_t first = what.copy(text.data(), text.size() - 1);
  name.copy(text.data() + first, text.size() - 1 - first);
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text.data();
  (void)nvtxDomainRangePushEx(domain(), &attributes);
}

void pop_range() noexcept {
  if (ranges_are_safe()) (void)nvtxDomainRangePop(domain());
}

}  // namespace detail

using detail::pop_range;
using detail::push_range;

// ---- scopes

Backend::OperationScope::OperationScope(Backend& backend, std::string_view name)
    : session_(*backend.session_), name_(name) {
  if (const cudaError_t before = cudaPeekAtLastError(); before != cudaSuccess) forget(before);
  int now = session_.device;
  if (cudaGetDevice(&now) == cudaSuccess && now != session_.device) {
    cuda::check(cudaSetDevice(session_.device), "cudaSetDevice");
    device_before_ = now;
  }
  if (session_.nvtx) push_range({}, name_);
}

Backend::OperationScope::~OperationScope() {
  if (session_.nvtx) pop_range();
  if (!checked_) forget(cudaPeekAtLastError());  // the callable threw, and its exception reports the error
  if (device_before_ >= 0) forget(cudaSetDevice(device_before_));
}

void Backend::OperationScope::check() {
  checked_ = true;
  const cudaError_t now = cudaPeekAtLastError();
  if (now != cudaSuccess) throw error_of(now, "a kernel launch or a call in it");
}

Backend::Annotation::Annotation(const Backend& backend, AnnotationKind kind, std::string_view name)
    : on_(backend.session_->nvtx) {
  if (on_) push_range(text_of(kind), name);
}

Backend::Annotation::~Annotation() {
  if (on_) pop_range();
}

}  // namespace swapmm::cuda
