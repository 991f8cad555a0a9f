// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/PostDominators.h>

#include "objects.hpp"

namespace swapmm::kernel_facts {

/// Which blocks run, and how often, because of which conditions.
class ControlFlow {
 public:
  explicit ControlFlow(llvm::Function& kernel) : after_(kernel) {}

  /// A branch depends on that. All blocks between it and the place where its ways meet again for certain may run or
  /// not because of it, and loops there as often as it says. True if this is news.
  bool branch(const llvm::BasicBlock& block, Dependence dependence);

  /// Whether and how often a block runs.
  [[nodiscard]] Dependence runs(const llvm::BasicBlock& block) const { return runs_.lookup(&block); }
  /// Which way led to a block.
  [[nodiscard]] Dependence entered(const llvm::BasicBlock& block) const { return entered_.lookup(&block); }

 private:
  llvm::PostDominatorTree after_;
  llvm::DenseMap<const llvm::BasicBlock*, Dependence> branches_;
  llvm::DenseMap<const llvm::BasicBlock*, Dependence> runs_;
  llvm::DenseMap<const llvm::BasicBlock*, Dependence> entered_;
};

}  // namespace swapmm::kernel_facts
