// SPDX-License-Identifier: Apache-2.0
#include "analysis.hpp"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstVisitor.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

#include "builtins.hpp"
#include "control.hpp"
#include "objects.hpp"

namespace swapmm::kernel_facts {
namespace {

/// What is known of a value: where it may point to, and what it depends on.
struct State {
  llvm::SmallBitVector targets;
  Dependence dependence = on_nothing;

  bool add(const State& other) {
    const bool grows = other.targets.test(targets) || (dependence | other.dependence) != dependence;
    targets |= other.targets;
    dependence |= other.dependence;
    return grows;
  }
};

/// Follows pointers and dependences through a kernel until nothing new is found. Everything that is not understood
/// counts as the worst.
class Search : public llvm::InstVisitor<Search> {
 public:
  Search(llvm::Function& kernel, bool whole) : kernel_(kernel), whole_(whole), control_(kernel) {}

  /// False if the kernel has something that is not understood at all.
  bool run() {
    if (!objects_.collect(kernel_)) return false;
    const llvm::ReversePostOrderTraversal<llvm::Function*> order(&kernel_);
    do {
      changed_ = false;
      for (llvm::BasicBlock* const block : order) {
        for (llvm::Instruction& instruction : *block) visit(instruction);
      }
    } while (changed_ && !failed_);
    return !failed_;
  }

  [[nodiscard]] bool effects() const { return effects_; }

  char letter(const llvm::Argument& argument) {
    if (is_scalar(argument)) return (on_scalar(argument.getArgNo()) & places_of_buffers()) == 0 ? 'v' : 's';
    const std::size_t number = objects_.number(&argument);
    if (number == 0 || objects_[number].kind != MemoryObject::Kind::buffer) return 's';
    const MemoryObject& object = objects_[number];
    if (!object.written) return object.read ? 'r' : '-';
    if (object.read) return 'u';
    return (object.places & on_data) != 0 ? 'w' : (object.places & on_local_size) != 0 ? 'L' : 'W';
  }

  // ---- instructions

  void visitLoadInst(llvm::LoadInst& load) {
    const State from = state(load.getPointerOperand());
    State result = nothing();
    result.dependence = from.dependence | contents(from);
    if (load.getType()->isPtrOrPtrVectorTy()) point_anywhere(result);
    set(load, result);
  }

  void visitStoreInst(llvm::StoreInst& store) {
    const State value = state(store.getValueOperand());
    if (value.targets.any()) escape(value);
    write(state(store.getPointerOperand()), value.dependence, store);
  }

  void visitGetElementPtrInst(llvm::GetElementPtrInst& instruction) { pass(instruction); }
  void visitPHINode(llvm::PHINode& phi) {
    State result = together(phi);
    result.dependence |= control_.entered(*phi.getParent());
    set(phi, result);
  }
  void visitSelectInst(llvm::SelectInst& instruction) { pass(instruction); }
  void visitFreezeInst(llvm::FreezeInst& instruction) { pass(instruction); }
  void visitBitCastInst(llvm::BitCastInst& instruction) { pass(instruction); }
  void visitAddrSpaceCastInst(llvm::AddrSpaceCastInst& instruction) { pass(instruction); }
  void visitAllocaInst(llvm::AllocaInst& instruction) {
    State result = nothing();
    result.targets.set(static_cast<unsigned>(objects_.number(&instruction)));
    set(instruction, result);
  }

  // The bits of an address are the driver's choice.
  void visitPtrToIntInst(llvm::PtrToIntInst& instruction) {
    escape(state(instruction.getOperand(0)));
    set(instruction, unknown_value(instruction));
  }
  void visitIntToPtrInst(llvm::IntToPtrInst& instruction) { set(instruction, unknown_value(instruction)); }

  void visitICmpInst(llvm::ICmpInst& compare) {
    const llvm::Value* const left = compare.getOperand(0);
    const llvm::Value* const right = compare.getOperand(1);
    State result = nothing();
    const State a = state(left);
    const State b = state(right);
    result.dependence = a.dependence | b.dependence;
    if (left->getType()->isPtrOrPtrVectorTy()) {
      // Whether an argument is null is known for each launch; so are distances within a buffer.
      const bool with_null = llvm::isa<llvm::ConstantPointerNull>(left) || llvm::isa<llvm::ConstantPointerNull>(right);
      const bool within = a.targets == b.targets && a.targets.count() == 1;
      if ((!with_null && !within) || a.targets.test(0) || b.targets.test(0)) result.dependence |= on_data;
    }
    set(compare, result);
  }

