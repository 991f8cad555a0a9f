// SPDX-License-Identifier: Apache-2.0
// A manager that encodes values on their way to the host: Options::codec_staging.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/memory_file.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

constexpr std::size_t layers = 8;
constexpr std::size_t count = 256;  // elements of an activation, 1 KiB
constexpr Bytes room{4096};         // for four of them
const Bytes codec_memory{2 * encoder_bytes(1_KiB).value};

using Ints = Tensor<int, Simulated>;

/// An eighth of the elements is not zero.
int element(std::size_t i, int value) { return i % 8 == 3 ? value : 0; }

void fill(MemoryManager<Simulated>& manager, const Ints& to, int value, std::string_view name) {
  manager.run(name, writes(to), [&](auto& op) {
    const auto out = op[to];
    op.queue().launch(name, operation_time, {Touch::write(out)}, [out, value] {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = element(i, value);
    });
  });
}

void backward(MemoryManager<Simulated>& manager, const Ints& hidden, const Ints& total) {
  manager.run("backward", reads(hidden), updates(total), [&](auto& op) {
    const auto in = op[hidden];
    const auto out = op[total];
    op.queue().launch("backward", operation_time, {Touch::read(in), Touch::read(out), Touch::write(out)}, [in, out] {
      for (std::size_t k = 0; k < in.size(); ++k) out[k % length] += in[k] * (k % 5 == 1 ? 3 : 1);
    });
  });
}

std::vector<int> filled(int value) {
  std::vector<int> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = element(i, value);
  return all;
}

simulated::Options slow_link() {
  simulated::Options options;
  options.h2d.bytes_per_second = options.d2h.bytes_per_second = 200'000'000;
  return options;
}

Options with_codec(bool encodes) {
  return {.device_budget = encodes ? room + codec_memory : room, .codec_staging = encodes ? codec_memory : 0_bytes};
}

/// Activations that a step makes, one after the other, and uses in the reverse order.
struct Network {
  explicit Network(bool encodes, const simulated::Options& options = slow_link(), std::size_t observe = 2)
      : Network(encodes, options, SchedulerOptions{.observe = observe}) {}
  Network(bool encodes, const simulated::Options& options, const SchedulerOptions& plans)
      : device(options),
        manager(device, with_codec(encodes), Scheduler(plans)),
        total(manager.tensor<int>({length}, "total")) {
    for (std::size_t i = 0; i < layers; ++i) {
      hidden.push_back(manager.tensor<int>({count}, "h" + std::to_string(i), transient));
    }
    total.upload(std::vector<int>(length, 0));
  }

  void step(int value) {
    auto iteration = manager.iteration("step");
    for (std::size_t i = 0; i < layers; ++i) fill(manager, hidden[i], value + static_cast<int>(i), "forward");
    for (std::size_t i = layers; i-- > 0;) backward(manager, hidden[i], total);
  }
  std::chrono::nanoseconds time_of_steps(int steps) {
    const auto before = (manager.synchronize(), device.now());
    for (int i = 0; i < steps; ++i) step(i);
    manager.synchronize();
    return device.now() - before;
  }

  Simulated device;
  MemoryManager<Simulated> manager;
  std::vector<Ints> hidden;
  Ints total;
};

}  // namespace

TEST_CASE("on demand, values are encoded on their way: the same bits in less time, within the budget") {
  Network plain(false, slow_link(), 0);
  Network encoding(true, slow_link(), 0);
  const auto plain_time = plain.time_of_steps(6);
  const auto time = encoding.time_of_steps(6);
  CHECK(encoding.total.download() == plain.total.download());
  CHECK(time < plain_time * 3 / 4);
  const Report report = encoding.manager.report();
  CHECK(report.codec_staging == codec_memory);
  CHECK(report.device_budget == room + codec_memory);
  CHECK(report.device_peak <= room + codec_memory);
  CHECK(encoding.device.counters().peak_device_bytes == room + codec_memory);
  CHECK(report.encoded_out > 4_KiB);
  CHECK(report.encoded_in > 4_KiB);
  CHECK(report.encoded_out <= report.d2h);
  CHECK(encoding.device.counters().count(simulated::CommandKind::encode_to_host) > 0);
  CHECK(encoding.device.violation_count() == 0);
  CHECK(plain.manager.report().encoded_out == 0_bytes);
}

