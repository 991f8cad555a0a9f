// SPDX-License-Identifier: Apache-2.0
#include "support/random_program.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <swapmm/backend/testing/simulated/random.hpp>
#include <swapmm/plan/planners.hpp>

#include "support/random_extras.hpp"
#include "support/random_options.hpp"

namespace swapmm::test {
namespace {

constexpr std::uint8_t no_slot = slot_count;
constexpr std::uint8_t first_local = 9;  // slots below hold tensors that outlive iterations

/// What is known of a slot while a program is drawn.
struct Slot {
  bool exists = false;
  bool has_value = false;
  Lifetime lifetime = Lifetime::observed;
  std::uint32_t bytes = 0;
  std::uint8_t slices = 1;
  bool uneven = false;

  [[nodiscard]] bool like(const Slot& other) const {
    return exists && other.exists && has_value && other.has_value && lifetime == other.lifetime &&
           bytes == other.bytes && slices == other.slices && uneven == other.uneven;
  }
};

/// What one kind of iteration does, and what comes between it and the next one.
struct IterationPattern {
  std::uint8_t name = 0;
  std::vector<Action> body;
  std::vector<Action> gap;
};

class ProgramGenerator {
 public:
  ProgramGenerator(std::uint64_t seed, std::size_t operations) : random_(seed), operations_left_(operations) {
    program_.seed = seed;
  }

