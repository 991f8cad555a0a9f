// SPDX-License-Identifier: Apache-2.0
// swapmm show LOG: the calls of a program.
#include "show_log.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include <swapmm/base/text/sha256.hpp>
#include <swapmm/formats/call_log/graph_dot.hpp>
#include <swapmm/ir/calls/program_graph.hpp>

#include "files.hpp"
#include "output.hpp"
#include "printable.hpp"

namespace swapmm::cli {
namespace {

using calls::Call;

std::string list(const std::vector<std::uint64_t>& values, const char* separator) {
  std::string text;
  for (const std::uint64_t value : values) text += (text.empty() ? "" : separator) + std::to_string(value);
  return text;
}

std::string objects(const std::vector<calls::Object>& values) { return list({values.begin(), values.end()}, ","); }

std::string operand_text(const calls::Operand& operand) {
  static constexpr std::array<std::string_view, 3> words = {"reads", "writes", "updates"};
  std::string text = std::string(words[static_cast<std::size_t>(operand.access)]) + " " +
                     std::to_string(operand.object) + "[" + std::to_string(operand.offset) + "," +
                     std::to_string(operand.offset + operand.bytes) + ")";
  if (operand.box) text += " in rows";
  return text;
}

std::string argument_text(const calls::Argument& argument) {
  std::string text = "argument " + std::to_string(argument.index) + " = ";
  switch (argument.type) {
    case calls::Argument::Type::object: return text + "object " + std::to_string(argument.object);
    case calls::Argument::Type::local: return text + std::to_string(argument.bytes) + " local bytes";
    case calls::Argument::Type::opaque: return text + "?";
    case calls::Argument::Type::value: break;
  }
  return text + "0x" + text::hexadecimal(std::string_view(argument.value).substr(0, 16));
}

/// What the arguments were, in words.
std::string details(const Call& call) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (call.object != 0) add(std::string(to_string(call.object_kind)) + " " + std::to_string(call.object));
  if (!call.objects.empty()) add("objects " + objects(call.objects));
  if (!call.name.empty()) add(call.name);
  if (call.kind == calls::CallKind::create && call.parent != 0) add("of " + std::to_string(call.parent));
  if (call.bytes != 0) add(std::to_string(call.bytes) + " bytes");
  if (!call.global.empty()) add(list(call.global, "x") + (call.local.empty() ? "" : " by " + list(call.local, "x")));
  if (call.argument) add(argument_text(*call.argument));
  for (const calls::Operand& operand : call.operands) add(operand_text(operand));
  if (call.host && !call.host->digest.empty()) {
    add(std::to_string(call.host->bytes) + " host bytes " + text::hexadecimal(call.host->digest).substr(0, 12));
  }
  if (!call.source_digest.empty()) add("source " + text::hexadecimal(call.source_digest).substr(0, 12));
  if (!call.waits.empty()) add("after events " + objects(call.waits));
  if (call.event != 0) add("event " + std::to_string(call.event));
  if (call.blocking) add("blocking");
  if (call.duration) add(std::to_string(call.duration->count()) + " ns");
  if (call.status != 0) add("error " + std::to_string(call.status));
  return text;
}

void print_calls(const calls::CallLog& log, const LogView& view) {
  const auto first = std::lower_bound(log.calls.begin(), log.calls.end(), view.from,
                                      [](const Call& call, std::uint64_t from) { return call.sequence < from; });
  const auto left = static_cast<std::uint64_t>(log.calls.end() - first);
  const auto end = first + static_cast<std::ptrdiff_t>(std::min(view.count, left));
  std::cout << "  call thread queue  function\n";
  for (auto call = first; call != end; ++call) {
    const auto column = [](std::string text, std::size_t width) {
      return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
    };
    std::cout << column(std::to_string(call->sequence), 6) << column(std::to_string(call->thread), 7)
              << column(call->queue == 0 ? "" : std::to_string(call->queue), 6) << "  " << printable(call->function)
              << "  " << printable(details(*call)) << '\n';
  }
  const auto more = static_cast<std::uint64_t>(log.calls.end() - end);
  if (more != 0) std::cout << "  " << more << " more calls; --from and --count show them\n";
}

json::object summary(const calls::CallLog& log, const calls::Run& run) {
  std::map<std::string_view, std::uint64_t> kinds;
  for (const Call& call : log.calls) ++kinds[to_string(call.kind)];
  json::object counts;
  for (const auto& [kind, count] : kinds) counts[kind] = count;
  json::object answer;
  answer["format"] = "swapmm-log";
  answer["process"] = log.process;
  answer["calls"] = log.calls.size();
  answer["ended"] = log.ended;
  answer["incomplete_bytes"] = log.incomplete_bytes;
  answer["has_content"] = log.has_content;
  answer["kinds"] = counts;
  answer["buffers"] = run.storages.size();
  answer["commands"] = run.operations.size();
  return answer;
}

}  // namespace

void show_log(const std::string& path, const LogView& view) {
  const calls::CallLog log = load_log(path, false);
  const calls::Run run = run_from(path, log);
  if (!view.dot.empty()) {
    std::ostringstream text;
    call_log::write_dot(text, log, run, make_program_graph(log, run), static_cast<std::size_t>(view.from),
                        static_cast<std::size_t>(view.count));
    save_text(view.dot, text.str());
  }
  if (view.json) {
    json::object answer = summary(log, run);
    if (!view.dot.empty()) answer["dot"] = json_name(view.dot);
    return print_json(answer);
  }
  if (view.dot.empty()) print_calls(log, view);
}

}  // namespace swapmm::cli
