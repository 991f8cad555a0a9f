// SPDX-License-Identifier: Apache-2.0
// Operations that run again: by plan, and when a plan is left at any point.
#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/replayed_chain.hpp"
#include "support/small_program.hpp"

namespace swapmm::test::repeated_operations_test {

constexpr std::size_t layers = ReplayedDesk::layers;
constexpr Bytes budget = ReplayedDesk::budget;

struct Desk : ReplayedDesk {
  using ReplayedDesk::ReplayedDesk;

  /// Iterates until a plan with replays is followed.
  void settle() {
    for (Number seed = 1; seed <= 8; ++seed) iterate(seed);
    REQUIRE(replays() > 0);
    REQUIRE(manager.report().iterations_followed > 0);
  }
};

TEST_CASE("a plan runs cheap operations again, where copies would take longer, and every bit is right") {
  Desk desk;
  desk.settle();
  const std::size_t runs = desk.chain.runs;
  const Report before = desk.manager.report();
  desk.iterate(20);
  const Report after = desk.manager.report();
  CHECK(after.iterations_followed == before.iterations_followed + 1);
  CHECK(desk.chain.runs - runs == layers + 1 + desk.replays());
  CHECK(after.operations - before.operations == desk.chain.operations());
  CHECK(after.plans.front().operations == desk.chain.operations());
  CHECK(after.plans.front().replay_time == static_cast<int>(desk.replays()) * ReplayedChain::forward_time);
  CHECK(after.divergences == 0);
  desk.check_right();
}

TEST_CASE("what is run again need not be copied") {
  const auto copied = [](Desk& desk) {
    for (Number seed = 1; seed <= 8; ++seed) desk.iterate(seed);
    const Report before = desk.manager.report();
    desk.iterate(20);
    const Report after = desk.manager.report();
    desk.check_right();
    return after.h2d + after.d2h - before.h2d - before.d2h;
  };
  Desk declares;
  Desk does_not;
  does_not.chain.declares = false;
  CHECK(copied(declares) < copied(does_not));
  CHECK(declares.replays() > 0);
  CHECK(does_not.replays() == 0);
}

TEST_CASE(
    "where only what is proven dead may be dropped, nothing runs again: callables may be gone when an iteration ends") {
  Desk desk({.device_budget = budget}, {.drops = DropRule::proven});
  for (Number seed = 1; seed <= 12; ++seed) desk.iterate(seed);
  const Report report = desk.manager.report();
  REQUIRE(report.iterations_followed > 0);
  CHECK(desk.replays() == 0);
  desk.check_right();
}

TEST_CASE("the followed plan takes as long as it predicts") {
  Desk desk;
  desk.settle();
  const auto ends = [&] {
    desk.manager.synchronize();
    return desk.device.now();
  };
  for (Number seed = 30; seed < 34; ++seed) desk.iterate(seed);
  const auto start = ends();
  for (Number seed = 34; seed < 44; ++seed) desk.iterate(seed);
  const auto took = (ends() - start) / 10;
  const auto predicted = desk.manager.report().plans.front().predicted.iteration;
  CHECK(took >= predicted - predicted / 50);
  CHECK(took <= predicted + predicted / 50);
}

TEST_CASE("an operation that nobody expects, at any point: what only replays could give back is made at once") {
  Desk desk;
  auto other = desk.manager.tensor<Number>({chain_length}, "other");
  desk.settle();
  for (std::size_t point = 0; point <= 2 * layers + 1; ++point) {
    CAPTURE(point);
    const Report before = desk.manager.report();
    other.upload(Numbers(chain_length, 1));
    desk.chain.before = [&](std::size_t operation) {
      if (operation != point) return;
      desk.manager.run("other", writes(other), [&](auto& op) {
        const auto out = op[other];
        op.queue().launch("other", operation_time, {Touch::write(out)}, [out] {
          for (Number& element : out) element = 7;
        });
      });
    };
    desk.iterate(50);
    desk.chain.before = nullptr;
    CHECK(other.download() == Numbers(chain_length, 7));
    for (Number seed = 51; seed < 54; ++seed) desk.iterate(seed);
    desk.check_right();
    CHECK(desk.manager.report().divergences > before.divergences);
    CHECK(desk.manager.report().iterations_followed > before.iterations_followed);
  }
  CHECK(desk.replays() > 0);
}

TEST_CASE("the host reads a value that is to be made again, before that") {
  // A value that was read is kept from then on, so each needs a manager of its own.
  for (const std::size_t point : {layers + 1, layers + 3, 2 * layers}) {
    for (const std::size_t value : {std::size_t{1}, std::size_t{3}}) {
      CAPTURE(point);
      CAPTURE(value);
      Desk desk;
      desk.settle();
      Numbers read;
      desk.chain.before = [&](std::size_t operation) {
        if (operation == point) read = desk.chain.hidden()[value].download();
      };
      // A value that the iteration needs no more may have been dropped: then it is so said.
      bool was_dropped = false;
      try {
        desk.chain.iterate(60);
      } catch (const DroppedValue&) {
        was_dropped = true;
      }
      desk.chain.before = nullptr;
      const bool is_needed = point < 2 * layers + 1 - value;  // backward operation of layer `value` has not run
      CHECK_FALSE((was_dropped && is_needed));
      if (was_dropped) continue;
      desk.model.iterate(60);
      CHECK(read == desk.model.hidden[value]);
      desk.check_right();
    }
  }
}

TEST_CASE("an upload over an input of what is still to run again: that runs first") {
  Desk desk;
  desk.settle();
  for (std::size_t point = layers + 1; point <= 2 * layers; ++point) {
    CAPTURE(point);
    desk.chain.before = [&](std::size_t operation) {
      if (operation == point) desk.chain.input().upload(Numbers(chain_length, 1));
    };
    desk.iterate(70);
    desk.chain.before = nullptr;
    for (Number seed = 71; seed < 74; ++seed) desk.iterate(seed);
    desk.check_right();
  }
  CHECK(desk.replays() > 0);
}

TEST_CASE("an iteration that ends early, at any point: the next ones are right") {
  struct Enough : std::exception {};
  Desk desk;
  desk.settle();
  for (std::size_t point = 0; point <= 2 * layers; ++point) {
    CAPTURE(point);
    desk.chain.before = [&](std::size_t operation) {
      if (operation == point) throw Enough{};
    };
    CHECK_THROWS_AS(desk.chain.iterate(80), Enough);
    desk.chain.before = nullptr;
    desk.model.forward(80);
    for (std::size_t layer = layers; layer-- > 0;) {
      if (2 * layers - layer < point) grow(desk.model.hidden[layer], desk.model.weights[layer]);
    }
    for (Number seed = 81; seed < 84; ++seed) desk.iterate(seed);
    desk.check_right();
  }
  CHECK(desk.replays() > 0);
}

TEST_CASE("a callable that throws when it runs again: the error passes through, and the manager works on") {
  Desk desk;
  desk.settle();
  auto source = desk.manager.tensor<Number>({chain_length}, "source");
  source.upload(Numbers(chain_length, 3));
  bool fails = false;
  const auto step = [&] {
    const auto iteration = desk.manager.iteration("failing");
    std::vector<Tensor<Number, Simulated>> made;
    for (int i = 0; i < 14; ++i) made.push_back(desk.manager.tensor<Number>({chain_length}, "made"));
    auto sum = desk.manager.tensor<Number>({chain_length}, "sum");
    int calls = 0;
    for (auto& tensor : made) {
      desk.manager.run("make", reads(source), writes(tensor), replayable, [&source, &tensor, &fails, &calls](auto& op) {
        if (++calls > 14 && fails) throw std::runtime_error("not again");
        const auto in = op[source];
        const auto out = op[tensor];
        op.queue().launch("make", operation_time, {Touch::read(in), Touch::write(out)}, [in, out] {
          for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] + 1;
        });
      });
    }
    for (std::size_t i = made.size(); i-- > 0;) {
      desk.manager.run("take", reads(made[i]), writes(sum), [&](auto& op) {
        const auto in = op[made[i]];
        const auto out = op[sum];
        op.queue().launch("take", operation_time, {Touch::read(in), Touch::write(out)}, [in, out] {
          for (std::size_t k = 0; k < out.size(); ++k) out[k] = in[k];
        });
      });
    }
    CHECK(calls > 13);
    CHECK(sum.download() == Numbers(chain_length, 4));
    return calls;
  };
  int calls = 0;
  for (int i = 0; i < 8; ++i) calls = step();
  REQUIRE(calls > 14);
  fails = true;
  CHECK_THROWS_WITH(step(), "not again");
  fails = false;
  for (int i = 0; i < 4; ++i) step();
  desk.iterate(90);
  desk.check_right();
}

