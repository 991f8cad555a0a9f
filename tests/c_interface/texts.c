// SPDX-License-Identifier: Apache-2.0
// Report, trace and plan as text: a saved plan is followed by another manager. Plans of programs that make their
// tensors anew, and keep some of them for one iteration more.
#include <stdint.h>

#include "check.h"

enum { bytes = 256, tensors = 6 };

typedef struct {
  swapmm_backend* backend;
  swapmm_manager* manager;
  swapmm_tensor tensor[tensors];
} desk;

static int add_one(void* where) {
  unsigned char* data = (unsigned char*)where;
  int i;
  for (i = 0; i < bytes; ++i) ++data[i];
  return 0;
}

static desk open_desk(const char* planner, uint64_t observe, uint32_t flags) {
  desk d;
  swapmm_options options;
  unsigned char data[bytes];
  int i;
  NEED(swapmm_simulated_create(NULL, &d.backend));
  NEED(swapmm_options_init(&options, sizeof options));
  options.device_budget = 3 * bytes;
  options.planner = planner;
  options.observe = observe;
  options.flags = flags;
  NEED(swapmm_manager_create(d.backend, &options, &d.manager));
  memset(data, 1, sizeof data);
  for (i = 0; i < tensors; ++i) {
    NEED(swapmm_tensor_create(d.manager, bytes, "a \"quoted\" name", SWAPMM_KEPT, &d.tensor[i]));
    NEED(swapmm_tensor_upload(d.manager, d.tensor[i], 0, data, sizeof data));
  }
  return d;
}

static void close_desk(desk* d) {
  uint64_t violations = 1;
  swapmm_manager_destroy(d->manager);
  NEED(swapmm_simulated_violations(d->backend, &violations));
  CHECK(violations == 0);
  swapmm_backend_destroy(d->backend);
}

static void iterate(desk* d, int times) {
  int i, k;
  for (i = 0; i < times; ++i) {
    NEED(swapmm_iteration_begin(d->manager, "add"));
    for (k = 0; k < tensors; ++k) {
      swapmm_use use;
      swapmm_operation operation = {0};
      void* address = NULL;
      use.tensor = d->tensor[k];
      use.access = SWAPMM_UPDATE;
      operation.struct_size = sizeof operation;
      operation.name = "add one";
      operation.uses = &use;
      operation.use_count = 1;
      operation.addresses = &address;
      NEED(swapmm_operation_begin(d->manager, &operation));
      NEED(swapmm_simulated_launch(d->manager, 20000, add_one, address, NULL));
      NEED(swapmm_operation_end(d->manager, NULL));
    }
    NEED(swapmm_iteration_end(d->manager));
  }
}

static swapmm_numbers numbers_of(swapmm_manager* manager) {
  swapmm_numbers numbers;
  numbers.struct_size = sizeof numbers;
  NEED(swapmm_manager_numbers(manager, &numbers));
  return numbers;
}

static int all_hold(desk* d, int value) {
  int i, k;
  for (i = 0; i < tensors; ++i) {
    unsigned char data[bytes];
    NEED(swapmm_tensor_download(d->manager, d->tensor[i], 0, data, sizeof data));
    for (k = 0; k < bytes; ++k) {
      if (data[k] != value) return 0;
    }
  }
  return 1;
}

static int contains(const char* text, const char* part) {
  if (strstr(text, part) != NULL) return 1;
  printf("no %s in: %s\n", part, text);
  return 0;
}

static void report_trace_and_plan(void) {
  desk d = open_desk("best", 2, 0);
  desk second = open_desk("no planner", 2, 0);
  char *report = NULL, *trace = NULL, *plan = NULL;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "\"add\"", swapmm_manager_trace(d.manager, "add", &trace));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_manager_save_plan(d.manager, "add", &plan));
  CHECK(trace == NULL && plan == NULL);
  iterate(&d, 8);
  CHECK(numbers_of(d.manager).iterations_followed >= 5);
  NEED(swapmm_manager_report(d.manager, &report));
  NEED(swapmm_manager_trace(d.manager, "add", &trace));
  NEED(swapmm_manager_save_plan(d.manager, "add", &plan));
  CHECK(contains(report, "{\"format\": \"swapmm-manager-report\", \"version\": 1, \"device\": \"simulated\""));
  CHECK(contains(report, "\"device_budget\": 768, "));
  CHECK(contains(report, "\"operations\": 48, "));
  CHECK(contains(report, "\"plans\": [\n  {\"iteration\": \"add\", \"planner\": \""));
  CHECK(contains(report, "\"on_demand\": []"));
  CHECK(contains(report, "\"notes\": []}\n"));
  CHECK(contains(trace, "\"swapmm-trace\""));
  CHECK(contains(trace, "a \\\"quoted\\\" name"));
  CHECK(contains(plan, "\"swapmm-plan\""));

  // The second one cannot make a plan of its own.
  CHECK_ERROR(SWAPMM_PLAN_REFUSED, "plan refused", swapmm_manager_load_plan(second.manager, "add", "{}"));
  CHECK_STATUS(SWAPMM_PLAN_REFUSED, swapmm_manager_load_plan(second.manager, "add", trace));
  NEED(swapmm_manager_load_plan(second.manager, "add", plan));
  iterate(&second, 8);
  CHECK(numbers_of(second.manager).iterations_followed >= 6);
  CHECK(all_hold(&d, 9));
  CHECK(all_hold(&second, 9));
  swapmm_text_destroy(report);
  swapmm_text_destroy(trace);
  swapmm_text_destroy(plan);
  close_desk(&d);
  close_desk(&second);
}

