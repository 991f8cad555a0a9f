// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "../facts/kernel_facts.hpp"
#include "launch.hpp"

namespace swapmm::opencl::layer::access {

/// What a launch does with its arguments.
struct Decision {
  std::vector<Access> accesses;  ///< for each argument; of those that are no buffers it means nothing
  std::uint64_t to_measure =
      0;    ///< bits of the arguments that may be written whole; 0: the launch need not be measured
  Key key;  ///< of the launch, if it is to be measured
};

/// A kernel whose facts are known, and what is known of its launches. One for all kernels of the process with the same
/// source, options, name and device. Never destroyed.
class KnownKernel {
 public:
  /// `device`: name of the device with its driver.
  [[nodiscard]] static KnownKernel& of(const std::string& program_digest, const std::string& name,
                                       const std::string& device, const facts::KernelFacts& facts);

  [[nodiscard]] const facts::KernelFacts& facts() const { return facts_; }

  /// The arguments must be as many as the facts tell of. `may_measure`: measuring this launch is worth its time. A
  /// launch is measured when it comes for the second time. Without `prove`, nothing counts as written whole.
  [[nodiscard]] Decision decide(std::span<const Bound> arguments, const Sizes& sizes, bool prove, bool may_measure);

  /// Remembers which arguments such launches overwrite whole.
  void measured(const Key& key, std::uint64_t whole);
  /// Remembers that such launches could not be measured.
  void not_measured(const Key& key);

 private:
  struct Known {
    bool measured = false;
    std::uint8_t failures = 0;
    std::uint64_t whole = 0;
  };
  KnownKernel(std::string file, facts::KernelFacts facts);
  [[nodiscard]] std::uint64_t candidates(std::span<const Bound> arguments, const Sizes& sizes) const;
  [[nodiscard]] bool measurable(std::span<const Bound> arguments) const;
  void read_cache();
  void write_cache();

  std::string file_;
  facts::KernelFacts facts_;
  std::mutex mutex_;
  std::unordered_map<Key, Known, KeyHash> launches_;
};

}  // namespace swapmm::opencl::layer::access
