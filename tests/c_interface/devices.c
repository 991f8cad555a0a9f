// SPDX-License-Identifier: Apache-2.0
// Other devices beside a manager's own: a neighbour's memory, and links that managers share. On simulated devices.
#include <stdint.h>

#include "check.h"

enum { layers = 6, numbers = 256, iterations = 40, bytes = numbers * 4 };

typedef struct {
  uint32_t *from, *to;
  uint32_t added;
} kernel;

static kernel kernels[layers * 2];

static int run_kernel(void* argument) {
  const kernel* k = (const kernel*)argument;
  for (int i = 0; i < numbers; ++i) k->to[i] = 3u * k->from[i] + 5u * k->to[i] + k->added;
  return 0;
}

typedef struct {
  swapmm_manager* manager;
  swapmm_tensor tensors[layers];
  uint32_t model[layers][numbers];
} program;

static swapmm_backend* device(void) {
  swapmm_simulated_options options;
  swapmm_backend* backend = NULL;
  NEED(swapmm_simulated_options_init(&options, sizeof options));
  options.device_bytes = 1 << 16;
  NEED(swapmm_simulated_create(&options, &backend));
  return backend;
}

static void make(program* p, const swapmm_backend* backend, const swapmm_options* options) {
  NEED(swapmm_manager_create(backend, options, &p->manager));
  for (int t = 0; t < layers; ++t) {
    for (int i = 0; i < numbers; ++i) p->model[t][i] = (uint32_t)(1000 * t + i);
    NEED(swapmm_tensor_create(p->manager, bytes, "t", SWAPMM_OBSERVED, &p->tensors[t]));
    NEED(swapmm_tensor_upload(p->manager, p->tensors[t], 0, p->model[t], bytes));
  }
}

// Each tensor is added to the next one, and back.
static void iterate(program* p) {
  NEED(swapmm_iteration_begin(p->manager, "step"));
  for (int o = 0; o < 2 * layers; ++o) {
    const int from = o < layers ? o : (2 * layers - o) % layers;
    const int to = o < layers ? (o + 1) % layers : 2 * layers - 1 - o;
    const swapmm_use uses[2] = {{p->tensors[from], SWAPMM_READ}, {p->tensors[to], SWAPMM_UPDATE}};
    void* addresses[2];
    swapmm_operation operation = {0};
    operation.struct_size = sizeof operation;
    operation.uses = uses;
    operation.use_count = 2;
    operation.addresses = addresses;
    NEED(swapmm_operation_begin(p->manager, &operation));
    kernels[o].from = (uint32_t*)addresses[0];
    kernels[o].to = (uint32_t*)addresses[1];
    kernels[o].added = (uint32_t)o;
    NEED(swapmm_simulated_launch(p->manager, 500, run_kernel, &kernels[o], NULL));
    NEED(swapmm_operation_end(p->manager, NULL));
    for (int i = 0; i < numbers; ++i) p->model[to][i] = 3u * p->model[from][i] + 5u * p->model[to][i] + (uint32_t)o;
  }
  NEED(swapmm_iteration_end(p->manager));
  NEED(swapmm_manager_synchronize(p->manager));  // the kernels' arguments are used again
}

static void check_values(program* p) {
  uint32_t seen[numbers];
  for (int t = 0; t < layers; ++t) {
    NEED(swapmm_tensor_download(p->manager, p->tensors[t], 0, seen, bytes));
    CHECK(memcmp(seen, p->model[t], bytes) == 0);
  }
}

static int report_has(swapmm_manager* manager, const char* text) {
  char* json = NULL;
  int has = 0;
  NEED(swapmm_manager_report(manager, &json));
  has = strstr(json, text) != NULL;
  swapmm_text_destroy(json);
  return has;
}

