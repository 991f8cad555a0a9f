// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/json/reader.hpp>

#include <algorithm>
#include <istream>
#include <limits>
#include <utility>

#include <boost/json/basic_parser_impl.hpp>

#include <swapmm/formats/json/decoder.hpp>

namespace swapmm::json {
namespace {

using boost::json::error_code;
using Part = boost::json::string_view;

/// The handler for boost::json::basic_parser. False with an error ends the parsing. The error itself is not used,
/// because the decoder has the problem.
struct Handler {
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();

  explicit Handler(const Object& document) : decoder(document) {}

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code& ec) { return told(decoder.object_begin(), ec); }
  bool on_object_end(std::size_t, error_code& ec) { return told(decoder.object_end(), ec); }
  bool on_array_begin(error_code& ec) { return told(decoder.array_begin(), ec); }
  bool on_array_end(std::size_t, error_code& ec) { return told(decoder.array_end(), ec); }
  bool on_key_part(Part part, std::size_t, error_code& ec) { return told(decoder.key_part(view(part)), ec); }
  bool on_key(Part part, std::size_t, error_code& ec) { return told(decoder.key(view(part)), ec); }
  bool on_string_part(Part part, std::size_t, error_code& ec) { return told(decoder.string_part(view(part)), ec); }
  bool on_string(Part part, std::size_t, error_code& ec) { return told(decoder.string(view(part)), ec); }
  bool on_number_part(Part part, error_code& ec) { return told(decoder.number_part(view(part)), ec); }
  bool on_int64(std::int64_t value, Part, error_code& ec) { return told(decoder.integer(value), ec); }
  bool on_uint64(std::uint64_t, Part part, error_code& ec) { return told(decoder.other_number(view(part)), ec); }
  bool on_double(double, Part part, error_code& ec) { return told(decoder.other_number(view(part)), ec); }
  bool on_bool(bool value, error_code& ec) { return told(decoder.boolean(value), ec); }
  bool on_null(error_code& ec) { return told(decoder.null(), ec); }
  bool on_comment_part(Part, error_code&) { return true; }
  bool on_comment(Part, error_code&) { return true; }

  Decoder decoder;

 private:
  static std::string_view view(Part part) { return {part.data(), part.size()}; }
  static bool told(bool keep_going, error_code& ec) {
    if (!keep_going) ec = boost::json::error::extra_data;
    return keep_going;
  }
};

boost::json::parse_options strict() {
  boost::json::parse_options options;
  options.max_depth = limits::nesting;
  return options;
}

Problem too_large() {
  return {"larger than the " + std::to_string(limits::file_bytes) + " bytes that a file may have"};
}

/// Parses one JSON text in pieces.
class Reader {
 public:
  explicit Reader(const Object& document) : parser_(strict(), document) {}

  /// Returns false if a Problem was found.
  [[nodiscard]] bool feed(std::string_view piece, std::optional<std::uint64_t> bytes_left) {
    if (std::max<std::uint64_t>(piece.size(), bytes_left.value_or(0)) > limits::file_bytes - position_) {
      problem_ = too_large();
      return false;
    }
    parser_.handler().decoder.set_bytes_left(bytes_left);
    error_code ec;
    const std::size_t used = parser_.write_some(true, piece.data(), piece.size(), ec);
    position_ += used;
    if (ec) return fail(ec);
    if (used < piece.size()) return fail(boost::json::error::extra_data);
    return true;
  }

  Check finish() {
    if (problem_) return *problem_;
    error_code ec;
    parser_.write_some(false, "", 0, ec);
    if (ec) fail(ec);
    if (problem_) return *problem_;
    return Done{};
  }

 private:
  bool fail(error_code ec) {
    problem_ = parser_.handler().decoder.problem();
    if (problem_) return false;
    const std::string where = parser_.handler().decoder.path();
    const bool too_deep = ec == boost::json::error::too_deep;
    const std::string what =
        too_deep ? "nested deeper than " + std::to_string(limits::nesting) : "not JSON: " + ec.message();
    problem_ =
        Problem{what + " at byte " + std::to_string(position_) + (where.empty() ? "" : ", in or after " + where)};
    return false;
  }

  boost::json::basic_parser<Handler> parser_;
  std::uint64_t position_ = 0;
  std::optional<Problem> problem_;
};

/// The number of bytes after the stream's position; none for streams that do not know it, such as pipes. Queries the
/// buffer, so that such a stream does not enter a failed state.
std::optional<std::uint64_t> length_left(std::istream& in) {
  std::streambuf* buffer = in.rdbuf();
  if (buffer == nullptr) return std::nullopt;
  const std::streamoff here = buffer->pubseekoff(0, std::ios::cur, std::ios::in);
  if (here < 0) return std::nullopt;
  const std::streamoff end = buffer->pubseekoff(0, std::ios::end, std::ios::in);
  const std::streamoff back = buffer->pubseekpos(here, std::ios::in);
  if (end < here || back != here) return std::nullopt;
  return static_cast<std::uint64_t>(end - here);
}

Field fixed(std::string_view name, Field::Presence presence, Value value) { return {name, presence, std::move(value)}; }

Problem stream_failed() { return {"the stream failed before its end"}; }

/// Looks for the version in a text that comes in pieces.
class VersionSearch {
 public:
  VersionSearch() : document_(fields()), reader_(document_) {}

