// SPDX-License-Identifier: Apache-2.0
#include "objects.hpp"

#include <llvm/IR/Function.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

namespace swapmm::kernel_facts {
namespace {

enum AddressSpace : unsigned { private_space = 0, global_space = 1, constant_space = 2, local_space = 3 };

}  // namespace

bool is_opaque(const llvm::Value& pointer) {
  const auto* const type = llvm::dyn_cast<llvm::PointerType>(pointer.getType());
  if (type == nullptr || type->isOpaque()) return false;
  const auto* const pointee = llvm::dyn_cast<llvm::StructType>(type->getPointerElementType());
  return pointee != nullptr && pointee->isOpaque() && pointee->hasName() && pointee->getName().startswith("opencl.");
}

bool Objects::collect(const llvm::Function& kernel) {
  using Kind = MemoryObject::Kind;
  all_.assign(1, {});
  for (const llvm::Argument& argument : kernel.args()) {
    if (!argument.getType()->isPtrOrPtrVectorTy() || is_opaque(argument)) continue;
    switch (argument.getType()->getPointerAddressSpace()) {
      case global_space:
      case constant_space: add(argument, {Kind::buffer, false, false, on_data, on_nothing}); break;
      case local_space: add(argument, {Kind::scratch}); break;
      case private_space:
        if (!argument.hasByValAttr()) return false;
        add(argument, {Kind::scratch});  // a structure of scalars
        break;
      default: return false;
    }
  }
  for (const llvm::GlobalVariable& variable : kernel.getParent()->globals()) {
    if (variable.getAddressSpace() == local_space) {
      add(variable, {Kind::scratch});
    } else if (variable.isConstant() && variable.hasInitializer()) {
      add(variable, {Kind::table});
    } else {
      add(variable, {Kind::variable, false, false, on_data, on_nothing});
    }
  }
  for (const llvm::Instruction& instruction : llvm::instructions(kernel)) {
    if (llvm::isa<llvm::AllocaInst>(instruction)) add(instruction, {Kind::scratch});
  }
  return true;
}

}  // namespace swapmm::kernel_facts
