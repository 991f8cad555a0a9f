// SPDX-License-Identifier: Apache-2.0
//
// Random training steps whose forward operations may run again, with surprises: an operation that was never there, a
// read or an upload where none was, an iteration that ends early. All bytes are compared with plain loops.
// SWAPMM_TEST_SEED=n runs the program of that seed alone, SWAPMM_TEST_SEEDS=n so many of them.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/effort.hpp"
#include "support/numbers.hpp"
#include "support/random_trace.hpp"
#include "support/seeds.hpp"

namespace swapmm::test::replay_property_test {
using simulated::Touch;

using ReplayDevice = simulated::Backend;
const std::uint64_t usual_trainings = effort(40, 8);

struct TrainedLayer {
  std::size_t size = 0;            // numbers
  std::vector<std::size_t> reads;  // earlier layers
  std::chrono::nanoseconds duration{0};
  bool replayable = false;
  bool in_place = false;  // an operation behind it updates its value
  bool sparse = false;    // most of its numbers are zero
};

enum class Surprise : std::uint8_t { none, operation, read, upload, early_end };

/// out[i] = 3 a[i] + 5 b[i] + ... + salt, as far as the inputs reach.
void forward_numbers(const std::vector<const Number*>& in, const std::vector<std::size_t>& sizes, Number* out,
                     std::size_t size, Number salt, bool sparse) {
  for (std::size_t i = 0; i < size; ++i) {
    if (sparse && i % 8 != 3) {
      out[i] = 0;
      continue;
    }
    Number value = salt + static_cast<Number>(i);
    for (std::size_t k = 0; k < in.size(); ++k) value = 3U * value + 5U * in[k][i % sizes[k]];
    out[i] = value;
  }
}

/// Zeros stay zeros.
Number changed_in_place(Number element) { return element == 0 ? 0 : 9U * element + 1; }

class Training {
 public:
  // Programs that are seen to branch get plans without replays: most are not to be.
  Training(std::uint64_t seed)
      : random_(seed),
        encodes_(seed % 2 == 1),
        device_(device()),
        manager_(device_, options(), Scheduler({.drops = seed % 4 == 0 ? DropRule::by_evidence : DropRule::observed})) {
    make_layers();
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      values_.push_back(manager_.tensor<Number>({layers_[i].size}, "v" + std::to_string(i)));
      model_.emplace_back(layers_[i].size);
      weights_.push_back(manager_.tensor<Number>({layers_[i].size}, "w" + std::to_string(i)));
      weight_model_.push_back(numbers(layers_[i].size, static_cast<Number>(i)));
      weights_.back().upload(weight_model_.back());
    }
    other_.upload(Numbers(64, 1));
  }

  void run() {
    for (Number step = 1; step <= 14; ++step) {
      const bool surprises = step > 6 && chance(random_, 0.4);
      auto surprise = surprises ? static_cast<Surprise>(1 + one_of(random_, 4)) : Surprise::none;
      // Iterations that end early at the same place would be a program of their own, whose plan drops what it never
      // reads.
      if (surprise == Surprise::early_end && std::exchange(ended_early_, true)) surprise = Surprise::operation;
      iterate(step, surprise);
    }
    for (std::size_t i = 0; i < weights_.size(); ++i) CHECK(weights_[i].download() == weight_model_[i]);
    manager_.synchronize();
    for (const std::string& violation : device_.violations()) FAIL_CHECK(violation);
    const Report report = manager_.report();
    CHECK(report.device_peak <= report.device_budget);
  }

  [[nodiscard]] Report report() const { return manager_.report(); }

 private:
  simulated::Options device() {
    simulated::Options options;
    options.order = static_cast<simulated::Order>(one_of(random_, 3));
    options.seed = random_();
    options.h2d.bytes_per_second = options.d2h.bytes_per_second = 1'000'000 * (1 + one_of(random_, 30));
    return options;
  }
  Options options() {
    Options options;
    options.device_budget = Bytes{(1400 + 350 * one_of(random_, 8)) & ~std::uint64_t{15}};
    options.run_ahead = 1 + one_of(random_, 3);
    if (!encodes_) return options;
    options.codec_staging = Bytes{2 * encoder_bytes(Bytes{8 * 12 * sizeof(Number)}).value};
    options.device_budget += options.codec_staging;
    return options;
  }

  void make_layers() {
    const std::size_t count = 5 + one_of(random_, 8);
    for (std::size_t i = 0; i < count; ++i) {
      TrainedLayer layer;
      layer.size = 8 * (1 + one_of(random_, 12));
      layer.duration = std::chrono::nanoseconds{100 * (1 + one_of(random_, 30))};
      layer.replayable = chance(random_, 0.85);
      layer.in_place = chance(random_, 0.3);
      layer.sparse = encodes_ && chance(random_, 0.6);
      if (i != 0) layer.reads.push_back(i - 1);
      if (i > 1 && chance(random_, 0.3)) layer.reads.push_back(one_of(random_, i - 1));
      layers_.push_back(std::move(layer));
    }
  }

