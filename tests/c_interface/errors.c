// SPDX-License-Identifier: Apache-2.0
// Every misuse and every failure is a code with a text, and leaves the manager usable.
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "check.h"

enum { bytes = 64 };

typedef struct {
  swapmm_backend* backend;
  swapmm_manager* manager;
} desk;

static desk open_desk(uint64_t budget, uint32_t flags) {
  desk d = {NULL, NULL};
  swapmm_options options;
  NEED(swapmm_simulated_create(NULL, &d.backend));
  NEED(swapmm_options_init(&options, sizeof options));
  options.device_budget = budget;
  options.flags = flags;
  NEED(swapmm_manager_create(d.backend, &options, &d.manager));
  return d;
}

static void close_desk(desk d) {
  uint64_t violations = 1;
  swapmm_manager_destroy(d.manager);
  NEED(swapmm_simulated_violations(d.backend, &violations));
  CHECK(violations == 0);
  swapmm_backend_destroy(d.backend);
}

static swapmm_tensor tensor(desk d, uint64_t size, const char* name) {
  swapmm_tensor made = 0;
  NEED(swapmm_tensor_create(d.manager, size, name, SWAPMM_KEPT, &made));
  CHECK(made != 0);
  return made;
}

static swapmm_tensor filled(desk d, const char* name, int value) {
  unsigned char data[bytes];
  const swapmm_tensor made = tensor(d, bytes, name);
  memset(data, value, sizeof data);
  NEED(swapmm_tensor_upload(d.manager, made, 0, data, sizeof data));
  return made;
}

static int holds(desk d, swapmm_tensor which, int value) {
  unsigned char data[bytes];
  int i;
  NEED(swapmm_tensor_download(d.manager, which, 0, data, sizeof data));
  for (i = 0; i < bytes; ++i) {
    if (data[i] != value) return 0;
  }
  return 1;
}

static uint64_t tensors_of(desk d) {
  swapmm_numbers numbers;
  numbers.struct_size = sizeof numbers;
  NEED(swapmm_manager_numbers(d.manager, &numbers));
  return numbers.tensors;
}

// An operation on one tensor, up to its begin.
static swapmm_status begin(desk d, const char* name, swapmm_tensor which, swapmm_access access, void** address) {
  swapmm_use use;
  swapmm_operation operation = {0};
  use.tensor = which;
  use.access = access;
  operation.struct_size = sizeof operation;
  operation.name = name;
  operation.uses = &use;
  operation.use_count = 1;
  operation.addresses = address;
  return swapmm_operation_begin(d.manager, &operation);
}

static int fill_with_9(void* where) {
  memset(where, 9, bytes);
  return 0;
}
static int fail(void* where) {
  (void)where;
  return 1;
}

static void null_pointers(void) {
  desk d = open_desk(1024, 0);
  const swapmm_tensor t = filled(d, "t", 1);
  swapmm_options options;
  swapmm_backend* backend = NULL;
  swapmm_manager* manager = NULL;
  swapmm_operation operation = {0};
  swapmm_tensor made = 5;
  void* address = NULL;
  char* text = NULL;
  NEED(swapmm_options_init(&options, sizeof options));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "swapmm_options is null", swapmm_options_init(NULL, sizeof options));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_create(d.backend, &options, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_create(d.backend, NULL, &manager));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "swapmm_backend is null", swapmm_manager_create(NULL, &options, &manager));
  CHECK(manager == NULL);
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_simulated_create(NULL, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_simulated_options_init(NULL, sizeof(swapmm_simulated_options)));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_simulated_violations(NULL, &made));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_simulated_violations(d.backend, NULL));
  swapmm_backend_destroy(backend);
  swapmm_manager_destroy(manager);
  swapmm_text_destroy(text);

  CHECK_ERROR(SWAPMM_USAGE_ERROR, "swapmm_manager is null", swapmm_manager_set_budget(NULL, 1024));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_synchronize(NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_numbers(NULL, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_numbers(d.manager, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_report(NULL, &text));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_report(d.manager, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_trace(NULL, "x", &text));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_trace(d.manager, "x", NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_save_plan(NULL, "x", &text));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_save_plan(d.manager, "x", NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_load_plan(NULL, "x", "{}"));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_load_plan(d.manager, "x", NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_tensor_create(NULL, 8, "x", SWAPMM_KEPT, &made));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_tensor_create(d.manager, 8, "x", SWAPMM_KEPT, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_tensor_destroy(NULL, t));
  CHECK_STATUS(SWAPMM_OK, swapmm_tensor_destroy(d.manager, 0));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_tensor_upload(NULL, t, 0, "x", 1));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_tensor_upload(d.manager, t, 0, NULL, 1));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_tensor_download(NULL, t, 0, &made, 1));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_tensor_download(d.manager, t, 0, NULL, 1));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_iteration_begin(NULL, "x"));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_iteration_end(NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_begin(NULL, &operation));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_begin(d.manager, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_address(NULL, t, 0, 1, &address));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_address(d.manager, t, 0, 1, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_end(NULL, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_fail(NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_cancel(NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_simulated_launch(NULL, 1, fill_with_9, NULL, NULL));
  operation.struct_size = sizeof operation;
  operation.use_count = 1;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "uses is null", swapmm_operation_begin(d.manager, &operation));
  operation.use_count = 0;
  operation.output_count = 1;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "outputs is null", swapmm_operation_begin(d.manager, &operation));
  CHECK(holds(d, t, 1));
  close_desk(d);
}

