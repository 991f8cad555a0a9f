// SPDX-License-Identifier: Apache-2.0
//
// Random training steps by the C interface, as a framework's adapter does them: tensors are made by operations, and
// destroyed when nobody refers to them any more; only what is proven dead may be dropped; forward operations may run
// again. Three of four have surprises: an operation that was never there, a read, a value that goes early or late, an
// iteration that ends early. Whatever the program still has must have its bits at any time. SWAPMM_TEST_SEED=n runs the
// program of that seed alone, SWAPMM_TEST_SEEDS=n so many of them.

#include <doctest/doctest.h>

#include <swapmm/swapmm.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/effort.hpp"
#include "support/numbers.hpp"
#include "support/random_trace.hpp"
#include "support/seeds.hpp"

namespace swapmm::test::remade_property_test {

const std::uint64_t usual_trainings = effort(120, 8);

void need(swapmm_status status) {
  if (status != SWAPMM_OK) FAIL(std::string(swapmm_last_error()));
}

/// A tensor, and the bits that it must have. It is destroyed with the last reference.
struct Value {
  swapmm_manager* manager = nullptr;
  swapmm_tensor number = 0;
  Numbers model;

  Value(swapmm_manager* of, swapmm_tensor made, std::size_t size) : manager(of), number(made), model(size) {}
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  ~Value() { need(swapmm_tensor_destroy(manager, number)); }

