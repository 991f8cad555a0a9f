// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/validation/value_check.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

namespace swapmm::validation {
namespace {

/// A command of some iteration; iterations count from 0.
struct Issued {
  std::size_t command;
  std::int64_t iteration;
};

/// Follows one tensor. Its events and commands are processed one by one, in an order that agrees with every execution
/// as far as it matters; if there is none, a violation says so. An event comes before a command of its iteration if it
/// has certainly ended when the command starts. It comes before all commands of later iterations.
class ValueTracker {
 public:
  ValueTracker(const Trace& trace, const Plan& plan, const HappensBefore& order, const TensorEvents& events,
               Findings& findings, std::size_t tensor, const Resident* initial)
      : plan_(plan),
        order_(order),
        findings_(findings),
        tensor_(tensor),
        initial_(initial),
        kind_(trace.tensors[tensor].kind),
        available_from_(trace.tensors[tensor].available_from),
        events_(events.events(tensor)),
        commands_(events.commands(tensor)) {
    start();
  }

  /// Processes one iteration. Iterations must come in order, from 0.
  void follow(std::int64_t iteration) {
    iteration_ = iteration;
    next_ = 0;
    for (const std::uint32_t command : commands_) {
      while (next_ < events_.size() && events_[next_].operation < order_.operations_ended_before(command)) happen();
      run(command);
    }
    while (next_ < events_.size()) happen();
    if (iteration == 0 && !supposed_) check_closure();
    turn();
  }

  /// To be called after two iterations. Reports a value that the host has needed since the first one, but that never
  /// arrives.
  void check_host_reads() {
    if (!host_waits() || wanted_iteration_ != 0) return;
    violation(4, name() + " is read by the host, but no swap_out of that value ever comes");
  }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::min() / 4;

  [[nodiscard]] std::string name() const { return findings_.tensor(tensor_); }
  [[nodiscard]] std::int64_t iteration_length() const { return static_cast<std::int64_t>(order_.operations()); }
  [[nodiscard]] std::int64_t moment(std::size_t operation) const {
    return iteration_ * iteration_length() + static_cast<std::int64_t>(operation);
  }
  /// Whether the operation at that moment has ended when the command of this iteration starts.
  [[nodiscard]] bool ended_before(std::int64_t moment, std::size_t command) const {
    return moment == never || moment < order_.operations_ended_before(command) + iteration_ * iteration_length();
  }
  /// The operation at that moment, which need not have ended before the present command. So it is of the iteration
  /// before: what may end later in this iteration happens after the command.
  [[nodiscard]] std::string operation_at(std::int64_t moment) const {
    return findings_.operation(static_cast<std::size_t>(moment % iteration_length())) + " of the iteration before";
  }
  [[nodiscard]] std::string command_at(const Issued& issued) const {
    const std::string text = findings_.command(issued.command);
    return issued.iteration < iteration_ ? text + " of the iteration before" : text;
  }
  void violation(int rule, std::string message) { findings_.add(rule, std::move(message)); }

  void start() {
    resident_ = initial_ != nullptr;
    // The copies in `initial` are assumed valid, unless the value is dead then. The second iteration checks that this
    // also holds at the end of an iteration.
    const bool alive =
        kind_ == TensorKind::persistent || (kind_ == TensorKind::input && available_from_ == 0) || lingers_over_end();
    device_valid_ = resident_ && alive;
    may_be_wanted_ = resident_ && !alive && host_reads_last_value();
    if (kind_ == TensorKind::input) host_valid_ = alive;
    if (kind_ == TensorKind::persistent || lingers_over_end())
      host_valid_ = resident_ ? initial_->host_valid : !is_dead();
  }

  /// Whether the value at the iteration's end lingers into the next one.
  [[nodiscard]] bool lingers_over_end() const { return !events_.empty() && events_.front().event == Event::forgotten; }
  /// Whether nothing needs the present value, after the events before next_.
  [[nodiscard]] bool is_dead() const {
    if (next_ < events_.size()) return events_[next_].event == Event::write || events_[next_].event == Event::given;
    if (lingers_over_end()) return false;
    if (kind_ != TensorKind::persistent) return true;
    return !events_.empty() && events_.front().event == Event::write;
  }
  [[nodiscard]] bool host_reads_last_value() const {
    for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
      if (event->event == Event::host_read) return true;
      if (event->event == Event::write || event->event == Event::update || event->event == Event::given) return false;
    }
    return false;
  }
  [[nodiscard]] bool next_access_writes() const {
    for (std::size_t step = 0; step < events_.size(); ++step) {
      const Event event = events_[(next_ + step) % events_.size()].event;
      if (event == Event::host_read || event == Event::given || event == Event::forgotten) continue;
      return event == Event::write;
    }
    return false;
  }
  [[nodiscard]] bool host_waits() const { return wanted_ || old_wanted_; }