TEST_CASE("where sizes vary, memory for encoded values is no more than a few times what they need") {
  simulated::Options slow = slow_link();
  slow.device_bytes = 64_MiB;
  const simulated::Backend device(slow);
  const Bytes largest = 2_MiB;
  const Bytes codec{2 * encoder_bytes(largest).value};
  MemoryManager<Simulated> manager(device, {.device_budget = Bytes{3 * largest.value} + codec, .codec_staging = codec});
  constexpr std::size_t tensors = 6;
  for (std::size_t round = 0; round < 60; ++round) {
    CAPTURE(round);
    const std::size_t elements = (1_MiB).value / sizeof(int) + round * 4096;
    std::vector<Ints> values;
    for (std::size_t t = 0; t < tensors; ++t) {
      values.push_back(manager.tensor<int>({elements}, "value"));
      fill(manager, values.back(), static_cast<int>(100 * round + t + 1), "fill");
    }
    const std::vector<int> first = values[0].download();
    CHECK(first[3] == static_cast<int>(100 * round + 1));
    CHECK(first[4] == 0);
  }
  const Report report = manager.report();
  CHECK(report.encoded_out > 60_MiB);
  CHECK(report.host_peak < Bytes{4 * tensors * largest.value + (64U << 20U)});  // 60 sizes of 4 values: 300 MiB
}

TEST_CASE("a plan knows which values are encoded, and how long that takes") {
  Network plain(false);
  Network encoding(true);
  for (int i = 0; i < 8; ++i) {
    plain.step(i);
    encoding.step(i);
  }
  const auto plain_time = plain.time_of_steps(4);
  const auto time = encoding.time_of_steps(4);
  const auto time_of_eight = encoding.time_of_steps(8);
  (void)plain.time_of_steps(8);
  CHECK(encoding.total.download() == plain.total.download());
  const Report report = encoding.manager.report();
  REQUIRE(report.plans.size() == 1);
  CHECK(report.plans[0].encoded >= 3);
  CHECK(report.iterations_followed >= 8);
  CHECK(report.divergences == 0);
  CHECK(time < plain_time);
  CHECK(time_of_eight - time == 4 * report.plans[0].predicted.iteration);
  CHECK(report.plans[0].predicted.lower_bound <= report.plans[0].predicted.iteration);
  CHECK(plain.manager.report().plans.at(0).encoded == 0);
  CHECK(plain.manager.report().plans.at(0).predicted.d2h > report.plans[0].predicted.d2h);
  CHECK(encoding.device.violation_count() == 0);
}

namespace {

/// Half of the activations are as cheap to make again as they are dense, the others are sparse and dear.
struct MixedNetwork {
  explicit MixedNetwork(bool replayable, Bytes codec)
      : device(slow_link()),
        manager(device, {.device_budget = room + codec, .codec_staging = codec}),
        input(manager.tensor<int>({length}, "input")),
        total(manager.tensor<int>({length}, "total")),
        may_run_again(replayable) {
    for (std::size_t i = 0; i < layers; ++i) {
      hidden.push_back(manager.tensor<int>({count}, (is_cheap(i) ? "dense" : "sparse") + std::to_string(i), transient));
    }
    total.upload(std::vector<int>(length, 0));
  }

  static bool is_cheap(std::size_t i) { return i % 2 == 0; }
  [[nodiscard]] static std::chrono::nanoseconds time_of(std::size_t i) {
    return is_cheap(i) ? std::chrono::nanoseconds{200} : 20 * operation_time;
  }

