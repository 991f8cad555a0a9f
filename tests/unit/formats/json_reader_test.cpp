// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include <swapmm/formats/json/reader.hpp>

using namespace swapmm;

namespace {

/// A small format with one of everything.
struct Document {
  std::string text;
  std::int64_t number = 0;
  std::vector<std::int64_t> numbers;
  std::size_t word = 0;
  bool flag = false;
  std::string name;
  std::vector<std::int64_t> mixed;

  json::Object fields() {
    json::Object inner;
    inner.fields = {json::required("flag", json::Boolean{[this](bool value) { flag = value; }})};
    json::Object object;
    object.fields = {
        json::required("text", json::Text{[this](std::string_view value) { text = value; }}),
        json::required("number", json::Integer{-9, INT64_MAX, [this](std::int64_t value) { number = value; }}),
        json::optional("numbers",
                       json::list_of(json::Integer{0, 9, [this](std::int64_t value) { numbers.push_back(value); }}, 3)),
        json::optional("word", json::Word{{"up", "down"}, [this](std::size_t value) { word = value; }}),
        json::optional("inner", inner),
        json::optional("forbidden", json::Refused{"not known here"}),
        json::optional("name", json::Name{[this](std::string_view value) { name = value; }}),
        json::optional("one_or_two", json::Integer{1, 2, [this](std::int64_t value) { number = value; }}),
        json::optional("mixed", json::list_of(either(), 9)),
    };
    return object;
  }

  /// A number, or an object with a negative one.
  json::Value either() {
    json::Object object;
    object.fields = {
        json::required("minus", json::Integer{0, 9, [this](std::int64_t value) { mixed.push_back(-value); }})};
    return json::one_of({json::Integer{0, 9, [this](std::int64_t value) { mixed.push_back(value); }}, object});
  }
};

/// How the parser words broken JSON, and where it notices it, may depend on the pieces: that it does, may not.
std::string comparable(const std::string& message) { return message.substr(0, message.find("not JSON: ") + 10); }

/// The outcome must be the same however the text is cut into pieces.
std::string outcome(std::string_view text) {
  Document whole;
  const Check check = json::read(text, whole.fields());
  const std::string message = check ? "" : check.problem().message;
  for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}}) {
    Document again;
    const Check other = json::read(text, again.fields(), piece);
    CAPTURE(text);
    CAPTURE(piece);
    CHECK(comparable(message) == comparable(other ? "" : other.problem().message));
    if (check && other) {
      CHECK(again.text == whole.text);
      CHECK(again.number == whole.number);
      CHECK(again.numbers == whole.numbers);
      CHECK(again.word == whole.word);
      CHECK(again.flag == whole.flag);
    }
  }
  return message;
}

/// The two required fields and one more.
std::string with(const std::string& field) { return R"({"text": "", "number": 0, )" + field + "}"; }

}  // namespace

TEST_CASE("what a description knows is taken, in any order of fields") {
  const std::string text =
      R"( {"inner": {"flag": true}, "numbers": [1, 2, 3], "n\u0075mber": -9, "word": "down", "text": "\u00e4\n\ud83d\ude00"} )";
  CHECK(outcome(text) == "");
  Document document;
  REQUIRE(json::read(text, document.fields()).has_value());
  CHECK(document.text == "\xC3\xA4\n\xF0\x9F\x98\x80");
  CHECK(document.number == -9);
  CHECK(document.numbers == std::vector<std::int64_t>{1, 2, 3});
  CHECK(document.word == 1);
  CHECK(document.flag);
}

TEST_CASE("unknown fields of any type are skipped, also twice and with fields of known names inside") {
  for (const std::string value : {"1", "-1.5e300", "99999999999999999999", "\"x\"", "true", "null", "[]", "{}",
                                  R"([1, {"text": [[]]}, "number"])", R"({"text": 1, "number": {"number": []}})"}) {
    CHECK(outcome(with("\"other\": " + value + ", \"other\": " + value)) == "");
    CHECK(outcome(with("\"\": " + value)) == "");
    CHECK(outcome(with("\"" + std::string(2000, 'k') + "\": " + value)) == "");
  }
}