TEST_CASE("a tensor that is gone when its operation is to run again is named") {
  Desk desk;
  auto source = desk.manager.tensor<Number>({chain_length}, "source");
  source.upload(Numbers(chain_length, 3));
  const auto step = [&](bool early) {
    const auto iteration = desk.manager.iteration("gone");
    std::vector<Tensor<Number, Simulated>> made;
    std::optional<Tensor<Number, Simulated>> seed(desk.manager.tensor<Number>({chain_length}, "seed"));
    for (int i = 0; i < 14; ++i) made.push_back(desk.manager.tensor<Number>({chain_length}, "made"));
    set(desk.manager, *seed, 4);
    for (auto& tensor : made) {
      desk.manager.run("make", reads(*seed), writes(tensor), replayable, [&seed, &tensor](auto& op) {
        const auto in = op[*seed];
        const auto out = op[tensor];
        op.queue().launch("make", operation_time, {Touch::read(in), Touch::write(out)}, [in, out] {
          for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i];
        });
      });
    }
    if (early) seed.reset();
    for (std::size_t i = made.size(); i-- > 0;) {
      desk.manager.run("take", reads(made[i], source),
                       [&](auto& op) { op.queue().launch("take", operation_time, {Touch::read(op[made[i]])}, [] {}); });
    }
  };
  for (int i = 0; i < 8; ++i) step(false);
  REQUIRE(desk.replays() > 0);
  const std::string text = text_of<UsageError>([&] { step(true); });
  CHECK(says(text, {"make", "no longer exists"}));
  const Report before = desk.manager.report();
  step(false);
  step(false);
  CHECK(desk.manager.report().divergences == before.divergences);
  CHECK(desk.manager.report().operations_followed > before.operations_followed);
}

