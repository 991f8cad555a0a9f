// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <swapmm/runtime/observe/log.hpp>
#include <swapmm/runtime/observe/program.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Returns whether the tensor can be bound to that role. A local is recognized by its position in the sequence: it may
/// be any tensor of its size that was created since the last iteration and that no operation has used.
template <Backend B>
[[nodiscard]] bool can_be(const Role& role, const Record<B>& record, std::uint64_t iteration) {
  if (role.kind == Role::Kind::handle) return role.serial == record.tensor.serial;
  return role.kind == Role::Kind::local && record.use.fresh && record.tensor.born == iteration &&
         role.bytes == record.bytes;
}

/// Returns whether the tensor has that role when a plan begins.
template <Backend B>
[[nodiscard]] bool can_begin_as(const Role& role, const Record<B>& record, std::uint64_t iteration) {
  if (role.carried == 0) return can_be(role, record, iteration);
  return record.tensor.born != 0 && record.tensor.born + role.carried == iteration &&
         record.tensor.appeared == role.appeared && role.bytes == record.bytes;
}

/// Returns whether `request` is that operation of the program. `fits(role, record, access)` decides for each tensor.
template <Backend B, class Fits>
[[nodiscard]] inline bool is_operation(const Program& program, std::uint32_t operation, const Request<B>& request,
                                       Fits&& fits) {
  const std::uint32_t first = program.first_access[operation];
  const std::uint32_t scratch = program.scratch_roles[operation];
  const std::size_t count = program.first_access[operation + 1] - first - (scratch == none ? 0 : 1);
  if (count != request.items.size() || program.is_replayable(operation) != request.replayable) return false;
  if ((scratch == none ? Bytes{} : program.roles[scratch].bytes) != request.scratch) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const RoleAccess& expected = program.accesses[first + i];
    if (expected.access != request.items[i].access) return false;
    if (!fits(expected.role, *request.items[i].record, expected.access)) return false;
  }
  return true;
}

/// Returns whether `program` begins with the uploads of the iteration so far, followed by the operation `request`.
template <Backend B>
[[nodiscard]] bool begins_with(const Program& program, const IterationLog& log, const Request<B>& request,
                               Store<B>& store) {
  std::size_t at = 0;
  const auto next = [&] {
    while (program.events[at].what == Event::What::download) ++at;
    return program.events[at++];
  };
  for (const LogEvent& event : log.events) {
    if (event.what != LogEvent::What::upload) continue;
    const Event expected = next();
    if (expected.what != Event::What::upload) return false;
    const LogTensor& uploaded = log.tensors[event.index];
    Record<B>& record = store.records[uploaded.record];
    if (!TensorKey<B>{&record, uploaded.serial}.exists()) return false;
    if (!can_be(program.roles[expected.index], record, store.iteration)) return false;
  }
  const Event expected = next();
  return expected.what == Event::What::operation &&
         is_operation(program, expected.index, request, [&](std::uint32_t role, const Record<B>& record, Access) {
           return can_begin_as(program.roles[role], record, store.iteration);
         });
}

}  // namespace swapmm::runtime