TEST_CASE("a long key is unknown even if it begins like a known one") {
  CHECK(outcome(with("\"text" + std::string(100, ' ') + "\": 1")) == "");
}

TEST_CASE("the whole range of an integer can be read and nothing beyond it") {
  CHECK(outcome(R"({"text": "", "number": 9223372036854775807})") == "");
  CHECK(outcome(R"({"text": "", "number": -0})") == "");
  CHECK(outcome(R"({"text": "", "number": 9223372036854775808})") ==
        "number: 9223372036854775808 is above 9223372036854775807");
  CHECK(outcome(R"({"text": "", "number": 99999999999999999999})") ==
        "number: 99999999999999999999 is above 9223372036854775807");
  CHECK(outcome(R"({"text": "", "number": -99999999999999999999})") == "number: -99999999999999999999 is below -9");
  CHECK(outcome(R"({"text": "", "number": -10})") == "number: -10 is below -9");
}

TEST_CASE("a number with a fraction or an exponent is no integer") {
  CHECK(outcome(R"({"text": "", "number": 1e3})") == "number: 1e3 is not written as an integer");
  CHECK(outcome(R"({"text": "", "number": 1.0})") == "number: 1.0 is not written as an integer");
  CHECK(outcome(R"({"text": "", "number": -2E-1})") == "number: -2E-1 is not written as an integer");
}

TEST_CASE("the wrong type is refused by path, with what was found and what is wanted") {
  CHECK(outcome(with(R"("numbers": [1, "2"])")) == "numbers[1]: a string stands where an integer must");
  CHECK(outcome(with(R"("numbers": [[]])")) == "numbers[0]: an array stands where an integer must");
  CHECK(outcome(with(R"("numbers": {})")) == "numbers: an object stands where an array must");
  CHECK(outcome(with(R"("numbers": null)")) == "numbers: null stands where an array must");
  CHECK(outcome(with(R"("inner": {"flag": 1})")) == "inner.flag: a number stands where true or false must");
  CHECK(outcome(with(R"("inner": true)")) == "inner: true stands where an object must");
  CHECK(outcome(with(R"("word": 3)")) == "word: a number stands where one of up, down must");
  CHECK(outcome(R"({"text": false})") == "text: false stands where a string must");
  CHECK(outcome("[]") == "an array stands where an object must");
  CHECK(outcome("12") == "a number stands where an object must");
  CHECK(outcome("\"x\"") == "a string stands where an object must");
  CHECK(outcome("null") == "null stands where an object must");
}

TEST_CASE("a word is one of those known") {
  CHECK(outcome(with(R"("word": "sideways\n")")) == "word: \"sideways\\u000a\" is not one of up, down");
  CHECK(outcome(with(R"("word": "upx")")) == "word: \"upx\" is not one of up, down");
  CHECK(outcome(with("\"word\": \"" + std::string(100, 'w') + "\"")) ==
        "word: \"" + std::string(64, 'w') + "\"... is not one of up, down");
}

TEST_CASE("a name has 1 to 100 of its characters") {
  const std::string rule = " is not a name: 1 to 100 characters out of A-Z a-z 0-9 . _ -";
  for (const std::string& good : {std::string("AZaz09._-"), std::string(100, 'n'), std::string("\\u0061")}) {
    CHECK(outcome(with("\"name\": \"" + good + "\"")) == "");
  }
  CHECK(outcome(with(R"("name": "")")) == R"(name: "")" + rule);
  CHECK(outcome(with(R"("name": "a b")")) == R"(name: "a b")" + rule);
  CHECK(outcome(with(R"("name": "\u0000")")) == R"(name: "\u0000")" + rule);
  CHECK(outcome(with("\"name\": \"" + std::string(101, 'n') + "\"")) ==
        "name: \"" + std::string(64, 'n') + "\"..." + rule);
  CHECK(outcome(with("\"name\": \"" + std::string(100000, 'n') + "\"")) ==
        "name: \"" + std::string(64, 'n') + "\"..." + rule);
  CHECK(outcome(with(R"("name": null)")) == "name: null stands where a string must");
}

