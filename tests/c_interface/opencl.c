// SPDX-License-Identifier: Apache-2.0
// The C interface on OpenCL, with a real kernel: on the device that SWAPMM_DEVICE names, else the preferred one.
#define CL_TARGET_OPENCL_VERSION 120
#include <stdint.h>

#include <CL/cl.h>

#include <swapmm/c/opencl.h>

#include "check.h"

enum { elements = 4096, bytes = elements * 4, tensors = 8, iterations = 10 };

static const char* const source =
    "kernel void combine(global const uint* a, global uint* b, uint factor) {\n"
    "  const size_t i = get_global_id(0);\n"
    "  b[i] = b[i] * factor + (a[i] ^ (uint)i);\n"
    "}\n"
    "kernel void fill(global uint* a, uint value) { a[get_global_id(0)] = value; }\n";

typedef struct {
  cl_context context;
  cl_device_id device;
  cl_kernel mix, fill;
} program;

static program build(cl_context context, cl_device_id device) {
  program p;
  cl_int status = CL_SUCCESS;
  cl_program made = clCreateProgramWithSource(context, 1, (const char**)&source, NULL, &status);
  p.context = context;
  p.device = device;
  CHECK(status == CL_SUCCESS);
  CHECK(clBuildProgram(made, 1, &device, "", NULL, NULL) == CL_SUCCESS);
  p.mix = clCreateKernel(made, "combine", &status);
  CHECK(status == CL_SUCCESS);
  p.fill = clCreateKernel(made, "fill", &status);
  CHECK(status == CL_SUCCESS);
  clReleaseProgram(made);
  return p;
}

static void release(program p) {
  clReleaseKernel(p.mix);
  clReleaseKernel(p.fill);
}

// One operation: b = mix(a, b). With takes_waits it waits for the list, and its event ends the operation.
static void mix(const program* p, swapmm_manager* manager, swapmm_tensor a, swapmm_tensor b, cl_uint factor,
                int takes_waits) {
  const size_t size = elements;
  swapmm_use uses[2];
  swapmm_operation operation = {0};
  void* addresses[2] = {NULL, NULL};
  cl_mem from, to;
  cl_event event = NULL;
  uses[0].tensor = a;
  uses[0].access = SWAPMM_READ;
  uses[1].tensor = b;
  uses[1].access = SWAPMM_UPDATE;
  operation.struct_size = sizeof operation;
  operation.name = "mix";
  operation.uses = uses;
  operation.use_count = 2;
  operation.addresses = addresses;
  operation.takes_waits = (uint64_t)takes_waits;
  NEED(swapmm_operation_begin(manager, &operation));
  CHECK(operation.queue != NULL);
  from = (cl_mem)addresses[0];
  to = (cl_mem)addresses[1];
  CHECK(clSetKernelArg(p->mix, 0, sizeof from, &from) == CL_SUCCESS);
  CHECK(clSetKernelArg(p->mix, 1, sizeof to, &to) == CL_SUCCESS);
  CHECK(clSetKernelArg(p->mix, 2, sizeof factor, &factor) == CL_SUCCESS);
  CHECK(clEnqueueNDRangeKernel((cl_command_queue)operation.queue, p->mix, 1, NULL, &size, NULL,
                               (cl_uint)operation.wait_count, (const cl_event*)operation.waits,
                               takes_waits ? &event : NULL) == CL_SUCCESS);
  NEED(swapmm_operation_end(manager, event));
}

typedef struct {
  uint32_t tensor[tensors][elements];
} values;