  void happen() {
    const TensorEvent& event = events_[next_];
    ++next_;
    switch (event.event) {
      case Event::read:
      case Event::write:
      case Event::update: access(event); break;
      case Event::host_read: host_read(event.operation); break;
      case Event::given: give(event.operation); break;
      case Event::forgotten: retire();
    }
  }

  void access(const TensorEvent& event) {
    const std::size_t operation = event.operation;
    check_presence(operation);
    if (event.event != Event::write && !device_valid_) {
      // Of an input: all others are written before they are read, or were alive when they came.
      violation(4, findings_.operation(operation) + " needs the value of " + name() +
                       ", but the device copy is not that of the iteration: no swap_in came after it was given");
      device_valid_ = true;
    }
    last_use_ = moment(operation);
    if (event.event == Event::read) return;
    if (host_waits()) {
      violation(4, findings_.operation(operation) + " overwrites the value of " + name() +
                       " that the host reads before a swap_out of it");
    }
    if (last_swap_out_ && !order_.command_before_operation(last_swap_out_->command, operation, age(*last_swap_out_))) {
      violation(6, findings_.operation(operation) + " overwrites " + name() + " and does not wait for " +
                       command_at(*last_swap_out_) + ", which copies the value before");
    }
    last_write_ = moment(operation);
    device_valid_ = true;
    host_valid_ = wanted_ = old_wanted_ = may_be_wanted_ = false;
  }

  void check_presence(std::size_t operation) {
    if (!resident_) {
      const bool unordered =
          last_release_ && !order_.command_before_operation(last_release_->command, operation, age(*last_release_));
      violation(6, findings_.operation(operation) + " uses " + name() + ", which need not be on the device: " +
                       (unordered ? command_at(*last_release_) + " does not wait for it"
                                  : "nothing brings it" +
                                        (last_release_ ? " back after " + command_at(*last_release_) : std::string{})));
      // Report it once, and continue as if it had been there.
      resident_ = !unordered;
      device_valid_ = supposed_ = true;
    } else if (acquired_ && !order_.command_before_operation(acquired_->command, operation, age(*acquired_))) {
      violation(
          6, findings_.operation(operation) + " uses " + name() + " and does not wait for " + command_at(*acquired_));
      acquired_.reset();
    }
  }

  void host_read(std::size_t operation) {
    if (host_valid_ || wanted_) return;
    if (!device_valid_) {
      violation(4, "the host reads " + name() + " after " + findings_.operation(operation) +
                       ", but no copy holds that value any more");
      return;
    }
    wanted_ = true;
    wanted_iteration_ = iteration_;
  }

  void give(std::size_t operation) {
    retire();
    host_valid_ = true;
    last_given_ = moment(operation);
  }

  /// Marks the value as dead for the program. A host read that is still pending may get it from the device.
  void retire() {
    old_wanted_ = host_waits();
    wanted_ = device_valid_ = host_valid_ = false;
  }

  void turn() {
    // An input that is available from operation 0 changes in give(), at the end of the last operation: commands after
    // that operation may bring in the new value already.
    if (lingers_over_end()) return;
    if (kind_ == TensorKind::transient || (kind_ == TensorKind::input && available_from_ > 0)) retire();
  }

  void run(std::size_t command) {
    switch (plan_.commands[command].kind) {
      case CommandKind::allocate: allocate(command); break;
      case CommandKind::swap_in: swap_in(command); break;
      case CommandKind::swap_out: swap_out(command); break;
      case CommandKind::release: release(command); break;
    }
  }

  void acquire(std::size_t command) {
    if (resident_)
      violation(5, findings_.command(command) + " takes a place while the tensor is on the device already");
    resident_ = true;
    offset_ = plan_.commands[command].offset;
    acquired_ = Issued{command, iteration_};
  }

  void allocate(std::size_t command) {
    acquire(command);
    device_valid_ = false;
    if (next_access_writes()) return;
    violation(3, findings_.command(command) + " is for a tensor whose next access is not in writes");
    device_valid_ = true;
  }

  void swap_in(std::size_t command) {
    acquire(command);
    const bool given_in_this = last_given_ >= moment(0);
    if (kind_ == TensorKind::input &&
        (!ended_before(last_given_, command) || (available_from_ > 0 && !given_in_this))) {
      violation(4, findings_.command(command) + " may start before the host gives the value, at the end of " +
                       (available_from_ > 0 ? findings_.operation(available_from_ - 1)
                                            : "the last operation of the iteration before"));
    } else if (!host_valid_) {
      violation(4, findings_.command(command) + " finds no valid host copy");
    }
    device_valid_ = true;
  }

  void swap_out(std::size_t command) {
    if (!resident_ || !(device_valid_ || old_wanted_ || may_be_wanted_)) {
      violation(4, findings_.command(command) + (resident_ ? " copies a dead value: the device copy holds nothing valid"
                                                           : " copies a tensor that is not on the device"));
    }
    if (!ended_before(last_write_, command)) {
      violation(6, findings_.command(command) + " does not wait for the write by " + operation_at(last_write_));
    }
    last_swap_out_ = Issued{command, iteration_};
    if (device_valid_) {
      host_valid_ = true;
      wanted_ = false;
    } else {
      old_wanted_ = may_be_wanted_ = false;  // the host copy is of a newer value
    }
  }