// The largest values of all counts are no different from large ones.
static void largest_options(void) {
  desk d;
  swapmm_options options;
  swapmm_backend* backend = NULL;
  swapmm_manager* manager = NULL;
  int i;
  NEED(swapmm_simulated_create(NULL, &backend));
  NEED(swapmm_options_init(&options, sizeof options));
  options.device_budget = 3 * bytes;
  options.max_period = options.max_sequences = options.sample_every = options.trial_iterations = UINT64_MAX;
  NEED(swapmm_manager_create(backend, &options, &manager));
  d.backend = backend;
  d.manager = manager;
  for (i = 0; i < tensors; ++i) {
    const unsigned char data[bytes] = {0};
    NEED(swapmm_tensor_create(manager, bytes, "tensor", SWAPMM_KEPT, &d.tensor[i]));
    NEED(swapmm_tensor_upload(manager, d.tensor[i], 0, data, sizeof data));
  }
  iterate(&d, 8);
  CHECK(numbers_of(manager).iterations_followed >= 5);
  CHECK(all_hold(&d, 8));
  close_desk(&d);
}

static void reasons_for_no_plan(void) {
  desk d = open_desk("no planner", 2, 0);
  char* report = NULL;
  iterate(&d, 4);
  CHECK(numbers_of(d.manager).iterations_on_demand == 4);
  NEED(swapmm_manager_report(d.manager, &report));
  CHECK(contains(report, "\"plans\": []"));
  CHECK(contains(report, "{\"iteration\": \"add\", \"reason\": \"no_plan\", \"why\": \""));
  CHECK(contains(report, "no planner"));
  CHECK(all_hold(&d, 5));
  swapmm_text_destroy(report);
  close_desk(&d);
}

// Each iteration begins by writing a tensor whole, and never reads it after its end. A plan drops its value.
static void dropped_values(void) {
  desk d = open_desk("best", 2, 0);
  swapmm_tensor scratch = 0;
  unsigned char data[bytes];
  int i, k;
  NEED(swapmm_tensor_create(d.manager, bytes, "dead at the end", SWAPMM_OBSERVED, &scratch));
  for (i = 0; i < 8; ++i) {
    NEED(swapmm_iteration_begin(d.manager, "write first"));
    for (k = 0; k < tensors; ++k) {
      swapmm_use uses[2];
      swapmm_operation operation = {0};
      void* addresses[2] = {NULL, NULL};
      uses[0].tensor = d.tensor[k];
      uses[0].access = SWAPMM_UPDATE;
      uses[1].tensor = scratch;
      uses[1].access = k == 0 ? SWAPMM_WRITE : SWAPMM_READ;
      operation.struct_size = sizeof operation;
      operation.uses = uses;
      operation.use_count = k < 2 ? 2 : 1;
      operation.addresses = addresses;
      NEED(swapmm_operation_begin(d.manager, &operation));
      NEED(swapmm_simulated_launch(d.manager, 20000, add_one, addresses[0], NULL));
      NEED(swapmm_operation_end(d.manager, NULL));
    }
    NEED(swapmm_iteration_end(d.manager));
  }
  CHECK(numbers_of(d.manager).iterations_followed >= 5);
  CHECK_ERROR(SWAPMM_DROPPED_VALUE, "dead at the end", swapmm_tensor_download(d.manager, scratch, 0, data, bytes));
  CHECK(all_hold(&d, 9));
  close_desk(&d);
}

// Each operation makes a tensor. The first three are destroyed in the iteration, the others at different places of the
// next one, without a use there.
static uint64_t followed_with_late_ends(uint32_t flags) {
  desk d = open_desk("best", 2, flags);
  swapmm_tensor late[3] = {0, 0, 0};
  uint64_t followed = 0;
  int i, k, j;
  for (i = 0; i < 12; ++i) {
    swapmm_tensor made[6];
    NEED(swapmm_iteration_begin(d.manager, "make"));
    for (k = 0; k < 6; ++k) {
      swapmm_output output = {bytes, "made", SWAPMM_OBSERVED, 0};
      swapmm_use use;
      swapmm_operation operation = {0};
      void* addresses[2] = {NULL, NULL};
      use.tensor = d.tensor[k];
      use.access = SWAPMM_UPDATE;
      operation.struct_size = sizeof operation;
      operation.uses = &use;
      operation.use_count = 1;
      operation.outputs = &output;
      operation.output_count = 1;
      operation.addresses = addresses;
      NEED(swapmm_operation_begin(d.manager, &operation));
      NEED(swapmm_simulated_launch(d.manager, 20000, add_one, addresses[0], NULL));
      NEED(swapmm_operation_end(d.manager, NULL));
      made[k] = output.tensor;
      if (k % 2 == 1) {
        j = k / 2;
        NEED(swapmm_tensor_destroy(d.manager, late[(j + i) % 3]));
        late[(j + i) % 3] = 0;
      }
    }
    NEED(swapmm_iteration_end(d.manager));
    for (j = 0; j < 3; ++j) {
      NEED(swapmm_tensor_destroy(d.manager, made[j]));
      late[j] = made[3 + j];
    }
  }
  CHECK(all_hold(&d, 13));
  followed = numbers_of(d.manager).iterations_followed;
  close_desk(&d);
  return followed;
}

int main(void) {
  uint64_t without, with;
  report_trace_and_plan();
  largest_options();
  reasons_for_no_plan();
  dropped_values();
  without = followed_with_late_ends(0);
  with = followed_with_late_ends(SWAPMM_IDENTIFY_BY_PRODUCER);
  printf("late ends: %llu iterations follow a plan, %llu if tensors are identified by producer\n",
         (unsigned long long)without, (unsigned long long)with);
  CHECK(with >= 6);
  CHECK(without == 0);
  return result_of_checks("texts");
}
