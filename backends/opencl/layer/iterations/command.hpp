// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace swapmm::opencl::layer {

[[nodiscard]] inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 32U);
}

/// What the host does in a command.
enum class HostPart : std::uint8_t {
  none,
  reads,  ///< what the device computed
  gives,  ///< values to the device
};

/// What a command is, apart from its buffers.
struct Command {
  std::string_view name;     ///< for messages
  std::uint64_t detail = 0;  ///< tells commands of one name apart, but not their objects: sizes and the like
  HostPart host = HostPart::none;
};

/// A number for what a command does, the same for the same command on other buffers of these sizes.
template <class Parts>
[[nodiscard]] std::uint64_t token_of(const Command& command, const Parts& parts) {
  std::uint64_t token = mixed(std::hash<std::string_view>{}(command.name), command.detail);
  for (const auto& part : parts) token = mixed(token, part.root->facts().size);
  return token;
}

}  // namespace swapmm::opencl::layer
