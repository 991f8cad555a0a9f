// SPDX-License-Identifier: Apache-2.0
// The functions of <swapmm/swapmm.h> that are the same for all backends.
#include <swapmm/swapmm.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/c_interface/failure.hpp>
#include <swapmm/c_interface/handles.hpp>
#include <swapmm/c_interface/options.hpp>
#include <swapmm/c_interface/report.hpp>
#include <swapmm/c_interface/structs.hpp>
#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm::c_interface {
namespace {

// A call that an operation does not allow between its begin and its end.
template <class Body>
swapmm_status between_operations(swapmm_manager* manager, const char* call, Body&& body) noexcept {
  return guarded([&] {
    const Turn turn(required(manager, "swapmm_manager"));
    manager->require_no_operation(call);
    body(*manager);
  });
}

// A call that an operation allows.
template <class Body>
swapmm_status any_time(swapmm_manager* manager, Body&& body) noexcept {
  return guarded([&] {
    const Turn turn(required(manager, "swapmm_manager"));
    body(*manager);
  });
}

// A copy that swapmm_text_destroy() frees.
char* copy_of(const std::string& text) {
  auto copy = std::make_unique<char[]>(text.size() + 1);
  std::memcpy(copy.get(), text.c_str(), text.size() + 1);
  return copy.release();
}

// A call that makes a text.
template <class MakeText>
swapmm_status text_of(swapmm_manager* manager, const char* call, char** text, MakeText&& make) noexcept {
  return between_operations(manager, call, [&](swapmm_manager& open) {
    char*& made = required(text, "the pointer to the text");
    made = nullptr;
    made = copy_of(make(open));
  });
}

std::size_t size_of(std::uint64_t bytes) { return static_cast<std::size_t>(bytes); }

}  // namespace
}  // namespace swapmm::c_interface

using swapmm::Bytes;
using namespace swapmm::c_interface;  // NOLINT(*-build-using-namespace)

void swapmm_text_destroy(char* text) { delete[] text; }

void swapmm_backend_destroy(swapmm_backend* backend) { delete backend; }

void swapmm_file_destroy(swapmm_file* file) { delete file; }

void swapmm_neighbour_destroy(swapmm_neighbour* neighbour) { delete neighbour; }

// ---- shared links

swapmm_status swapmm_shared_links_create(uint64_t to_devices, uint64_t from_devices, uint64_t both_ways,
                                         swapmm_shared_links** links) {
  return make_object(links, "the pointer to the shared links", [&] {
    const swapmm::LinkCapacities capacities{to_devices, from_devices, both_ways};
    return new swapmm_shared_links{std::make_shared<swapmm::SharedLinks>(capacities)};
  });
}

swapmm_status swapmm_shared_links_measure(const swapmm_backend* const* backends, uint64_t count, uint64_t piece,
                                          swapmm_shared_links** links) {
  return make_object(links, "the pointer to the shared links", [&]() -> swapmm_shared_links* {
    if (count == 0) throw swapmm::UsageError("swapmm_shared_links_measure() needs backends");
    if (piece == 0) throw swapmm::UsageError("swapmm_shared_links_measure() needs pieces of at least a byte");
    const std::span all(&required(backends, "the array of backends"), size_of(count));
    const swapmm::LinkCapacities capacities =
        required(all.front(), "swapmm_backend").measure_shared_links(all, Bytes{piece});
    if (capacities.empty()) return nullptr;
    return new swapmm_shared_links{std::make_shared<swapmm::SharedLinks>(capacities)};
  });
}

void swapmm_shared_links_destroy(swapmm_shared_links* links) { delete links; }

// ---- managers

swapmm_status swapmm_options_init(swapmm_options* options, uint64_t struct_size) {
  return guarded([&] {
    swapmm_options& given = required(options, "swapmm_options");
    check_struct_size<swapmm_options>(struct_size, offsetof(swapmm_options, drops), "swapmm_options");
    write_struct(given, default_options(), struct_size);
  });
}

