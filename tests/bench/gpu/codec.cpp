// SPDX-License-Identifier: Apache-2.0
// The zero codec on a GPU: how fast it is within the device's memory, and straight into and out of the host's, beside
// plain copies; and what a transfer in this way costs work beside it.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include <swapmm/cuda/codec/zero_codec.hpp>

#include "bench/gpu/program.hpp"
#include "bench/gpu/raw.hpp"
#include "bench/gpu/records.hpp"
#include "bench/gpu/statistics.hpp"

namespace {

using namespace swapmm;

constexpr std::string_view usage =
    "codec [--out FILE] [--rounds N] [--device NAME]\n"
    "  --rounds  of each measurement, default 7\n";

constexpr std::size_t mib = std::size_t{1} << 20U;

std::span<std::byte> span_of(const bench::RawMemory& memory, std::size_t bytes) { return {memory.as(), bytes}; }

/// Numbers of 4 bytes, of which so many of 1000 are not zero, without a pattern.
std::vector<std::uint32_t> numbers(std::size_t count, std::uint32_t of_1000) {
  std::vector<std::uint32_t> made(count);
  std::uint64_t state = 0x9e3779b97f4a7c15U;
  for (std::uint32_t& number : made) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    number = (state >> 33U) % 1000 < of_1000 ? static_cast<std::uint32_t>(state >> 20U) | 1U : 0;
  }
  return made;
}

/// One size and density: all ways.
class Measured {
 public:
  Measured(std::size_t bytes, std::uint32_t of_1000, std::size_t rounds)
      : elements_{bytes / 4, 4},
        rounds_(rounds),
        bytes_(bytes),
        plain_(bytes),
        again_(bytes),
        encoded_(zero_worst_case(elements_).value),
        scratch_(zero_scratch(elements_).value),
        other_(bytes),
        host_(zero_worst_case(elements_).value),
        stream_(bench::raw_stream()) {
    const std::vector<std::uint32_t> made = numbers(elements_.count, of_1000);
    std::memcpy(host_.data(), made.data(), bytes);
    copy(plain_.as(), host_.data(), cudaMemcpyHostToDevice);
  }

  [[nodiscard]] boost::json::object run(std::uint32_t of_1000) {
    const auto encode_to = [this](std::span<std::byte> to) {
      return [this, to](cudaStream_t stream) {
        codec_.encode(stream, elements_, span_of(plain_, bytes_), to, span_of(scratch_, zero_scratch(elements_).value));
      };
    };
    const auto decode_from = [this](std::span<const std::byte> from) {
      return [this, from](cudaStream_t stream) {
        codec_.decode(stream, elements_, from, span_of(again_, bytes_),
                      span_of(scratch_, zero_scratch(elements_).value));
      };
    };
    const std::size_t worst = zero_worst_case(elements_).value;
    const std::span<std::byte> on_device = span_of(encoded_, worst);
    const std::span<std::byte> on_host{static_cast<std::byte*>(host_.data()), worst};
    boost::json::object result{{"bytes", bytes_}, {"nonzeros_of_1000", of_1000}};
    result["copy_out_gbs"] = rate([this](cudaStream_t s) { queue_copy(s, host_.data(), plain_.as()); });
    result["copy_in_gbs"] = rate([this](cudaStream_t s) { queue_copy(s, again_.as(), host_.data()); });
    result["encode_gbs"] = rate(encode_to(on_device));
    result["decode_gbs"] = rate(decode_from(on_device));
    result["encode_to_host_gbs"] = rate(encode_to(on_host));
    result["decode_from_host_gbs"] = rate(decode_from(on_host));
    ZeroHeader header;
    std::memcpy(&header, host_.data(), sizeof header);
    result["encoded_bytes"] = header.bytes;
    result["identical"] = is_identical();
    const double alone = beside([](cudaStream_t) {});
    // By a kernel of few groups, from the value that was encoded on the device.
    encode_to(on_device)(stream_.get());
    boost::json::object moves;
    for (const unsigned groups : {8U, 16U, 32U, 64U}) {
      const auto out = [&, groups](cudaStream_t s) { codec_.move(s, on_device, on_host, groups); };
      const auto in = [&, groups](cudaStream_t s) { codec_.move(s, on_host, on_device, groups); };
      const double part = static_cast<double>(header.bytes) / static_cast<double>(bytes_);
      moves[std::to_string(groups)] = {{"out_gbs", rate(out) * part},
                                       {"in_gbs", rate(in) * part},
                                       {"work_beside_out", beside(out) / alone},
                                       {"work_beside_in", beside(in) / alone}};
    }
    result["moves"] = std::move(moves);
    decode_from(on_device)(stream_.get());
    result["moved_identical"] = is_identical();
    // Work of the device's memory beside a transfer: how much longer it takes.
    result["work_beside_encode_to_host"] = beside(encode_to(on_host)) / alone;
    result["work_beside_copy_out"] =
        beside([this](cudaStream_t s) { queue_copy(s, host_.data(), plain_.as()); }) / alone;
    return result;
  }

