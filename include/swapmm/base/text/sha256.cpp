// SPDX-License-Identifier: Apache-2.0
#include <swapmm/base/text/sha256.hpp>

#include <array>
#include <new>
#include <stdexcept>

#include <openssl/evp.h>

namespace swapmm::text {
namespace {

void expect(int succeeded) {
  if (succeeded != 1) throw std::runtime_error("libcrypto cannot compute SHA-256");
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
  if (context_ == nullptr) throw std::bad_alloc();
  expect(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::add(std::string_view text) { expect(EVP_DigestUpdate(context_.get(), text.data(), text.size())); }

std::string Sha256::result() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  expect(EVP_DigestFinal_ex(context_.get(), bytes.data(), &size));
  return {bytes.begin(), bytes.begin() + size};
}

std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.add(text);
  return hash.result();
}

std::string hexadecimal(std::string_view bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4U];
    text += digits[byte & 0xFU];
  }
  return text;
}

}  // namespace swapmm::text