  void step(int value) {
    auto iteration = manager.iteration("step");
    input.upload(std::vector<int>(length, value));
    for (std::size_t i = 0; i < layers; ++i) forward(i);
    for (std::size_t i = layers; i-- > 0;) backward(manager, hidden[i], total);
  }

  void forward(std::size_t i) {
    Bundle<Simulated> bundle;
    bundle.reads(input).writes(hidden[i]);
    if (may_run_again) bundle.replayable();
    manager.run("forward", bundle, [this, i](auto& op) {
      const auto in = op[input];
      const auto out = op[hidden[i]];
      op.queue().launch("forward", time_of(i), {Touch::read(in), Touch::write(out)}, [in, out, i] {
        for (std::size_t k = 0; k < out.size(); ++k) {
          out[k] = is_cheap(i) ? in[k % length] + static_cast<int>(k) + 1 : element(k, in[k % length]);
        }
      });
    });
  }

  Simulated device;
  MemoryManager<Simulated> manager;
  std::vector<Ints> hidden;
  Ints input;
  Ints total;
  bool may_run_again = false;
};

}  // namespace

TEST_CASE("one plan encodes some values on their way and makes others again: faster than either alone") {
  MixedNetwork copies(false, 0_bytes);
  MixedNetwork again(true, 0_bytes);
  MixedNetwork encoding(false, codec_memory);
  MixedNetwork both(true, codec_memory);
  std::vector<std::chrono::nanoseconds> predicted;
  for (MixedNetwork* const network : {&copies, &again, &encoding, &both}) {
    for (int i = 0; i < 14; ++i) network->step(i);
    network->manager.synchronize();
    const auto before = network->device.now();
    for (int i = 14; i < 24; ++i) network->step(i);
    network->manager.synchronize();
    const auto time = network->device.now() - before;
    const Report report = network->manager.report();
    REQUIRE(report.plans.size() == 1);
    CHECK(report.divergences == 0);
    const PlanSummary& plan = report.plans[0];
    CHECK(plan.predicted.lower_bound <= plan.predicted.iteration);
    // The first of these steps waits for what the last one leaves behind.
    CHECK(time >= 9 * plan.predicted.iteration);
    CHECK(time <= 11 * plan.predicted.iteration);
    predicted.push_back(plan.predicted.iteration);
    CHECK(network->device.violation_count() == 0);
    CHECK(network->total.download() == copies.total.download());
  }
  CHECK(again.manager.report().plans[0].replays > 0);
  CHECK(encoding.manager.report().plans[0].encoded > 0);
  CHECK(both.manager.report().plans[0].replays > 0);
  CHECK(both.manager.report().plans[0].encoded > 0);
  CHECK(predicted[3] < predicted[1]);
  CHECK(predicted[3] < predicted[2]);
}

TEST_CASE("what does not pay is tried a few times, and copied as it is from then on") {
  simulated::Options options = slow_link();
  options.encoded_part = [](Bytes) { return 0.95; };
  Network network(true, options);
  for (int i = 0; i < 3; ++i) network.step(i);
  const Bytes tried = network.manager.report().encoded_out;
  CHECK(tried > 0_bytes);
  CHECK(tried <= Bytes{3 * layers * count * sizeof(int)});
  for (int i = 3; i < 12; ++i) network.step(i);
  const Report report = network.manager.report();
  CHECK(report.encoded_out == tried);
  CHECK(report.d2h.value > 2 * tried.value);
  REQUIRE(report.plans.size() == 1);
  CHECK(report.plans[0].encoded == 0);
  Network plain(false, options);
  for (int i = 0; i < 12; ++i) plain.step(i);
  CHECK(network.total.download() == plain.total.download());
}

