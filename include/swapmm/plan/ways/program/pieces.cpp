// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/program/pieces.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace swapmm::planning {
namespace {

/// The bytes [first, end) of a tensor.
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

/// The bytes that an operation accesses.
ByteRange accessed_bytes(const Trace& trace, std::size_t operation, TensorId tensor) {
  const AccessRange* const range = find_range(trace, id_at<OperationId>(operation), tensor);
  if (range == nullptr) return {0, trace.tensors[index(tensor)].bytes.value};
  return {range->first.value, range->first.value + range->bytes.value};
}

class Divider {
 public:
  Divider(const Trace& trace, std::span<const TensorPieces> divisions)
      : trace_(trace), edges_(trace.tensors.size()), first_part_(trace.tensors.size()) {
    for (const TensorPieces& pieces : divisions) {
      if (index(pieces.tensor) >= trace.tensors.size()) continue;
      for (const Bytes at : pieces.at) edges_[index(pieces.tensor)].push_back(at.value);
    }
  }

  Result<DividedTrace> run() {
    out_.trace = trace_;
    out_.trace.tensors.clear();
    out_.trace.ranges.clear();
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) append_parts(t);
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      if (std::optional<Problem> problem = divide_operation(i)) return *std::move(problem);
    }
    out_.trace.host_reads.clear();
    for (const HostRead& read : trace_.host_reads) {
      for (std::size_t p = 0; p < part_count(read.tensor); ++p) {
        out_.trace.host_reads.push_back({part(read.tensor, p), read.after_operation});
      }
    }
    // No form of a tensor that is divided can be used.
    std::erase_if(out_.trace.forms, [&](const TensorForm& form) { return part_count(form.tensor) > 1; });
    for (TensorForm& form : out_.trace.forms) form.tensor = part(form.tensor, 0);
    if (const Check check = check_trace(out_.trace); !check) return check.problem();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::size_t part_count(TensorId tensor) const { return edges_[index(tensor)].size() + 1; }
  [[nodiscard]] TensorId part(TensorId tensor, std::size_t piece) const {
    return static_cast<TensorId>(first_part_[index(tensor)] + piece);
  }
  [[nodiscard]] ByteRange bytes_of(TensorId tensor, std::size_t piece) const {
    const std::vector<std::uint64_t>& edges = edges_[index(tensor)];
    return {piece == 0 ? 0 : edges[piece - 1],
            piece == edges.size() ? trace_.tensors[index(tensor)].bytes.value : edges[piece]};
  }

  void append_parts(std::size_t tensor) {
    const auto id = static_cast<TensorId>(tensor);
    first_part_[tensor] = static_cast<std::uint32_t>(out_.trace.tensors.size());
    const bool divided = !edges_[tensor].empty();
    for (std::size_t p = 0; p < part_count(id); ++p) {
      TraceTensor piece = trace_.tensors[tensor];
      if (divided) {
        const ByteRange bytes = bytes_of(id, p);
        piece.bytes = Bytes{bytes.end - bytes.first};
        piece.name += " piece " + std::to_string(p);
      }
      out_.trace.tensors.push_back(std::move(piece));
      out_.parts.push_back({id, divided ? std::optional(static_cast<std::uint32_t>(p)) : std::nullopt});
    }
    has_value_.resize(out_.trace.tensors.size(), trace_.tensors[tensor].kind != TensorKind::transient);
  }

  std::optional<Problem> divide_operation(std::size_t number) {
    TraceOperation& operation = out_.trace.operations[number];
    operation.in_pieces = false;
    operation.reads.clear();
    operation.writes.clear();
    operation.updates.clear();
    std::optional<Problem> problem;
    for_each_access(trace_.operations[number], [&](TensorId tensor, Access access) {
      if (problem) return;
      if (edges_[index(tensor)].empty()) {
        add(operation, part(tensor, 0), access, is_partial(number, tensor));
      } else {
        problem = add_pieces(operation, number, tensor, access);
      }
    });
    return problem;
  }

  [[nodiscard]] bool is_partial(std::size_t operation, TensorId tensor) const {
    const ByteRange bytes = accessed_bytes(trace_, operation, tensor);
    return bytes.first != 0 || bytes.end != trace_.tensors[index(tensor)].bytes.value;
  }