swapmm_status swapmm_manager_create(const swapmm_backend* backend, const swapmm_options* options,
                                    swapmm_manager** manager) {
  return make_object(manager, "the pointer to the new manager", [&] {
    const ManagerOptions read = read_options(required(options, "swapmm_options"));
    std::unique_ptr<swapmm_manager> made = required(backend, "swapmm_backend").make_manager(read);
    LiveManagers::all().add(*made);
    return made.release();
  });
}

void swapmm_manager_destroy(swapmm_manager* manager) {
  if (manager == nullptr || !LiveManagers::all().remove(*manager)) return;
  const auto before = change(manager->callers, [](swapmm_manager::Callers& callers) { callers.is_destroyed = 1; });
  if (before.calls == 0) delete manager;  // else the last call does
}

swapmm_status swapmm_manager_set_budget(swapmm_manager* manager, uint64_t bytes) {
  return between_operations(manager, "swapmm_manager_set_budget()",
                            [&](swapmm_manager& open) { open.set_budget(Bytes{bytes}); });
}

swapmm_status swapmm_manager_set_neighbour_budget(swapmm_manager* manager, const swapmm_neighbour* neighbour,
                                                  uint64_t bytes) {
  return between_operations(manager, "swapmm_manager_set_neighbour_budget()", [&](swapmm_manager& open) {
    open.set_neighbour_budget(*required(neighbour, "swapmm_neighbour").memory, Bytes{bytes});
  });
}

swapmm_status swapmm_manager_synchronize(swapmm_manager* manager) {
  return between_operations(manager, "swapmm_manager_synchronize()", [](swapmm_manager& open) { open.synchronize(); });
}

swapmm_status swapmm_manager_numbers(swapmm_manager* manager, swapmm_numbers* numbers) {
  return between_operations(manager, "swapmm_manager_numbers()", [&](swapmm_manager& open) {
    swapmm_numbers& given = required(numbers, "swapmm_numbers");
    check_struct_size<swapmm_numbers>(given.struct_size, sizeof(swapmm_numbers), "swapmm_numbers");
    write_struct(given, numbers_of(open.count()), given.struct_size);
  });
}

swapmm_status swapmm_manager_report(swapmm_manager* manager, char** json) {
  return text_of(manager, "swapmm_manager_report()", json,
                 [](swapmm_manager& open) { return report_json(open.report()); });
}

swapmm_status swapmm_manager_trace(swapmm_manager* manager, const char* iteration, char** json) {
  return text_of(manager, "swapmm_manager_trace()", json, [&](swapmm_manager& open) {
    const std::string_view name = text_or(iteration, "iteration");
    const std::optional<swapmm::Trace> trace = open.scheduler().trace(name);
    if (!trace) throw swapmm::UsageError("no iteration \"" + std::string(name) + "\" was observed");
    std::ostringstream out;
    swapmm::write_trace(out, *trace);
    return out.str();
  });
}

swapmm_status swapmm_manager_save_plan(swapmm_manager* manager, const char* iteration, char** json) {
  return text_of(manager, "swapmm_manager_save_plan()", json, [&](swapmm_manager& open) {
    std::ostringstream out;
    open.scheduler().save_plan(text_or(iteration, "iteration"), out);
    return out.str();
  });
}

swapmm_status swapmm_manager_load_plan(swapmm_manager* manager, const char* iteration, const char* json) {
  return between_operations(manager, "swapmm_manager_load_plan()", [&](swapmm_manager& open) {
    std::istringstream in(std::string(&required(json, "the text of the plan")));
    open.scheduler().load_plan(text_or(iteration, "iteration"), in);
  });
}

// ---- tensors

swapmm_status swapmm_tensor_create(swapmm_manager* manager, uint64_t bytes, const char* name, uint32_t lifetime,
                                   swapmm_tensor* tensor) {
  return between_operations(manager, "swapmm_tensor_create()", [&](swapmm_manager& open) {
    swapmm_tensor& made = required(tensor, "the pointer to the new tensor");
    made = 0;
    made = open.create(text_or(name, "tensor"), Bytes{bytes}, lifetime_of(lifetime));
  });
}

