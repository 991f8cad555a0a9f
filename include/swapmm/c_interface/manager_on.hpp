// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/swapmm.h>
#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/c_interface/failure.hpp>
#include <swapmm/c_interface/handles.hpp>
#include <swapmm/c_interface/operation_checks.hpp>
#include <swapmm/c_interface/tensor_table.hpp>
#include <swapmm/measure_shared_links.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/core/make_core.hpp>
#include <swapmm/runtime/core/run_again.hpp>
#include <swapmm/runtime/core/running_operation.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/record.hpp>
#include <swapmm/scheduler.hpp>

namespace swapmm::c_interface {

/// The events of a wait list, as C sees them.
struct NativeWaits {
  const void* events = nullptr;
  std::uint64_t count = 0;
};

/// A manager of the C interface on one backend. `Native` says how the backend's types appear in C. Each manager has
/// one:
///     static void* address(const typename B::Address&);
///     static void* queue(B&);
///     NativeWaits waits(B&, const typename B::WaitList&);   // valid until the operation ends
///     static typename B::NativeEvent event(void*);          // takes it over
/// With a member `needs_event`, an operation that takes the waits must end with an event.
template <Backend B, class Native>
class ManagerOn : public swapmm_manager {
 public:
  ManagerOn(B backend, const ManagerOptions& options)
      : scheduler_(options.scheduler),
        core_(runtime::make_core(std::move(backend), options.options, SchedulerAccess::book(scheduler_),
                                 options.entrance)),
        proven_drops_(options.entrance.certainly_dead != nullptr) {}
  ~ManagerOn() override {
    running_.reset();
    if (in_iteration_) core_->end_iteration();
    core_->close();
  }

  // ---- tensors

  swapmm_tensor create(std::string_view name, Bytes bytes, Lifetime lifetime) override {
    return add(name, bytes, [&] { return &core_->create(name, bytes, lifetime); });
  }

  swapmm_tensor create_constant(std::string_view name, Bytes bytes, const std::shared_ptr<FileMemory>& source,
                                Bytes offset) override {
    return add(name, bytes, [&] { return &core_->create_constant(name, bytes, source, offset); });
  }

  void destroy(swapmm_tensor tensor) override { core_->destroy(*tensors_.remove(tensor).record); }

  void upload(swapmm_tensor tensor, Bytes offset, std::span<const std::byte> data) override {
    const runtime::TensorKey<B> key = within(tensor, offset, Bytes{data.size()}, "swapmm_tensor_upload()");
    core_->upload(key, offset, data);
  }

  void download(swapmm_tensor tensor, Bytes offset, std::span<std::byte> data) override {
    const runtime::TensorKey<B> key = within(tensor, offset, Bytes{data.size()}, "swapmm_tensor_download()");
    core_->download(key, offset, data);
  }

  // ---- iterations

  void begin_iteration(std::string_view name) override {
    core_->begin_iteration(name);
    in_iteration_ = true;
  }

  void end_iteration() override {
    if (!in_iteration_) throw UsageError("swapmm_iteration_end(): no iteration has begun");
    runtime::run_again_before_end(*core_);
    in_iteration_ = false;
    core_->end_iteration();
  }

  // ---- operations

  void begin_operation(swapmm_operation& operation) override {
    for (swapmm_output& output : outputs_of(operation)) output.tensor = 0;
    require_no_operation("swapmm_operation_begin()");
    name_.assign(text_or(operation.name, "operation"));
    items_.clear();
    try {
      add_uses(operation);
      add_outputs(operation);
      again_ = again_of(operation);
      const runtime::Request<B> request{name_, items_, Bytes{operation.scratch_bytes}, operation.scratch_bytes != 0,
                                        again_.function != nullptr};
      runtime::run_again_before(*core_, request);
      request_ = request;
      running_.emplace(*core_, request_, operation.takes_waits != 0);
      fill_in(operation);
    } catch (...) {
      if (running_) {
        running_->scope.reset();
        running_->operation.cancel();
      }
      running_.reset();
      for (swapmm_output& output : outputs_of(operation)) {
        if (output.tensor != 0) destroy(std::exchange(output.tensor, 0));
      }
      throw;
    }
  }

