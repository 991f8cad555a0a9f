// SPDX-License-Identifier: Apache-2.0
// Memory and addresses that are used again, or given back, while queued work, promises or a plan still count on them.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

using namespace swapmm::literals;

namespace swapmm::test::reused_memory_test {
namespace {

using Device = simulated::Backend;
using Manager = MemoryManager<Device>;
using Numbers = Tensor<int, Device>;
using simulated::Touch;

simulated::Options large_device() {
  simulated::Options options;
  options.device_bytes = 16_MiB;
  return options;
}

constexpr std::chrono::nanoseconds duration{1000};
constexpr std::size_t half_mebi = 131'072;  // numbers in 512 KiB: the memory that host views pass parts through

void copy(Manager& manager, const Numbers& from, const Numbers& to) {
  manager.run("copy", reads(from), writes(to), [&](auto& op) {
    const auto source = op[from];
    const auto target = op[to];
    op.queue().launch("copy", duration, {Touch::read(source), Touch::write(target)}, [source, target] {
      for (std::size_t i = 0; i < target.size(); ++i) target[i] = source[i];
    });
  });
}

void add(Manager& manager, const std::string& name, const Numbers& tensor, int summand) {
  manager.run(name, updates(tensor), [&](auto& op) {
    const auto values = op[tensor];
    op.queue().launch("add", duration, {Touch::read(values), Touch::write(values)}, [values, summand] {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += summand;
    });
  });
}

}  // namespace

TEST_CASE("host views pass parts through memory from which queued copies still read, and wait for these") {
  Device device(large_device());
  {
    Manager manager(device, {.device_budget = 8_MiB});
    Numbers viewed = manager.tensor<int>({2 * half_mebi}, "viewed");
    Numbers target = manager.tensor<int>({half_mebi}, "target");
    viewed.upload(std::vector<int>(2 * half_mebi, 5));
    std::optional<Numbers> source(manager.tensor<int>({half_mebi}, "source"));
    source->upload(std::vector<int>(half_mebi, 7));
    copy(manager, *source, target);
    source.reset();  // its memory is the host view's next
    {
      auto view = viewed.host_view();
      view.data()[0] = 99;
      add(manager, "after the view", viewed, 1);
    }
    CHECK(target.download() == std::vector<int>(half_mebi, 7));
    std::vector<int> wanted(2 * half_mebi, 6);
    wanted[0] = 100;
    CHECK(viewed.download() == wanted);
  }
  check_clean(device);
}

TEST_CASE("promised downloads of tensors that have ended keep their bytes, whoever uses the memory next") {
  Device device(large_device());
  {
    Manager manager(device, {.device_budget = 1536_KiB});
    Numbers viewed = manager.tensor<int>({2 * half_mebi}, "viewed");
    viewed.upload(std::vector<int>(2 * half_mebi, 5));
    std::vector<Numbers> others;
    for (int i = 0; i < 3; ++i) {
      others.push_back(manager.tensor<int>({half_mebi}, "other"));
      others.back().upload(std::vector<int>(half_mebi, 1));
    }
    std::vector<std::vector<int>> got(12, std::vector<int>(half_mebi));
    std::vector<PendingDownload<Device>> promised;
    for (int i = 0; i < 12; ++i) {
      const auto iteration = manager.iteration("loop");
      Numbers local = manager.tensor<int>({half_mebi}, "local");
      local.upload(std::vector<int>(half_mebi, i));
      add(manager, "first", others[0], 1);
      add(manager, "local", local, 1000);
      add(manager, "second", others[1], 1);
      add(manager, "third", others[2], 1);
      promised.push_back(local.download_async(std::span(got[static_cast<std::size_t>(i)])));
      if (i < 8) promised.back().wait();
    }
    CHECK(manager.report().iterations_followed > 2);
    {
      auto view = viewed.host_view();
      view.data()[0] = 99;
      add(manager, "after the view", viewed, 1);
      manager.synchronize();
      for (PendingDownload<Device>& download : promised) download.wait();
    }
    for (int i = 0; i < 12; ++i) {
      CHECK_MESSAGE(got[static_cast<std::size_t>(i)] == std::vector<int>(half_mebi, 1000 + i), i);
    }
  }
  check_clean(device);
}

TEST_CASE("while a plan is followed, memory that is given back is none that it counts on") {
  Device device;
  {
    constexpr std::size_t count = 256;
    Manager manager(device, {.device_budget = 4096_bytes});
    std::vector<Numbers> weights;
    for (int i = 0; i < 6; ++i) {
      weights.push_back(manager.tensor<int>({count}, "weight"));
      weights.back().upload(std::vector<int>(count, i + 1));
    }
    Numbers sum = manager.tensor<int>({count}, "sum");
    sum.upload(std::vector<int>(count));
    int wanted = 0;
    const auto step = [&] {
      const auto iteration = manager.iteration("loop");
      for (std::size_t i = 0; i < weights.size(); ++i) {
        manager.run("add", reads(weights[i]), updates(sum), [&](auto& op) {
          const auto from = op[weights[i]];
          const auto to = op[sum];
          op.queue().launch("add", duration, {Touch::read(from), Touch::read(to), Touch::write(to)}, [from, to] {
            for (std::size_t k = 0; k < to.size(); ++k) to[k] += from[k];
          });
        });
        wanted += static_cast<int>(i) + 1;
        if (i != 2) continue;
        manager.run("large", updates(sum), scratch(3072_bytes), [](auto&) {});  // nothing else has room
      }
    };
    for (int i = 0; i < 10; ++i) step();
    CHECK(manager.report().iterations_followed > 3);
    weights[0].ref().core->give_back_host(1_GiB);  // as the layer does if another context needs host memory
    for (int i = 0; i < 4; ++i) step();
    CHECK(manager.report().divergences == 0);
    CHECK(sum.download() == std::vector<int>(count, wanted));
    for (int i = 0; i < 6; ++i)
      CHECK(weights[static_cast<std::size_t>(i)].download() == std::vector<int>(count, i + 1));
  }
  check_clean(device);
}

namespace {

/// When the copy of a callable fails.
struct Failure {
  bool to_come = false;
  bool in_run = false;  ///< the manager makes the copy
};

/// A part of a callable whose copies fail once.
struct Fragile {
  int layer = 0;
  Failure* failure = nullptr;

