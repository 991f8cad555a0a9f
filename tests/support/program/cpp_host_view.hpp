// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>

#include "support/program/host_view_model.hpp"
#include "support/program/model.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

/// Writes down what the runner did with host views (program/host_view.hpp). `call` prints a call that may have been
/// refused, and `refused` says whether it was.
class CppHostViews {
 public:
  using Call = std::function<void(const std::string& text)>;

  CppHostViews(const TestProgram& program, std::ostream& out) : program_(program), out_(out) {}

  void print_variables() const;
  /// `member`: what stands before the name of a member function of the part.
  void open(const Action& action, ModelTensor& tensor, const std::string& member, bool refused, const Call& call);
  void close(std::size_t slot, bool refused, const Call& call);
  void end(std::size_t slot);
  /// A look or a poke.
  void touch(const Action& action, ModelTensor& tensor, bool refused, const Call& call);
  void write_back(std::size_t slot, const Call& call) const;

  void exchange(std::size_t a, std::size_t b);
  void replaced(std::size_t slot, bool whole) { views_[slot].replaced(whole); }
  void outlives(std::size_t slot, const ModelTensor& tensor) { views_[slot].outlives(tensor.versions); }

 private:
  const TestProgram& program_;
  std::ostream& out_;
  std::array<ModelHostView, slot_count> views_{};
  std::array<bool, slot_count> open_{};
};

}  // namespace swapmm::test
