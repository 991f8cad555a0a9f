// SPDX-License-Identifier: Apache-2.0

#include <swapmm/replicas/chunk_size.hpp>

#include <algorithm>

#include <swapmm/base/error.hpp>

namespace swapmm {

ChunkSizeSearch::ChunkSizeSearch(std::size_t layers, const ChunkSizeOptions& options)
    : layers_(layers), options_(options), done_(layers == 1) {
  if (layers == 0) throw UsageError("a chunk has at least one layer, and there are none");
  if (options.timed == 0 || options.patience == 0) {
    throw UsageError("the search for a chunk size times at least one step, and has a patience of at least 1");
  }
}

void ChunkSizeSearch::took(std::chrono::nanoseconds step) {
  if (done_) return;
  if (++steps_ > options_.settle) times_.push_back(step);
  if (times_.size() == options_.timed) end_size();
}

void ChunkSizeSearch::end_size() {
  std::sort(times_.begin(), times_.end());
  tries_.push_back({size_, times_[times_.size() / 2]});
  times_.clear();
  steps_ = 0;
  const auto best =
      std::min_element(tries_.begin(), tries_.end(), [](const Try& a, const Try& b) { return a.step < b.step; });
  done_ = size_ == layers_ || size_ - best->layers >= options_.patience;
  size_ = done_ ? best->layers : size_ + 1;
}

}  // namespace swapmm
