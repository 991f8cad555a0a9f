// SPDX-License-Identifier: Apache-2.0
#include "larger_than_memory/with_swapmm.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/opencl/program.hpp>
#include <swapmm/swapmm.hpp>

namespace wave {
namespace {

using swapmm::reads;
using swapmm::updates;
using swapmm::writes;
using swapmm::opencl::argument;
using swapmm::opencl::Backend;
using swapmm::opencl::Kernel;
using swapmm::opencl::Program;
using Field = swapmm::Tensor<float, Backend>;

// A field at two times: the step that is now, and the one before it, whose place the next one takes.
struct TwoSteps {
  Field now, other;
};

struct Tensors {
  using Manager = swapmm::MemoryManager<Backend>;

  Tensors(Manager& manager, const Problem& problem)
      : rock(field(manager, problem, "rock")),
        image(field(manager, problem, "image")),
        // Each shot begins these with zeroes, so their last values would count for dead. They are compared at the end:
        // hence `kept`. The checkpoints are indeed dead after their shot.
        forward{field(manager, problem, "forward", swapmm::kept), field(manager, problem, "forward 2", swapmm::kept)},
        backward{field(manager, problem, "backward", swapmm::kept),
                 field(manager, problem, "backward 2", swapmm::kept)},
        record(manager.tensor<float>({problem.steps, problem.size, problem.size}, "record", swapmm::kept)) {
    for (std::size_t i = 0; i < wave::checkpoints(problem); ++i) {
      checkpoints.push_back(field(manager, problem, "checkpoint " + std::to_string(i), swapmm::transient));
    }
    rock.upload(wave::rock(problem));
    image.upload(std::vector<float>(cells(problem)));
  }

  static Field field(Manager& manager, const Problem& problem, const std::string& name,
                     swapmm::Lifetime lifetime = swapmm::persistent) {
    return manager.tensor<float>({problem.size, problem.size, problem.size}, name, lifetime);
  }

  Field rock, image;
  TwoSteps forward, backward;
  Field record;
  std::vector<Field> checkpoints;
};

// One unit operation per kernel, all of the second form: the kernel itself waits for what it needs, and its event tells
// when it has ended.
class Shooting {
 public:
  Shooting(const Backend& backend, const Problem& problem, const swapmm::Options& memory,
           const swapmm::SchedulerOptions& plans)
      : problem_(problem),
        manager_(backend, memory, swapmm::Scheduler(plans)),
        program_(backend, "#include <swapmm/kernel.h>\n" + std::string(kernels)),
        tensors_(manager_, problem) {}

  void shoot(std::size_t shot) {
    const auto iteration = manager_.iteration("shot");
    forward(shot);
    backward();
  }
  void synchronize() { manager_.synchronize(); }
  [[nodiscard]] swapmm::Report report() const { return manager_.report(); }
  [[nodiscard]] Result result() const {
    return {tensors_.image.download(), tensors_.record.download(), tensors_.forward.now.download(),
            tensors_.backward.now.download()};
  }

 private:
  void forward(std::size_t shot) {
    auto& [now, other] = tensors_.forward;
    silence(now);
    silence(other);
    silence(tensors_.record);
    for (std::size_t step = 0; step < problem_.steps; ++step) {
      fire(now, shot, step);
      advance(now, other);
      std::swap(now, other);  // the handles change places: not a byte moves
      record(now, step);
      if ((step + 1) % problem_.every == 0) keep(now, tensors_.checkpoints[step / problem_.every]);
    }
  }

  void backward() {
    auto& [now, other] = tensors_.backward;
    silence(now);
    silence(other);
    for (std::size_t step = problem_.steps; step-- > 0;) {
      play(now, step);
      if ((step + 1) % problem_.every == 0) correlate(tensors_.checkpoints[step / problem_.every], now);
      advance(now, other);
      std::swap(now, other);
    }
  }

