// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "buffers.hpp"
#include "csv.hpp"
#include "program.hpp"
#include "support/failing_new.hpp"
#include "test_data.hpp"

using namespace swapmm;
using namespace swapmm::test;
using boost::json::object;

namespace {

const std::string instance = SWAPMM_TEST_DATA "/packing/A.1048576.csv";
const std::string hard_instance = SWAPMM_TEST_DATA "/packing/E.1048576.csv";

struct Placed {
  std::uint64_t lower, upper, size, offset;
};

std::vector<Placed> placed(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  CHECK(line == "id,lower,upper,size,offset");
  std::vector<Placed> result;
  while (std::getline(lines, line)) {
    const std::vector<std::string_view> fields = cli::csv_fields(line);
    REQUIRE(fields.size() == 5);
    const auto field = [&](std::size_t i) { return std::stoull(std::string(fields[i])); };
    result.push_back({field(1), field(2), field(3), field(4)});
  }
  return result;
}

/// The height, and that no two share a byte at a time: checked here by comparing all pairs.
std::uint64_t height_of(const std::vector<Placed>& buffers) {
  std::uint64_t height = 0;
  for (const Placed& a : buffers) {
    height = std::max(height, a.offset + a.size);
    for (const Placed& b : buffers) {
      if (&a == &b || a.lower >= b.upper || b.lower >= a.upper) continue;
      CHECK_MESSAGE((a.offset + a.size <= b.offset || b.offset + b.size <= a.offset), "two buffers share bytes");
    }
  }
  return height;
}

std::string problem_of(std::string_view csv) {
  const auto buffers = cli::read_buffers(csv);
  return buffers ? "none" : buffers.problem().message;
}

}  // namespace

TEST_CASE("pack prints load, height and time, and writes offsets that hold") {
  const std::string file = scratch_file("packed.csv");
  const object answer = run_json({"pack", instance, "--out", file});
  CHECK(number(answer, "buffers") == 154);
  CHECK(number(answer, "load_bytes") == 1'048'576);
  CHECK(number(answer, "height_bytes") >= 1'048'576);
  CHECK(number(answer, "height_bytes") <= 1'200'000);
  CHECK(number(answer, "time_ns") > 0);
  CHECK(answer.at("fits") == true);
  const std::vector<Placed> buffers = placed(contents(file));
  CHECK(buffers.size() == 154);
  CHECK(static_cast<double>(height_of(buffers)) == number(answer, "height_bytes"));
}

TEST_CASE("pack within a capacity, or not") {
  const std::string file = scratch_file("packed.csv");
  const object fits = run_json({"pack", instance, "--capacity", "1200KiB", "--out", file, "--alignment", "512"});
  CHECK(fits.at("fits") == true);
  const std::vector<Placed> buffers = placed(contents(file));
  CHECK(height_of(buffers) <= 1'228'800);
  for (const Placed& buffer : buffers) CHECK(buffer.offset % 512 == 0);

  const std::string none = scratch_file("none.csv");
  const object misfit = run_json({"pack", instance, "--capacity", "1000000", "--time-limit", "50ms", "--out", none}, 1);
  CHECK(misfit.at("fits") == false);
  CHECK(number(misfit, "capacity_bytes") == 1'000'000);
  CHECK(!std::filesystem::exists(none));
  const Outcome outcome = run_program({"pack", instance, "--capacity", "1000000"});
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("capacity            1000000 bytes: cannot fit") != std::string::npos);
}

TEST_CASE("a time limit ends the search, whether with a capacity or without") {
  for (const std::vector<std::string>& capacity : {std::vector<std::string>{}, {"--capacity", "1MiB"}}) {
    std::vector<std::string> arguments{"pack", hard_instance, "--time-limit", "300ms"};
    arguments.insert(arguments.end(), capacity.begin(), capacity.end());
    const object answer = run_json(arguments, capacity.empty() ? 0 : 1);
    // It takes far longer to pack this one, and a machine may be busy.
    CHECK(number(answer, "time_ns") > 290e6);
    CHECK(number(answer, "time_ns") < 600e6);
  }
}

TEST_CASE("what is as low as the load needs no more time") {
  const std::string csv = scratch_file("low.csv");
  write_contents(csv, "id,lower,upper,size\na,0,10,100\nb,5,15,30\nc,10,20,100\n");
  CHECK(number(run_json({"pack", csv, "--time-limit", "60s"}), "time_ns") < 10e9);
}

TEST_CASE("upper is exclusive, and buffers that meet in time share no slot") {
  const std::string csv = scratch_file("meet.csv");
  write_contents(csv, "id,lower,upper,size\nfirst,0,10,100\nsecond,10,20,100\nlong,5,15,30\n");
  const Outcome outcome = run_program({"pack", csv, "--out", "-"});
  CHECK(outcome.code == 0);
  const std::vector<Placed> buffers = placed(outcome.out);
  REQUIRE(buffers.size() == 3);
  CHECK(height_of(buffers) == 130);
  CHECK(number(run_json({"pack", csv}), "load_bytes") == 130);
}

