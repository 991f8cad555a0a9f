// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include <swapmm/plan/relaxation/solver/option_blocks.hpp>

namespace swapmm::planning::relaxation {

/// A CoarseProgram in equality form: minimise cost x with A x = rows, B x = amounts of the blocks, x >= 0. The unknowns
/// are the options; then for each group the stall, and the time left for copies in and for copies out; then for each
/// room row the excess room and the missing room. Missing room is so expensive that it is used only if there is no
/// other way; it bounds the prices of room if everything that can go must go. A row is the room, the copies in or the
/// copies out of a group.
class ProgramMatrix {
 public:
  explicit ProgramMatrix(const CoarseProgram& program);

  [[nodiscard]] const CoarseProgram& program() const { return program_; }
  [[nodiscard]] std::size_t unknowns() const { return missing(0) + rooms_; }
  [[nodiscard]] std::size_t rows() const { return rooms_ + (program_.half_duplex ? 1U : 2U) * groups_; }
  [[nodiscard]] std::size_t groups() const { return groups_; }
  [[nodiscard]] std::size_t rooms() const { return rooms_; }
  [[nodiscard]] const std::vector<double>& right_side() const { return right_side_; }

  // Unknowns of a group, or of a room row.
  [[nodiscard]] std::size_t stall(std::size_t group) const { return program_.options + group; }
  [[nodiscard]] std::size_t idle_in(std::size_t group) const { return program_.options + groups_ + group; }
  [[nodiscard]] std::size_t idle_out(std::size_t group) const { return program_.options + 2 * groups_ + group; }
  [[nodiscard]] std::size_t surplus(std::size_t room) const {
    return program_.options + (program_.half_duplex ? 2U : 3U) * groups_ + room;
  }
  [[nodiscard]] std::size_t missing(std::size_t room) const { return surplus(room) + rooms_; }
  // Rows of a group; -1 if it has no room row. Groups may belong to the next iteration, and a few to the one after it.
  [[nodiscard]] int room_row(int group) const { return room_row_[static_cast<std::size_t>(group)]; }
  [[nodiscard]] std::size_t in_row(int group) const { return in_row_[static_cast<std::size_t>(group)]; }
  [[nodiscard]] std::size_t out_row(int group) const { return in_row(group) + (program_.half_duplex ? 0 : groups_); }

  [[nodiscard]] double cost(std::size_t unknown) const {
    if (unknown >= missing(0)) return missing_price_;
    if (unknown < option_cost_.size()) return option_cost_[unknown];
    return unknown >= stall(0) && unknown < idle_in(0) ? 1.0 : 0.0;
  }
  /// Computes A x, and B x: the sum of each block's options.
  void multiply(const std::vector<double>& x, std::vector<double>& rows, std::vector<double>& sums) const;
  /// Computes A' y + B' v.
  void multiply_transposed(const std::vector<double>& y, const std::vector<double>& v,
                           std::vector<double>& result) const;

 private:
  const CoarseProgram& program_;
  std::size_t groups_ = 0;
  std::size_t rooms_ = 0;
  double missing_price_ = 1;
  std::vector<double> option_cost_;  ///< empty if all options are free
  std::vector<int> room_row_;        ///< per group, as room_row() counts them
  std::vector<std::size_t> in_row_;  ///< the same
  std::vector<double> right_side_;
};

}  // namespace swapmm::planning::relaxation