static void options_that_are_none(void) {
  desk d = open_desk(1024, 0);
  swapmm_options good, options;
  swapmm_simulated_options simulated;
  swapmm_backend* backend = NULL;
  swapmm_manager* manager = NULL;
  swapmm_numbers numbers;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "struct_size", swapmm_options_init(&options, 7));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_options_init(&options, sizeof options + 8));
  NEED(swapmm_options_init(&good, sizeof good));
  CHECK(good.struct_size == sizeof good && strcmp(good.planner, "best") == 0 && good.run_ahead == 2);
  good.device_budget = 1024;
#define REFUSED(text, change)                                                                    \
  do {                                                                                           \
    options = good;                                                                              \
    change;                                                                                      \
    CHECK_ERROR(SWAPMM_USAGE_ERROR, text, swapmm_manager_create(d.backend, &options, &manager)); \
    CHECK(manager == NULL);                                                                      \
  } while (0)
  REFUSED("struct_size", options.struct_size = 0);
  REFUSED("struct_size", options.struct_size += 8);
  REFUSED("device_budget is 0", options.device_budget = 0);
  REFUSED("below the device's alignment", options.device_budget = 8);
  REFUSED("queue_depth", options.queue_depth = 7);
  REFUSED("queue_depth", options.queue_depth = UINT64_MAX);
  REFUSED("run_ahead", options.run_ahead = 4);
  REFUSED("run_ahead", options.run_ahead = UINT64_MAX);
  REFUSED("swapmm_demand_mode has no value 3", options.demand_mode = 3);
  REFUSED("swapmm_option_flags has no value 32", options.flags = 33);
  REFUSED("swapmm_drop_rule has no value 3", options.drops = 3);
  REFUSED("planner is null", options.planner = NULL);
  REFUSED("planning_time_ms", options.planning_time_ms = UINT64_MAX);
  // A program that was compiled for the first version of the struct has no `drops`.
  options = good;
  options.struct_size = offsetof(swapmm_options, drops);
  options.drops = 3;
  NEED(swapmm_manager_create(d.backend, &options, &manager));
  swapmm_manager_destroy(manager);
  manager = NULL;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "struct_size",
              (options.struct_size -= 8, swapmm_manager_create(d.backend, &options, &manager)));
  options = good;
  options.device_budget = UINT64_C(1) << 40;
  CHECK_ERROR(SWAPMM_OUT_OF_MEMORY, "device budget", swapmm_manager_create(d.backend, &options, &manager));
  CHECK(manager == NULL);

  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_simulated_options_init(&simulated, 1));
  NEED(swapmm_simulated_options_init(&simulated, sizeof simulated));
  simulated.h2d_bytes_per_second = 0;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "speed", swapmm_simulated_create(&simulated, &backend));
  simulated.struct_size = 3;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "struct_size", swapmm_simulated_create(&simulated, &backend));
  CHECK(backend == NULL);
  numbers.struct_size = 1;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "swapmm_numbers", swapmm_manager_numbers(d.manager, &numbers));
  close_desk(d);
}

