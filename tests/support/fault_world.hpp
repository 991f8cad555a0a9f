// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program on a device where something goes wrong, a model of what each tensor must hold, and the rules by which the
// library's errors are judged: values are right, or somebody was told. For any backend for which there is a
// run_affine() and so on: see numbers.hpp.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "support/chain.hpp"
#include "support/numbers.hpp"
#include "support/steady_plans.hpp"
#include "support/tensor_names.hpp"

namespace swapmm::test {

/// What the fault of a run may do to it.
struct FaultRules {
  bool repeats = false;       ///< calls may fail again and again: the program goes on without them
  bool loses_device = false;  ///< every call may throw DeviceLost from some point on
  bool loses_values = false;  ///< queued work may fail, and take values with it
  bool at_first_use = false;  ///< an object may fail when it is first used, and the fault may be over by then
};

template <Backend B>
class FaultWorld {
 public:
  FaultWorld(B backend, const FaultRules& rules) : backend_(std::move(backend)), rules_(rules) {}

  // ---- the program's calls. One that fails is tried once more; if it fails again the program goes on without it.

  void make_manager(const Options& options) {
    call("manager", [&] { manager_.emplace(backend_, options, scheduler()); });
  }
  /// `passing`: the program never relies on the value after the iteration that wrote it.
  std::size_t tensor(std::string name, bool passing = false) {
    Item& item = items_.emplace_back();
    item.name = std::move(name);
    item.passing = passing;
    if (manager_)
      call("tensor", [&] { item.tensor.emplace(manager_->template tensor<Number>({chain_length}, item.name)); });
    return items_.size() - 1;
  }
  void upload(std::size_t tensor, Number seed) {
    Item& item = items_[tensor];
    if (!item.tensor) return;
    const Numbers value = numbers(chain_length, seed);
    if (!call("upload", [&] { item.tensor->upload(value); })) return;
    item.value = value;
    item.known = true;
  }
  void download(std::size_t tensor) {
    Item& item = items_[tensor];
    if (!usable({tensor})) return;
    Numbers seen(chain_length);
    if (call("download", [&] { item.tensor->download(seen); }) && item.known) compare(item, seen, item.value);
  }
  void download_later(std::size_t tensor) {
    if (!usable({tensor})) return;
    Later& later = later_.emplace_back(Later{&items_[tensor], {}, Numbers(chain_length), {}});
    call("download", [&] { later.pending.emplace(later.item->tensor->download_async(later.target)); });
    later.expected = later.item->value;
  }
  void collect() {
    for (; !later_.empty(); later_.pop_front()) {
      Later& later = later_.front();
      if (!later.pending) continue;
      bool gone = false;
      const auto wait = [&] {
        try {
          later.pending->wait();
        } catch (const WorkFailed& error) {  // of a promised value that is lost: each time it is asked for
          gone = error.work == WorkFailed::Work::earlier && has_name(error.tensors(), later.item->name);
          if (!gone || !rules_.loses_values) throw;
        }
      };
      if (call("collect", wait) && !gone) compare(*later.item, later.target, later.expected);
    }
  }
  void begin(std::string_view name) {
    if (manager_) call("begin", [&] { iteration_.emplace(manager_->iteration(name)); });
  }
  void end() { iteration_.reset(); }
  void synchronize() {
    if (manager_) call("synchronize", [&] { manager_->synchronize(); });
  }

  void apply_affine(Form form, std::size_t from, std::size_t to, Number added) {
    if (!usable({from}) || !items_[to].tensor) return;
    if (!operation("affine", to, [&] { run_affine(*manager_, form, "affine", of(from), of(to), added); })) return;
    affine(items_[from].value, items_[to].value, added);
    items_[to].known = true;
  }
  void apply_blend(Form form, std::size_t a, std::size_t b, std::size_t to) {
    if (!usable({a, b}) || !items_[to].tensor) return;
    if (!operation("blend", to, [&] { run_blend(*manager_, form, "blend", of(a), of(b), of(to)); })) return;
    blend(items_[a].value, items_[b].value, items_[to].value);
    items_[to].known = true;
  }
  void apply_grow(Form form, std::size_t by, std::size_t to) {
    if (!usable({by, to})) return;
    if (operation("grow", to, [&] { run_grow(*manager_, form, "grow", of(by), of(to)); })) {
      grow(items_[by].value, items_[to].value);
    }
  }

  // ---- the judgement

  /// To be called when the fault is over: the values are right, and the same manager finishes a program of its own, or
  /// returns the error of a lost device, always the same.
  void probe() {
    if (!manager_) return;
    if (rules_.repeats || rules_.loses_device || rules_.at_first_use) {  // what is still on its way comes out here
      attempt("synchronize", [&] { manager_->synchronize(); });
    }
    if (lost_) return probe_lost();
    for (Item& item : items_) {
      if (item.tensor && item.known) verify(item);
    }
    try {
      Chain<B> chain(*manager_, 3);
      ChainModel model(3);
      for (Number seed = 0; seed < 5; ++seed) {
        chain.iterate(seed, "probe");
        model.iterate(seed);
      }
      if (chain.output().download() != model.output() || !same_weights(chain, model))
        problem("the probe has another result");
    } catch (const BackendError& error) {
      if (!rules_.at_first_use) problem(std::string("the probe meets an error: ") + error.what());
    } catch (const std::exception& error) {
      problem(std::string("the probe meets an error: ") + error.what());
    }
  }
  /// Ends everything.
  void tear_down(bool manager_first) {
    if (manager_first) manager_.reset();
    items_.clear();
    manager_.reset();
    iteration_.reset();
    later_.clear();
  }

  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  [[nodiscard]] const std::vector<std::string>& errors() const { return errors_; }
  [[nodiscard]] B& backend() { return backend_; }
  [[nodiscard]] Report report() { return manager_->report(); }

