// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <swapmm/formats/machine_json.hpp>
#include <swapmm/formats/v2/machine_json.hpp>
#include <swapmm/ir/limits.hpp>

#include "support/changed_text.hpp"

using namespace swapmm;

namespace {

/// Has every field.
const std::string machine_2_text = R"({"format": "swapmm-machine", "version": 2, "name": "two \"devices\"",
 "memories": [
  {"name": "gpu0", "bytes": 40000000000, "alignment_bytes": 256, "max_allocation_bytes": 512},
  {"name": "gpu1", "bytes": 8000000000},
  {"name": "host", "bytes": null}],
 "engines": [
  {"name": "gpu0.in"},
  {"name": "gpu0", "memory": "gpu0"},
  {"name": "gpu1", "memory": "gpu1"}],
 "capacities": [
  {"name": "root", "bytes_per_second": 25000000000},
  {"name": "gpu0", "bytes_per_second": 3}],
 "links": [
  {"name": "host-gpu0", "from": "host", "to": "gpu0", "bytes_per_second": 15754000000, "latency_ns": 5, )"
                                   R"("engine": "gpu0.in", "capacities": ["root", "gpu0"]},
  {"name": "gpu0-host", "from": "gpu0", "to": "host", "bytes_per_second": 15, "latency_ns": 0},
  {"name": "gpu0-gpu1", "from": "gpu0", "to": "gpu1", "bytes_per_second": 1, )"
                                   R"("latency_ns": 4611686018427387903, "capacities": ["gpu0"]}],
 "host": "host"}
)";

const auto read_any_machine_2 = [](auto&& source) { return v2::read_machine(source); };

v2::Machine good_machine_2(std::string_view text) {
  const auto machine = v2::read_machine(text);
  REQUIRE_MESSAGE(machine.has_value(), machine.problem().message);
  return *machine;
}

}  // namespace

TEST_CASE("a machine of version 2 is read field by field, and written as it was read") {
  const v2::Machine machine = good_machine_2(machine_2_text);
  v2::Machine expected;
  expected.name = "two \"devices\"";
  expected.memories = {{"gpu0", Bytes{40000000000}, Bytes{256}, Bytes{512}},
                       {"gpu1", Bytes{8000000000}, Bytes{1}, std::nullopt},
                       {"host", std::nullopt, Bytes{1}, std::nullopt}};
  expected.engines = {{"gpu0.in", std::nullopt}, {"gpu0", v2::MemoryId{0}}, {"gpu1", v2::MemoryId{1}}};
  expected.capacities = {{"root", 25000000000}, {"gpu0", 3}};
  expected.links = {{"host-gpu0",
                     v2::MemoryId{2},
                     v2::MemoryId{0},
                     15754000000,
                     std::chrono::nanoseconds{5},
                     v2::EngineId{0},
                     {v2::CapacityId{0}, v2::CapacityId{1}}},
                    {"gpu0-host", v2::MemoryId{0}, v2::MemoryId{2}, 15, std::chrono::nanoseconds{0}, std::nullopt, {}},
                    {"gpu0-gpu1",
                     v2::MemoryId{0},
                     v2::MemoryId{1},
                     1,
                     std::chrono::nanoseconds{4611686018427387903},
                     std::nullopt,
                     {v2::CapacityId{1}}}};
  expected.host = v2::MemoryId{2};
  CHECK(machine == expected);
  CHECK(test::written(v2::write_machine, machine) == machine_2_text);
}