  TestProgram make() {
    wild_ = chance(35);
    draw_device(random_, program_.device);
    draw_scheduler(random_, program_.scheduler);
    make_handles();
    unroll();
    program_.steady = !wild_ && patterns_.size() == 1 && (!exchanges_ || program_.scheduler.observe >= 2);
    simulated::detail::Random extras(program_.seed ^ 0x51DE'D04DU);  // as with `later`
    const bool with_side_downloads = extras.below(4) == 0;
    if (with_side_downloads) add_work_areas(extras, program_);
    draw_budgets(random_, program_);
    if (wild_ && chance(40)) add_large();
    simulated::detail::Random later(program_.seed ^ 0x5E7'B0D6E7U);  // so that the rest is as it was
    draw_measures(later, program_.scheduler);
    draw_budget_changes(later, program_);
    draw_views(later);
    program_.reads_all = later.below(2) == 0;
    draw_slow_link(extras, program_.device);
    simulated::detail::Random disk(program_.seed ^ 0xD15C'F11EU);  // as with `later`
    draw_file(disk, program_);
    simulated::detail::Random second(program_.seed ^ 0x2'DEF'1CE5U);  // as with `later`
    draw_neighbours(second, program_);
    if (with_side_downloads) add_side_downloads(extras, program_);
    simulated::detail::Random codec(program_.seed ^ 0xC0'DEC0'DE55U);  // as with `later`
    draw_codec(codec, program_);
    if (extras.below(8) == 0) add_outlived_views(extras, program_);
    simulated::detail::Random views(program_.seed ^ 0xF00D'51E5U);  // as with `later`
    if (views.below(6) == 0) add_host_views(views, program_);
    return std::move(program_);
  }

 private:
  std::uint32_t below(std::uint32_t limit) { return random_.below(limit); }
  bool chance(std::uint32_t percent) { return random_.below(100) < percent; }
  template <class List>
  auto& any_of(List& list) {
    return list[below(static_cast<std::uint32_t>(list.size()))];
  }

  // ---- tensors

  std::uint32_t random_size() {
    if (!sizes_.empty() && chance(55)) return any_of(sizes_);
    const std::uint32_t magnitude = 8U << below(8);  // 8 to 1024
    std::uint32_t size = magnitude + below(magnitude + 1);
    if (chance(60)) size -= size % 8;
    sizes_.push_back(size);
    return size;
  }

  Action make_action(std::uint8_t slot, bool local) {
    Action action;
    action.kind = ActionKind::make;
    action.slot = slot;
    action.bytes = random_size();
    const std::uint32_t kind = below(100);
    action.lifetime = local || kind < 70 ? Lifetime::observed : kind < 85 ? Lifetime::transient : Lifetime::kept;
    action.slices = static_cast<std::uint8_t>(chance(60) ? 1 : 2 + below(3));
    action.uneven = chance(25);
    const std::uint64_t unit = action.uneven ? 1 : program_.device.alignment.value;
    if (action.bytes < action.slices * unit) action.slices = 1;
    slots_[slot] = {true, false, action.lifetime, action.bytes, action.slices, action.uneven};
    return action;
  }

  void make_handles() {
    handles_ = static_cast<std::uint8_t>(2 + below(8));
    for (std::uint8_t slot = 0; slot < handles_; ++slot) {
      emit(make_action(slot, false));
      if (slots_[slot].lifetime != Lifetime::transient && chance(60)) emit(upload(slot, true));
    }
  }

  // ---- single actions, that make sense where they stand

  Action upload(std::uint8_t slot, bool whole) {
    Action action;
    action.kind = ActionKind::upload;
    action.slot = slot;
    if (!whole) draw_slices(action.first, action.slices, slots_[slot]);
    slots_[slot].has_value = true;
    return action;
  }

  void draw_slices(std::uint8_t& first, std::uint8_t& count, const Slot& slot) {
    first = static_cast<std::uint8_t>(below(slot.slices));
    count = static_cast<std::uint8_t>(1 + below(slot.slices - first));
  }

  std::vector<std::uint8_t> slots_where(auto&& condition) {
    std::vector<std::uint8_t> found;
    for (std::uint8_t slot = 0; slot < slot_count; ++slot) {
      if (slots_[slot].exists && condition(slots_[slot])) found.push_back(slot);
    }
    return found;
  }

  void shuffle(std::vector<std::uint8_t>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(static_cast<std::uint32_t>(i))]);
  }

  Action operation(std::uint8_t name) {
    static constexpr std::array<std::uint8_t, 20> counts{1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4, 4, 4, 5, 6};
    Action action;
    action.kind = ActionKind::operation;
    action.name = name;
    auto candidates = slots_where([](const Slot&) { return true; });
    shuffle(candidates);
    const auto last = std::find(candidates.begin(), candidates.end(), last_written_);
    if (last != candidates.end() && chance(35)) std::swap(*last, candidates.front());  // chains, often in place
    const std::size_t count = std::min<std::size_t>(any_of(counts), candidates.size());
    bool writes = false;
    for (std::size_t i = 0; i < count; ++i) {
      Part& part = action.parts[i];
      part = random_part(candidates[i]);
      if (part.access == Access::read && i + 1 == count && !writes && chance(90)) part.access = Access::update;
      if (part.access == Access::read) continue;
      writes = true;
      last_written_ = part.slot;
      slots_[part.slot].has_value = true;
    }
    action.part_count = static_cast<std::uint8_t>(count);
    if (chance(20)) action.bytes = 1 + below(chance(50) ? 64 : 512);
    action.form = {chance(40), chance(30), chance(20), chance(70)};
    return action;
  }

  Part random_part(std::uint8_t slot) {
    Part part;
    part.slot = slot;
    const Slot& known = slots_[slot];
    const std::uint32_t kind = below(100);
    part.access = !known.has_value || kind >= 80 ? Access::write : kind < 55 ? Access::read : Access::update;
    if (known.has_value && known.slices > 1 && !known.uneven && chance(40)) {
      draw_slices(part.first, part.count, known);
    }
    return part;
  }

  /// Something that the host does with a value, in an iteration or between two.
  void add_host_action(std::vector<Action>& list, bool between) {
    if (chance(25)) {
      const auto any = slots_where([](const Slot& slot) { return slot.has_value || slot.lifetime != Lifetime::kept; });
      if (any.empty()) return;
      const std::uint8_t slot = any_of(any);
      list.push_back(upload(slot, !slots_[slot].has_value || chance(80)));
      return;
    }
    const auto with_value = slots_where(
        [&](const Slot& slot) { return slot.has_value && (!between || slot.lifetime != Lifetime::transient); });
    if (with_value.empty()) return;
    Action action;
    action.slot = any_of(with_value);
    if (chance(30)) draw_slices(action.first, action.slices, slots_[action.slot]);
    action.other = static_cast<std::uint8_t>(below(promise_count));
    switch (below(6)) {
      case 0:
      case 1: action.kind = ActionKind::download; break;
      case 2:
      case 3: action.kind = ActionKind::promise; break;
      case 4: action.kind = chance(75) ? ActionKind::collect : ActionKind::drop; break;
      case 5: action.kind = chance(60) ? ActionKind::collect : ActionKind::synchronize; break;
    }
    list.push_back(action);
  }

  // ---- iterations

  IterationPattern draw_pattern(std::size_t operations) {
    IterationPattern pattern;
    pattern.name = static_cast<std::uint8_t>(patterns_.empty() || chance(50) ? 0 : below(3));
    for (Slot& slot : slots_) {
      if (slot.lifetime == Lifetime::transient) slot.has_value = false;
    }
    const std::uint32_t inputs = chance(50) ? below(3) : 0;
    for (std::uint32_t i = 0; i < inputs; ++i) {
      pattern.body.push_back(upload(static_cast<std::uint8_t>(below(handles_)), true));
    }
    const bool with_locals = chance(40);
    const std::uint32_t host_actions = chance(50) ? 0 : 15;
    std::uint8_t next_local = first_local;
    for (std::size_t i = 0; i < operations; ++i) {
      if (with_locals && next_local < slot_count && chance(40)) pattern.body.push_back(make_action(next_local++, true));
      if (chance(host_actions)) add_host_action(pattern.body, false);
      pattern.body.push_back(operation(next_operation_++));
      if (with_locals && chance(20)) destroy_local(pattern.body);
    }
    if (chance(host_actions)) add_host_action(pattern.body, false);
    // Some end between the iterations: still a local, for the next one begins without it.
    while (chance(70) && destroy_local(pattern.body)) {
    }
    const std::uint32_t between = chance(50) ? 0 : 1 + below(2);
    for (std::uint32_t i = 0; i < between; ++i) add_host_action(pattern.gap, true);
    if (chance(20)) add_exchange(pattern.gap);
    while (destroy_local(pattern.gap)) {
    }
    return pattern;
  }

  bool destroy_local(std::vector<Action>& list) {
    std::vector<std::uint8_t> locals;
    for (std::uint8_t slot = first_local; slot < slot_count; ++slot) {
      if (slots_[slot].exists) locals.push_back(slot);
    }
    if (locals.empty()) return false;
    Action action;
    action.kind = ActionKind::destroy;
    action.slot = any_of(locals);
    slots_[action.slot] = {};
    list.push_back(action);
    return true;
  }

  void add_exchange(std::vector<Action>& list) {
    for (std::uint8_t a = 0; a < handles_; ++a) {
      for (std::uint8_t b = static_cast<std::uint8_t>(a + 1); b < handles_; ++b) {
        if (!slots_[a].like(slots_[b]) || !chance(60)) continue;
        Action action;
        action.kind = ActionKind::exchange;
        action.slot = a;
        action.other = b;
        list.push_back(action);
        exchanges_ = true;
        return;
      }
    }
  }

  /// Iterations one after another, as a cycle of patterns; wild programs leave it at times.
  void unroll() {
    const std::size_t iterations = 5 + below(10);
    const std::size_t operations = std::max<std::size_t>(1, operations_left_ / iterations);
    const std::uint32_t kinds = chance(65) ? 1 : 2 + below(2);
    std::vector<std::uint8_t> cycle{0};
    while (kinds > 1 && cycle.size() < kinds + below(2)) {
      cycle.push_back(static_cast<std::uint8_t>(cycle.size() < kinds ? cycle.size() : below(kinds)));
    }
    while (operations_left_ > 0) {
      const std::uint8_t kind = cycle[iteration_ % cycle.size()];
      if (kind >= patterns_.size()) patterns_.push_back(draw_pattern(operations));
      IterationPattern pattern = patterns_[kind];
      const std::uint8_t left_over = std::exchange(not_made_next_, no_slot);
      std::erase_if(pattern.body,
                    [&](const Action& action) { return action.kind == ActionKind::make && action.slot == left_over; });
      if (wild_ && chance(20)) disturb(pattern);
      emit_iteration(pattern);
      ++iteration_;
    }
  }

  void emit_iteration(const IterationPattern& pattern) {
    if (program_.scheduler.planning == Planning::deferred && chance(25)) emit(action_of(ActionKind::plan));
    Action begin = action_of(ActionKind::begin_iteration);
    begin.name = pattern.name;
    emit(begin);
    for (const Action& action : pattern.body) {
      if (action.kind == ActionKind::operation && operations_left_ > 0) --operations_left_;
      emit(action);
    }
    emit(action_of(ActionKind::end_iteration));
    for (const Action& action : pattern.gap) emit(action);
    if (pattern.body.empty() && operations_left_ > 0) --operations_left_;
  }

  static Action action_of(ActionKind kind) {
    Action action;
    action.kind = kind;
    return action;
  }

  /// Makes an iteration another one than the program has shown so far.
  void disturb(IterationPattern& pattern) {
    std::vector<Action>& body = pattern.body;
    const auto insert = [&](std::vector<Action>& list, const Action& action) {
      list.insert(list.begin() + below(static_cast<std::uint32_t>(list.size() + 1)), action);
    };
    const std::uint32_t position = body.empty() ? 0 : below(static_cast<std::uint32_t>(body.size()));
    switch (below(9)) {
      case 0:
        if (body.empty()) break;
        // A tensor of this iteration that is still there in the next one, which may take it instead of its own.
        if (body[position].kind == ActionKind::destroy && chance(70)) not_made_next_ = body[position].slot;
        body.erase(body.begin() + position);
        break;
      case 1: body.resize(position); break;  // ends early
      case 2: insert(body, operation(200)); break;
      case 3: insert(pattern.gap, operation(201)); break;
      case 4: insert(body, remake()); break;
      case 5: insert(pattern.gap, remake()); break;
      case 6: add_host_action(chance(50) ? body : pattern.gap, false); break;
      case 7: insert(body, action_of(chance(50) ? ActionKind::begin_iteration : ActionKind::synchronize)); break;
      case 8: disturb_operation(body); break;
    }
  }

  /// The same slot, another tensor.
  Action remake() {
    const auto slot = static_cast<std::uint8_t>(below(handles_));
    const Slot before = slots_[slot];
    Action action = make_action(slot, false);
    action.lifetime = before.lifetime;
    if (chance(60)) action.bytes = before.bytes;
    if (action.bytes < action.slices * program_.device.alignment.value) action.slices = 1;
    slots_[slot] = before;  // the patterns stay as they are
    return action;
  }

  void disturb_operation(std::vector<Action>& body) {
    for (Action& action : body) {
      if (action.kind != ActionKind::operation || !chance(30)) continue;
      if (chance(20)) {
        action.bytes += 8;
      } else if (chance(20) && action.part_count < most_parts && action.part_count > 0) {
        action.parts[action.part_count++] = action.parts[0];  // twice in one bundle
      } else if (action.part_count > 0) {
        action.parts[below(action.part_count)] = random_part(any_of(action.parts).slot);
      }
      return;
    }
  }

  /// Some parts are reached by other ways.
  void draw_views(simulated::detail::Random& random) {
    const auto draw = [&](ViewForm& view) {
      if (random.below(3) == 0) view = static_cast<ViewForm>(1 + random.below(view_form_count - 1));
    };
    for (Action& action : program_.actions) {
      for (std::size_t i = 0; i < action.part_count; ++i) draw(action.parts[i].view);
      const bool by_host = action.kind == ActionKind::upload || action.kind == ActionKind::download ||
                           action.kind == ActionKind::promise;
      if (by_host) draw(action.view);
    }
  }

  /// Somewhere an operation that fills the budget exactly, or asks for one byte too many, or for far too many.
  void add_large() {
    Action action = action_of(ActionKind::operation);
    action.name = 202;
    const Bytes alignment = program_.device.alignment;
    const Bytes budget = round_down(program_.manager.device_budget, alignment);
    Bytes tensors;
    for (const Action& made : program_.actions) {
      if (made.kind != ActionKind::make || made.slot != action.part_count || made.slot == most_parts) continue;
      if (tensors + round_up(Bytes{made.bytes}, alignment) > budget) break;
      tensors += round_up(Bytes{made.bytes}, alignment);
      action.parts[action.part_count++] = {made.slot, Access::write, 0, most_slices};
    }
    const Bytes left = budget - tensors;
    constexpr std::array<std::uint64_t, 4> beyond{0, 1, 1, 2000};
    action.bytes = static_cast<std::uint32_t>((left + Bytes{any_of(beyond)}).value);
    auto& actions = program_.actions;
    actions.insert(actions.begin() + below(static_cast<std::uint32_t>(actions.size() + 1)), action);
  }

  void emit(const Action& action) { program_.actions.push_back(action); }

  simulated::detail::Random random_;
  std::size_t operations_left_;
  TestProgram program_;
  bool wild_ = false;
  bool exchanges_ = false;
  std::uint8_t handles_ = 0;
  std::uint8_t last_written_ = 0;
  std::uint8_t next_operation_ = 0;
  std::uint8_t not_made_next_ = no_slot;
  std::size_t iteration_ = 0;
  std::array<Slot, slot_count> slots_{};
  std::vector<std::uint32_t> sizes_;
  std::vector<IterationPattern> patterns_;
};

}  // namespace

TestProgram random_program(std::uint64_t seed, std::size_t operations) {
  return ProgramGenerator(seed, operations).make();
}

}  // namespace swapmm::test
