// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/limits.hpp>

#include "support/changed_text.hpp"

using namespace swapmm;

namespace {

/// Has every field of version 2.
const std::string trace_2_text =
    R"({"format": "swapmm-trace", "version": 2, "name": "two-devices",
 "tensors": [
  {"name": "t0", "bytes": 8192, "kind": "persistent", "forms": [{"name": "zeros", "bytes": 9000, )"
    R"("expected_bytes": 3000, "encode_ns": 90, "decode_ns": 60}, {"name": "top.1", "bytes": 100, )"
    R"("expected_bytes": 100, "encode_ns": 0, "decode_ns": 0}]},
  {"name": "t1", "bytes": 50, "kind": "input", "available_from": 1},
  {"name": "t2", "bytes": 4096, "kind": "transient", "forms": [{"name": "zeros", "bytes": 0, )"
    R"("expected_bytes": 0, "encode_ns": 1, "decode_ns": 2}]}],
 "operations": [
  {"name": "conv1", "duration_ns": 10, "engine": "gpu1", "replayable": true, "reads": [{"tensor": 0, )"
    R"("first": 4096, "bytes": 4096}], "writes": [2], "updates": []},
  {"name": "b", "duration_ns": 20, "in_pieces": true, "reads": [{"tensor": 2, "first": 0, "bytes": 1}, )"
    R"(1], "writes": [], "updates": [{"tensor": 0, "first": 8191, "bytes": 1}]},
  {"name": "c", "duration_ns": 0, "engine": "GPU-0_x.in", "replayable": true, "in_pieces": true, )"
    R"("reads": [], "writes": [], "updates": []},
  {"name": "d", "duration_ns": 0, "engine": "gpu1", "reads": [2], "writes": [], "updates": []}],
 "host_reads": [
  {"tensor": 2, "after_operation": 0}]}
)";

const auto read_any_trace = [](auto&& source) { return read_trace(source); };

Trace good_trace(std::string_view text) {
  const auto trace = read_trace(text);
  REQUIRE_MESSAGE(trace.has_value(), trace.problem().message);
  return *trace;
}

/// A stream buffer that gives out its text, but cannot go back.
struct OneWay : std::streambuf {
  explicit OneWay(std::string content) : text(std::move(content)) {
    setg(text.data(), text.data(), text.data() + text.size());
  }
  std::string text;
};

}  // namespace

TEST_CASE("a trace of version 2 is read field by field, and written as it was read") {
  const Trace trace = good_trace(trace_2_text);
  const auto ns = [](std::int64_t count) { return std::chrono::nanoseconds{count}; };
  CHECK(trace.engines == std::vector<std::string>{"gpu1", "GPU-0_x.in"});
  REQUIRE(trace.operations.size() == 4);
  CHECK(trace.operations[0] == TraceOperation{"conv1", ns(10), {TensorId{0}}, {TensorId{2}}, {}, 0, true, false});
  CHECK(trace.operations[1] ==
        TraceOperation{
            "b", ns(20), {TensorId{2}, TensorId{1}}, {}, {TensorId{0}}, TraceOperation::default_engine, false, true});
  CHECK(trace.operations[2] == TraceOperation{"c", ns(0), {}, {}, {}, 1, true, true});
  CHECK(trace.operations[3].engine == 0);
  CHECK(trace.ranges == std::vector<AccessRange>{{OperationId{0}, TensorId{0}, Bytes{4096}, Bytes{4096}},
                                                 {OperationId{1}, TensorId{0}, Bytes{8191}, Bytes{1}},
                                                 {OperationId{1}, TensorId{2}, Bytes{0}, Bytes{1}}});
  CHECK(trace.forms == std::vector<TensorForm>{{TensorId{0}, "zeros", Bytes{9000}, Bytes{3000}, ns(90), ns(60)},
                                               {TensorId{0}, "top.1", Bytes{100}, Bytes{100}, ns(0), ns(0)},
                                               {TensorId{2}, "zeros", Bytes{0}, Bytes{0}, ns(1), ns(2)}});
  CHECK(needs_version_2(trace));
  CHECK(test::written(write_trace, trace) == trace_2_text);
}

TEST_CASE("the example of docs/formats.md, completed, is a trace") {
  const Trace trace = good_trace(R"({"format": "swapmm-trace", "version": 2, "name": "two-devices",
     "tensors":    [{"name": "t0", "bytes": 100663296, "kind": "transient",
                     "forms": [{"name": "zeros", "bytes": 103809024, "expected_bytes": 31000000,
                                "encode_ns": 90000, "decode_ns": 60000}]},
                    {"name": "t1", "bytes": 16384, "kind": "persistent"}, {"name": "t2", "bytes": 1, "kind": "input"}],
     "operations": [{"name": "conv1", "duration_ns": 6845440, "engine": "gpu0", "replayable": true, "in_pieces": false,
                     "reads": [2, {"tensor": 1, "first": 4096, "bytes": 8192}], "writes": [0], "updates": []}],
     "host_reads": [{"tensor": 1, "after_operation": 0}]})");
  CHECK(trace.engines == std::vector<std::string>{"gpu0"});
  CHECK(trace.operations[0].replayable);
  CHECK_FALSE(trace.operations[0].in_pieces);
  CHECK(trace.ranges == std::vector<AccessRange>{{OperationId{0}, TensorId{1}, Bytes{4096}, Bytes{8192}}});
  CHECK(trace.forms.at(0).expected == Bytes{31000000});
  CHECK(good_trace(test::written(write_trace, trace)) == trace);
}

TEST_CASE("fields and lists of an operation may come in any order, its ranges ascend") {
  const Trace trace = good_trace(R"({"operations": [
    {"updates": [{"bytes": 3, "first": 2, "tensor": 2}, 1], "engine": "b", "name": "", "duration_ns": 0,
     "reads": [{"tensor": 0, "bytes": 1, "first": 0}]},
    {"engine": "a", "name": "", "duration_ns": 0}, {"name": "", "engine": "b", "duration_ns": 0}],
    "tensors": [{"forms": [], "name": "", "bytes": 5, "kind": "persistent"},
                {"forms": [{"decode_ns": 4, "encode_ns": 3, "expected_bytes": 2, "bytes": 9, "name": "f"}],
                 "name": "", "bytes": 5, "kind": "persistent"},
                {"name": "", "bytes": 5, "kind": "persistent"}],
    "name": "", "format": "swapmm-trace", "version": 2})");
  CHECK(trace.engines == std::vector<std::string>{"b", "a"});
  CHECK(trace.operations[2].engine == 0);
  CHECK(trace.ranges == std::vector<AccessRange>{{OperationId{0}, TensorId{0}, Bytes{0}, Bytes{1}},
                                                 {OperationId{0}, TensorId{2}, Bytes{2}, Bytes{3}}});
  CHECK(trace.operations[0].updates == std::vector{TensorId{2}, TensorId{1}});
  CHECK(trace.forms == std::vector<TensorForm>{{TensorId{1}, "f", Bytes{9}, Bytes{2}, std::chrono::nanoseconds{3},
                                                std::chrono::nanoseconds{4}}});
  CHECK(good_trace(test::written(write_trace, trace)) == trace);
}

TEST_CASE("a trace without new features is written in version 1, whatever version it was read in") {
  const std::string text = R"({"format": "swapmm-trace", "version": 1, "name": "",
 "tensors": [
  {"name": "", "bytes": 1, "kind": "persistent"}],
 "operations": [
  {"name": "", "duration_ns": 0, "reads": [0], "writes": [], "updates": []}]}
)";
  const Trace old = good_trace(text);
  CHECK_FALSE(needs_version_2(old));
  const Trace same = good_trace(test::changed(text, {R"("version": 1)", R"("version": 2)", ""}));
  CHECK(same == old);
  CHECK(test::written(write_trace, same) == text);
  CHECK(good_trace(test::changed(text, {R"("reads")", R"("in_pieces": false, "replayable": false, "reads")", ""})) ==
        old);
  // Each feature alone needs version 2.
  const auto version_2 = [&text](const std::string& from, const std::string& to) {
    const std::string changed =
        test::changed(test::changed(text, {R"("version": 1)", R"("version": 2)", ""}), {from, to, ""});
    CHECK(test::written(write_trace, good_trace(changed)) == changed);
  };
  version_2(R"("reads")", R"("engine": "e", "reads")");
  version_2(R"("reads")", R"("replayable": true, "reads")");
  version_2(R"("reads")", R"("in_pieces": true, "reads")");
  version_2("[0]", R"([{"tensor": 0, "first": 0, "bytes": 1}])");
  version_2(
      R"("persistent")",
      R"("persistent", "forms": [{"name": "f", "bytes": 1, "expected_bytes": 0, "encode_ns": 0, "decode_ns": 0}])");
}

TEST_CASE("fields of version 2 are unknown in version 1, and ignored whatever they hold") {
  // `version` comes first, last, or in between, before or behind what it decides about.
  for (const int position : {0, 1, 2}) {
    CAPTURE(position);
    for (const std::string value : {"1", "[{}, [1], null]", R"({"name": {}})", R"("a b")", "null", "true", "[]"}) {
      const auto version = [position](int here) { return std::string(position == here ? R"("version": 1, )" : ""); };
      const std::string text = "{" + version(0) + R"("format": "swapmm-trace", "tensors": [{"forms": )" + value +
                               R"(, "name": "", "bytes": 1, "kind": "persistent", "forms": 1}], )" + version(1) +
                               R"("operations": [{"engine": )" + value + R"(, "replayable": )" + value +
                               R"(, "in_pieces": )" + value + R"(, "name": "", "duration_ns": 0, "reads": [0]}], )" +
                               version(2) + R"("name": ""})";
      CHECK_FALSE(needs_version_2(good_trace(text)));
      std::istringstream in(text);
      CHECK(read_trace(in).has_value());
    }
  }
  test::expect_refused(
      R"({"format": "swapmm-trace", "tensors": [{"name": "", "bytes": 1, "kind": "persistent"}], "name": "",
          "operations": [{"name": "", "duration_ns": 0, "reads": [0]}], "version": 1})",
      {
          {"[0]", R"([{"tensor": 0, "first": 0, "bytes": 1}])",
           "operations[0].reads[0]: an object stands where an integer must"},
          {R"("version": 1)", R"("version": 1, "version": 2)", "version: stands twice in one object"},
          {R"("version": 1)", R"("version": 2, "version": 1)", "version: stands twice in one object"},
      },
      read_any_trace);
}