TEST_CASE("the example of docs/formats.md is a machine") {
  const v2::Machine machine = good_machine_2(R"({"format": "swapmm-machine", "version": 2, "name": "two-devices",
     "memories":   [{"name": "gpu0", "bytes": 40000000000, "alignment_bytes": 256, "max_allocation_bytes": null},
                    {"name": "gpu1", "bytes": 8000000000, "alignment_bytes": 256},
                    {"name": "host", "bytes": null}],
     "engines":    [{"name": "gpu0", "memory": "gpu0"}, {"name": "gpu0.in"}, {"name": "gpu0.out"}],
     "capacities": [{"name": "root", "bytes_per_second": 25000000000}],
     "links":      [{"name": "host-gpu0", "from": "host", "to": "gpu0", "bytes_per_second": 15754000000, )"
                                             R"("latency_ns": 0,
                     "engine": "gpu0.in", "capacities": ["root"]},
                    {"name": "gpu0-host", "from": "gpu0", "to": "host", "bytes_per_second": 15754000000, )"
                                             R"("latency_ns": 0,
                     "engine": "gpu0.out"}],
     "host": "host"})");
  CHECK_FALSE(machine.memories[0].max_allocation.has_value());
  CHECK(machine.links[0].engine == v2::EngineId{1});
  CHECK(good_machine_2(test::written(v2::write_machine, machine)) == machine);
}

TEST_CASE("names may stand before what they name, and what has a default may be null or missing") {
  const v2::Machine machine = good_machine_2(
      R"({"host": "b", "links": [{"engine": null, "name": "l", "latency_ns": 0, "bytes_per_second": 1, "to": "a",)"
      R"("from": "b", "capacities": []}], "engines": [{"memory": null, "name": "d"}, {"memory": "a", "name": "e"}],)"
      R"("memories": [{"bytes": null, "alignment_bytes": 8, "name": "a"}, {"bytes": 1, "name": "b"}],)"
      R"("name": "", "other": {"version": 1}, "version": 2, "format": "swapmm-machine"})");
  CHECK(machine.host == v2::MemoryId{1});
  CHECK_FALSE(machine.engines[0].memory.has_value());
  CHECK(machine.engines[1].memory == v2::MemoryId{0});
  CHECK_FALSE(machine.links[0].engine.has_value());
  CHECK(machine.capacities.empty());
  CHECK(good_machine_2(test::written(v2::write_machine, machine)) == machine);
}

TEST_CASE("a machine of version 1 is read as from_version_1() converts it") {
  for (const std::string duplex : {"full", "half"}) {
    // Fields of version 2 are unknown there.
    const std::string text = R"({"format": "swapmm-machine", "name": "a100", "device_budget_bytes": 4096, "links": 7,)"
                             R"("alignment_bytes": 256, "h2d": {"bytes_per_second": 2, "latency_ns": 5}, "host": null,)"
                             R"("d2h": {"bytes_per_second": 1, "latency_ns": 0}, "duplex": ")" +
                             duplex + R"(", "version": 1})";
    const auto old = swapmm::read_machine(text);
    REQUIRE(old.has_value());
    const v2::Machine machine = good_machine_2(text);
    CHECK(machine == v2::from_version_1(*old));
    CHECK(good_machine_2(test::written(v2::write_machine, machine)) == machine);
    const auto refused = v2::read_machine(test::changed(text, {"256", "0", ""}));
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.problem().message == "alignment_bytes: 0 is not above 0");
  }
}

