// SPDX-License-Identifier: Apache-2.0
#include <swapmm/codec/zero_code.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <swapmm/base/error.hpp>

namespace swapmm {
namespace {

constexpr std::uint64_t word_elements = 32;
constexpr std::uint64_t most_block_bytes = detail::zero_block * 8;

template <class T>
T load(std::span<const std::byte> from, std::uint64_t at) {
  T value;
  std::memcpy(&value, from.data() + at, sizeof value);
  return value;
}
template <class T>
void store(std::span<std::byte> to, std::uint64_t at, const T& value) {
  std::memcpy(to.data() + at, &value, sizeof value);
}

/// Where the parts of a packed value begin.
struct Parts {
  explicit Parts(const ZeroElements& elements)
      : bitmap(sizeof(ZeroHeader) + 4 * zero_blocks(elements)),
        values(round_up(Bytes{bitmap + 4 * detail::pieces_of(elements.count, word_elements)},
                        Bytes{elements.element_bytes == 8 ? 8U : 4U})
                   .value) {}
  std::uint64_t table = sizeof(ZeroHeader);
  std::uint64_t bitmap;
  std::uint64_t values;
};

void require(std::span<const std::byte> memory, std::uint64_t least, const char* what) {
  if (memory.size() >= least) return;
  throw UsageError("the memory for " + std::string(what) + " has " + std::to_string(memory.size()) + " bytes, and " +
                   std::to_string(least) + " are needed");
}

void require_part(std::uint64_t all, Bytes offset, std::size_t size) {
  if (offset.value <= all && size <= all - offset.value) return;
  throw UsageError("bytes " + std::to_string(offset.value) + " to " + std::to_string(offset.value + size) +
                   " of a value of " + std::to_string(all) + " bytes");
}

bool is_zero(const std::byte* element, std::size_t size) {
  return std::all_of(element, element + size, [](std::byte b) { return b == std::byte{0}; });
}

std::uint64_t elements_of_block(const ZeroElements& elements, std::uint64_t block) {
  return std::min(detail::zero_block, elements.count - block * detail::zero_block);
}

/// Reads one encoded value, which may hold anything.
class Reader {
 public:
  Reader(const ZeroElements& elements, std::span<const std::byte> encoded)
      : elements_(elements), encoded_(encoded), parts_(elements) {
    if (encoded.size() < sizeof(ZeroHeader)) {
      status_ = ZeroStatus::truncated;
      return;
    }
    header_ = load<ZeroHeader>(encoded, 0);
    status_ = check();
  }

  [[nodiscard]] ZeroStatus status() const { return status_; }
  [[nodiscard]] bool is_raw() const { return header_.form == ZeroForm::raw; }

  /// The number of values before a block.
  [[nodiscard]] std::uint64_t values_before(std::uint64_t block) const {
    std::uint64_t sum = 0;
    for (std::uint64_t b = 0; b < block; ++b) sum += count_of(b);
    return sum;
  }
  [[nodiscard]] std::uint32_t count_of(std::uint64_t block) const {
    return load<std::uint32_t>(encoded_, parts_.table + 4 * block);
  }

  /// Decodes a block whose values begin with number `first`. Returns whether bitmap and table agree.
  bool decode(std::uint64_t block, std::uint64_t first, std::span<std::byte> to) const {
    const std::size_t size = elements_.element_bytes;
    const std::uint64_t count = elements_of_block(elements_, block);
    std::uint64_t next = first;
    for (std::uint64_t i = 0; i < count; i += word_elements) {
      const std::uint64_t word = (block * detail::zero_block + i) / word_elements;
      auto bits = load<std::uint32_t>(encoded_, parts_.bitmap + 4 * word);
      if (count - i < word_elements && bits >> (count - i) != 0) return false;
      for (; bits != 0; bits &= bits - 1) {
        if (next >= header_.nonzeros) return false;
        const std::uint64_t at = i + static_cast<std::uint64_t>(std::countr_zero(bits));
        std::memcpy(to.data() + at * size, encoded_.data() + parts_.values + next * size, size);
        ++next;
      }
    }
    return next - first == count_of(block);
  }

 private:
  [[nodiscard]] ZeroStatus check() const {
    const std::uint64_t size = elements_.element_bytes;
    const bool packed = header_.form == ZeroForm::packed;
    if (header_.magic != ZeroHeader::magic_number || (!packed && !is_raw()) || header_.elements != elements_.count ||
        header_.element_bytes != size || header_.block_elements != detail::zero_block || header_.reserved != 0) {
      return ZeroStatus::other_value;
    }
    if (header_.nonzeros > elements_.count || (packed && header_.nonzeros != counted())) {
      return ZeroStatus::inconsistent;
    }
    const std::uint64_t expected =
        packed ? parts_.values + header_.nonzeros * size : sizeof(ZeroHeader) + elements_.count * size;
    if (header_.bytes != expected) return ZeroStatus::inconsistent;
    if (header_.bytes > encoded_.size()) return ZeroStatus::truncated;
    return ZeroStatus::good;
  }

  /// The sum of the table, as far as there is memory.
  [[nodiscard]] std::uint64_t counted() const {
    const std::uint64_t there = (encoded_.size() - parts_.table) / 4;
    return values_before(std::min(there, zero_blocks(elements_)));
  }