TEST_CASE("where one of several values may stand, its type says which it is") {
  Document document;
  REQUIRE(json::read(with(R"("mixed": [1, {"minus": 2}, 3, {"other": [], "minus": 4}])"), document.fields()));
  CHECK(document.mixed == std::vector<std::int64_t>{1, -2, 3, -4});
  CHECK(outcome(with(R"("mixed": [1, "2"])")) == "mixed[1]: a string stands where an integer or an object must");
  CHECK(outcome(with(R"("mixed": [[]])")) == "mixed[0]: an array stands where an integer or an object must");
  CHECK(outcome(with(R"("mixed": [null])")) == "mixed[0]: null stands where an integer or an object must");
  CHECK(outcome(with(R"("mixed": [true])")) == "mixed[0]: true stands where an integer or an object must");
  CHECK(outcome(with(R"("mixed": [0, 10])")) == "mixed[1]: 10 is above 9");
  CHECK(outcome(with(R"("mixed": [0, 0.5])")) == "mixed[1]: 0.5 is not written as an integer");
  CHECK(outcome(with(R"("mixed": [0, {}])")) == "mixed[1].minus: missing");
  CHECK(outcome(with(R"("mixed": [0, {"minus": {}}])")) == "mixed[1].minus: an object stands where an integer must");
}

TEST_CASE("where an integer has two values, a message lists them") {
  CHECK(outcome(with(R"("one_or_two": 2)")) == "");
  CHECK(outcome(with(R"("one_or_two": 0)")) == "one_or_two: 0 is unknown, only 1 and 2 are known");
  CHECK(outcome(with(R"("one_or_two": 3)")) == "one_or_two: 3 is unknown, only 1 and 2 are known");
  CHECK(outcome(with(R"("one_or_two": 18446744073709551616)")) ==
        "one_or_two: 18446744073709551616 is unknown, only 1 and 2 are known");
}

TEST_CASE("the version is found wherever it stands, and nothing else is taken for it") {
  CHECK(json::find_version(R"({"version": 7})") == 7);
  CHECK(json::find_version(R"({"version": 7, this is not read)") == 7);
  CHECK(json::find_version(R"({"other": {"version": 1}, "versions": 2, "VERSION": 3, "v\u0065rsion": -4})") == -4);
  CHECK(json::find_version("{\"other\": [" + std::string(1000000, ' ') + "], \"version\": 7}") == 7);
  for (const std::string none :
       {"", "{}", "[7]", R"({"version": "7"})", R"({"version": 7.0})", R"({"version": null})",
        R"({"other": [}, "version": 7})", R"({"other": {"version": 7}})", R"({"version": 9223372036854775808})"}) {
    CAPTURE(none);
    CHECK_FALSE(json::find_version(none).has_value());
  }
}

TEST_CASE("a stream is where it was after its version was found") {
  for (const std::size_t blanks : {std::size_t{0}, std::size_t{5000}, std::size_t{100000}}) {
    const std::string text = "{" + std::string(blanks, ' ') + R"("version": 7})";
    std::istringstream in("skipped" + text);
    in.seekg(7);
    const auto seen = json::preview(in);
    REQUIRE(seen.has_value());
    CHECK(seen->version == 7);
    CHECK_FALSE(seen->text.has_value());
    CHECK(in.good());
    std::string rest;
    std::getline(in, rest);
    CHECK(rest == text);
  }
}