  void silence(Field& field) {
    manager_.run("silence", writes(field), [&](auto& op, const auto& waits) {
      silence_.set(argument(op[field], field));
      return silence_.enqueue(op.queue(), range(field.shape()), {}, waits);
    });
  }
  void fire(Field& field, std::size_t shot, std::size_t step) {
    manager_.run("fire", updates(field), [&](auto& op, const auto& waits) {
      const auto [z, y, x] = source(problem_, shot);
      fire_.set(argument(op[field], field), z, y, x, loudness(step));
      return fire_.enqueue(op.queue(), {1}, {}, waits);
    });
  }
  void advance(Field& now, Field& other) {
    auto& rock = tensors_.rock;
    manager_.run("advance", reads(now, rock), updates(other), [&](auto& op, const auto& waits) {
      advance_.set(argument(op[now], now), argument(op[rock], rock), argument(op[other], other));
      return advance_.enqueue(op.queue(), range(now.shape()), {}, waits);
    });
  }
  // Each step writes one plane of the record and leaves the others, so it updates the record.
  void record(Field& field, std::size_t step) {
    auto& planes = tensors_.record;
    manager_.run("record", reads(field), updates(planes), [&](auto& op, const auto& waits) {
      record_.set(argument(op[field], field), argument(op[planes], planes), receiver_depth(problem_),
                  static_cast<std::int64_t>(step));
      return record_.enqueue(op.queue(), {problem_.size, problem_.size}, {}, waits);
    });
  }
  void play(Field& field, std::size_t step) {
    auto& planes = tensors_.record;
    manager_.run("play", reads(planes), updates(field), [&](auto& op, const auto& waits) {
      play_.set(argument(op[planes], planes), argument(op[field], field), receiver_depth(problem_),
                static_cast<std::int64_t>(step));
      return play_.enqueue(op.queue(), {problem_.size, problem_.size}, {}, waits);
    });
  }
  void keep(Field& field, Field& checkpoint) {
    manager_.run("keep", reads(field), writes(checkpoint), [&](auto& op, const auto& waits) {
      keep_.set(argument(op[field], field), argument(op[checkpoint], checkpoint));
      return keep_.enqueue(op.queue(), range(field.shape()), {}, waits);
    });
  }
  void correlate(Field& checkpoint, Field& field) {
    auto& image = tensors_.image;
    manager_.run("correlate", reads(checkpoint, field), updates(image), [&](auto& op, const auto& waits) {
      correlate_.set(argument(op[checkpoint], checkpoint), argument(op[field], field), argument(op[image], image));
      return correlate_.enqueue(op.queue(), range(image.shape()), {}, waits);
    });
  }

  // Work items count the fastest dimension first, shapes the slowest.
  static swapmm::opencl::Range range(const swapmm::Shape& shape) { return {shape[2], shape[1], shape[0]}; }

  Problem problem_;
  swapmm::MemoryManager<Backend> manager_;
  Program program_;
  Tensors tensors_;
  Kernel silence_ = program_.kernel("silence");
  Kernel fire_ = program_.kernel("fire");
  Kernel advance_ = program_.kernel("advance");
  Kernel record_ = program_.kernel("record");
  Kernel play_ = program_.kernel("play");
  Kernel keep_ = program_.kernel("keep");
  Kernel correlate_ = program_.kernel("correlate");
};

}  // namespace

SwappedResult run_with_swapmm(const Backend& backend, const Problem& problem, const swapmm::Options& memory,
                              const std::function<void(const ShotReport&)>& tell,
                              const swapmm::SchedulerOptions& plans) {
  Shooting shooting(backend, problem, memory, plans);
  swapmm::Report before = shooting.report();
  for (std::size_t shot = 0; shot < problem.shots; ++shot) {
    const auto start = std::chrono::steady_clock::now();
    shooting.shoot(shot);
    shooting.synchronize();  // for the time of this shot alone; the results do not need it
    const swapmm::Report after = shooting.report();
    if (tell) {
      tell({shot, std::chrono::steady_clock::now() - start, after.h2d - before.h2d, after.d2h - before.d2h,
            after.iterations_followed > before.iterations_followed});
    }
    before = after;
  }
  return {shooting.result(), before};
}

}  // namespace wave
