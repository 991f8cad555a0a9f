// SPDX-License-Identifier: Apache-2.0
//
// Random programs on divided tensors: operations on random slices, joined or in pieces, of both forms, that may run
// again or not, in iterations that repeat, with surprises in some. Whatever the order in which the simulated device
// runs its queues, the values must be those of plain loops on the host, and no byte more than the budget may be in use.
// SWAPMM_TEST_SEED=n runs the program of that seed alone, SWAPMM_TEST_SEEDS=n so many of them.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/effort.hpp"
#include "support/numbers.hpp"
#include "support/seeds.hpp"

namespace swapmm::test::divided_property_test {

using Device = simulated::Backend;
using simulated::Touch;
using Field = DividedTensor<Number, Device>;
using Slice = DividedView<Number, Device>;

const std::uint64_t usual_programs = effort(3000, 30);

constexpr std::size_t width = 3;  // 12 bytes: slices begin where a view can, and where none can

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(engine_); }
  bool one_of(std::size_t count) { return below(count) == 0; }

 private:
  std::mt19937_64 engine_;
};

// One operation: `to` becomes salt + i, or is kept if it is updated, then 3 to[i] + 5 from[i] for each source.
struct Step {
  struct Use {
    std::size_t field;
    std::size_t first;
    std::size_t count;
    bool in_pieces;
  };
  std::string name;
  std::vector<Use> from;
  Use to;
  Access access;
  bool second_form;
  bool replayable;
  Number salt;
};

bool overlap(const Step::Use& a, const Step::Use& b) {
  return a.field == b.field && a.first < b.first + b.count && b.first < a.first + a.count;
}

struct Program {
  std::vector<std::size_t> entries;  // of each field
  std::vector<std::size_t> in_a_piece;
  std::vector<Step> steps;      // of an iteration
  std::vector<Step> surprises;  // one takes the place of a step now and then
  std::size_t iterations;
  Bytes budget;
  bool checked;
  simulated::Options device;
};

Bytes padded(std::size_t entries) { return round_up(Bytes{entries * width * sizeof(Number)}, Bytes{16}); }

// What the operation needs on the device, at most.
Bytes need(const Program& program, const Step& step) {
  Bytes bytes;
  const auto add = [&](const Step::Use& use) {
    const std::size_t piece = program.in_a_piece[use.field];
    const std::size_t pieces = (use.first + use.count - 1) / piece - use.first / piece + 1;
    bytes += Bytes{pieces * padded(piece).value} + padded(use.count);
  };
  add(step.to);
  for (const Step::Use& use : step.from) add(use);
  return bytes;
}

Program draw(std::uint64_t seed) {
  Draw random(seed);
  Program program;
  for (std::size_t i = 0, fields = 2 + random.below(3); i < fields; ++i) {
    program.entries.push_back(1 + random.below(20));
    program.in_a_piece.push_back(1 + random.below(6));
  }
  const auto use = [&] {
    const std::size_t field = random.below(program.entries.size());
    const std::size_t entries = program.entries[field];
    const std::size_t first = random.below(entries);
    const bool can_begin = first % program.in_a_piece[field] * width * sizeof(Number) % 16 == 0;
    return Step::Use{field, first, 1 + random.below(std::min<std::size_t>(entries - first, 8)),
                     can_begin && random.one_of(2)};
  };
  const auto step = [&](std::size_t number) {
    Step made{.name = "step" + std::to_string(number),
              .from = {},
              .to = use(),
              .access = random.one_of(2) ? Access::write : Access::update,
              .second_form = random.one_of(2),
              .replayable = random.one_of(3),
              .salt = static_cast<Number>(random.below(1000))};
    for (std::size_t i = 0, sources = random.below(3); i < sources; ++i) {
      const Step::Use from = use();
      if (!overlap(from, made.to)) made.from.push_back(from);
    }
    return made;
  };
  for (std::size_t i = 0, steps = 2 + random.below(10); i < steps; ++i) program.steps.push_back(step(i));
  if (random.one_of(3)) {
    for (std::size_t i = 0; i < 3; ++i) program.surprises.push_back(step(100 + i));
  }
  program.iterations = 3 + random.below(6);
  Bytes least;
  for (const Step& each : program.steps) least = std::max(least, need(program, each));
  for (const Step& each : program.surprises) least = std::max(least, need(program, each));
  program.budget = least + Bytes{16 * random.below(30)};
  program.checked = random.one_of(8);
  constexpr simulated::Order orders[]{simulated::Order::virtual_time, simulated::Order::uniform, simulated::Order::pct,
                                      simulated::Order::copies_first, simulated::Order::copies_last};
  program.device.order = orders[random.below(std::size(orders))];
  program.device.seed = seed;
  program.device.h2d.bytes_per_second = program.device.d2h.bytes_per_second = 1'000'000 * (1 + random.below(1000));
  return program;
}

// On the host, at once.
void run(const Step& step, std::vector<Numbers>& model) {
  Numbers& to = model[step.to.field];
  for (std::size_t i = 0; i < step.to.count * width; ++i) {
    Number& value = to[step.to.first * width + i];
    if (step.access == Access::write) value = step.salt + static_cast<Number>(i);
    for (const Step::Use& from : step.from) {
      value = 3U * value + 5U * model[from.field][from.first * width + i % (from.count * width)];
    }
  }
}