static void tensors_that_are_none(void) {
  desk d = open_desk(1024, 0), other = open_desk(1024, 0);
  const swapmm_tensor t = filled(d, "mine", 1), foreign = filled(other, "theirs", 2), gone = filled(d, "gone", 3);
  const uint64_t count = tensors_of(d);
  swapmm_tensor made = 7;
  unsigned char data[bytes + 1] = {0};
  void* address = NULL;
  NEED(swapmm_tensor_destroy(d.manager, gone));
  CHECK(tensors_of(d) == count - 1);
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "at least 1 byte", swapmm_tensor_create(d.manager, 0, "none", SWAPMM_KEPT, &made));
  CHECK(made == 0);
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "fewer than 2^62",
              swapmm_tensor_create(d.manager, UINT64_C(1) << 62, "all", SWAPMM_KEPT, &made));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "swapmm_lifetime", swapmm_tensor_create(d.manager, 8, "x", 3, &made));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "destroyed", swapmm_tensor_destroy(d.manager, gone));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "destroyed", swapmm_tensor_upload(d.manager, gone, 0, data, bytes));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "another manager", swapmm_tensor_download(d.manager, foreign, 0, data, bytes));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "no tensor", swapmm_tensor_download(d.manager, 0, 0, data, bytes));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "\"step\", use 0", begin(d, "step", gone, SWAPMM_READ, &address));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, begin(d, "step", foreign, SWAPMM_READ, &address));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "swapmm_access", begin(d, "step", t, (swapmm_access)3, &address));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "65 bytes from 0", swapmm_tensor_upload(d.manager, t, 0, data, bytes + 1));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_tensor_upload(d.manager, t, bytes, data, 1));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_tensor_upload(d.manager, t, UINT64_MAX, data, 2));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_tensor_download(d.manager, t, 1, data, bytes));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_tensor_download(d.manager, t, 0, data, 0));
  // A new tensor gets the place of the one that is gone, but not its number.
  CHECK(filled(d, "new", 4) != gone);
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_tensor_destroy(d.manager, gone));
  CHECK(holds(d, t, 1));
  CHECK(holds(other, foreign, 2));
  // A part is uploaded and downloaded.
  data[0] = 8;
  NEED(swapmm_tensor_upload(d.manager, t, 5, data, 1));
  data[0] = 0;
  NEED(swapmm_tensor_download(d.manager, t, 4, data, 3));
  CHECK(data[0] == 1 && data[1] == 8 && data[2] == 1);
  close_desk(d);
  close_desk(other);
}

static void bundles_that_cannot_run(void) {
  desk d = open_desk(256, 0);
  const swapmm_tensor t = filled(d, "t", 1), large = tensor(d, 512, "large"), empty = tensor(d, bytes, "empty");
  swapmm_use twice[2];
  swapmm_output outputs[2] = {{bytes, "first", SWAPMM_OBSERVED, 1}, {512, "second", SWAPMM_OBSERVED, 2}};
  swapmm_operation operation = {0};
  const uint64_t count = tensors_of(d);
  unsigned char data[bytes];
  void* addresses[4];
  CHECK_ERROR(SWAPMM_BUNDLE_TOO_LARGE, "\"big step\"", begin(d, "big step", large, SWAPMM_WRITE, addresses));
  CHECK_ERROR(SWAPMM_UNDEFINED_VALUE, "\"empty\"", begin(d, "step", empty, SWAPMM_READ, addresses));
  CHECK_ERROR(SWAPMM_UNDEFINED_VALUE, "\"empty\"", swapmm_tensor_download(d.manager, empty, 0, data, bytes));
  twice[0].tensor = twice[1].tensor = t;
  twice[0].access = twice[1].access = SWAPMM_READ;
  operation.struct_size = sizeof operation;
  operation.name = "twice";
  operation.uses = twice;
  operation.use_count = 2;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "\"t\"", swapmm_operation_begin(d.manager, &operation));
  // Of outputs that do not fit, none remains.
  operation.use_count = 1;
  operation.outputs = outputs;
  operation.output_count = 2;
  CHECK_ERROR(SWAPMM_BUNDLE_TOO_LARGE, "\"second\"", swapmm_operation_begin(d.manager, &operation));
  CHECK(outputs[0].tensor == 0 && outputs[1].tensor == 0);
  CHECK(tensors_of(d) == count);
  outputs[1].bytes = 0;
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_begin(d.manager, &operation));
  CHECK(outputs[0].tensor == 0 && tensors_of(d) == count);
  operation.output_count = 0;
  operation.scratch_bytes = 1 << 20;
  CHECK_STATUS(SWAPMM_BUNDLE_TOO_LARGE, swapmm_operation_begin(d.manager, &operation));
  operation.struct_size = 8;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "swapmm_operation", swapmm_operation_begin(d.manager, &operation));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "alignment", swapmm_manager_set_budget(d.manager, 1));
  NEED(swapmm_manager_set_budget(d.manager, 1024));
  CHECK_STATUS(SWAPMM_OK, begin(d, "big step", large, SWAPMM_WRITE, addresses));
  NEED(swapmm_operation_cancel(d.manager));
  CHECK(holds(d, t, 1));
  close_desk(d);
}