 private:
  struct Item {
    std::string name;
    bool passing = false;
    bool known = false;  // the model knows its value
    bool lost = false;   // the library said so, or the callable of its operation threw
    std::optional<Tensor<Number, B>> tensor{};
    Numbers value = Numbers(chain_length);
  };
  struct Later {
    Item* item;
    std::optional<PendingDownload<B>> pending;
    Numbers target;
    Numbers expected;
  };
  enum class Outcome : std::uint8_t { done, failed, gone };

  [[nodiscard]] const Tensor<Number, B>& of(std::size_t tensor) const { return *items_[tensor].tensor; }
  [[nodiscard]] bool usable(std::initializer_list<std::size_t> tensors) const {
    bool usable = manager_.has_value();
    for (const std::size_t tensor : tensors) usable = usable && items_[tensor].tensor && items_[tensor].known;
    return usable;
  }
  void problem(const std::string& text) { problems_.push_back(text); }
  void tell(std::string_view what, const char* text) { errors_.push_back(std::string(what) + ": " + text); }
  void compare(const Item& item, const Numbers& seen, const Numbers& expected) {
    if (seen != expected) problem("tensor \"" + item.name + "\" has another value");
  }

  template <class Body>
  Outcome attempt(std::string_view what, Body&& body) {
    const bool lost_before = lost_;
    try {
      body();
      // What had reached the host before the loss is still given out.
      if (lost_before && what != "collect") problem(std::string(what) + " succeeds on a lost device");
      return Outcome::done;
    } catch (const DeviceLost& error) {
      if (!rules_.loses_device) problem(std::string(what) + ": " + error.what());
      if (lost_before && error.what() != lost_text_)
        problem(std::string("the sticky error changed to ") + error.what());
      if (!lost_before) tell(what, error.what());
      lost_ = manager_.has_value();
      lost_text_ = error.what();
      return Outcome::gone;
    } catch (const WorkFailed& error) {
      if (!rules_.loses_values) problem(std::string(what) + ": " + error.what());
      tell(what, error.what());
      note_lost(error.lost());
    } catch (const DroppedValue& error) {
      if (!rules_.repeats) problem(std::string(what) + ": " + error.what());
      tell(what, error.what());
      note_lost(error.lost());
    } catch (const BackendError& error) {
      tell(what, error.what());
    } catch (const OutOfMemory& error) {
      tell(what, error.what());
    } catch (const std::exception& error) {
      problem(std::string(what) + ", an error of no known kind: " + error.what());
    }
    if (lost_before) problem(std::string(what) + ": not the sticky error on a lost device");
    return Outcome::failed;
  }
  template <class Body>
  bool call(std::string_view what, Body&& body) {
    for (int tries = 0; tries < 2; ++tries) {
      const Outcome outcome = attempt(what, body);
      if (outcome != Outcome::failed) return outcome == Outcome::done;
      restore_lost();
    }
    if (!rules_.repeats && !rules_.loses_device) problem(std::string(what) + " fails a second time");
    return false;
  }
  template <class Run>
  bool operation(std::string_view name, std::size_t output, Run&& run) {
    return call(name, [&] {
      callable_began = false;
      try {
        run();
      } catch (...) {
        // Once its callable runs, an operation fails only with what the callable throws.
        if (callable_began) {
          items_[output].known = false;
          items_[output].lost = true;
        }
        throw;
      }
    });
  }
  static Scheduler scheduler() {
    return steady_plans({.planner = "on-demand"});  // the quickest: plans are made thousands of times
  }

  void note_lost(const std::vector<TensorName>& lost) {
    for (Item& item : items_) {
      if (!has_name(lost, item.name)) continue;
      item.known = false;
      item.lost = true;
    }
  }
  /// A sensible program gives lost values anew.
  void restore_lost() {
    for (Item& item : items_) {
      if (!item.lost || !item.tensor || lost_) continue;
      item.lost = false;
      upload(static_cast<std::size_t>(&item - items_.data()), ++salt_);
    }
  }
  void verify(Item& item) {
    try {
      compare(item, item.tensor->download(), item.value);
    } catch (const DroppedValue& error) {
      if (!item.passing) problem(std::string("at the end: ") + error.what());
    } catch (const BackendError& error) {
      if (!rules_.at_first_use) problem(std::string("at the end: ") + error.what());
    } catch (const std::exception& error) {
      problem(std::string("at the end: ") + error.what());
    }
  }
  void probe_lost() {
    attempt("tensor", [&] { (void)manager_->template tensor<Number>({4}, "late"); });
    attempt("begin", [&] { (void)manager_->iteration("late"); });
    attempt("synchronize", [&] { manager_->synchronize(); });
    for (Item& item : items_) {
      if (item.tensor) attempt("download", [&] { (void)item.tensor->download(); });
      if (item.tensor) attempt("upload", [&] { item.tensor->upload(item.value); });
    }
  }

  B backend_;
  FaultRules rules_;
  std::optional<MemoryManager<B>> manager_;
  std::optional<Iteration<B>> iteration_;
  std::vector<Item> items_;
  std::deque<Later> later_;
  bool lost_ = false;
  std::string lost_text_;
  Number salt_ = 10'000;
  std::vector<std::string> errors_;
  std::vector<std::string> problems_;
};

}  // namespace swapmm::test
