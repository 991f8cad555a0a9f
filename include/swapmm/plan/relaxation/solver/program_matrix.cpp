// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/relaxation/solver/program_matrix.hpp>

#include <algorithm>

namespace swapmm::planning::relaxation {

ProgramMatrix::ProgramMatrix(const CoarseProgram& program) : program_(program), groups_(program.duration.size()) {
  for (const double excess : program.excess) {
    room_row_.push_back(excess > 0 ? static_cast<int>(rooms_++) : -1);
    if (excess > 0) right_side_.push_back(excess);
  }
  // Tables, because the solver asks often and divisions are slow.
  constexpr std::size_t few = 3;
  for (std::size_t g = 0; g < 2 * groups_ + few; ++g) {
    if (g >= groups_) room_row_.push_back(room_row_[g - groups_]);
    in_row_.push_back(rooms_ + (g < groups_ ? g : in_row_[g - groups_] - rooms_));
  }
  constexpr double dearer = 100;
  for (const OptionBlock& block : program.blocks) {
    if (block.room > 0) missing_price_ = std::max(missing_price_, dearer * (block.read + block.write) / block.room);
    if (!block.may_run_again) continue;
    option_cost_.resize(program.options);
    option_cost_[block.first_option + (block.may_stay ? 1 : 0)] = block.again;
  }
  for (int links = program.half_duplex ? 1 : 2; links > 0; --links) {
    right_side_.insert(right_side_.end(), program.duration.begin(), program.duration.end());
  }
}

void ProgramMatrix::multiply(const std::vector<double>& x, std::vector<double>& rows, std::vector<double>& sums) const {
  rows.assign(this->rows(), 0.0);
  sums.resize(program_.blocks.size());
  // Options reach at most into the next iteration.
  std::vector<double> freed(2 * groups_ + 2, 0.0);  // per row, as differences
  std::vector<double> ins(freed.size(), 0.0);
  std::vector<double> outs(freed.size(), 0.0);
  for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
    const OptionBlock& block = program_.blocks[b];
    double sum = 0;
    for_each_option(program_, block, [&](std::size_t option, int out, int in, int first_row, int last_row) {
      const double value = x[option];
      sum += value;
      if (first_row <= last_row) {
        freed[static_cast<std::size_t>(first_row)] += block.room * value;
        freed[static_cast<std::size_t>(last_row) + 1] -= block.room * value;
      }
      if (runs_again(out, in, first_row, last_row)) {
        ins[static_cast<std::size_t>(block.last_in)] -= block.again * value;
        if (!program_.half_duplex) outs[static_cast<std::size_t>(block.last_in)] -= block.again * value;
      }
      if (in >= 0) ins[static_cast<std::size_t>(in)] += block.read * value;
      if (out >= 0) outs[static_cast<std::size_t>(out)] += block.write * value;
    });
    sums[b] = sum;
  }
  double sum = 0;
  for (std::size_t g = 0; g < freed.size(); ++g) {
    const int group = static_cast<int>(g);
    sum += freed[g];
    if (const int room = room_row(group); room >= 0) rows[static_cast<std::size_t>(room)] += sum;
    rows[in_row(group)] += ins[g];
    rows[out_row(group)] += outs[g];
  }
  for (std::size_t g = 0; g < groups_; ++g) {
    const int group = static_cast<int>(g);
    rows[in_row(group)] += x[idle_in(g)] - x[stall(g)];
    if (!program_.half_duplex) rows[out_row(group)] += x[idle_out(g)] - x[stall(g)];
  }
  for (std::size_t room = 0; room < rooms_; ++room) rows[room] += x[missing(room)] - x[surplus(room)];
}

void ProgramMatrix::multiply_transposed(const std::vector<double>& y, const std::vector<double>& v,
                                        std::vector<double>& result) const {
  result.resize(unknowns());
  std::vector<double> before(2 * groups_ + 3, 0.0);  // per row: the sum of the rows before it
  std::vector<double> ins(before.size(), 0.0);
  std::vector<double> outs(before.size(), 0.0);
  for (std::size_t g = 0; g + 1 < before.size(); ++g) {
    const int group = static_cast<int>(g);
    const int room = room_row(group);
    before[g + 1] = before[g] + (room >= 0 ? y[static_cast<std::size_t>(room)] : 0);
    ins[g] = y[in_row(group)];
    outs[g] = y[out_row(group)];
  }
  for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
    const OptionBlock& block = program_.blocks[b];
    for_each_option(program_, block, [&](std::size_t option, int out, int in, int first_row, int last_row) {
      double sum = v[b];
      if (first_row <= last_row) {
        sum +=
            block.room * (before[static_cast<std::size_t>(last_row) + 1] - before[static_cast<std::size_t>(first_row)]);
      }
      if (runs_again(out, in, first_row, last_row)) {
        sum -= block.again * ins[static_cast<std::size_t>(block.last_in)];
        if (!program_.half_duplex) sum -= block.again * outs[static_cast<std::size_t>(block.last_in)];
      }
      if (in >= 0) sum += block.read * ins[static_cast<std::size_t>(in)];
      if (out >= 0) sum += block.write * outs[static_cast<std::size_t>(out)];
      result[option] = sum;
    });
  }
  for (std::size_t g = 0; g < groups_; ++g) {
    const int group = static_cast<int>(g);
    const double in = y[in_row(group)];
    const double out = program_.half_duplex ? 0.0 : y[out_row(group)];
    result[stall(g)] = -in - out;
    result[idle_in(g)] = in;
    if (!program_.half_duplex) result[idle_out(g)] = out;
  }
  for (std::size_t room = 0; room < rooms_; ++room) {
    result[surplus(room)] = -y[room];
    result[missing(room)] = y[room];
  }
}

}  // namespace swapmm::planning::relaxation