  ZeroElements elements_;
  std::span<const std::byte> encoded_;
  Parts parts_;
  ZeroHeader header_;
  ZeroStatus status_ = ZeroStatus::good;
};

}  // namespace

Bytes zero_encode(const ZeroElements& elements, std::span<const std::byte> plain, std::span<std::byte> encoded) {
  const std::uint64_t raw = zero_worst_case(elements).value;
  const std::size_t size = elements.element_bytes;
  require(plain, elements.count * size, "the elements");
  require(encoded, raw, "the encoded value");
  const auto element = [&](std::uint64_t i) { return plain.data() + i * size; };

  ZeroHeader header;
  header.magic = ZeroHeader::magic_number;
  header.elements = elements.count;
  header.element_bytes = size;
  header.block_elements = detail::zero_block;
  for (std::uint64_t i = 0; i < elements.count; ++i) header.nonzeros += is_zero(element(i), size) ? 0U : 1U;
  header.bytes = zero_encoded_size(elements, header.nonzeros).value;
  header.form = header.bytes < raw ? ZeroForm::packed : ZeroForm::raw;
  store(encoded, 0, header);
  if (header.form == ZeroForm::raw) {
    if (elements.count != 0) std::memcpy(encoded.data() + sizeof header, plain.data(), elements.count * size);
    return Bytes{header.bytes};
  }
  const Parts parts(elements);
  std::uint64_t next = parts.values;
  std::memset(encoded.data() + parts.bitmap, 0, parts.values - parts.bitmap);
  for (std::uint64_t block = 0; block < zero_blocks(elements); ++block) {
    std::uint32_t nonzeros = 0;
    std::uint32_t bits = 0;
    const std::uint64_t first = block * detail::zero_block;
    const std::uint64_t count = elements_of_block(elements, block);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!is_zero(element(first + i), size)) {
        bits |= std::uint32_t{1} << (i % word_elements);
        std::memcpy(encoded.data() + next, element(first + i), size);
        next += size;
        ++nonzeros;
      }
      if (i % word_elements != word_elements - 1 && i + 1 != count) continue;
      store(encoded, parts.bitmap + 4 * ((first + i) / word_elements), bits);
      bits = 0;
    }
    store(encoded, parts.table + 4 * block, nonzeros);
  }
  return Bytes{header.bytes};
}

ZeroStatus zero_decode(const ZeroElements& elements, std::span<const std::byte> encoded, Bytes offset,
                       std::span<std::byte> to) {
  (void)zero_worst_case(elements);  // checks them
  const std::size_t size = elements.element_bytes;
  const std::uint64_t all = elements.count * size;
  require_part(all, offset, to.size());
  if (to.empty()) return ZeroStatus::good;
  std::memset(to.data(), 0, to.size());
  const Reader reader(elements, encoded);
  if (reader.status() != ZeroStatus::good) return reader.status();
  if (reader.is_raw()) {
    std::memcpy(to.data(), encoded.data() + sizeof(ZeroHeader) + offset.value, to.size());
    return ZeroStatus::good;
  }
  const std::uint64_t block_bytes = detail::zero_block * size;
  const std::uint64_t end = offset.value + to.size();
  std::uint64_t block = offset.value / block_bytes;
  std::uint64_t values = reader.values_before(block);
  ZeroStatus status = ZeroStatus::good;
  std::array<std::byte, most_block_bytes> decoded;
  for (; block * block_bytes < end; ++block) {
    const std::uint64_t begins = block * block_bytes;
    std::memset(decoded.data(), 0, block_bytes);
    if (!reader.decode(block, values, decoded)) status = ZeroStatus::inconsistent;
    values += reader.count_of(block);
    const std::uint64_t from = std::max(begins, offset.value);
    const std::uint64_t until = std::min(begins + block_bytes, end);
    std::memcpy(to.data() + (from - offset.value), decoded.data() + (from - begins), until - from);
  }
  return status;
}

ZeroStatus zero_rewrite(const ZeroElements& elements, std::span<std::byte> encoded, Bytes offset,
                        std::span<const std::byte> from) {
  (void)zero_worst_case(elements);
  const std::uint64_t all = elements.count * elements.element_bytes;
  if (offset.value == 0 && from.size() == all) {
    zero_encode(elements, from, encoded);
    return ZeroStatus::good;
  }
  require_part(all, offset, from.size());
  std::vector<std::byte> plain(static_cast<std::size_t>(all));
  const ZeroStatus status = zero_decode(elements, encoded, Bytes{}, plain);
  if (status != ZeroStatus::good) return status;
  std::copy(from.begin(), from.end(), plain.begin() + static_cast<std::ptrdiff_t>(offset.value));
  zero_encode(elements, plain, encoded);
  return ZeroStatus::good;
}

void detail::require_good(ZeroStatus status) {
  if (status == ZeroStatus::good) return;
  throw BackendError(BackendError::Kind::failed, 0,
                     "an encoded value in host memory cannot be read: its status is " +
                         std::to_string(static_cast<std::uint32_t>(status)));
}

}  // namespace swapmm
