// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/observe/program.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>

#include <swapmm/runtime/observe/generations.hpp>
#include <swapmm/runtime/observe/lingering.hpp>

namespace swapmm::runtime {
namespace {

// Builds one program from several logs. Each upload to a tensor begins a new role, because a plan treats each value
// that the host uploads as a tensor of its own.
class ProgramBuilder {
 public:
  ProgramBuilder(std::string_view name, std::size_t iterations, bool proves_drops = false)
      : iterations_(iterations), proves_drops_(proves_drops), generations_(iterations) {
    program_.trace.name = name;
  }

  void append(const IterationLog& log) {
    log_roles_.assign(log.tensors.size(), none);
    made_.clear();
    const auto first = static_cast<std::uint32_t>(program_.trace.operations.size());
    for (const LogWait& wait : log.waits) program_.waits.push_back({first + wait.calls, wait.open});
    for (const LogEnd& end : log.ends) {
      ends_.push_back({member_, end.producer, end.moment + first * LogWait::moments_per_call});
    }
    for (const LogEvent& event : log.events) {
      if (event.what == LogEvent::What::operation) append_operation(log, log.operations[event.index]);
      if (event.what == LogEvent::What::upload) append_upload(log, event.index);
      if (event.what == LogEvent::What::download) append_download(log, event);
    }
    program_.events.push_back({Event::What::end_of_iteration, 0});
    note_ends(log, first);
    ++member_;
  }

  [[nodiscard]] bool generations_overlap() const { return generations_.overlap(); }

  Result<Program> finish() {
    program_.first_access.push_back(static_cast<std::uint32_t>(program_.accesses.size()));
    const std::size_t n = program_.trace.operations.size();
    if (n == 0) return Problem{"no operation in the iteration"};
    if (generations_.overlap()) return Problem{"tensors that are made anew live longer than the cycle"};
    if (!generations_.consistent()) return Problem{"a tensor is used that the cycle does not make"};
    for (const std::uint32_t role : early_downloads_) {
      // The host reads the value that the previous iteration left. If no operation changes the value, no copy is needed
      // in each iteration: it is copied to the host once.
      const std::uint32_t last = last_role(role);
      if (!state_[last].on_host && state_[last].last_write != none) host_read(last, n - 1);
    }
    for (std::uint32_t role = 0; role < program_.roles.size(); ++role) {
      const State& state = state_[role];
      TraceTensor& tensor = program_.trace.tensors[role];
      if (state.uploaded_over) {
        return Problem{"tensor \"" + tensor.name + "\" is used before and after its upload in one iteration"};
      }
      if (program_.roles[role].input) {
        tensor.kind = TensorKind::input;
        tensor.copied.reset();
        tensor.available_from = std::min(state.available_from, static_cast<std::uint32_t>(n - 1));
      } else if (state.needs_value_before) {
        if (program_.roles[role].kind == Role::Kind::local && program_.roles[role].carried == 0) {
          return Problem{"tensor \"" + tensor.name +
                         "\" is made anew for each iteration, and has its value from outside"};
        }
        tensor.kind = TensorKind::persistent;
        continue;
      }
      // A value that is replaced in each iteration, but must outlive the iteration, is kept by a copy on the host.
      if (state.must_survive && state.last_write != none && !state.on_host) {
        host_read(role, state.last_write);
      }
    }
    add_seldom_reads();
    // The host finds what it fills and reads as it is.
    for (const HostRead& read : program_.trace.host_reads) program_.trace.tensors[index(read.tensor)].copied.reset();
    program_.trace.lingering = find_lingering(program_.trace, waits(), proofs());
    return std::move(program_);
  }

 private:
  struct State {
    bool used = false;                // by an operation
    bool needs_value_before = false;  // its first access needs the value from the previous iteration
    bool must_survive = false;
    bool on_host = false;  // the host has the current value
    bool uploaded_over = false;
    std::uint32_t available_from = 0;
    std::uint32_t last_write = none;
    std::uint32_t last_use = none;
    std::uint64_t end = Proofs::never;  // the moment from which on the value is dead without an operation
  };

