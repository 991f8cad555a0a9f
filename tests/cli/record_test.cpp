// SPDX-License-Identifier: Apache-2.0
// swapmm record, replay, and show of a log.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <swapmm/formats/call_log/writer.hpp>

#include "program.hpp"

using namespace swapmm;
using namespace swapmm::test;
namespace fs = std::filesystem;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string log_file(const std::string& name, const calls::CallLog& log) {
  std::ostringstream text;
  call_log::write_call_log(text, log);
  const std::string file = scratch_file(name);
  write_contents(file, text.str());
  return file;
}

calls::CallLog small_log() {
  calls::CallLog log;
  log.process = 4;
  log.ended = true;
  calls::Call made;
  made.ended_before = 1;
  made.function = "clCreateBuffer";
  made.kind = calls::CallKind::create;
  made.object_kind = calls::ObjectKind::buffer;
  made.object = 1;
  made.bytes = 64;
  calls::Call read = made;
  read.sequence = 1;
  read.ended_before = 2;
  read.function = "clEnqueueReadBuffer";
  read.kind = calls::CallKind::read;
  read.object = 0;
  read.bytes = 0;
  read.queue = 9;
  calls::Operand operand;
  operand.object = 1;
  operand.access = Access::read;
  operand.offset = 8;
  operand.bytes = 16;
  read.operands.push_back(operand);
  read.host = calls::HostData{4096, 16, {}, std::string(32, '\x5A'), {}};
  log.calls = {made, read};
  return log;
}