  std::optional<Problem> add_pieces(TraceOperation& operation, std::size_t number, TensorId tensor, Access access) {
    const ByteRange accessed = accessed_bytes(trace_, number, tensor);
    bool is_first = true;
    for (std::size_t p = 0; p < part_count(tensor); ++p) {
      const ByteRange piece = bytes_of(tensor, p);
      if (piece.end <= accessed.first || piece.first >= accessed.end) continue;
      // One piece lies in one place.
      if (!std::exchange(is_first, false) && !trace_.operations[number].in_pieces) {
        return Problem{"operation " + std::to_string(number) + " does not work with tensor " +
                       std::to_string(index(tensor)) + " in pieces"};
      }
      if (piece.first < accessed.first || piece.end > accessed.end) {
        return Problem{"operation " + std::to_string(number) + " accesses a part of piece " + std::to_string(p) +
                       " of tensor " + std::to_string(index(tensor))};
      }
      add(operation, part(tensor, p), access, false);
    }
    return std::nullopt;
  }

  void add(TraceOperation& operation, TensorId tensor, Access access, bool partial) {
    // What such a write leaves as it was has to be there.
    if (access == Access::write && partial && has_value_[index(tensor)]) access = Access::update;
    (access == Access::read    ? operation.reads
     : access == Access::write ? operation.writes
                               : operation.updates)
        .push_back(tensor);
    if (access != Access::read) has_value_[index(tensor)] = true;
  }

  const Trace& trace_;
  std::vector<std::vector<std::uint64_t>> edges_;  // per tensor: between its pieces
  std::vector<std::uint32_t> first_part_;          // per tensor
  std::vector<bool> has_value_;                    // per part
  DividedTrace out_;
};

bool ascend_within(const TensorPieces& pieces, std::uint64_t bytes) {
  std::uint64_t last = 0;
  for (const Bytes at : pieces.at) {
    if (at.value <= last || at.value >= bytes) return false;
    last = at.value;
  }
  return !pieces.at.empty();
}

/// Puts further edges where a piece would be larger than `most`, at multiples of the alignment.
std::vector<Bytes> with_more_edges(const std::vector<std::uint64_t>& edges, std::uint64_t bytes, std::uint64_t most,
                                   std::uint64_t alignment) {
  std::vector<Bytes> all;
  std::uint64_t begin = 0;
  const auto divide_up_to = [&](std::uint64_t end) {
    const std::uint64_t count = (end - begin + most - 1) / most;
    for (std::uint64_t i = 1; i < count; ++i) {
      const std::uint64_t at = (begin + (end - begin) / count * i) / alignment * alignment;
      if (at > begin && (all.empty() || at > all.back().value) && at < end) all.push_back(Bytes{at});
    }
    if (end != bytes) all.push_back(Bytes{end});
    begin = end;
  };
  for (const std::uint64_t edge : edges) divide_up_to(edge);
  divide_up_to(bytes);
  return all;
}

}  // namespace

Result<DividedTrace> with_pieces(const Trace& trace, std::span<const TensorPieces> divisions) {
  for (std::size_t i = 0; i < divisions.size(); ++i) {
    const TensorPieces& pieces = divisions[i];
    const std::size_t tensor = index(pieces.tensor);
    if (tensor >= trace.tensors.size() || !ascend_within(pieces, trace.tensors[tensor].bytes.value) ||
        (i > 0 && tensor <= index(divisions[i - 1].tensor))) {
      return Problem{"pieces " + std::to_string(i) + " do not divide a tensor of the trace, or not in ascending order"};
    }
    if (trace.tensors[tensor].copied) {
      return Problem{"tensor " + std::to_string(tensor) + " is encoded on its way, and cannot be divided"};
    }
  }
  return Divider(trace, divisions).run();
}

