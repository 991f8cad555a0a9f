// SPDX-License-Identifier: Apache-2.0
// A training loop on the simulated backend: weights that live on, activations and gradients that operations make and
// that are destroyed in the same iteration, an input that is uploaded each time. With half of the memory it gives the
// same bytes as with all of it, and follows a plan. If the forward operations may run again, a plan on a slow link runs
// some of them again.
#include <stdint.h>

#include "check.h"

enum { layers = 6, elements = 96, iterations = 12, most_kernels = 4096 };
enum { tensor_bytes = elements * 4 };

// ---- kernels

typedef enum { forward, backward, descend, reduce } kernel_kind;

typedef struct {
  kernel_kind kind;
  uint32_t* at[4];
} kernel;

static kernel kernels[most_kernels];
static int kernels_used = 0;

static int run_kernel(void* argument) {
  const kernel* k = (const kernel*)argument;
  for (int i = 0; i < elements; ++i) {
    const int j = (i * 7 + 3) % elements;
    switch (k->kind) {
      case forward:  // input, weights -> output
        k->at[2][i] = k->at[0][j] * 3u + (k->at[1][i] ^ k->at[0][i]);
        break;
      case backward:  // gradient, weights, input -> gradient of the input
        k->at[3][i] = k->at[0][i] * 5u + (k->at[1][j] ^ k->at[2][i]);
        break;
      case descend:  // gradient, input, weights
        k->at[2][i] += (k->at[0][i] >> 3) ^ k->at[1][j];
        break;
      case reduce:  // last output, loss
        k->at[1][i] = k->at[0][i] + k->at[0][j];
        break;
    }
  }
  return 0;
}

// ---- one operation

typedef struct {
  swapmm_manager* manager;
  int takes_waits;
  int replayable;  // forward operations may run again
  uint64_t again;  // so often they did
  int fails_again;
} program;

// Runs a forward operation again; the argument is the program.
static int forward_again(void* argument, const swapmm_operation* operation) {
  program* p = (program*)argument;
  kernel* k = &kernels[kernels_used++];
  uint64_t violations_of_rules = 0;
  int i;
  k->kind = forward;
  for (i = 0; i < 3; ++i) k->at[i] = (uint32_t*)operation->addresses[i];
  CHECK(strcmp(operation->name, "forward") == 0);
  CHECK(operation->scratch == NULL && operation->scratch_bytes == 0);
  // The library ends it, and no other call is allowed meanwhile.
  violations_of_rules += swapmm_operation_end(p->manager, NULL) == SWAPMM_USAGE_ERROR;
  violations_of_rules += swapmm_operation_fail(p->manager) == SWAPMM_USAGE_ERROR;
  violations_of_rules += swapmm_operation_cancel(p->manager) == SWAPMM_USAGE_ERROR;
  violations_of_rules += swapmm_manager_synchronize(p->manager) == SWAPMM_NESTED_OPERATION;
  CHECK(violations_of_rules == 4);
  ++p->again;
  NEED(swapmm_simulated_launch(p->manager, 20000, run_kernel, k, NULL));
  return p->fails_again;
}

// Runs an operation that uses `uses` and makes a tensor with that name, or none if the name is null.
static swapmm_tensor run(program* p, const char* name, kernel_kind kind, const swapmm_use* uses, int use_count,
                         const char* output_name) {
  void* addresses[4] = {NULL, NULL, NULL, NULL};
  swapmm_output output = {tensor_bytes, NULL, SWAPMM_OBSERVED, 0};
  swapmm_operation operation = {0};
  kernel* k = &kernels[kernels_used++];
  void* event = NULL;
  int i;
  output.name = output_name;
  operation.struct_size = sizeof operation;
  operation.name = name;
  operation.uses = uses;
  operation.use_count = (uint64_t)use_count;
  operation.outputs = &output;
  operation.output_count = output_name != NULL;
  operation.addresses = addresses;
  operation.takes_waits = (uint64_t)p->takes_waits;
  operation.again = p->replayable && kind == forward ? forward_again : NULL;
  operation.again_argument = p;
  NEED(swapmm_operation_begin(p->manager, &operation));
  CHECK((operation.waits != NULL) == (operation.wait_count != 0));
  CHECK(p->takes_waits || operation.wait_count == 0);
  CHECK(operation.scratch == NULL);
  k->kind = kind;
  for (i = 0; i < 4; ++i) k->at[i] = (uint32_t*)addresses[i];
  for (i = 0; i < use_count + (output_name != NULL); ++i) CHECK(addresses[i] != NULL);
  NEED(swapmm_simulated_launch(p->manager, 20000, run_kernel, k, &event));
  CHECK((event != NULL) == p->takes_waits);
  NEED(swapmm_operation_end(p->manager, event));
  return output.tensor;
}

