// SPDX-License-Identifier: Apache-2.0
// Many small operations in little memory: queued one by one, and as a graph of the whole iteration with its swaps.
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/devices.hpp>
#include <swapmm/swapmm.hpp>

#include "cuda_graph/kernels.hpp"

namespace {

using Manager = swapmm::MemoryManager<swapmm::cuda::Backend>;
using Field = swapmm::Tensor<float, swapmm::cuda::Backend>;

constexpr std::size_t fields_count = 12, sweeps = 20;

/// Fields that relax towards each other, `sweeps` times in each iteration.
class Solver {
 public:
  Solver(Manager& manager, std::size_t count) : manager_(manager) {
    for (std::size_t i = 0; i < fields_count; ++i) {
      fields_.push_back(manager.tensor<float>({count}, "field " + std::to_string(i)));
      std::vector<float> values(count);
      for (std::size_t at = 0; at < count; ++at) values[at] = static_cast<float>((at * 31 + i * 7) % 101);
      fields_.back().upload(values);
    }
  }

  /// The operations of one iteration. A sweep goes over neighbours, so that its swaps can hide.
  void body() {
    for (std::size_t i = 0; i < fields_count; ++i) {
      const Field& from = fields_[i];
      const Field& to = fields_[(i + 1) % fields_count];
      for (std::size_t sweep = 0; sweep < sweeps; ++sweep) {
        manager_.run("relax", swapmm::reads(from), swapmm::updates(to),
                     [&](auto& op) { launch_relax(op.stream(), op[from], op[to], to.size()); });
      }
    }
  }
  void iterate() {
    const auto iteration = manager_.iteration("solve");
    body();
  }
  [[nodiscard]] std::vector<std::vector<float>> values() const {
    std::vector<std::vector<float>> all;
    for (const Field& field : fields_) all.push_back(field.download());
    return all;
  }

 private:
  Manager& manager_;
  std::vector<Field> fields_;
};

/// Microseconds per call, after the device has come to the end of all.
template <class Call>
double time_of(Manager& manager, int times, Call&& call) {
  manager.synchronize();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) call();
  manager.synchronize();
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  return time.count() / times;
}

}  // namespace

int main(int count, char** words) try {
  if (const swapmm::cuda::DeviceList list = swapmm::cuda::devices(); list.devices.empty()) {
    std::cout << "skipped: " << list.why_none << '\n';
    return 0;
  }
  const std::size_t numbers = count > 1 ? std::strtoull(words[1], nullptr, 10) : 64 * 1024;
  const auto backend = swapmm::cuda::Backend::pick();
  bool same = true;
  std::cout << fields_count * sweeps << " operations on fields of " << numbers * sizeof(float) / 1024 << " KiB\n";
  for (const std::size_t room : {fields_count, fields_count / 2}) {
    // The same work twice, to compare the results: one of them as a graph from the middle on.
    const swapmm::Bytes budget{room * ((numbers * sizeof(float) + 255) / 256 * 256)};
    const swapmm::SchedulerOptions at_once{.trial_iterations = 0};  // a plan is followed, and can be captured, soon
    Manager queued_manager(backend, {.device_budget = budget}, swapmm::Scheduler(at_once));
    Manager graph_manager(backend, {.device_budget = budget}, swapmm::Scheduler(at_once));
    Solver queued(queued_manager, numbers);
    Solver graph(graph_manager, numbers);
    for (int i = 0; i < 6; ++i) {
      queued.iterate();
      graph.iterate();
    }
    constexpr int runs = 200;
    auto captured = graph_manager.capture("solve", [&] { graph.body(); });
    queued.iterate();
    const double one_by_one = time_of(queued_manager, runs, [&] { queued.iterate(); });
    const double as_graph = time_of(graph_manager, runs, [&] { captured.launch(); });
    same = same && queued.values() == graph.values();
    std::cout << "room for " << room << " of " << fields_count << ": queued " << one_by_one << " us, as a graph "
              << as_graph << " us per iteration (" << one_by_one / as_graph << " times), results "
              << (same ? "equal" : "DIFFER") << '\n';
  }
  return same ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "cuda_graph: " << error.what() << '\n';
  return 1;
}
