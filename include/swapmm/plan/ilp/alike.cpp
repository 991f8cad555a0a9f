// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ilp/alike.hpp>

#include <algorithm>

namespace swapmm::planning::ilp {
namespace {

/// The absences of a tensor.
struct Range {
  std::size_t first = 0;
  std::size_t count = 0;
};

bool is_read_by_host(const PlanningCase& planning, std::size_t tensor) {
  const std::vector<HostRead>& reads = planning.trace.host_reads;
  return std::any_of(reads.begin(), reads.end(), [&](const HostRead& read) { return index(read.tensor) == tensor; });
}

bool have_the_same_uses(const PlanningCase& planning, std::size_t a, std::size_t b) {
  const std::vector<Use>& uses = planning.liveness.uses[a];
  const std::vector<Use>& others = planning.liveness.uses[b];
  return std::equal(uses.begin(), uses.end(), others.begin(), others.end(),
                    [](const Use& x, const Use& y) { return x.operation == y.operation && x.access == y.access; });
}

bool are_alike(const OverlapLedger& ledger, const Absence& one, const Absence& two) {
  if (one.first != two.first || one.end != two.end || one.is_arrival != two.is_arrival) return false;
  if (one.lingers != two.lingers || one.to_overwrite != two.to_overwrite) return false;
  if ((one.version == no_version) != (two.version == no_version)) return false;
  if (one.version == no_version) return true;
  const Version& of_one = ledger.versions[one.version];
  const Version& of_two = ledger.versions[two.version];
  return of_one.write == of_two.write && of_one.absences == of_two.absences;
}

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> alike_absences(const OverlapLedger& ledger) {
  const PlanningCase& planning = ledger.planning;
  std::vector<Range> ranges(planning.sizes.size());
  for (std::size_t id = ledger.absences.size(); id-- > 0;) {
    Range& range = ranges[index(ledger.absences[id].tensor)];
    range.first = id;
    ++range.count;
  }
  const auto differ_in_name_only = [&](std::size_t a, std::size_t b) {
    if (planning.sizes[a] != planning.sizes[b] || ranges[a].count != ranges[b].count) return false;
    for (std::size_t i = 0; i < ranges[a].count; ++i) {
      if (!are_alike(ledger, ledger.absences[ranges[a].first + i], ledger.absences[ranges[b].first + i])) return false;
    }
    return have_the_same_uses(planning, a, b) && !is_read_by_host(planning, a) && !is_read_by_host(planning, b);
  };
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t b = 1; b < ranges.size(); ++b) {
    for (std::size_t a = b; ranges[b].count > 0 && a-- > 0;) {
      if (!differ_in_name_only(a, b)) continue;
      pairs.emplace_back(ranges[a].first, ranges[b].first);
      break;
    }
  }
  return pairs;
}

}  // namespace swapmm::planning::ilp