TEST_CASE("a stream that cannot go back is read to its end for its version") {
  struct Pipe : std::streambuf {
    explicit Pipe(std::string content) : text(std::move(content)) {
      setg(text.data(), text.data(), text.data() + text.size());
    }
    std::string text;
  };
  const std::string text = R"({"version": 7})";
  Pipe pipe(text);
  std::istream in(&pipe);
  const auto seen = json::preview(in);
  REQUIRE(seen.has_value());
  CHECK(seen->version == 7);
  CHECK(seen->text == text);

  /// Goes back only as long as nothing was read.
  struct Stuck : std::stringbuf {
    explicit Stuck(const std::string& content) : std::stringbuf(content) {}
    bool read = false;
    int_type underflow() override {
      read = true;
      return std::stringbuf::underflow();
    }
    std::streamsize xsgetn(char* to, std::streamsize count) override {
      read = true;
      return std::stringbuf::xsgetn(to, count);
    }
    pos_type seekpos(pos_type position, std::ios_base::openmode which) override {
      return read ? pos_type(-1) : std::stringbuf::seekpos(position, which);
    }
  };
  Stuck stuck(text);
  std::istream stays(&stuck);
  const auto refused = json::preview(stays);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.problem().message == "the stream failed before its end");
}

TEST_CASE("a field stands once, and a required one must") {
  CHECK(outcome(R"({"text": "", "number": 0, "text": ""})") == "text: stands twice in one object");
  CHECK(outcome(R"({"text": "", "number": 0, "t\u0065xt": ""})") == "text: stands twice in one object");
  CHECK(outcome(R"({"text": ""})") == "number: missing");
  CHECK(outcome(with(R"("inner": {})")) == "inner.flag: missing");
}

TEST_CASE("what is forbidden is refused whatever it holds") {
  for (const std::string value : {"null", "1", "true", "\"\"", "[1]", "{}"}) {
    CHECK(outcome(with("\"forbidden\": " + value)) == "forbidden: not known here");
  }
}

TEST_CASE("a list has at most its number of elements") {
  CHECK(outcome(with(R"("numbers": [1, 2, 3, 4])")) == "numbers: more than 3 elements");
}

TEST_CASE("a string has at most 1 KiB, counted in bytes of UTF-8") {
  const auto text_of = [](std::size_t bytes) { return R"({"number": 0, "text": ")" + std::string(bytes, 'x') + "\"}"; };
  CHECK(outcome(text_of(1024)) == "");
  CHECK(outcome(text_of(1025)) == "text: longer than 1024 bytes");
  CHECK(outcome(text_of(100000)) == "text: longer than 1024 bytes");
}

TEST_CASE("objects and arrays nest at most 16 deep, also where they are skipped") {
  const auto nested = [](std::size_t depth) {
    return with("\"other\": " + std::string(depth - 1, '[') + std::string(depth - 1, ']'));
  };
  CHECK(outcome(nested(16)) == "");
  const std::string first_too_deep = std::to_string(nested(17).find('[') + 15);
  CHECK(outcome(nested(17)) == "nested deeper than 16 at byte " + first_too_deep);
  CHECK(outcome(nested(100000)) == "nested deeper than 16 at byte " + first_too_deep);
}

TEST_CASE("text that is not JSON is refused with the byte where that shows") {
  CHECK(outcome("") == "not JSON: incomplete JSON at byte 0");
  CHECK(outcome("   ") == "not JSON: incomplete JSON at byte 3");
  CHECK(outcome(R"({"text": "", "number": 0)") == "not JSON: incomplete JSON at byte 24, in or after number");
  CHECK(outcome(R"({"text": "", "number": 0} x)").find("extra data") != std::string::npos);
  CHECK(outcome(R"({"text": "", "number": 0}{})").find("extra data") != std::string::npos);
  for (const std::string bad :
       {"{\"text\": \"\", \"number\": 0,}", "{\"text\": \"\" \"number\": 0}", "{text: 0}", "{,}",
        "{\"text\": '', \"number\": 0}", "{\"text\": \"\", \"number\": 01}", "{\"text\": \"\", \"number\": +1}",
        "{\"text\": \"\", \"number\": NaN}", "{\"text\": \"\", \"number\": 0 /* no */}",
        "{\"text\": \"\n\", \"number\": 0}", "\xEF\xBB\xBF{\"text\": \"\", \"number\": 0}"}) {
    CHECK(outcome(bad).find("not JSON: ") == 0);
  }
}

