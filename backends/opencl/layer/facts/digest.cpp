// SPDX-License-Identifier: Apache-2.0
#include "digest.hpp"

#include <openssl/crypto.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <mutex>

#include <swapmm/base/text/sha256.hpp>

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
  if (!ending().is_watched && !ending().ended) {
    // Behind OpenSSL's own handler, so that it is called before that one.
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
    ending().is_watched = std::atexit(end) == 0;
  }
  try {
    if (!ending().ended) return swapmm::text::hexadecimal(swapmm::text::sha256(text));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): see below
  }
  return "none-" + std::to_string(++ending().without);
}

}  // namespace swapmm::opencl::layer::facts