  void release(std::size_t command) {
    if (!resident_) violation(5, findings_.command(command) + " releases a tensor that is not on the device");
    if (!ended_before(last_use_, command)) {
      violation(6, findings_.command(command) + " does not wait for the use by " + operation_at(last_use_));
    }
    if (host_waits()) {
      violation(4, findings_.command(command) + " drops a value that the host reads before a swap_out of it");
    } else if (!host_valid_ && !is_dead()) {
      violation(4, findings_.command(command) + " drops a value that is needed again: the host copy is not valid");
      host_valid_ = true;
    }
    resident_ = device_valid_ = wanted_ = old_wanted_ = may_be_wanted_ = false;
    acquired_.reset();
    last_release_ = Issued{command, iteration_};
  }

  /// Iterations between the command and now.
  [[nodiscard]] std::int64_t age(const Issued& issued) const { return iteration_ - issued.iteration; }

  void check_closure() {
    const auto at = [](Bytes offset) { return " at offset " + std::to_string(offset.value); };
    if (resident_ != (initial_ != nullptr)) {
      violation(5, resident_ ? name() + " is on the device at the end of an iteration, but not in initial"
                             : name() + " is in initial, but not on the device at the end of an iteration");
    } else if (resident_ && offset_ && *offset_ != initial_->offset) {
      violation(5, name() + " is in initial" + at(initial_->offset) + ", but ends an iteration" + at(*offset_));
    } else if (resident_ && initial_->host_valid && !host_valid_) {
      violation(5, name() + " has a valid host copy in initial, but not at the end of an iteration");
    }
  }

  const Plan& plan_;
  const HappensBefore& order_;
  Findings& findings_;
  const std::size_t tensor_;
  const Resident* const initial_;
  const TensorKind kind_;
  const std::uint32_t available_from_;
  const std::span<const TensorEvent> events_;
  const std::span<const std::uint32_t> commands_;

  std::int64_t iteration_ = 0;
  std::size_t next_ = 0;  // in events_
  bool resident_ = false;
  bool supposed_ = false;  // it should be resident, but is not
  bool device_valid_ = false;
  bool host_valid_ = false;
  bool wanted_ = false;         // the host reads the value, and there was no swap_out of it
  bool old_wanted_ = false;     // the same for a value that is dead for the program and only on the device
  bool may_be_wanted_ = false;  // old_wanted_ for values in `initial`; decided in the second iteration
  std::int64_t wanted_iteration_ = 0;
  std::optional<Bytes> offset_;     // none: the place in `initial`
  std::optional<Issued> acquired_;  // the command that brought the tensor; none: it was there at the beginning
  std::optional<Issued> last_release_;
  std::optional<Issued> last_swap_out_;
  std::int64_t last_use_ = never;  // moments; never: ended with the iteration before the first
  std::int64_t last_write_ = never;
  std::int64_t last_given_ = never;
};

/// Commands of one tensor must have an order; otherwise the resulting state is undefined.
bool check_command_order(const HappensBefore& order, std::span<const std::uint32_t> commands, Findings& findings) {
  const std::size_t before = findings.count();
  for (std::size_t i = 0; i + 1 < commands.size(); ++i) {
    if (order.command_before_command(commands[i], commands[i + 1], 0)) continue;
    findings.add(6, findings.command(commands[i]) + " and " + findings.command(commands[i + 1]) +
                        " have no order: neither waits for the other");
  }
  if (!commands.empty() && !order.command_before_command(commands.back(), commands.front(), 1)) {
    findings.add(6, findings.command(commands.front()) + " does not wait for " + findings.command(commands.back()) +
                        " of the iteration before");
  }
  return findings.count() == before;
}

}  // namespace

std::vector<bool> check_values(const Trace& trace, const Plan& plan, const HappensBefore& order,
                               const TensorEvents& events, Findings& findings) {
  std::vector<const Resident*> initial(trace.tensors.size(), nullptr);
  for (const Resident& resident : plan.initial) initial[index(resident.tensor)] = &resident;
  std::vector<bool> sound(trace.tensors.size(), false);
  for (std::size_t t = 0; t < trace.tensors.size() && !findings.full(); ++t) {
    if (!check_command_order(order, events.commands(t), findings)) continue;
    const std::size_t before = findings.count();
    ValueTracker tracker(trace, plan, order, events, findings, t, initial[t]);
    tracker.follow(0);
    if (findings.count() == before) {
      tracker.follow(1);
      tracker.check_host_reads();
    }
    sound[t] = findings.count() == before;
  }
  return sound;
}

}  // namespace swapmm::validation