TEST_CASE("check_access runs a replayable operation twice, and names one that is not") {
  simulated::Backend device;
  MemoryManager<simulated::Backend> manager(device, {.device_budget = budget, .check_access = true});
  auto from = manager.tensor<Number>({chain_length}, "from");
  auto to = manager.tensor<Number>({chain_length}, "to");
  from.upload(numbers(chain_length, 1));
  Number calls = 0;
  const auto run = [&](bool counts) {
    manager.run("make", reads(from), writes(to), replayable, [&, counts](auto& op) {
      const Number add = counts ? ++calls : 5;
      const auto in = op[from];
      const auto out = op[to];
      op.queue().launch("make", operation_time, {Touch::read(in), Touch::write(out)}, [in, out, add] {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] + add;
      });
    });
  };
  run(false);
  CHECK(manager.report().operations == 1);
  const auto error = thrown<AccessViolation>([&] { run(true); });
  REQUIRE(error);
  CHECK(error->kind == AccessViolation::Kind::not_replayable);
  CHECK(says(error->what(), {"\"make\"", "replayable", "\"to\""}));
  run(false);
}

TEST_CASE("a bundle that is put together at run time can be replayable") {
  Desk desk;
  auto source = desk.manager.tensor<Number>({chain_length}, "source");
  source.upload(Numbers(chain_length, 3));
  int calls = 0;
  for (int i = 0; i < 8; ++i) {
    const auto iteration = desk.manager.iteration("bundles");
    Bundle<Simulated> bundle;
    std::vector<Tensor<Number, Simulated>> made;
    for (int k = 0; k < 14; ++k) made.push_back(desk.manager.tensor<Number>({chain_length}, "made"));
    calls = 0;
    for (auto& tensor : made) {
      bundle.clear();
      bundle.reads(source).writes(tensor).replayable();
      desk.manager.run("make", bundle, [&source, &tensor, &calls](auto& op) {
        ++calls;
        const auto in = op[source];
        const auto out = op[tensor];
        op.queue().launch("make", operation_time, {Touch::read(in), Touch::write(out)}, [in, out] {
          for (std::size_t k = 0; k < out.size(); ++k) out[k] = in[k];
        });
      });
    }
    for (std::size_t k = made.size(); k-- > 0;) {
      desk.manager.run("take", reads(made[k]),
                       [&](auto& op) { op.queue().launch("take", operation_time, {Touch::read(op[made[k]])}, [] {}); });
    }
  }
  CHECK(calls > 14);
  desk.manager.synchronize();
  for (const std::string& violation : desk.device.violations()) FAIL_CHECK(violation);
}

}  // namespace swapmm::test::repeated_operations_test