TEST_CASE("a bad machine of version 2 is refused with field and index") {
  const std::string no_name = " is not a name: 1 to 100 characters out of A-Z a-z 0-9 . _ -";
  test::expect_refused(
      machine_2_text,
      {
          {"swapmm-machine", "swapmm-plan", R"(format: "swapmm-plan" is not one of swapmm-machine)"},
          {R"("version": 2)", R"("version": 3)", "version: 3 is unknown, only 1 and 2 are known"},
          {R"("version": 2)", R"("version": 1)", "device_budget_bytes: missing"},
          {R"("version": 2, )", "", "version: missing"},
          {R"("name": "two \"devices\"",)", "", "name: missing"},
          {R"("memories": [)", R"("others": [)", "memories: missing"},
          {R"("engines": [)", R"("others": [)", "engines: missing"},
          {R"("capacities": [
)",
           R"("others": [
)",
           R"(links[0].capacities[0]: "root" is not a capacity of the machine)"},
          {R"("links": [)", R"("others": [)", "links: missing"},
          {R"("links": [)", R"("links": {}, "others": [)", "links: an object stands where an array must"},
          {R"(,
 "host": "host")",
           "", "host: missing"},
          {R"("host": "host")", R"("host": 2)", "host: a number stands where a string must"},
          {R"("host": "host")", R"("host": "Host")", R"(host: "Host" is not a memory of the machine)"},
          {R"("memory": "gpu1")", R"("memory": "gpu2")", R"(engines[2].memory: "gpu2" is not a memory of the machine)"},
          {R"("memory": "gpu1")", R"("memory": 1)", "engines[2].memory: a number stands where a string must"},
          {R"("from": "host")", R"("from": null)", "links[0].from: null stands where a string must"},
          {R"("from": "gpu0", "to": "gpu1")", R"("from": "gpu", "to": "gpu1")",
           R"(links[2].from: "gpu" is not a memory of the machine)"},
          {R"("to": "gpu1")", R"("to": "gpu0.in")", R"(links[2].to: "gpu0.in" is not a memory of the machine)"},
          {R"("engine": "gpu0.in")", R"("engine": "gpu0.out")",
           R"(links[0].engine: "gpu0.out" is not an engine of the machine)"},
          {R"(["root", "gpu0"])", R"(["root", "roof"])",
           R"(links[0].capacities[1]: "roof" is not a capacity of the machine)"},
          {R"(["root", "gpu0"])", R"(["root", "root"])", "links[0].capacities: root stands twice"},
          {R"(["root", "gpu0"])", R"([0])", "links[0].capacities[0]: a number stands where a string must"},
          {R"("to": "gpu1")", R"("to": "gpu0")", "links[2]: from and to are the same memory"},
          {R"("to": "gpu1", )", "", "links[2].to: missing"},
          {R"(, "latency_ns": 0)", "", "links[1].latency_ns: missing"},
          {R"("latency_ns": 0)", R"("latency_ns": -1)", "links[1].latency_ns: -1 is below 0"},
          {R"("bytes_per_second": 15,)", R"("bytes_per_second": 0,)", "links[1].bytes_per_second: 0 is not above 0"},
          {R"("bytes_per_second": 15,)", R"("bytes_per_second": 4611686018427387904,)",
           "links[1].bytes_per_second: 4611686018427387904 is above 4611686018427387903"},
          {R"("bytes_per_second": 3)", R"("bytes_per_second": 1)",
           "capacities[1].bytes_per_second: 1 is less than one for each of the 2 links that share it"},
          {R"("bytes_per_second": 3)", R"("bytes_per_second": 0)", "capacities[1].bytes_per_second: 0 is not above 0"},
          {R"({"name": "gpu1", "bytes")", R"({"name": "gpu0", "bytes": 1}, {"name": "gpu1", "bytes")",
           "memories[1].name: gpu0 is the name of two"},
          {R"({"name": "gpu1", "memory": "gpu1"})", R"({"name": "gpu0"})", "engines[2].name: gpu0 is the name of two"},
          {R"({"name": "root")", R"({"name": "gpu0")",
           R"(links[0].capacities[0]: "root" is not a capacity of the machine)"},
          {R"({"name": "gpu0", "bytes_per_second")", R"({"name": "root"}, {"name": "gpu0", "bytes_per_second")",
           "capacities[1].bytes_per_second: missing"},
          {R"({"name": "gpu0", "bytes_per_second")",
           R"({"name": "root", "bytes_per_second": 9}, {"name": "gpu0", "bytes_per_second")",
           "capacities[1].name: root is the name of two"},
          {R"("name": "gpu0-host")", R"("name": "host-gpu0")", "links[1].name: host-gpu0 is the name of two"},
          {R"({"name": "gpu0.in"})", R"({"name": "gpu 0"})", R"(engines[0].name: "gpu 0")" + no_name},
          {R"({"name": "gpu0.in"})", R"({})", "engines[0].name: missing"},
          {R"({"name": "host", "bytes": null})", R"({"name": "", "bytes": null})", R"(memories[2].name: "")" + no_name},
          {R"({"name": "host", "bytes": null})", R"({"name": "host"})", "memories[2].bytes: missing"},
          {R"("bytes": 8000000000)", R"("bytes": 0)", "memories[1].bytes: 0 is not above 0"},
          {R"("alignment_bytes": 256)", R"("alignment_bytes": 0)", "memories[0].alignment_bytes: 0 is not above 0"},
          {R"("alignment_bytes": 256)", R"("alignment_bytes": 1099511627777)",
           "memories[0].alignment_bytes: 1099511627777 is above 2^40"},
          {R"("alignment_bytes": 256)", R"("alignment_bytes": null)",
           "memories[0].alignment_bytes: null stands where an integer must"},
          {R"("max_allocation_bytes": 512)", R"("max_allocation_bytes": 511)",
           "memories[0].max_allocation_bytes: 511 is not a multiple of the alignment, 256"},
      },
      read_any_machine_2);
}

