// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ilp/slots.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

namespace swapmm::planning::ilp {
namespace {

using std::chrono::nanoseconds;

/// The boundaries at which the circle is cut. Boundary b comes before part b. Both are counted from the start of the
/// iteration, and on into the next iteration.
class Circle {
 public:
  Circle(const OverlapLedger& ledger, const std::vector<double>& held, std::uint32_t slots, Rounding rounding)
      : n_(ledger.planning.operations), rounding_(rounding) {
    const auto duration = [&](std::uint32_t i) { return static_cast<double>(ledger.time[i].count()); };
    if (slots >= n_) {
      for (std::uint32_t i = 0; i < n_; ++i) {
        keys_.push_back(i);
        held_.insert(held_.end(), 2, held[i]);
        times_.push_back(duration(i));
        times_.push_back(0);
      }
      is_fine_ = true;
      return;
    }
    double total = 0;
    for (std::uint32_t i = 0; i < n_; ++i) total += duration(i);
    // Slots are balanced half by time, half by number of operations.
    const auto weight = [&](std::uint32_t i) { return 1.0 / n_ + (total > 0 ? duration(i) / total : 0); };
    double before = 0;
    std::uint32_t slot = slots;
    for (std::uint32_t i = 0; i < n_; ++i) {
      const auto now = static_cast<std::uint32_t>(before / (1e-9 + (total > 0 ? 2.0 : 1.0)) * slots);
      if (now != slot) {
        keys_.push_back(i);
        begins_.push_back(i);
      }
      if (held[i] > held[keys_.back()]) keys_.back() = i;
      slot = now;
      before += weight(i);
    }
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      held_.push_back(held[keys_[k]]);
      const std::uint32_t end = k + 1 < keys_.size() ? keys_[k + 1] : keys_[0] + n_;
      double time = 0;
      for (std::uint32_t i = keys_[k]; i < end; ++i) time += duration(i % n_);
      times_.push_back(time);
    }
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(times_.size()); }
  double time(std::uint32_t part) const { return times_[part]; }
  double held(std::uint32_t boundary) const { return held_[boundary]; }
  bool may_stall(std::uint32_t part) const { return !is_fine_ || part % 2 == 1; }

  /// The first boundary at or after the start of that operation.
  std::uint32_t first_boundary(std::uint32_t operation) const {
    if (is_fine_) return 2 * operation;
    const std::vector<std::uint32_t>& first = rounding_ == Rounding::inward ? begins_ : keys_;
    const auto found = std::lower_bound(first.begin(), first.end(), operation % n_);
    return static_cast<std::uint32_t>(found - first.begin()) + operation / n_ * size();
  }
  /// The last boundary that is covered by an absence which ends before that operation.
  std::uint32_t last_boundary_before(std::uint32_t operation) const {
    if (is_fine_ || rounding_ == Rounding::outward) return last_boundary(operation + n_ - 1) - size();
    const auto found = std::upper_bound(begins_.begin(), begins_.end(), operation % n_);
    // The slot that contains the operation is not covered; the slot before it is.
    return static_cast<std::uint32_t>(found - begins_.begin()) + (operation / n_ + 1) * size() - 2;
  }
  /// The last boundary at or before the end of that operation; also the part that contains its end. Counted from one
  /// circle on, so that there always is one.
  std::uint32_t last_boundary(std::uint32_t operation) const {
    if (is_fine_) return 2 * operation + 1 + size();
    const auto found = std::upper_bound(keys_.begin(), keys_.end(), operation % n_);
    return static_cast<std::uint32_t>(found - keys_.begin()) + (operation / n_ + 1) * size() - 1;
  }

 private:
  std::uint32_t n_;
  Rounding rounding_;
  bool is_fine_ = false;
  std::vector<std::uint32_t> begins_;  ///< the first operation of each slot
  std::vector<std::uint32_t> keys_;    ///< the operation at which each slot has its boundary
  std::vector<double> held_;           ///< per boundary: what is held without absences, in parts of the budget
  std::vector<double> times_;          ///< of the parts, without stalls
};

/// The boundaries from `first` to `last`, counted from one circle on. Empty if last is first - 1.
struct Stretch {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

/// Versions, or absences without a version, with the same boundaries.
struct Kind {
  std::vector<Stretch> away;  ///< of each absence
  std::uint32_t write = 0;    ///< the part in which the write ends; only if is_written
  bool is_written = false;
  bool is_arrival = false;
  std::vector<std::vector<std::uint32_t>> absences;  ///< of the ledger, per element of `away`
};

class SlotsBuilder {
 public:
  SlotsBuilder(const OverlapLedger& ledger, std::uint32_t slots, Rounding rounding)
      : ledger_(ledger),
        planning_(ledger.planning),
        n_(planning_.operations),
        rounding_(rounding),
        circle_(ledger, held_bytes(), slots, rounding) {}

