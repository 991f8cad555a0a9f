// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "program.hpp"

namespace swapmm::test::fit_split_test {
using boost::json::object;

std::string tensor(const std::string& name, std::uint64_t bytes, const std::string& kind) {
  return R"({"name": ")" + name + R"(", "bytes": )" + std::to_string(bytes) + R"(, "kind": ")" + kind + R"("})";
}

std::string operation(const std::string& name, std::uint64_t time, const std::string& lists) {
  return R"({"name": ")" + name + R"(", "duration_ns": )" + std::to_string(time) + ", " + lists + "}";
}

/// A step of one layer: 100 bytes and 1 us a sample each way, and 10 us whatever the number of samples. With
/// `normalizes`, the way back reads a mean.
std::string step(std::uint64_t samples, bool normalizes = false) {
  const std::string file = scratch_file("step" + std::to_string(samples) + (normalizes ? "n" : "") + ".json");
  const std::string mean = normalizes ? ", 4" : "";
  write_contents(
      file,
      R"({"format": "swapmm-trace", "version": 1, "name": "step", "tensors": [)" + tensor("x", 100 * samples, "input") +
          ", " + tensor("w", 1000, "persistent") + ", " + tensor("y", 100 * samples, "transient") + ", " +
          tensor("g", 1000, "transient") + ", " + tensor("mean", 8, "transient") + R"(], "operations": [)" +
          operation("forward", 10'000 + 1000 * samples, R"("reads": [0, 1], "writes": [2, 4], "updates": [])") + ", " +
          operation("backward", 10'000 + 1000 * samples,
                    R"("reads": [0, 2)" + mean + R"(], "writes": [3], "updates": [])") +
          ", " + operation("learn", 5000, R"("reads": [3], "writes": [], "updates": [1])") + "]}");
  return file;
}

std::vector<std::string> fit(std::uint64_t one, std::uint64_t other, const std::string& budget,
                             bool normalizes = false) {
  return {"fit",         step(one, normalizes),
          "--split",     step(other, normalizes),
          "--batches",   std::to_string(one) + "," + std::to_string(other),
          "--budget",    budget,
          "--bandwidth", "1GB/s",
          "--alignment", "1"};
}

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("fit says in how many pieces a batch fits, and what that costs") {
  // 200 bytes a sample and 1008 beside them: 64 samples fit, 86 do not.
  const object answer = run_json(fit(256, 32, "16000"));
  CHECK(answer.at("fits") == true);
  CHECK(answer.at("whole_fits") == false);
  CHECK(number(answer, "batch") == 256);
  CHECK(number(answer, "least_pieces") == 4);
  CHECK(number(answer, "pieces") == 4);
  CHECK(number(answer, "unsplit_ns") == 2 * 266'000 + 5000);
  CHECK(number(answer, "operations.in_each_piece") == 2);
  CHECK(number(answer, "operations.after") == 1);
  CHECK(answer.at("statistics").as_array().empty());
  const object& first = answer.at("tries").at(0).as_object();
  CHECK(number(first, "pieces") == 4);
  CHECK(number(first, "largest_piece") == 64);
  CHECK(number(first, "predicted.compute_ns") == 2 * (4 * 10'000 + 256'000) + 5000);
  CHECK(number(first, "slowdown") == doctest::Approx(number(first, "predicted.iteration_ns") / 537'000));
  CHECK(number(first, "slowdown") == number(answer, "slowdown"));

  const Outcome outcome = run_program(fit(256, 32, "16000"));
  CHECK(outcome.code == 0);
  for (const std::string text :
       {"step on 16.00 KB, 1.00 GB/s each way", "fits                batch 256 does not fit; 4 x 64 does, at 1.",
        "operations          2 for each piece, 0 before and 1 after them", "unsplit, no stall   537.000 us",
        "\n4 x 64 "}) {
    CAPTURE(text);
    CHECK(outcome.out.find(text) != std::string::npos);
  }
  CHECK(outcome.out.find("batch normalisation") == std::string::npos);
}

TEST_CASE("fit --split of another batch than those of the traces, and of one that fits whole") {
  object answer = run_json(with(fit(8, 32, "16000"), {"--batch", "100"}));
  CHECK(number(answer, "batch") == 100);
  CHECK(number(answer, "least_pieces") == 2);
  answer = run_json(with(fit(8, 32, "16000"), {"--batch", "74"}));
  CHECK(answer.at("whole_fits") == true);
  CHECK(number(answer, "least_pieces") == 1);
  const Outcome outcome = run_program(with(fit(8, 32, "16000"), {"--batch", "74"}));
  CHECK(outcome.out.find("batch 74 fits whole, at 1.") != std::string::npos);
  CHECK(run_program(with(fit(8, 32, "16000"), {"--batch", "149"}))
            .out.find("149 does not fit; 3 pieces of 50 or 49 do, at") != std::string::npos);
}

TEST_CASE("fit --split says no where not even single samples fit, and names what may be statistics") {
  const object answer = run_json(fit(256, 32, "1200"), 1);
  CHECK(answer.at("fits") == false);
  CHECK(text_at(answer, "problem").find("not even 256 pieces fit") != std::string::npos);
  const object normalized = run_json(fit(256, 32, "16000", true));
  REQUIRE(normalized.at("statistics").as_array().size() == 1);
  CHECK(text_at(normalized.at("statistics").at(0).as_object(), "name") == "mean");
  CHECK(run_program(fit(256, 32, "16000", true)).out.find("  tensor 4 \"mean\"") != std::string::npos);
}

TEST_CASE("fit --split refuses what makes no sense in one line") {
  const std::vector<std::string> plain{"fit", step(8), "--budget", "16000"};
  check_refused(with(plain, {"--split", step(32)}), 2, {"--split needs --batches"});
  check_refused(with(plain, {"--split", step(32), "--batches", "8"}), 2, {"--split needs --batches"});
  check_refused(with(plain, {"--batches", "8,32"}), 2, {"only for --split"});
  check_refused(with(plain, {"--batch", "8"}), 2, {"only for --split"});
  check_refused(with(plain, {"--split", step(32), "--batches", "8,x"}), 2, {"--batches", "\"x\" is no whole number"});
  check_refused(with(plain, {"--split", step(32), "--batches", "8,8"}), 2, {"both traces have the same batch"});
  check_refused(with(plain, {"--split", step(32), "--batches", "32,8"}), 2,
                {"tensor 0 (x) has 3200 bytes for 8 samples"});
  check_refused(with(plain, {"--split", two_weights(), "--batches", "8,32"}), 2, {"not of the same program"});
  check_refused(with(plain, {"--split", "missing.json", "--batches", "8,32"}), 4, {"missing.json"});
  check_refused({"fit", step(8), "--machine", "v2-missing", "--split", step(32), "--batches", "8,32"}, 2,
                {"v2-missing"});
}

}  // namespace swapmm::test::fit_split_test
