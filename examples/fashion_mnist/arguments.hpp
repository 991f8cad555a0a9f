// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a person asks the demo for.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <swapmm/base/bytes.hpp>

namespace fashion {

extern const std::string_view usage;

/// A part of the peak of live bytes (or, of a codec's memory, of the budget), or a number of bytes.
struct Budget {
  double fraction = 0;  ///< 0: see bytes
  swapmm::Bytes bytes;
};

struct Arguments {
  std::optional<Budget> budget;  ///< the one to compare with no limit; none: the demo's four
  std::optional<Budget> codec;   ///< of the budget, for values that are encoded on their way; none: none is
  std::size_t epochs = 2;
  std::size_t batch = 0;  ///< 0: the network's own
  /// So many pieces that the batch is divided into, or 0 to have the number chosen; none: the batch stays whole.
  std::optional<std::size_t> pieces;
  bool recompute = false;    ///< plans may run operations of the forward pass again instead of copying
  std::uint64_t link = 0;    ///< bytes per second that plans take both links for; 0: as observed
  std::size_t replicas = 0;  ///< in this process; 0: the demo without replicas, or one under mpirun
  std::size_t chunk = 0;     ///< layers per chunk of their gradients; 0: it is searched for
  /// What all copies of replicas on devices of their own share, bytes per second; 0: it is measured; none: replicas
  /// plan alone.
  std::optional<std::uint64_t> share_links;
  std::string device;        ///< see neural::on_device()
  std::string convolutions;  ///< "gemm" or "cudnn"; empty: as the device's library is
  std::string planner;       ///< empty: swapmm's own
  std::filesystem::path report = "demo-report.json";
  bool with_replicas = true;  ///< false: there is an option that does not go with replicas
  bool help = false;
};

/// Throws std::invalid_argument, which names the word that it does not understand.
[[nodiscard]] Arguments parse(std::span<char* const> words);
/// Throws std::invalid_argument unless all options go with replicas.
void check_replicas(const Arguments& arguments);

}  // namespace fashion