TEST_CASE("strings are valid UTF-8, also in unknown fields and keys") {
  for (const std::string bad : {"\xFF", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                "\xF8\x88\x80\x80\x80", "\x80", "\\ud800", "\\ud800\\u0041", "\\udc00", "\\uD83D"}) {
    CHECK(outcome(with("\"other\": \"" + bad + "\"")).find("not JSON: ") == 0);
    CHECK(outcome(with("\"" + bad + "\": 0")).find("not JSON: ") == 0);
    CHECK(outcome("{\"text\": \"" + bad + "\", \"number\": 0}").find("not JSON: ") == 0);
  }
}

TEST_CASE("a list that begins is told at least how much of a known length is left") {
  std::optional<std::uint64_t> left;
  json::Object object;
  json::List list = json::list_of(json::Integer{0, 9, [](std::int64_t) {}}, 9);
  list.begin = [&left](std::optional<std::uint64_t> bytes) { left = bytes; };
  object.fields = {json::required("numbers", list)};
  const std::string text = R"({"numbers": [1, 2]})";

  REQUIRE(json::read(text, object).has_value());
  CHECK(left == text.size());

  std::istringstream in("skipped" + text);
  in.seekg(7);
  REQUIRE(json::read(in, object).has_value());
  CHECK(left == text.size());
}

TEST_CASE("a stream that cannot tell its length, or that fails, is no obstacle to a clear outcome") {
  /// Gives out its text but cannot seek, as a pipe.
  struct Pipe : std::streambuf {
    explicit Pipe(std::string content) : text(std::move(content)) {
      setg(text.data(), text.data(), text.data() + text.size());
    }
    std::string text;
  };
  Document document;
  Pipe pipe(R"({"text": "x", "number": 1})");
  std::istream in(&pipe);
  CHECK(json::read(in, document.fields()).has_value());
  CHECK(document.text == "x");

  std::istream none(nullptr);
  Document nothing;
  const Check check = json::read(none, nothing.fields());
  REQUIRE_FALSE(check.has_value());
  CHECK(check.problem().message == "the stream failed before its end");
}

TEST_CASE("a file has at most 256 MiB, and a longer one is refused before it is read") {
  /// Blanks without end; counts how many were asked for.
  struct Blanks : std::streambuf {
    std::string blanks = std::string(1U << 16U, ' ');
    std::uint64_t given = 0;
    int_type underflow() override {
      setg(blanks.data(), blanks.data(), blanks.data() + blanks.size());
      given += blanks.size();
      return traits_type::to_int_type(' ');
    }
  };
  Blanks blanks;
  std::istream in(&blanks);
  Document document;
  const Check check = json::read(in, document.fields());
  REQUIRE_FALSE(check.has_value());
  CHECK(check.problem().message == "larger than the 268435456 bytes that a file may have");
  CHECK(blanks.given <= limits::file_bytes + 2 * blanks.blanks.size());

  /// Says that it is long, and would give nothing.
  struct Long : std::streambuf {
    bool read = false;
    int_type underflow() override {
      read = true;
      return traits_type::eof();
    }
    pos_type seekoff(off_type, std::ios_base::seekdir from, std::ios_base::openmode) override {
      return from == std::ios_base::end ? pos_type(static_cast<off_type>(limits::file_bytes) + 1) : pos_type(0);
    }
    pos_type seekpos(pos_type position, std::ios_base::openmode) override { return position; }
  };
  Long claim;
  std::istream from_long(&claim);
  const Check refused = json::read(from_long, document.fields());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.problem().message == "larger than the 268435456 bytes that a file may have");
  CHECK_FALSE(claim.read);
}