  void visitAtomicRMWInst(llvm::AtomicRMWInst& instruction) { change(instruction.getPointerOperand(), instruction); }
  void visitAtomicCmpXchgInst(llvm::AtomicCmpXchgInst& instruction) {
    change(instruction.getPointerOperand(), instruction);
  }
  void visitFenceInst(llvm::FenceInst& /*fence*/) {}
  void visitReturnInst(llvm::ReturnInst& /*instruction*/) {}
  void visitUnreachableInst(llvm::UnreachableInst& /*instruction*/) {}

  void visitBranchInst(llvm::BranchInst& branch) {
    if (branch.isConditional()) depend(branch, state(branch.getCondition()).dependence);
  }
  void visitSwitchInst(llvm::SwitchInst& instruction) {
    depend(instruction, state(instruction.getCondition()).dependence);
  }

  void visitCallBase(llvm::CallBase& call) {
    const llvm::Function* const function = call.getCalledFunction();
    if (function == nullptr || call.isInlineAsm() || !function->isDeclaration() || !llvm::isa<llvm::CallInst>(call)) {
      failed_ = true;
    } else if (function->isIntrinsic()) {
      intrinsic(call, *function);
    } else {
      library(call, *function);
    }
  }

  // Everything else calculates, or is not understood.
  void visitInstruction(llvm::Instruction& instruction) {
    if (instruction.mayReadOrWriteMemory() || instruction.isTerminator()) {
      failed_ = true;
      return;
    }
    State result = together(instruction);
    if (result.targets.any()) {  // a pointer within a vector or structure
      escape(result);
      result = unknown_value(instruction);
    }
    set(instruction, result);
  }

 private:
  [[nodiscard]] static bool is_scalar(const llvm::Argument& argument) {
    return argument.getType()->isIntOrIntVectorTy() || argument.getType()->isFPOrFPVectorTy();
  }

  // What the places of stores to buffers depend on, those left out that depend on data.
  [[nodiscard]] Dependence places_of_buffers() {
    Dependence all = on_nothing;
    for (std::size_t i = 1; i < objects_.size(); ++i) {
      const MemoryObject& object = objects_[i];
      if (object.kind == MemoryObject::Kind::buffer && (object.places & on_data) == 0) all |= object.places;
    }
    return all;
  }

  // ---- states

  [[nodiscard]] State nothing() const {
    State state;
    state.targets.resize(static_cast<unsigned>(objects_.size()));
    return state;
  }

  static void point_anywhere(State& state) { state.targets.set(0); }

  [[nodiscard]] State unknown_value(const llvm::Value& value) const {
    State state = nothing();
    state.dependence = on_data;
    if (value.getType()->isPtrOrPtrVectorTy()) point_anywhere(state);
    return state;
  }

  State state(const llvm::Value* value) {
    if (const auto known = states_.find(value); known != states_.end()) return known->second;
    State result = nothing();
    if (const std::size_t number = objects_.number(value); number != 0) {
      result.targets.set(static_cast<unsigned>(number));
    } else if (const auto* const argument = llvm::dyn_cast<llvm::Argument>(value)) {
      if (is_scalar(*argument)) result.dependence = on_scalar(argument->getArgNo());
    } else if (const auto* const constant = llvm::dyn_cast<llvm::ConstantExpr>(value)) {
      for (const llvm::Use& operand : constant->operands()) result.add(state(operand.get()));
      const unsigned opcode = constant->getOpcode();
      const bool address = opcode == llvm::Instruction::GetElementPtr || opcode == llvm::Instruction::BitCast ||
                           opcode == llvm::Instruction::AddrSpaceCast || opcode == llvm::Instruction::Select;
      if (!address && result.targets.any()) {
        escape(result);
        result = unknown_value(*value);
      }
    } else if (const auto* const aggregate = llvm::dyn_cast<llvm::ConstantAggregate>(value)) {
      for (const llvm::Use& operand : aggregate->operands()) result.add(state(operand.get()));
    }
    return result;  // an instruction that was not met yet: what is known comes with the next round
  }

