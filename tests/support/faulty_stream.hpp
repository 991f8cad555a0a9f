// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stream buffers on which reading and writing goes wrong as on real files: in small pieces, with an error in the
// middle, on a full disk.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <limits>
#include <streambuf>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace swapmm::test {

inline constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

/// How an operation fails once its offset is reached.
enum class StreamFault : std::uint8_t {
  ends,    ///< reads end as at the end of the file; writes take no byte more (ENOSPC)
  throws,  ///< std::system_error out of the stream buffer, which a stream turns into badbit
};

/// Gives `text`, at most `piece` bytes at hand at a time, as after a read() that was short or interrupted.
class FaultyInput : public std::streambuf {
 public:
  explicit FaultyInput(std::string text, std::size_t piece = never, std::size_t fails_at = never,
                       StreamFault fault = StreamFault::throws)
      : text_(std::move(text)), piece_(std::max<std::size_t>(piece, 1)), fails_at_(fails_at), fault_(fault) {}

  [[nodiscard]] bool fired() const { return fired_; }

 protected:
  int_type underflow() override {
    const auto position = static_cast<std::size_t>(gptr() == nullptr ? 0 : gptr() - text_.data());
    if (position >= fails_at_) {
      fired_ = true;
      if (fault_ == StreamFault::throws) throw std::system_error(EIO, std::generic_category(), "injected read fault");
      return traits_type::eof();
    }
    const std::size_t end = std::min({text_.size(), fails_at_, piece_ == never ? never : position + piece_});
    if (position == end) return traits_type::eof();
    setg(text_.data(), text_.data() + position, text_.data() + end);
    return traits_type::to_int_type(*gptr());
  }

 private:
  std::string text_;
  std::size_t piece_;
  std::size_t fails_at_;
  StreamFault fault_;
  bool fired_ = false;
};

/// Takes `room` bytes, the last ones of them as a short write: then the disk is full.
class FaultyOutput : public std::streambuf {
 public:
  explicit FaultyOutput(std::size_t room = never, StreamFault fault = StreamFault::ends) : room_(room), fault_(fault) {}

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool fired() const { return fired_; }

 protected:
  int_type overflow(int_type character) override {
    if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
    const char byte = traits_type::to_char_type(character);
    return write({&byte, 1}) == 1 ? character : traits_type::eof();
  }
  std::streamsize xsputn(const char* from, std::streamsize count) override {
    return static_cast<std::streamsize>(write({from, static_cast<std::size_t>(count)}));
  }

 private:
  std::size_t write(std::string_view bytes) {
    const std::size_t size = std::min(bytes.size(), room_ - text_.size());
    text_.append(bytes.substr(0, size));
    if (size < bytes.size()) {
      fired_ = true;
      if (fault_ == StreamFault::throws) {
        throw std::system_error(ENOSPC, std::generic_category(), "injected write fault");
      }
    }
    return size;
  }

  std::string text_;
  std::size_t room_;
  StreamFault fault_;
  bool fired_ = false;
};

}  // namespace swapmm::test
