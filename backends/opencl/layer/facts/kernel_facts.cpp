// SPDX-License-Identifier: Apache-2.0
#include "kernel_facts.hpp"

#include <sstream>

namespace swapmm::opencl::layer::facts {

std::optional<ProgramFacts> read_facts(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string line;
  if (!std::getline(in, line) || line != first_line) return std::nullopt;
  ProgramFacts facts;
  while (std::getline(in, line)) {
    if (line == "end") return facts;
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "unknown") continue;
    std::string name;
    std::string effects;
    KernelFacts kernel;
    if (word != "kernel" || !(words >> name >> effects >> kernel.arguments)) return std::nullopt;
    if (kernel.arguments == ".") kernel.arguments.clear();
    if (kernel.arguments.find_first_not_of("sv-ruwWL") != std::string::npos) return std::nullopt;
    kernel.effects = effects != "pure";
    facts[name] = std::move(kernel);
  }
  return std::nullopt;
}

}  // namespace swapmm::opencl::layer::facts
