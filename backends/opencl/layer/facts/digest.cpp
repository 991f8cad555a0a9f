// SPDX-License-Identifier: Apache-2.0
#include "digest.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <mutex>

namespace swapmm::opencl::layer::facts {
namespace {

/// OpenSSL frees what it needs when the process ends, and threads of the layer go on until then.
struct Ending {
  std::mutex mutex;
  bool ended = false;
  bool is_watched = false;
  std::uint64_t without = 0;  // texts that got no digest
};

Ending& ending() {
  static Ending& all = *new Ending;  // never destroyed
  return all;
}

void end() {
  const std::lock_guard lock(ending().mutex);
  ending().ended = true;
}

}  // namespace

std::string digest_of(std::string_view text) {
  const std::lock_guard lock(ending().mutex);
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  if (!ending().is_watched && !ending().ended) {
    // Behind OpenSSL's own handler, so that it is called before that one.
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
    ending().is_watched = std::atexit(end) == 0;
  }
  if (ending().ended || EVP_Digest(text.data(), text.size(), bytes.data(), &size, EVP_sha256(), nullptr) != 1) {
    return "none-" + std::to_string(++ending().without);
  }
  std::string digits;
  for (unsigned int i = 0; i < size; ++i) {
    digits += "0123456789abcdef"[bytes[i] >> 4U];
    digits += "0123456789abcdef"[bytes[i] & 0xFU];
  }
  return digits;
}

}  // namespace swapmm::opencl::layer::facts