TEST_CASE("a plan that encodes values is made anew when they get denser") {
  double part = 0.3;
  simulated::Options options = slow_link();
  options.encoded_part = [&](Bytes) { return part; };
  Network network(true, options, {.sample_every = 2});
  for (int i = 0; i < 10; ++i) network.step(i);
  REQUIRE(network.manager.report().plans.size() == 1);
  CHECK(network.manager.report().plans[0].encoded >= 3);
  part = 1.2;
  for (int i = 10; i < 40; ++i) network.step(i);
  const Report report = network.manager.report();
  CHECK(report.plans_remade >= 1);
  CHECK(report.plans.at(0).encoded == 0);
  network.step(40);
  CHECK(network.manager.report().encoded_out == report.encoded_out);
  Network plain(false, options);
  for (int i = 0; i < 41; ++i) plain.step(i);
  CHECK(network.total.download() == plain.total.download());
}

TEST_CASE("values that are too small or too large for the codec are copied as they are") {
  Simulated device;
  const Bytes half = encoder_bytes(1_KiB);
  MemoryManager<Simulated> manager(
      device, {.device_budget = 4096_bytes + Bytes{2 * half.value}, .codec_staging = Bytes{2 * half.value}});
  std::vector<Ints> large;
  for (int i = 0; i < 4; ++i) {
    large.push_back(manager.tensor<int>({512}, "large" + std::to_string(i)));
    set(manager, large.back(), 0);
  }
  std::vector<Ints> small;
  for (int i = 0; i < 80; ++i) {
    small.push_back(manager.tensor<int>({length}, "small" + std::to_string(i)));
    set(manager, small.back(), i);
  }
  CHECK(manager.report().swap_outs > 8);
  CHECK(manager.report().encoded_out == 0_bytes);
  for (int i = 0; i < 4; ++i) CHECK(holds(large[static_cast<std::size_t>(i)], 0));
  for (int i = 0; i < 80; ++i) CHECK(holds(small[static_cast<std::size_t>(i)], i));
}

TEST_CASE("the host reads and fills what is encoded, whole and in parts") {
  Network network(true, slow_link(), 0);
  for (std::size_t i = 0; i < layers; ++i) fill(network.manager, network.hidden[i], static_cast<int>(i) + 1, "set");
  REQUIRE(network.manager.report().encoded_out >= 3_KiB);
  // Whole, in parts, and later.
  CHECK(network.hidden[0].download() == filled(1));
  std::vector<int> part(10);
  network.hidden[1].slice(30, 10).download(part);
  const std::vector<int> second = filled(2);
  CHECK(std::equal(part.begin(), part.end(), second.begin() + 30));
  std::vector<int> third(count);
  auto later = network.hidden[2].download_async(third);
  later.wait();
  CHECK(third == filled(3));
  // A part, and the whole.
  network.hidden[1].slice(30, 10).upload(std::vector<int>(10, 77));
  std::vector<int> changed = filled(2);
  std::fill_n(changed.begin() + 30, 10, 77);
  CHECK(network.hidden[1].download() == changed);
  network.hidden[0].upload(filled(99));
  CHECK(network.hidden[0].download() == filled(99));
  // What the host has used is not encoded any more.
  Report before;
  for (int round = 0; round < 4; ++round) {
    for (std::size_t i = 0; i < 3; ++i) increase(network.manager, network.hidden[i], 1);
    for (std::size_t i = 3; i < layers; ++i) network.manager.run("look", reads(network.hidden[i]), [](auto&) {});
    if (round == 0) before = network.manager.report();  // by now all of them have left once
  }
  CHECK(network.manager.report().encoded_out == before.encoded_out);
  CHECK(network.manager.report().d2h >= before.d2h + 9_KiB);
  CHECK(network.device.violation_count() == 0);
}

