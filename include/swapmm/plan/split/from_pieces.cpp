// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <swapmm/plan/split/dependence.hpp>
#include <swapmm/plan/split/quantity.hpp>
#include <swapmm/plan/split/split.hpp>

namespace swapmm {
namespace {

/// Learns a step from pieces of several sizes. The second piece is the model for all but the first one.
class PieceReader {
 public:
  PieceReader(const Trace& trace, std::span<const ObservedPiece> pieces)
      : trace_(trace), pieces_(pieces), owners_(trace.tensors.size(), unused), ids_(trace.tensors.size(), unused) {}

  Result<SplitStep> read() {
    if (auto problem = planning::unsplittable(trace_)) return *problem;
    if (auto problem = check_pieces()) return *problem;
    if (auto problem = choose_sizes()) return *problem;
    step_.name = trace_.name;
    find_owners();
    if (auto problem = match_pieces()) return *problem;
    append_operations();
    append_host_reads();
    find_statistics();
    return std::move(step_);
  }

 private:
  using Finding = std::optional<Problem>;

  static constexpr std::uint32_t unused = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t shared = unused - 1;
  static constexpr std::size_t model = 1;  ///< the piece that is the model

  Finding check_pieces() const {
    if (pieces_.size() < 2) return Problem{"pieces of two sizes are needed, and there are fewer than two pieces"};
    if (pieces_[0].operations == 0) return Problem{"a piece has no operation"};
    std::uint64_t next = pieces_[0].first;
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      const ObservedPiece& piece = pieces_[p];
      if (piece.samples == 0 || piece.samples > planning::most_samples) {
        return Problem{"piece " + std::to_string(p) + " has " + std::to_string(piece.samples) + " samples"};
      }
      if (piece.operations != pieces_[0].operations) {
        return Problem{"piece " + std::to_string(p) + " has " + std::to_string(piece.operations) +
                       " operations, and the first piece has " + std::to_string(pieces_[0].operations)};
      }
      if (piece.first != next) {
        return Problem{"piece " + std::to_string(p) + " does not begin where the one before ends"};
      }
      next += piece.operations;
    }
    if (next > trace_.operations.size()) return Problem{"the pieces have more operations than the trace"};
    return std::nullopt;
  }

  Finding choose_sizes() {
    std::map<std::uint64_t, std::size_t> counts;
    for (const ObservedPiece& piece : pieces_) ++counts[piece.samples];
    if (counts.size() < 2) return Problem{"pieces of two sizes are needed, and all have the same"};
    step_.large = counts.rbegin()->first;
    counts.erase(step_.large);
    step_.small = std::ranges::max_element(counts, {}, [](const auto& size) { return size.second; })->first;
    return std::nullopt;
  }

  /// The piece of an operation; `shared` for the others.
  [[nodiscard]] std::uint32_t piece_of(std::size_t operation) const {
    if (operation < pieces_[0].first) return shared;
    const std::size_t piece = (operation - pieces_[0].first) / pieces_[0].operations;
    return piece < pieces_.size() ? static_cast<std::uint32_t>(piece) : shared;
  }

  void find_owners() {
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      for_each_access(trace_.operations[i], [&](TensorId id, Access) {
        std::uint32_t& owner = owners_[index(id)];
        owner = owner == unused || owner == piece_of(i) ? piece_of(i) : shared;
      });
    }
  }

  [[nodiscard]] bool is_local(TensorId id) const { return owners_[index(id)] < shared; }

  [[nodiscard]] const TraceOperation& operation_of(std::size_t piece, std::size_t position) const {
    return trace_.operations[pieces_[piece].first + position];
  }

  /// An access of an operation. All accesses of shared tensors come before those of local ones.
  struct PieceAccess {
    bool local;
    Access access;
    TensorId tensor;
  };
  [[nodiscard]] std::vector<PieceAccess> accesses_of(const TraceOperation& operation) const {
    std::vector<PieceAccess> accesses;
    for_each_access(operation, [&](TensorId id, Access access) { accesses.push_back({is_local(id), access, id}); });
    std::stable_partition(accesses.begin(), accesses.end(), [](const PieceAccess& access) { return !access.local; });
    return accesses;
  }