  std::uint32_t add_role(const LogTensor& tensor, bool input, std::uint32_t carried = 0) {
    const auto role = static_cast<std::uint32_t>(program_.roles.size());
    Role added;
    added.kind = tensor.scratch() ? Role::Kind::scratch : tensor.local() ? Role::Kind::local : Role::Kind::handle;
    if (added.kind == Role::Kind::handle) {
      added.record = tensor.record;
      added.serial = tensor.serial;
      current_[tensor.serial] = role;
    }
    added.bytes = tensor.bytes;
    added.input = input;
    added.appeared = tensor.producer.index;
    added.carried = carried;
    program_.by_producer = program_.by_producer || tensor.producer.known();
    program_.roles.push_back(added);
    program_.trace.tensors.push_back({tensor.name, tensor.bytes, TensorKind::transient, 0, tensor.copied});
    State state;
    state.must_survive = tensor.lifetime == Lifetime::kept || (!tensor.local() && tensor.outlives >= iterations_);
    state_.push_back(state);
    return role;
  }

  std::uint32_t role_of(const IterationLog& log, std::uint32_t tensor) {
    std::uint32_t& role = log_roles_[tensor];
    if (role != none) {
      // The generation before must not be used once the next one has been made.
      const auto made = made_.find(role);
      if (made != made_.end() && made->second != tensor) generations_.note_overlap();
      return role;
    }
    const LogTensor& logged = log.tensors[tensor];
    if (logged.producer.known()) {
      role = role_of_generation(logged);
      if (logged.producer.age == 0) made_[role] = tensor;
      return role;
    }
    role = known(logged.serial);
    if (role == none) role = add_role(logged, false);
    return role;
  }

  std::uint32_t role_of_generation(const LogTensor& tensor) {
    const Generations::Found found = generations_.find(member_, tensor.producer);
    if (found.role == none) {
      const std::uint32_t role = add_role(tensor, false, found.carried);
      generations_.add(member_, tensor.producer, role);
      return role;
    }
    // The operation that first writes the next generation must not use this one.
    const auto operation = static_cast<std::uint32_t>(program_.trace.operations.size());
    if (found.created && state_[found.role].last_use == operation) generations_.note_overlap();
    if (program_.roles[found.role].bytes != tensor.bytes) generations_.note_overlap();
    return found.role;
  }

  void append_operation(const IterationLog& log, const LogOperation& logged) {
    const auto number = static_cast<std::uint32_t>(program_.trace.operations.size());
    TraceOperation operation;
    operation.name = logged.name;
    operation.duration = logged.duration;
    program_.events.push_back({Event::What::operation, number});
    program_.first_access.push_back(static_cast<std::uint32_t>(program_.accesses.size()));
    program_.scratch_roles.push_back(none);
    program_.replayable.push_back(logged.replayable);
    for (std::uint32_t i = 0; i < logged.access_count; ++i) {
      const LogAccess& access = log.accesses[logged.first_access + i];
      const std::uint32_t role = role_of(log, access.tensor);
      program_.accesses.push_back({role, access.access});
      if (program_.roles[role].kind == Role::Kind::scratch) program_.scratch_roles.back() = role;
      State& state = state_[role];
      if (access.access == Access::write) keep_value(role);
      const auto id = static_cast<TensorId>(role);
      if (!state.used && access.access != Access::write && !program_.roles[role].input) state.needs_value_before = true;
      state.used = true;
      state.last_use = number;
      switch (access.access) {
        case Access::read: operation.reads.push_back(id); break;
        case Access::write: operation.writes.push_back(id); break;
        case Access::update: operation.updates.push_back(id); break;
      }
      if (access.access != Access::read) {
        state.last_write = number;
        state.on_host = false;
      }
    }
    program_.trace.operations.push_back(std::move(operation));
  }

  void append_upload(const IterationLog& log, std::uint32_t tensor) {
    const LogTensor& logged = log.tensors[tensor];
    const std::uint32_t seen = log_roles_[tensor];
    const std::uint32_t before = seen != none ? seen : known(logged.serial);
    if (before != none && state_[before].needs_value_before) state_[before].uploaded_over = true;
    if (before != none) keep_value(before);
    const std::uint32_t role = add_role(logged, true);
    log_roles_[tensor] = role;
    state_[role].available_from = static_cast<std::uint32_t>(program_.trace.operations.size());
    state_[role].on_host = true;
    program_.events.push_back({Event::What::upload, role});
  }