TEST_CASE("what was promised of an encoded value is read, whatever its memory holds next") {
  Simulated device(slow_link());
  MemoryManager<Simulated> manager(device, with_codec(true));
  std::vector<Ints> tensors;
  for (int i = 0; i < 8; ++i) {
    tensors.push_back(manager.tensor<int>({count}, "t" + std::to_string(i)));
    fill(manager, tensors.back(), i + 1, "set");
  }
  // Values of the same size and other elements: four fill the device, and the next four make them leave it.
  std::vector<Tensor<double, Simulated>> others;
  const auto write_four = [&] {
    for (int i = 0; i < 4; ++i) {
      others.push_back(manager.tensor<double>({count / 2}, "other" + std::to_string(i)));
      manager.run("write", writes(others.back()), [&](auto& op) {
        const auto out = op[others.back()];
        op.queue().launch("write", operation_time, {Touch::write(out)},
                          [out] { std::fill(out.begin(), out.end(), 0.5); });
      });
    }
  };
  write_four();
  std::vector<int> promised(count);
  auto pending = tensors[0].download_async(promised);
  tensors[0].upload(filled(50));
  write_four();
  pending.wait();
  CHECK(promised == filled(1));
  CHECK(tensors[0].download() == filled(50));
  for (const auto& other : others) CHECK(other.download() == std::vector<double>(count / 2, 0.5));
}

TEST_CASE("a plan does not encode what the program has read since it was made") {
  Network network(true);
  for (int i = 0; i < 8; ++i) network.step(i);
  REQUIRE(network.manager.report().plans.at(0).encoded >= 3);
  const auto encoded_in_a_step = [&](int value) {
    const Bytes before = network.manager.report().encoded_out;
    network.step(value);
    return network.manager.report().encoded_out - before;
  };
  const Bytes usual = encoded_in_a_step(8);
  REQUIRE(usual >= 3_KiB);
  const std::uint64_t divergences = network.manager.report().divergences;
  {
    auto iteration = network.manager.iteration("step");
    for (std::size_t i = 0; i < layers; ++i) fill(network.manager, network.hidden[i], 9, "forward");
    for (std::size_t i = 0; i < layers; ++i) CHECK(network.hidden[i].download() == filled(9));
  }
  for (int i = 10; i < 13; ++i) network.step(i);
  CHECK(network.manager.report().divergences >= divergences);
  CHECK(encoded_in_a_step(13) == 0_bytes);
  CHECK(network.device.violation_count() == 0);
}

TEST_CASE("page-locked memory of encoded values that are gone serves plain ones") {
  Simulated device(slow_link());
  Options options = with_codec(true);
  options.pinned_budget = 9_KiB;
  MemoryManager<Simulated> manager(device, options);
  {
    std::vector<Ints> tensors;
    for (int i = 0; i < 12; ++i) {
      tensors.push_back(manager.tensor<int>({count}, "t" + std::to_string(i)));
      fill(manager, tensors.back(), i + 1, "set");
    }
    REQUIRE(manager.report().encoded_out >= 7_KiB);
  }
  auto one = manager.tensor<int>({2048}, "one");
  one.upload(std::vector<int>(2048, 7));
  CHECK(holds(one, 7));
  CHECK(manager.report().pinned_used >= 8_KiB);
  CHECK(manager.report().host_used < 12_KiB);
  CHECK(device.counters().host_bytes == device.counters().pinned_bytes);
}

TEST_CASE("with links that are given, a plan counts encoded copies by these") {
  SchedulerOptions plans;
  plans.machine = Machine{};
  plans.machine->h2d = plans.machine->d2h = Link{200'000'000, std::chrono::nanoseconds{0}};
  Network network(true, slow_link(), plans);
  for (int i = 0; i < 8; ++i) network.step(i);
  const auto four = network.time_of_steps(4);
  const auto eight = network.time_of_steps(8);
  const Report report = network.manager.report();
  REQUIRE(report.plans.size() == 1);
  CHECK(report.plans[0].encoded >= 3);
  CHECK(eight - four == 4 * report.plans[0].predicted.iteration);
}

