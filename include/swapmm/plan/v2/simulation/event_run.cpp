// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/simulation/event_run.hpp>

#include <algorithm>
#include <optional>

#include <swapmm/plan/v2/simulation/deciding.hpp>

namespace swapmm::v2::simulation {
namespace {

constexpr std::uint64_t most_ahead = 1000;

/// For a heap with the earliest time on top.
constexpr auto later = [](const auto& a, const auto& b) { return a.time > b.time; };

}  // namespace

EventRun::EventRun(const Trace& trace, const Plan& plan, const Parts& parts, const std::vector<Element>& elements)
    : elements_(elements),
      waits_(elements.size(), collect_edges(trace, plan, elements, parts)),
      iteration_end_(static_cast<std::uint32_t>(elements.size() - 1)),
      decides_(deciding_elements(plan.machine, elements, waits_, iteration_end_)),
      all_decide_(std::ranges::find(decides_, false) == decides_.end()),
      flows_(plan.machine),
      occupation_(initially_occupied(plan, parts)),
      progress_(elements.size()),
      records_(elements.size()) {
  for (std::uint32_t e = 0; e < elements.size(); ++e) {
    progress_[e].missing = count_missing(e);
    if (progress_[e].missing == 0) ready_.push_back(e);
  }
}

// Iteration k of an element waits for iteration k, or k - 1, of another one, whose first `ended` iterations have ended.
std::uint32_t EventRun::count_missing(std::uint32_t element) const {
  const std::uint64_t iteration = progress_[element].started;
  std::uint32_t missing = 0;
  for (const Waits::Arc& arc : waits_.waited_by(element)) {
    if (progress_[arc.element].ended + (arc.back ? 1 : 0) <= iteration) ++missing;
  }
  return missing;
}

bool EventRun::step(std::size_t most_iterations) {
  if (ready_.empty() && !go_to_next_time()) return false;
  settled_ = false;
  while (!ready_.empty()) {
    if (iteration_ends_.size() >= most_iterations) return true;
    const std::uint32_t element = ready_.back();
    ready_.pop_back();
    start(element);
  }
  flows_.settle(now_);
  occupation_.settle();
  settled_ = true;
  return true;
}

bool EventRun::go_to_next_time() {
  std::optional<Time> next = flows_.next_end();
  if (!timed_.empty()) next = next ? std::min(*next, timed_.front().time) : timed_.front().time;
  if (!next) return false;
  if (*next - (iteration_ends_.empty() ? 0 : iteration_ends_.back()) > longest) return false;
  now_ = *next;
  while (!timed_.empty() && timed_.front().time == now_) {
    std::ranges::pop_heap(timed_, later);
    const std::uint32_t element = timed_.back().element;
    timed_.pop_back();
    end_engine_time(element);
  }
  flowed_.clear();
  flows_.take_ended(now_, flowed_);
  for (const std::uint32_t element : flowed_) end(element);
  return true;
}

void EventRun::make_ready(std::uint32_t element) {
  const bool too_far = progress_[element].started >= iteration_ends_.size() + most_ahead;
  (too_far ? held_ : ready_).push_back(element);
}

void EventRun::start(std::uint32_t element) {
  Progress& progress = progress_[element];
  ++progress.started;
  progress.start = now_;
  progress.missing = count_missing(element);
  const Element& what = elements_[element];
  if (what.memory) {
    occupation_.add(*what.memory, what.occupied);
    if (log_ != nullptr) log_->changes.push_back({now_, *what.memory, what.occupied});
  }
  if (what.time == 0) {
    end_engine_time(element);
  } else {
    timed_.push_back({now_ + what.time, element});
    std::ranges::push_heap(timed_, later);
  }
}

void EventRun::end_engine_time(std::uint32_t element) {
  const Element& what = elements_[element];
  if (what.link && what.flow > Bytes{0}) {
    flows_.begin(element, *what.link, what.flow);
  } else {
    end(element);
  }
}

void EventRun::end(std::uint32_t element) {
  Progress& progress = progress_[element];
  const std::uint64_t iteration = progress.ended++;
  if (log_ != nullptr) log_->ended.push_back({element, iteration, progress.start, now_});
  if (iteration <= record_up_to_) {
    records_[element] = {progress.ended, progress.start, now_};
    if (iteration == record_up_to_) --unrecorded_;
  }
  if (element == iteration_end_) end_iteration();
  for (const Waits::Arc& arc : waits_.waiting_for(element)) {
    Progress& waiting = progress_[arc.element];
    if (waiting.started == iteration + (arc.back ? 1 : 0) && --waiting.missing == 0) make_ready(arc.element);
  }
}

void EventRun::end_iteration() {
  iteration_ends_.push_back(now_);
  ready_.insert(ready_.end(), held_.begin(), held_.end());
  held_.clear();
}

void EventRun::capture(RunState& state, Which which) const {
  const bool all = which == Which::all;
  const auto iterations = static_cast<std::int64_t>(iteration_ends_.size());
  state.ahead.clear();
  for (std::size_t e = 0; e < progress_.size(); ++e) {
    if (all || decides_[e]) state.ahead.push_back(static_cast<std::int64_t>(progress_[e].ended) - iterations);
  }
  state.active.clear();
  const auto add = [&](std::uint32_t element, bool flows, Work left) {
    if (all || decides_[element]) state.active.push_back({element, flows, left});
  };
  for (const TimedEnd& end : timed_) add(end.element, false, static_cast<Work>(end.time - now_));
  flows_.for_each_left(now_, [&](std::uint32_t element, Work left) { add(element, true, left); });
  std::ranges::sort(state.active, {}, &RunState::Active::element);
}

std::vector<ElementRun> EventRun::under_way() const {
  std::vector<ElementRun> runs;
  for (std::uint32_t e = 0; e < progress_.size(); ++e) {
    const Progress& progress = progress_[e];
    if (progress.started > progress.ended) runs.push_back({e, progress.ended, progress.start, std::nullopt});
  }
  return runs;
}

std::size_t EventRun::next_new_iteration() const { return std::ranges::max(progress_, {}, &Progress::started).started; }

void EventRun::record_up_to(std::size_t iteration) {
  record_up_to_ = iteration;
  unrecorded_ = elements_.size();
}

}  // namespace swapmm::v2::simulation