TEST_CASE("a machine that can run nothing, or has no memories, is refused") {
  const std::string text =
      R"({"format": "swapmm-machine", "version": 2, "name": "", "memories": [{"name": "m", "bytes": 1}],)"
      R"("engines": [{"name": "e", "memory": "m"}], "capacities": [], "links": [], "host": "m"})";
  CHECK(v2::read_machine(text).has_value());
  test::expect_refused(
      text,
      {
          {R"(, "memory": "m")", "", "engines: none has a memory, so none can run operations"},
          {R"({"name": "m", "bytes": 1})", "", R"(engines[0].memory: "m" is not a memory of the machine)"},
      },
      read_any_machine_2);
}

TEST_CASE("lists of a machine that are too long are refused while they are read") {
  const auto refused = [](const std::string& list, const std::string& element, std::size_t count) {
    std::string text = R"({"format": "swapmm-machine", "version": 2, "name": "", ")" + list + "\": [";
    for (std::size_t i = 0; i < count; ++i) text += element + ",";
    const auto machine = v2::read_machine(text + "this is never reached");
    REQUIRE_FALSE(machine.has_value());
    return machine.problem().message;
  };
  const std::string link = R"({"name":"a","from":"a","to":"b","bytes_per_second":1,"latency_ns":0})";
  CHECK(refused("links", link, 1000000) == "links: more than 65536 elements");
  CHECK(refused("memories", R"({"name":"a","bytes":null})", 1025) == "memories: more than 1024 elements");
  CHECK(refused("engines", R"({"name":"a"})", 65537) == "engines: more than 65536 elements");
  CHECK(refused("capacities", R"({"name":"a","bytes_per_second":1})", 65537) == "capacities: more than 65536 elements");
  CHECK(refused("links", R"({"capacities": [[]]})", 1) ==
        "links[0].capacities[0]: an array stands where a string must");
}

TEST_CASE("links may share as many capacities as the format allows, and no more") {
  const auto text = [](std::size_t links, std::size_t capacities) {
    std::string names;
    std::string list;
    for (std::size_t i = 0; i < capacities; ++i) {
      const std::string name = "\"c" + std::to_string(i) + '"';
      names += (i == 0 ? "" : ",") + name;
      list += (i == 0 ? "" : ",") + std::string(R"({"bytes_per_second":99999,"name":)") + name + "}";
    }
    std::string all = R"({"format":"swapmm-machine","version":2,"name":"","memories":[{"name":"m","bytes":1},)"
                      R"({"name":"h","bytes":null}],)"
                      R"("engines":[{"name":"e","memory":"m"}],"host":"h","capacities":[)" +
                      list + R"(],"links":[)";
    for (std::size_t i = 0; i < links; ++i) {
      all += (i == 0 ? "" : ",") + std::string(R"({"name":"l)") + std::to_string(i) +
             R"(","from":"h","to":"m","bytes_per_second":1,"latency_ns":0,"capacities":[)" + names + "]}";
    }
    return all + "]}";
  };
  const v2::Machine most = good_machine_2(text(1024, 1024));
  CHECK(most.links.back().capacities.size() == 1024);
  CHECK(good_machine_2(test::written(v2::write_machine, most)) == most);
  const auto refused = v2::read_machine(text(1025, 1024));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.problem().message == "links: they name more than 1048576 capacities");
}
