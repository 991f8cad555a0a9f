// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program under faults: managers on a faulty simulated device, a model of what every tensor must hold, and the
// rules by which each error of the library is judged.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "faults/parts/manager_state.hpp"
#include "faults/parts/quick_planner.hpp"
#include "faults/script/fault.hpp"
#include "faults/script/script.hpp"
#include "support/failing_new.hpp"
#include "support/faulty_simulated.hpp"
#include "support/faulty_stream.hpp"
#include "support/progress_watch.hpp"
#include "support/steady_plans.hpp"
#include "support/tensor_names.hpp"

namespace swapmm::test {

using FaultyDevice = FaultySimulated;
using Element = std::uint32_t;

/// Plans of microseconds: a loop makes some ten thousand.
[[nodiscard]] inline SchedulerOptions quick_plans() { return steady({.planner = quick_planner()}); }

/// One operation of a test program: out = function of all that it reads, for tensors by number.
struct Step {
  std::string name;
  std::vector<std::size_t> reads;
  std::vector<std::size_t> writes;
  std::vector<std::size_t> updates;
  std::size_t scratch_bytes = 0;
  bool waits_as_list = false;  ///< the second form of an operation
};

class World {
 public:
  static constexpr std::size_t usual_size = 64;  ///< elements: 256 bytes
  static constexpr Bytes usual_budget{1024};     ///< and the largest one

  /// With `sites`: notes what the library allocates.
  World(const simulated::Options& options, Faults faults, AllocationSites* sites = nullptr);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  // ---- the program's calls. A call that fails is tried once more for each fault, where its effect did not come about;
  // if it fails again the program goes on without it.

  /// On that device, which is made if it is the next one.
  void make_manager(const Options& options, SchedulerOptions scheduler = quick_plans(), std::size_t device = 0);
  /// The manager that later calls use.
  void use_manager(std::size_t number) { current_ = number; }
  void move_manager();
  void close_manager();
  /// `temporary`: the program never relies on the value after the iteration that wrote it.
  std::size_t tensor(std::string name, std::size_t size = usual_size, Lifetime lifetime = persistent,
                     bool temporary = false);
  void drop(std::size_t tensor);
  void upload(std::size_t tensor, Element salt);
  void upload_part(std::size_t tensor, std::size_t first, std::size_t count, Element salt);
  void download(std::size_t tensor);
  void download_later(std::size_t tensor);
  void collect();
  void forget_downloads() { later_.clear(); }
  void run(const Step& step);
  /// An operation that can never fit: must be refused, with nothing changed.
  void run_too_large(const Step& step);
  void begin(std::string_view name);
  void end();
  void synchronize();
  void look();  ///< report, machine
  void plan_now();
  void set_budget(Bytes bytes);
  void start_profile();
  void stop_profile();
  void save_plan(std::string_view iteration);
  void load_plan(std::string_view iteration);
  void write_texts(std::string_view iteration);  ///< the trace, which is read again, and the report

  // ---- the judgement

  /// Ends what the scenario left open, ends the faults, and sees whether the same manager finishes a program of its
  /// own bit for bit, or returns the sticky error.
  void probe();
  /// Ends everything, in an order that `variant` chooses; then nothing may be left on the device.
  void tear_down(std::uint64_t variant);

  [[nodiscard]] const std::vector<Hit>& hits() const { return script_.hits(); }
  [[nodiscard]] bool failures_stick() const { return script_.failures_stick(); }
  /// So far, by class.
  [[nodiscard]] std::array<std::uint64_t, call_class_count> calls() const;
  [[nodiscard]] std::size_t errors() const { return errors_.size(); }
  [[nodiscard]] const std::vector<std::string>& error_texts() const { return errors_; }
  /// Reads of values that had been declared lost before.
  [[nodiscard]] std::size_t reads_of_lost() const { return reads_of_lost_; }
  [[nodiscard]] bool device_lost() const;
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  /// Of the manager in use.
  [[nodiscard]] FaultyDevice& device();
  [[nodiscard]] const std::string& saved_plan() const { return saved_plan_; }
  /// Of the manager in use; for scenarios to prove that they do what their name says.
  [[nodiscard]] std::optional<Report> report();

 private:
  struct Item {
    std::string name;
    std::size_t manager = 0;
    bool temporary = false;
    bool is_transient = false;
    std::optional<Tensor<Element, FaultyDevice>> tensor;
    std::vector<Element> value;
    bool defined = false;
    bool lost = false;  // declared so by the library
  };
  struct Managed {
    std::size_t device = 0;
    std::optional<MemoryManager<FaultyDevice>> manager;
    std::optional<Iteration<FaultyDevice>> iteration;
    bool lost = false;
    std::string lost_text;
    std::vector<TensorName> lost_values;
  };
  struct Later {
    PendingDownload<FaultyDevice> pending;
    std::unique_ptr<std::vector<Element>> target;
    std::vector<Element> expected;
    std::size_t manager;
  };
  class Calling;
  enum class Outcome : std::uint8_t { done, failed, gone };

  [[nodiscard]] Managed* current();
  [[nodiscard]] Item* usable(std::size_t tensor);
  /// Tries `body`, again after a failure. True if it came about.
  bool call(std::string_view what, const std::function<void()>& body);
  Outcome attempt(std::string_view what, const std::function<void()>& body);
  void guarded(const std::function<void()>& body);  // for what must not throw at all
  void note_dropped(std::string_view what, const DroppedValue& error);
  void note_error(std::string_view what, const char* text);
  void note_device_lost(std::string_view what, const DeviceLost& error);
  void note_work_failed(std::string_view what, const WorkFailed& error);
  void restore_lost();
  void check_value(Item& item, const std::vector<Element>& seen, std::string_view where);
  void verify(std::size_t tensor);
  void problem(const std::string& text);
  [[nodiscard]] Element next_salt() { return salt_ += 7919; }

  void launch(const Step& step, Operation<FaultyDevice>& op, const simulated::WaitList* waits,
              simulated::NativeEvent* event);
  void apply(const Step& step, Element salt);
  void lose_outputs(const Step& step);
  bool run_step(const Step& step, const std::function<void()>& expect_refusal);
  void probe_manager(std::size_t number);
  void notice_loss(std::size_t number);
  void settle_queues(FaultyDevice& device);
  FaultyDevice& add_device();
  void nothing_left(const simulated::Backend& device);
  void probe_lost(std::size_t number);
  void write_file(const std::string& what, const std::function<void(std::ostream&)>& write,
                  const std::string& expected);
  void write_trace_of(const Trace& trace);

  [[nodiscard]] ManagerState look_inside() const;
  [[nodiscard]] FileGate file_gate();

  ProgressWatch progress_;
  FaultScript script_;
  simulated::Options device_options_;
  std::deque<FaultyDevice> devices_;
  std::vector<std::unique_ptr<Managed>> managers_;
  std::size_t current_ = 0;
  std::deque<Item> items_;
  std::vector<std::unique_ptr<Later>> later_;
  std::string saved_plan_;
  Element salt_ = 1;
  bool restoring_ = false;
  std::vector<std::size_t> concerned_;  // tensors that the call is about; empty: all
  bool closing_ = false;

  bool callable_entered_ = false;
  bool callable_left_ = false;
  Element step_salt_ = 0;

  AllocationSites* sites_ = nullptr;

  std::vector<std::string> errors_;
  std::size_t reads_of_lost_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace swapmm::test
