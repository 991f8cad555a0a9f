// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/ways.hpp>

namespace swapmm::planning {

/// A trace in which pieces are tensors of their own. It has no ranges, and no operation in pieces.
struct DividedTrace {
  Trace trace;
  std::vector<TensorPart> parts;  ///< per tensor: what it is of the original
};

/// Makes each piece a tensor. An access to a part of a tensor that is not divided counts as one to all of it: a write
/// becomes an update, if the tensor has a value. A Problem if a division is not possible: every operation that accesses
/// such a tensor works in pieces, and accesses whole pieces; the tensor is not encoded on its way; and a transient's
/// pieces are written before they are read. Divided tensors lose their forms. Linear in the accesses to pieces.
[[nodiscard]] Result<DividedTrace> with_pieces(const Trace& trace, std::span<const TensorPieces> divisions);

/// How tensors can be divided: where ranges of accesses begin and end, and so that no piece has much more than a
/// 24th of the budget. Tensors with forms stay whole.
[[nodiscard]] std::vector<TensorPieces> possible_pieces(const Trace& trace, const Machine& machine);

/// Those with which every operation's bundle fits. Pieces that begin at other places than multiples of the alignment
/// take more room than the whole tensor. Where a bundle does not fit because of that, the divisions that take most are
/// left out. Nearly linear in the accesses.
[[nodiscard]] std::vector<TensorPieces> pieces_that_fit(const Trace& trace, const Machine& machine,
                                                        std::vector<TensorPieces> divisions);

}  // namespace swapmm::planning
