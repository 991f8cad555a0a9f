// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program on slices of divided tensors that begin and end anywhere in pieces. For any backend for which there is a
// run_affine() and a run_grow(): see numbers.hpp.

#include <cstddef>

#include <doctest/doctest.h>

#include <swapmm/swapmm.hpp>

#include "support/numbers.hpp"

namespace swapmm::test {

/// Runs it for some iterations, and compares with plain loops. The two tensors are larger than the budget.
template <Backend B>
void check_divided_loop(B backend, Form form, const SchedulerOptions& plans) {
  constexpr std::size_t entries = 42;
  constexpr std::size_t width = 95;  // 380 bytes: hardly any slice begins where a view can
  constexpr std::size_t in_a_piece = 4;
  constexpr std::size_t at_once = 3;
  const Bytes piece = round_up(Bytes{in_a_piece * width * sizeof(Number)}, backend.capabilities().alignment);
  const Bytes budget{6 * piece.value};  // of 22 pieces: an operation needs four, and two slices
  MemoryManager<B> manager(std::move(backend), {.device_budget = budget}, Scheduler(plans));
  auto from = manager.template divided<Number>({entries, width}, "from", {.entries = in_a_piece, .lifetime = kept});
  auto to = manager.template divided<Number>({entries, width}, "to", {.entries = in_a_piece, .lifetime = kept});
  CHECK(budget < from.bytes());
  Numbers from_model = numbers(entries * width, 1);
  Numbers to_model = numbers(entries * width, 2);
  from.upload(from_model);
  to.upload(to_model);
  for (Number i = 0; i < 8; ++i) {
    {
      const auto iteration = manager.iteration();
      for (std::size_t first = 0; first < entries; first += at_once) {
        run_affine(manager, form, "affine", from.slice(first, at_once), to.slice(first, at_once), i);
      }
      for (std::size_t first = 0; first < entries; first += at_once) {
        run_grow(manager, form, "grow", to.slice(first, at_once), from.slice(first, at_once));
      }
    }
    affine(from_model, to_model, i);
    grow(to_model, from_model);
    if (i % 3 == 2)
      CHECK(to.slice(5, 9).download() == Numbers(to_model.begin() + 5 * width, to_model.begin() + 14 * width));
  }
  CHECK(from.download() == from_model);
  CHECK(to.download() == to_model);
  CHECK(manager.report().iterations_followed > 0);
  CHECK(manager.report().device_peak <= budget);
}

}  // namespace swapmm::test
