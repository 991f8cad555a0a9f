// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/relaxation/solver/normal_equations.hpp>

#include <algorithm>

namespace swapmm::planning::relaxation {

void NormalEquations::set_weights(const std::vector<double>& d) {
  const CoarseProgram& program = matrix_.program();
  std::fill(left_.values.begin(), left_.values.end(), 0.0);
  for (std::size_t room = 0; room < matrix_.rooms(); ++room) {
    left_.add(room, room, d[matrix_.surplus(room)] + d[matrix_.missing(room)]);
  }
  for (std::size_t g = 0; g < matrix_.groups(); ++g) {
    const std::size_t in = matrix_.in_row(static_cast<int>(g));
    const double stall = d[matrix_.stall(g)];
    left_.add(in, in, stall + d[matrix_.idle_in(g)]);
    if (program.half_duplex) continue;
    const std::size_t out = matrix_.out_row(static_cast<int>(g));
    left_.add(out, out, stall + d[matrix_.idle_out(g)]);
    left_.add(out, in, stall);
  }
  sums_.assign(program.blocks.size(), 0.0);
  couplings_.resize(program.blocks.size());
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    const OptionBlock& block = program.blocks[b];
    couplings_[b].clear();
    sums_[b] = gather(block, d);
    add_rooms(block, couplings_[b]);
    add_copies(block, couplings_[b]);
    if (block.may_run_again) add_time_again(block, couplings_[b]);
    eliminate(couplings_[b], sums_[b]);
  }
  // Equal rows must not stop the factorization.
  for (std::size_t i = 0; i < left_.size; ++i) left_.row(i)[i] = left_.row(i)[i] * (1 + 1e-12) + 1e-14;
  factorize(left_);
}

/// Gathers the weights of a block's options by out and in. Returns their sum.
double NormalEquations::gather(const OptionBlock& block, const std::vector<double>& d) {
  outs_ = block.is_clean ? 1 : static_cast<std::size_t>(block.last_out - block.first_out + 1);
  ins_ = static_cast<std::size_t>(std::max(0, block.last_in - block.first_in + 1));
  rows_ = static_cast<std::size_t>(std::max(0, block.last_row - block.first_row + 1));
  weight_.assign(outs_ * ins_, 0.0);
  in_sum_.assign(ins_, 0.0);
  out_sum_.assign(outs_, 0.0);
  again_weight_ = 0;
  double sum = 0;
  for_each_option(matrix_.program(), block, [&](std::size_t option, int out, int in, int first_row, int last_row) {
    const double weight = d[option];
    sum += weight;
    if (runs_again(out, in, first_row, last_row)) again_weight_ = weight;
    const auto o = static_cast<std::size_t>(out >= 0 ? out - block.first_out : 0);
    if (in >= 0) {
      const auto i = static_cast<std::size_t>(in - block.first_in);
      weight_[o * ins_ + i] = weight;
      in_sum_[i] += weight;
    }
    if (out >= 0) out_sum_[o] += weight;
  });
  return sum;
}

void NormalEquations::add_rooms(const OptionBlock& block, std::vector<Entry>& coupling) {
  const CoarseProgram& program = matrix_.program();
  freed_.assign(ins_, 0.0);
  freed_from_.assign(rows_ * (ins_ + 1), 0.0);
  std::size_t next_out = 0;
  for (std::size_t row = 0; row < rows_; ++row) {
    // Adds what went out in time for this row. A block without copies out has one list of options, which is always in
    // time.
    const int group = block.first_row + static_cast<int>(row);
    while (next_out < outs_ &&
           (block.is_clean || program.first_freed(block.first_out + static_cast<int>(next_out)) <= group)) {
      for (std::size_t in = 0; in < ins_; ++in) freed_[in] += weight_[next_out * ins_ + in];
      ++next_out;
    }
    double sum = again_weight_;  // away over all rows
    freed_from_[row * (ins_ + 1) + ins_] = sum;
    for (std::size_t in = ins_; in-- > 0;) {
      sum += freed_[in];
      freed_from_[row * (ins_ + 1) + in] = sum;
    }
    add_room(block, row, coupling);
  }
}

