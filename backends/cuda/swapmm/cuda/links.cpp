// SPDX-License-Identifier: Apache-2.0
// Measures the speed of copies.
#include <swapmm/cuda/links.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/measure.hpp>
#include <swapmm/cuda/session.hpp>
#include <swapmm/cuda/status.hpp>

namespace swapmm::cuda {

using detail::CurrentDevice;
using detail::new_event;
using detail::Session;

namespace {

// Two pieces of page-locked memory and three of device memory, and the events around the measured work.
class Bench {
 public:
  Bench(Backend& backend, Session& session, Bytes piece)
      : session_(session),
        bytes_(static_cast<std::size_t>(piece.value)),
        source_(backend.allocate_host(piece, HostKind::pinned)),
        target_(backend.allocate_host(piece, HostKind::pinned)),
        memory_(backend.allocate(Bytes{3 * piece.value})),
        place_(backend.address(memory_, Bytes{}, Bytes{3 * piece.value})),
        current_(session.device),
        begin_(new_event(cudaEventDefault)) {
    for (EventHandle& end : ends_) end = new_event(cudaEventDefault);
    // Otherwise tools that look for reads of uninitialized memory would report the copies.
    check(cudaMemsetAsync(place_.data(), 0, 3 * bytes_, session_.stream(QueueKind::compute)), "cudaMemsetAsync");
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() { session_.finish_quietly(); }

  /// Numbers of copies to the device, copies to the host and fills. All three begin at the same time.
  struct Work {
    int in = 0;
    int out = 0;
    int fills = 0;
  };
  /// Milliseconds from the common begin to the end of each kind of work.
  struct Times {
    double in = 0;
    double out = 0;
    double fills = 0;
  };

  [[nodiscard]] Times run(const Work& work) {
    session_.finish();
    check(cudaEventRecord(begin_.get(), session_.stream(QueueKind::compute)), "cudaEventRecord");
    for (const QueueKind queue : {QueueKind::h2d, QueueKind::d2h}) {
      check(cudaStreamWaitEvent(session_.stream(queue), begin_.get(), 0), "cudaStreamWaitEvent");
    }
    for (int i = 0; i < std::max({work.in, work.out, work.fills}); ++i) {
      if (i < work.in) copy(place_.data(), source_.data(), cudaMemcpyHostToDevice, QueueKind::h2d);
      if (i < work.out) copy(target_.data(), place_.data() + bytes_, cudaMemcpyDeviceToHost, QueueKind::d2h);
      if (i < work.fills) {
        check(cudaMemsetAsync(place_.data() + 2 * bytes_, i, bytes_, session_.stream(QueueKind::compute)),
              "cudaMemsetAsync");
      }
    }
    for (const QueueKind queue : {QueueKind::compute, QueueKind::h2d, QueueKind::d2h}) {
      check(cudaEventRecord(ends_[index(queue)].get(), session_.stream(queue)), "cudaEventRecord");
    }
    session_.finish();
    return {since_begin(QueueKind::h2d), since_begin(QueueKind::d2h), since_begin(QueueKind::compute)};
  }

 private:
  void copy(void* to, const void* from, cudaMemcpyKind kind, QueueKind queue) {
    check(cudaMemcpyAsync(to, from, bytes_, kind, session_.stream(queue)), "cudaMemcpyAsync");
  }
  [[nodiscard]] double since_begin(QueueKind queue) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_.get(), ends_[index(queue)].get()), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds);
  }

  Session& session_;
  std::size_t bytes_;
  HostMemory source_;
  HostMemory target_;
  DeviceMemory memory_;
  Address place_;
  CurrentDevice current_;
  EventHandle begin_;
  std::array<EventHandle, queue_count> ends_;
};

// Copies that take turns end after the sum of both times. On two engines they end after the longer time.
int engines(double in, double out, double both) { return both < 0.75 * (in + out) ? 2 : 1; }

std::uint64_t per_second(Bytes piece, int copies, double milliseconds) {
  if (milliseconds <= 0) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(piece.value) * copies / milliseconds * 1e3);
}

}  // namespace

int detail::measured_copy_engines(Backend& backend, Session& session) {
  Bench bench(backend, session, Bytes{std::uint64_t{8} << 20U});
  (void)bench.run({2, 2, 0});  // touches the memory for the first time
  const double in = bench.run({2, 0, 0}).in;
  const double out = bench.run({0, 2, 0}).out;
  const Bench::Times both = bench.run({2, 2, 0});
  return engines(in, out, std::max(both.in, both.out));
}

Links Backend::measure_links(Bytes piece) {
  Bench bench(*this, *session_, piece);
  constexpr int copies = 8;
  (void)bench.run({1, 1, 1});  // touches the memory for the first time
  Links links;
  const double in = bench.run({copies, 0, 0}).in;
  const double out = bench.run({0, copies, 0}).out;
  const Bench::Times both = bench.run({copies, copies, 0});
  links.h2d = per_second(piece, copies, in);
  links.d2h = per_second(piece, copies, out);
  links.h2d_with_d2h = per_second(piece, copies, both.in);
  links.d2h_with_h2d = per_second(piece, copies, both.out);
  links.copy_engines = engines(in, out, std::max(both.in, both.out));
  // Chooses the number of fills that take half the time of the copies, so that copies run during all fills.
  constexpr int few = 16;
  const double fill = bench.run({0, 0, few}).fills / few;
  if (fill <= 0) return links;
  const int fills = std::clamp(static_cast<int>(0.5 * std::min(in, out) / fill), few, 4096);
  const double alone = bench.run({0, 0, fills}).fills;
  links.kernel_beside_h2d = bench.run({copies, 0, fills}).fills / alone;
  links.kernel_beside_d2h = bench.run({0, copies, fills}).fills / alone;
  links.kernel_beside_both = bench.run({copies, copies, fills}).fills / alone;
  return links;
}

}  // namespace swapmm::cuda
