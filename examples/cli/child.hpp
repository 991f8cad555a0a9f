// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <map>
#include <string>
#include <vector>

namespace swapmm::cli {

/// Variables that a child process gets beside those of this process, and in their place.
using Variables = std::map<std::string, std::string>;

/// Keeps back the signals that a child process is to get, until run_child() passes them on. To be made before other
/// threads are: they must not take the signals.
class HeldSignals {
 public:
  HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals();
  /// The signal mask that was before.
  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
};

/// Runs a program with its words (the first is its name) to its end. Signals that another process sends to this one go
/// on to the program; those of the terminal reach both anyway, and end the program, not this process. Returns the wait
/// status. Throws a Failure (wrong use) if the program cannot be started.
[[nodiscard]] int run_child(const std::string& file, const std::vector<std::string>& words, const Variables& more,
                            const HeldSignals& signals);

/// Ends this process as the wait status says that the child has ended: by the same signal, if it was one. Otherwise
/// returns the exit code.
[[nodiscard]] int end_like(int wait_status);

}  // namespace swapmm::cli
