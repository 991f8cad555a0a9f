// SPDX-License-Identifier: Apache-2.0
//
// Tensors of many sizes that come and go, on demand, with little page-locked memory in slabs: bytes of the host become
// blocks of other sizes again and again, many of them while copies still use them.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/backend/testing/simulated/random.hpp>
#include <swapmm/error.hpp>

#include "support/effort.hpp"
#include "support/random_options.hpp"
#include "support/small_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

const std::uint64_t programs = test::effort(5'000, 20);
constexpr int steps = 300;

class Churn {
 public:
  explicit Churn(std::uint64_t seed) : random_(seed), device_(device_options()), manager_(device_, options()) {}

  void run() {
    for (int i = 0; i < steps; ++i) {
      step();
      const simulated::Counters& counters = device_.counters();
      const Report report = manager_.report();
      REQUIRE(counters.pinned_bytes <= options_.pinned_budget);
      REQUIRE(counters.host_bytes <= options_.host_budget);
      REQUIRE(report.pinned_used <= options_.pinned_budget);
      REQUIRE(counters.host_bytes <= report.host_used);
      most_slabs_ = std::max(most_slabs_, report.pinned_slabs);
    }
    for (Slot& slot : slots_) check(slot);
    for (const std::string& violation : device_.violations()) FAIL_CHECK(violation);
    slots_ = {};
    CHECK(manager_.report().tensors == 0);
  }
  [[nodiscard]] std::uint64_t host_memories() const { return device_.counters().host_memories.made; }
  [[nodiscard]] std::uint64_t tensors() const { return tensors_; }
  [[nodiscard]] std::uint64_t out_of_memory() const { return out_of_memory_; }
  [[nodiscard]] std::size_t most_slabs() const { return most_slabs_; }

 private:
  struct Slot {
    std::optional<Tensor<int, Simulated>> tensor;
    int value = 0;
  };

  simulated::Options device_options() {
    simulated::Options options;
    draw_device(random_, options);
    options.alignment = 4_bytes;
    options.device_bytes = 8_KiB;
    options.host_slab = Bytes{std::uint64_t{256} << random_.below(6)};
    return options;
  }
  const Options& options() {
    options_.device_budget = 8_KiB;
    options_.queue_depth = 16;
    options_.pinned_budget = Bytes{1024 + random_.below(8192)};
    if (random_.below(4) == 0) options_.host_budget = Bytes{8192 + random_.below(16'384)};
    return options_;
  }

  void step() {
    Slot& slot = slots_[random_.below(static_cast<std::uint32_t>(slots_.size()))];
    if (!slot.tensor) return make(slot);
    const auto amount = static_cast<int>(random_.below(1000));
    switch (random_.below(6)) {
      case 0: slot.tensor.reset(); break;  // queued copies may still use its block
      case 1:
        if (done([&] { slot.tensor->upload(std::vector<int>(slot.tensor->size(), amount)); })) slot.value = amount;
        break;
      case 2: check(slot); break;
      case 3: done([&] { (void)slot.tensor->download_async(std::span<int>(bin_).first(slot.tensor->size())); }); break;
      default:
        if (done([&] { increase(manager_, *slot.tensor, amount); })) slot.value += amount;
    }
  }

  void make(Slot& slot) {
    const std::size_t length = (std::size_t{16} << random_.below(6)) + random_.below(20);  // to 2,128 bytes
    slot.tensor.emplace(manager_.tensor<int>({length}, "t", kept));
    slot.value = static_cast<int>(random_.below(1000));
    ++tensors_;
    if (!done([&] { set(manager_, *slot.tensor, slot.value); })) slot.tensor.reset();
  }
  void check(const Slot& slot) {
    bool right = true;
    if (slot.tensor) done([&] { right = holds(*slot.tensor, slot.value); });
    REQUIRE(right);
  }

  /// False where the host has no memory for it, which changes nothing.
  bool done(const std::function<void()>& call) {
    try {
      call();
      return true;
    } catch (const OutOfMemory&) {
      REQUIRE(options_.host_budget < 24_KiB);
      ++out_of_memory_;
      return false;
    }
  }

  simulated::detail::Random random_;
  Options options_;
  Simulated device_;
  MemoryManager<Simulated> manager_;
  std::array<Slot, 16> slots_;
  std::vector<int> bin_ = std::vector<int>(1024);
  std::uint64_t tensors_ = 0;
  std::uint64_t out_of_memory_ = 0;
  std::size_t most_slabs_ = 0;
};

}  // namespace

TEST_CASE("values are right and budgets kept while the bytes of slabs change hands and sizes") {
  std::uint64_t tensors = 0;
  std::uint64_t memories = 0;
  std::uint64_t out_of_memory = 0;
  std::uint64_t several = 0;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    CAPTURE(seed);
    Churn churn(seed);
    churn.run();
    tensors += churn.tensors();
    memories += churn.host_memories();
    out_of_memory += churn.out_of_memory();
    if (churn.most_slabs() > 1) ++several;
  }
  // There was something to be seen.
  CHECK(tensors > 40 * programs);
  CHECK(memories > 5 * programs);
  CHECK(out_of_memory > programs / 10);
  CHECK(several > programs / 2);
}
