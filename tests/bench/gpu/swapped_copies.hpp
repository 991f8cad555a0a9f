// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <swapmm/swapmm.hpp>

namespace swapmm::bench {

enum class Direction { h2d, d2h, both };

/// Bytes to and from the device by a plan: more tensors than fit, each accessed once per iteration by an operation that
/// does nothing else. Reads of values that stay come in; values that are made and must survive go out; updates do both.
template <Backend B>
class SwappedCopies {
 public:
  /// `fill(op, tensor)` queues what gives a tensor its first value.
  template <class Fill>
  SwappedCopies(const B& backend, std::size_t bytes, std::size_t count, Direction direction, Fill&& fill)
      : manager_(backend, Options{.device_budget = Bytes{bytes * resident}}, Scheduler({.trial_iterations = 0})),
        direction_(direction) {
    if (count <= resident) throw std::invalid_argument("there are as many tensors as fit");
    for (std::size_t i = 0; i < count; ++i) {
      tensors_.push_back(manager_.template tensor<std::byte>({bytes}, "tensor " + std::to_string(i),
                                                             direction == Direction::d2h ? kept : persistent));
      manager_.run("begin", writes(tensors_.back()), [&](auto& op) { fill(op, tensors_.back()); });
    }
    for (int i = 0; i < 6; ++i) iterate();
    manager_.synchronize();
  }

  /// Bytes per second each way, counted by what was copied. Throws std::logic_error where no plan was followed.
  [[nodiscard]] double run(std::size_t iterations) {
    const Report before = manager_.report();
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < iterations; ++i) iterate();
    manager_.synchronize();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    const Report after = manager_.report();
    if (after.iterations_followed < before.iterations_followed + iterations) {
      throw std::logic_error("the plan was not followed: " + (after.notes.empty() ? "" : after.notes.back()));
    }
    const Bytes in = after.h2d - before.h2d;
    const Bytes out = after.d2h - before.d2h;
    const std::uint64_t bytes = direction_ == Direction::both  ? (in.value + out.value) / 2
                                : direction_ == Direction::h2d ? in.value
                                                               : out.value;
    return static_cast<double>(bytes) / time.count();
  }

  [[nodiscard]] Report report() const { return manager_.report(); }

  static constexpr std::size_t resident = 4;  ///< tensors that fit

 private:
  void iterate() {
    const auto iteration = manager_.iteration("copies");
    const auto nothing = [](auto&) {};
    for (auto& tensor : tensors_) {
      switch (direction_) {
        case Direction::h2d: manager_.run("read", reads(tensor), nothing); break;
        case Direction::d2h: manager_.run("write", writes(tensor), nothing); break;
        case Direction::both: manager_.run("update", updates(tensor), nothing); break;
      }
    }
  }

  MemoryManager<B> manager_;
  Direction direction_;
  std::vector<Tensor<std::byte, B>> tensors_;
};

}  // namespace swapmm::bench
