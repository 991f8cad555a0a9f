// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/explain/stall_search.hpp>

#include <algorithm>
#include <set>

namespace swapmm::v2::explaining {

using simulation::ElementRun;

StallSearch::StallSearch(const Plan& plan, const std::vector<simulation::Element>& elements,
                         const simulation::Waits& waits, const long_run::Turn& turn)
    : plan_(plan), elements_(elements), waits_(waits) {
  for (const ElementRun& run : turn.runs) runs_[{run.element, run.iteration}] = &run;
}

bool StallSearch::releases(std::uint32_t element) const {
  const std::size_t operations = elements_.size() - 1 - plan_.commands.size();
  if (element < operations || element + 1 == elements_.size()) return false;
  return plan_.commands[element - operations].kind == CommandKind::release;
}

const ElementRun* StallSearch::find(std::uint32_t element, std::size_t iteration) const {
  const auto found = runs_.find({element, iteration});
  return found == runs_.end() ? nullptr : found->second;
}

std::optional<StallSearch::Cause> StallSearch::cause_of(const ElementRun& run) const {
  constexpr std::size_t most = 10'000;
  std::vector<Cause> found{{&run, std::nullopt}};
  std::set<const ElementRun*> seen{&run};
  std::optional<Cause> other;  // on another engine, and not a copy
  for (std::size_t i = 0; i < found.size() && i < most; ++i) {
    const Cause at = found[i];
    for (const simulation::Waits::Arc& arc : waits_.waited_by(at.run->element)) {
      if (arc.back && at.run->iteration == 0) continue;
      const ElementRun* const before = find(arc.element, at.run->iteration - (arc.back ? 1 : 0));
      if (before == nullptr || !before->end || *before->end != run.start || !seen.insert(before).second) continue;
      const simulation::Element& element = elements_[before->element];
      const bool takes_time = before->start < *before->end;
      if (takes_time && element.link) return Cause{before, at.room};
      if (takes_time) {
        if (!other) other = Cause{before, at.room};
        continue;
      }
      Cause next{before, at.room};
      if (releases(before->element)) next.room = before->element;
      found.push_back(next);
    }
  }
  return other;
}

}  // namespace swapmm::v2::explaining