  /// `may_be_lost`: it may also be refused, because an operation failed when it ran again.
  [[nodiscard]] bool is_right(bool may_be_lost = false) const {
    Numbers read(model.size());
    const swapmm_status status = swapmm_tensor_download(manager, number, 0, read.data(), read.size() * sizeof(Number));
    if (status != SWAPMM_OK && may_be_lost) return true;
    need(status);
    return read == model;
  }
};
using ValuePtr = std::shared_ptr<Value>;

/// to[i] = salt + i, then 3 to[i] + 5 from[i] for each source, as far as they reach. An updated tensor is a source,
/// too.
void mix(const std::vector<std::pair<const Number*, std::size_t>>& sources, Number* to, std::size_t size, Number salt) {
  for (std::size_t i = 0; i < size; ++i) {
    Number value = salt + static_cast<Number>(i);
    for (const auto& [from, length] : sources) value = 3U * value + 5U * from[i % length];
    to[i] = value;
  }
}

/// An operation: reads some values, and makes one, or writes or updates one that there is.
struct Work {
  std::string name;
  std::vector<ValuePtr> reads;
  ValuePtr to;
  bool updates = false;
  Number salt = 0;
  std::uint64_t nanoseconds = 0;
};

class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed), is_steady_(seed % 4 == 0) {
    swapmm_simulated_options device;
    need(swapmm_simulated_options_init(&device, sizeof device));
    device.h2d_bytes_per_second = device.d2h_bytes_per_second = 1'000'000 * (1 + one_of(random_, 30));
    need(swapmm_simulated_create(&device, &backend_));
    swapmm_options options;
    need(swapmm_options_init(&options, sizeof options));
    options.device_budget = (1800 + 350 * one_of(random_, 8)) & ~std::uint64_t{15};
    options.run_ahead = 1 + one_of(random_, 3);
    options.flags = SWAPMM_IDENTIFY_BY_PRODUCER | SWAPMM_PROVEN_DROPS;
    need(swapmm_manager_create(backend_, &options, &manager_));
    make_layers();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    agains_.clear();
    values_.clear();
    weights_.clear();
    buffer_ = nullptr;
    late_.clear();
    swapmm_manager_destroy(manager_);
    swapmm_backend_destroy(backend_);
  }

  void run() {
    for (Number step = 1; step <= 16; ++step) {
      const bool surprises = !is_steady_ && step > 7 && chance(random_, 0.5);
      surprise_ = surprises ? static_cast<Surprise>(1 + one_of(random_, 6)) : Surprise::none;
      iterate(step);
    }
    for (const ValuePtr& weight : weights_) CHECK(weight->is_right());
    CHECK(buffer_->is_right());
    need(swapmm_manager_synchronize(manager_));
    std::uint64_t violations = 1;
    need(swapmm_simulated_violations(backend_, &violations));
    CHECK(violations == 0);
    numbers.struct_size = sizeof numbers;
    need(swapmm_manager_numbers(manager_, &numbers));
    CHECK(numbers.device_peak <= numbers.device_budget);
    // Plans know what will be proven dead, and when: nothing else is dropped.
    if (is_steady_) CHECK(report().find("\"values_saved\": 0,") != std::string::npos);
  }

  swapmm_numbers numbers{};
  std::uint64_t runs_again = 0;
  std::uint64_t aborted = 0;

  [[nodiscard]] std::string report() const {
    char* text = nullptr;
    need(swapmm_manager_report(manager_, &text));
    std::string copy = text;
    swapmm_text_destroy(text);
    return copy;
  }

 private:
  enum class Surprise : std::uint8_t { none, operation, read, early_end, goes_early, goes_late, fails };
  struct Aborted {};  // an operation failed when it ran again

  struct Layer {
    std::size_t size = 0;
    std::vector<std::size_t> reads;  // earlier layers
    std::uint64_t nanoseconds = 0;
    bool replayable = false;
    bool saved = false;       // the backward pass needs its value
    std::size_t updates = 0;  // operations in place behind it
  };
  struct Again {
    Program* program = nullptr;
    Work work;
    std::uint64_t left = 0;
  };
  struct Kernel {
    std::vector<std::pair<const Number*, std::size_t>> sources;
    Number* to = nullptr;
    std::size_t size = 0;
    Number salt = 0;
  };

  void make_layers() {
    const std::size_t count = 5 + one_of(random_, 8);
    for (std::size_t i = 0; i < count; ++i) {
      Layer layer;
      layer.size = 8 * (1 + one_of(random_, 12));
      layer.nanoseconds = 100 * (1 + one_of(random_, 30));
      layer.replayable = chance(random_, 0.85);
      layer.saved = chance(random_, 0.7);
      layer.updates = chance(random_, 0.4) ? 1 + one_of(random_, 2) : 0;
      if (i != 0) layer.reads.push_back(i - 1);
      if (i > 1 && chance(random_, 0.3)) layer.reads.push_back(one_of(random_, i - 1));
      layers_.push_back(std::move(layer));
      weights_.push_back(made(layers_.back().size));
      weights_.back()->model = swapmm::test::numbers(layers_.back().size, static_cast<Number>(i));
      need(swapmm_tensor_upload(manager_, weights_.back()->number, 0, weights_.back()->model.data(),
                                layers_.back().size * sizeof(Number)));
    }
    buffer_ = made(64);
    buffer_->model = Numbers(64, 1);
    need(swapmm_tensor_upload(manager_, buffer_->number, 0, buffer_->model.data(), 64 * sizeof(Number)));
  }

  ValuePtr made(std::size_t size) {
    swapmm_tensor number = 0;
    need(swapmm_tensor_create(manager_, size * sizeof(Number), "weight", SWAPMM_OBSERVED, &number));
    return std::make_shared<Value>(manager_, number, size);
  }

  void iterate(Number step) {
    late_.clear();
    values_.assign(layers_.size(), nullptr);
    where_ = one_of(random_, 2 * layers_.size());
    has_failed_ = false;
    fails_in_ = surprise_ == Surprise::fails ? 1 + one_of(random_, 8) : 0;
    need(swapmm_iteration_begin(manager_, "train"));
    try {
      work_through(step);
    } catch (const Aborted&) {
      ++aborted;
    }
    finish();
    if (swapmm_iteration_end(manager_) != SWAPMM_OK) {
      CHECK(has_failed_);
      need(swapmm_iteration_end(manager_));  // what failed is tried once more
    }
    fails_in_ = 0;
    for (const auto& [key, again] : agains_) CHECK((again.left == 0 || !is_steady_));  // as often as was told
    agains_.clear();
    for (const ValuePtr& value : values_) CHECK((value == nullptr || value->is_right(has_failed_)));
    for (const ValuePtr& value : late_) CHECK(value->is_right(has_failed_));
  }

  void work_through(Number step) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (i == where_ && surprise()) return;
      Work work{"forward" + std::to_string(i), {}, nullptr, false, step + static_cast<Number>(i),
                layers_[i].nanoseconds};
      if (i == 0) work.reads.push_back(weights_[0]);
      for (const std::size_t from : layers_[i].reads) work.reads.push_back(values_[from]);
      if (i % 4 == 2) work.reads.push_back(buffer_);
      values_[i] = operate(std::move(work), layers_[i].size, layers_[i].replayable);
      for (std::size_t k = 0; k < layers_[i].updates; ++k) {
        Work update{"in place", {}, values_[i], true, step, 200};
        if (k == 1 && i > 0) update.reads.push_back(values_[i - 1]);
        operate(std::move(update), 0, layers_[i].replayable);
      }
      // The buffer gets another value several times in an iteration.
      if (i % 4 == 1) operate({"fill", {values_[i]}, buffer_, false, step, 300}, 0, layers_[i].replayable);
      for (std::size_t k = 0; k < i; ++k) {
        if (!layers_[k].saved && !is_read_after(k, i)) values_[k] = nullptr;
      }
    }
    for (std::size_t i = layers_.size(); i-- > 0;) {
      if (2 * layers_.size() - 1 - i == where_ && surprise()) return;
      Work work{"backward" + std::to_string(i), {}, weights_[i], true, 7, 2 * layers_[i].nanoseconds};
      if (values_[i] != nullptr && layers_[i].saved) work.reads.push_back(values_[i]);
      operate(std::move(work), 0, false);
      if (surprise_ != Surprise::goes_late) values_[i] = nullptr;
    }
    values_.assign(layers_.size(), nullptr);
  }

  [[nodiscard]] bool is_read_after(std::size_t value, std::size_t layer) const {
    for (std::size_t i = layer + 1; i < layers_.size(); ++i) {
      for (const std::size_t from : layers_[i].reads) {
        if (from == value) return true;
      }
    }
    return false;
  }

  /// True if the iteration ends here.
  bool surprise() {
    const std::size_t which = one_of(random_, layers_.size());
    switch (surprise_) {
      case Surprise::none: return false;
      case Surprise::fails: return false;
      case Surprise::early_end: return true;
      case Surprise::operation: operate({"other", {}, weights_[which], true, 11, 500}, 0, false); return false;
      case Surprise::read:
        finish();
        if (values_[which] != nullptr) CHECK(values_[which]->is_right());
        CHECK(buffer_->is_right());
        return false;
      case Surprise::goes_early:
        if (where_ >= layers_.size()) values_[which] = nullptr;  // the backward pass has to do without it
        return false;
      case Surprise::goes_late:
        if (values_[which] != nullptr) late_.push_back(values_[which]);
        return false;
    }
    return false;
  }

  /// Ends the last operation: by then it is known which values have gone.
  void finish() {
    if (std::exchange(running_, false)) need(swapmm_operation_end(manager_, nullptr));
  }

  /// Makes a value of that size, unless the work has one that it writes or updates.
  ValuePtr operate(Work work, std::size_t size, bool replayable) {
    std::vector<swapmm_use> uses;
    for (const ValuePtr& value : work.reads) uses.push_back({value->number, SWAPMM_READ});
    const bool makes = work.to == nullptr;
    if (!makes) uses.push_back({work.to->number, work.updates ? SWAPMM_UPDATE : SWAPMM_WRITE});
    swapmm_output output{size * sizeof(Number), "value", SWAPMM_OBSERVED, 0};
    std::vector<void*> addresses(uses.size() + 1);
    swapmm_operation operation{};
    operation.struct_size = sizeof operation;
    operation.name = work.name.c_str();
    operation.uses = uses.data();
    operation.use_count = uses.size();
    operation.outputs = &output;
    operation.output_count = makes ? 1 : 0;
    operation.addresses = addresses.data();
    const std::uint64_t key = ++last_key_;
    Again& again = agains_[key];
    operation.again = replayable ? run_again : nullptr;
    operation.again_argument = &again;
    finish();
    const swapmm_status status = swapmm_operation_begin(manager_, &operation);
    if (status != SWAPMM_OK && has_failed_) {
      agains_.erase(key);
      throw Aborted{};
    }
    need(status);
    running_ = true;
    if (operation.follows_plan == 0) {
      CHECK(operation.times_again == 0);
      std::erase_if(agains_, [&](const auto& kept) { return kept.first != key; });  // the plan was left
    }
    if (makes) work.to = std::make_shared<Value>(manager_, output.tensor, size);
    const ValuePtr result = work.to;
    apply(work);
    launch(work, addresses.data());
    if (operation.times_again == 0) {
      agains_.erase(key);
    } else {
      again = {this, std::move(work), operation.times_again};
    }
    return result;
  }

  static void apply(const Work& work) {
    std::vector<std::pair<const Number*, std::size_t>> sources;
    for (const ValuePtr& value : work.reads) sources.emplace_back(value->model.data(), value->model.size());
    const Numbers before = work.to->model;
    if (work.updates) sources.emplace_back(before.data(), before.size());
    mix(sources, work.to->model.data(), work.to->model.size(), work.salt);
  }

  void launch(const Work& work, void* const* addresses) {
    Kernel& kernel = kernels_.emplace_back();
    std::size_t at = 0;
    for (const ValuePtr& value : work.reads) {
      kernel.sources.emplace_back(static_cast<const Number*>(addresses[at++]), value->model.size());
    }
    kernel.to = static_cast<Number*>(addresses[at]);
    kernel.size = work.to->model.size();
    kernel.salt = work.salt;
    if (work.updates) kernel.sources.emplace_back(kernel.to, kernel.size);
    need(swapmm_simulated_launch(manager_, work.nanoseconds, run_kernel, &kernel, nullptr));
  }

  static int run_kernel(void* argument) {
    const Kernel& kernel = *static_cast<const Kernel*>(argument);
    Numbers made(kernel.size);
    mix(kernel.sources, made.data(), kernel.size, kernel.salt);
    std::copy(made.begin(), made.end(), kernel.to);
    return 0;
  }

  static int run_again(void* argument, const swapmm_operation* operation) {
    Again& again = *static_cast<Again*>(argument);
    Program& program = *again.program;
    CHECK(again.left > 0);
    if (program.fails_in_ != 0 && --program.fails_in_ == 0) {
      program.has_failed_ = true;
      return 1;
    }
    program.launch(again.work, operation->addresses);
    ++program.runs_again;
    // What only this operation has held goes now, while it runs.
    if (--again.left == 0) again.work = {};
    return 0;
  }

  std::mt19937_64 random_;
  bool is_steady_;  // no surprises
  swapmm_backend* backend_ = nullptr;
  swapmm_manager* manager_ = nullptr;
  std::vector<Layer> layers_;
  std::vector<ValuePtr> weights_;
  ValuePtr buffer_;
  std::vector<ValuePtr> values_;  // of the current iteration; null: gone, or not made yet
  std::vector<ValuePtr> late_;    // held until the iteration has ended
  std::map<std::uint64_t, Again> agains_;
  std::deque<Kernel> kernels_;
  std::uint64_t last_key_ = 0;
  Surprise surprise_ = Surprise::none;
  std::size_t where_ = 0;
  bool running_ = false;
  std::size_t fails_in_ = 0;  // runs again until one fails; 0: none does
  bool has_failed_ = false;   // in this iteration
};

TEST_CASE("random training steps of an adapter: what plans drop to make it again has its bits whenever it is needed") {
  const Seeds all = seeds(usual_trainings);
  std::uint64_t with_replays = 0;
  std::uint64_t divergences = 0;
  std::uint64_t aborted = 0;
  for (std::uint64_t seed = all.first; seed < all.first + all.count; ++seed) {
    CAPTURE(seed);
    Program program(seed);
    program.run();
    divergences += program.numbers.divergences;
    aborted += program.aborted;
    with_replays += program.runs_again != 0 ? 1 : 0;
  }
  if (all.count < 13) return;
  CHECK(with_replays > all.count / 4);
  CHECK(divergences > all.count / 2);
  CHECK(aborted > (all.count < 100 ? 0 : all.count / 20));  // about a seventh: few seeds may have one
  MESSAGE(with_replays << " of " << all.count << " programs ran operations again, " << divergences << " divergences, "
                       << aborted << " iterations ended by a failure");
}

}  // namespace swapmm::test::remade_property_test
