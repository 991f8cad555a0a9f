// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/simulation/flows.hpp>

#include <algorithm>

namespace swapmm::v2::simulation {

void Flows::begin(std::uint32_t element, LinkId link, Bytes bytes) {
  copies_.push_back({element, bytes.value * work_per_byte});
  links_.push_back(link);
  rates_.push_back(0);
  changed_ = true;
}

Work Flows::left_at(std::size_t copy, Time now) const {
  const Work done = rates_[copy] * static_cast<Work>(now - since_);
  return copies_[copy].left - std::min(copies_[copy].left, done);
}

void Flows::go_on_to(Time now) {
  for (std::size_t i = 0; i < copies_.size(); ++i) copies_[i].left = left_at(i, now);
  since_ = now;
}

void Flows::take_ended(Time now, std::vector<std::uint32_t>& ended) {
  if (!next_end_ || now < *next_end_) return;
  go_on_to(now);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    if (copies_[i].left == 0) {
      ended.push_back(copies_[i].element);
      continue;
    }
    copies_[kept] = copies_[i];
    links_[kept] = links_[i];
    rates_[kept] = rates_[i];
    ++kept;
  }
  copies_.resize(kept);
  links_.resize(kept);
  rates_.resize(kept);
  changed_ = true;
}

void Flows::settle(Time now) {
  if (!changed_) return;
  changed_ = false;
  go_on_to(now);
  rates_of_.compute(links_, rates_);
  next_end_.reset();
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const Work time = (copies_[i].left + rates_[i] - 1) / rates_[i];  // the first whole nanosecond
    const Time end = now + static_cast<Time>(time);
    next_end_ = next_end_ ? std::min(*next_end_, end) : end;
  }
}

}  // namespace swapmm::v2::simulation
