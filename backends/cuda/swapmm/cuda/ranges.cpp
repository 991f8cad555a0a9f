// SPDX-License-Identifier: Apache-2.0
// NVTX ranges, and what else is done around an operation.
#include <swapmm/cuda/ranges.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include <nvtx3/nvToolsExt.h>

#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/session.hpp>
#include <swapmm/cuda/status.hpp>

namespace swapmm::cuda {

namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t made = nvtxDomainCreateA("swapmm");
  return made;
}

std::string_view text_of(AnnotationKind kind) {
  switch (kind) {
    case AnnotationKind::swap_in: return "swap in ";
    case AnnotationKind::swap_out: return "swap out ";
    case AnnotationKind::device_wait: return "stall before ";
    case AnnotationKind::host_wait: return "host waits ";
  }
  return {};
}

}  // namespace

void push_range(std::string_view what, std::string_view name) noexcept {
  std::array<char, 128> text{};  // names longer than that are cut
  const std::size_t first = std::min(what.size(), text.size() - 1);
  std::memcpy(text.data(), what.data(), first);
  std::memcpy(text.data() + first, name.data(), std::min(name.size(), text.size() - 1 - first));
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text.data();
  (void)nvtxDomainRangePushEx(domain(), &attributes);
}

void pop_range() noexcept { (void)nvtxDomainRangePop(domain()); }

// ---- what the library opens

Backend::OperationScope::OperationScope(Backend& backend, std::string_view name)
    : session_(*backend.session_), name_(name), pending_(cudaPeekAtLastError()) {
  int now = session_.device;
  if (cudaGetDevice(&now) == cudaSuccess && now != session_.device) {
    cuda::check(cudaSetDevice(session_.device), "cudaSetDevice");
    device_before_ = now;
  }
  if (session_.nvtx) push_range({}, name_);
}

Backend::OperationScope::~OperationScope() {
  if (session_.nvtx) pop_range();
  if (device_before_ >= 0) (void)cudaSetDevice(device_before_);
}

void Backend::OperationScope::check() const {
  const cudaError_t now = cudaPeekAtLastError();
  // An error from before is the caller's own, and stays for the caller to find.
  if (now == cudaSuccess || now == pending_) return;
  throw error_of(now, "a kernel launch or a call in operation \"" + std::string(name_) + "\"");
}

Backend::Annotation::Annotation(const Backend& backend, AnnotationKind kind, std::string_view name)
    : on_(backend.session_->nvtx) {
  if (on_) push_range(text_of(kind), name);
}

Backend::Annotation::~Annotation() {
  if (on_) pop_range();
}

}  // namespace swapmm::cuda
