// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/trace.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <swapmm/ir/limits.hpp>

namespace swapmm {
namespace {

bool needs_version_2_but_for_replays(const Trace& trace) {
  if (!trace.engines.empty() || !trace.ranges.empty() || !trace.forms.empty()) return true;
  return std::ranges::any_of(trace.operations, &TraceOperation::in_pieces);
}

using Finding = std::optional<Problem>;

std::string element(std::string_view list, std::size_t position) {
  return std::string(list) + '[' + std::to_string(position) + ']';
}

std::string not_a_name(const std::string& name) {
  return name + " is not a name: 1 to 100 characters out of A-Z a-z 0-9 . _ - (and no form is called plain)";
}

Problem unknown_tensor(const std::string& where, TensorId id, std::size_t tensors) {
  return {where + ": " + std::to_string(index(id)) + " is not the id of one of the " + std::to_string(tensors) +
          " tensors"};
}

/// Goes through a trace from begin to end, and keeps for each tensor the state that the next access depends on.
class Checker {
 public:
  explicit Checker(const Trace& trace)
      : trace_(trace), last_bundle_(trace.tensors.size(), none), first_write_(trace.tensors.size(), none) {}

  Finding counts() const {
    const auto too_many = [](std::string_view list, std::size_t count, std::size_t most) -> Finding {
      if (count <= most) return std::nullopt;
      return Problem{std::string(list) + ": " + std::to_string(count) + " are more than the " + std::to_string(most) +
                     " that a trace may have"};
    };
    if (trace_.operations.empty()) return Problem{"operations: a trace has at least one"};
    if (auto finding = too_many("tensors", trace_.tensors.size(), limits::tensors)) return finding;
    if (auto finding = too_many("operations", trace_.operations.size(), limits::operations)) return finding;
    return too_many("host_reads", trace_.host_reads.size(), limits::host_reads);
  }

  Finding tensors() const {
    Bytes sum;
    for (std::size_t i = 0; i < trace_.tensors.size(); ++i) {
      const TraceTensor& tensor = trace_.tensors[i];
      // The sum so far is below the limit. Comparing before adding prevents it from wrapping around.
      if (tensor.bytes.value >= limits::magnitude - sum.value) {
        return Problem{element("tensors", i) + ".bytes: with " + std::to_string(tensor.bytes.value) +
                       " the sizes add up to 2^62 or more"};
      }
      sum += tensor.bytes;
      if (copied_bytes(tensor) > tensor.bytes) {
        return Problem{element("tensors", i) + ": copies of " + std::to_string(tensor.bytes.value) +
                       " bytes do not move " + std::to_string(tensor.copied->value)};
      }
      if (auto finding = available_from(i)) return finding;
    }
    return std::nullopt;
  }

  Finding engines() const {
    if (trace_.engines.size() > limits::engines) {
      return Problem{"engines: " + std::to_string(trace_.engines.size()) + " are more than the " +
                     std::to_string(limits::engines) + " that a trace may have"};
    }
    std::set<std::string_view> names;
    for (const std::string& name : trace_.engines) {
      if (!is_name(name)) return Problem{"engine: " + not_a_name(name)};
      if (!names.insert(name).second) return Problem{"engines: " + name + " stands twice"};
    }
    return std::nullopt;
  }

