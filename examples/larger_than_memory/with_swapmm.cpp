// SPDX-License-Identifier: Apache-2.0
#include "larger_than_memory/with_swapmm.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
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
using Field = swapmm::DividedTensor<float, Backend>;
using Planes = swapmm::DividedView<float, Backend>;

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
        record(manager.divided<float>({problem.steps, problem.size, problem.size}, "record",
                                      {.entries = planes(manager, problem), .lifetime = swapmm::kept})) {
    for (std::size_t i = 0; i < wave::checkpoints(problem); ++i) {
      checkpoints.push_back(field(manager, problem, "checkpoint " + std::to_string(i), swapmm::transient));
    }
    rock.upload(wave::rock(problem));
    image.upload(std::vector<float>(cells(problem)));
  }

  // Whole fields, with as many planes as anything has here, as long as they leave room for others.
  static std::size_t planes(const Manager& manager, const Problem& problem) {
    if (problem.planes != 0) return problem.planes;
    const bool has_room = 8 * cells(problem) * sizeof(float) <= manager.report().device_budget.value;
    return has_room ? std::max(problem.size, problem.steps) : swapmm::Division{}.entries;
  }
  static Field field(Manager& manager, const Problem& problem, const std::string& name,
                     swapmm::Lifetime lifetime = swapmm::persistent) {
    return manager.divided<float>({problem.size, problem.size, problem.size}, name,
                                  {.entries = planes(manager, problem), .lifetime = lifetime});
  }

  Field rock, image;
  TwoSteps forward, backward;
  Field record;
  std::vector<Field> checkpoints;
};

// One unit operation per kernel and piece of the field that it works on, all of the second form: the kernel itself
// waits for what it needs, and its event tells when it has ended.
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
      advance(now, other, step);
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
      advance(now, other, step);
      std::swap(now, other);
    }
  }

  void silence(Field& field) {
    for (std::size_t piece = 0; piece < field.pieces(); ++piece) {
      const Planes planes = field.slice_of_piece(piece);
      manager_.run("silence", writes(planes), [&](auto& op, const auto& waits) {
        silence_.set(argument(op[planes], planes));
        return silence_.enqueue(op.queue(), range(planes.shape()), {}, waits);
      });
    }
  }
  void fire(Field& field, std::size_t shot, std::size_t step) {
    const auto [z, y, x] = source(problem_, shot);
    const Planes plane = field.slice(static_cast<std::size_t>(z), 1);
    manager_.run("fire", updates(plane), [&, y = y, x = x](auto& op, const auto& waits) {
      fire_.set(argument(op[plane], plane), first_plane, y, x, loudness(step));
      return fire_.enqueue(op.queue(), {1}, {}, waits);
    });
  }
  // Every second step goes through the pieces backwards: what the last step has used last is still on the device.
  void advance(Field& now, Field& other, std::size_t step) {
    for (std::size_t i = 0; i < other.pieces(); ++i) {
      const Planes planes = other.slice_of_piece(step % 2 == 0 ? i : other.pieces() - 1 - i);
      const Planes seen = now.slice(planes.first(), planes.count()).widened(reach, reach);
      const Planes rock = tensors_.rock.slice(planes.first(), planes.count());
      manager_.run("advance", reads(seen, rock), updates(planes), [&](auto& op, const auto& waits) {
        advance_.set(argument(op[seen], seen), argument(op[rock], rock), argument(op[planes], planes),
                     static_cast<std::int64_t>(planes.first()), static_cast<std::int64_t>(seen.first()),
                     static_cast<std::int64_t>(problem_.size));
        return advance_.enqueue(op.queue(), range(planes.shape()), {}, waits);
      });
    }
  }
  void record(Field& field, std::size_t step) {
    const Planes seen = receivers(field);
    const Planes plane = tensors_.record.slice(step, 1);
    manager_.run("record", reads(seen), writes(plane), [&](auto& op, const auto& waits) {
      record_.set(argument(op[seen], seen), argument(op[plane], plane), first_plane, first_plane);
      return record_.enqueue(op.queue(), {problem_.size, problem_.size}, {}, waits);
    });
  }
  void play(Field& field, std::size_t step) {
    const Planes plane = tensors_.record.slice(step, 1);
    const Planes played = receivers(field);
    manager_.run("play", reads(plane), updates(played), [&](auto& op, const auto& waits) {
      play_.set(argument(op[plane], plane), argument(op[played], played), first_plane, first_plane);
      return play_.enqueue(op.queue(), {problem_.size, problem_.size}, {}, waits);
    });
  }
  void keep(Field& field, Field& checkpoint) {
    for (std::size_t piece = 0; piece < field.pieces(); ++piece) {
      const Planes from = field.slice_of_piece(piece);
      const Planes to = checkpoint.slice_of_piece(piece);
      manager_.run("keep", reads(from), writes(to), [&](auto& op, const auto& waits) {
        keep_.set(argument(op[from], from), argument(op[to], to));
        return keep_.enqueue(op.queue(), range(to.shape()), {}, waits);
      });
    }
  }
  void correlate(Field& checkpoint, Field& field) {
    for (std::size_t piece = 0; piece < field.pieces(); ++piece) {
      const Planes then = checkpoint.slice_of_piece(piece);
      const Planes now = field.slice_of_piece(piece);
      const Planes image = tensors_.image.slice_of_piece(piece);
      manager_.run("correlate", reads(then, now), updates(image), [&](auto& op, const auto& waits) {
        correlate_.set(argument(op[then], then), argument(op[now], now), argument(op[image], image));
        return correlate_.enqueue(op.queue(), range(image.shape()), {}, waits);
      });
    }
  }
  // The plane of a field that has the receivers.
  [[nodiscard]] Planes receivers(const Field& field) const {
    return field.slice(static_cast<std::size_t>(receiver_depth(problem_)), 1);
  }

  // Work items count the fastest dimension first, shapes the slowest.
  static swapmm::opencl::Range range(const swapmm::Shape& shape) { return {shape[2], shape[1], shape[0]}; }

  static constexpr std::int64_t first_plane = 0;

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