static void order_of_calls(void) {
  desk d = open_desk(1024, 0);
  const swapmm_tensor t = filled(d, "t", 1), u = filled(d, "u", 2);
  unsigned char data[bytes] = {0};
  swapmm_numbers numbers;
  swapmm_tensor made = 0;
  char* text = NULL;
  void *address = NULL, *part = NULL;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "no operation has begun", swapmm_operation_end(d.manager, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_fail(d.manager));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_cancel(d.manager));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_address(d.manager, t, 0, bytes, &address));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_simulated_launch(d.manager, 1, fill_with_9, data, NULL));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "no iteration has begun", swapmm_iteration_end(d.manager));
  NEED(swapmm_iteration_begin(d.manager, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_iteration_begin(d.manager, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_set_budget(d.manager, 512));

  NEED(begin(d, "open", t, SWAPMM_UPDATE, &address));
  numbers.struct_size = sizeof numbers;
  CHECK_ERROR(SWAPMM_NESTED_OPERATION, "\"open\" has begun and not ended", begin(d, "inner", u, SWAPMM_READ, &part));
  CHECK_STATUS(SWAPMM_NESTED_OPERATION, swapmm_iteration_begin(d.manager, "x"));
  CHECK_STATUS(SWAPMM_NESTED_OPERATION, swapmm_iteration_end(d.manager));
  CHECK_STATUS(SWAPMM_NESTED_OPERATION, swapmm_tensor_create(d.manager, 8, "x", SWAPMM_KEPT, &made));
  CHECK_ERROR(SWAPMM_NESTED_OPERATION, "swapmm_tensor_upload()", swapmm_tensor_upload(d.manager, u, 0, data, bytes));
  CHECK_STATUS(SWAPMM_NESTED_OPERATION, swapmm_tensor_download(d.manager, u, 0, data, bytes));
  CHECK_STATUS(SWAPMM_NESTED_OPERATION, swapmm_manager_synchronize(d.manager));
  CHECK_STATUS(SWAPMM_NESTED_OPERATION, swapmm_manager_set_budget(d.manager, 512));
  CHECK_STATUS(SWAPMM_NESTED_OPERATION, swapmm_manager_numbers(d.manager, &numbers));
  CHECK_STATUS(SWAPMM_NESTED_OPERATION, swapmm_manager_report(d.manager, &text));
  CHECK_STATUS(SWAPMM_NESTED_OPERATION, swapmm_manager_trace(d.manager, "x", &text));
  CHECK_STATUS(SWAPMM_NESTED_OPERATION, swapmm_manager_save_plan(d.manager, "x", &text));
  CHECK_STATUS(SWAPMM_NESTED_OPERATION, swapmm_manager_load_plan(d.manager, "x", "{}"));
  CHECK(made == 0 && text == NULL);
  NEED(swapmm_operation_address(d.manager, t, 16, 8, &part));
  CHECK((char*)part == (char*)address + 16);
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "does not use tensor \"u\"", swapmm_operation_address(d.manager, u, 0, bytes, &part));
  CHECK(part == NULL);
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_address(d.manager, t, 0, bytes + 1, &part));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_simulated_launch(d.manager, 1, NULL, data, NULL));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "takes_waits", swapmm_operation_end(d.manager, data));
  // It is still running, and ends in order. Tensors may be destroyed meanwhile.
  NEED(swapmm_tensor_destroy(d.manager, u));
  NEED(swapmm_simulated_launch(d.manager, 10, fill_with_9, address, NULL));
  NEED(swapmm_operation_end(d.manager, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_end(d.manager, NULL));
  NEED(swapmm_iteration_end(d.manager));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_iteration_end(d.manager));
  CHECK(holds(d, t, 9));
  CHECK(tensors_of(d) == 1);

  // What was begun when the manager is destroyed has failed, and nothing else.
  NEED(swapmm_iteration_begin(d.manager, NULL));
  NEED(begin(d, "last", t, SWAPMM_WRITE, &address));
  close_desk(d);
}

