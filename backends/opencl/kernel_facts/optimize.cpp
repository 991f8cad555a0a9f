// SPDX-License-Identifier: Apache-2.0
#include "optimize.hpp"

#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>

namespace swapmm::kernel_facts {

void optimize(llvm::Module& module) {
  for (llvm::Function& function : module) {
    function.removeFnAttr(llvm::Attribute::NoInline);
    function.removeFnAttr(llvm::Attribute::OptimizeNone);
    if (function.isDeclaration()) continue;
    function.addFnAttr(llvm::Attribute::AlwaysInline);
    // A kernel that another one calls is a function there.
    for (llvm::User* const user : function.users()) {
      auto* const call = llvm::dyn_cast<llvm::CallBase>(user);
      if (call != nullptr && call->getCalledOperand() == &function) {
        call->removeFnAttr(llvm::Attribute::NoInline);
        call->setCallingConv(function.getCallingConv());
      }
    }
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopInterleaving = false;
  llvm::PassBuilder builder(nullptr, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass(true));
  passes.addPass(builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2));
  passes.run(module, modules);
}

}  // namespace swapmm::kernel_facts