static void test_neighbour(void) {
  swapmm_options options;
  swapmm_neighbour* neighbour = NULL;
  swapmm_neighbour* other = NULL;
  swapmm_neighbour* none[1] = {NULL};
  swapmm_manager* refused = NULL;
  swapmm_backend* backend = device();
  static program p;
  NEED(swapmm_simulated_neighbour(4 * bytes, &neighbour));
  NEED(swapmm_simulated_neighbour(4 * bytes, &other));
  NEED(swapmm_options_init(&options, sizeof options));
  options.device_budget = 3 * bytes;
  options.host_budget = 6 * bytes;
  options.neighbours = &neighbour;
  options.neighbour_count = 1;
  make(&p, backend, &options);
  for (int i = 0; i < iterations; ++i) iterate(&p);
  check_values(&p);
  CHECK(report_has(p.manager, "\"neighbours_budget\": 4096"));
  CHECK(!report_has(p.manager, "\"neighbours_read\": 0,"));
  NEED(swapmm_manager_set_neighbour_budget(p.manager, neighbour, 2 * bytes));
  iterate(&p);
  check_values(&p);
  CHECK(report_has(p.manager, "\"neighbours_budget\": 2048"));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "none of the manager's",
              swapmm_manager_set_neighbour_budget(p.manager, other, bytes));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "swapmm_neighbour is null",
              swapmm_manager_set_neighbour_budget(p.manager, NULL, bytes));
  check_values(&p);

  options.neighbours = none;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "neighbours has 0, which is null",
              swapmm_manager_create(backend, &options, &refused));
  options.neighbours = NULL;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "neighbours has 0, which is null",
              swapmm_manager_create(backend, &options, &refused));
  CHECK(refused == NULL);
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "the pointer to the neighbour is null", swapmm_simulated_neighbour(64, NULL));

  swapmm_neighbour_destroy(neighbour);  // the manager keeps it
  iterate(&p);
  check_values(&p);
  swapmm_manager_destroy(p.manager);
  swapmm_neighbour_destroy(other);
  swapmm_neighbour_destroy(NULL);
  swapmm_backend_destroy(backend);
}

static void test_shared_links(void) {
  swapmm_options options;
  swapmm_shared_links* links = NULL;
  swapmm_backend* backends[2] = {device(), device()};
  static program p[2];
  NEED(swapmm_shared_links_create(0, 0, 1000000000, &links));
  NEED(swapmm_options_init(&options, sizeof options));
  options.device_budget = 3 * bytes;
  options.shared_links = links;
  options.trial_iterations = 0;  // what is planned stays
  for (int i = 0; i < 2; ++i) make(&p[i], backends[i], &options);
  swapmm_shared_links_destroy(links);  // the managers keep it
  for (int i = 0; i < iterations; ++i) {
    iterate(&p[0]);
    iterate(&p[1]);
  }
  for (int i = 0; i < 2; ++i) {
    check_values(&p[i]);
    CHECK(report_has(p[i].manager, "\"devices\": 2"));
    CHECK(report_has(p[i].manager, "\"turns_missed\": 0"));  // they have no clock in common
    swapmm_manager_destroy(p[i].manager);
  }

  CHECK_ERROR(SWAPMM_USAGE_ERROR, "all capacities are 0", swapmm_shared_links_create(0, 0, 0, &links));
  CHECK(links == NULL);
  links = (swapmm_shared_links*)&options;
  NEED(swapmm_shared_links_measure((const swapmm_backend* const*)backends, 2, 8192, &links));
  CHECK(links == NULL);  // simulated devices with clocks of their own share nothing
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "needs backends",
              swapmm_shared_links_measure((const swapmm_backend* const*)backends, 0, 8192, &links));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "at least a byte",
              swapmm_shared_links_measure((const swapmm_backend* const*)backends, 2, 0, &links));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "the array of backends is null", swapmm_shared_links_measure(NULL, 2, 64, &links));
  CHECK_ERROR(SWAPMM_OUT_OF_MEMORY, "",
              swapmm_shared_links_measure((const swapmm_backend* const*)backends, 2, 1 << 20, &links));
  swapmm_backend_destroy(backends[1]);
  backends[1] = NULL;
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "swapmm_backend is null",
              swapmm_shared_links_measure((const swapmm_backend* const*)backends, 2, 64, &links));
  swapmm_shared_links_destroy(NULL);
  swapmm_backend_destroy(backends[0]);
}

int main(void) {
  test_neighbour();
  test_shared_links();
  return result_of_checks("devices");
}