static swapmm_use use_of(swapmm_tensor tensor, swapmm_access access) {
  swapmm_use use;
  use.tensor = tensor;
  use.access = access;
  return use;
}

// ---- the program

typedef struct {
  uint32_t weights[layers][elements];
  uint32_t losses[iterations][elements];
} values;

static void step(program* p, swapmm_tensor input, const swapmm_tensor* weights, swapmm_tensor loss) {
  swapmm_tensor value[layers + 1];
  swapmm_tensor gradient;
  swapmm_use uses[4];
  int i;
  value[0] = input;
  for (i = 0; i < layers; ++i) {
    uses[0] = use_of(value[i], SWAPMM_READ);
    uses[1] = use_of(weights[i], SWAPMM_READ);
    value[i + 1] = run(p, "forward", forward, uses, 2, "activation");
  }
  uses[0] = use_of(value[layers], SWAPMM_READ);
  uses[1] = use_of(loss, SWAPMM_WRITE);
  (void)run(p, "loss", reduce, uses, 2, NULL);
  gradient = value[layers];
  for (i = layers - 1; i >= 0; --i) {
    swapmm_tensor next;
    uses[0] = use_of(gradient, SWAPMM_READ);
    uses[1] = use_of(weights[i], SWAPMM_READ);
    uses[2] = use_of(value[i], SWAPMM_READ);
    next = run(p, "backward", backward, uses, 3, "gradient");
    uses[1] = use_of(value[i], SWAPMM_READ);
    uses[2] = use_of(weights[i], SWAPMM_UPDATE);
    (void)run(p, "descend", descend, uses, 3, NULL);
    NEED(swapmm_tensor_destroy(p->manager, gradient));
    gradient = next;
    if (i > 0) NEED(swapmm_tensor_destroy(p->manager, value[i]));
  }
  NEED(swapmm_tensor_destroy(p->manager, gradient));
}

// Runs the program. Its link is slow where operations may run again.
static swapmm_numbers train(program* p, uint64_t budget, values* result) {
  swapmm_backend* backend = NULL;
  swapmm_simulated_options device;
  swapmm_options options;
  swapmm_numbers numbers;
  swapmm_tensor input, loss, weights[layers];
  uint32_t data[elements];
  uint64_t violations = 1;
  int i, k;
  kernels_used = 0;
  NEED(swapmm_simulated_options_init(&device, sizeof device));
  if (p->replayable) device.h2d_bytes_per_second = device.d2h_bytes_per_second = 5000000;
  NEED(swapmm_simulated_create(&device, &backend));
  NEED(swapmm_options_init(&options, sizeof options));
  options.device_budget = budget;
  NEED(swapmm_manager_create(backend, &options, &p->manager));
  NEED(swapmm_tensor_create(p->manager, tensor_bytes, "input", SWAPMM_OBSERVED, &input));
  NEED(swapmm_tensor_create(p->manager, tensor_bytes, "loss", SWAPMM_OBSERVED, &loss));
  for (i = 0; i < layers; ++i) {
    NEED(swapmm_tensor_create(p->manager, tensor_bytes, "weights", SWAPMM_KEPT, &weights[i]));
    for (k = 0; k < elements; ++k) data[k] = (uint32_t)(i * 1000 + k);
    NEED(swapmm_tensor_upload(p->manager, weights[i], 0, data, sizeof data));
  }
  for (i = 0; i < iterations; ++i) {
    NEED(swapmm_iteration_begin(p->manager, "train"));
    for (k = 0; k < elements; ++k) data[k] = (uint32_t)(i * 31 + k * 17);
    NEED(swapmm_tensor_upload(p->manager, input, 0, data, sizeof data));
    step(p, input, weights, loss);
    NEED(swapmm_tensor_download(p->manager, loss, 0, result->losses[i], tensor_bytes));
    NEED(swapmm_iteration_end(p->manager));
  }
  for (i = 0; i < layers; ++i) {
    NEED(swapmm_tensor_download(p->manager, weights[i], 0, result->weights[i], tensor_bytes));
  }
  numbers.struct_size = sizeof numbers;
  NEED(swapmm_manager_numbers(p->manager, &numbers));
  swapmm_manager_destroy(p->manager);
  NEED(swapmm_simulated_violations(backend, &violations));
  CHECK(violations == 0);
  swapmm_backend_destroy(backend);
  return numbers;
}