std::vector<TensorPieces> possible_pieces(const Trace& trace, const Machine& machine) {
  constexpr std::uint64_t part = 24;
  constexpr std::size_t most_pieces = 64;
  std::vector<bool> accessed(trace.tensors.size(), false);
  std::vector<std::vector<std::uint64_t>> edges(trace.tensors.size());
  std::vector<std::vector<ByteRange>> unbroken(trace.tensors.size());  // what operations need in one place
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    for_each_access(trace.operations[i], [&](TensorId tensor, Access) {
      const std::size_t t = index(tensor);
      accessed[t] = true;
      const ByteRange bytes = accessed_bytes(trace, i, tensor);
      if (!trace.operations[i].in_pieces) unbroken[t].push_back(bytes);
      if (bytes.first != 0) edges[t].push_back(bytes.first);
      if (bytes.end != trace.tensors[t].bytes.value) edges[t].push_back(bytes.end);
    });
  }
  std::vector<TensorPieces> divisions;
  const std::uint64_t alignment = machine.alignment.value;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    // Encoded values are those of all of it.
    if (!accessed[t] || trace.tensors[t].copied || !forms_of(trace, id).empty()) continue;
    const auto breaks = [&](Bytes at) {
      return std::ranges::any_of(
          unbroken[t], [&](const ByteRange& range) { return at.value > range.first && at.value < range.end; });
    };
    std::ranges::sort(edges[t]);
    edges[t].erase(std::unique(edges[t].begin(), edges[t].end()), edges[t].end());
    const std::uint64_t bytes = trace.tensors[t].bytes.value;
    const std::uint64_t most =
        std::max({machine.device_budget.value / part, bytes / most_pieces, alignment, std::uint64_t{1}});
    if (std::ranges::any_of(edges[t], [&](std::uint64_t edge) { return breaks(Bytes{edge}); })) continue;
    TensorPieces pieces{id, with_more_edges(edges[t], bytes, most, alignment)};
    std::erase_if(pieces.at, breaks);
    if (!pieces.at.empty()) divisions.push_back(std::move(pieces));
  }
  if (divisions.empty() || with_pieces(trace, divisions)) return divisions;
  // A transient whose pieces are not all written before they are read stays whole.
  std::erase_if(divisions, [&](const TensorPieces& pieces) { return !with_pieces(trace, {&pieces, 1}); });
  return divisions;
}

std::vector<TensorPieces> pieces_that_fit(const Trace& trace, const Machine& machine,
                                          std::vector<TensorPieces> divisions) {
  const auto padded = [&](std::uint64_t bytes) { return round_up(Bytes{bytes}, machine.alignment).value; };
  std::vector<const TensorPieces*> division_of(trace.tensors.size(), nullptr);
  for (const TensorPieces& pieces : divisions) division_of[index(pieces.tensor)] = &pieces;
  const auto in_pieces = [&](std::size_t operation, const TensorPieces& pieces) {
    const ByteRange accessed = accessed_bytes(trace, operation, pieces.tensor);
    std::uint64_t sum = 0;
    std::uint64_t begin = 0;
    for (std::size_t p = 0; p <= pieces.at.size(); ++p) {
      const std::uint64_t end =
          p == pieces.at.size() ? trace.tensors[index(pieces.tensor)].bytes.value : pieces.at[p].value;
      if (begin < accessed.end && end > accessed.first) sum += padded(end - begin);
      begin = end;
    }
    return sum;
  };
  std::vector<std::pair<std::uint64_t, TensorId>> gains;
  for (bool dropped = true; std::exchange(dropped, false);) {  // a whole tensor may need more room elsewhere
    for (std::size_t i = 0; i < trace.operations.size(); ++i) {
      std::uint64_t bundle = 0;
      gains.clear();
      for_each_access(trace.operations[i], [&](TensorId tensor, Access) {
        const TensorPieces* const division = division_of[index(tensor)];
        const std::uint64_t whole = padded(trace.tensors[index(tensor)].bytes.value);
        const std::uint64_t needed = division == nullptr ? whole : in_pieces(i, *division);
        if (needed > whole) gains.emplace_back(needed - whole, tensor);
        bundle += needed;
      });
      std::ranges::sort(gains, std::greater{});
      for (const auto& [gain, tensor] : gains) {
        if (bundle <= machine.device_budget.value) break;
        division_of[index(tensor)] = nullptr;
        bundle -= gain;
        dropped = true;
      }
    }
  }
  std::erase_if(divisions, [&](const TensorPieces& pieces) { return division_of[index(pieces.tensor)] == nullptr; });
  return divisions;
}

}  // namespace swapmm::planning