  SlotModel build() {
    for (const nanoseconds time : ledger_.time) model_.compute_ns += static_cast<double>(time.count());
    const Link& link = planning_.machine.h2d;
    const double all_in = static_cast<double>(planning_.budget) / static_cast<double>(link.bytes_per_second) * 1e9;
    model_.unit_ns = std::max(1.0, (model_.compute_ns > 0 ? model_.compute_ns : all_in) / 1000);
    add_boundaries();
    for (const auto& [key, kind] : list_kinds()) add_kind(kind);
    for (std::uint32_t b = 0; b < circle_.size(); ++b) {
      model_.program.at_least(needed_[b], std::move(room_[b]));
      model_.program.at_most(circle_.time(b) / model_.unit_ns, std::move(in_[b]));
      if (!out_[b].empty()) model_.program.at_most(circle_.time(b) / model_.unit_ns, std::move(out_[b]));
    }
    return std::move(model_);
  }

 private:
  double size(TensorId id) const { return static_cast<double>(planning_.sizes[index(id)]) / budget(); }
  double budget() const { return static_cast<double>(planning_.budget); }

  std::vector<double> held_bytes() const {
    std::vector<double> held(2 * n_ + 1);
    for (std::uint32_t i = 0; i < n_; ++i) {
      for_each_access(planning_.trace.operations[i], [&](TensorId id, Access) {
        held[i] += size(id);
        held[i + 1] -= size(id);
      });
    }
    for (const Absence& a : ledger_.absences) {
      if (a.is_arrival) continue;
      held[a.first] += size(a.tensor);
      held[a.end] -= size(a.tensor);
    }
    for (std::uint32_t i = 1; i < 2 * n_; ++i) held[i] += held[i - 1];
    for (std::uint32_t i = 0; i < n_; ++i) held[i] += held[i + n_];
    held.resize(n_);
    return held;
  }

  void add_boundaries() {
    const std::uint32_t count = circle_.size();
    room_.resize(count);
    in_.resize(count);
    out_.resize(count);
    for (std::uint32_t b = 0; b < count; ++b) {
      needed_.push_back(circle_.held(b) - 1);
      if (rounding_ == Rounding::inward) {
        // Absences shorter than a slot may provide the missing room, at the price of their copies.
        const double both_ways = 2e9 * budget() / static_cast<double>(planning_.machine.h2d.bytes_per_second);
        room_[b].push_back({model_.program.add_column({0, infinity, both_ways / model_.unit_ns, false}), 1});
      }
      if (!circle_.may_stall(b)) continue;
      const int stall = model_.program.add_column({0, infinity, 1, false});
      in_[b].push_back({stall, -1});
      if (planning_.machine.duplex == Duplex::full) out_[b].push_back({stall, -1});
    }
  }

  std::vector<Term>& out_row(std::uint32_t part) {
    return planning_.machine.duplex == Duplex::half ? in_[part] : out_[part];
  }

  Stretch stretch_of(const Absence& a) const {
    return {circle_.first_boundary(a.first) + circle_.size(), circle_.last_boundary_before(a.end)};
  }

  static bool is_over_any(const Stretch& away) { return away.first <= away.last; }

  bool lacks_room(const Stretch& away) const {
    for (std::uint32_t b = away.first; b <= away.last; ++b) {
      if (circle_.held(b % circle_.size()) > 1 - arriving_) return true;
    }
    return false;
  }

  using Key = std::vector<std::uint32_t>;

