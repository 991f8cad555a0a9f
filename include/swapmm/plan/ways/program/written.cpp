// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/program/written.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <swapmm/plan/ways/program/pieces.hpp>

namespace swapmm::planning {
namespace {

/// Sorts a list, and keeps each element once.
template <class T, class Key>
std::vector<T> sorted_once(std::span<const T> list, Key key) {
  std::vector<T> sorted(list.begin(), list.end());
  std::ranges::sort(sorted, {}, key);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

std::string problem_of_trace(const Trace& trace) {
  for (const TensorForm& form : trace.forms) {
    if (!trace.tensors[index(form.tensor)].copied) continue;
    return "tensor " + std::to_string(index(form.tensor)) + " is encoded on its way, and has forms besides";
  }
  return {};
}

std::string problem_of(const Trace& trace, const ValueHistory& history, std::span<const Replay> replays) {
  const auto key = [](const Replay& replay) { return std::tuple(index(replay.before), index(replay.operation)); };
  const std::vector<Replay> sorted = sorted_once(replays, key);
  std::vector<bool> is_checked(sorted.size(), false);  // with its group
  const auto position_of = [&](const Replay& replay) {
    const auto found = std::ranges::lower_bound(sorted, key(replay), {}, key);
    return static_cast<std::size_t>(found - sorted.begin());
  };
  for (std::size_t i = 0; i < replays.size(); ++i) {
    const std::size_t operation = index(replays[i].operation);
    const std::size_t before = index(replays[i].before);
    if (operation >= trace.operations.size() || before >= trace.operations.size()) {
      return "replay " + std::to_string(i) + " names an operation that is not there";
    }
    if (is_checked[position_of(replays[i])]) continue;
    const std::vector<std::uint32_t> group =
        history.group(static_cast<std::uint32_t>(operation), static_cast<std::uint32_t>(before));
    if (group.empty()) {
      return "operation " + std::to_string(operation) + " may not run again before operation " + std::to_string(before);
    }
    for (const std::uint32_t other : group) {
      const Replay needed{static_cast<OperationId>(other), replays[i].before};
      const std::size_t at = position_of(needed);
      if (at < sorted.size() && sorted[at] == needed) {
        is_checked[at] = true;
        continue;
      }
      return "operation " + std::to_string(operation) + " runs again before operation " + std::to_string(before) +
             ", and operation " + std::to_string(other) + ", which gives the same tensor a value, does not";
    }
  }
  return {};
}

std::string problem_of(const Trace& trace, const ValueHistory& history, std::span<const Coding> codings) {
  for (std::size_t i = 0; i < codings.size(); ++i) {
    const Coding& coding = codings[i];
    if (index(coding.tensor) >= trace.tensors.size() || coding.form >= forms_of(trace, coding.tensor).size() ||
        index(coding.before) >= trace.operations.size()) {
      return "coding " + std::to_string(i) + " names a form or an operation that is not there";
    }
    if (!history.may_be_coded(coding.tensor, static_cast<std::uint32_t>(coding.after),
                              static_cast<std::uint32_t>(coding.before))) {
      return "tensor " + std::to_string(index(coding.tensor)) + " may not be encoded between operations " +
             std::to_string(index(coding.after)) + " and " + std::to_string(index(coding.before));
    }
  }
  return {};
}

/// Puts the program together, one original operation after another.
class Writer {
 public:
  Writer(const Trace& trace, const WaysBack& ways)
      : trace_(trace), replays_(sorted_once(std::span(ways.replays), [](const Replay& r) {
          return std::tuple(index(r.before), index(r.operation));
        })) {
    std::vector<Coded> encodings;
    std::vector<Coded> decodings;
    for (const Coding& coding : ways.codings) {
      out_.encoded.push_back({coding.tensor, coding.form});
      encodings.push_back({index(coding.after), {coding.tensor, coding.form}});
      decodings.push_back({index(coding.before), {coding.tensor, coding.form}});
    }
    out_.encoded = sorted_once(std::span<const EncodedTensor>(out_.encoded), key_of);
    const auto by_place = [](const Coded& coded) { return std::tuple(coded.place, key_of(coded.what)); };
    encodings_ = sorted_once(std::span<const Coded>(encodings), by_place);
    decodings_ = sorted_once(std::span<const Coded>(decodings), by_place);
  }

  WrittenTrace run() {
    out_.trace = without_ways(trace_);
    out_.trace.operations.clear();
    out_.trace.lingering.clear();
    for (const EncodedTensor& encoded : out_.encoded) append_tensor(encoded);
    std::vector<std::uint32_t> place(trace_.operations.size());
    auto replay = replays_.begin();
    auto encoding = encodings_.begin();
    auto decoding = decodings_.begin();
    for (std::uint32_t i = 0; i < trace_.operations.size(); ++i) {
      for (; decoding != decodings_.end() && decoding->place == i; ++decoding) {
        append_coding(WrittenStep::Kind::decode, decoding->what, i);
      }
      for (; replay != replays_.end() && index(replay->before) == i; ++replay) {
        append(WrittenStep::Kind::replay, static_cast<std::uint32_t>(replay->operation));
      }
      place[i] = static_cast<std::uint32_t>(out_.steps.size());
      append(WrittenStep::Kind::operation, i);
      for (; encoding != encodings_.end() && encoding->place == i; ++encoding) {
        append_coding(WrittenStep::Kind::encode, encoding->what, i);
      }
    }
    for (TraceTensor& tensor : out_.trace.tensors) {
      if (tensor.available_from != 0) tensor.available_from = place[tensor.available_from - 1] + 1;
    }
    for (HostRead& read : out_.trace.host_reads) {
      read.after_operation = static_cast<OperationId>(place[index(read.after_operation)]);
    }
    place_lingering(place);
    return std::move(out_);
  }

 private:
  /// An encoding behind an operation, or a decoding before one.
  struct Coded {
    std::size_t place = 0;
    EncodedTensor what;

    friend bool operator==(const Coded&, const Coded&) = default;
  };

  static std::tuple<std::size_t, std::uint32_t> key_of(const EncodedTensor& encoded) {
    return {index(encoded.tensor), encoded.form};
  }

  [[nodiscard]] const TensorForm& form_of(const EncodedTensor& encoded) const {
    return forms_of(trace_, encoded.tensor)[encoded.form];
  }

  /// A value lingers behind the last step that uses it, which may be a replay. It does not before that replay makes it
  /// again: nothing is lost if it is dropped there.
  void place_lingering(const std::vector<std::uint32_t>& place) {
    if (trace_.lingering.empty()) return;
    const Liveness liveness = analyze_liveness(out_.trace, Bytes{1});
    const auto n = static_cast<std::uint32_t>(trace_.operations.size());
    const auto steps = static_cast<std::uint32_t>(out_.steps.size());
    std::vector<LingeringValue> placed;
    for (const LingeringValue& value : trace_.lingering) {
      // The next operation of the program that uses the tensor overwrites it.
      const std::span<const Use> uses = uses_from(liveness, value.tensor, place[index(value.last_use)]);
      std::size_t last = 0;
      while (last + 1 < uses.size() && !is_original(uses[last + 1].operation)) ++last;
      const std::uint32_t until = value.until / n * steps + place[value.until % n];
      const OperationId last_use = uses[last].operation;
      if (until > static_cast<std::uint32_t>(last_use)) placed.push_back({value.tensor, last_use, until});
    }
    out_.trace.lingering = std::move(placed);
  }

  [[nodiscard]] bool is_original(OperationId step) const {
    return out_.steps[index(step)].kind == WrittenStep::Kind::operation;
  }

  void append_tensor(const EncodedTensor& encoded) {
    const TensorForm& form = form_of(encoded);
    TraceTensor tensor{trace_.tensors[index(encoded.tensor)].name + " " + form.name, form.bytes, TensorKind::transient,
                       0};
    if (form.expected < form.bytes) tensor.copied = form.expected;
    out_.trace.tensors.push_back(std::move(tensor));
  }

  void append(WrittenStep::Kind kind, std::uint32_t operation) {
    TraceOperation added = trace_.operations[operation];
    added.replayable = false;
    out_.trace.operations.push_back(std::move(added));
    out_.steps.push_back({kind, operation});
  }

  /// Next to this operation, on its engine.
  void append_coding(WrittenStep::Kind kind, const EncodedTensor& what, std::uint32_t operation) {
    const auto at = std::ranges::lower_bound(out_.encoded, key_of(what), {}, key_of) - out_.encoded.begin();
    const auto number = static_cast<std::uint32_t>(at);
    const auto encoded = static_cast<TensorId>(trace_.tensors.size() + number);
    const TensorForm& form = form_of(what);
    const bool encodes = kind == WrittenStep::Kind::encode;
    TraceOperation added;
    added.name = (encodes ? "encode " : "decode ") + out_.trace.tensors[index(encoded)].name;
    added.duration = encodes ? form.encode : form.decode;
    added.reads = {encodes ? what.tensor : encoded};
    added.writes = {encodes ? encoded : what.tensor};
    added.engine = trace_.operations[operation].engine;
    out_.trace.operations.push_back(std::move(added));
    out_.steps.push_back({kind, number});
  }

  const Trace& trace_;
  std::vector<Replay> replays_;
  std::vector<Coded> encodings_;
  std::vector<Coded> decodings_;
  WrittenTrace out_;
};

}  // namespace

Result<WrittenTrace> with_ways(const Trace& trace, const ValueHistory& history, const WaysBack& ways) {
  std::string why = problem_of_trace(trace);
  if (why.empty()) why = problem_of(trace, history, ways.replays);
  if (why.empty()) why = problem_of(trace, history, ways.codings);
  if (!why.empty()) return Problem{why};
  return Writer(trace, ways).run();
}

}  // namespace swapmm::planning

namespace swapmm {

Result<WrittenTrace> with_ways(const Trace& trace, const WaysBack& ways) {
  const Result<planning::DividedTrace> divided = planning::with_pieces(trace, ways.pieces);
  if (!divided) return divided.problem();
  WaysBack others{ways.replays, ways.codings, {}};
  for (Coding& coding : others.codings) {
    const auto whole = std::ranges::find(divided->parts, TensorPart{coding.tensor, std::nullopt});
    if (whole == divided->parts.end()) return Problem{"a coding is for a tensor that is divided, or is not there"};
    coding.tensor = static_cast<TensorId>(whole - divided->parts.begin());
  }
  Result<WrittenTrace> written = planning::with_ways(divided->trace, planning::ValueHistory(divided->trace), others);
  if (!written) return written;
  for (EncodedTensor& encoded : written->encoded) encoded.tensor = divided->parts[index(encoded.tensor)].tensor;
  written->parts = divided->parts;
  return written;
}

}  // namespace swapmm
