// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/validation/order.hpp>
#include <swapmm/plan/v2/validation/parts.hpp>

namespace swapmm::v2::validation {

/// Values of a part are numbered. A number counts from the newest value at the start of an iteration, which is 0.
using ValueNumber = std::int64_t;

/// Something that happens to a part in an iteration.
struct PartEvent {
  enum class What : std::uint8_t {
    access,     ///< of an operation
    host_read,  ///< at the end of an operation, before the host gives anything
    given,      ///< the host gives the next value, at the end of an operation
    command,    ///< of the plan; of kind run if it runs an operation again
  };
  std::uint32_t node = 0;  ///< of the operation or command
  What what = What::access;
  Access access = Access::read;  ///< of the operation that runs, maybe again
  /// Reads, updates and host reads: the number of the value that is needed. Others: that of the value before.
  ValueNumber number = 0;
};

/// The events of each part, in an order that agrees with every execution if all that must have an order have one.
class PartEvents {
 public:
  PartEvents(const Trace& trace, const Plan& plan, const Parts& parts, const Order& order);

  [[nodiscard]] std::span<const PartEvent> events(std::size_t part) const {
    return {events_.data() + first_[part], first_[part + 1] - first_[part]};
  }
  /// The number of values that begin in an iteration.
  [[nodiscard]] ValueNumber values(std::size_t part) const { return values_[part]; }

 private:
  template <class Visit>
  void for_each_event(const Trace& trace, const Plan& plan, const Parts& parts, Visit&& visit);

  std::vector<std::size_t> first_;
  std::vector<PartEvent> events_;
  std::vector<ValueNumber> values_;
};

}  // namespace swapmm::v2::validation