  /// The kinds of absences, by their boundaries.
  std::map<Key, Kind> list_kinds() {
    std::map<Key, Kind> kinds;
    for (const Absence& a : ledger_.absences) arriving_ += a.is_arrival ? size(a.tensor) : 0;
    for (std::uint32_t id = 0; id < ledger_.absences.size(); ++id) {
      const Absence& a = ledger_.absences[id];
      if (a.version != no_version || planning_.sizes[index(a.tensor)] == 0) continue;
      Kind kind;
      kind.away = {stretch_of(a)};
      if (!a.is_arrival && (!is_over_any(kind.away[0]) || !lacks_room(kind.away[0]))) continue;
      kind.is_arrival = a.is_arrival;
      kind.absences = {{id}};
      add_to(kinds, {a.is_arrival ? 2U : 0U, kind.away[0].first, kind.away[0].last}, kind);
    }
    for (const Version& version : ledger_.versions) {
      if (version.absences == 0 || planning_.sizes[index(version.tensor)] == 0) continue;
      Kind kind;
      kind.is_written = true;
      kind.write = circle_.last_boundary(version.write);
      Key key = {1, kind.write};
      for (std::uint32_t id = version.first_absence; id < version.first_absence + version.absences; ++id) {
        Stretch away = stretch_of(ledger_.absences[id]);
        if (!is_over_any(away) || !lacks_room(away)) continue;
        if (ledger_.absences[id].first <= version.write) {
          away.first += circle_.size();
          away.last += circle_.size();
        }
        kind.away.push_back(away);
        kind.absences.push_back({id});
        key.insert(key.end(), {away.first, away.last, ledger_.absences[id].lingers ? 1U : 0U});
      }
      if (!kind.away.empty()) add_to(kinds, key, kind);
    }
    return kinds;
  }

  static void add_to(std::map<Key, Kind>& kinds, const Key& key, const Kind& one) {
    const auto [found, is_new] = kinds.try_emplace(key, one);
    if (is_new) return;
    for (std::size_t k = 0; k < one.absences.size(); ++k) {
      found->second.absences[k].push_back(one.absences[k].front());
    }
  }

  void add_kind(const Kind& kind) {
    const std::vector<int> written = kind.is_written ? add_write_backs(kind) : std::vector<int>{};
    for (std::size_t k = 0; k < kind.away.size(); ++k) {
      if (kind.is_arrival) {
        add_arrival(kind.absences[k], kind.away[k]);
      } else {
        add_away(kind, k, written);
      }
    }
  }

  /// The least copy time per size among these absences, in units of time per budget.
  double unit_time(const std::vector<std::uint32_t>& absences, const Link& link) const {
    double least = infinity;
    for (const std::uint32_t id : absences) {
      const TensorId tensor = ledger_.absences[id].tensor;
      const double bytes = static_cast<double>(copied_bytes(planning_.trace.tensors[index(tensor)]).value);
      const double ns =
          bytes / static_cast<double>(link.bytes_per_second) * 1e9 + static_cast<double>(link.latency.count());
      least = std::min(least, ns / model_.unit_ns / size(tensor));
    }
    return least;
  }

  /// Adds a column for each boundary after the write: how much has been written back.
  std::vector<int> add_write_backs(const Kind& kind) {
    Program& program = model_.program;
    double all = 0;
    for (const std::uint32_t id : kind.absences[0]) all += size(ledger_.absences[id].tensor);
    const double time = unit_time(kind.absences[0], planning_.machine.d2h);
    std::vector<int> written;
    std::uint32_t last = 0;
    for (const Stretch& away : kind.away) last = std::max(last, away.last);
    for (std::uint32_t part = kind.write; part < last; ++part) {
      const int now = program.add_column({0, all, part + 1 == last ? copy_price * time : 0, false});
      std::vector<Term>& row = out_row(part % circle_.size());
      row.push_back({now, time});
      if (!written.empty()) {
        row.push_back({written.back(), -time});
        program.at_least(0, {{now, 1}, {written.back(), -1}});
      }
      written.push_back(now);
    }
    return written;
  }

  /// Adds a column for each boundary: how much has not come back yet. It never grows from one boundary to the next.
  void add_away(const Kind& kind, std::size_t k, const std::vector<int>& written) {
    Program& program = model_.program;
    const Stretch& away = kind.away[k];
    // What lingers comes back at no cost, when it may be lost.
    const bool lingers = ledger_.absences[kind.absences[k].front()].lingers;
    const double time = lingers ? 0 : unit_time(kind.absences[k], planning_.machine.h2d);
    int before = -1;
    for (std::uint32_t b = away.first; b <= away.last; ++b) {
      const int left = program.add_column({0, infinity, b == away.first ? copy_price * time : 0, false});
      in_[b % circle_.size()].push_back({left, time});
      if (before >= 0) {
        program.at_least(0, {{before, 1}, {left, -1}});
        in_[(b - 1) % circle_.size()].push_back({left, -time});
      } else {
        add_groups(kind.absences[k], left);
      }
      before = left;
      int gone = left;
      if (kind.is_written) {
        gone = program.add_column({});
        program.at_least(0, {{left, 1}, {gone, -1}});
        if (b <= kind.write)
          program.at_most(0, {{gone, 1}});
        else
          program.at_least(0, {{written[b - kind.write - 1], 1}, {gone, -1}});
      }
      room_[b % circle_.size()].push_back({gone, 1});
    }
  }