  void* address(swapmm_tensor tensor, Bytes offset, Bytes bytes) override {
    Running& running = require_running("swapmm_operation_address()");
    const runtime::TensorKey<B> key = within(tensor, offset, bytes, "swapmm_operation_address()");
    if (!running.operation.in_bundle(key)) {
      throw runtime::operation_misused(request_.name, " does not use tensor " + runtime::in_quotes(key.record->name),
                                       {runtime::name_of(key)});
    }
    return Native::address(running.operation.address(*key.record, offset, bytes));
  }

  void end_operation(void* event) override {
    Running& running = require_ending("swapmm_operation_end()");
    check_event(running, event);
    bool check_again = false;
    {
      const Ending ending(*this);
      if (!running.takes_waits) {
        running.leave_scope();
        if (again_.function != nullptr) running.operation.template prepare_to_keep<KeptAgain>(again_);
        running.operation.complete();
        if (again_.function != nullptr) {
          running.operation.keep();
          check_again = running.operation.is_checked_again();
        }
      } else {
        typename B::NativeEvent native = Native::event(event);
        running.leave_scope();
        running.operation.complete_after_list(std::move(native));
      }
    }
    if (check_again) {
      runtime::Request<B> request = request_;
      request.again = true;
      run_again(again_, request);
    }
    // Tensors that are destroyed later were not known to be dead here: plans have to know that.
    if (proven_drops_ && !core_->follows_plan()) core_->note_wait(0);
  }

  void fail_operation() override {
    (void)require_ending("swapmm_operation_fail()");
    running_.reset();
  }

  void cancel_operation() override {
    Running& running = require_ending("swapmm_operation_cancel()");
    const Ending ending(*this);
    running.scope.reset();
    running.operation.cancel();
  }

  // ---- the whole manager

  void require_no_operation(const char* call) const override {
    if (running_) throw operation_has_not_ended(name_, call);
  }
  void set_budget(Bytes bytes) override { runtime::set_budget(*core_, bytes); }
  void set_neighbour_budget(const Neighbour& neighbour, Bytes bytes) override {
    core_->set_neighbour_budget(neighbour, bytes);
  }
  void synchronize() override { core_->synchronize(); }
  [[nodiscard]] Report report() override { return core_->report(); }
  [[nodiscard]] const Report& count() override {
    core_->count(counted_);
    return counted_;
  }
  [[nodiscard]] Scheduler& scheduler() override { return scheduler_; }

 protected:
  // The backend's scope. Scopes cannot be moved, so this is made in place.
  struct ScopeHolder {
    explicit ScopeHolder(runtime::RunningOperation<B>& operation) : scope(operation.enter_scope()) {}
    typename runtime::RunningOperation<B>::Scope scope;
  };
  // The operation between its begin and its end.
  struct Running {
    Running(runtime::Core<B>& core, const runtime::Request<B>& request, bool takes_waits_)
        : operation(core, request, takes_waits_), takes_waits(takes_waits_) {}
    // Throws if the backend saw a failure since the begin.
    void leave_scope() {
      operation.check_scope(scope->scope);
      scope.reset();
    }
    runtime::RunningOperation<B> operation;
    bool takes_waits;
    std::optional<typename B::WaitList> waits;
    std::optional<ScopeHolder> scope;  // ends before the operation
  };

  [[nodiscard]] Running& require_running(const char* call) {
    if (!running_) throw UsageError(std::string(call) + ": no operation has begun");
    return *running_;
  }
  /// The same for a call that ends it.
  [[nodiscard]] Running& require_ending(const char* call) {
    if (request_.again) throw UsageError(std::string(call) + ": an operation that runs again is ended by the library");
    return require_running(call);
  }
  [[nodiscard]] const runtime::Request<B>& request() const { return request_; }
  /// The manager's own number of the tensor.
  [[nodiscard]] std::uint64_t serial_of(swapmm_tensor tensor) const {
    return tensors_.find(tensor, [] { return std::string("swapmm_tensor_destroy()"); }).serial;
  }
  [[nodiscard]] B& backend() { return core_->backend(); }

