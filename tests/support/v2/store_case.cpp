// SPDX-License-Identifier: Apache-2.0
#include "support/v2/store_case.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/ir/liveness.hpp>

#include "support/random_trace.hpp"

namespace swapmm::test::general {

namespace {

constexpr std::uint64_t rate_of_link = 1'000'000'000;

}  // namespace

StoreCase store_case(std::mt19937_64& random, std::size_t most_operations) {
  StoreCase made;
  RandomTraceOptions options;
  options.operations = 2 + one_of(random, most_operations - 1);
  options.tensors = 2 + one_of(random, most_operations);
  options.host_reads = chance(random, 0.3) ? 0.1 : 0.0;
  options.inputs = chance(random, 0.5);
  made.trace = random_trace(random, options);
  std::uint64_t bytes = 0;
  for (const TraceTensor& tensor : made.trace.tensors) bytes += tensor.bytes.value + 8;
  const std::uint64_t bundle = std::max<std::uint64_t>(analyze_liveness(made.trace, Bytes{8}).largest_bundle.value, 8);

  v2::Machine& machine = made.machine;
  machine.name = "stores";
  machine.memories.push_back(
      {"gpu", Bytes{bundle + below_or_equal(random, bundle)}, Bytes{chance(random, 0.5) ? 8U : 1U}, std::nullopt});
  machine.engines.push_back({"compute", v2::MemoryId{0}});
  const bool one_engine = chance(random, 0.2);
  if (one_engine) machine.engines.push_back({"copies", std::nullopt});
  const bool shares = chance(random, 0.4);
  if (shares) machine.capacities.push_back({"root", rate_of_link + below_or_equal(random, 2 * rate_of_link)});
  const auto add = [&](const std::string& name, std::optional<Bytes> size, std::uint64_t rate) {
    const auto memory = id_at<v2::MemoryId>(machine.memories.size());
    machine.memories.push_back({name, size, Bytes{chance(random, 0.5) ? 8U : 1U}, std::nullopt});
    for (const bool in : {true, false}) {
      v2::Link link{(in ? "from." : "to.") + name,
                    in ? memory : v2::MemoryId{0},
                    in ? v2::MemoryId{0} : memory,
                    rate / 2 + below_or_equal(random, rate),
                    std::chrono::nanoseconds{chance(random, 0.3) ? one_of(random, 5) : 0},
                    std::nullopt,
                    {}};
      if (one_engine) link.engine = v2::EngineId{1};
      if (shares && chance(random, 0.7)) link.capacities.push_back(v2::CapacityId{0});
      machine.links.push_back(std::move(link));
    }
    return memory;
  };
  const bool host_has_all = chance(random, 0.4);
  // Places of inputs and of what the host reads are in the host in any case.
  const std::uint64_t little = bytes / 2 + 16;
  const bool has_disk = !host_has_all || chance(random, 0.5);
  std::uint64_t in_host = 0;
  for (std::size_t t = 0; t < made.trace.tensors.size(); ++t) {
    const bool is_read = std::ranges::count(made.trace.host_reads, id_at<TensorId>(t), &HostRead::tensor) != 0;
    if (made.trace.tensors[t].kind == TensorKind::input || is_read) in_host += made.trace.tensors[t].bytes.value + 8;
  }
  const std::optional<Bytes> host_bytes = host_has_all && chance(random, 0.5)
                                              ? std::nullopt
                                              : std::optional{Bytes{in_host + (host_has_all ? 3 * bytes : little)}};
  machine.host = add("host", host_bytes, rate_of_link);
  if (chance(random, 0.5)) {
    add("near", Bytes{16 + below_or_equal(random, bytes / 2)}, 4 * rate_of_link);
  }
  if (has_disk) add("disk", chance(random, 0.3) ? std::optional{Bytes{3 * bytes}} : std::nullopt, rate_of_link / 4);
  return made;
}

StoreCase far_store_case(std::mt19937_64& random, std::size_t most_operations) {
  StoreCase made = store_case(random, most_operations);
  v2::Machine& machine = made.machine;
  const auto find = [&](const char* name) -> std::optional<v2::MemoryId> {
    const auto at = std::ranges::find(machine.memories, name, &v2::Memory::name);
    if (at == machine.memories.end()) return std::nullopt;
    return id_at<v2::MemoryId>(static_cast<std::size_t>(at - machine.memories.begin()));
  };
  std::uint64_t largest = 0;
  for (const TraceTensor& tensor : made.trace.tensors) largest = std::max(largest, tensor.bytes.value + 8);
  // The links of `memory` go to `before` in place of the device.
  const auto put_behind = [&](v2::MemoryId memory, v2::MemoryId before) {
    for (v2::Link& link : machine.links) {
      if (link.to == memory && link.from == v2::MemoryId{0}) link.from = before;
      if (link.from == memory && link.to == v2::MemoryId{0}) link.to = before;
    }
    std::optional<Bytes>& bytes = machine.memories[index(before)].bytes;
    if (bytes) bytes = Bytes{bytes->value + (2 + below_or_equal(random, 6)) * largest};
  };
  const auto near = find("near");
  const auto disk = find("disk");
  const bool host_is_far = near && chance(random, 0.3);
  if (host_is_far) put_behind(machine.host, *near);
  if (disk) put_behind(*disk, near && chance(random, 0.4) ? *near : machine.host);
  return made;
}

}  // namespace swapmm::test::general
