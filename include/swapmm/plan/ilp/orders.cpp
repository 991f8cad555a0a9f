// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ilp/orders.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <swapmm/plan/ilp/alike.hpp>

namespace swapmm::planning::ilp {
namespace {

/// A sum of terms and a constant.
struct Sum {
  std::vector<Term> terms;
  double constant = 0;

  Sum& add(int column, double factor) {
    terms.push_back({column, factor});
    return *this;
  }
  Sum& add(const Sum& other, double factor) {
    for (const Term& term : other.terms) add(term.column, factor * term.factor);
    constant += factor * other.constant;
    return *this;
  }
};

/// A time in which a tensor is not on the device: from its release, after the end of operation `from`, to the start of
/// its swap-in, at the latest when operation `to` starts. Operations from n on are in the next iteration, negative ones
/// in the one before.
struct Away {
  TensorId tensor{};
  int from = 0;
  int to = 0;
  int absence = -1;  ///< position in the ledger; -1: the value is dead, and written whole at `to`, as one that lingers
  bool is_released_at_use = true;
};

class OrdersBuilder {
 public:
  OrdersBuilder(const OverlapLedger& ledger, std::chrono::nanoseconds at_most)
      : ledger_(ledger),
        planning_(ledger.planning),
        n_(static_cast<int>(planning_.operations)),
        most_(1000.0 * (1 + 1e-6)),
        may_save_(may_save(ledger)) {
    model_.unit_ns = std::max(1.0, static_cast<double>(at_most.count())) / 1000;
  }

  OrdersModel build() {
    add_operations();
    add_versions();
    for (std::size_t id = 0; id < ledger_.absences.size(); ++id) add_absence(id);
    order_alike();
    add_released();
    add_link_times();
    order_arrivals();
    order_copies();
    list_aways();
    for (int i = 0; i < n_; ++i) add_room_at_operation(i);
    for (std::size_t id = 0; id < ledger_.absences.size(); ++id) {
      if (!absence(id).lingers) add_room_at_arrival(id);
    }
    return std::move(model_);
  }

 private:
  Program& program() { return model_.program; }
  double units(std::chrono::nanoseconds time) const { return static_cast<double>(time.count()) / model_.unit_ns; }
  double size(TensorId id) const {
    return static_cast<double>(planning_.sizes[index(id)]) / static_cast<double>(planning_.budget) * 100;
  }
  const Absence& absence(std::size_t id) const { return ledger_.absences[id]; }

  std::uint32_t of_absence(std::size_t id) const { return static_cast<std::uint32_t>(id); }
  std::uint32_t of_version(std::size_t v) const { return static_cast<std::uint32_t>(ledger_.absences.size() + v); }
  int choice(std::uint32_t one, std::uint32_t other = no_absence) {
    model_.choices.push_back({program().add_binary(), one, other});
    return model_.choices.back().column;
  }

  /// Larger than any difference of two times.
  double big() const { return 5 * most_; }