 private:
  /// A new tensor. `create()` returns the core's record of it.
  template <class Create>
  swapmm_tensor add(std::string_view name, Bytes bytes, Create&& create) {
    check_size(name, bytes);
    tensors_.reserve();
    const std::uint64_t number = new_tensor_number();
    runtime::Record<B>* const record = create();
    return tensors_.add(number, {record, record->tensor.serial});
  }

  /// How an operation runs again.
  struct Again {
    ManagerOn* manager = nullptr;
    swapmm_again function = nullptr;
    void* argument = nullptr;
  };
  class KeptAgain final : public runtime::KeptCallable<B> {
   public:
    explicit KeptAgain(const Again& again) : again_(again) {}
    void replace(const Again& again) { again_ = again; }
    void forget() noexcept override { again_ = {}; }
    void run(runtime::Core<B>& /*core*/, const runtime::Request<B>& request) override {
      again_.manager->run_again(again_, request);
    }

   private:
    Again again_;
  };

  // What the program calls meanwhile is about the operation that runs again. Inside the program's function other calls
  // take their turns; then the caller's goes on.
  class RunningAgain {
   public:
    RunningAgain(ManagerOn& manager, const runtime::Request<B>& request)
        : manager_(manager), outer_(std::exchange(manager.request_, request)) {
      give_turn(0);
    }
    RunningAgain(const RunningAgain&) = delete;
    RunningAgain& operator=(const RunningAgain&) = delete;
    ~RunningAgain() {
      give_turn(1);
      manager_.running_.reset();
      manager_.request_ = outer_;
    }

   private:
    void give_turn(std::uint16_t back) {
      change(manager_.callers, [back](swapmm_manager::Callers& callers) { callers.has_turn = back; });
    }

    ManagerOn& manager_;
    runtime::Request<B> outer_;
  };

  // Whether the caller knows the field.
  [[nodiscard]] static bool has_field(const swapmm_operation& operation, std::size_t offset) {
    return operation.struct_size >= offset + sizeof(std::uint64_t);
  }

  [[nodiscard]] Again again_of(const swapmm_operation& operation) {
    if (!has_field(operation, offsetof(swapmm_operation, again_argument)) || operation.again == nullptr) return {};
    if (operation.takes_waits != 0) {
      throw runtime::operation_misused(name_, " may run again, which is not for operations with takes_waits");
    }
    return {this, operation.again, operation.again_argument};
  }

  void run_again(const Again& again, const runtime::Request<B>& request) {
    std::vector<void*> addresses(request.items.size());
    const std::string name(request.name);
    swapmm_operation operation{};
    operation.struct_size = sizeof(operation);
    operation.name = name.c_str();
    operation.addresses = addresses.data();
    operation.scratch_bytes = request.scratch.value;
    const RunningAgain inner(*this, request);
    Running& running = running_.emplace(*core_, request_, false);
    fill_in(operation);
    if (again.function(again.argument, &operation) != 0) {
      throw again_failed(name);
    }
    running.leave_scope();
    running.operation.complete();
  }

  // Ends the operation, however its last call returns.
  class Ending {
   public:
    explicit Ending(ManagerOn& manager) : manager_(manager) {}
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;
    ~Ending() { manager_.running_.reset(); }

   private:
    ManagerOn& manager_;
  };

  [[nodiscard]] static std::span<swapmm_output> outputs_of(swapmm_operation& operation) {
    return {operation.outputs, static_cast<std::size_t>(operation.output_count)};
  }

  static void check_event(const Running& running, const void* event) {
    if (!running.takes_waits && event != nullptr) {
      throw UsageError("swapmm_operation_end(): an event, and the operation was begun without takes_waits");
    }
    if constexpr (requires { Native::needs_event; }) {
      if (running.takes_waits && event == nullptr) {
        throw UsageError("swapmm_operation_end(): no event, and this backend needs the one of the operation's work");
      }
    }
  }

  [[nodiscard]] runtime::TensorKey<B> within(swapmm_tensor tensor, Bytes offset, Bytes bytes, const char* call) {
    const runtime::TensorKey<B> key = tensors_.find(tensor, [&] { return std::string(call); });
    check_range(call, runtime::name_of(key), offset, bytes);
    return key;
  }

