// SPDX-License-Identifier: Apache-2.0
// The functions of OpenSSL that the core calls, on OpenSSL's SHA-256 alone. Its own ones look algorithms up by name, so
// that a static library brings all of them: 3.8 MB for one hash function.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <new>

#include <openssl/evp.h>
#include <openssl/sha.h>

struct evp_md_ctx_st {
  SHA256_CTX state;
};

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the names in OpenSSL's headers are short
extern "C" {

EVP_MD_CTX* EVP_MD_CTX_new(void) { return new (std::nothrow) evp_md_ctx_st; }
void EVP_MD_CTX_free(EVP_MD_CTX* context) { delete context; }
const EVP_MD* EVP_sha256(void) { return nullptr; }

int EVP_DigestInit_ex(EVP_MD_CTX* context, const EVP_MD* /*type*/, ENGINE* /*engine*/) {
  return SHA256_Init(&context->state);
}

int EVP_DigestUpdate(EVP_MD_CTX* context, const void* data, size_t size) {
  return SHA256_Update(&context->state, data, size);
}

int EVP_DigestFinal_ex(EVP_MD_CTX* context, unsigned char* digest, unsigned int* size) {
  if (size != nullptr) *size = SHA256_DIGEST_LENGTH;
  return SHA256_Final(digest, &context->state);
}

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
