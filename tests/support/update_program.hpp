// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include <swapmm/base/ids.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/observe/program.hpp>
#include <swapmm/runtime/values/none.hpp>

namespace swapmm::test {

/// n operations, each of which takes that long and updates one tensor of 64 bytes: operation i tensor i.
inline runtime::Program updates_of(std::size_t n, std::chrono::nanoseconds duration = {}) {
  using namespace runtime;
  Program program;
  for (std::size_t i = 0; i < n; ++i) {
    const auto id = static_cast<std::uint32_t>(i);
    program.trace.tensors.push_back({"t" + std::to_string(i), Bytes{64}, TensorKind::persistent, 0});
    TraceOperation operation;
    operation.updates = {id_at<TensorId>(i)};
    operation.duration = duration;
    program.trace.operations.push_back(operation);
    program.roles.push_back({Role::Kind::handle, id, i + 1, Bytes{64}, false});
    program.first_access.push_back(id);
    program.accesses.push_back({id, Access::update});
    program.scratch_roles.push_back(none);
    program.events.push_back({Event::What::operation, id});
  }
  program.first_access.push_back(static_cast<std::uint32_t>(n));
  program.events.push_back({Event::What::end_of_iteration, 0});
  return program;
}

}  // namespace swapmm::test