TEST_CASE("the version is found behind much else, also in a stream that cannot go back or that was begun") {
  const std::string filler = R"("other": [)" + std::string(100000, ' ') + R"({"version": 2}], )";
  const std::string text =
      "{" + filler +
      R"("format": "swapmm-trace", "name": "", "tensors": [], "operations": [{"name": "", "engine": 7,)" +
      R"("duration_ns": 0}], "version": 1})";
  CHECK(good_trace(text).operations.size() == 1);
  std::istringstream begun("skipped" + text);
  begun.seekg(7);
  CHECK(read_trace(begun).has_value());
  OneWay pipe(text);
  std::istream in(&pipe);
  CHECK(read_trace(in).has_value());
  OneWay broken(test::changed(text, {R"("version": 1)", R"("version": 2)", ""}));
  std::istream bad(&broken);
  const auto refused = read_trace(bad);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.problem().message == "operations[0].engine: a number stands where a string must");
  std::istream none(nullptr);
  REQUIRE_FALSE(read_trace(none).has_value());
  CHECK(read_trace(none).problem().message == "the stream failed before its end");
}

TEST_CASE("a bad trace of version 2 is refused with field and index") {
  const std::string no_name = " is not a name: 1 to 100 characters out of A-Z a-z 0-9 . _ -";
  test::expect_refused(
      trace_2_text,
      {
          {R"("version": 2)", R"("version": 3)", "version: 3 is unknown, only 1 and 2 are known"},
          {R"("version": 2)", R"("version": "2")", "version: a string stands where an integer must"},
          {R"("version": 2, )", "", "version: missing"},
          {R"("engine": "gpu1")", R"("engine": null)", "operations[0].engine: null stands where a string must"},
          {R"("engine": "gpu1")", R"("engine": "")", R"(operations[0].engine: "")" + no_name},
          {R"("engine": "gpu1")", R"("engine": "gpu 1\n")", R"(operations[0].engine: "gpu 1\u000a")" + no_name},
          {R"("engine": "gpu1")", R"("engine": ")" + std::string(101, 'x') + "\"",
           "operations[0].engine: \"" + std::string(64, 'x') + "\"..." + no_name},
          {R"("replayable": true)", R"("replayable": 1)",
           "operations[0].replayable: a number stands where true or false must"},
          {R"("in_pieces": true)", R"("in_pieces": "yes")",
           "operations[1].in_pieces: a string stands where true or false must"},
          {R"([{"tensor": 0, "first": 4096, "bytes": 4096}])", R"(["0"])",
           "operations[0].reads[0]: a string stands where an integer or an object must"},
          {R"([{"tensor": 0, "first": 4096, "bytes": 4096}])", "[[0]]",
           "operations[0].reads[0]: an array stands where an integer or an object must"},
          {R"([{"tensor": 0, "first": 4096, "bytes": 4096}])", "[1.5]",
           "operations[0].reads[0]: 1.5 is not written as an integer"},
          {R"([{"tensor": 0, "first": 4096, "bytes": 4096}])", "[null]",
           "operations[0].reads[0]: null stands where an integer or an object must"},
          {R"("first": 4096, )", "", "operations[0].reads[0].first: missing"},
          {R"("first": 4096, "bytes": 4096)", R"("first": 4096)", "operations[0].reads[0].bytes: missing"},
          {R"("first": 4096)", R"("first": -1)", "operations[0].reads[0].first: -1 is below 0"},
          {R"("first": 4096)", R"("first": 4097)",
           "operations[0]: the range of 4096 bytes at 4097 is not within tensor 0 of 8192 bytes"},
          {R"("first": 4096, "bytes": 4096)", R"("first": 4611686018427387903, "bytes": 4611686018427387903)",
           "operations[0]: the range of 4611686018427387903 bytes at 4611686018427387903 is not within tensor 0 of "
           "8192 "
           "bytes"},
          {R"("first": 4096, "bytes": 4096)", R"("first": 4096, "bytes": 0)",
           "operations[0]: the range of 0 bytes at 4096 is not within tensor 0 of 8192 bytes"},
          {R"([{"tensor": 0, "first": 4096)", R"([0, {"tensor": 0, "first": 4096)",
           "operations[0].reads[1]: tensor 0 stands in the bundle twice"},
          {R"({"tensor": 0, "first": 4096)", R"({"tensor": 3, "first": 4096)",
           "operations[0].reads[0]: 3 is not the id of one of the 3 tensors"},
          {R"({"tensor": 0, "first": 4096)", R"({"tensor": 4294967296, "first": 4096)",
           "operations[0].reads[0].tensor: 4294967296 is above 4294967295"},
          {R"("name": "zeros")", R"("name": "plain")",
           "tensors[0].forms: plain is not a name: 1 to 100 characters out of A-Z a-z 0-9 . _ - (and no form is called "
           "plain)"},
          {R"("name": "top.1")", R"("name": "top/1")", R"(tensors[0].forms[1].name: "top/1")" + no_name},
          {R"("name": "top.1")", R"("name": "zeros")", "tensors[0].forms: zeros stands twice"},
          {R"("expected_bytes": 3000)", R"("expected_bytes": 9001)",
           "tensors[0].forms: expected_bytes, 9001, is above bytes, 9000"},
          {R"("expected_bytes": 3000, )", "", "tensors[0].forms[0].expected_bytes: missing"},
          {R"("encode_ns": 90, )", "", "tensors[0].forms[0].encode_ns: missing"},
          {R"(, "decode_ns": 60)", "", "tensors[0].forms[0].decode_ns: missing"},
          {R"("bytes": 9000, )", "", "tensors[0].forms[0].bytes: missing"},
          {R"("decode_ns": 60)", R"("decode_ns": -60)", "tensors[0].forms[0].decode_ns: -60 is below 0"},
          {R"("forms": [)", R"("forms": [4, )", "tensors[0].forms[0]: a number stands where an object must"},
          {R"("reads": [{)", R"("reads": [[[[[[[[[[[[[[[[)",
           "operations[0].reads[0]: an array stands where an integer or an object must"},
          {R"("name": "conv1")", R"("other": [[[[[[[[[[[[[[[[)",
           "nested deeper than 16 at byte " + std::to_string(trace_2_text.find(R"("name": "conv1")") + 22) +
               ", in or after operations[0]"},
      },
      read_any_trace);
}

