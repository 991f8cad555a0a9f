// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/runtime/blocks/encoding_types.hpp>
#include <swapmm/runtime/timing/encoding_history.hpp>
#include <swapmm/runtime/timing/link_estimate.hpp>
#include <swapmm/runtime/values/host_pool.hpp>
#include <swapmm/runtime/values/record.hpp>

namespace swapmm::runtime {

/// Decides which values are encoded when they leave the device, and has the memory that they pass through.
template <Backend B>
class Encodings {
 public:
  using Encoder = typename EncodingTypes<B>::Encoder;

  /// Takes the device's memory. Throws UsageError if the options contradict each other, or if the backend cannot encode
  /// values, and BackendError.
  Encodings(B& backend, const Options& options) : history_(largest(options)) {
    if (options.codec_staging.value == 0) return;
    const Capabilities& can = backend.capabilities();
    check(options, can.alignment);
    if constexpr (EncodingBackend<B>) {
      encoder_.emplace(backend.make_encoder(history_.largest()));
    } else {
      throw UsageError("Options::codec_staging: the backend of " + can.device_name + " cannot encode values");
    }
    device_bytes_ = Bytes{2 * encoder_bytes(history_.largest()).value};
  }

  /// Null if no value is encoded.
  [[nodiscard]] Encoder* encoder() { return encoder_ ? &*encoder_ : nullptr; }

  [[nodiscard]] EncodingHistory& history() { return history_; }
  [[nodiscard]] const EncodingHistory& history() const { return history_; }
  /// Of the device's budget, for values on their way.
  [[nodiscard]] Bytes device_bytes() const { return device_bytes_; }
  /// What is left of a budget for tensors.
  [[nodiscard]] Bytes left_of(Bytes budget) const { return budget > device_bytes_ ? budget - device_bytes_ : Bytes{}; }

  /// The number of tensors like this one.
  [[nodiscard]] std::uint32_t number_of(Record<B>& record) {
    if (record.alike == not_encoded) record.alike = history_.number(record.name, record.bytes);
    return record.alike;
  }
  /// Whether the value is to be encoded: not what the host fills or reads, and not if it was in vain before. `in`,
  /// `out`: what is known of plain copies.
  [[nodiscard]] bool wants(Record<B>& record, const LinkHistory& in, const LinkHistory& out) {
    if (!history_.may_encode(record.bytes) || record.host.wanted || record.tensor.constant) [[likely]]
      return false;
    const std::optional<Link> known_in = in.link();
    const std::optional<Link> known_out = out.link();
    if (number_of(record) == not_encoded) return false;
    if (!known_in && !known_out) return true;
    return !history_.is_in_vain(record.alike, known_in ? *known_in : *known_out, known_out ? *known_out : *known_in);
  }
  /// Memory for the encoded value; null if there is no room.
  [[nodiscard]] std::unique_ptr<HostBlock<B>> acquire(const Record<B>& record, HostPool<B>& pool) const {
    if (!history_.may_encode(record.bytes)) return nullptr;
    const std::uint32_t element = record.element_bytes;
    return pool.acquire_encoded({record.bytes.value / element, element});
  }

 private:
  // What is more than the budget is refused below.
  static Bytes largest(const Options& options) {
    return largest_encodable(Bytes{std::min(options.codec_staging, options.device_budget).value / 2});
  }

  void check(const Options& options, Bytes alignment) const {
    if (options.file != nullptr || !options.neighbours.empty() || options.scrub) {
      throw UsageError("Options::codec_staging does not work together with `file`, `neighbours` and `scrub`");
    }
    if (history_.largest() < EncodingHistory::least) {
      throw UsageError("Options::codec_staging of " + std::to_string(options.codec_staging.value) +
                       " bytes is too little for any value: half of it has to hold an encoded value of " +
                       std::to_string(EncodingHistory::least.value) + " bytes");
    }
    if (options.device_budget < alignment || options.codec_staging > options.device_budget - alignment) {
      throw UsageError("Options::codec_staging of " + std::to_string(options.codec_staging.value) +
                       " bytes leaves nothing of the device budget of " + std::to_string(options.device_budget.value));
    }
  }

  EncodingHistory history_;
  std::optional<Encoder> encoder_;
  Bytes device_bytes_;
};

}  // namespace swapmm::runtime