  State together(const llvm::Instruction& instruction) {
    State result = nothing();
    for (const llvm::Use& operand : instruction.operands()) {
      if (!llvm::isa<llvm::BasicBlock>(operand.get())) result.add(state(operand.get()));
    }
    return result;
  }

  void pass(const llvm::Instruction& instruction) { set(instruction, together(instruction)); }

  // A value of a block that runs because of data may be another one the next time that it is looked at: in a loop.
  void set(const llvm::Instruction& instruction, State result) {
    result.dependence |= control_.runs(*instruction.getParent());
    const auto [known, is_new] = states_.try_emplace(&instruction, nothing());
    if (known->second.add(result) || is_new) changed_ = true;
  }

  void depend(const llvm::Instruction& branch, Dependence dependence) {
    const llvm::BasicBlock& block = *branch.getParent();
    if (control_.branch(block, dependence | control_.runs(block))) changed_ = true;
  }

  // ---- memory

  template <class T>
  void raise(T& fact, T by) {
    const T before = fact;
    fact = static_cast<T>(fact | by);
    if (fact != before) changed_ = true;
  }

  template <class Visit>
  void each_target(const State& pointer, Visit&& visit_object) {
    if (pointer.targets.test(0)) {
      effects_ = true;
      for (std::size_t i = 1; i < objects_.size(); ++i) visit_object(objects_[i], true);
      return;
    }
    for (const unsigned number : pointer.targets.set_bits()) visit_object(objects_[number], false);
  }

  // Reads through a pointer; what the bytes depend on.
  Dependence contents(const State& pointer) {
    Dependence all = on_nothing;
    each_target(pointer, [&](MemoryObject& object, bool anywhere) {
      raise(object.read, true);
      all |= object.contents;
      if (anywhere) all |= on_data;
    });
    return all;
  }

  void write(const State& pointer, Dependence value, const llvm::Instruction& where) {
    const Dependence place = pointer.dependence | control_.runs(*where.getParent());
    each_target(pointer, [&](MemoryObject& object, bool anywhere) {
      raise(object.written, true);
      if (anywhere) raise(object.read, true);
      raise(object.places, anywhere ? on_data : place);
      raise(object.contents, anywhere ? on_data : static_cast<Dependence>(place | value));
      if (object.kind == MemoryObject::Kind::variable) effects_ = true;
    });
  }

  // Something else may read and write there.
  void escape(const State& pointer) {
    each_target(pointer, [&](MemoryObject& object, bool /*anywhere*/) {
      raise(object.read, true);
      raise(object.written, true);
      raise(object.places, on_data);
      raise(object.contents, on_data);
      if (object.kind == MemoryObject::Kind::variable) effects_ = true;
    });
  }

  void change(const llvm::Value* pointer, const llvm::Instruction& instruction) {
    const State there = state(pointer);
    (void)contents(there);
    write(there, on_data, instruction);
    set(instruction, unknown_value(instruction));
  }

  // ---- calls

  void intrinsic(llvm::CallBase& call, const llvm::Function& function) {
    if (auto* const set_bytes = llvm::dyn_cast<llvm::MemSetInst>(&call)) {
      State to = state(set_bytes->getDest());
      to.dependence |= state(set_bytes->getLength()).dependence;
      write(to, state(set_bytes->getValue()).dependence, call);
    } else if (auto* const copy = llvm::dyn_cast<llvm::MemTransferInst>(&call)) {
      transfer(call, copy->getDest(), copy->getSource(), state(copy->getLength()).dependence);
    } else if (call.isLifetimeStartOrEnd() || llvm::isa<llvm::DbgInfoIntrinsic>(call) || call.isDroppable() ||
               function.getIntrinsicID() == llvm::Intrinsic::experimental_noalias_scope_decl ||
               function.getIntrinsicID() == llvm::Intrinsic::sideeffect) {
      return;
    } else if (call.doesNotAccessMemory() && !has_pointers(call)) {
      set(call, together_arguments(call));
    } else {
      unknown_call(call);
    }
  }

