// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/relaxation/swap_prices.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace swapmm::planning::relaxation {
namespace {

/// Lowers the prices of stalls until no stall pays for itself. Values that are not numbers become 0.
void make_valid(const SwapModel& model, SwapPrices& prices) {
  for (std::uint32_t part = 0; part < model.parts(); ++part) {
    double& in = prices.in[part];
    double& out = prices.out[part];
    prices.room[part] = std::max(0.0, prices.room[part]);
    in = std::max(0.0, in);
    out = model.half_duplex ? 0.0 : std::max(0.0, out);
    if (part % 2 == 0 || in + out <= 1) continue;
    in = std::min(1.0, in / (in + out));
    if (!model.half_duplex) out = 1 - in;
  }
}

/// The choice for a value's windows if its copy out runs before one of them, or in it.
struct ValueChoice {
  double gain = 0;
  std::uint32_t first_window = no_window;  ///< the first window over which it is away
  std::uint32_t out_part = 0;
  std::uint32_t in_part = no_window;  ///< of that first window, if the copy out lies in it
};

}  // namespace

SwapPricing::SwapPricing(const SwapModel& model, std::size_t classes)
    : model_(model),
      classes_(make_copy_classes(model, classes)),
      trees_(classes_.rates.size(), WindowTree(2 * std::size_t{model.parts()} + 1)),
      copies_(2 * std::size_t{model.parts()} + 1),
      stalls_(2 * std::size_t{model.parts()} + 1),
      has_replays_(std::ranges::any_of(model.dirty, [](const Window& window) { return std::isfinite(window.again); })),
      room_(2 * std::size_t{model.parts()} + 1) {}

Response SwapPricing::respond(SwapPrices& prices) {
  make_valid(model_, prices);
  set_prices(prices);
  Response response;
  response.in.assign(model_.parts(), 0.0);
  response.out.assign(model_.parts(), 0.0);
  response.clean_gain.assign(model_.clean.size(), 0.0);
  response.dirty_gain.assign(model_.dirty.size(), 0.0);
  response.made_again.assign(model_.dirty.size(), false);
  response.main_window.assign(model_.values.size(), no_window);
  response.main_gain.assign(model_.values.size(), WindowTree::nothing);

  gain_ = model_.compute;
  magnitude_ = model_.compute;
  for (std::uint32_t i = 0; i < model_.operations; ++i) {
    const std::size_t compute = 2 * std::size_t{i};
    const double room = prices.room[compute] + prices.room[compute + 1];
    add(room * model_.excess[i], 0);
    add(-model_.duration[i] * (prices.in[compute] + prices.out[compute]), 0);
  }
  for (std::size_t i = 0; i < model_.clean.size(); ++i) respond_clean(i, response);
  for (std::size_t i = 0; i < model_.values.size(); ++i) respond_value(i, response);

  // Each term is exact to a few units in the last place of a double.
  constexpr long double rounding = 1e-14L;
  const auto bound = static_cast<double>(gain_ - rounding * magnitude_);
  if (std::isfinite(bound)) response.bound = bound;
  return response;
}

void SwapPricing::set_prices(const SwapPrices& prices) {
  const std::uint32_t parts = model_.parts();
  long double sum = 0;
  for (std::uint32_t k = 0, part = 0; k <= 2 * parts; ++k) {
    sum += prices.room[part];
    room_[k] = static_cast<double>(sum);
    if (++part == parts) part = 0;
  }
  const std::vector<double>& out = model_.half_duplex ? prices.in : prices.out;
  const auto fill = [&](WindowTree& tree, CopyRate rate, bool has_room) {
    const bool may_leave = std::isfinite(rate.out);
    for (std::uint32_t k = 0, part = 0; k <= 2 * parts; ++k) {
      const double room = has_room ? room_[k] : 0;
      tree.set(k, room - rate.in * prices.in[part], may_leave ? room + rate.out * out[part] : -WindowTree::nothing);
      if (++part == parts) part = 0;
    }
    tree.build();
  };
  for (std::size_t c = 0; c < trees_.size(); ++c) fill(trees_[c], classes_.rates[c], true);
  fill(copies_, {1, 1}, false);
  if (!has_replays_) return;
  for (std::uint32_t k = 0, part = 0; k <= 2 * parts; ++k) {
    const double used = prices.in[part] + (model_.half_duplex ? 0 : prices.out[part]);
    stalls_.set(k, part % 2 == 0 ? WindowTree::nothing : used - 1, -WindowTree::nothing);
    if (++part == parts) part = 0;
  }
  stalls_.build();
}

void SwapPricing::add(double gain, double bytes) {
  gain_ += gain;
  magnitude_ += std::abs(gain) + bytes * room_.back();
}

void SwapPricing::copy_in_at(std::uint32_t part, const Window& window, Response& response) const {
  response.in[part % model_.parts()] += window.copy_in;
}

WindowTree::Answer SwapPricing::ask(const Window& window, std::uint32_t copy_class) const {
  if (window.is_empty() && !window.is_arrival) return {};
  const WindowTree& tree = copy_class == CopyClasses::none ? copies_ : trees_[copy_class];
  return tree.ask(window.first_part(), window.last_part);
}

