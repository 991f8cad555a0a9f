// SPDX-License-Identifier: Apache-2.0
#include "control.hpp"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/CFG.h>

namespace swapmm::kernel_facts {

bool ControlFlow::branch(const llvm::BasicBlock& block, Dependence dependence) {
  Dependence& known = branches_[&block];
  if ((known | dependence) == known) return false;
  known |= dependence;
  const auto* const node = after_.getNode(&block);
  const llvm::BasicBlock* const meeting =
      node == nullptr || node->getIDom() == nullptr ? nullptr : node->getIDom()->getBlock();
  if (meeting != nullptr) entered_[meeting] |= dependence;
  llvm::SmallPtrSet<const llvm::BasicBlock*, 32> seen;
  llvm::SmallVector<const llvm::BasicBlock*, 32> waiting;
  const auto visit = [&](const llvm::BasicBlock* next) {
    if (next != meeting && seen.insert(next).second) waiting.push_back(next);
  };
  for (const llvm::BasicBlock* const next : llvm::successors(&block)) visit(next);
  while (!waiting.empty()) {
    const llvm::BasicBlock* const here = waiting.pop_back_val();
    runs_[here] |= dependence;
    for (const llvm::BasicBlock* const next : llvm::successors(here)) visit(next);
  }
  return true;
}

}  // namespace swapmm::kernel_facts
