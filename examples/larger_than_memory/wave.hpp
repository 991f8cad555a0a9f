// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sound in the ground, as seismic imaging computes it (reverse time migration). For each shot a source sends a wave
// into a block of rock, and a plane of receivers records what comes back. The record is then played into the block
// backwards in time, and where both waves meet there is a reflector: image += forward field x backward field, at equal
// times. The forward field is thus needed in reverse order: it is kept at checkpoints, which take most of the memory.
// (A real program would have the record from the field, and mute the wave that goes from source to receiver directly.)
//
// This header is what the program with swapmm and the one without share: the problem and the text of the kernels.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <swapmm/base/bytes.hpp>

namespace wave {

struct Problem {
  std::size_t size = 64;   ///< cells along each side of the block
  std::size_t steps = 97;  ///< in time, of each shot
  std::size_t every = 3;   ///< steps from one checkpoint to the next
  std::size_t shots = 8;
  /// Planes of a field in each of its pieces, for the program with swapmm, so that a field may be larger than the
  /// budget. 0: whole fields if the budget has room for eight, else pieces of swapmm's own choice.
  std::size_t planes = 0;
};

/// Cells from the top to the receivers, and to the shots: below those that swallow waves.
[[nodiscard]] std::int64_t receiver_depth(const Problem& problem);

/// Throws std::invalid_argument where the numbers make no sense.
void check(const Problem& problem);

[[nodiscard]] std::size_t cells(const Problem& problem);
[[nodiscard]] std::size_t checkpoints(const Problem& problem);
/// All tensors together: four fields, rock, image, record and the checkpoints.
[[nodiscard]] swapmm::Bytes working_set(const Problem& problem);

/// For each cell (speed of sound x time step / cell's side)^2: two layers, the lower one faster.
[[nodiscard]] std::vector<float> rock(const Problem& problem);
/// Depth, row and column of the source.
[[nodiscard]] std::array<std::int64_t, 3> source(const Problem& problem, std::size_t shot);
/// What the source adds at that step: Ricker's wavelet.
[[nodiscard]] float loudness(std::size_t step);

/// OpenCL C, to follow <swapmm/kernel.h>. Each view has three dimensions: depth, row, column. A view is a whole field,
/// or some planes of it.
///     silence(writes field)
///     fire(updates field, long depth, long row, long column, float loudness)      one work item
///     advance(reads now, reads rock, updates other, long first, long first_now, long size)
///         other: the field before `now`, becomes the one after it. Its first plane, and that of rock, is plane `first`
///         of the block; that of `now` is plane `first_now`, as it has up to `reach` planes more on both sides
///     record(reads field, writes planes, long depth, long step)    planes: of the record, one per step
///     play(reads planes, updates field, long depth, long step)
///     keep(reads field, writes checkpoint)
///     correlate(reads checkpoint, reads field, updates image)
extern const std::string_view kernels;
/// The planes before and behind a plane that advance() reads there.
constexpr std::size_t reach = 4;

/// What both programs compute, bit for bit the same.
struct Result {
  std::vector<float> image;
  std::vector<float> record;    ///< of the last shot: steps x rows x columns
  std::vector<float> forward;   ///< the last shot's field after the last step
  std::vector<float> backward;  ///< and the one played backwards, at its end
  friend bool operator==(const Result&, const Result&) = default;
};

/// What swapmm did during one shot.
struct ShotReport {
  std::size_t shot = 0;
  std::chrono::nanoseconds time{};
  swapmm::Bytes in;
  swapmm::Bytes out;
  bool followed = false;  ///< by a plan; else swapped on demand
};

}  // namespace wave
