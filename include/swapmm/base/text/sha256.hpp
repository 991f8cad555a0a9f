// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace swapmm::text {

/// SHA-256 of a text that is added in pieces. libcrypto fails only if the process runs out of memory, or if libcrypto
/// was set up without SHA-256. Neither is a property of the text, so both are exceptions.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view text);
  /// The 32 bytes. Nothing may be added after that.
  [[nodiscard]] std::string result();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

[[nodiscard]] std::string sha256(std::string_view text);

/// Bytes as lower-case hexadecimal digits.
[[nodiscard]] std::string hexadecimal(std::string_view bytes);

}  // namespace swapmm::text
