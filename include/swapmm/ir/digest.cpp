// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/trace.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <stdexcept>

#include <openssl/evp.h>

namespace swapmm {
namespace {

/// SHA-256 of a text that is added in pieces. libcrypto fails only if the process runs out of memory, or if libcrypto
/// was set up without SHA-256. Neither is a property of the trace, so both are exceptions.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    if (context_ == nullptr) throw std::bad_alloc();
    expect(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
  }

  void add(std::string_view text) { expect(EVP_DigestUpdate(context_.get(), text.data(), text.size())); }

  std::string hexadecimal() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned int size = 0;
    expect(EVP_DigestFinal_ex(context_.get(), bytes.data(), &size));
    std::string text;
    for (std::size_t i = 0; i < size; ++i) {
      static constexpr std::string_view digits = "0123456789abcdef";
      text += digits[bytes[i] >> 4U];
      text += digits[bytes[i] & 0xFU];
    }
    return text;
  }

 private:
  static void expect(int succeeded) {
    if (succeeded != 1) throw std::runtime_error("libcrypto cannot compute SHA-256");
  }

  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

/// Lists are sets: two recordings of one program may have them in different order.
void append_ascending(std::string& line, std::vector<TensorId> ids) {
  std::sort(ids.begin(), ids.end());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) line += ',';
    line += std::to_string(index(ids[i]));
  }
}

}  // namespace

std::string digest(const Trace& trace) {
  Sha256 hash;
  std::string line;
  for (const TraceTensor& tensor : trace.tensors) {
    line = "T " + std::to_string(tensor.bytes.value) + ' ' + std::string(to_string(tensor.kind)) + '\n';
    hash.add(line);
  }
  for (const TraceOperation& operation : trace.operations) {
    line = "O r";
    append_ascending(line, operation.reads);
    line += " w";
    append_ascending(line, operation.writes);
    line += " u";
    append_ascending(line, operation.updates);
    line += '\n';
    hash.add(line);
  }
  return hash.hexadecimal();
}

}  // namespace swapmm