// The same steps on the host.
static void expected_of(values* result) {
  static uint32_t weights[layers][elements], value[layers + 1][elements], gradient[2][elements];
  int i, it, k;
  for (i = 0; i < layers; ++i) {
    for (k = 0; k < elements; ++k) weights[i][k] = (uint32_t)(i * 1000 + k);
  }
  for (it = 0; it < iterations; ++it) {
    kernel one;
    for (k = 0; k < elements; ++k) value[0][k] = (uint32_t)(it * 31 + k * 17);
    for (i = 0; i < layers; ++i) {
      const kernel f = {forward, {value[i], weights[i], value[i + 1], NULL}};
      one = f;
      run_kernel(&one);
    }
    {
      const kernel r = {reduce, {value[layers], result->losses[it], NULL, NULL}};
      one = r;
      run_kernel(&one);
    }
    memcpy(gradient[0], value[layers], tensor_bytes);
    for (i = layers - 1; i >= 0; --i) {
      const kernel b = {backward, {gradient[0], weights[i], value[i], gradient[1]}};
      const kernel d = {descend, {gradient[0], value[i], weights[i], NULL}};
      one = b;
      run_kernel(&one);
      one = d;
      run_kernel(&one);
      memcpy(gradient[0], gradient[1], tensor_bytes);
    }
  }
  memcpy(result->weights, weights, sizeof weights);
}

int main(void) {
  static values expected, with_all, with_half, with_waits, with_again;
  program plain = {0}, waiting = {0}, replaying = {0};
  swapmm_numbers all, half, waits, again;
  waiting.takes_waits = 1;
  replaying.replayable = 1;
  expected_of(&expected);
  all = train(&plain, 1 << 20, &with_all);
  CHECK(memcmp(&expected, &with_all, sizeof expected) == 0);
  CHECK(all.swap_ins > 0);  // the uploads
  CHECK(all.operations == (uint64_t)iterations * (3 * layers + 1));
  CHECK(all.tensors == layers + 2);
  CHECK(all.device_peak > 0);

  half = train(&plain, all.device_peak / 2, &with_half);
  CHECK(memcmp(&expected, &with_half, sizeof expected) == 0);
  CHECK(half.device_budget <= all.device_peak / 2);
  CHECK(half.device_peak <= half.device_budget);
  CHECK(half.swap_ins > all.swap_ins);
  CHECK(half.operations == all.operations);
  CHECK(half.iterations_followed >= iterations - 4);
  CHECK(half.iterations_followed + half.iterations_on_demand == iterations);
  CHECK(half.operations_followed >= half.iterations_followed * (3 * layers + 1));
  CHECK(half.divergences == 0);

  waits = train(&waiting, all.device_peak / 2, &with_waits);
  CHECK(memcmp(&expected, &with_waits, sizeof expected) == 0);
  CHECK(waits.iterations_followed == half.iterations_followed);
  CHECK(waits.device_peak <= waits.device_budget);

  again = train(&replaying, all.device_peak / 2, &with_again);
  CHECK(memcmp(&expected, &with_again, sizeof expected) == 0);
  CHECK(replaying.again > 0);
  CHECK(again.iterations_followed >= iterations - 4);
  CHECK(again.device_peak <= again.device_budget);
  CHECK(again.divergences == 0);
  printf(
      "peak %llu bytes; in half of them %llu of %d iterations by a plan, %llu bytes in, %llu out; %llu operations "
      "again\n",
      (unsigned long long)all.device_peak, (unsigned long long)half.iterations_followed, iterations,
      (unsigned long long)half.h2d, (unsigned long long)half.d2h, (unsigned long long)replaying.again);
  return result_of_checks("training");
}