  void append_download(const IterationLog& log, const LogEvent& event) {
    const std::uint32_t role = role_of(log, event.index);
    program_.events.push_back({Event::What::download, role});
    if (state_[role].on_host) return;
    if (event.seldom) {
      seldom_reads_.push_back({role, state_[role].last_write == none ? none : last_operation()});
      return;
    }
    if (state_[role].last_write == none) {
      early_downloads_.push_back(role);  // it may never be written: known only at the end
      return;
    }
    host_read(role, last_operation());
  }

  [[nodiscard]] std::uint32_t last_operation() const {
    return static_cast<std::uint32_t>(program_.trace.operations.size() - 1);
  }

  struct SeldomRead {
    std::uint32_t role = none;
    std::uint32_t operation = none;  // none: before the iteration has written the tensor
  };

  // Whether the next access needs the value that the tensor has after the operation.
  [[nodiscard]] bool is_needed_after(const SeldomRead& read) const {
    const auto begin = program_.accesses.begin();
    const auto from = begin + static_cast<std::ptrdiff_t>(program_.first_access[read.operation + 1]);
    const auto next =
        std::find_if(from, program_.accesses.end(), [&](const RoleAccess& access) { return access.role == read.role; });
    if (next != program_.accesses.end()) return next->access != Access::write;
    return program_.trace.tensors[read.role].kind == TensorKind::persistent;
  }

  // A value that the host reads seldom is not copied in each iteration if a plan keeps it anyway.
  void add_seldom_reads() {
    for (SeldomRead read : seldom_reads_) {
      if (read.operation == none) read = {last_role(read.role), last_operation()};  // of the iteration before
      if (state_[read.role].last_write == none || is_needed_after(read)) continue;
      const HostRead needed{static_cast<TensorId>(read.role), id_at<OperationId>(read.operation)};
      std::vector<HostRead>& reads = program_.trace.host_reads;
      if (std::ranges::find(reads, needed) == reads.end()) reads.push_back(needed);
    }
  }

  void host_read(std::uint32_t role, std::size_t operation) {
    program_.trace.host_reads.push_back({static_cast<TensorId>(role), id_at<OperationId>(operation)});
    state_[role].on_host = true;
  }

  // Called when the tensor is about to get another value. For the planner, the current value is dead after its last
  // use. If an iteration outside the plan may need it, a copy on the host keeps it.
  void keep_value(std::uint32_t role) {
    if (state_[role].must_survive && state_[role].used && !state_[role].on_host) host_read(role, state_[role].last_use);
  }

  // Transient values are dead when the next iteration begins, and values of tensors that are destroyed from then on.
  void note_ends(const IterationLog& log, std::uint32_t first) {
    for (std::size_t tensor = 0; tensor < log.tensors.size(); ++tensor) {
      const LogTensor& logged = log.tensors[tensor];
      const std::uint32_t role = log_roles_[tensor];
      if (role == none || logged.scratch() || logged.producer.known()) continue;
      State& state = state_[role];
      if (logged.lifetime == Lifetime::transient) {
        state.end = LogWait::moment_of_call(program_.trace.operations.size());
      }
      if (logged.local() && logged.ended != Proofs::never) {
        state.end = std::min(state.end, first * LogWait::moments_per_call + logged.ended);
      }
    }
  }

  // If no entrance tells waits, each operation is let go by its own call. Empty if drops need no proof.
  std::vector<LogWait> waits() const {
    if (!proves_drops_ || !program_.waits.empty()) return program_.waits;
    std::vector<LogWait> waits;
    for (std::uint32_t i = 1; i <= program_.trace.operations.size(); ++i) waits.push_back({i, 0});
    return waits;
  }

  // Values that the host gives or reads are on the host.
  std::vector<Proofs> proofs() {
    std::vector<Proofs> proofs(program_.roles.size());
    for (std::size_t role = 0; role < proofs.size(); ++role) {
      const Role& is = program_.roles[role];
      proofs[role].known = is.kind != Role::Kind::scratch && !is.input;
      proofs[role].made_anew = is.kind == Role::Kind::local;
      proofs[role].end = state_[role].end;
    }
    for (const HostRead& read : program_.trace.host_reads) proofs[index(read.tensor)].known = false;
    const std::uint64_t cycle = program_.trace.operations.size() * LogWait::moments_per_call;
    for (const End& end : ends_) {
      const Generations::Found found = generations_.find_earlier(end.member, end.producer);
      if (found.role == none) continue;
      std::uint64_t& moment = proofs[found.role].end;
      moment = std::min(moment, end.moment + (found.carried != 0 ? cycle : 0));
    }
    return proofs;
  }

