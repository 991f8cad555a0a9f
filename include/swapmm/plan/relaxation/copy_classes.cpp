// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/relaxation/copy_classes.hpp>

#include <algorithm>
#include <limits>

namespace swapmm::planning::relaxation {
namespace {

struct Member {
  CopyRate rate;
  double bytes = 0;
  bool is_dirty = false;
  std::uint32_t* copy_class = nullptr;
};

/// A class to which windows are being added.
struct Growing {
  CopyRate least{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  double time = 0;  ///< of all copies
  double bytes = 0;
  double dirty_bytes = 0;

  void add(const Member& member) {
    least.in = std::min(least.in, member.rate.in);
    time += member.bytes * member.rate.in;
    bytes += member.bytes;
    if (!member.is_dirty) return;
    least.out = std::min(least.out, member.rate.out);
    time += member.bytes * member.rate.out;
    dirty_bytes += member.bytes;
  }
  double lost() const { return time - bytes * least.in - (dirty_bytes > 0 ? dirty_bytes * least.out : 0); }
};

std::vector<Member> members_of(const SwapModel& model, CopyClasses& classes) {
  std::vector<Member> members;
  for (std::size_t i = 0; i < model.clean.size(); ++i) {
    const Window& window = model.clean[i];
    if (window.bytes <= 0) continue;
    members.push_back({{window.copy_in / window.bytes, 0}, window.bytes, false, &classes.clean[i]});
  }
  for (const WrittenValue& value : model.values) {
    for (std::uint32_t i = value.first_window; i < value.first_window + value.windows; ++i) {
      const Window& window = model.dirty[i];
      if (window.bytes <= 0) continue;
      const CopyRate rate{window.copy_in / window.bytes, value.copy_out / window.bytes};
      members.push_back({rate, window.bytes, true, &classes.dirty[i]});
    }
  }
  std::stable_sort(members.begin(), members.end(),
                   [](const Member& a, const Member& b) { return a.rate.in + a.rate.out < b.rate.in + b.rate.out; });
  return members;
}

/// Lets each class grow until it would lose more than `allowed` nanoseconds.
std::vector<CopyRate> group(const std::vector<Member>& members, double allowed) {
  std::vector<CopyRate> rates;
  Growing growing;
  for (const Member& member : members) {
    Growing grown = growing;
    grown.add(member);
    if (rates.empty() || grown.lost() > allowed) {
      grown = Growing{};
      grown.add(member);
      rates.emplace_back();
    }
    growing = grown;
    rates.back() = growing.least;
    *member.copy_class = static_cast<std::uint32_t>(rates.size() - 1);
  }
  return rates;
}

}  // namespace

CopyClasses make_copy_classes(const SwapModel& model, std::size_t most) {
  CopyClasses classes;
  classes.clean.assign(model.clean.size(), CopyClasses::none);
  classes.dirty.assign(model.dirty.size(), CopyClasses::none);
  const std::vector<Member> members = members_of(model, classes);
  double total = 0;
  for (const Member& member : members) total += member.bytes * (member.rate.in + member.rate.out);
  // If all of the time may be lost, all windows are one class.
  constexpr double least_loss = 1e-7;
  for (double allowed = least_loss; allowed < 4; allowed *= 4) {
    classes.rates = group(members, allowed * total);
    if (classes.rates.size() <= most) break;
  }
  return classes;
}

}  // namespace swapmm::planning::relaxation