static void waits_and_events(void) {
  desk d = open_desk(1024, 0);
  const swapmm_tensor t = filled(d, "t", 1);
  swapmm_use use;
  swapmm_operation operation = {0};
  void *address = NULL, *event = NULL;
  use.tensor = t;
  use.access = SWAPMM_WRITE;
  operation.struct_size = sizeof operation;
  operation.uses = &use;
  operation.use_count = 1;
  operation.addresses = &address;
  operation.scratch_bytes = 32;
  operation.takes_waits = 1;
  NEED(swapmm_operation_begin(d.manager, &operation));
  CHECK(operation.scratch != NULL && operation.queue == NULL);
  NEED(swapmm_simulated_launch(d.manager, 10, fill_with_9, address, &event));
  CHECK(event != NULL);
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "no event", swapmm_operation_end(d.manager, NULL));
  NEED(swapmm_operation_end(d.manager, event));
  CHECK(holds(d, t, 9));
  close_desk(d);
}

static void operations_that_fail(void) {
  desk d = open_desk(1024, 0);
  const swapmm_tensor t = filled(d, "t", 1), kept = filled(d, "kept", 2), safe = filled(d, "safe", 3);
  unsigned char data[bytes];
  swapmm_status status;
  void* address = NULL;
  // Nothing was queued: all is as before.
  NEED(begin(d, "cancelled", kept, SWAPMM_WRITE, &address));
  NEED(swapmm_operation_cancel(d.manager));
  CHECK(holds(d, kept, 2));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_cancel(d.manager));
  // Something may have been queued: what was to be written is lost, and can be written again.
  NEED(begin(d, "failed", t, SWAPMM_UPDATE, &address));
  NEED(swapmm_operation_fail(d.manager));
  CHECK_ERROR(SWAPMM_WORK_FAILED, "\"t\"", swapmm_tensor_download(d.manager, t, 0, data, bytes));
  memset(data, 6, sizeof data);
  NEED(swapmm_tensor_upload(d.manager, t, 0, data, bytes));
  CHECK(holds(d, t, 6));
  // The kernel fails later, and is reported once.
  NEED(begin(d, "breaks", t, SWAPMM_WRITE, &address));
  NEED(swapmm_simulated_launch(d.manager, 10, fail, NULL, NULL));
  NEED(swapmm_operation_end(d.manager, NULL));
  status = swapmm_manager_synchronize(d.manager);
  CHECK(status == SWAPMM_WORK_FAILED && strstr(swapmm_last_error(), "\"breaks\"") != NULL);
  CHECK_STATUS(SWAPMM_OK, swapmm_manager_synchronize(d.manager));
  CHECK_STATUS(SWAPMM_WORK_FAILED, swapmm_tensor_download(d.manager, t, 0, data, bytes));
  CHECK(holds(d, safe, 3));
  close_desk(d);
}

static void declarations_that_lie(void) {
  desk d = open_desk(1024, SWAPMM_CHECK_ACCESS);
  const swapmm_tensor t = filled(d, "t", 1), u = filled(d, "u", 2);
  void *address = NULL, *other = NULL;
  NEED(begin(d, "look", u, SWAPMM_READ, &other));
  NEED(swapmm_operation_end(d.manager, NULL));
  NEED(begin(d, "lies", t, SWAPMM_READ, &address));
  NEED(swapmm_simulated_launch(d.manager, 10, fill_with_9, address, NULL));
  CHECK_ERROR(SWAPMM_ACCESS_VIOLATION, "\"lies\"", swapmm_operation_end(d.manager, NULL));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_end(d.manager, NULL));  // it has ended
  CHECK(holds(d, u, 2));
  swapmm_manager_destroy(d.manager);
  swapmm_backend_destroy(d.backend);  // the device's checker has seen it as well
}