  void iterate(Number step, Surprise surprise) {
    const std::size_t where = one_of(random_, 2 * layers_.size());
    const auto iteration = manager_.iteration("train");
    input_.upload(Numbers(32, step));
    input_model_ = step;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (i == where && surprises(surprise)) return;
      run_forward(i);
      if (layers_[i].in_place) run_in_place(i);
    }
    for (std::size_t i = layers_.size(); i-- > 0;) {
      if (2 * layers_.size() - 1 - i == where && surprises(surprise)) return;
      run_backward(i);
    }
  }

  /// True if the iteration ends here.
  bool surprises(Surprise surprise) {
    switch (surprise) {
      case Surprise::none: return false;
      case Surprise::early_end: return true;
      case Surprise::upload: input_.upload(Numbers(32, input_model_)); return false;
      case Surprise::read: {
        const std::size_t layer = one_of(random_, layers_.size());
        // What was not computed in this iteration is an old value, which a plan may have dropped.
        try {
          const Numbers read = values_[layer].download();
          if (!computed_.empty() && computed_[layer] == input_model_) CHECK(read == model_[layer]);
        } catch (const DroppedValue&) {  // NOLINT(bugprone-empty-catch): see above
        } catch (const UsageError&) {    // NOLINT(bugprone-empty-catch): nobody has written it yet
        }
        return false;
      }
      case Surprise::operation:
        manager_.run("other", updates(other_), [&](auto& op) {
          const auto out = op[other_];
          op.queue().launch("other", std::chrono::nanoseconds{500}, {Touch::read(out), Touch::write(out)}, [out] {
            for (Number& element : out) ++element;
          });
        });
        return false;
    }
    return false;
  }

  void run_forward(std::size_t i) {
    const TrainedLayer& layer = layers_[i];
    Bundle<ReplayDevice> bundle;
    if (i == 0) bundle.reads(input_);
    for (const std::size_t from : layer.reads) bundle.reads(values_[from]);
    bundle.writes(values_[i]);
    if (layer.replayable) bundle.replayable();
    manager_.run("forward" + std::to_string(i), bundle, [this, i](auto& op) {
      const TrainedLayer& own = layers_[i];
      const auto out = op[values_[i]];
      std::vector<const Number*> in;
      std::vector<std::size_t> sizes;
      std::vector<simulated::Touch> touches{Touch::write(out)};
      const auto add = [&](const auto& view) {
        in.push_back(view.data());
        sizes.push_back(view.size());
        touches.push_back(Touch::read(view));
      };
      if (i == 0) add(op[input_]);
      for (const std::size_t from : own.reads) add(op[values_[from]]);
      op.queue().launch("forward", own.duration, touches, [in, sizes, out, i, sparse = own.sparse] {
        forward_numbers(in, sizes, out.data(), out.size(), static_cast<Number>(i), sparse);
      });
    });
    std::vector<const Number*> in;
    std::vector<std::size_t> sizes;
    const Numbers input(32, input_model_);
    if (i == 0) in.push_back(input.data()), sizes.push_back(input.size());
    for (const std::size_t from : layer.reads) in.push_back(model_[from].data()), sizes.push_back(model_[from].size());
    forward_numbers(in, sizes, model_[i].data(), model_[i].size(), static_cast<Number>(i), layer.sparse);
    computed_.resize(layers_.size(), 0);
    computed_[i] = input_model_;
  }

  void run_in_place(std::size_t i) {
    Bundle<ReplayDevice> bundle;
    bundle.updates(values_[i]);
    if (layers_[i].replayable) bundle.replayable();
    manager_.run("in place" + std::to_string(i), bundle, [this, i](auto& op) {
      const auto to = op[values_[i]];
      op.queue().launch("in place", layers_[i].duration, {Touch::read(to), Touch::write(to)}, [to] {
        for (Number& element : to) element = changed_in_place(element);
      });
    });
    for (Number& element : model_[i]) element = changed_in_place(element);
  }

  void run_backward(std::size_t i) {
    manager_.run("backward" + std::to_string(i), reads(values_[i]), updates(weights_[i]), [&, i](auto& op) {
      const auto by = op[values_[i]];
      const auto to = op[weights_[i]];
      op.queue().launch("backward", layers_[i].duration * 2, {Touch::read(by), Touch::read(to), Touch::write(to)},
                        [by, to] {
                          for (std::size_t k = 0; k < to.size(); ++k) to[k] = 7U * to[k] + by[k];
                        });
    });
    grow(model_[i], weight_model_[i]);
  }

  std::mt19937_64 random_;
  bool encodes_ = false;  // values on their way to the host
  ReplayDevice device_;
  MemoryManager<ReplayDevice> manager_;
  std::vector<TrainedLayer> layers_;
  Tensor<Number, ReplayDevice> input_ = manager_.tensor<Number>({32}, "input");
  Tensor<Number, ReplayDevice> other_ = manager_.tensor<Number>({64}, "other");
  std::vector<Tensor<Number, ReplayDevice>> values_;
  std::vector<Tensor<Number, ReplayDevice>> weights_;
  std::vector<Numbers> model_;
  std::vector<Numbers> weight_model_;
  std::vector<Number> computed_;  // per layer: the step in which it was computed last
  Number input_model_ = 0;
  bool ended_early_ = false;
};

TEST_CASE("random training steps whose operations run again have the bits of plain loops, whatever happens between") {
  const Seeds all = seeds(usual_trainings);
  std::uint64_t with_replays = 0;
  std::uint64_t with_both = 0;
  std::uint64_t divergences = 0;
  for (std::uint64_t seed = all.first; seed < all.first + all.count; ++seed) {
    CAPTURE(seed);
    Training training(seed);
    training.run();
    const Report report = training.report();
    divergences += report.divergences;
    const auto has_replays = [](const PlanSummary& plan) { return plan.replays != 0; };
    const auto has_both = [](const PlanSummary& plan) { return plan.replays != 0 && plan.encoded != 0; };
    with_replays += std::ranges::any_of(report.plans, has_replays) ? 1 : 0;
    with_both += std::ranges::any_of(report.plans, has_both) ? 1 : 0;
  }
  if (all.count < 13) return;
  CHECK(with_replays > all.count / 4);
  CHECK(with_both > all.count / 10);
  CHECK(divergences > all.count / 2);
  MESSAGE(with_replays << " of " << all.count << " programs with replays, " << with_both
                       << " of these with encoded values; " << divergences << " divergences");
}

}  // namespace swapmm::test::replay_property_test