  // The role that has the tensor's value at the end.
  std::uint32_t last_role(std::uint32_t role) const {
    return program_.roles[role].kind == Role::Kind::handle ? known(program_.roles[role].serial) : role;
  }

  std::uint32_t known(std::uint64_t serial) const {
    const auto found = current_.find(serial);
    return found == current_.end() ? none : found->second;
  }

  // The end of a tensor, with its moment counted from the cycle's first operation.
  struct End {
    std::size_t member = 0;
    Producer producer;
    std::uint64_t moment = 0;
  };

  Program program_;
  std::vector<End> ends_;
  std::size_t iterations_;
  bool proves_drops_ = false;
  std::size_t member_ = 0;  // the number of the iteration
  Generations generations_;
  std::vector<State> state_;
  std::vector<std::uint32_t> log_roles_;                      // per tensor of the current log
  std::unordered_map<std::uint32_t, std::uint32_t> made_;     // by role: the tensor that the current log makes for it
  std::unordered_map<std::uint64_t, std::uint32_t> current_;  // by serial number; handles only
  std::vector<std::uint32_t> early_downloads_;
  std::vector<SeldomRead> seldom_reads_;
};

}  // namespace

Result<Program> make_program(std::span<const IterationLog* const> logs, std::string_view name, bool proves_drops) {
  ProgramBuilder builder(name, logs.size(), proves_drops);
  for (const IterationLog* const log : logs) {
    if (log->broken) return Problem{"an operation failed in the observed iteration"};
    builder.append(*log);
  }
  return builder.finish();
}

bool has_earlier_generation(const IterationLog& log) {
  return std::any_of(log.tensors.begin(), log.tensors.end(),
                     [](const LogTensor& tensor) { return tensor.producer.known() && tensor.producer.age != 0; });
}

bool generations_overlap(std::span<const IterationLog* const> logs) {
  ProgramBuilder builder({}, logs.size());
  for (const IterationLog* const log : logs) builder.append(*log);
  return builder.generations_overlap();
}

std::vector<std::uint64_t> identity(const IterationLog& log) {
  std::vector<std::uint64_t> key;
  key.reserve(2 * log.tensors.size() + log.accesses.size() + log.events.size());
  for (const LogTensor& tensor : log.tensors) {
    const Producer& producer = tensor.producer;
    if (producer.known()) {
      constexpr std::uint64_t no_serial = std::uint64_t{1} << 63U;
      key.push_back(no_serial | std::uint64_t{producer.age} << 32U | producer.index);
    } else {
      key.push_back(tensor.local() ? 0 : tensor.serial);
    }
    key.push_back(tensor.bytes.value);
  }
  for (const LogEvent& event : log.events) {
    if (event.what == LogEvent::What::download) continue;
    if (event.what == LogEvent::What::upload) {
      key.push_back(std::uint64_t{1} << 32U | event.index);
      continue;
    }
    const LogOperation& operation = log.operations[event.index];
    key.push_back(std::uint64_t{operation.replayable ? 6U : 2U} << 32U | operation.access_count);
    for (std::uint32_t i = 0; i < operation.access_count; ++i) {
      const LogAccess& access = log.accesses[operation.first_access + i];
      key.push_back((std::uint64_t{3} + static_cast<std::uint64_t>(access.access)) << 32U | access.tensor);
    }
  }
  return key;
}

void add_downloads(IterationLog& log, const IterationLog& before) {
  const auto is_download = [](const LogEvent& event) { return event.what == LogEvent::What::download; };
  if (std::ranges::none_of(before.events, is_download)) return;
  std::vector<LogEvent> events;
  events.reserve(log.events.size() + 1);
  auto own = log.events.begin();
  auto old = before.events.begin();
  while (true) {
    const auto first = events.size();
    for (; own != log.events.end() && is_download(*own); ++own) events.push_back(*own);
    for (; old != before.events.end() && is_download(*old); ++old) {
      const auto is_there = [&](const LogEvent& event) { return event.index == old->index; };
      if (std::none_of(events.begin() + static_cast<std::ptrdiff_t>(first), events.end(), is_there)) {
        events.push_back({LogEvent::What::download, old->index, true});
      }
    }
    if (own == log.events.end() || old == before.events.end()) break;
    events.push_back(*own++);
    ++old;
  }
  log.events = std::move(events);
}

}  // namespace swapmm::runtime