TEST_CASE("a host view reads and changes what is encoded") {
  Simulated device(slow_link());
  MemoryManager<Simulated> manager(device, with_codec(true));
  std::vector<Ints> tensors;
  for (int i = 0; i < 8; ++i) {
    tensors.push_back(manager.tensor<int>({count}, "t" + std::to_string(i)));
    fill(manager, tensors.back(), i + 1, "set");
  }
  REQUIRE(manager.report().encoded_out >= 4_KiB);
  {
    auto view = tensors[0].host_view();
    CHECK(std::equal(view.begin(), view.end(), filled(1).begin()));
    view[100] = 5;
  }
  std::vector<int> expected = filled(1);
  expected[100] = 5;
  CHECK(tensors[0].download() == expected);
}

TEST_CASE("where page-locked memory is short, values go to the host as they are") {
  Simulated device(slow_link());
  Options options = with_codec(true);
  options.pinned_budget = 2500_bytes;  // for two encoded values
  MemoryManager<Simulated> manager(device, options);
  std::vector<Ints> tensors;
  for (int i = 0; i < 10; ++i) {
    tensors.push_back(manager.tensor<int>({count}, "t" + std::to_string(i)));
    fill(manager, tensors.back(), i + 1, "set");
  }
  const Report report = manager.report();
  CHECK(report.encoded_out == 2_KiB);
  CHECK(report.pinned_used <= 2500_bytes);
  CHECK(report.swap_outs >= 6);
  for (int i = 0; i < 10; ++i) CHECK(tensors[static_cast<std::size_t>(i)].download() == filled(i + 1));
}

TEST_CASE("memory of encoded values that are gone serves others, and is given back when memory is short") {
  Simulated device(slow_link());
  Options options = with_codec(true);
  options.host_budget = 9_KiB;
  MemoryManager<Simulated> manager(device, options);
  for (int round = 0; round < 6; ++round) {
    std::vector<Ints> tensors;
    for (int i = 0; i < 9; ++i) {
      tensors.push_back(manager.tensor<int>({count}, "t" + std::to_string(i)));
      fill(manager, tensors.back(), i + 1, "set");
    }
    for (int i = 0; i < 9; ++i) manager.run("look", reads(tensors[static_cast<std::size_t>(i)]), [](auto&) {});
  }
  CHECK(manager.report().host_peak <= 9_KiB);
  CHECK(manager.report().encoded_out > 20_KiB);
  // Now the host needs all of its memory for something else.
  auto one = manager.tensor<int>({2048}, "one");
  one.upload(std::vector<int>(2048, 7));
  CHECK(holds(one, 7));
  CHECK(manager.report().host_used <= 9_KiB);
}

TEST_CASE("the budget may change while values are encoded") {
  Network network(true);
  Network plain(false);
  for (int i = 0; i < 12; ++i) {
    if (i == 5) network.manager.set_budget(room + codec_memory - 1_KiB);
    if (i == 9) network.manager.set_budget(room + codec_memory + 1_KiB);
    network.step(i);
    plain.step(i);
    const Report now = network.manager.report();
    REQUIRE(now.device_peak <= room + codec_memory + 1_KiB);
    REQUIRE(now.device_used <= now.device_budget);
  }
  CHECK(network.manager.report().device_budget == room + codec_memory + 1_KiB);
  CHECK(network.total.download() == plain.total.download());
  CHECK_THROWS_AS(network.manager.set_budget(codec_memory), UsageError);
}

