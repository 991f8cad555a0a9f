// SPDX-License-Identifier: Apache-2.0
#include <swapmm/cuda/file_job.hpp>

#include <utility>

#include <swapmm/cuda/status.hpp>

namespace swapmm::cuda::detail {

namespace {

// On a thread of the driver, which must not call the API.
void CUDART_CB run(void* queued) {
  const std::unique_ptr<std::shared_ptr<FileJob>> owned(static_cast<std::shared_ptr<FileJob>*>(queued));
  FileJob& job = **owned;
  try {
    if (job.from.empty()) {
      job.file->read(job.offset, job.to);
    } else {
      job.file->write(job.offset, job.from);
    }
  } catch (...) {
    job.failure = std::current_exception();
  }
  job.has_ended.store(true, std::memory_order_release);
}

}  // namespace

void FileJob::queue(const std::shared_ptr<FileJob>& job, cudaStream_t stream) {
  auto queued = std::make_unique<std::shared_ptr<FileJob>>(job);
  check(cudaLaunchHostFunc(stream, run, queued.get()), "cudaLaunchHostFunc");
  (void)queued.release();  // run() owns it
}

}  // namespace swapmm::cuda::detail
