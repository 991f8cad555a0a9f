// SPDX-License-Identifier: Apache-2.0
// swapmm check: is this plan valid for this trace?
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <swapmm/answers/explanation.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/validate.hpp>

#include "command_line.hpp"
#include "files.hpp"
#include "output.hpp"
#include "printable.hpp"

namespace swapmm::cli {
namespace {

struct CheckOptions {
  CommonOptions common;
  std::string trace;
  std::string plan;
};

ExitCode run_check(const CheckOptions& options) {
  const Trace trace = load_any_trace(options.trace);
  const std::string text = load_text(options.plan);
  std::vector<Violation> violations;
  std::size_t commands = 0;
  if (is_version_2(text) || needs_version_2(trace)) {
    const v2::Plan plan = plan_v2_from(options.plan, text);
    violations = v2::validate(trace, plan);
    commands = plan.commands.size();
  } else {
    const Plan plan = plan_from(options.plan, text);
    violations = validate(trace, plan);
    commands = plan.commands.size();
  }
  if (options.common.json) {
    print_json(violations_as_json(violations));
  } else if (violations.empty()) {
    std::cout << "valid: " << commands << " commands for " << trace.operations.size()
              << " operations, right whatever operations and copies take\n";
  } else {
    for (const Violation& violation : violations) {
      std::cout << "rule " << violation.rule << " (" << name_of_rule(violation.rule)
                << "): " << printable(violation.message) << '\n';
    }
    std::cout << violations.size() << (violations.size() == 1 ? " violation" : " violations") << '\n';
  }
  return violations.empty() ? ExitCode::ok : ExitCode::no;
}

}  // namespace

void add_check(CLI::App& program, Chosen& chosen) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App& command = add_command(program, chosen, "check",
                                  "Whether a plan is valid for a trace: every violation by rule", options, run_check);
  command.add_option("TRACE", options->trace, "A file of format swapmm-trace")->required()->type_name("");
  command.add_option("PLAN", options->plan, "A file of format swapmm-plan")->required()->type_name("");
  command.footer("Exit code 1 where there is a violation. It stops after 100 of them. Rules: docs/formats.md.\n");
}

}  // namespace swapmm::cli
