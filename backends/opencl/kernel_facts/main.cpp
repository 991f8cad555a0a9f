// SPDX-License-Identifier: Apache-2.0
// Describes what the kernels of an OpenCL program read and write. The layer for unmodified programs starts it: LLVM
// must not be in the program's own process, where the driver has an LLVM of another version.
//
// Standard input: a program and the device that it is built for (request.hpp). Standard output: the line
// "swapmm-kernel-facts VERSION", a line "kernel NAME pure|effects LETTERS" for each kernel (analysis.hpp), and "end".
// Or, in place of kernels, the line "unknown REASON".

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <iterator>
#include <string>

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBuffer.h>

#include "analysis.hpp"
#include "compile.hpp"
#include "optimize.hpp"
#include "request.hpp"
#include "source_rules.hpp"

namespace swapmm::kernel_facts {
namespace {

// Neither this process nor its compiler runs for long, or takes the processor from the program.
void limit_process() {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit seconds{60, 60};
  (void)setrlimit(RLIMIT_CPU, &seconds);
  const rlimit bytes{rlim_t{4} << 30U, rlim_t{4} << 30U};
  (void)setrlimit(RLIMIT_AS, &bytes);
  const rlimit no_core{0, 0};
  (void)setrlimit(RLIMIT_CORE, &no_core);
  (void)nice(5);
}

constexpr std::size_t most_instructions = 200000;

bool describe_program(const Request& request, std::string& out, std::string& reason) {
  BuildOptions options;
  if (!read_options(request, options, reason) || !same_for_every_compiler(request, options, reason)) return false;
  const std::string bitcode = compile(request, options.compiler, reason);
  if (bitcode.empty()) return false;
  llvm::LLVMContext context;
  auto module = llvm::parseBitcodeFile(llvm::MemoryBufferRef(bitcode, "program"), context);
  if (!module) {
    llvm::consumeError(module.takeError());
    reason = "clang and LLVM are of different versions";
    return false;
  }
  optimize(**module);
  for (llvm::Function& function : **module) {
    if (function.getCallingConv() != llvm::CallingConv::SPIR_KERNEL || function.isDeclaration()) continue;
    const llvm::MDNode* const arguments = function.getMetadata("kernel_arg_addr_space");
    const bool complete = arguments != nullptr && arguments->getNumOperands() == function.arg_size();
    if (!complete || function.getInstructionCount() > most_instructions) continue;
    const KernelFacts facts = describe(function, !request.part);
    out += "kernel " + function.getName().str() + (facts.effects ? " effects " : " pure ") +
           (facts.arguments.empty() ? "." : facts.arguments) + "\n";
  }
  return true;
}

int run() {
  limit_process();
  std::ios::sync_with_stdio(false);
  const std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  Request request;
  if (!read_request(text, request)) {
    std::cerr << "swapmm-kernel-facts: the layer for OpenCL programs starts this program, and gives it their sources\n";
    return 2;
  }
  std::string out;
  std::string reason;
  if (!describe_program(request, out, reason)) {
    if (reason == no_compiler) return 1;  // of this machine, not of the program: it must not be remembered
    for (char& c : reason) c = c == '\n' || c == '\r' ? ' ' : c;
    out = "unknown " + reason + "\n";
  }
  std::cout << first_line << out << "end\n" << std::flush;
  return std::cout ? 0 : 1;
}

}  // namespace
}  // namespace swapmm::kernel_facts

int main() { return swapmm::kernel_facts::run(); }
