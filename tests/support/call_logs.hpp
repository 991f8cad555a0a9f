// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/ir/calls/call.hpp>

// Logs of programs that never ran.

namespace swapmm::test {

/// Appends calls to a log, one behind the other.
class LogMaker {
 public:
  calls::CallLog log;

  calls::Call& add(calls::CallKind kind, const std::string& function) {
    calls::Call call;
    call.sequence = log.calls.size();
    call.ended_before = call.sequence + 1;
    call.begin = std::chrono::nanoseconds{static_cast<std::int64_t>(1000 * call.sequence)};
    call.end = call.begin + std::chrono::nanoseconds{500};
    call.kind = kind;
    call.function = function;
    log.calls.push_back(call);
    return log.calls.back();
  }
  calls::Object make(calls::ObjectKind kind, calls::Object parent = 0, std::uint64_t flags = 0) {
    calls::Call& call = add(calls::CallKind::create, "create");
    call.object_kind = kind;
    call.object = ++last_;
    call.parent = parent;
    call.flags = flags;
    return last_;
  }
  calls::Object buffer(std::uint64_t bytes) {
    const calls::Object object = make(calls::ObjectKind::buffer);
    log.calls.back().bytes = bytes;
    return object;
  }
  calls::Object part(calls::Object buffer, std::uint64_t offset, std::uint64_t bytes) {
    const calls::Object object = make(calls::ObjectKind::part, buffer);
    log.calls.back().offset = offset;
    log.calls.back().bytes = bytes;
    return object;
  }
  void release(calls::Object object) { add(calls::CallKind::release, "release").object = object; }
  calls::Call& launch(const std::string& name, const std::vector<calls::Operand>& operands) {
    calls::Call& call = add(calls::CallKind::launch, "launch");
    call.name = name;
    call.operands = operands;
    return call;
  }
  calls::Call& write(calls::Object object, std::uint64_t offset, std::uint64_t bytes, std::uint64_t address = 64,
                     const std::string& digest = {}) {
    calls::Call& call = add(calls::CallKind::write, "write");
    call.operands.push_back(operand(object, Access::write, offset, bytes));
    call.host = calls::HostData{address, bytes, {}, digest, {}};
    return call;
  }
  calls::Call& read(calls::Object object, std::uint64_t offset, std::uint64_t bytes, std::uint64_t address = 4096,
                    const std::string& digest = {}) {
    calls::Call& call = add(calls::CallKind::read, "read");
    call.operands.push_back(operand(object, Access::read, offset, bytes));
    call.host = calls::HostData{address, bytes, {}, digest, {}};
    return call;
  }
  static calls::Operand operand(calls::Object object, Access access, std::uint64_t offset, std::uint64_t bytes) {
    calls::Operand made;
    made.object = object;
    made.access = access;
    made.offset = offset;
    made.bytes = bytes;
    return made;
  }

 private:
  calls::Object last_ = 0;
};

}  // namespace swapmm::test
