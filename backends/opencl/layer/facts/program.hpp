// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "kernel_facts.hpp"

namespace swapmm::opencl::layer::facts {

/// A source with the options of a build and a device: one for all programs of the process that are the same in this.
/// Never destroyed.
class Program {
 public:
  /// The one for this text (request.hpp).
  [[nodiscard]] static Program& of(std::string request);
  /// The one whose digest is known from an earlier run; its text comes from the cache. Null if it is not there.
  [[nodiscard]] static Program* with_digest(const std::string& digest);

  [[nodiscard]] const std::string& digest() const { return digest_; }

  /// What is known of its kernels; null if nothing is, or not yet. The first call looks in the cache, and if that does
  /// not know it asks for an analysis, which goes on in the background: programs that fit into the budget never ask.
  /// With SWAPMM_ANALYSIS=wait the call waits for it.
  [[nodiscard]] const ProgramFacts* facts();
  /// The same, and waits for the analysis in any case: for at most SWAPMM_HELPER_SECONDS.
  [[nodiscard]] const ProgramFacts* facts_waited_for();
  /// False as long as facts() may tell more than it did.
  [[nodiscard]] bool is_settled() const {
    const State state = state_.load(std::memory_order_acquire);
    return state == State::known || state == State::hopeless;
  }

  /// Keeps the text in the cache, for a run that has only the binary.
  void keep_request();

 private:
  enum class State : std::uint8_t { not_asked, asked, known, hopeless };
  Program(std::string digest, std::string request) : digest_(std::move(digest)), request_(std::move(request)) {}
  void ask();
  void settle(const ProgramFacts* facts);
  void analyse();

  std::string digest_;
  std::string request_;
  std::atomic<State> state_{State::not_asked};
  const ProgramFacts* facts_ = nullptr;
  std::atomic<bool> kept_{false};
};

}  // namespace swapmm::opencl::layer::facts
