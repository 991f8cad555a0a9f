// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of weights in the format safetensors.
#include <swapmm/file/weights.hpp>

#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <swapmm/backend/file_memory.hpp>

#include "fuzz/target.hpp"

using namespace swapmm;

namespace {

class Text final : public FileMemory {
 public:
  explicit Text(std::string_view text) : text_(text) {}
  [[nodiscard]] Bytes capacity() const override { return Bytes{}; }
  [[nodiscard]] Bytes size() const override { return Bytes{text_.size()}; }
  [[nodiscard]] Bytes alignment() const override { return Bytes{1}; }
  [[nodiscard]] std::string name() const override { return "a file"; }
  void reserve(Bytes) override { throw std::logic_error("reserve"); }
  void write(Bytes, std::span<const std::byte>) override { throw std::logic_error("write"); }
  void read(Bytes offset, std::span<std::byte> to) override {
    fuzz::expect(offset.value <= text_.size() && to.size() <= text_.size() - offset.value,
                 "only what is there is read");
    if (!to.empty()) std::memcpy(to.data(), text_.data() + offset.value, to.size());
  }

 private:
  std::string_view text_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Text file(fuzz::text_of(data, size));
  const Result<std::vector<file::Weight>> weights = file::read_safetensors(file);
  if (!weights.has_value()) {
    fuzz::expect_clear(weights.problem().message);
    return 0;
  }
  Bytes end;
  for (const file::Weight& weight : *weights) {
    fuzz::expect(weight.offset >= end, "tensors are apart, and in the order of their bytes", weight.name);
    end = weight.offset + weight.bytes;
    fuzz::expect(end.value <= size, "tensors lie within the file", weight.name);
  }
  return 0;
}
