// SPDX-License-Identifier: Apache-2.0
// Plans that outlive the process: docs/decisions/0019-plans-that-survive.md.
#include <swapmm/runtime/book/program_book.hpp>

#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>

#include <swapmm/base/error.hpp>
#include <swapmm/runtime/book/store_key.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {
namespace {

constexpr std::size_t most_lookups = 64;  // remembered per budget
// So many times a cycle that came once is looked for in vain; then only those that came again are.
constexpr std::size_t most_in_vain = 256;

/// The store's functions are the program's, and must not change the book.
class StoreRuns {
 public:
  explicit StoreRuns(bool& flag) : flag_(flag), before_(std::exchange(flag, true)) {}
  StoreRuns(const StoreRuns&) = delete;
  StoreRuns& operator=(const StoreRuns&) = delete;
  ~StoreRuns() { flag_ = before_; }

 private:
  bool& flag_;
  bool before_;
};

Result<GivenPlan> read_stored(std::string_view text, const Program& program) {
  const Result<LoadedPlan> plan = read_loaded_plan(text);
  if (!plan.has_value()) return plan.problem();
  if (!plan->is_for(program)) return Problem{"it is for the program " + plan->trace_digest()};
  return plan->given_for(program);
}

}  // namespace

// One observed iteration, or one cycle, is enough to recognize a program. Each cycle is looked for once.
bool ProgramBook::plan_from_store(Named& programs, const KnownMachine& machine) {
  if (!options_.plan_store.find || options_.planner.name().empty()) return false;
  if (!programs.loaded.empty() || pending_ != nullptr || programs.vain_lookups >= most_in_vain) return false;
  for (std::size_t p = 1; p <= std::min(options_.max_period, programs.history.size()); ++p) {
    const auto last = last_of(programs, p);
    if (programs.now().has_cycle(last) || programs.now().was_looked_for(last)) continue;
    const Result<Program> program = program_of(programs, last);
    if (!program.has_value()) continue;
    std::optional<GivenPlan> given = stored(programs, last, *program, machine);
    if (!given) {
      ++programs.vain_lookups;
      continue;
    }
    plan_cycle(programs, p, std::move(given), machine);
    return true;
  }
  return false;
}

// Whether plan_from_store() will look for a cycle at the end of that history.
bool ProgramBook::may_find_stored(const Named& programs, std::span<const std::uint64_t> history) const {
  if (!options_.plan_store.find || options_.planner.name().empty()) return false;
  if (programs.vain_lookups >= most_in_vain) return false;
  for (std::size_t p = 1; p <= std::min(options_.max_period, history.size()); ++p) {
    const auto last = history.last(p);
    if (!programs.now().has_cycle(last) && !programs.now().was_looked_for(last)) return true;
  }
  return false;
}

// What the store has for that program. The same key is looked for once.
std::optional<GivenPlan> ProgramBook::stored(Named& programs, std::span<const std::uint64_t> members,
                                             const Program& program, const KnownMachine& machine) {
  const std::string& planner = options_.planner.name();
  if (!options_.plan_store.find || planner.empty()) return {};
  std::string key = store_key(program, machine, planner, allows_replays());
  std::vector<PlanSet::Lookup>& lookups = programs.now().lookups;
  const bool was_looked_for =
      std::any_of(lookups.begin(), lookups.end(), [&](const PlanSet::Lookup& lookup) { return lookup.key == key; });
  if (lookups.size() == most_lookups) lookups.erase(lookups.begin());
  lookups.push_back({{members.begin(), members.end()}, key});
  if (was_looked_for) return {};
  std::optional<std::string> text;
  try {
    const StoreRuns runs(planner_runs_);
    text = options_.plan_store.find(key);
  } catch (...) {
    options_.plan_store.find = nullptr;
    note("the plan store cannot be read: " + what_of(std::current_exception()));
  }
  if (!text) return {};
  Result<GivenPlan> given = read_stored(*text, program);
  if (given.has_value()) {
    given->store_key = std::move(key);
    return *std::move(given);
  }
  refuse_stored(key, given.problem().message);
  return {};
}

void ProgramBook::keep_plan(const CompiledPlan& made, const KnownMachine& machine) noexcept {
  const std::string& planner = options_.planner.name();
  if (!options_.plan_store.keep || planner.empty()) return;
  if (made.tiered) return;  // it depends on how much memory the host has at the moment
  bool is_written = false;
  try {
    std::ostringstream text;
    write_compiled_plan(text, made);
    is_written = true;
    const StoreRuns runs(planner_runs_);
    options_.plan_store.keep(store_key(made.observed(), machine, planner, allows_replays()), text.str());
  } catch (...) {
    if (is_written) options_.plan_store.keep = nullptr;  // the store is to blame, and not this plan
    try {
      note("a plan was not kept: " + what_of(std::current_exception()));
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for the note
    }
  }
}

void ProgramBook::refuse_stored(const std::string& key, const std::string& reason) noexcept {
  try {
    note("a plan of the store is ignored: " + reason);
    const StoreRuns runs(planner_runs_);
    if (options_.plan_store.refused) options_.plan_store.refused(key, reason);
  } catch (...) {  // NOLINT(bugprone-empty-catch): nothing depends on it
  }
}

}  // namespace swapmm::runtime
