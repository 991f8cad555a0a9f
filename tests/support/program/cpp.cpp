// SPDX-License-Identifier: Apache-2.0
#include "support/program/cpp.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string_view>
#include <utility>

#include "support/program/cpp_host_view.hpp"
#include "support/program/cpp_operation.hpp"
#include "support/program/cpp_text.hpp"
#include "support/program/end.hpp"
#include "support/program/model.hpp"

namespace swapmm::test {
namespace {

std::string numbered(std::string_view name, std::size_t number) { return std::string(name) + std::to_string(number); }

/// Goes through the actions as the runner does, and writes down each call that it made.
class CppPrinter {
 public:
  CppPrinter(const TestProgram& program, const RunSettings& settings, const RunResult& run)
      : program_(program), settings_(settings), run_(run) {}

  std::string print() {
    out_ << "// SPDX-License-Identifier: Apache-2.0\n// clang-format off\n// Random program of seed " << program_.seed
         << ".\n";
    if (!run_.failure.empty()) out_ << "// What does not hold: " << run_.failure << "\n";
    out_ << cpp_prelude() << "void program(const Device& device) {\n";
    print_manager();
    print_variables();
    for (std::size_t at = 0; at < run_.outcomes.size(); ++at) print_action(at);
    if (!program_.ends_plainly) print_end();
    out_ << "}\n\n}  // namespace\n\nint main() {\n  simulated::Options device_options;\n"
         << cpp_device_options(program_.device) << cpp_closing();
    return out_.str();
  }

 private:
  struct Promise {
    bool pending = false;
    std::string pieces;
  };

  void print_manager() {
    SchedulerOptions scheduler = program_.scheduler;
    if (!settings_.planning) scheduler.observe = 0;
    out_ << "  Options manager_options;\n" << cpp_manager_options(program_.manager);
    if (program_.file) {
      out_ << "  manager_options.file_staging = Bytes{" << program_.manager.file_staging.value << "};\n"
           << "  // A file as tests/support/memory_file.hpp has it, or another one of that size.\n"
           << "  manager_options.file = std::make_shared<swapmm::test::MemoryFile>(Bytes{"
           << program_.file->capacity.value << "}, Bytes{" << program_.file->alignment.value << "});\n";
    }
    for (const NeighbourSetup& neighbour : program_.neighbours) {
      out_ << "  // A neighbour as the backend has it, of that size.\n"
           << "  manager_options.neighbours.push_back(swapmm::simulated::neighbour(Bytes{" << neighbour.capacity.value
           << "}));\n";
    }
    if (program_.codec_staging.value != 0) {
      const std::string staging = std::to_string(program_.codec_staging.value);
      out_ << "  manager_options.codec_staging = Bytes{" << staging << "};\n"
           << "  manager_options.device_budget += Bytes{" << staging << "};\n";
    }
    out_ << "  SchedulerOptions scheduler_options;\n"
         << cpp_scheduler_options(scheduler) << "  Scheduler scheduler(scheduler_options);\n";
    for (const SavedPlan& saved : settings_.loaded) {
      out_ << "  load(scheduler, \"" << saved.iteration << "\", R\"plan(" << saved.text << ")plan\");\n";
    }
    out_ << "  Manager manager(device, manager_options, scheduler);\n";
  }

  /// In the order that is the reverse of the one in which they end.
  void print_variables() {
    std::array<bool, promise_count> promises{};
    std::array<bool, slot_count> slots{};
    for (const Action& action : program_.actions) {
      if (action.kind == ActionKind::outlived) outlived_[action.slot].wanted = true;
    }
    bool iterations = false;
    for (const Action& action : program_.actions) {
      if (action.kind == ActionKind::promise) promises[action.other] = true;
      if (action.kind == ActionKind::make) slots[action.slot] = true;
      if (action.kind == ActionKind::exchange) slots[action.slot] = slots[action.other] = true;
      if (action.kind == ActionKind::begin_iteration) iterations = true;
    }
    for (std::size_t i = 0; i < promise_count; ++i) {
      if (promises[i]) out_ << "  std::vector<std::byte> bytes" << i << ";\n";
    }
    for (std::size_t i = 0; i < promise_count; ++i) {
      if (promises[i]) out_ << "  std::optional<PendingDownload<Device>> promise" << i << ";\n";
    }
    if (iterations) out_ << "  std::optional<Iteration<Device>> iteration;\n";
    for (std::size_t i = 0; i < slot_count; ++i) {
      if (slots[i]) out_ << "  Handle t" << i << ";\n";
    }
    for (std::size_t i = 0; i < slot_count; ++i) {
      if (outlived_[i].wanted) out_ << "  std::optional<View<std::byte, Device>> outlived" << i << ";\n";
    }
    host_views_.print_variables();
    out_ << "\n";
  }