std::size_t folders_of_record() {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(fs::temp_directory_path())) {
    count += entry.path().filename().string().starts_with("swapmm-record-") ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("record checks what run checks, and its own options, before it starts anything") {
  const std::string out = scratch_file("never.json");
  const std::string never = "touch " + scratch_file("never");
  check_refused({"record", "--", "/bin/sh", "-c", never}, 2, {"--out TRACE or --log FILE"});
  check_refused({"record", "--out", out, "--data", "--", "/bin/sh", "-c", never}, 2, {"--data belongs to --log"});
  check_refused({"record", "--out", out}, 2, {"which program? swapmm record"});
  check_refused({"record", "--out", out, "--budget", "8 parsecs", "--", "/bin/sh", "-c", never}, 2,
                {"--budget", "parsecs"});
  check_refused({"record", "--out", out, "--", "/no/such/program"}, 2, {"/no/such/program"});
  check_refused({"record", "--out", out, "--layer", "/no/such/layer.so", "--", "/bin/sh", "-c", never}, 2,
                {"/no/such/layer.so"});
  // What takes long must not be lost at its end.
  const auto refused = [&](std::vector<std::string> options, int code, const std::vector<std::string>& texts) {
    std::vector<std::string> words{"record"};
    for (const auto& some : {std::move(options), std::vector<std::string>{"--", "/bin/sh", "-c", never}}) {
      words.insert(words.end(), some.begin(), some.end());
    }
    check_refused(words, code, texts);
  };
  for (const std::string option : {"--out", "--log"}) {
    refused({option, scratch_file("none/x")}, 4, {scratch_file("none/x") + ": there is no folder"});
    refused({option, fs::path(out).parent_path()}, 4, {"it is a folder"});
  }
  refused({"--log", "-"}, 2, {"--log: stdout is the program's"});
  refused({"--out", out, "--log", out}, 2, {out + " is an input, or takes another output"});
  CHECK_FALSE(fs::exists(scratch_file("never")));
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("a log comes from stdin") {
  const std::string file = log_file("small.log", small_log());
  CHECK(run_program({"show", "-", "--count", "1"}, contents(file)).out ==
        run_program({"show", file, "--count", "1"}).out);
  const Outcome json = run_program({"show", "-", "--json"}, contents(file));
  CHECK(json.code == 0);
  CHECK(has(json.out, "swapmm-log"));
  const Outcome trace = run_program({"show", "-", "--dot", "-"}, contents(two_weights()));
  CHECK(trace.code == 0);
  CHECK(has(trace.out, "digraph"));
  const Outcome neither = run_program({"replay", "-"}, contents(two_weights()));
  CHECK(neither.code == 3);
  CHECK(has(neither.err, "not a swapmm-log"));
  check_refused({"replay", "-", "--budget", "1MB"}, 2, {"the log must be a file"});
  check_refused({"replay", file, "--wait", "values"}, 2, {"--wait", "needs --budget or --evict-always"});
  check_refused({"replay", file, "--host-budget", "1GB"}, 2, {"--host-budget", "needs --budget"});
}

TEST_CASE("a log as a table, as JSON and as a graph") {
  const std::string file = log_file("small.log", small_log());
  const Outcome table = run_program({"show", file});
  CHECK(table.code == 0);
  CHECK(has(table.out, "     0      0        clCreateBuffer  buffer 1; 64 bytes\n"));
  CHECK(has(table.out, "     1      0     9  clEnqueueReadBuffer  reads 1[8,24); 16 host bytes 5a5a5a5a5a5a\n"));
  const Outcome first = run_program({"show", file, "--count", "1"});
  CHECK_FALSE(has(first.out, "clEnqueueReadBuffer"));
  CHECK(has(first.out, "1 more calls"));
  const Outcome second = run_program({"show", file, "--from", "1"});
  CHECK_FALSE(has(second.out, "clCreateBuffer"));
  const auto answer = run_json({"show", file});
  CHECK(text_at(answer, "format") == "swapmm-log");
  CHECK(number(answer, "calls") == 2);
  CHECK(number(answer, "kinds.read") == 1);
  CHECK(number(answer, "buffers") == 1);
  CHECK(number(answer, "commands") == 1);
  const Outcome graph = run_program({"show", file, "--dot", "-"});
  CHECK(graph.out ==
        "digraph \"process 4\" {\n"
        "  operation0 [shape=box, label=\"1 clEnqueueReadBuffer\\nqueue 9\"];\n"
        "  data0 [shape=ellipse, label=\"buffer 1 v0\\n64 bytes\"];\n"
        "  data1 [shape=note, label=\"host memory 1 v0\\n16 bytes\"];\n"
        "  data0 -> operation0 [label=\"[8, 24)\"];\n"
        "  operation0 -> data1;\n"
        "}\n");
}

TEST_CASE("logs that are not what they should be") {
  const std::string file = scratch_file("broken.log");
  write_contents(file, "swapmm-log 9\n");
  check_refused({"show", file}, 3, {file, "version 1"});
  write_contents(file, std::string("swapmm-log 1\n\1\0\0\0\0\0\0\0x", 22));
  check_refused({"show", file}, 3, {file + ": record 0 at byte 13: its checksum is wrong"});
  calls::CallLog log = small_log();
  log.calls[1].operands[0].bytes = 57;
  const std::string beyond = log_file("beyond.log", log);
  check_refused({"show", beyond}, 3, {beyond + ": call 1 (clEnqueueReadBuffer) goes beyond the end of object 1"});
  check_refused({"replay", beyond}, 3, {"goes beyond the end"});
  check_refused({"replay", two_weights()}, 3, {"not a swapmm-log"});
  check_refused({"replay", scratch_file("missing.log")}, 4, {"missing.log", "cannot be opened"});
  const std::string small = log_file("small.log", small_log());
  check_refused({"show", small, "--svg", "-"}, 2, {"is a log of calls"});
  check_refused({"show", small, "--trace", small}, 2, {"is a log of calls"});
}

#ifdef SWAPMM_TEST_LAYER

TEST_CASE("record makes a trace of the busiest loop, and says what it cannot hold") {
  const std::size_t before = folders_of_record();
  const std::string trace = scratch_file("loop.json");
  const std::string log = scratch_file("loop.log");
  const Outcome free = run_program({"run", "-q", "--", SWAPMM_TEST_OPENCL_PROGRAM, "recorded.loop"});
  const Outcome outcome = run_program({"record", "--out", trace, "--log", log, "--data", "-q", "--budget", "1MiB", "--",
                                       SWAPMM_TEST_OPENCL_PROGRAM, "recorded.loop"});
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.out == free.out);
  CHECK(has(outcome.err, "a sequence of 4 repeats 12 times and covers"));
  CHECK(has(outcome.err, "2 operations, 3 tensors, 1 host read"));
  CHECK(has(outcome.err, "not in the trace: accesses: 4 times a kernel may write a buffer"));
  CHECK(folders_of_record() == before);
  CHECK((fs::status(log).permissions() & (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none);

  const auto fits = run_json({"fit", trace, "--budget", "192KiB"});
  CHECK(fits.at("fits") == true);
  CHECK(number(fits, "needs.peak_bytes") == 196608);
  const std::string text = contents(trace);
  CHECK(has(text, "\"name\": \"blend\""));
  CHECK(has(text, "\"kind\": \"input\""));
  CHECK_FALSE(has(text, "\"duration_ns\": 0,"));

  const auto native = run_json({"replay", log});
  const auto layered = run_json({"replay", log, "--budget", "200000", "-q"});
  for (const auto& answer : {native, layered}) {
    CHECK(number(answer, "compared") == 12);
    CHECK(answer.at("different").as_array().empty());
    CHECK(answer.at("failed").as_array().empty());
  }
  CHECK(text_at(native, "digest") == text_at(layered, "digest"));
}

TEST_CASE("a log without inputs is replayed with others, the same ones for the same seed") {
  const std::string log = scratch_file("bare.log");
  REQUIRE(run_program({"record", "--log", log, "-q", "--", SWAPMM_TEST_OPENCL_PROGRAM, "recorded.loop"}).code == 0);
  const auto one = run_json({"replay", log});
  CHECK(number(one, "compared") == 0);
  CHECK(text_at(run_json({"replay", log}), "digest") == text_at(one, "digest"));
  CHECK(text_at(run_json({"replay", log, "--seed", "2"}), "digest") != text_at(one, "digest"));
  const Outcome told = run_program({"replay", log});
  CHECK(has(told.out, "from seed 1: the log has none"));
}

TEST_CASE("what cannot be replayed is skipped, and told") {
  const std::string log = scratch_file("images.log");
  REQUIRE(
      run_program({"record", "--log", log, "--data", "-q", "--", SWAPMM_TEST_OPENCL_PROGRAM, "images.mapped"}).code ==
      0);
  const Outcome told = run_program({"replay", log});
  CHECK(has(told.out, "objects of kind image"));
  CHECK(has(told.out, "commands on images, shared virtual memory or functions of the host"));
}

TEST_CASE("what a launch that is skipped would have written does not depend on chance") {
  const std::string log = scratch_file("linked.log");
  REQUIRE(run_program({"record", "--log", log, "-q", "--", SWAPMM_TEST_OPENCL_PROGRAM, "programs.compiled_and_linked"})
              .code == 0);
  std::vector<std::string> digests;
  for (const char* const pattern : {"1", "77"}) {  // what the C library leaves in memory
    REQUIRE(::setenv("MALLOC_PERTURB_", pattern, 1) == 0);
    const auto told = run_json({"replay", log});
    digests.push_back(text_at(told, "digest"));
  }
  ::unsetenv("MALLOC_PERTURB_");
  CHECK(digests[0] == digests[1]);
  CHECK(has(run_program({"replay", log}).out, "launches of kernels that are not there"));
}

TEST_CASE("programs without a loop, without OpenCL, or with an error of their own") {
  const std::string trace = scratch_file("none.json");
  const Outcome once =
      run_program({"record", "--out", trace, "-q", "--", SWAPMM_TEST_OPENCL_PROGRAM, "buffers.never_written"});
  CHECK(once.code == 1);
  CHECK(has(once.err, "no trace: "));
  const Outcome none = run_program({"record", "--out", trace, "-q", "--", "/bin/sh", "-c", "true"});
  CHECK(none.code == 1);
  CHECK(has(none.err, "did not load the layer"));
  const Outcome failed = run_program({"record", "--out", trace, "-q", "--", "/bin/sh", "-c", "exit 7"});
  CHECK(failed.code == 7);
  CHECK_FALSE(fs::exists(trace));
}

#endif
