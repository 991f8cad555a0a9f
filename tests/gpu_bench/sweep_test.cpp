// SPDX-License-Identifier: Apache-2.0
// The benchmark's course, with the stack of blocks on the simulated device: budgets, steps, records.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include "bench/gpu/records.hpp"
#include "bench/gpu/sweep.hpp"
#include "transformer/run.hpp"

namespace {

using namespace swapmm;
using bench::Record;

struct Subject {
  using Math = test::HostMath<float>;
  using Backend = simulated::Backend;

  // A device that forgets a bit of one weight in its 20th step.
  explicit Subject(bool forgets_ = false) : forgets(forgets_) {}
  [[nodiscard]] Backend backend() const {
    simulated::Options device = test::stack_device(simulated::Order::virtual_time);
    device.h2d.bytes_per_second = device.d2h.bytes_per_second = bytes_per_second;
    return Backend(device);
  }
  [[nodiscard]] static Bytes room() { return Bytes{std::uint64_t{4} << 20U}; }

  struct Run {
    Run(Subject& of, MemoryManager<Backend>& manager, bool again)
        : forgets(of.forgets && manager.report().device_budget < room()),
          network(of.math, manager, bench::with_replays(test::small_stack, again)) {}
    void step() {
      network.train(0.3F);
      if (forgets && ++steps == 20) {
        int which = 0;
        network.for_each_weight([&](auto& tensor) {
          if (which++ != 4) return;
          auto values = tensor.download();
          values[0] *= 1.0000002F;
          tensor.upload(values);
        });
      }
    }
    [[nodiscard]] std::uint64_t digest() { return network.digest(); }

    bool forgets;
    transformer::Network<Math> network;
    int steps = 0;
  };

  bool forgets;
  std::uint64_t bytes_per_second = 1'000'000'000;
  Math math;
};

const Record& find(const std::vector<Record>& records, const std::string& contender, double k) {
  const auto found = std::find_if(records.begin(), records.end(),
                                  [&](const Record& r) { return r.contender == contender && r.k == k; });
  REQUIRE(found != records.end());
  return *found;
}

std::vector<Record> sweep(Subject& subject, const std::vector<double>& ks,
                          const std::vector<bench::Way>& ways = {bench::Way::copies}) {
  std::vector<Record> records;
  bench::Sweep<Subject> sweep(subject, bench::Steps{}, ways, [&](const Record& record) { records.push_back(record); });
  for (const double k : ks) sweep.run(k);
  return records;
}

}  // namespace

TEST_CASE("each budget is measured on demand and by a plan, and all results are those of the first run") {
  Subject subject;
  const std::vector<Record> records = sweep(subject, {1, 2});
  REQUIRE(records.size() == 1 + 2 * 3);
  const Record& resident = records.front();
  CHECK(resident.contender == "all-resident");
  CHECK(resident.h2d.value == 0);
  CHECK(resident.iterations_ms.size() == 5);
  for (const Record& record : records) {
    CAPTURE(record.contender);
    CAPTURE(record.k);
    CHECK(record.note.empty());
    CHECK(record.memory.value == static_cast<std::uint64_t>(static_cast<double>(resident.memory.value) / record.k));
    if (record.contender != "floor") CHECK(record.identical.value_or(false));
  }
  const Record& half = find(records, "swapmm plan", 2);
  REQUIRE(half.predicted.has_value());
  CHECK(half.h2d == half.predicted->h2d);
  CHECK(half.d2h == half.predicted->d2h);
  CHECK(half.h2d.value > 0);
  CHECK(half.resident_ms.size() == half.iterations_ms.size());
  CHECK(find(records, "swapmm on demand", 2).h2d >= half.h2d);
  CHECK(find(records, "swapmm on demand", 2).iterations_ms.size() == 3);
  CHECK(find(records, "floor", 2).iterations_ms.front() * 1e6 ==
        doctest::Approx(static_cast<double>(half.predicted->lower_bound.count())));
  // Virtual time: what the operations take is the same wherever their data was before.
  CHECK(half.compute_ms == doctest::Approx(resident.compute_ms).epsilon(1e-9));
  CHECK(resident.compute_ms > 0);
}

TEST_CASE("and by a plan whose operations run again, too") {
  Subject subject;
  subject.bytes_per_second = 10'000'000;  // so slow that it pays
  const std::vector<Record> records = sweep(subject, {2}, {bench::Way::copies, bench::Way::recompute});
  REQUIRE(records.size() == 1 + 4);
  const Record& copies = find(records, "swapmm plan", 2);
  const Record& both = find(records, "swapmm plan, recompute", 2);
  CHECK(both.identical.value_or(false));
  CHECK(copies.replays == 0);
  CHECK(both.replays > 0);
  CHECK(both.replay_ms > 0);
  REQUIRE(both.predicted.has_value());
  CHECK(both.h2d == both.predicted->h2d);
  CHECK(both.h2d < copies.h2d);
  CHECK(both.compute_ms == doctest::Approx(copies.compute_ms + both.replay_ms).epsilon(1e-9));
}

TEST_CASE("one wrong bit is seen") {
  Subject subject(true);
  const std::vector<Record> records = sweep(subject, {2});
  CHECK_FALSE(find(records, "swapmm plan", 2).identical.value());
  CHECK(find(records, "swapmm on demand", 2).identical.value());  // has fewer steps
}

TEST_CASE("a budget below the largest bundle is said, not run") {
  Subject subject;
  const std::vector<Record> records = sweep(subject, {1000}, {bench::Way::copies, bench::Way::recompute});
  REQUIRE(records.size() == 4);
  CHECK(records[1].note.find("the largest bundle has ") == 0);
  CHECK(records[2].contender == "swapmm plan");
  CHECK(records[2].iterations_ms.empty());
  CHECK(records[3].contender == "swapmm plan, recompute");
  CHECK(records[3].iterations_ms.empty());
}

TEST_CASE("records as JSON have the fields that the plot reads") {
  Record record{"swapmm plan", 2, Bytes{1000}};
  record.iterations_ms = {3, 1, 2};
  record.resident_ms = {1, 1, 1};
  record.predicted.emplace();
  record.predicted->iteration = std::chrono::nanoseconds{2500000};
  record.predicted->lower_bound = std::chrono::nanoseconds{1500000};
  record.stalls = {{"conv1 waits", 0.25}};
  record.h2d = Bytes{7};
  record.identical = true;
  const boost::json::object o = bench::to_json("cnn", {{"batch", 4}}, record);
  CHECK(o.at("network").as_string() == "cnn");
  CHECK(o.at("config").at("batch").as_int64() == 4);
  CHECK(o.at("iteration_ms").as_double() == 2);
  CHECK(o.at("iterations_ms").as_array().size() == 3);
  CHECK(o.at("memory_bytes").to_number<int>() == 1000);
  CHECK(o.at("predicted_ms").as_double() == 2.5);
  CHECK(o.at("lower_bound_ms").as_double() == 1.5);
  CHECK(o.at("stalls").as_array().front().at("ms").as_double() == 0.25);
  CHECK(o.at("h2d_bytes").to_number<int>() == 7);
  CHECK(o.at("identical").as_bool());
  CHECK_FALSE(o.contains("note"));

  const auto path = std::filesystem::temp_directory_path() / "swapmm_records_test.json";
  bench::write_json(path, o);
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  CHECK(boost::json::parse(text.str()) == o);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(bench::write_json("/nowhere/at/all.json", o), std::runtime_error);
}
