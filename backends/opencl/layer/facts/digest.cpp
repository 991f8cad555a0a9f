// SPDX-License-Identifier: Apache-2.0
#include "digest.hpp"

#include <openssl/evp.h>

#include <array>

namespace swapmm::opencl::layer::facts {

std::string digest_of(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), bytes.data(), &size, EVP_sha256(), nullptr) != 1) return {};
  std::string digits;
  for (unsigned int i = 0; i < size; ++i) {
    digits += "0123456789abcdef"[bytes[i] >> 4U];
    digits += "0123456789abcdef"[bytes[i] & 0xFU];
  }
  return digits;
}

}  // namespace swapmm::opencl::layer::facts