  Finding forms() const {
    std::set<std::string_view> names;  // of one tensor's forms
    for (std::size_t i = 0; i < trace_.forms.size(); ++i) {
      const TensorForm& form = trace_.forms[i];
      const std::size_t id = index(form.tensor);
      if (id >= trace_.tensors.size()) return unknown_tensor("forms", form.tensor, trace_.tensors.size());
      if (i == 0 || trace_.forms[i - 1].tensor != form.tensor) names.clear();
      if (i > 0 && trace_.forms[i - 1].tensor > form.tensor) return Problem{"forms: not ascending by tensor"};
      const std::string where = element("tensors", id) + ".forms: ";
      if (!is_name(form.name) || form.name == "plain") return Problem{where + not_a_name(form.name)};
      if (!names.insert(form.name).second) return Problem{where + form.name + " stands twice"};
      if (names.size() > limits::forms) {
        return Problem{where + "more than " + std::to_string(limits::forms) + " of one tensor"};
      }
      if (form.bytes.value >= limits::magnitude) {
        return Problem{where + std::to_string(form.bytes.value) + " bytes are not below 2^62"};
      }
      if (form.expected > form.bytes) {
        return Problem{where + "expected_bytes, " + std::to_string(form.expected.value) + ", is above bytes, " +
                       std::to_string(form.bytes.value)};
      }
      for (const std::int64_t time : {form.encode.count(), form.decode.count()}) {
        if (time < 0 || time >= static_cast<std::int64_t>(limits::magnitude)) {
          return Problem{where + "a time of " + std::to_string(time) + " ns is not from 0 to below 2^62"};
        }
      }
    }
    return std::nullopt;
  }

  Finding ranges() const {
    std::vector<std::uint32_t> in_bundle(trace_.ranges.empty() ? 0 : trace_.tensors.size(), none);
    for (std::size_t i = 0; i < trace_.ranges.size(); ++i) {
      const AccessRange& range = trace_.ranges[i];
      if (index(range.operation) >= trace_.operations.size()) {
        return Problem{"ranges: " + std::to_string(index(range.operation)) + " is not one of the operations"};
      }
      const std::string where = element("operations", index(range.operation)) + ": ";
      if (i > 0 && std::pair(trace_.ranges[i - 1].operation, trace_.ranges[i - 1].tensor) >=
                       std::pair(range.operation, range.tensor)) {
        return Problem{where + "ranges do not ascend by operation and tensor"};
      }
      if (index(range.tensor) >= trace_.tensors.size())
        return unknown_tensor(where + "ranges", range.tensor, trace_.tensors.size());
      if (i == 0 || trace_.ranges[i - 1].operation != range.operation) {
        for_each_access(trace_.operations[index(range.operation)], [&](TensorId id, Access) {
          in_bundle[index(id)] = static_cast<std::uint32_t>(range.operation);
        });
      }
      if (in_bundle[index(range.tensor)] != static_cast<std::uint32_t>(range.operation)) {
        return Problem{where + "a range of tensor " + std::to_string(index(range.tensor)) +
                       ", which is not in the bundle"};
      }
      const Bytes size = trace_.tensors[index(range.tensor)].bytes;
      if (range.bytes == Bytes{0} || range.first > size || range.bytes > size - range.first) {
        return Problem{where + "the range of " + std::to_string(range.bytes.value) + " bytes at " +
                       std::to_string(range.first.value) + " is not within tensor " +
                       std::to_string(index(range.tensor)) + " of " + std::to_string(size.value) + " bytes"};
      }
    }
    return std::nullopt;
  }

  Finding operations() {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      const std::int64_t duration = trace_.operations[i].duration.count();
      const auto where = [&] { return element("operations", i) + ".duration_ns: "; };
      if (duration < 0) return Problem{where() + std::to_string(duration) + " is below 0"};
      if (duration >= static_cast<std::int64_t>(limits::magnitude) - sum) {
        return Problem{where() + "with " + std::to_string(duration) + " the durations add up to 2^62 or more"};
      }
      sum += duration;
      const std::uint32_t engine = trace_.operations[i].engine;
      if (engine != TraceOperation::default_engine && engine >= trace_.engines.size()) {
        return Problem{element("operations", i) + ".engine: " + std::to_string(engine) + " is not one of the engines"};
      }
      if (auto finding = bundle(i)) return finding;
    }
    return std::nullopt;
  }