  void transfer(llvm::CallBase& call, const llvm::Value* destination, const llvm::Value* source, Dependence amount) {
    State to = state(destination);
    const State from = state(source);
    to.dependence |= amount;
    write(to, static_cast<Dependence>(contents(from) | from.dependence | amount), call);
    // A copy of pointers: loads from there may give anything, which visitLoadInst() takes them for.
  }

  void library(llvm::CallBase& call, const llvm::Function& function) {
    switch (builtin(function.getName().str(), call.doesNotAccessMemory(), whole_)) {
      case Builtin::place: return set(call, together_arguments(call));
      case Builtin::group_place: {
        State result = together_arguments(call);
        result.dependence |= on_local_size;
        return set(call, result);
      }
      case Builtin::nothing: return;
      case Builtin::load: {
        const State from = state(call.getArgOperand(call.arg_size() - 1));
        State result = nothing();
        for (const llvm::Use& argument : call.args()) result.dependence |= state(argument.get()).dependence;
        result.dependence |= contents(from);
        return set(call, result);
      }
      case Builtin::store: {
        State to = state(call.getArgOperand(call.arg_size() - 1));
        const Dependence value = state(call.getArgOperand(0)).dependence;
        to.dependence |= state(call.getArgOperand(1)).dependence;
        return write(to, value, call);
      }
      case Builtin::copy: {
        Dependence amount = on_nothing;
        for (unsigned i = 2; i < call.arg_size(); ++i) amount |= state(call.getArgOperand(i)).dependence;
        transfer(call, call.getArgOperand(0), call.getArgOperand(1), amount);
        return set(call, nothing());
      }
      case Builtin::atomic: {
        for (unsigned i = 1; i < call.arg_size(); ++i) {
          if (const State other = state(call.getArgOperand(i)); other.targets.any()) escape(other);
        }
        return change(call.getArgOperand(0), call);
      }
      case Builtin::outputs: {
        const State given = together_arguments(call);
        escape(given);
        return set(call, unknown_value(call));
      }
      case Builtin::image_read: return set(call, unknown_value(call));
      case Builtin::image_write: effects_ = true; return;
      case Builtin::calculates:
        if (!has_pointers(call)) return set(call, together_arguments(call));
        break;
      case Builtin::unknown: break;
    }
    unknown_call(call);
  }

  [[nodiscard]] static bool has_pointers(const llvm::CallBase& call) {
    return call.getType()->isPtrOrPtrVectorTy() ||
           std::any_of(call.arg_begin(), call.arg_end(),
                       [](const llvm::Use& use) { return use->getType()->isPtrOrPtrVectorTy(); });
  }

  State together_arguments(const llvm::CallBase& call) {
    State result = nothing();
    for (const llvm::Use& argument : call.args()) result.add(state(argument.get()));
    return result;
  }

  void unknown_call(llvm::CallBase& call) {
    effects_ = true;
    const State given = together_arguments(call);
    if (given.targets.any()) escape(given);
    for (std::size_t i = 1; i < objects_.size(); ++i) {
      if (objects_[i].kind == MemoryObject::Kind::variable) raise(objects_[i].written, true);
    }
    set(call, unknown_value(call));
  }

  llvm::Function& kernel_;
  bool whole_;
  ControlFlow control_;
  Objects objects_;
  llvm::DenseMap<const llvm::Value*, State> states_;
  bool changed_ = false;
  bool failed_ = false;
  bool effects_ = false;
};

}  // namespace

KernelFacts describe(llvm::Function& kernel, bool whole) {
  Search search(kernel, whole);
  const bool understood = search.run();
  KernelFacts facts{{}, !understood || search.effects()};
  for (const llvm::Argument& argument : kernel.args()) {
    const bool pointer = argument.getType()->isPtrOrPtrVectorTy() && !is_opaque(argument);
    facts.arguments += understood ? search.letter(argument) : pointer ? 'u' : 's';
  }
  return facts;
}

}  // namespace swapmm::kernel_facts
