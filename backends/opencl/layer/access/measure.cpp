// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <new>

#include <swapmm/base/bytes.hpp>

namespace swapmm::opencl::layer::access {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t piece_bytes = 1U << 20U;
constexpr std::size_t most_bytes = std::size_t{1} << 30U;
constexpr std::array<unsigned char, 2> fillings{0xA5, 0x5A};  // they differ in each bit

struct Time {
  const Clock::time_point begin = Clock::now();
  std::atomic<Clock::duration::rep> spent{0};
};

Time& time() {
  static Time& one = *new Time;
  return one;
}

/// Host memory that counts, as long as this exists.
class Counted {
 public:
  Counted(runtime::HostLedger& host, std::size_t size) : host_(host), size_{size}, taken_(host.take(size_)) {}
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() {
    if (taken_) host_.give_back(size_);
  }
  [[nodiscard]] bool taken() const { return taken_; }

 private:
  runtime::HostLedger& host_;
  Bytes size_;
  bool taken_;
};

/// The two launches, and what they need.
class Trial {
 public:
  Trial(cl_command_queue queue, std::span<const Changed> buffers) : queue_(queue), buffers_(buffers) {}

  // Reads what the buffers have. The launch waits for the same events that it would wait for.
  // Throws std::bad_alloc; from then on, nothing does.
  bool save(cl_uint waits, const cl_event* list) {
    piece_.resize(piece_bytes);
    for (const Changed& buffer : buffers_) {
      std::vector<std::byte>& bytes = saved_.emplace_back(buffer.size);
      if (down.clEnqueueReadBuffer(queue_, buffer.allocation, CL_TRUE, buffer.begin, buffer.size, bytes.data(), waits,
                                   list, nullptr) != CL_SUCCESS) {
        return false;
      }
      unwritten_.emplace_back(buffer.in_question ? buffer.size / 64 + 1 : 0);
    }
    return true;
  }

  bool run(unsigned char filling, const LaunchOnce& launch) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const Changed& buffer = buffers_[i];
      // What the launch reads is what it reads in truth, so that it ends as it does in truth.
      if (buffer.also_read && !put_back(i)) return false;
      if (!buffer.in_question) continue;
      if (down.clEnqueueFillBuffer(queue_, buffer.allocation, &filling, 1, buffer.begin, buffer.size, 0, nullptr,
                                   nullptr) != CL_SUCCESS) {
        return false;
      }
    }
    cl_event event = nullptr;
    if (launch(0, nullptr, &event) != CL_SUCCESS) return false;
    const bool well = down.clWaitForEvents(1, &event) == CL_SUCCESS;
    down.clReleaseEvent(event);
    if (!well) return false;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].in_question && !compare(i, filling)) return false;
    }
    is_second_ = true;
    return true;
  }

  // Drivers may refuse one call for a moment, and nothing else has these bytes.
  bool put_back() {
    bool well = true;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      well = (put_back(i) || put_back(i) || put_back(i)) && well;
    }
    return well;
  }

  [[nodiscard]] std::uint64_t whole() const {
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const bool all = std::all_of(unwritten_[i].begin(), unwritten_[i].end(), [](auto bits) { return bits == 0; });
      if (buffers_[i].in_question && all) found |= std::uint64_t{1} << buffers_[i].argument;
    }
    return found;
  }

 private:
  bool put_back(std::size_t i) {
    return down.clEnqueueWriteBuffer(queue_, buffers_[i].allocation, CL_TRUE, buffers_[i].begin, buffers_[i].size,
                                     saved_[i].data(), 0, nullptr, nullptr) == CL_SUCCESS;
  }

  bool compare(std::size_t i, unsigned char filling) {
    for (std::size_t begin = 0; begin < buffers_[i].size; begin += piece_.size()) {
      const std::size_t count = std::min(piece_.size(), buffers_[i].size - begin);
      if (down.clEnqueueReadBuffer(queue_, buffers_[i].allocation, CL_TRUE, buffers_[i].begin + begin, count,
                                   piece_.data(), 0, nullptr, nullptr) != CL_SUCCESS) {
        return false;
      }
      if (is_second_) {
        keep_unwritten(unwritten_[i], begin, count, filling);
      } else {
        find_unwritten(unwritten_[i], begin, count, filling);
      }
    }
    return true;
  }

  // The first time: all bytes that are as they were filled. There are few in a buffer that was written.
  void find_unwritten(std::vector<std::uint64_t>& bits, std::size_t begin, std::size_t count, unsigned char filling) {
    const unsigned char* const end = piece_.data() + count;
    for (const unsigned char* at = piece_.data(); at != end; ++at) {
      at = static_cast<const unsigned char*>(std::memchr(at, filling, static_cast<std::size_t>(end - at)));
      if (at == nullptr) return;
      const std::size_t place = begin + static_cast<std::size_t>(at - piece_.data());
      bits[place / 64] |= std::uint64_t{1} << (place % 64);
    }
  }

  // The second time: those of them that are so again. `begin` is a multiple of 64.
  void keep_unwritten(std::vector<std::uint64_t>& bits, std::size_t begin, std::size_t count, unsigned char filling) {
    for (std::size_t at = 0; at < count; ++at) {
      std::uint64_t& word = bits[(begin + at) / 64];
      if (word == 0) {
        at |= 63U;
      } else if (piece_[at] != filling) {
        word &= ~(std::uint64_t{1} << (at % 64));
      }
    }
  }

  cl_command_queue queue_;
  std::span<const Changed> buffers_;
  std::vector<std::vector<std::byte>> saved_;
  std::vector<std::vector<std::uint64_t>> unwritten_;  // a bit for each byte
  std::vector<unsigned char> piece_;
  bool is_second_ = false;
};

}  // namespace

Measurement measure(cl_command_queue queue, cl_uint waits, const cl_event* list, std::span<const Changed> buffers,
                    runtime::HostLedger& host, const LaunchOnce& launch) {
  Measurement result;
  std::size_t size = piece_bytes;
  for (const Changed& buffer : buffers) size += buffer.size + buffer.size / 8 + sizeof(std::uint64_t);
  if (size > most_bytes) return result;
  const Counted counted(host, size);
  if (!counted.taken()) return result;
  const Clock::time_point begin = Clock::now();
  try {
    Trial trial(queue, buffers);
    if (trial.save(waits, list)) {
      result.done = trial.run(fillings[0], launch) && trial.run(fillings[1], launch);
      if (result.done) result.whole = trial.whole();
      if (!trial.put_back()) result = {CL_OUT_OF_RESOURCES, false, 0};
    }
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): nothing was changed yet
  }
  time().spent.fetch_add((Clock::now() - begin).count(), std::memory_order_relaxed);
  return result;
}

bool time_to_measure() {
  constexpr auto at_first = std::chrono::seconds(5);
  const Clock::duration spent(time().spent.load(std::memory_order_relaxed));
  return spent < at_first + (Clock::now() - time().begin) / 5;
}

}  // namespace swapmm::opencl::layer::access