 private:
  void copy(void* to, const void* from, cudaMemcpyKind kind) {
    cuda::check(cudaMemcpy(to, from, bytes_, kind), "cudaMemcpy");
  }
  void queue_copy(cudaStream_t stream, void* to, const void* from) {
    cuda::check(cudaMemcpyAsync(to, from, bytes_, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
  }

  /// GB/s of plain bytes: the median of the rounds.
  template <class Queue>
  double rate(Queue&& queue) {
    queue(stream_.get());
    std::vector<double> rates;
    for (std::size_t i = 0; i < rounds_; ++i) {
      rates.push_back(static_cast<double>(bytes_) / bench::device_ms(stream_.get(), queue) / 1e6);
    }
    return bench::median(rates);
  }

  /// Milliseconds of copies within the device, begun together with what `queue` puts into another stream, and ended
  /// before that.
  template <class Queue>
  double beside(Queue&& queue) {
    const cuda::StreamHandle other = bench::raw_stream();
    std::vector<double> times;
    for (std::size_t i = 0; i < rounds_; ++i) {
      queue(other.get());
      queue(other.get());
      times.push_back(bench::device_ms(stream_.get(), [this](cudaStream_t s) {
        for (int k = 0; k < 4; ++k) queue_copy(s, other_.as(), again_.as());
      }));
      cuda::check(cudaStreamSynchronize(other.get()), "cudaStreamSynchronize");
    }
    return bench::median(times);
  }

  bool is_identical() {
    std::vector<std::uint32_t> first(elements_.count);
    std::vector<std::uint32_t> second(elements_.count);
    copy(first.data(), plain_.as(), cudaMemcpyDeviceToHost);
    copy(second.data(), again_.as(), cudaMemcpyDeviceToHost);
    return first == second;
  }

  cuda::ZeroCodec codec_;
  ZeroElements elements_;
  std::size_t rounds_;
  std::size_t bytes_;
  bench::RawMemory plain_;
  bench::RawMemory again_;
  bench::RawMemory encoded_;
  bench::RawMemory scratch_;
  bench::RawMemory other_;
  bench::RawPinned host_;
  cuda::StreamHandle stream_;
};

int run(const cuda::Backend& backend, const neural::Arguments& arguments) {
  const std::size_t rounds = arguments.whole("--rounds", 7, 3, 1000);
  cuda::check(cudaSetDevice(backend.device()), "cudaSetDevice");
  boost::json::object all{{"machine", bench::describe_machine(backend)}};
  boost::json::array rows;
  bool identical = true;
  for (const std::size_t bytes : {16 * mib, 256 * mib}) {
    for (const std::uint32_t of_1000 : {0U, 100U, 300U, 500U, 800U, 1000U}) {
      boost::json::object row = Measured(bytes, of_1000, rounds).run(of_1000);
      identical = identical && row["identical"].as_bool() && row["moved_identical"].as_bool();
      std::cout << boost::json::serialize(row) << std::endl;
      rows.push_back(std::move(row));
    }
  }
  all["codec"] = std::move(rows);
  if (const std::string out = arguments.text("--out"); !out.empty()) bench::write_json(out, all);
  return identical ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  return neural::run_example(
      count, words, usage, {"--out", "--rounds", "--device"}, [](const neural::Arguments& arguments) {
        return bench::run_on_cuda(arguments, [&](const cuda::Backend& backend) { return run(backend, arguments); });
      });
}
