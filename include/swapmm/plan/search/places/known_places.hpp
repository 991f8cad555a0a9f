// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// The places of the stays of a plan, for the packing of a similar plan. The stays of a tensor are identified by
/// approximately the gap in which they begin.
class KnownPlaces {
 public:
  /// One offset per stay, for pack_towards(); empty if nothing is known.
  [[nodiscard]] std::vector<Bytes> of(const std::vector<Stay>& stays) const;
  void remember(const std::vector<Stay>& stays, const std::vector<Bytes>& offsets);

 private:
  std::multimap<TensorId, std::pair<std::uint32_t, Bytes>> places_;  ///< gap of arrival, and offset
};

}  // namespace swapmm::planning