class Run {
 public:
  explicit Run(const Program& program)
      : program_(program),
        device_([&] {
          simulated::Options options = program.device;
          options.device_bytes = program.budget;
          return options;
        }()),
        manager_(device_, {.device_budget = program.budget, .check_access = program.checked},
                 // A surprise may read what a plan would have lost.
                 Scheduler({.drops = program.surprises.empty() ? DropRule::by_evidence : DropRule::proven})) {
    for (std::size_t i = 0; i < program.entries.size(); ++i) {
      fields_.push_back(manager_.divided<Number>({program.entries[i], width}, "field" + std::to_string(i),
                                                 {.entries = program.in_a_piece[i], .lifetime = kept}));
      model_.push_back(numbers(program.entries[i] * width, static_cast<Number>(1000 * i)));
      fields_.back().upload(model_.back());
    }
  }

  void all(std::uint64_t seed) {
    Draw random(seed + 1'000'000);
    for (std::size_t i = 0; i < program_.iterations; ++i) {
      {
        const auto iteration = manager_.iteration();
        for (const Step& step : program_.steps) {
          const bool surprising = !program_.surprises.empty() && random.one_of(12);
          run_step(surprising ? program_.surprises[random.below(program_.surprises.size())] : step);
        }
      }
      if (random.one_of(3)) compare();
    }
    compare();
    CHECK(manager_.report().device_peak <= program_.budget);
    for (const std::string& violation : device_.violations()) FAIL_CHECK(violation);
  }

  [[nodiscard]] Report report() const { return manager_.report(); }

 private:
  [[nodiscard]] Slice slice(const Step::Use& use) const {
    const Slice slice = fields_[use.field].slice(use.first, use.count);
    return use.in_pieces ? slice.in_pieces() : slice;
  }

  void compare() {
    for (std::size_t i = 0; i < fields_.size(); ++i) CHECK(fields_[i].download() == model_[i]);
  }

  void run_step(const Step& step) {
    run(step, model_);
    Bundle<Device> bundle;
    std::vector<Slice> from;
    for (const Step::Use& use : step.from) from.push_back(slice(use));
    const Slice to = slice(step.to);
    const bool reads_first = step.salt % 2 == 0;
    if (reads_first) {
      for (const Slice& source : from) bundle.reads(source);
    }
    if (step.access == Access::write) {
      bundle.writes(to);
    } else {
      bundle.updates(to);
    }
    if (!reads_first) {
      for (const Slice& source : from) bundle.reads(source);
    }
    if (step.replayable) bundle.replayable();
    // The places where the numbers of a slice are, part after part.
    const auto places = [](auto& op, const Slice& of, bool in_pieces) {
      std::vector<simulated::View<Number>> views;
      if (in_pieces) {
        for (const auto& part : of.parts()) views.push_back(op[part.view]);
      } else {
        views.push_back(op[of]);
      }
      return views;
    };
    struct Work {
      std::vector<simulated::View<Number>> to;
      std::vector<std::vector<simulated::View<Number>>> from;
      Access access;
      Number salt;
      [[nodiscard]] std::vector<Touch> touches() const {
        std::vector<Touch> touches;
        for (const auto& view : to) {
          if (access == Access::update) touches.push_back(Touch::read(view));
          touches.push_back(Touch::write(view));
        }
        for (const auto& source : from) {
          for (const auto& view : source) touches.push_back(Touch::read(view));
        }
        return touches;
      }
      void operator()() const {
        std::vector<Numbers> sources;
        for (const auto& source : from) {
          sources.emplace_back();
          for (const auto& view : source) sources.back().insert(sources.back().end(), view.begin(), view.end());
        }
        std::size_t i = 0;
        for (const auto& view : to) {
          for (Number& value : view) {
            if (access == Access::write) value = salt + static_cast<Number>(i);
            for (const Numbers& source : sources) value = 3U * value + 5U * source[i % source.size()];
            ++i;
          }
        }
      }
    };
    const auto work = [places, step, from, to](auto& op) {
      Work work{.to = places(op, to, step.to.in_pieces), .from = {}, .access = step.access, .salt = step.salt};
      for (std::size_t i = 0; i < from.size(); ++i) work.from.push_back(places(op, from[i], step.from[i].in_pieces));
      return work;
    };
    static constexpr std::chrono::nanoseconds time{100};
    if (step.second_form) {
      manager_.run(step.name, bundle, [work, name = step.name](auto& op, const auto& waits) {
        const Work made = work(op);
        return op.queue().launch(name, time, made.touches(), waits, made);
      });
    } else {
      manager_.run(step.name, bundle, [work, name = step.name](auto& op) {
        const Work made = work(op);
        op.queue().launch(name, time, made.touches(), made);
      });
    }
  }

  const Program& program_;
  Device device_;
  MemoryManager<Device> manager_;
  std::vector<Field> fields_;
  std::vector<Numbers> model_;
};

TEST_CASE("random programs on slices of divided tensors have the values of plain loops") {
  const Seeds which = seeds(usual_programs);
  std::uint64_t followed = 0;
  for (std::uint64_t seed = which.first; seed < which.first + which.count; ++seed) {
    CAPTURE(seed);
    const Program program = draw(seed);
    Run running(program);
    REQUIRE_NOTHROW(running.all(seed));
    followed += running.report().iterations_followed;
  }
  MESSAGE("" << which.count << " programs, " << followed << " iterations by plans");
  if (which.count > 1) CHECK(followed > which.count);
}

}  // namespace swapmm::test::divided_property_test
