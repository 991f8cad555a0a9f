// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stream buffers over files whose calls go wrong as those of real ones: short counts, errors, a full disk.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ios>
#include <optional>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <string_view>
#include <utility>

namespace swapmm::test {

/// What a stream buffer asks of its file. A read behind the last byte is one that nothing can be cut off from.
enum class FileCall : std::uint8_t { read, read_at_end, write, flush };

/// How such a call goes wrong.
enum class FileFault : std::uint8_t {
  error,   ///< EIO: nothing was done
  blind,   ///< done, and the call says EIO all the same
  part,    ///< one byte was moved: a short count, as after EINTR
  cut,     ///< a read: the file ends here
  full,    ///< ENOSPC: half of it was taken, and nothing is from then on
  throws,  ///< the stream buffer throws, which a stream turns into badbit
};

/// Asked before each call.
using FileGate = std::function<std::optional<FileFault>(FileCall)>;

/// Gives `text`, at most `piece` bytes at a time.
class FaultyInput : public std::streambuf {
 public:
  FaultyInput(std::string text, FileGate gate, std::size_t piece = 64)
      : text_(std::move(text)), gate_(std::move(gate)), piece_(piece) {}

 protected:
  int_type underflow() override {
    const auto position = static_cast<std::size_t>(gptr() == nullptr ? 0 : gptr() - text_.data());
    const auto fault = gate_(position < text_.size() ? FileCall::read : FileCall::read_at_end);
    // As std::filebuf says it.
    if (fault == FileFault::error) throw std::ios_base::failure("injected read fault");
    if (fault == FileFault::throws) throw std::runtime_error("injected fault of a stream buffer");
    if (fault == FileFault::cut) text_.resize(position);
    if (position >= text_.size()) return traits_type::eof();
    const std::size_t size = fault == FileFault::part ? 1 : std::min(piece_, text_.size() - position);
    setg(text_.data(), text_.data() + position, text_.data() + position + size);
    return traits_type::to_int_type(*gptr());
  }

 private:
  std::string text_;
  FileGate gate_;
  std::size_t piece_;
};

/// Takes text through a buffer of `piece` bytes.
class FaultyOutput : public std::streambuf {
 public:
  static constexpr std::size_t piece = 64;

  explicit FaultyOutput(FileGate gate) : gate_(std::move(gate)) {
    text_.reserve(1U << 16U);  // what the test allocates is no allocation of the library
    empty_buffer();
  }

  /// What has reached the file.
  [[nodiscard]] const std::string& text() const { return text_; }

 protected:
  int_type overflow(int_type character) override {
    if (!write_buffer()) return traits_type::eof();
    if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
    return sputc(traits_type::to_char_type(character));
  }
  int sync() override {
    if (!write_buffer()) return -1;
    const auto fault = gate_(FileCall::flush);
    if (fault == FileFault::throws) throw std::runtime_error("injected fault of a stream buffer");
    return fault ? -1 : 0;
  }

 private:
  void empty_buffer() { setp(buffer_.data(), buffer_.data() + buffer_.size()); }

  bool write_buffer() {
    std::string_view left(pbase(), static_cast<std::size_t>(pptr() - pbase()));
    bool written = !full_ || left.empty();
    while (!left.empty() && written) {  // as std::filebuf does it: what is left over after a short count comes next
      const auto fault = gate_(FileCall::write);
      if (fault == FileFault::throws) throw std::runtime_error("injected fault of a stream buffer");
      std::size_t taken = left.size();
      if (fault == FileFault::error) taken = 0;
      if (fault == FileFault::part) taken = 1;
      if (fault == FileFault::full) taken /= 2;
      full_ = full_ || fault == FileFault::full;
      written = !fault || fault == FileFault::part;
      text_.append(left.substr(0, taken));
      left.remove_prefix(taken);
    }
    if (written) empty_buffer();
    return written;
  }

  FileGate gate_;
  std::string text_;
  std::array<char, piece> buffer_{};
  bool full_ = false;
};

}  // namespace swapmm::test
