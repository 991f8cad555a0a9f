// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <swapmm/backend/neighbour.hpp>
#include <swapmm/backend/testing/simulated/options.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm::simulated {

namespace detail {
/// What a neighbour and the memories on it share.
struct NeighbourState {
  bool lost = false;
  std::optional<CopySpeed> in;
  std::optional<CopySpeed> out;
  Bytes capacity;
  Bytes in_use;
  Bytes peak;
};
}  // namespace detail

/// Options for one simulated neighbour.
struct NeighbourOptions {
  Bytes bytes;                               ///< size of its memory
  Bytes alignment{16};                       ///< Neighbour::alignment()
  std::optional<Bytes> largest_allocation;   ///< none: all of it
  std::string name = "simulated neighbour";  ///< Neighbour::name()
  std::optional<CopySpeed> in;               ///< speed of copies from it; none: Options::neighbour_in
  std::optional<CopySpeed> out;              ///< speed of copies to it; none: Options::neighbour_out
};

/// A second device's memory. Any simulated device can use it. For one thread.
class SWAPMM_EXPORT Neighbour final : public swapmm::Neighbour {
 public:
  /// With these options.
  explicit Neighbour(NeighbourOptions options);
  ~Neighbour() override;

  /// @{
  /// See swapmm::Neighbour.
  [[nodiscard]] Bytes capacity() const override { return options_.bytes; }
  [[nodiscard]] Bytes alignment() const override { return options_.alignment; }
  [[nodiscard]] Bytes largest_allocation() const override {
    return options_.largest_allocation.value_or(options_.bytes);
  }
  [[nodiscard]] std::string name() const override { return options_.name; }
  /// @}

  /// From now on every copy to it and from it fails, also those that are queued.
  void lose() { state_->lost = true; }
  /// The bytes that are allocated there.
  [[nodiscard]] Bytes in_use() const { return state_->in_use; }
  /// Largest in_use() so far.
  [[nodiscard]] Bytes peak() const { return state_->peak; }

 private:
  friend class Backend;
  NeighbourOptions options_;
  std::shared_ptr<detail::NeighbourState> state_;
};

/// A neighbour with that much memory, for Options::neighbours.
[[nodiscard]] SWAPMM_EXPORT std::shared_ptr<Neighbour> neighbour(Bytes bytes);

}  // namespace swapmm::simulated