TEST_CASE("columns may stand in any order, and others are skipped") {
  const auto buffers = cli::read_buffers("size,hint,upper, lower ,id\r\n10,x,5,2,one\r\n\r\n20,,9,3,two");
  REQUIRE(buffers.has_value());
  REQUIRE(buffers->size() == 2);
  CHECK((*buffers)[1].id == "two");
  CHECK((*buffers)[1].lower == 3);
  CHECK((*buffers)[1].upper == 9);
  CHECK((*buffers)[1].size == Bytes{20});
}

TEST_CASE("reading takes memory of at most four times the text, however it is made") {
  const std::string header = "id,lower,upper,size";
  const auto repeated = [](std::size_t times, const std::string& text) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
  };
  const std::vector<std::string> texts = {
      header + repeated(131'073, "\n,0,1,0"),                                  // the shortest lines
      header + repeated(200'000, ",") + "\n1,2,3,4" + repeated(400'000, ","),  // columns that nobody asked for
      header + repeated(1'000'000, "\n"),
      header + "\n" + repeated(100'000, "a long name") + ",0,1,0",
  };
  for (const std::string& text : texts) {
    CAPTURE(text.substr(0, 40));
    const PeakMemory memory;
    (void)cli::read_buffers(text);
    CHECK(memory.bytes() < 4 * text.size());
  }
}

TEST_CASE("among many ids the first one that repeats is found, and different ones are none") {
  std::string text = "id,lower,upper,size\n";
  for (int i = 0; i < 20'000; ++i) text += "buffer" + std::to_string(i * 7919 % 20'011) + ",0,1,1\n";
  CHECK(problem_of(text) == "none");
  CHECK(problem_of(text + "new,0,1,1\nbuffer0,0,1,1\nbuffer7919,0,1,1\n") ==
        "line 20003: id: \"buffer0\" stands in line 2 already");
}

TEST_CASE("buffers of no bytes have no ratio to their load") {
  const std::string csv = scratch_file("zero.csv");
  write_contents(csv, "id,lower,upper,size\na,0,10,0\nb,5,15,0\n");
  const Outcome outcome = run_program({"pack", csv});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("height              0 bytes, n/a x the load") != std::string::npos);
}

TEST_CASE("a bad file is told by line and column") {
  CHECK(problem_of("") == "line 1: no column is called \"id\"; there must be id,lower,upper,size");
  CHECK(problem_of("id,lower,size\n1,2,3") ==
        "line 1: no column is called \"upper\"; there must be id,lower,upper,size");
  CHECK(problem_of("id,lower,upper,size\n") == "line 2: there is no buffer");
  CHECK(problem_of("id,lower,upper,size\n0,0,5,7\n1,2,3") == "line 3: size is missing");
  CHECK(problem_of("id,lower,upper,size,size\n0,0,5,7,7") == "line 1: two columns are called \"size\"");
  CHECK(problem_of("id,lower,upper,size\n\"a,b\",0,5,7") == "line 2: has a quote: fields are plain text");
  CHECK(problem_of("id,lower,upper,size\n0,0,5,-7") == "line 2: size: \"-7\" is not a whole number below 2^62");
  CHECK(problem_of("id,lower,upper,size\n0,zero,5,7") == "line 2: lower: \"zero\" is not a whole number below 2^62");
  CHECK(problem_of("id,lower,upper,size\nb0,0,5,7\n\nb1,0,5,7\n b0 ,6,9,7\nb1,6,9,7") ==
        "line 5: id: \"b0\" stands in line 2 already");
  CHECK(problem_of("size,id,lower,upper\n1,a,0,1\n1,b,0,1\n1,c,0,1\n1,b,1,2\n1,b,2,3") ==
        "line 5: id: \"b\" stands in line 3 already");
  CHECK(problem_of("id,lower,upper,size\n,0,5,7\n,0,5,7") == "line 3: id: \"\" stands in line 2 already");
  CHECK(problem_of("id,lower,upper,size\n0,5,5,7") == "line 2: upper: 5 is not above lower, 5");
  CHECK(problem_of("id,lower,upper,size\n0,0,5,4611686018427387904") ==
        "line 2: size: \"4611686018427387904\" is not a whole number below 2^62");
  const auto large = cli::read_buffers("id,lower,upper,size\n0,0,5,4611686018427387903\n1,0,5,4611686018427387903");
  REQUIRE(large.has_value());
  CHECK(!cli::packing_problem_of(*large, Bytes{1}).has_value());

  const std::string csv = scratch_file("bad.csv");
  write_contents(csv, "id,lower,upper,size\n0,7,5,3\n");
  check_refused({"pack", csv}, 3, {csv + ": line 2: upper"});
  write_contents(csv, "id,lower,upper,size\nx,1,5,3\nx,6,8,3\n");
  check_refused({"pack", csv}, 3, {csv + ": line 3: id: \"x\" stands in line 2 already"});
  check_refused({"pack", "/nonexistent/csv"}, 4, {"/nonexistent/csv"});
  check_refused({"pack", instance, "--capacity", "lots"}, 2, {"--capacity", "\"lots\""});
  check_refused({"pack", instance, "--alignment", "0"}, 2, {"--alignment", "\"0\""});
}
