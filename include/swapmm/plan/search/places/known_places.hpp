// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// Where the stays of a plan lay, for the packing of a similar one: the stays of a tensor are told apart by the gap
/// they begin in, give or take.
class KnownPlaces {
 public:
  /// One per stay, as pack_towards() takes them; empty where nothing is known.
  [[nodiscard]] std::vector<Bytes> of(const std::vector<Stay>& stays) const;
  void remember(const std::vector<Stay>& stays, const std::vector<Bytes>& offsets);

 private:
  std::multimap<TensorId, std::pair<std::uint32_t, Bytes>> places_;  ///< gap of arrival, and offset
};

}  // namespace swapmm::planning