  Finding lingering() const {
    if (trace_.lingering.empty()) return std::nullopt;
    // Only in memory: no file says both what lingers and what may run again.
    if (needs_version_2_but_for_replays(trace_)) return Problem{"lingering: only version 1 of the format has it"};
    std::vector<std::vector<TracedUse>> uses(trace_.tensors.size());
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      for_each_access(trace_.operations[i], [&](TensorId id, Access access) {
        uses[index(id)].push_back({i, access});
      });
    }
    std::vector<bool> read(trace_.tensors.size());
    for (const HostRead& host_read : trace_.host_reads) read[index(host_read.tensor)] = true;
    for (std::size_t i = 0; i < trace_.lingering.size(); ++i) {
      const LingeringValue& value = trace_.lingering[i];
      const std::string where = element("lingering", i);
      const std::size_t id = index(value.tensor);
      if (id >= trace_.tensors.size()) return unknown_tensor(where + ".tensor", value.tensor, trace_.tensors.size());
      if (i > 0 && std::pair(trace_.lingering[i - 1].tensor, trace_.lingering[i - 1].last_use) >=
                       std::pair(value.tensor, value.last_use)) {
        return Problem{where + ": values do not ascend by tensor and last use"};
      }
      if (trace_.tensors[id].kind == TensorKind::input || read[id]) {
        return Problem{where + ": tensor " + std::to_string(id) + " is an input, or read by the host"};
      }
      if (auto finding = lingers(where, value, uses[id])) return finding;
    }
    return std::nullopt;
  }

  Finding host_reads() const {
    for (std::size_t i = 0; i < trace_.host_reads.size(); ++i) {
      if (auto finding = host_read(i)) return finding;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  struct TracedUse {
    std::size_t operation;
    Access access;
  };

  Finding lingers(const std::string& where, const LingeringValue& value, const std::vector<TracedUse>& uses) const {
    const std::size_t last = index(value.last_use);
    const auto use =
        std::find_if(uses.begin(), uses.end(), [last](const TracedUse& each) { return each.operation == last; });
    if (use == uses.end()) return Problem{where + ".last_use: operation " + std::to_string(last) + " does not use it"};
    const bool is_last = use + 1 == uses.end();
    const TracedUse& next = is_last ? uses.front() : *(use + 1);
    const std::size_t overwritten = next.operation + (is_last ? trace_.operations.size() : 0);
    if (next.access != Access::write) {
      return Problem{where + ": operation " + std::to_string(next.operation) + " needs the value"};
    }
    if (value.until > last && value.until <= overwritten) return std::nullopt;
    return Problem{where + ".until: " + std::to_string(value.until) + " is not above " + std::to_string(last) +
                   " and at most " + std::to_string(overwritten)};
  }

  Finding available_from(std::size_t i) const {
    const TraceTensor& tensor = trace_.tensors[i];
    if (tensor.available_from == 0) return std::nullopt;
    const std::string where = element("tensors", i) + ".available_from: ";
    if (tensor.kind != TensorKind::input) {
      return Problem{where + "only an input has it, and this tensor is " + std::string(to_string(tensor.kind))};
    }
    if (tensor.available_from >= trace_.operations.size()) {
      return Problem{where + std::to_string(tensor.available_from) + " is not one of the " +
                     std::to_string(trace_.operations.size()) + " operations"};
    }
    return std::nullopt;
  }

  Finding bundle(std::size_t operation) {
    const TraceOperation& o = trace_.operations[operation];
    if (auto finding = accesses(operation, "reads", o.reads, Access::read)) return finding;
    if (auto finding = accesses(operation, "updates", o.updates, Access::update)) return finding;
    return accesses(operation, "writes", o.writes, Access::write);
  }

  Finding accesses(std::size_t operation, std::string_view list, std::span<const TensorId> ids, Access access) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto where = [&] { return element("operations", operation) + '.' + element(list, i); };
      const std::size_t id = index(ids[i]);
      if (id >= trace_.tensors.size()) return unknown_tensor(where(), ids[i], trace_.tensors.size());
      const TraceTensor& tensor = trace_.tensors[id];
      if (last_bundle_[id] == operation) {
        return Problem{where() + ": tensor " + std::to_string(id) + " stands in the bundle twice"};
      }
      last_bundle_[id] = static_cast<std::uint32_t>(operation);
      if (operation < tensor.available_from) {
        return Problem{where() + ": input " + std::to_string(id) + " has no value before operation " +
                       std::to_string(tensor.available_from)};
      }
      if (access != Access::read) first_write_[id] = std::min(first_write_[id], static_cast<std::uint32_t>(operation));
      if (access != Access::write && tensor.kind == TensorKind::transient && first_write_[id] >= operation) {
        return Problem{where() + ": transient " + std::to_string(id) + " has no value before it is written"};
      }
    }
    return std::nullopt;
  }