  /// Adds the row that makes the amount which goes out equal to what the groups' columns say.
  void add_groups(const std::vector<std::uint32_t>& absences, int out) {
    std::map<std::uint64_t, std::vector<std::uint32_t>> by_size;
    for (const std::uint32_t id : absences) by_size[planning_.sizes[index(ledger_.absences[id].tensor)]].push_back(id);
    std::vector<Term> sum = {{out, -1}};
    for (auto& [bytes, ids] : by_size) {
      const auto length = [&](std::uint32_t id) { return ledger_.absences[id].end - ledger_.absences[id].first; };
      std::stable_sort(ids.begin(), ids.end(), [&](auto a, auto b) { return length(a) > length(b); });
      const double part = static_cast<double>(bytes) / budget();
      constexpr double large = 1.0 / 500;
      const int count = model_.program.add_column({0, static_cast<double>(ids.size()), 0, part >= large});
      sum.push_back({count, part});
      model_.groups.push_back({count, std::move(ids)});
    }
    model_.program.add_row({0, 0, std::move(sum)});
  }

  void add_arrival(const std::vector<std::uint32_t>& absences, const Stretch& away) {
    Program& program = model_.program;
    const double time = unit_time(absences, planning_.machine.h2d);
    double all = 0;
    for (const std::uint32_t id : absences) all += size(ledger_.absences[id].tensor);
    int before = program.add_column({all, all, 0, false});
    in_[(away.first - 1) % circle_.size()].push_back({before, time});
    for (std::uint32_t b = away.first; b <= away.last; ++b) {
      const int left = program.add_column({});
      program.at_least(0, {{before, 1}, {left, -1}});
      in_[(b - 1) % circle_.size()].push_back({left, -time});
      in_[b % circle_.size()].push_back({left, time});
      room_[b % circle_.size()].push_back({left, 1});
      needed_[b % circle_.size()] += all;
      before = left;
    }
  }

  static constexpr double copy_price = 1e-4;
  const OverlapLedger& ledger_;
  const PlanningCase& planning_;
  std::uint32_t n_;
  Rounding rounding_;
  Circle circle_;
  SlotModel model_;
  double arriving_ = 0;                  ///< parts of the budget that new inputs take
  std::vector<double> needed_;           ///< per boundary: how much must be away, in parts of the budget
  std::vector<std::vector<Term>> room_;  ///< per boundary
  std::vector<std::vector<Term>> in_;    ///< per part; with half duplex for both directions
  std::vector<std::vector<Term>> out_;
};

}  // namespace

SlotModel make_slot_model(const OverlapLedger& ledger, std::uint32_t slots, Rounding rounding) {
  return SlotsBuilder(ledger, slots, rounding).build();
}

nanoseconds iteration_bound(const SlotModel& model, double cost_bound) {
  // Neither link is busy for longer than an iteration T: stall + price x 2 T >= cost.
  constexpr double price_of_both = 2e-4;
  constexpr double rounding = 1e-7;  // the solver's tolerance
  const double cost = std::clamp(cost_bound * model.unit_ns, 0.0, 0x1p62);
  const double bound = std::max(model.compute_ns, (model.compute_ns + cost) / (1 + price_of_both) * (1 - rounding));
  return nanoseconds{static_cast<std::int64_t>(std::floor(bound))};
}

std::vector<bool> decide_stays(const SlotModel& model, const OverlapLedger& ledger, const std::vector<double>& values) {
  std::vector<bool> stays(ledger.absences.size(), true);
  for (std::size_t i = 0; i < stays.size(); ++i) stays[i] = !ledger.absences[i].is_arrival;
  for (const SlotModel::Group& group : model.groups) {
    constexpr double hardly_any = 0.02;
    const double count = std::ceil(values[static_cast<std::size_t>(group.column)] - hardly_any);
    for (std::size_t k = 0; k < group.absences.size() && static_cast<double>(k) < count; ++k) {
      stays[group.absences[k]] = false;
    }
  }
  return stays;
}

}  // namespace swapmm::planning::ilp
