// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/trace.hpp>

#include <algorithm>
#include <limits>
#include <span>

#include <swapmm/ir/limits.hpp>

namespace swapmm {
namespace {

using Finding = std::optional<Problem>;

std::string element(std::string_view list, std::size_t position) {
  return std::string(list) + '[' + std::to_string(position) + ']';
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
      if (auto finding = available_from(i)) return finding;
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
      if (auto finding = bundle(i)) return finding;
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

Check check_trace(const Trace& trace) {
  Checker checker(trace);
  if (auto finding = checker.counts()) return *finding;
  if (auto finding = checker.tensors()) return *finding;
  if (auto finding = checker.operations()) return *finding;
  if (auto finding = checker.host_reads()) return *finding;
  return Done{};
}

}  // namespace swapmm