  void print_action(std::size_t at) {
    if (at >= program_.actions.size()) {  // what the host reads in the end
      Action action;
      action.kind = ActionKind::download;
      action.slot = static_cast<std::uint8_t>(at - program_.actions.size());
      return print_download(action, at);
    }
    const Action& action = program_.actions[at];
    switch (action.kind) {
      case ActionKind::make: return print_make(action, at);
      case ActionKind::destroy: return print_destroy(action.slot);
      case ActionKind::exchange:
        std::swap(tensors_[action.slot], tensors_[action.other]);
        host_views_.exchange(action.slot, action.other);
        out_ << "  std::swap(t" << int{action.slot} << ", t" << int{action.other} << ");\n";
        return;
      case ActionKind::begin_iteration: return print_begin(action, at);
      case ActionKind::end_iteration:
        if (std::exchange(in_iteration_, false)) out_ << "  iteration.reset();\n";
        return;
      case ActionKind::operation: return print_operation(action, at);
      case ActionKind::upload: return print_upload(action, at);
      case ActionKind::download: return print_download(action, at);
      case ActionKind::promise: return print_promise(action, at);
      case ActionKind::collect: return print_collect(action.other);
      case ActionKind::drop:
        if (std::exchange(promises_[action.other].pending, false))
          out_ << "  promise" << int{action.other} << ".reset();\n";
        return;
      case ActionKind::synchronize: return print_call(at, "manager.synchronize()");
      case ActionKind::plan: out_ << "  if (auto job = scheduler.planning_job()) job->run();\n"; return;
      case ActionKind::set_budget:
        if (action.bytes >= program_.device.alignment.value) {
          print_call(at,
                     "manager.set_budget(Bytes{" + std::to_string(action.bytes + program_.codec_staging.value) + "})");
        }
        return;
      case ActionKind::outlived: return print_outlived(action, at);
      case ActionKind::open_view:
      case ActionKind::close_view:
      case ActionKind::look:
      case ActionKind::poke:
      case ActionKind::write_back: return print_host_view(action, at);
    }
  }

  // ---- calls

  /// The last action of a run that failed is where it failed: then nothing is known of how the call must end.
  [[nodiscard]] bool failed_at(std::size_t at) const { return !run_.failure.empty() && at + 1 == run_.outcomes.size(); }
  [[nodiscard]] bool refused(std::size_t at) const {
    return failed_at(at) ? run_.accepted_wrongly : run_.outcomes[at] != accepted;
  }

  void print_call(std::size_t at, const std::string& call) {
    if (refused(at)) {
      out_ << "  refused([&] { " << call << "; });\n";
    } else {
      out_ << "  " << call << ";\n";
    }
  }

  void print_make(const Action& action, std::size_t at) {
    print_destroy(action.slot);
    const ModelTensor model = made_tensor(action, ++last_id_, program_.device.alignment);
    constexpr std::array<std::string_view, 3> lifetimes{"", ", transient", ", kept"};
    print_call(at, numbered("t", action.slot) + " = manager.tensor<std::byte>({" + std::to_string(action.bytes) +
                       "}, \"" + name_of(model) + "\"" +
                       std::string(lifetimes[static_cast<std::size_t>(action.lifetime)]) + ")");
    if (!refused(at)) tensors_[action.slot] = model;
  }

  void print_destroy(std::size_t slot) {
    if (tensors_[slot].exists) {
      Outlived& outlived = outlived_[slot];
      outlived.bytes = tensors_[slot].layout.bytes;
      if (outlived.wanted) out_ << "  outlived" << slot << ".emplace(t" << slot << "->view());\n";
      out_ << "  t" << slot << ".reset();\n";
    }
    host_views_.outlives(slot, tensors_[slot]);
    tensors_[slot] = {};
  }

  void print_outlived(const Action& action, std::size_t at) {
    if (outlived_[action.slot].bytes == 0) return;
    const std::string view = numbered("outlived", action.slot);
    const std::string bytes = "std::vector<std::byte>(" + std::to_string(outlived_[action.slot].bytes) + ")";
    switch (static_cast<OutlivedUse>(action.other)) {
      case OutlivedUse::upload: return print_call(at, view + "->upload(" + bytes + ")");
      case OutlivedUse::download: return print_call(at, "(void)" + view + "->download()");
      case OutlivedUse::promise:
        return print_call(at, "auto bytes = " + bytes + "; (void)" + view + "->download_async(bytes)");
      case OutlivedUse::operation:
        return print_call(at, "manager.run(\"outlived\", updates(*" + view + "), [](auto&) {})");
    }
  }

  void print_begin(const Action& action, std::size_t at) {
    print_call(at, "iteration.emplace(manager.iteration(\"" + std::string(iteration_name(action.name)) + "\"))");
    if (!refused(at)) in_iteration_ = true;
  }

  void print_operation(const Action& action, std::size_t at) {
    for (std::size_t i = 0; i < action.part_count; ++i) {
      if (!tensors_[action.parts[i].slot].exists) return;
    }
    const bool full = !refused(at) || failed_at(at);
    Action printed = action;
    printed.form.replayable = action.form.replayable && may_be_replayed(program_, at);
    out_ << (refused(at) ? "  refused([&] {\n" : "") << cpp_of_operation(printed, at, tensors_, full)
         << (refused(at) ? "  });\n" : "");
    for (std::size_t i = 0; i < action.part_count; ++i) {
      ModelTensor& tensor = tensors_[action.parts[i].slot];
      if (action.parts[i].access == Access::read) continue;
      if (!refused(at)) tensor.write(tensor.range(action.parts[i]));
      host_views_.replaced(action.parts[i].slot, !refused(at));
    }
  }