  Finding host_read(std::size_t i) const {
    const HostRead& read = trace_.host_reads[i];
    const std::string where = element("host_reads", i);
    const std::size_t id = index(read.tensor);
    const std::size_t operation = index(read.after_operation);
    if (id >= trace_.tensors.size()) return unknown_tensor(where + ".tensor", read.tensor, trace_.tensors.size());
    if (operation >= trace_.operations.size()) {
      return Problem{where + ".after_operation: " + std::to_string(operation) + " is not one of the " +
                     std::to_string(trace_.operations.size()) + " operations"};
    }
    const TraceTensor& tensor = trace_.tensors[id];
    const bool has_value = tensor.kind == TensorKind::persistent ||
                           (tensor.kind == TensorKind::input && operation >= tensor.available_from) ||
                           (tensor.kind == TensorKind::transient && first_write_[id] <= operation);
    if (has_value) return std::nullopt;
    return Problem{where + ": " + std::string(to_string(tensor.kind)) + ' ' + std::to_string(id) +
                   " has no value after operation " + std::to_string(operation)};
  }

  const Trace& trace_;
  std::vector<std::uint32_t> last_bundle_;  ///< the last operation that had the tensor in its bundle
  std::vector<std::uint32_t> first_write_;  ///< the first operation that wrote or updated it
};

}  // namespace

bool needs_version_2(const Trace& trace) {
  return needs_version_2_but_for_replays(trace) || std::ranges::any_of(trace.operations, &TraceOperation::replayable);
}

std::span<const TensorForm> forms_of(const Trace& trace, TensorId tensor) {
  const auto first = std::ranges::lower_bound(trace.forms, tensor, {}, &TensorForm::tensor);
  const auto last = std::ranges::upper_bound(trace.forms, tensor, {}, &TensorForm::tensor);
  return {first, last};
}

const TensorForm* find_form(const Trace& trace, TensorId tensor, std::string_view name) {
  const std::span<const TensorForm> forms = forms_of(trace, tensor);
  const auto found = std::ranges::find(forms, name, &TensorForm::name);
  return found == forms.end() ? nullptr : &*found;
}

const AccessRange* find_range(const Trace& trace, OperationId operation, TensorId tensor) {
  const auto key = [](const AccessRange& range) { return std::pair(range.operation, range.tensor); };
  const auto found = std::ranges::lower_bound(trace.ranges, std::pair(operation, tensor), {}, key);
  return found == trace.ranges.end() || key(*found) != std::pair(operation, tensor) ? nullptr : &*found;
}

bool is_name(std::string_view name) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !name.empty() && name.size() <= limits::short_name_bytes &&
         name.find_first_not_of(allowed) == std::string_view::npos;
}

Check check_trace(const Trace& trace) {
  Checker checker(trace);
  if (auto finding = checker.counts()) return *finding;
  if (auto finding = checker.tensors()) return *finding;
  if (auto finding = checker.engines()) return *finding;
  if (auto finding = checker.forms()) return *finding;
  if (auto finding = checker.operations()) return *finding;
  if (auto finding = checker.ranges()) return *finding;
  if (auto finding = checker.host_reads()) return *finding;
  if (auto finding = checker.lingering()) return *finding;
  return Done{};
}

}  // namespace swapmm