TEST_CASE("bad options for encodings are refused") {
  Simulated device;
  const auto refusal = [&](Options options) {
    return text_of<UsageError>([&] { MemoryManager<Simulated> manager(device, std::move(options)); });
  };
  CHECK(says(refusal({.device_budget = 4_KiB, .codec_staging = 4_KiB}), {"codec_staging", "4096", "leaves nothing"}));
  CHECK(says(refusal({.device_budget = codec_memory + 15_bytes, .codec_staging = codec_memory}), {"leaves nothing"}));
  CHECK(says(refusal({.device_budget = 4_KiB, .codec_staging = Bytes{~std::uint64_t{0}}}), {"leaves nothing"}));
  CHECK(says(refusal({.device_budget = 4_KiB, .codec_staging = 100_bytes}), {"codec_staging", "100", "too little"}));
  CHECK(says(refusal({.device_budget = 64_KiB, .codec_staging = 4_KiB, .scrub = true}), {"scrub"}));
  CHECK(says(refusal({.device_budget = 64_KiB, .neighbours = {simulated::neighbour(1_KiB)}, .codec_staging = 4_KiB}),
             {"neighbours"}));
  CHECK(says(
      refusal(
          {.device_budget = 64_KiB, .file = std::make_shared<MemoryFile>(64_KiB, 16_bytes), .codec_staging = 4_KiB}),
      {"file"}));
  // The device has no room for it.
  simulated::Options poor;
  poor.device_bytes = 5_KiB;
  Simulated small(poor);
  CHECK_THROWS_AS((MemoryManager<Simulated>(small, with_codec(true))), OutOfMemory);
  CHECK(small.counters().device_memories.live == 0);
}

TEST_CASE("elements of all sizes are encoded as what they are") {
  Simulated device(slow_link());
  const Bytes half = encoder_bytes(4_KiB);
  MemoryManager<Simulated> manager(
      device, {.device_budget = 8_KiB + Bytes{2 * half.value}, .codec_staging = Bytes{2 * half.value}});
  auto bytes = manager.tensor<std::uint8_t>({1001}, "bytes");
  auto halves = manager.tensor<std::uint16_t>({501}, "halves");
  auto doubles = manager.tensor<double>({301}, "doubles");
  const auto write = [&](const auto& tensor) {
    manager.run("write", writes(tensor), [&](auto& op) {
      const auto out = op[tensor];
      op.queue().launch("write", operation_time, {Touch::write(out)}, [out] {
        for (std::size_t i = 0; i < out.size(); ++i) {
          out[i] = static_cast<std::remove_reference_t<decltype(out[i])>>(i % 7 == 2 ? i % 100 + 1 : 0);
        }
      });
    });
  };
  write(bytes);
  write(halves);
  write(doubles);
  std::vector<Ints> others;
  for (int i = 0; i < 12; ++i) {
    others.push_back(manager.tensor<int>({count}, "other" + std::to_string(i)));
    fill(manager, others.back(), i, "set");
  }
  CHECK(manager.report().encoded_out >= Bytes{1001 + 1002 + 2408});
  const auto check = [&](const auto& tensor) {
    manager.run("use", reads(tensor), [](auto&) {});  // by the device, and then by the host
    const auto values = tensor.download();
    bool right = true;
    for (std::size_t i = 0; i < values.size(); ++i) {
      right = right && values[i] == static_cast<std::remove_cvref_t<decltype(values[i])>>(i % 7 == 2 ? i % 100 + 1 : 0);
    }
    CHECK(right);
  };
  check(bytes);
  check(halves);
  check(doubles);
}

TEST_CASE("in any order of steps, encoded values come back bit for bit") {
  std::vector<int> expected;
  for (const auto order : {simulated::Order::uniform, simulated::Order::pct, simulated::Order::copies_first,
                           simulated::Order::copies_last}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      CAPTURE(seed);
      simulated::Options options = slow_link();
      options.order = order;
      options.seed = seed;
      Network network(true, options);
      for (int i = 0; i < 8; ++i) network.step(i);
      const std::vector<int> total = network.total.download();
      if (expected.empty()) expected = total;
      REQUIRE(total == expected);
      REQUIRE(network.device.violation_count() == 0);
      REQUIRE(network.manager.report().encoded_out > 0_bytes);
    }
  }
}