swapmm_status swapmm_tensor_create_constant(swapmm_manager* manager, uint64_t bytes, const char* name,
                                            const swapmm_file* file, uint64_t offset, swapmm_tensor* tensor) {
  return between_operations(manager, "swapmm_tensor_create_constant()", [&](swapmm_manager& open) {
    swapmm_tensor& made = required(tensor, "the pointer to the new tensor");
    made = 0;
    made = open.create_constant(text_or(name, "constant"), Bytes{bytes}, required(file, "swapmm_file").memory,
                                Bytes{offset});
  });
}

swapmm_status swapmm_tensor_destroy(swapmm_manager* manager, swapmm_tensor tensor) {
  return guarded([&] {
    swapmm_manager& open = required(manager, "swapmm_manager");
    if (tensor != 0) open.destroy(tensor);
  });
}

swapmm_status swapmm_tensor_upload(swapmm_manager* manager, swapmm_tensor tensor, uint64_t offset, const void* data,
                                   uint64_t bytes) {
  return between_operations(manager, "swapmm_tensor_upload()", [&](swapmm_manager& open) {
    const auto* const from = &required(static_cast<const std::byte*>(data), "the data to upload");
    open.upload(tensor, Bytes{offset}, std::span(from, size_of(bytes)));
  });
}

swapmm_status swapmm_tensor_download(swapmm_manager* manager, swapmm_tensor tensor, uint64_t offset, void* data,
                                     uint64_t bytes) {
  return between_operations(manager, "swapmm_tensor_download()", [&](swapmm_manager& open) {
    auto* const to = &required(static_cast<std::byte*>(data), "the memory for the download");
    open.download(tensor, Bytes{offset}, std::span(to, size_of(bytes)));
  });
}

// ---- iterations

swapmm_status swapmm_iteration_begin(swapmm_manager* manager, const char* name) {
  return between_operations(manager, "swapmm_iteration_begin()",
                            [&](swapmm_manager& open) { open.begin_iteration(text_or(name, "iteration")); });
}

swapmm_status swapmm_iteration_end(swapmm_manager* manager) {
  return between_operations(manager, "swapmm_iteration_end()", [](swapmm_manager& open) { open.end_iteration(); });
}

// ---- operations

swapmm_status swapmm_operation_begin(swapmm_manager* manager, swapmm_operation* operation) {
  return any_time(manager, [&](swapmm_manager& open) {
    swapmm_operation& given = required(operation, "swapmm_operation");
    check_struct_size<swapmm_operation>(given.struct_size, offsetof(swapmm_operation, again), "swapmm_operation");
    if (given.use_count != 0) (void)required(given.uses, "swapmm_operation::uses");
    if (given.output_count != 0) (void)required(given.outputs, "swapmm_operation::outputs");
    open.begin_operation(given);
  });
}

swapmm_status swapmm_operation_address(swapmm_manager* manager, swapmm_tensor tensor, uint64_t offset, uint64_t bytes,
                                       void** address) {
  return any_time(manager, [&](swapmm_manager& open) {
    void*& found = required(address, "the pointer to the address");
    found = nullptr;
    found = open.address(tensor, Bytes{offset}, Bytes{bytes});
  });
}

swapmm_status swapmm_operation_end(swapmm_manager* manager, void* event) {
  return any_time(manager, [&](swapmm_manager& open) { open.end_operation(event); });
}

swapmm_status swapmm_operation_fail(swapmm_manager* manager) {
  return any_time(manager, [](swapmm_manager& open) { open.fail_operation(); });
}

swapmm_status swapmm_operation_cancel(swapmm_manager* manager) {
  return any_time(manager, [](swapmm_manager& open) { open.cancel_operation(); });
}

swapmm_status swapmm_simulated_launch(swapmm_manager* manager, uint64_t nanoseconds, int (*run)(void* argument),
                                      void* argument, void** event) {
  return any_time(manager, [&](swapmm_manager& open) {
    if (run == nullptr) throw swapmm::UsageError("the kernel is null");
    if (nanoseconds >> 62U != 0) throw swapmm::UsageError("a kernel takes less than 2^62 nanoseconds");
    void* const end = open.launch({std::chrono::nanoseconds(nanoseconds), run, argument});
    if (event != nullptr) *event = end;
  });
}
