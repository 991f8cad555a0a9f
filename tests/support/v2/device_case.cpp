// SPDX-License-Identifier: Apache-2.0
#include "support/v2/device_case.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <swapmm/ir/liveness.hpp>

#include "support/random_trace.hpp"

namespace swapmm::test::general {

Trace joined(std::mt19937_64& random, const std::vector<Trace>& programs) {
  Trace all;
  all.name = "devices";
  std::vector<std::uint32_t> first_tensor;
  std::vector<std::uint32_t> turns;
  for (std::uint32_t d = 0; d < programs.size(); ++d) {
    all.engines.push_back("gpu" + std::to_string(d));
    first_tensor.push_back(static_cast<std::uint32_t>(all.tensors.size()));
    all.tensors.insert(all.tensors.end(), programs[d].tensors.begin(), programs[d].tensors.end());
    turns.insert(turns.end(), programs[d].operations.size(), d);
  }
  for (std::size_t i = turns.size(); i > 1; --i) std::swap(turns[i - 1], turns[one_of(random, i)]);
  std::vector<std::vector<std::uint32_t>> positions(programs.size());
  for (const std::uint32_t d : turns) {
    TraceOperation operation = programs[d].operations[positions[d].size()];
    operation.engine = d;
    for (auto* list : {&operation.reads, &operation.writes, &operation.updates}) {
      for (TensorId& tensor : *list) tensor = id_at<TensorId>(first_tensor[d] + index(tensor));
    }
    positions[d].push_back(static_cast<std::uint32_t>(all.operations.size()));
    all.operations.push_back(std::move(operation));
  }
  for (std::uint32_t d = 0; d < programs.size(); ++d) {
    for (std::size_t t = 0; t < programs[d].tensors.size(); ++t) {
      std::uint32_t& from = all.tensors[first_tensor[d] + t].available_from;
      if (from > 0) from = positions[d][from - 1] + 1;
    }
    for (const HostRead& read : programs[d].host_reads) {
      all.host_reads.push_back({id_at<TensorId>(first_tensor[d] + index(read.tensor)),
                                OperationId{positions[d][index(read.after_operation)]}});
    }
  }
  return all;
}

DeviceCase device_case(std::mt19937_64& random, std::size_t most_operations) {
  constexpr std::uint64_t rate_of_link = 1'000'000'000;
  DeviceCase made;
  v2::Machine& machine = made.machine;
  machine.name = "devices";
  const std::size_t devices = 2 + one_of(random, 3);
  const bool are_same = chance(random, 0.4);
  std::vector<Trace> programs;
  for (std::size_t d = 0; d < devices; ++d) {
    if (are_same && d > 0) {
      programs.push_back(programs[0]);
      continue;
    }
    RandomTraceOptions options;
    options.operations = 2 + one_of(random, most_operations - 1);
    options.tensors = 2 + one_of(random, most_operations);
    options.host_reads = chance(random, 0.3) ? 0.1 : 0.0;
    options.inputs = chance(random, 0.3);
    programs.push_back(random_trace(random, options));
  }
  made.trace = joined(random, programs);

  const std::size_t capacities = one_of(random, 3);  // none, one for both ways, one each way
  for (std::size_t c = 0; c < capacities; ++c) {
    machine.capacities.push_back({"root" + std::to_string(c), rate_of_link + below_or_equal(random, rate_of_link)});
  }
  const auto host = id_at<v2::MemoryId>(devices);
  const bool has_near = chance(random, 0.3);
  const auto near = id_at<v2::MemoryId>(devices + 1);
  const std::uint64_t more = below_or_equal(random, 100);
  for (std::size_t d = 0; d < devices; ++d) {
    const std::string name = "gpu" + std::to_string(d);
    const auto memory = id_at<v2::MemoryId>(d);
    const std::uint64_t bundle =
        std::max<std::uint64_t>(analyze_liveness(programs[d], Bytes{8}).largest_bundle.value, 8);
    machine.memories.push_back({name, Bytes{bundle + more}, Bytes{8}, std::nullopt});
    machine.engines.push_back({name, memory});
    const auto add = [&](const std::string& link, v2::MemoryId from, v2::MemoryId to, std::uint64_t rate, bool shares) {
      v2::Link made_link{link, from, to, rate, std::chrono::nanoseconds{0}, std::nullopt, {}};
      if (shares && capacities > 0)
        made_link.capacities.push_back(v2::CapacityId{to == memory || capacities == 1 ? 0U : 1U});
      machine.links.push_back(std::move(made_link));
    };
    add(name + ".in", host, memory, rate_of_link, true);
    add(name + ".out", memory, host, rate_of_link, true);
    if (has_near) {
      add(name + ".from_near", near, memory, 2 * rate_of_link, false);
      add(name + ".to_near", memory, near, 2 * rate_of_link, false);
    }
  }
  machine.memories.push_back({"host", std::nullopt, Bytes{1}, std::nullopt});
  if (has_near) machine.memories.push_back({"near", Bytes{16 + below_or_equal(random, 300)}, Bytes{8}, std::nullopt});
  machine.host = host;
  return made;
}

}  // namespace swapmm::test::general
