// SPDX-License-Identifier: Apache-2.0
// The demo around the network: what it understands, which runs it makes, and what it writes. On a device that does
// nothing; that training within a budget gives the same bits is tested in training_test.cpp.
#include "fashion_mnist/demo.hpp"

#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "fashion_mnist/arguments.hpp"
#include "fashion_mnist/results.hpp"
#include "neural/null_math.hpp"
#include "neural/pictures.hpp"
#include "neural/same_bits.hpp"

namespace {

// Weights do not change on a device that does nothing: what differs is compared here.
TEST_CASE("equal to the bit is more and less than equal") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(neural::same_bits({1, nan}, {1, nan}));
  CHECK(!neural::same_bits({0.0F}, {-0.0F}));
  CHECK(!neural::same_bits({1, 2}, {1}));
  CHECK(!neural::same_bits({1, 2}, {1, 2.0000002F}));
  CHECK(neural::same_bits({}, {}));
}

bool interrupt = false;

using namespace swapmm;
using namespace swapmm::literals;

fashion::Arguments parse(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return fashion::parse(pointers);
}
std::string refusal(std::vector<std::string> words) {
  try {
    (void)parse(std::move(words));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

neural::Pictures pictures(std::size_t count) {
  const test::Batch batch = test::batch(count, 3);
  return {batch.images, batch.labels};
}

const neural::FashionMnist& data() {
  static const neural::FashionMnist data{pictures(128 * 30), pictures(200)};
  return data;
}

struct DemoRun {
  fashion::DemoResult result;
  std::string said;
};
DemoRun run(const fashion::Arguments& arguments) {
  test::NullMath math;
  const test::NullBackend backend;
  std::ostringstream said;
  fashion::Demo<test::NullMath> demo(math, backend, data(), arguments, said);
  fashion::DemoResult result = demo.run();
  return {std::move(result), said.str()};
}

struct DemoFolder {
  DemoFolder() { std::filesystem::create_directories(path); }
  DemoFolder(const DemoFolder&) = delete;
  DemoFolder& operator=(const DemoFolder&) = delete;
  ~DemoFolder() { std::filesystem::remove_all(path); }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("swapmm_demo_test." + std::to_string(::getpid()));
};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

bool fashion::interrupted() { return interrupt; }

TEST_CASE("the demo takes sizes and parts of the peak as budgets") {
  CHECK(parse({"--budget", "25%"}).budget->fraction == 0.25);
  CHECK(parse({"--budget", "12.5%"}).budget->fraction == 0.125);
  CHECK(parse({"--budget", "64MiB"}).budget->bytes == 64_MiB);
  CHECK(parse({"--budget", "1.5MB"}).budget->bytes == 1'500'000_bytes);
  CHECK(parse({"--budget", "1GiB"}).budget->bytes == 1_GiB);
  CHECK(!parse({}).budget.has_value());
}

TEST_CASE("the demo's other options") {
  const fashion::Arguments given =
      parse({"--epochs", "3", "--batch", "128", "--device", "pthread", "--planner", "belady", "--report", "x.json"});
  CHECK(given.epochs == 3);
  CHECK(given.batch == 128);
  CHECK(given.device == "pthread");
  CHECK(given.planner == "belady");
  CHECK(given.report == "x.json");
  CHECK(!given.help);
  CHECK(given.convolutions.empty());
  CHECK(!given.pieces.has_value());
  CHECK(parse({"--budget", "25%", "--pieces", "4"}).pieces == 4);
  CHECK(parse({"--budget", "25%", "--codec", "10%"}).codec->fraction == 0.1);
  CHECK(parse({"--codec", "8MiB", "--budget", "64MiB"}).codec->bytes == 8_MiB);
  CHECK(parse({"--ways", "swap,recompute"}).recompute);
  CHECK(!parse({"--ways", "swap"}).recompute);
  CHECK(parse({"--link", "1.5GB/s"}).link == 1'500'000'000);
  CHECK(parse({"--link", "2MiB/s"}).link == 2U << 20U);
  CHECK(parse({"--replicas", "2", "--share-links", "3GB/s"}).share_links == 3'000'000'000);
  CHECK(parse({"--replicas", "2", "--share-links", "measured"}).share_links == 0);
  CHECK(!parse({"--replicas", "2"}).share_links);
  CHECK(refusal({"--share-links", "measured"}) == "--share-links needs --replicas, at least 2 in a process");
  CHECK(refusal({"--replicas", "2", "--share-links", "fast"}) ==
        "--share-links takes a speed (500MB/s, 1GB/s, 1.5GiB/s, ...), not \"fast\"");
  CHECK(parse({"--replicas", "3", "--chunk", "2"}).replicas == 3);
  CHECK(parse({"--replicas", "3", "--chunk", "2"}).chunk == 2);
  CHECK(parse({}).replicas == 0);
  CHECK(parse({"--pieces", "choose", "--budget", "25%"}).pieces == 0);
  CHECK(parse({"--convolutions", "gemm"}).convolutions == "gemm");
  CHECK(parse({"--device", "cuda:1", "--convolutions", "cudnn"}).convolutions == "cudnn");
  CHECK(parse({"--help"}).help);
}

TEST_CASE("what the demo does not understand is named") {
  CHECK(refusal({"--bugdet", "25%"}) == "there is no option --bugdet");
  CHECK(refusal({"--budget"}) == "--budget needs a value");
  for (const char* const text : {"0%", "-1%", "25", "25 %", "x", "1TB", "nan%", "1e99GB", "inf%"}) {
    CHECK(refusal({"--budget", text}).find('"' + std::string(text) + '"') != std::string::npos);
  }
  CHECK(refusal({"--batch", "10"}).find("a multiple of 4, not \"10\"") != std::string::npos);
  CHECK(refusal({"--batch", "0"}).find("\"0\"") != std::string::npos);
  CHECK(refusal({"--epochs", "1.5"}).find("\"1.5\"") != std::string::npos);
  CHECK(refusal({"--convolutions", "fft"}) == "--convolutions takes gemm or cudnn, not \"fft\"");
  CHECK(refusal({"--budget", "25%", "--pieces", "0"}).find("or choose, not \"0\"") != std::string::npos);
  CHECK(refusal({"--budget", "25%", "--pieces", "few"}).find("\"few\"") != std::string::npos);
  CHECK(refusal({"--pieces", "4"}) == "--pieces needs --budget");
  CHECK(refusal({"--codec", "10%"}) == "--codec needs --budget");
  CHECK(refusal({"--ways", "recompute"}) == "--ways takes swap or swap,recompute, not \"recompute\"");
  for (const char* const text : {"1GB", "25%/s", "0MB/s", "-1GB/s", "/s"}) {
    CHECK(refusal({"--link", text}) ==
          "--link takes a speed (500MB/s, 1GB/s, 1.5GiB/s, ...), not \"" + std::string(text) + '"');
  }
  CHECK(refusal({"--ways", "swap,recompute", "--link", "1GB/s", "--replicas", "2"}).find("--ways") !=
        std::string::npos);
  CHECK(refusal({"--ways", "swap,recompute", "--budget", "25%", "--pieces", "4"}) ==
        "--ways swap,recompute does not go with --pieces");
  CHECK(refusal({"--ways", "swap,recompute", "--planner", "belady"}) == "--ways swap,recompute needs the planner best");
  CHECK(refusal({"--codec", "much", "--budget", "1GiB"}) ==
        "--codec takes a part of the budget (25%) or a size (1000000B, 64MB, 64MiB, 1GB, 1GiB), not \"much\"");
  CHECK(refusal({"--replicas", "65"}) == "--replicas takes a whole number from 1 to 64, not \"65\"");
  CHECK(refusal({"--chunk", "8"}) == "--chunk takes a whole number from 1 to 7, not \"8\"");
  CHECK(refusal({"--report", "x", "--replicas", "2"}) ==
        "--pieces, --report, --codec, --ways and --link do not go with replicas");
  CHECK(refusal({"--planner", "fastest"}).find("excess-overlap") != std::string::npos);
}

TEST_CASE("the demo makes four runs, the third to the end, and compares the weights of each") {
  fashion::Arguments arguments;
  arguments.batch = 128;
  const DemoRun demo = run(arguments);
  REQUIRE(demo.result.runs.size() == 4);
  const Bytes peak = demo.result.memory.total;
  CHECK(demo.result.steps == 60);
  CHECK(demo.result.runs[0].budget == peak);
  CHECK(demo.result.runs[1].budget.value == peak.value / 2);
  CHECK(demo.result.runs[2].budget.value == peak.value / 4);
  CHECK(demo.result.runs[3].budget == demo.result.memory.largest_bundle);
  for (const fashion::RunResult& one : demo.result.runs) {
    CHECK(one.weights_identical);
    CHECK(one.steps == (one.accuracy ? 60 : 26));
  }
  CHECK(demo.result.runs[2].accuracy.has_value());
  CHECK(!demo.result.runs[1].accuracy.has_value());
  CHECK(demo.result.runs[2].h2d > demo.result.runs[0].h2d);
  const fashion::MemoryAtPeak& memory = demo.result.memory;
  CHECK(memory.activations + memory.gradients + memory.parameters + memory.inputs + memory.work_areas == memory.total);
  CHECK(memory.gradients.value > 0);
  CHECK(demo.said.find("iteration") != std::string::npos);
}

TEST_CASE("with a budget given there is one run, to the end") {
  fashion::Arguments arguments = parse({"--budget", "40%"});
  arguments.batch = 128;
  const DemoRun demo = run(arguments);
  REQUIRE(demo.result.runs.size() == 1);
  CHECK(demo.result.runs[0].accuracy.has_value());
  CHECK(demo.result.runs[0].budget.value ==
        static_cast<std::uint64_t>(0.4 * static_cast<double>(demo.result.memory.total.value)));
}

TEST_CASE("in pieces the demo trains within a budget below the largest bundle of the whole batch") {
  for (const char* const pieces : {"5", "choose"}) {
    CAPTURE(std::string(pieces));
    fashion::Arguments arguments = parse({"--budget", "15%", "--pieces", pieces, "--planner", "belady"});
    arguments.batch = 128;
    const DemoRun demo = run(arguments);
    REQUIRE(demo.result.runs.size() == 1);
    const fashion::RunResult& one = demo.result.runs[0];
    CHECK(demo.result.memory.largest_bundle > one.budget);
    CHECK(one.weights_identical);
    CHECK(one.accuracy.has_value());
    CHECK(demo.result.pieces >= 2);
    const auto& tried = demo.result.pieces_tried;
    REQUIRE(!tried.empty());
    CHECK(tried.front().predicted_ms.has_value());
    std::ostringstream table;
    fashion::print(table, demo.result);
    CHECK(table.str().find("divided into " + std::to_string(demo.result.pieces) + " pieces") != std::string::npos);
  }
}

TEST_CASE("a budget below the largest bundle is an error that names the operation") {
  fashion::Arguments arguments = parse({"--budget", "1%"});
  arguments.batch = 128;
  test::NullMath math;
  std::ostringstream said;
  fashion::Demo<test::NullMath> demo(math, test::NullBackend(), data(), arguments, said);
  CHECK_THROWS_WITH_AS((void)demo.run(), doctest::Contains("operation \""), BundleTooLarge);
  CHECK(said.str().find("iteration") == std::string::npos);  // before the training
}

TEST_CASE("a training that is too short to be measured is refused") {
  fashion::Arguments arguments;
  arguments.batch = 256;
  arguments.epochs = 1;
  CHECK_THROWS_WITH_AS(run(arguments), doctest::Contains("15 iterations"), std::invalid_argument);
}

TEST_CASE("an interrupt ends the demo between two iterations") {
  fashion::Arguments arguments;
  arguments.batch = 128;
  interrupt = true;
  CHECK_THROWS_AS(run(arguments), fashion::Interrupted);
  interrupt = false;
}

TEST_CASE("report, trace and picture stand beside each other, each whole") {
  const DemoFolder folder;
  fashion::Arguments arguments = parse({"--budget", "50%"});
  arguments.batch = 128;
  DemoRun demo = run(arguments);
  demo.result.runs[0].weights_identical = false;
  demo.result.runs[0].predicted_ms.reset();
  const fashion::ReportFiles files = fashion::write_files(folder.path / "demo-report.json", demo.result);
  CHECK(folder.files() == std::vector<std::string>{"demo-memory.svg", "demo-report.json", "demo-trace.json"});
  const boost::json::object report = boost::json::parse(text_of(files.report)).as_object();
  CHECK(report.at("peak_live_bytes").to_number<std::uint64_t>() == demo.result.memory.total.value);
  CHECK(report.at("device").as_string() == demo.result.device);
  // The parser may be off by a unit in the last place.
  CHECK(report.at("unlimited_ms").to_number<double>() == doctest::Approx(demo.result.unlimited_ms).epsilon(1e-12));
  CHECK(report.at("test_accuracy").to_number<double>() == doctest::Approx(demo.result.test_accuracy).epsilon(1e-12));
  REQUIRE(report.at("runs").as_array().size() == 1);
  const boost::json::object& one = report.at("runs").as_array()[0].as_object();
  CHECK(one.at("budget_bytes").to_number<std::uint64_t>() == demo.result.runs[0].budget.value);
  CHECK(one.at("budget_fraction").to_number<double>() == doctest::Approx(0.5).epsilon(1e-6));
  CHECK(one.at("k").to_number<double>() == doctest::Approx(2).epsilon(1e-6));
  CHECK(one.at("h2d_bytes").to_number<std::uint64_t>() == demo.result.runs[0].h2d.value);
  CHECK(one.at("d2h_bytes").to_number<std::uint64_t>() == demo.result.runs[0].d2h.value);
  CHECK(one.at("weights_identical").as_bool() == false);
  CHECK(one.at("predicted_ms").is_null());
  for (const char* const time : {"on_demand_ms", "scheduled_ms", "lower_bound_ms", "stall_ms"}) {
    CHECK(one.at(time).is_number());
  }
  CHECK(boost::json::parse(text_of(files.trace)).is_object());
  CHECK(text_of(files.picture).find("<svg") != std::string::npos);
  std::ostringstream table;
  fashion::print(table, demo.result);
  CHECK(table.str().find("DIFFERENT") != std::string::npos);
  CHECK(!demo.result.all_identical());
}

TEST_CASE("a report that cannot be written names the file, and leaves none") {
  const DemoFolder folder;
  const auto nowhere = folder.path / "missing" / "demo-report.json";
  CHECK_THROWS_WITH_AS(fashion::write_files(nowhere, fashion::DemoResult{}),
                       doctest::Contains((folder.path / "missing").c_str()), std::runtime_error);
  CHECK_THROWS_AS(fashion::check_writable(nowhere), std::runtime_error);
  CHECK_THROWS_AS(fashion::check_writable(folder.path), std::runtime_error);
  CHECK(folder.files().empty());
  fashion::check_writable(folder.path / "demo-report.json");
  CHECK(folder.files().empty());
}