void NormalEquations::add_room(const OptionBlock& block, std::size_t row, std::vector<Entry>& coupling) {
  const int room = matrix_.room_row(block.first_row + static_cast<int>(row));
  if (room < 0) return;
  const auto first_in_at = [&](std::size_t r) {
    return std::min(ins_,
                    static_cast<std::size_t>(std::max(0, block.first_row + static_cast<int>(r) - block.first_in)));
  };
  const double* const freed = freed_from_.data() + row * (ins_ + 1);
  const auto own = static_cast<std::size_t>(room);
  coupling.emplace_back(own, block.room * freed[first_in_at(row)]);
  for (std::size_t later = row; later < rows_; ++later) {
    const int other = matrix_.room_row(block.first_row + static_cast<int>(later));
    if (other < 0) continue;
    left_.add(own, static_cast<std::size_t>(other), block.room * block.room * freed[first_in_at(later)]);
  }
  for (std::size_t in = first_in_at(row); in < ins_; ++in) {
    left_.add(matrix_.in_row(block.first_in + static_cast<int>(in)), own, block.room * block.read * freed_[in]);
  }
}

void NormalEquations::add_copies(const OptionBlock& block, std::vector<Entry>& coupling) {
  for (std::size_t in = 0; in < ins_; ++in) {
    const std::size_t row = matrix_.in_row(block.first_in + static_cast<int>(in));
    left_.add(row, row, block.read * block.read * in_sum_[in]);
    coupling.emplace_back(row, block.read * in_sum_[in]);
  }
  if (block.is_clean) return;
  for (std::size_t out = 0; out < outs_; ++out) {
    const std::size_t row = matrix_.out_row(block.first_out + static_cast<int>(out));
    left_.add(row, row, block.write * block.write * out_sum_[out]);
    coupling.emplace_back(row, block.write * out_sum_[out]);
    add_out(block, out);
  }
}

/// Adds the time of what is computed again, with which both links have more.
void NormalEquations::add_time_again(const OptionBlock& block, std::vector<Entry>& coupling) {
  const std::size_t in = matrix_.in_row(block.last_in);
  const std::size_t out = matrix_.out_row(block.last_in);
  const double square = block.again * block.again * again_weight_;
  for (const std::size_t link : {in, out}) {
    left_.add(link, link, square);
    coupling.emplace_back(link, -block.again * again_weight_);
    for (int row = block.first_row; row <= block.last_row; ++row) {
      const int room = matrix_.room_row(row);
      if (room >= 0) left_.add(link, static_cast<std::size_t>(room), -block.room * block.again * again_weight_);
    }
    if (link == out) break;  // with half duplex, there is one
  }
  if (in != out) left_.add(out, in, square);
}

/// Adds the coupling of a copy out with copies in, and with the room after it.
void NormalEquations::add_out(const OptionBlock& block, std::size_t out) {
  const int group = block.first_out + static_cast<int>(out);
  const std::size_t row = matrix_.out_row(group);
  const double* const weights = weight_.data() + out * ins_;
  for (std::size_t in = 0; in < ins_; ++in) {
    left_.add_pair(row, matrix_.in_row(block.first_in + static_cast<int>(in)), block.write * block.read * weights[in]);
  }
  const int first_row = std::max(block.first_row, matrix_.program().first_freed(group));
  double later = 0;
  std::size_t in = ins_;
  for (int r = block.last_row; r >= first_row; --r) {
    while (in > 0 && block.first_in + static_cast<int>(in) - 1 >= r) later += weights[--in];
    const int room = matrix_.room_row(r);
    if (room >= 0) left_.add(row, static_cast<std::size_t>(room), block.write * block.room * later);
  }
}

/// Subtracts coupling x coupling' / sum from the matrix.
void NormalEquations::eliminate(std::vector<Entry>& coupling, double sum) {
  std::sort(coupling.begin(), coupling.end());
  std::size_t used = 0;
  for (const Entry& entry : coupling) {
    if (used > 0 && coupling[used - 1].first == entry.first) {
      coupling[used - 1].second += entry.second;
    } else {
      coupling[used++] = entry;
    }
  }
  coupling.resize(used);
  for (std::size_t i = 0; i < used; ++i) {
    double* const row = left_.row(coupling[i].first);
    const double factor = coupling[i].second / sum;
    for (std::size_t j = 0; j <= i; ++j) row[coupling[j].first] -= factor * coupling[j].second;
  }
}

void NormalEquations::solve(std::vector<double>& r, std::vector<double>& q) const {
  for (std::size_t b = 0; b < q.size(); ++b) {
    const double share = q[b] / sums_[b];
    for (const auto& [row, value] : couplings_[b]) r[row] -= value * share;
  }
  solve_with_factor(left_, r);
  for (std::size_t b = 0; b < q.size(); ++b) {
    for (const auto& [row, value] : couplings_[b]) q[b] -= value * r[row];
    q[b] /= sums_[b];
  }
}

}  // namespace swapmm::planning::relaxation