  /// Makes the local tensors of all pieces known as those of the model.
  Finding match_pieces() {
    for (std::size_t position = 0; position < pieces_[0].operations; ++position) {
      const std::vector<PieceAccess> expected = accesses_of(operation_of(model, position));
      for (const PieceAccess& access : expected) (void)id_of(access.tensor);
      for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
        if (piece == model) continue;
        if (!match(piece, accesses_of(operation_of(piece, position)), expected)) return unlike(piece, position);
      }
    }
    return std::nullopt;
  }

  bool match(std::size_t piece, std::vector<PieceAccess> found, std::vector<PieceAccess> expected) {
    if (found.size() != expected.size()) return false;
    if (piece == 0) {  // it may write what the others update
      const auto by_tensor = [](const PieceAccess& access) {
        return std::tuple(access.local, access.local ? TensorId{} : access.tensor);
      };
      std::ranges::stable_sort(found, {}, by_tensor);
      std::ranges::stable_sort(expected, {}, by_tensor);
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].local != expected[i].local) return false;
      if (!found[i].local && found[i].tensor != expected[i].tensor) return false;
      if ((found[i].local || piece != 0) && found[i].access != expected[i].access) return false;
      if (found[i].local && !match(piece, found[i].tensor, expected[i].tensor)) return false;
    }
    return true;
  }

  /// Whether a local tensor can be the one of the model in that piece.
  bool match(std::size_t piece, TensorId found, TensorId expected) {
    const std::uint32_t id = ids_[index(expected)];
    const TraceTensor& tensor = trace_.tensors[index(found)];
    if (ids_[index(found)] == unused) {
      if (step_.tensors[id].kind != tensor.kind || !taken_.insert({{piece, id}, found}).second) return false;
      ids_[index(found)] = id;
      note_size(step_.tensors[id], tensor, pieces_[piece].samples);
    }
    return ids_[index(found)] == id;
  }

  Problem unlike(std::size_t piece, std::size_t position) const {
    return {"operation " + std::to_string(pieces_[piece].first + position) + " (" + operation_of(piece, position).name +
            ") is not like operation " + std::to_string(pieces_[model].first + position) + " (" +
            operation_of(model, position).name + "), which stands there in another piece"};
  }

  void note_size(SplitTensor& made, const TraceTensor& tensor, std::uint64_t samples) const {
    const auto bytes = static_cast<std::int64_t>(tensor.bytes.value);
    if (samples == step_.small) made.bytes.at_small = std::max(made.bytes.at_small, bytes);
    if (samples == step_.large) made.bytes.at_large = std::max(made.bytes.at_large, bytes);
  }

  /// The step's tensor for one that is shared, or local to the model.
  TensorId id_of(TensorId tensor) {
    std::uint32_t& id = ids_[index(tensor)];
    if (id != unused) return static_cast<TensorId>(id);
    id = static_cast<std::uint32_t>(step_.tensors.size());
    const TraceTensor& traced = trace_.tensors[index(tensor)];
    SplitTensor made{traced.name, traced.kind, {}, is_local(tensor), {}};
    if (traced.kind == TensorKind::input) made.available_from = availability(traced, made.local);
    if (made.local) {
      note_size(made, traced, pieces_[model].samples);
    } else {
      const auto bytes = static_cast<std::int64_t>(traced.bytes.value);
      made.bytes = {bytes, bytes};
    }
    step_.tensors.push_back(std::move(made));
    return static_cast<TensorId>(id);
  }

  [[nodiscard]] SplitPlace availability(const TraceTensor& tensor, bool local) const {
    const std::uint32_t from = tensor.available_from;
    if (local) {
      if (from >= pieces_[model].first) return {SplitPlace::Part::piece, from - pieces_[model].first};
      return {SplitPlace::Part::before, std::min(from, pieces_[0].first)};
    }
    return place_of(from);
  }

  [[nodiscard]] SplitPlace place_of(std::uint32_t operation) const {
    const std::uint32_t first = pieces_[0].first;
    const std::uint32_t behind = pieces_.back().first + pieces_.back().operations;
    if (operation < first) return {SplitPlace::Part::before, operation};
    if (operation >= behind) return {SplitPlace::Part::after, operation - behind};
    return {SplitPlace::Part::piece, (operation - first) % pieces_[0].operations};
  }

  TraceOperation in_step(const TraceOperation& operation) {
    TraceOperation made;
    made.name = operation.name;
    for (const TensorId id : operation.reads) made.reads.push_back(id_of(id));
    for (const TensorId id : operation.writes) made.writes.push_back(id_of(id));
    for (const TensorId id : operation.updates) made.updates.push_back(id_of(id));
    return made;
  }

  SplitOperation run_once(std::size_t operation) {
    const std::int64_t duration = trace_.operations[operation].duration.count();
    return {{duration, duration}, in_step(trace_.operations[operation]), {}};
  }

  [[nodiscard]] std::int64_t mean_duration(std::size_t position, std::uint64_t samples) const {
    std::int64_t sum = 0;
    std::int64_t count = 0;
    for (std::size_t piece = 1; piece < pieces_.size(); ++piece) {
      if (pieces_[piece].samples != samples) continue;
      sum += operation_of(piece, position).duration.count();
      ++count;
    }
    return count == 0 ? operation_of(0, position).duration.count() : sum / count;
  }

  void append_operations() {
    for (std::size_t i = 0; i < pieces_[0].first; ++i) step_.before.push_back(run_once(i));
    for (std::size_t position = 0; position < pieces_[0].operations; ++position) {
      step_.piece.push_back({{mean_duration(position, step_.small), mean_duration(position, step_.large)},
                             in_step(operation_of(0, position)),
                             in_step(operation_of(model, position))});
    }
    for (std::size_t i = pieces_.back().first + pieces_.back().operations; i < trace_.operations.size(); ++i) {
      step_.after.push_back(run_once(i));
    }
  }

  void append_host_reads() {
    for (const HostRead& read : trace_.host_reads) {
      const std::uint32_t owner = owners_[index(read.tensor)];
      if (owner == unused) continue;  // no operation uses it, so nothing is copied
      if (owner < shared && owner != model) continue;
      const SplitHostRead made{id_of(read.tensor), place_of(static_cast<std::uint32_t>(read.after_operation))};
      // A shared tensor that is read after each piece is read once here.
      if (std::ranges::find(step_.host_reads, made) == step_.host_reads.end()) step_.host_reads.push_back(made);
    }
  }

  void find_statistics() {
    planning::GrowingTensors growing(trace_.tensors.size());
    for (std::size_t t = 0; t < growing.size(); ++t) {
      if (ids_[t] == unused) continue;
      const SplitQuantity& bytes = step_.tensors[ids_[t]].bytes;
      growing[t] = bytes.at_small != bytes.at_large;
    }
    std::vector<bool> in_piece(trace_.operations.size());
    for (std::size_t i = 0; i < in_piece.size(); ++i) in_piece[i] = piece_of(i) != shared;
    for (const TensorId found : planning::find_statistics(trace_, growing, in_piece)) {
      step_.statistics.push_back(static_cast<TensorId>(ids_[index(found)]));
    }
    planning::sort_once(step_.statistics);
  }

  const Trace& trace_;
  std::span<const ObservedPiece> pieces_;
  std::vector<std::uint32_t> owners_;                                ///< per tensor: its piece, `shared` or `unused`
  std::vector<std::uint32_t> ids_;                                   ///< per tensor: the step's, or `unused`
  std::map<std::pair<std::size_t, std::uint32_t>, TensorId> taken_;  ///< by piece and step's tensor
  SplitStep step_;
};

}  // namespace

Result<SplitStep> split_step(const Trace& trace, std::span<const ObservedPiece> pieces) {
  return PieceReader(trace, pieces).read();
}

}  // namespace swapmm