  /// Returns false if the version is found, or cannot be found.
  [[nodiscard]] bool feed(std::string_view piece) { return reader_.feed(piece, std::nullopt) && !version_; }
  [[nodiscard]] std::optional<std::int64_t> version() const { return version_; }

 private:
  /// Everything else is unknown here, and skipped.
  Object fields() {
    Integer any{.least = std::numeric_limits<std::int64_t>::min(),
                .most = std::numeric_limits<std::int64_t>::max(),
                .take = [this](std::int64_t value) { version_ = value; }};
    Object object;
    object.fields = {optional("version", std::move(any))};
    return object;
  }

  std::optional<std::int64_t> version_;
  Object document_;
  Reader reader_;
};

/// The version comes early as a rule, so that a small piece is enough.
constexpr std::size_t search_piece_bytes = 4096;

/// Calls take(piece) for the pieces of the stream, until it returns false. False if the stream failed.
template <class Take>
bool for_each_piece(std::istream& in, std::size_t piece_size, Take take) {
  std::vector<char> buffer(piece_size);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const std::string_view piece(buffer.data(), static_cast<std::size_t>(in.gcount()));
    if (!piece.empty() && !take(piece)) return true;
  }
  return !in.bad();
}

Result<std::string> rest_of(std::istream& in) {
  std::string text;
  const bool good = for_each_piece(in, piece_bytes, [&text](std::string_view piece) {
    text += piece;
    return text.size() <= limits::file_bytes;
  });
  if (!good) return stream_failed();
  if (text.size() > limits::file_bytes) return too_large();
  return text;
}

}  // namespace

Field required(std::string_view name, Value value) { return fixed(name, Field::Presence::required, std::move(value)); }

Field optional(std::string_view name, Value value) { return fixed(name, Field::Presence::optional, std::move(value)); }

List list_of(Value element, std::size_t most) {
  List list;
  list.most = most;
  list.element = std::make_shared<const Value>(std::move(element));
  return list;
}

OneOf one_of(std::vector<Value> values) { return {std::make_shared<const std::vector<Value>>(std::move(values))}; }

Field format(std::string_view name, Field::Presence presence) {
  return fixed("format", presence, Word{{name}, [](std::size_t) {}});
}

Field version(Field::Presence presence) { return version(1, 1, presence); }

Field version(std::int64_t oldest, std::int64_t newest, Field::Presence presence) {
  return fixed("version", presence, Integer{.least = oldest, .most = newest, .take = [](std::int64_t) {}});
}

Check read(std::string_view text, const Object& document, std::size_t piece) {
  Reader reader(document);
  while (!text.empty()) {
    const std::string_view next = text.substr(0, piece);
    text.remove_prefix(next.size());
    // The number of bytes left includes this piece, because the position of the list in the piece is not known.
    if (!reader.feed(next, next.size() + text.size())) break;
  }
  return reader.finish();
}

Check read(std::istream& in, const Object& document) {
  Reader reader(document);
  std::optional<std::uint64_t> left = length_left(in);
  if (left && *left > limits::file_bytes) return too_large();
  const bool good = for_each_piece(in, piece_bytes, [&](std::string_view piece) {
    if (!reader.feed(piece, left)) return false;
    if (left) *left -= std::min<std::uint64_t>(*left, piece.size());
    return true;
  });
  if (!good) return stream_failed();
  return reader.finish();
}

std::optional<std::int64_t> find_version(std::string_view text) {
  VersionSearch search;
  while (!text.empty() && search.feed(text.substr(0, search_piece_bytes))) {
    text.remove_prefix(std::min(text.size(), search_piece_bytes));
  }
  return search.version();
}

Result<Preview> preview(std::istream& in) {
  if (!length_left(in)) {
    Result<std::string> text = rest_of(in);
    if (!text) return text.problem();
    return Preview{find_version(*text), std::move(*text)};
  }
  VersionSearch search;
  // A stream of its own, so that what happens here does not change the state of the other one.
  std::istream same(in.rdbuf());
  const std::streampos begin = in.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in);
  const bool good =
      for_each_piece(same, search_piece_bytes, [&](std::string_view piece) { return search.feed(piece); });
  if (!good || in.rdbuf()->pubseekpos(begin, std::ios::in) != begin) return stream_failed();
  return Preview{search.version(), std::nullopt};
}

}  // namespace swapmm::json