  Fragile(int layer_, Failure& failure_) : layer(layer_), failure(&failure_) {}
  Fragile(const Fragile& other) : layer(other.layer), failure(other.failure) {
    if (layer == 2 && failure->in_run && std::exchange(failure->to_come, false)) throw std::bad_alloc();
  }
  Fragile& operator=(const Fragile&) = delete;
};

}  // namespace

TEST_CASE("a replayable operation whose callable cannot be copied has not run, and what a plan counts on is there") {
  constexpr std::size_t count = 256;
  constexpr int layers = 5;
  simulated::Options options;
  options.h2d.bytes_per_second = options.d2h.bytes_per_second = 50'000'000;
  Device device(options);
  {
    Manager manager(device, {.device_budget = Bytes{7 * count * sizeof(int)}},
                    Scheduler(SchedulerOptions{.drops = DropRule::observed}));
    Numbers input = manager.tensor<int>({count}, "input");
    std::vector<Numbers> weights;
    std::vector<Numbers> values;
    std::vector<int> wanted;
    for (int i = 0; i < layers; ++i) {
      weights.push_back(manager.tensor<int>({count}, "weight"));
      weights.back().upload(std::vector<int>(count, i));
      wanted.push_back(i);
    }
    for (int i = 0; i <= layers; ++i) values.push_back(manager.tensor<int>({count}, "value" + std::to_string(i)));
    Failure failure;
    int failed = 0;
    const auto forward = [&](int layer, const Numbers& from, const Numbers& to) {
      const Fragile fragile(layer, failure);
      const auto work = [from = from.view(), to = to.view(), fragile](auto& op) {
        const auto source = op[from];
        const auto target = op[to];
        op.queue().launch("forward", 2 * duration, {Touch::read(source), Touch::write(target)}, [source, target] {
          for (std::size_t i = 0; i < target.size(); ++i) target[i] = source[i] + 1;
        });
      };
      const auto run = [&] {
        manager.run("forward" + std::to_string(layer), reads(from), writes(to), replayable, work);
      };
      const std::uint64_t before = manager.report().operations;
      failure.in_run = true;
      try {
        run();
      } catch (const std::bad_alloc&) {
        ++failed;
        CHECK(manager.report().operations == before);
        run();
      }
      failure.in_run = false;
    };
    const auto step = [&](int seed) {
      const auto iteration = manager.iteration("train");
      input.upload(std::vector<int>(count, seed));
      forward(0, input, values[0]);
      for (int i = 0; i < layers; ++i) {
        forward(i + 1, values[static_cast<std::size_t>(i)], values[static_cast<std::size_t>(i) + 1]);
      }
      for (std::size_t i = layers; i-- > 0;) {
        manager.run("backward" + std::to_string(i), reads(values[i]), updates(weights[i]), [&](auto& op) {
          const auto from = op[values[i]];
          const auto to = op[weights[i]];
          op.queue().launch("backward", 4 * duration, {Touch::read(from), Touch::read(to), Touch::write(to)},
                            [from, to] {
                              for (std::size_t k = 0; k < to.size(); ++k) to[k] += from[k];
                            });
        });
        wanted[i] += seed + 1 + static_cast<int>(i);
      }
    };
    for (int i = 0; i < 12; ++i) step(i);
    const Report before = manager.report();
    CHECK(before.iterations_followed > 3);
    REQUIRE(!before.plans.empty());
    CHECK(before.plans[0].replays > 0);
    failure.to_come = true;
    for (int i = 0; i < 3; ++i) step(77 + i);
    CHECK(failed == 1);
    for (std::size_t i = 0; i < layers; ++i) CHECK(weights[i].download() == std::vector<int>(count, wanted[i]));
  }
  check_clean(device);
}

TEST_CASE("addresses of parts in ever new places do not gather while a plan is followed") {
  simulated::Options options;
  options.check = false;
  Device device(options);
  constexpr std::size_t count = 1U << 16U;
  Manager manager(device, {.device_budget = 768_KiB},
                  Scheduler(SchedulerOptions{.sample_every = 0, .trial_iterations = 0}));
  std::vector<Numbers> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(manager.tensor<int>({count}, "tensor" + std::to_string(i)));
    all.back().upload(std::vector<int>(count));
  }
  const auto step = [&](std::size_t length) {
    const auto iteration = manager.iteration("decode");
    for (std::size_t i = 1; i < all.size(); ++i) manager.run("touch", updates(all[i]), [](auto&) {});
    manager.run("attend", updates(all[0]), [&](auto& op) {
      const auto part = op[all[0].slice(0, length)];
      op.queue().launch("attend", duration, {Touch::write(part)}, [part, length] { part[length - 1] = 1; });
    });
  };
  constexpr std::size_t steps = 20'000;
  for (std::size_t i = 1; i <= steps; ++i) step(i);
  const Report report = manager.report();
  CHECK(report.iterations_followed > steps - 100);
  CHECK(report.plan_starts > steps / 4096 / 2);  // each time they were forgotten
  CHECK(report.plan_starts < 50);
  const std::vector<int> values = all[0].download();
  CHECK(std::accumulate(values.begin(), values.end(), std::size_t{0}) == steps);
}

TEST_CASE("a tensor is not divided into more pieces than memory has room for their names") {
  Device device(large_device());
  Manager manager(device, {.device_budget = 1_MiB});
  CHECK_THROWS_WITH_AS((void)manager.divided<char>({std::size_t{1} << 61U}, "vast"),
                       "tensor \"vast\" of 2305843009213693952 elements would be divided into more than 2^22 pieces: "
                       "Division::entries makes larger ones",
                       UsageError);
}

}  // namespace swapmm::test::reused_memory_test