// With SWAPMM_CHECK_ACCESS, an operation that may run again does so at once.
typedef struct {
  swapmm_manager* manager;
  int times;
  int (*kernel)(void*);
  int result;
} again;

static int run_again(void* argument, const swapmm_operation* operation) {
  again* a = (again*)argument;
  ++a->times;
  if (a->kernel != NULL) NEED(swapmm_simulated_launch(a->manager, 10, a->kernel, operation->addresses[0], NULL));
  return a->result;
}

static int fill_with_8(void* where) {
  memset(where, 8, bytes);
  return 0;
}

// Fills the tensor with nines; what it does again is the caller's choice.
static swapmm_status filled_again(desk d, swapmm_tensor which, swapmm_access access, again* a) {
  swapmm_use use;
  swapmm_operation operation = {0};
  void* address = NULL;
  use.tensor = which;
  use.access = access;
  a->manager = d.manager;
  operation.struct_size = sizeof operation;
  operation.name = "replayable";
  operation.uses = &use;
  operation.use_count = 1;
  operation.addresses = &address;
  operation.again = run_again;
  operation.again_argument = a;
  NEED(swapmm_operation_begin(d.manager, &operation));
  NEED(swapmm_simulated_launch(d.manager, 10, fill_with_9, address, NULL));
  return swapmm_operation_end(d.manager, NULL);
}

static void operations_that_run_again(void) {
  desk d = open_desk(1024, SWAPMM_CHECK_ACCESS), plain = open_desk(1024, 0);
  const swapmm_tensor t = filled(d, "t", 1), other = filled(plain, "t", 1);
  swapmm_operation operation = {0};
  unsigned char data[bytes];
  again same = {0}, changed = {0}, refuses = {0}, updates = {0}, unchecked = {0};
  same.kernel = updates.kernel = fill_with_9;
  changed.kernel = fill_with_8;
  refuses.result = 1;
  NEED(filled_again(d, t, SWAPMM_WRITE, &same));
  CHECK(same.times == 1);
  CHECK(holds(d, t, 9));
  CHECK_ERROR(SWAPMM_ACCESS_VIOLATION, "\"replayable\" is declared replayable",
              filled_again(d, t, SWAPMM_WRITE, &changed));
  CHECK_ERROR(SWAPMM_WORK_FAILED, "\"replayable\" was to run again", filled_again(d, t, SWAPMM_WRITE, &refuses));
  CHECK_STATUS(SWAPMM_WORK_FAILED, swapmm_tensor_download(d.manager, t, 0, data, bytes));
  memset(data, 1, sizeof data);
  NEED(swapmm_tensor_upload(d.manager, t, 0, data, bytes));
  NEED(filled_again(d, t, SWAPMM_UPDATE, &updates));  // of these none runs again
  CHECK(updates.times == 0);
  CHECK(holds(d, t, 9));
  NEED(filled_again(plain, other, SWAPMM_WRITE, &unchecked));
  CHECK(unchecked.times == 0);
  operation.struct_size = sizeof operation;
  operation.name = "waits";
  operation.takes_waits = 1;
  operation.again = run_again;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "\"waits\" may run again", swapmm_operation_begin(d.manager, &operation));
  // A program that was compiled before there was `again` has a smaller struct.
  operation.takes_waits = 0;
  operation.struct_size = offsetof(swapmm_operation, again);
  NEED(swapmm_operation_begin(d.manager, &operation));
  NEED(swapmm_operation_end(d.manager, NULL));
  operation.struct_size -= 8;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "struct_size", swapmm_operation_begin(d.manager, &operation));
  close_desk(plain);
  close_desk(d);
}

static void undefined_reads(void) {
  desk d = open_desk(1024, SWAPMM_UNDEFINED_READS);
  const swapmm_tensor t = tensor(d, bytes, "never written");
  void* address = NULL;
  NEED(begin(d, "step", t, SWAPMM_READ, &address));
  CHECK(address != NULL);
  NEED(swapmm_operation_end(d.manager, NULL));
  close_desk(d);
}