  void add_uses(const swapmm_operation& operation) {
    for (std::size_t i = 0; i < operation.use_count; ++i) {
      const swapmm_use& use = operation.uses[i];
      const runtime::TensorKey<B> key = tensors_.find(
          use.tensor, [&] { return "operation " + runtime::in_quotes(name_) + ", use " + std::to_string(i); });
      items_.push_back({key.record, access_of(use.access), key.serial});
    }
  }

  void add_outputs(swapmm_operation& operation) {
    for (swapmm_output& output : outputs_of(operation)) {
      output.tensor = create(text_or(output.name, "tensor"), Bytes{output.bytes}, lifetime_of(output.lifetime));
      const runtime::TensorKey<B> key = tensors_.find(output.tensor, [] { return std::string(); });
      items_.push_back({key.record, Access::write, key.serial});
    }
  }

  void fill_in(swapmm_operation& operation) {
    Running& running = *running_;
    running.scope.emplace(running.operation);
    NativeWaits waits;
    if (running.takes_waits) {
      waits = native_.waits(running.operation.backend(), running.waits.emplace(running.operation.wait_list()));
    }
    operation.waits = waits.events;
    operation.wait_count = waits.count;
    if (operation.addresses != nullptr) {
      void** address = operation.addresses;
      for (const runtime::BundleItem<B>& item : request_.items) {
        *address++ = Native::address(running.operation.address(*item.record, Bytes{}, item.record->bytes));
      }
    }
    operation.scratch =
        running.operation.scratch() == nullptr ? nullptr : Native::address(*running.operation.scratch());
    operation.queue = Native::queue(running.operation.backend());
    if (has_field(operation, offsetof(swapmm_operation, times_again))) {
      operation.follows_plan = running.operation.is_followed() ? 1 : 0;
      operation.times_again = running.operation.times_repeated();
    }
  }

  Scheduler scheduler_;
  std::shared_ptr<runtime::Core<B>> core_;
  bool proven_drops_;
  Native native_;
  TensorTable<B> tensors_;
  std::string name_;                           // of the operation
  std::vector<runtime::BundleItem<B>> items_;  // of the operation
  runtime::Request<B> request_;                // of the operation
  std::optional<Running> running_;             // refers to the request
  Again again_;                                // of the operation
  bool in_iteration_ = false;
  Report counted_;
};

/// A backend of the C interface.
template <Backend B, class Manager>
class BackendOn final : public swapmm_backend {
 public:
  explicit BackendOn(B backend) : backend_(std::move(backend)) {}

  [[nodiscard]] std::unique_ptr<swapmm_manager> make_manager(const ManagerOptions& options) const override {
    return std::make_unique<Manager>(backend_, options);
  }
  [[nodiscard]] LinkCapacities measure_shared_links(std::span<const swapmm_backend* const> backends,
                                                    Bytes piece) const override {
    if constexpr (NamedCopyBackend<B>) throw UsageError("custom devices copy values of tensors, and nothing besides");
    std::vector<B> all;
    for (const swapmm_backend* const backend : backends) all.push_back(of(backend, "the first one's kind"));
    return swapmm::measure_shared_links(std::span(all), piece);
  }
  [[nodiscard]] const void* type() const noexcept override { return type_of_all(); }

  /// The backend, if the handle has one of this type. Throws UsageError if it is null or has another.
  [[nodiscard]] static const B& of(const swapmm_backend* handle, const char* api) {
    const swapmm_backend& given = required(handle, "swapmm_backend");
    if (given.type() != type_of_all()) throw UsageError(std::string("the backend is not one of ") + api);
    return static_cast<const BackendOn&>(given).backend_;
  }

 private:
  static const void* type_of_all() noexcept {
    static const char type = 0;
    return &type;
  }
  B backend_;
};

/// Makes a handle from `make()`, which returns the backend.
template <class Handle, class Make>
[[nodiscard]] swapmm_status make_backend(swapmm_backend** backend, Make&& make) noexcept {
  // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guarded() catches it
  return make_object(backend, "the pointer to the new backend", [&] { return new Handle(make()); });
}

}  // namespace swapmm::c_interface