  static int floor_divide(int a, int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

  Sum start_of(int operation) const {
    Sum sum;
    const int iteration = floor_divide(operation, n_);
    const int column = model_.operation_start[static_cast<std::size_t>(operation - iteration * n_)];
    if (column >= 0) sum.add(column, 1);
    if (iteration != 0) sum.add(model_.iteration, iteration);
    return sum;
  }
  Sum end_of(int operation) const {
    Sum sum = start_of(operation);
    sum.constant += units(ledger_.time[static_cast<std::size_t>(operation - floor_divide(operation, n_) * n_)]);
    return sum;
  }

  /// Adds the row a <= b. It need not hold if `unless`, a sum of terms x or 1 - x of binaries, is at least 1.
  void add_order(const Sum& a, const Sum& b, const Sum& unless = {}) {
    Sum sum;
    sum.add(b, 1).add(a, -1).add(unless, big());
    program().at_least(-sum.constant, std::move(sum.terms));
  }

  /// 1 if the absence's tensor stays, else 0.
  Sum stays(std::size_t id) const {
    Sum sum;
    if (model_.out[id] >= 0) {
      sum.constant = 1;
      sum.add(model_.out[id], -1);
    }
    return sum;
  }
  static Sum column(int position) { return Sum{{{position, 1}}, 0}; }
  static Sum not_column(int position) { return Sum{{{position, -1}}, 1}; }

  void add_operations() {
    model_.iteration = program().add_column({0, most_, 1, false});
    model_.operation_start.assign(static_cast<std::size_t>(n_), -1);
    for (int i = 1; i < n_; ++i) {
      model_.operation_start[static_cast<std::size_t>(i)] = program().add_column({0, most_, 0, false});
    }
    for (int i = 0; i < n_; ++i) add_order(end_of(i), start_of(i + 1));
  }

  void add_versions() {
    for (const Version& version : ledger_.versions) {
      model_.copy_start.push_back(program().add_column({0, 3 * most_, 0, false}));
      copied_.push_back(choice(of_version(model_.copy_start.size() - 1)));
      add_order(end_of(static_cast<int>(version.write)), column(model_.copy_start.back()));
    }
  }

  void add_absence(std::size_t id) {
    const Absence& a = absence(id);
    model_.out.push_back(a.is_arrival ? -1 : choice(of_absence(id)));
    if (!a.is_arrival && !may_save_[id]) program().columns.back().upper = 0;
    model_.start.push_back(a.lingers ? -1 : program().add_column({-most_, 3 * most_, 0, false}));
    model_.release.push_back(program().add_column({-most_, 3 * most_, 0, false}));
    const Sum release = column(model_.release[id]);
    add_order(end_of(static_cast<int>(a.first) - 1), release);
    if (a.version != no_version) {
      const Version& version = ledger_.versions[a.version];
      Sum copied = column(model_.copy_start[a.version]);
      copied.constant += units(ledger_.copy_out[index(a.tensor)]);
      if (a.first <= version.write) copied.add(model_.iteration, -1);
      add_order(copied, release, stays(id));
      program().at_least(0, {{copied_[a.version], 1}, {model_.out[id], -1}});
    }
    model_.started.emplace_back();
    if (a.lingers) {
      // To go out later than when the value may be lost anyway would be no gain.
      add_order(release, start_of(static_cast<int>(a.end)), stays(id));
      if (!a.to_overwrite) add_order(end_of(static_cast<int>(a.end) - 1), release, column(model_.out[id]));
    } else {
      add_return(id, release);
    }
  }

  /// Adds the swap-in that ends an absence.
  void add_return(std::size_t id, const Sum& release) {
    const Absence& a = absence(id);
    const Sum start = column(model_.start[id]);
    const auto first = static_cast<int>(a.first);
    const auto end = static_cast<int>(a.end);
    add_order(release, start, stays(id));
    Sum ended = start;
    ended.constant += units(ledger_.copy_in[index(a.tensor)]);
    add_order(ended, start_of(end), stays(id));

    std::vector<int> started;
    for (int gap = first; gap < end; ++gap) {
      started.push_back(choice(of_absence(id)));
      add_order(start, start_of(gap), not_column(started.back()));
      Sum unless = stays(id);
      unless.add(column(started.back()), 1);
      add_order(start_of(gap), start, unless);
      if (model_.out[id] >= 0) program().at_least(0, {{model_.out[id], 1}, {started.back(), -1}});
      if (gap > first) program().at_least(0, {{started.back(), 1}, {started[started.size() - 2], -1}});
    }
    model_.started.back() = std::move(started);
  }

  /// Of tensors that are alike, as two weights of one layer often are, the first one goes out rather than the other,
  /// and comes back first. Any plan with their parts exchanged is as good.
  void order_alike() {
    for (const auto& [sooner, later] : alike_absences(ledger_)) {
      if (model_.out[later] >= 0) program().at_least(0, {{model_.out[sooner], 1}, {model_.out[later], -1}});
      if (absence(sooner).lingers) continue;
      add_order(column(model_.start[sooner]), column(model_.start[later]), Sum(stays(sooner)).add(stays(later), 1));
    }
  }

  /// Adds a binary for each absence of a value to be written back and each operation during it: whether the tensor is
  /// released before the operation starts.
  void add_released() {
    released_.resize(ledger_.absences.size());
    for (std::size_t id = 0; id < ledger_.absences.size(); ++id) {
      const Absence& a = absence(id);
      if (a.version == no_version) continue;
      for (auto i = static_cast<int>(a.first); i < static_cast<int>(a.end); ++i) {
        released_[id].push_back(choice(of_absence(id)));
        add_order(column(model_.release[id]), start_of(i), not_column(released_[id].back()));
      }
    }
  }

  /// No link is busy for longer than an iteration. The orders imply these rows, but only these rows make the
  /// relaxation's bound useful.
  void add_link_times() {
    Sum in, out;
    for (std::size_t id = 0; id < ledger_.absences.size(); ++id) {
      const double time = units(ledger_.copy_back(absence(id)));
      if (model_.out[id] >= 0)
        in.add(model_.out[id], time);
      else
        in.constant += time;
    }
    for (std::size_t v = 0; v < ledger_.versions.size(); ++v) {
      out.add(copied_[v], units(ledger_.copy_out[index(ledger_.versions[v].tensor)]));
    }
    if (planning_.machine.duplex == Duplex::half) {
      in.add(out, 1);
      out = {};
    }
    for (const Sum& sum : {in, out}) add_order(sum, column(model_.iteration));
  }

  /// A copy on a link. It lies between the end of operation `from` and the start of operation `to`.
  struct Copy {
    Sum start;
    Sum none;  ///< 1 if the copy is not made
    double time = 0;
    int from = 0;
    int to = 0;
    std::uint32_t about = no_absence;
  };

  void order_arrivals() {
    std::vector<Copy> copies;
    for (std::size_t id = 0; id < ledger_.absences.size(); ++id) {
      if (!absence(id).lingers) copies.push_back(arrival(id));
    }
    if (planning_.machine.duplex == Duplex::half) {
      for (std::size_t v = 0; v < ledger_.versions.size(); ++v) copies.push_back(copy_out(v));
    }
    order(copies);
  }

  void order_copies() {
    if (planning_.machine.duplex == Duplex::half) return;
    std::vector<Copy> copies;
    for (std::size_t v = 0; v < ledger_.versions.size(); ++v) copies.push_back(copy_out(v));
    order(copies);
  }

  Copy arrival(std::size_t id) const {
    const Absence& a = absence(id);
    return {
        column(model_.start[id]), stays(id),     units(ledger_.copy_in[index(a.tensor)]), static_cast<int>(a.first) - 1,
        static_cast<int>(a.end),  of_absence(id)};
  }

  Copy copy_out(std::size_t v) const {
    const Version& version = ledger_.versions[v];
    std::uint32_t end = version.write;
    for (std::uint32_t a = version.first_absence; a < version.first_absence + version.absences; ++a) {
      const Absence& one = ledger_.absences[a];
      end = std::max(end, one.first > version.write ? one.end : one.end + planning_.operations);
    }
    return {column(model_.copy_start[v]),    not_column(copied_[v]), units(ledger_.copy_out[index(version.tensor)]),
            static_cast<int>(version.write), static_cast<int>(end),  of_version(v)};
  }

  /// Orders each pair of copies: one ends before the other starts, in this iteration and in up to three before and
  /// after.
  void order(const std::vector<Copy>& copies) {
    for (std::size_t i = 0; i < copies.size(); ++i) {
      for (std::size_t j = i + 1; j < copies.size(); ++j) {
        int before = -1;
        for (int later = -3; later <= 3; ++later) {
          const Copy& a = copies[i];
          const Copy& b = copies[j];
          const int shift = later * n_;
          if (a.to <= b.from + shift || b.to + shift <= a.from) continue;
          const int is_first = choice(a.about, b.about);
          if (before >= 0) program().at_least(0, {{is_first, 1}, {before, -1}});
          before = is_first;
          Sum none = a.none;
          none.add(b.none, 1);
          Sum b_start = b.start;
          b_start.add(model_.iteration, later);
          Sum a_end = a.start;
          a_end.constant += a.time;
          Sum b_end = b_start;
          b_end.constant += b.time;
          Sum unless = none;
          add_order(a_end, b_start, unless.add(not_column(is_first), 1));
          unless = none;
          add_order(b_end, a.start, unless.add(column(is_first), 1));
        }
      }
    }
  }

  void list_aways() {
    for (std::size_t t = 0; t < planning_.sizes.size(); ++t) {
      const auto id = id_at<TensorId>(t);
      const std::vector<Use>& uses = planning_.liveness.uses[t];
      for (std::size_t u = 0; u < uses.size(); ++u) {
        const auto from = static_cast<int>(uses[u].operation);
        const bool is_last = u + 1 == uses.size();
        const int to =
            is_last ? static_cast<int>(uses.front().operation) + n_ : static_cast<int>(uses[u + 1].operation);
        const std::uint32_t absence_id = ledger_.absence_after[ledger_.first_use[t] + u];
        if (absence_id != no_absence) {
          const bool is_clean = absence(absence_id).version == no_version && !absence(absence_id).lingers;
          aways_.push_back({id, from, to, static_cast<int>(absence_id), is_clean});
        } else if (is_last && ledger_.arrival[t] != no_absence) {
          aways_.push_back({id, from - n_, to - n_, static_cast<int>(ledger_.arrival[t]), true});
        } else {
          aways_.push_back({id, from, to, -1, true});
        }
      }
    }
  }

  /// 1 if the absence's swap-in starts before operation `gap` starts. Gaps are counted as in the absence.
  Sum started_by(std::size_t id, int gap) const {
    const Absence& a = absence(id);
    if (gap < static_cast<int>(a.first)) return {};
    Sum sum = stays(id);  // at the end of the absence: 1 - stays
    if (gap >= static_cast<int>(a.end)) return Sum{{}, 1}.add(sum, -1);
    return column(model_.started[id][static_cast<std::size_t>(gap) - a.first]);
  }

  void add_room_at_operation(int i) {
    Sum held;
    for_each_access(planning_.trace.operations[static_cast<std::size_t>(i)],
                    [&](TensorId id, Access) { held.constant += size(id); });
    for (std::size_t id = 0; id < ledger_.absences.size(); ++id) {
      const Absence& a = absence(id);
      for (const int at : {i, i + n_}) {
        if (at < static_cast<int>(a.first) || at >= static_cast<int>(a.end)) continue;
        if (a.is_arrival) {
          held.add(started_by(id, at), size(a.tensor));
          continue;
        }
        const int away = program().add_column({0, 1, 0, false});
        // Away: the tensor has gone out, and its swap-in has not started.
        std::vector<Term> gone{{model_.out[id], 1}, {away, -1}};
        if (!a.lingers) gone.push_back({model_.started[id][static_cast<std::size_t>(at) - a.first], -1});
        program().at_least(0, std::move(gone));
        if (a.version != no_version) {
          program().at_least(0, {{released_[id][static_cast<std::size_t>(at) - a.first], 1}, {away, -1}});
        }
        held.constant += size(a.tensor);
        held.add(away, -size(a.tensor));
      }
    }
    program().at_most(100 - held.constant, std::move(held.terms));
  }

  void add_room_at_arrival(std::size_t id) {
    const Absence& b = absence(id);
    Sum held;
    held.constant = size(b.tensor);
    double all = 0;
    std::vector<bool> is_counted(planning_.sizes.size());
    for (const Away& away : aways_) {
      if (away.tensor == b.tensor) continue;
      if (!is_counted[index(away.tensor)]) {
        is_counted[index(away.tensor)] = true;
        held.constant += size(away.tensor);
        all += size(away.tensor);
      }
      for (int later = -3; later <= 3; ++later) {
        const int is_away = add_away_at(id, away, later);
        if (is_away >= 0) held.add(is_away, -size(away.tensor));
      }
    }
    all += size(b.tensor);
    held.add(stays(id), -all);
    program().at_most(100 - held.constant, std::move(held.terms));
  }

  /// Adds a binary that is 1 only if `away`, `later` iterations later, includes the start of absence `id`'s swap-in.
  /// Returns its column, or -1 if that is impossible.
  int add_away_at(std::size_t id, const Away& away, int later) {
    const Absence& b = absence(id);
    const int shift = later * n_;
    if (away.from + shift >= static_cast<int>(b.end) || static_cast<int>(b.first) - 1 >= away.to + shift) return -1;
    const int is_away =
        choice(of_absence(id), away.absence < 0 ? no_absence : static_cast<std::uint32_t>(away.absence));
    const Sum start = column(model_.start[id]);
    const Sum unless = not_column(is_away);
    if (away.from + shift >= static_cast<int>(b.first) || !away.is_released_at_use) {
      Sum release = away.absence >= 0 && !absence(static_cast<std::size_t>(away.absence)).is_arrival
                        ? column(model_.release[static_cast<std::size_t>(away.absence)])
                        : end_of(away.from);
      release.add(model_.iteration, later);
      add_order(release, start, unless);
    }
    const bool lingers = away.absence >= 0 && absence(static_cast<std::size_t>(away.absence)).lingers;
    if (away.absence < 0 || lingers) {  // until it is written again
      Sum started = started_by(id, away.to + shift);
      started.add(is_away, -1);
      program().at_least(-started.constant, std::move(started.terms));
      const auto other = static_cast<std::size_t>(std::max(away.absence, 0));
      if (lingers && absence(other).to_overwrite) program().at_least(0, {{model_.out[other], 1}, {is_away, -1}});
      return is_away;
    }
    const auto other = static_cast<std::size_t>(away.absence);
    Sum back = column(model_.start[other]);
    back.add(model_.iteration, later);
    Sum after = start;
    after.constant += units(ledger_.copy_in[index(b.tensor)]);
    add_order(after, back, unless);
    if (model_.out[other] >= 0) program().at_least(0, {{model_.out[other], 1}, {is_away, -1}});
    return is_away;
  }

  const OverlapLedger& ledger_;
  const PlanningCase& planning_;
  int n_;
  double most_;
  OrdersModel model_;
  std::vector<bool> may_save_;
  std::vector<int> copied_;                 ///< per version: whether it is copied out
  std::vector<std::vector<int>> released_;  ///< per absence of a value to be written back, and operation during it
  std::vector<Away> aways_;
};

}  // namespace

std::vector<bool> may_save(const OverlapLedger& ledger) {
  const PlanningCase& planning = ledger.planning;
  const std::uint32_t n = planning.operations;
  std::vector<bool> result;
  result.reserve(ledger.absences.size());
  for (const Absence& a : ledger.absences) {
    bool counts = a.is_arrival;
    for (std::uint32_t slot = a.first - 1; !counts && slot <= a.end; ++slot) {
      counts = planning.liveness.live[slot % n].value > planning.budget;
    }
    result.push_back(counts);
  }
  return result;
}

OrdersModel make_orders_model(const OverlapLedger& ledger, std::chrono::nanoseconds at_most) {
  return OrdersBuilder(ledger, at_most).build();
}

std::chrono::nanoseconds iteration_bound(const OrdersModel& model, double cost_bound) {
  constexpr double precision = 1e-5;
  // The solver's bound is infinite if it found none, or if it found no solution at all.
  const double bound = std::clamp(cost_bound * model.unit_ns * (1 - precision), 0.0, 0x1p62);
  return std::chrono::nanoseconds{static_cast<std::int64_t>(std::floor(bound + 0.5))};
}

}  // namespace swapmm::planning::ilp
