// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/book/store_key.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <unordered_map>

#include <swapmm/base/text/sha256.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm::runtime {
namespace {

class KeyHash {
 public:
  void add(std::string_view word, std::initializer_list<std::uint64_t> numbers) {
    line_.assign(word);
    for (const std::uint64_t number : numbers) line_.append(1, ' ').append(std::to_string(number));
    line_ += '\n';
    hash_.add(line_);
  }
  // With its length, so that no name looks like the lines that follow.
  void add_text(std::string_view word, std::string_view text) {
    add(word, {text.size()});
    hash_.add(text);
  }
  [[nodiscard]] std::string result() { return text::hexadecimal(hash_.result()); }

 private:
  text::Sha256 hash_;
  std::string line_;
};

void add_machine(KeyHash& hash, const Machine& machine) {
  hash.add_text("device", machine.name);
  hash.add("machine", {machine.device_budget.value, machine.alignment.value, machine.max_allocation ? 1U : 0U,
                       machine.max_allocation.value_or(Bytes{}).value, static_cast<std::uint64_t>(machine.duplex)});
}

void add_roles(KeyHash& hash, const Program& program) {
  std::unordered_map<std::uint64_t, std::size_t> first;  // role by serial number
  for (std::size_t i = 0; i < program.roles.size(); ++i) {
    const Role& role = program.roles[i];
    const bool is_handle = role.kind == Role::Kind::handle;
    const std::size_t same = is_handle ? first.emplace(role.serial, i).first->second : i;
    hash.add("role", {static_cast<std::uint64_t>(role.kind), role.input ? 1U : 0U, same, role.carried,
                      program.trace.tensors[i].available_from});
  }
}

void add_replayable(KeyHash& hash, const Program& program, bool allows_replays) {
  hash.add("replays", {allows_replays ? 1U : 0U});
  for (std::size_t i = 0; i < program.replayable.size(); ++i) {
    if (program.replayable[i]) hash.add("replayable", {i});
  }
}

}  // namespace

std::string store_key(const Program& program, const Machine& machine, std::string_view planner, bool allows_replays) {
  KeyHash hash;
  hash.add_text("swapmm", SWAPMM_LIBRARY_VERSION);
  hash.add("plan", {2});  // the highest version of the format
  hash.add_text("planner", planner);
  add_machine(hash, machine);
  hash.add_text("trace", digest(program.trace));
  for (const HostRead& read : program.trace.host_reads) {
    hash.add("read", {index(read.tensor), index(read.after_operation)});
  }
  for (const LingeringValue& value : program.trace.lingering) {
    hash.add("lingers", {index(value.tensor), index(value.last_use), value.until});
  }
  hash.add("by_producer", {program.by_producer ? 1U : 0U});
  add_roles(hash, program);
  add_replayable(hash, program, allows_replays);
  for (const Event& event : program.events) hash.add("event", {static_cast<std::uint64_t>(event.what), event.index});
  for (const RoleAccess& access : program.accesses) {
    hash.add("access", {access.role, static_cast<std::uint64_t>(access.access)});
  }
  return hash.result();
}

}  // namespace swapmm::runtime