static void no_memory_on_the_host(void) {
  swapmm_simulated_options simulated;
  swapmm_options options;
  swapmm_tensor t = 0;
  unsigned char* data = (unsigned char*)calloc(1, 4096);
  unsigned char small[bytes];
  desk d = {NULL, NULL};
  NEED(swapmm_simulated_options_init(&simulated, sizeof simulated));
  simulated.host_bytes = 2048;
  NEED(swapmm_simulated_create(&simulated, &d.backend));
  NEED(swapmm_options_init(&options, sizeof options));
  options.device_budget = 1024;
  NEED(swapmm_manager_create(d.backend, &options, &d.manager));
  t = tensor(d, 4096, "large");
  CHECK_ERROR(SWAPMM_OUT_OF_MEMORY, "\"large\"", swapmm_tensor_upload(d.manager, t, 0, data, 4096));
  free(data);
  t = filled(d, "small", 5);
  NEED(swapmm_tensor_download(d.manager, t, 0, small, bytes));
  CHECK(small[0] == 5);
  close_desk(d);
}

static void the_backend_goes_first(void) {
  desk d = open_desk(1024, SWAPMM_SCRUB);
  const swapmm_tensor t = filled(d, "t", 4);
  void* address = NULL;
  swapmm_backend_destroy(d.backend);
  NEED(begin(d, "step", t, SWAPMM_UPDATE, &address));
  NEED(swapmm_simulated_launch(d.manager, 10, fill_with_9, address, NULL));
  NEED(swapmm_operation_end(d.manager, NULL));
  CHECK(holds(d, t, 9));
  swapmm_manager_destroy(d.manager);
}

// ---- threads

static swapmm_status inside = SWAPMM_OK;
static swapmm_manager* caller_of_itself = NULL;

static int call_the_manager(void* where) {
  inside = swapmm_manager_synchronize(caller_of_itself);
  memset(where, 7, bytes);
  return 0;
}

typedef struct {
  desk d;
  swapmm_tensor tensor;
  int empty_text;
  swapmm_status destroyed, ended;
} other_thread;

static void* use_from_another_thread(void* argument) {
  other_thread* o = (other_thread*)argument;
  o->empty_text = swapmm_last_error()[0] == '\0';
  o->destroyed = swapmm_tensor_destroy(o->d.manager, o->tensor);
  o->ended = swapmm_tensor_destroy(o->d.manager, o->tensor);
  return NULL;
}

static void threads(void) {
  desk d = open_desk(1024, 0);
  const swapmm_tensor t = filled(d, "t", 1);
  other_thread o;
  pthread_t thread;
  void* address = NULL;
  caller_of_itself = d.manager;
  NEED(begin(d, "calls back", t, SWAPMM_WRITE, &address));
  NEED(swapmm_simulated_launch(d.manager, 10, call_the_manager, address, NULL));
  NEED(swapmm_operation_end(d.manager, NULL));
  CHECK(holds(d, t, 7));
  CHECK(inside == SWAPMM_CONCURRENT_USE);
  CHECK(strstr(swapmm_last_error(), "in use") != NULL);

  // Any thread may destroy tensors, at any time. Each thread has its own last error.
  o.d = d;
  o.tensor = filled(d, "of another thread", 2);
  NEED(begin(d, "open", o.tensor, SWAPMM_READ, &address));
  CHECK_STATUS(SWAPMM_NESTED_OPERATION, swapmm_manager_synchronize(d.manager));
  if (pthread_create(&thread, NULL, use_from_another_thread, &o) != 0) exit(98);
  pthread_join(thread, NULL);
  CHECK(o.empty_text && o.destroyed == SWAPMM_OK && o.ended == SWAPMM_USAGE_ERROR);
  CHECK(strstr(swapmm_last_error(), "\"open\"") != NULL);
  NEED(swapmm_operation_end(d.manager, NULL));
  NEED(swapmm_manager_synchronize(d.manager));
  CHECK(tensors_of(d) == 1);
  close_desk(d);
}

int main(void) {
  CHECK(swapmm_last_error()[0] == '\0');
  CHECK(strncmp(swapmm_version(), "0.", 2) == 0);
  null_pointers();
  options_that_are_none();
  tensors_that_are_none();
  bundles_that_cannot_run();
  order_of_calls();
  waits_and_events();
  operations_that_fail();
  declarations_that_lie();
  operations_that_run_again();
  undefined_reads();
  no_memory_on_the_host();
  the_backend_goes_first();
  threads();
  return result_of_checks("errors");
}