  void print_upload(const Action& action, std::size_t at) {
    ModelTensor& tensor = tensors_[action.slot];
    if (!tensor.exists) return;
    const SliceRange range = tensor.layout.range(action.first, action.slices);
    ModelTensor next = tensor;
    next.write(range);
    print_call(at, member(action, range) + "upload(value(" + cpp_pieces(next, range) + "))");
    if (!refused(at)) tensor = next;
    host_views_.replaced(action.slot, tensor.layout.whole(range) && !refused(at));
  }

  void print_host_view(const Action& action, std::size_t at) {
    ModelTensor& tensor = tensors_[action.slot];
    const auto call = [&](const std::string& text) { print_call(at, text); };
    switch (action.kind) {
      case ActionKind::open_view: {
        if (!tensor.exists) return;
        const SliceRange range = tensor.layout.range(action.first, action.slices);
        return host_views_.open(action, tensor, member(action, range), refused(at), call);
      }
      case ActionKind::close_view: return host_views_.close(action.slot, refused(at), call);
      case ActionKind::write_back: return host_views_.write_back(action.slot, call);
      default: return host_views_.touch(action, tensor, refused(at), call);
    }
  }

  void print_download(const Action& action, std::size_t at) {
    const ModelTensor& tensor = tensors_[action.slot];
    if (!tensor.exists) return;
    const SliceRange range = tensor.layout.range(action.first, action.slices);
    const std::string call = member(action, range) + "download()";
    if (refused(at)) return print_call(at, "(void)" + call);
    out_ << "  expect(\"the host\", " << call << ", " << cpp_pieces(tensor, range) << ");\n";
  }

  void print_promise(const Action& action, std::size_t at) {
    const ModelTensor& tensor = tensors_[action.slot];
    Promise& promise = promises_[action.other];
    if (!tensor.exists || promise.pending) return;
    const SliceRange range = tensor.layout.range(action.first, action.slices);
    const std::string bytes = numbered("bytes", action.other);
    out_ << "  " << bytes << ".assign(" << tensor.layout.size(range) << ", std::byte{0x77});\n";
    print_call(
        at, numbered("promise", action.other) + ".emplace(" + member(action, range) + "download_async(" + bytes + "))");
    promise = {!refused(at), cpp_pieces(tensor, range)};
  }

  void print_collect(std::size_t number) {
    Promise& promise = promises_[number];
    if (!promise.pending) return;
    out_ << "  promise" << number << "->wait();\n  expect(\"the host\", bytes" << number << ", " << promise.pieces
         << ");\n  promise" << number << ".reset();\n";
    promise.pending = false;
  }

  [[nodiscard]] std::string member(const Action& action, const SliceRange& range) const {
    const std::string handle = numbered("t", action.slot);
    const std::string view = text_of_view(tensors_[action.slot].layout.path(range, action.view), handle);
    return view.front() == '*' ? handle + "->" : view + ".";
  }

  // ---- the end

  void print_end() {
    for (const Ending& ending : endings(program_)) {
      switch (ending.what) {
        case Ending::What::tensor: print_destroy(ending.number); break;
        case Ending::What::host_view: print_host_view_end(ending); break;
        case Ending::What::promise:
          if (ending.collect) print_collect(ending.number);
          if (promises_[ending.number].pending) out_ << "  promise" << int{ending.number} << ".reset();\n";
          break;
        case Ending::What::iteration:
          if (in_iteration_) out_ << "  iteration.reset();\n";
          break;
        case Ending::What::backend: break;  // a handle of it
        case Ending::What::manager:
          for (std::size_t slot = 0; slot < slot_count; ++slot) host_views_.outlives(slot, tensors_[slot]);
          out_ << "  { const Manager gone = std::move(manager); }\n";
          break;
      }
    }
  }

  void print_host_view_end(const Ending& ending) {
    const auto call = [&](const std::string& text) { out_ << "  " << text << ";\n"; };
    if (ending.collect) host_views_.touch(look_at_all(ending.number), tensors_[ending.number], false, call);
    host_views_.end(ending.number);
  }

  const TestProgram& program_;
  const RunSettings& settings_;
  const RunResult& run_;
  std::ostringstream out_;
  ModelTensors tensors_{};
  CppHostViews host_views_{program_, out_};
  std::array<Promise, promise_count> promises_{};
  struct Outlived {
    bool wanted = false;
    std::uint32_t bytes = 0;  // of the last tensor that ended in the slot; 0: none did
  };
  std::array<Outlived, slot_count> outlived_{};
  std::uint64_t last_id_ = 0;
  bool in_iteration_ = false;
};

}  // namespace

std::string cpp_of(const TestProgram& program, const RunSettings& settings, const RunResult& run) {
  return CppPrinter(program, settings, run).print();
}

}  // namespace swapmm::test