TEST_CASE("a trace names at most 65536 engines") {
  const auto text = [](std::size_t engines) {
    std::string all = R"({"format": "swapmm-trace", "version": 2, "name": "", "tensors": [], "operations": [)";
    for (std::size_t i = 0; i < engines; ++i) {
      all += (i == 0 ? "" : ",") + std::string(R"({"name":"","duration_ns":0,"engine":"e)") + std::to_string(i) + "\"}";
    }
    return all + "]}";
  };
  CHECK(good_trace(text(limits::engines)).engines.size() == limits::engines);
  const auto refused = read_trace(text(limits::engines + 1));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.problem().message == "operations[65536]: with its engine, the trace names more than 65536");
}

TEST_CASE("the digest has every addition of version 2 as docs/formats.md says") {
  std::string small;
  for (int i = 3; i <= 10; ++i) {
    small += R"(, {"name": "", "kind": "transient", "bytes": )" + std::to_string(i) + "}";
  }
  const std::string text = R"({"format": "swapmm-trace", "version": 2, "name": "", "tensors": [
    {"name": "", "bytes": 8192, "kind": "persistent",
     "forms": [{"name": "zeros", "bytes": 9000, "expected_bytes": 3000, "encode_ns": 90, "decode_ns": 60},
               {"name": "top.1", "bytes": 100, "expected_bytes": 1, "encode_ns": 0, "decode_ns": 0}]},
    {"name": "", "bytes": 50, "kind": "input"}, {"name": "", "bytes": 4096, "kind": "transient"})" +
                           small + R"(],
   "operations": [
    {"name": "a", "duration_ns": 10, "engine": "gpu0", "replayable": true,
     "reads": [1, {"tensor": 0, "first": 4096, "bytes": 1024}], "writes": [10, 2]},
    {"name": "b", "duration_ns": 10, "in_pieces": true,
     "reads": [{"tensor": 2, "first": 0, "bytes": 4096}], "updates": [{"tensor": 0, "first": 0, "bytes": 1}]},
    {"name": "c", "duration_ns": 10, "in_pieces": true, "engine": "cpu.1", "replayable": true, "reads": [10]},
    {"name": "d", "duration_ns": 10}]})";
  // SHA-256, by Python's hashlib, of these lines, each of which ends with a newline:
  //   T 8192 persistent
  //   F zeros 9000
  //   F top.1 100
  //   T 50 input
  //   T 4096 transient
  //   T 3 transient   ... the same for 4 to 9 ...
  //   T 10 transient
  //   O r0[4096+1024],1 w2,10 u egpu0 a
  //   O r2[0+4096] w u0[0+1] p
  //   O r10 w u ecpu.1 a p
  //   O r w u
  const Trace trace = good_trace(text);
  CHECK(digest(trace) == "bf0ec69409ea461b5e1171a502fe009aefdca56193c177511f92fe7883fc9361");
  CHECK(digest(good_trace(test::written(write_trace, trace))) == digest(trace));
}