static swapmm_numbers run(const program* p, const swapmm_backend* backend, uint64_t budget, int takes_waits,
                          values* result) {
  swapmm_manager* manager = NULL;
  swapmm_options options;
  swapmm_numbers numbers;
  swapmm_tensor tensor[tensors];
  int i, k;
  NEED(swapmm_options_init(&options, sizeof options));
  options.device_budget = budget;
  options.trial_iterations = 0;  // times on a CPU decide nothing
  options.replan_above = 0;
  NEED(swapmm_manager_create(backend, &options, &manager));
  for (i = 0; i < tensors; ++i) {
    for (k = 0; k < elements; ++k) result->tensor[i][k] = (uint32_t)(i * 77 + k);
    NEED(swapmm_tensor_create(manager, bytes, "tensor", SWAPMM_KEPT, &tensor[i]));
    NEED(swapmm_tensor_upload(manager, tensor[i], 0, result->tensor[i], bytes));
  }
  for (k = 0; k < iterations; ++k) {
    NEED(swapmm_iteration_begin(manager, "mix"));
    for (i = 0; i < tensors; ++i) {
      mix(p, manager, tensor[i], tensor[(i + 3) % tensors], (cl_uint)(2 * i + 1), takes_waits && i % 2 == 0);
    }
    NEED(swapmm_iteration_end(manager));
  }
  for (i = 0; i < tensors; ++i) NEED(swapmm_tensor_download(manager, tensor[i], 0, result->tensor[i], bytes));
  numbers.struct_size = sizeof numbers;
  NEED(swapmm_manager_numbers(manager, &numbers));
  swapmm_manager_destroy(manager);
  return numbers;
}

static void expected_of(values* result) {
  int i, k, it;
  for (i = 0; i < tensors; ++i) {
    for (k = 0; k < elements; ++k) result->tensor[i][k] = (uint32_t)(i * 77 + k);
  }
  for (it = 0; it < iterations; ++it) {
    for (i = 0; i < tensors; ++i) {
      const uint32_t* a = result->tensor[i];
      uint32_t* b = result->tensor[(i + 3) % tensors];
      for (k = 0; k < elements; ++k) b[k] = b[k] * (uint32_t)(2 * i + 1) + (a[k] ^ (uint32_t)k);
    }
  }
}

// A part of a tensor is a sub-buffer; outputs and scratch are buffers, too.
static void parts_and_outputs(const program* p, const swapmm_backend* backend) {
  swapmm_manager* manager = NULL;
  swapmm_options options;
  swapmm_output output = {bytes, "output", SWAPMM_OBSERVED, 0};
  swapmm_operation operation = {0};
  void* address = NULL;
  void* part = NULL;
  uint32_t data[elements];
  const size_t all = elements, half = elements / 2;
  int round, i;
  NEED(swapmm_options_init(&options, sizeof options));
  options.device_budget = 4 * bytes;
  NEED(swapmm_manager_create(backend, &options, &manager));
  operation.struct_size = sizeof operation;
  operation.outputs = &output;
  operation.output_count = 1;
  operation.scratch_bytes = bytes;
  operation.addresses = &address;
  NEED(swapmm_operation_begin(manager, &operation));
  NEED(swapmm_operation_address(manager, output.tensor, bytes / 2, bytes / 2, &part));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_operation_address(manager, output.tensor, 1, 1, &part));
  CHECK(part == NULL);
  NEED(swapmm_operation_address(manager, output.tensor, bytes / 2, bytes / 2, &part));
  CHECK(operation.scratch != NULL && operation.scratch != address && part != address);
  for (round = 0; round < 3; ++round) {
    cl_mem where = (cl_mem)(round == 0 ? address : round == 1 ? operation.scratch : part);
    const cl_uint value = (cl_uint)(round == 0 ? 11 : round == 1 ? 22 : 33);
    CHECK(clSetKernelArg(p->fill, 0, sizeof where, &where) == CL_SUCCESS);
    CHECK(clSetKernelArg(p->fill, 1, sizeof value, &value) == CL_SUCCESS);
    CHECK(clEnqueueNDRangeKernel((cl_command_queue)operation.queue, p->fill, 1, NULL, round == 2 ? &half : &all, NULL,
                                 0, NULL, NULL) == CL_SUCCESS);
  }
  NEED(swapmm_operation_end(manager, NULL));
  NEED(swapmm_tensor_download(manager, output.tensor, 0, data, bytes));
  for (i = 0; i < elements; ++i) {
    if (data[i] != (i < elements / 2 ? 11u : 33u)) break;
  }
  CHECK(i == elements);
  swapmm_manager_destroy(manager);
}