double SwapPricing::gain_of(const Window& window, const WindowTree::Answer& answer) const {
  if (answer.back_at == WindowTree::nowhere) return -window.copy_in;
  if (window.bytes <= 0) return window.copy_in * answer.back;
  return window.bytes * (answer.back - room_[window.first_boundary - 1]);
}

double SwapPricing::gain_of_replay(const Window& window) const {
  if (!std::isfinite(window.again) || window.is_empty()) return 0;
  const double price = stalls_.ask(window.first_part(), window.last_part).back;
  const double room = room_[window.last_part] - room_[window.first_boundary - 1];
  return std::max(0.0, window.bytes * room + window.again * price);
}

void SwapPricing::respond_clean(std::size_t i, Response& response) {
  const Window& window = model_.clean[i];
  const WindowTree::Answer answer = ask(window, classes_.clean[i]);
  const double gain = gain_of(window, answer);
  response.clean_gain[i] = gain;
  if (gain <= 0 && !window.is_arrival) return;
  add(-gain, window.bytes);
  copy_in_at(answer.back_at, window, response);
}

void SwapPricing::list_answers(const WrittenValue& value) {
  answers_.resize(value.windows);
  gains_.resize(value.windows);
  again_.assign(value.windows, 0.0);
  suffix_.assign(value.windows + 1, 0.0);
  for (std::uint32_t i = value.windows; i-- > 0;) {
    const Window& window = model_.dirty[value.first_window + i];
    answers_[i] = ask(window, classes_.dirty[value.first_window + i]);
    gains_[i] = gain_of(window, answers_[i]);
    if (has_replays_) again_[i] = gain_of_replay(window);
    suffix_[i] = suffix_[i + 1] + std::max(again_[i], gains_[i]);
  }
}

void SwapPricing::respond_value(std::size_t v, Response& response) {
  const WrittenValue& value = model_.values[v];
  const Window* const windows = model_.dirty.data() + value.first_window;
  list_answers(value);
  ValueChoice best;  // without a copy out
  best.gain = value.must_go ? WindowTree::nothing : std::accumulate(again_.begin(), again_.end(), 0.0);
  double replays = 0;  // the gains of those before the window
  std::uint32_t from = value.write_part;
  WindowTree::Answer cheapest;  // over the parts up to the window
  const auto copy_out_before = [&](std::uint32_t part) {
    if (from > part) return;
    const WindowTree::Answer more = copies_.ask(from, part);
    if (more.leave < cheapest.leave) cheapest = more;
    from = part + 1;
  };
  for (std::uint32_t i = 0; i < value.windows; ++i) {
    const Window& window = windows[i];
    copy_out_before(window.first_boundary - 1);
    const double out = value.copy_out * cheapest.leave;
    const bool has_pair = window.bytes > 0 && answers_[i].both_back_at != WindowTree::nowhere;
    const double pair = has_pair ? window.bytes * answers_[i].both : WindowTree::nothing;
    const double before = replays + suffix_[i] - out;
    if (before > best.gain) best = {before, i, cheapest.leave_at, no_window};
    if (const double with_pair = replays + pair + suffix_[i + 1]; has_pair && with_pair > best.gain) {
      best = {with_pair, i, answers_[i].both_leave_at, answers_[i].both_back_at};
    }
    replays += again_[i];
    const double alone = std::max(gains_[i] - out, pair);
    response.dirty_gain[value.first_window + i] = value.must_go ? gains_[i] : alone;
    if (window.is_empty() || alone <= response.main_gain[v]) continue;
    response.main_gain[v] = alone;
    response.main_window[v] = i;
  }
  if (value.must_go) {
    copy_out_before(value.last_part);
    const double only_out = replays - value.copy_out * cheapest.leave;
    if (only_out > best.gain) best = {only_out, value.windows, cheapest.leave_at, no_window};
  }
  add(-best.gain, 0);
  const std::uint32_t copied_from = std::min(best.first_window, value.windows);
  for (std::uint32_t i = 0; i < value.windows; ++i) {
    const bool holds_copy_out = i == copied_from && best.in_part != no_window;
    if (again_[i] <= 0 || holds_copy_out || (i >= copied_from && again_[i] < gains_[i])) continue;
    add(0, windows[i].bytes);
    response.made_again[value.first_window + i] = true;
  }
  if (best.first_window == no_window) return;
  response.out[best.out_part % model_.parts()] += value.copy_out;
  for (std::uint32_t i = best.first_window; i < value.windows; ++i) {
    const bool holds_copy_out = i == best.first_window && best.in_part != no_window;
    if (!holds_copy_out && (gains_[i] <= 0 || response.made_again[value.first_window + i])) continue;
    add(0, windows[i].bytes);
    copy_in_at(holds_copy_out ? best.in_part : answers_[i].back_at, windows[i], response);
    if (i > best.first_window) response.dirty_gain[value.first_window + i] = gains_[i];
  }
}

}  // namespace swapmm::planning::relaxation
