// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <swapmm/backend/backend.hpp>
#include <swapmm/runtime/observe/log.hpp>
#include <swapmm/runtime/values/record.hpp>

namespace swapmm::runtime {

/// Makes the entry of a tensor that appears for the first time in the log of `iteration`, as entry number `index`.
template <Backend B>
[[nodiscard]] LogTensor log_tensor(Record<B>& record, std::uint64_t iteration, std::uint32_t index, bool by_producer) {
  LogTensor tensor{.serial = record.tensor.serial,
                   .record = record.id,
                   .bytes = record.bytes,
                   .name = record.name,
                   .lifetime = record.tensor.lifetime,
                   .created_inside = record.tensor.born == iteration};
  if (!by_producer) return tensor;
  if (tensor.created_inside) record.tensor.appeared = index;
  if (record.tensor.born != 0 && iteration - record.tensor.born <= Producer::most_age) {
    tensor.producer = {static_cast<std::uint32_t>(iteration - record.tensor.born), record.tensor.appeared};
  }
  return tensor;
}

}  // namespace swapmm::runtime