static int no_kernel(void* argument) {
  (void)argument;
  return 0;
}

static void wrong_use(const swapmm_backend* backend, cl_context context, cl_device_id device) {
  swapmm_backend *made = NULL, *simulated = NULL;
  swapmm_manager* manager = NULL;
  swapmm_options options;
  uint64_t count = 0;
  void* found = NULL;
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_opencl_create(NULL, device, NULL, &made));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_opencl_create(context, NULL, NULL, &made));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_opencl_create(context, device, NULL, NULL));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "no such device", swapmm_opencl_pick("no such device", &made));
  CHECK(made == NULL);
  NEED(swapmm_simulated_create(NULL, &simulated));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "OpenCL", swapmm_opencl_native(simulated, &found, NULL));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "simulated", swapmm_simulated_violations(backend, &count));
  CHECK_STATUS(SWAPMM_USAGE_ERROR, swapmm_opencl_native(NULL, &found, NULL));
  swapmm_backend_destroy(simulated);
  NEED(swapmm_options_init(&options, sizeof options));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "device_budget is 0", swapmm_manager_create(backend, &options, &manager));
  options.device_budget = 4 * bytes;
  NEED(swapmm_manager_create(backend, &options, &manager));
  CHECK_ERROR(SWAPMM_USAGE_ERROR, "simulated", swapmm_simulated_launch(manager, 1, no_kernel, NULL, NULL));
  swapmm_manager_destroy(manager);
}

int main(void) {
  static values expected, with_all, with_half, with_waits, on_queue;
  swapmm_backend *backend = NULL, *own = NULL;
  swapmm_numbers all, half, waits;
  void *context = NULL, *device = NULL;
  cl_int status = CL_SUCCESS;
  cl_command_queue queue;
  program p;
  if (swapmm_opencl_pick(NULL, &backend) != SWAPMM_OK) {
    printf("skipped: %s\n", swapmm_last_error());
    return 0;
  }
  NEED(swapmm_opencl_native(backend, &context, &device));
  CHECK(context != NULL && device != NULL);
  p = build((cl_context)context, (cl_device_id)device);
  expected_of(&expected);

  all = run(&p, backend, 2 * tensors * bytes, 0, &with_all);
  CHECK(memcmp(&expected, &with_all, sizeof expected) == 0);
  CHECK(all.swap_ins == tensors);
  half = run(&p, backend, tensors * bytes / 2, 0, &with_half);
  CHECK(memcmp(&expected, &with_half, sizeof expected) == 0);
  CHECK(half.device_peak <= half.device_budget && half.device_budget == tensors * bytes / 2);
  CHECK(half.swap_ins > all.swap_ins);
  CHECK(half.iterations_followed >= iterations - 4);
  waits = run(&p, backend, tensors * bytes / 2, 1, &with_waits);
  CHECK(memcmp(&expected, &with_waits, sizeof expected) == 0);
  CHECK(waits.iterations_followed >= iterations - 4);

  // On a queue of the program.
  queue = clCreateCommandQueue((cl_context)context, (cl_device_id)device, CL_QUEUE_PROFILING_ENABLE, &status);
  CHECK(status == CL_SUCCESS);
  NEED(swapmm_opencl_create(context, device, queue, &own));
  half = run(&p, own, tensors * bytes / 2, 1, &on_queue);
  CHECK(memcmp(&expected, &on_queue, sizeof expected) == 0);
  CHECK(half.iterations_followed >= iterations - 4);

  parts_and_outputs(&p, own);
  wrong_use(own, (cl_context)context, (cl_device_id)device);
  swapmm_backend_destroy(own);
  release(p);
  clReleaseCommandQueue(queue);
  swapmm_backend_destroy(backend);
  return result_of_checks("opencl");
}
