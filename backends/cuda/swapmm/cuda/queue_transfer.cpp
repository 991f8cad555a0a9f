// SPDX-License-Identifier: Apache-2.0
#include <swapmm/cuda/queue_transfer.hpp>

#include <utility>

#include <swapmm/cuda/status.hpp>

namespace swapmm::cuda::detail {

namespace {

// On a thread of the driver, which must not call the API.
void CUDART_CB run(void* queued) {
  const std::unique_ptr<std::shared_ptr<swapmm::detail::FileTransfer>> owned(
      static_cast<std::shared_ptr<swapmm::detail::FileTransfer>*>(queued));
  (*owned)->run([] { return true; });  // after a failure the stream runs nothing
}

}  // namespace

void queue_transfer(const std::shared_ptr<swapmm::detail::FileTransfer>& transfer, cudaStream_t stream) {
  auto queued = std::make_unique<std::shared_ptr<swapmm::detail::FileTransfer>>(transfer);
  check(cudaLaunchHostFunc(stream, run, queued.get()), "cudaLaunchHostFunc");
  (void)queued.release();  // run() owns it
}

}  // namespace swapmm::cuda::detail
