// SPDX-License-Identifier: Apache-2.0
// Files: constants, and values that fit neither on the device nor on the host. The device is an array of the program's.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <swapmm/c/file.h>

#include "check.h"

enum { bytes = 30000, tensors = 8, room = 3 * 30016, first_place = 64 };

typedef struct {
  unsigned char memory[first_place + room];
  int parts_in, parts_out;
  int fails;  // the next copy does
} device;

static unsigned char* at(device* d, const void* place, uint64_t offset, uint64_t size) {
  const uintptr_t begin = (uintptr_t)place;
  CHECK(begin >= first_place && offset + size <= bytes && begin + bytes <= sizeof d->memory && begin % 64 == 0);
  return d->memory + begin + offset;
}

static int copy_part_to_host(void* context, swapmm_tensor tensor, void* place, uint64_t offset, void* to,
                             uint64_t size) {
  device* d = (device*)context;
  CHECK(tensor != 0);
  ++d->parts_out;
  memcpy(to, at(d, place, offset, size), size);
  return d->fails;
}

static int copy_part_to_device(void* context, swapmm_tensor tensor, void* place, uint64_t offset, const void* from,
                               uint64_t size) {
  device* d = (device*)context;
  CHECK(tensor != 0);
  ++d->parts_in;
  memcpy(at(d, place, offset, size), from, size);
  return d->fails;
}

static int copy_to_host(void* context, swapmm_tensor tensor, void* place, void* to, uint64_t size) {
  return copy_part_to_host(context, tensor, place, 0, to, size);
}

static int copy_to_device(void* context, swapmm_tensor tensor, void* place, const void* from, uint64_t size) {
  return copy_part_to_device(context, tensor, place, 0, from, size);
}

static swapmm_backend* backend_of(device* d, uint64_t struct_size) {
  swapmm_custom_device custom = {0};
  swapmm_backend* backend = NULL;
  memset(d, 0, sizeof *d);
  custom.struct_size = struct_size;
  custom.bytes = room;
  custom.context = d;
  custom.copy_to_host = copy_to_host;
  custom.copy_to_device = copy_to_device;
  custom.copy_part_to_host = copy_part_to_host;
  custom.copy_part_to_device = copy_part_to_device;
  NEED(swapmm_custom_create(&custom, &backend));
  return backend;
}

// The byte of a tensor that a file has.
static unsigned char value(int tensor, int i) { return (unsigned char)(7 * tensor + i % 251); }

static void write_file(const char* path, long size) {
  FILE* file = fopen(path, "wb");
  long i;
  CHECK(file != NULL);
  for (i = 0; i < size; ++i) {
    // After 5 bytes come the tensors.
    const long n = i - 5;
    fputc(n < 0 ? 255 : value((int)(n / bytes), (int)(n % bytes)), file);
  }
  CHECK(fclose(file) == 0);
}

static swapmm_status use(swapmm_manager* manager, device* d, swapmm_tensor tensor, uint64_t access, int number,
                         int added) {
  swapmm_use one;
  swapmm_operation operation = {0};
  void* address = NULL;
  unsigned char* data;
  swapmm_status status;
  int i;
  one.tensor = tensor;
  one.access = access;
  operation.struct_size = sizeof operation;
  operation.name = "use";
  operation.uses = &one;
  operation.use_count = 1;
  operation.addresses = &address;
  status = swapmm_operation_begin(manager, &operation);
  if (status != SWAPMM_OK) return status;
  data = at(d, address, 0, bytes);
  for (i = 0; i < bytes; i += 997) CHECK(data[i] == (unsigned char)(value(number, i) + added));
  if (access != SWAPMM_READ)
    for (i = 0; i < bytes; ++i) ++data[i];
  return swapmm_operation_end(manager, NULL);
}

static swapmm_manager* manager_on(swapmm_backend* backend, swapmm_file* file, uint64_t host_budget) {
  swapmm_options options;
  swapmm_manager* manager = NULL;
  NEED(swapmm_options_init(&options, sizeof options));
  CHECK(options.file == NULL);
  options.device_budget = room;
  options.file = file;
  if (host_budget != 0) options.host_budget = host_budget;
  options.file_staging = 100000;  // so that values move in parts
  NEED(swapmm_manager_create(backend, &options, &manager));
  return manager;
}

static void constants_come_from_their_file(const char* path) {
  static device d;
  swapmm_backend* backend = backend_of(&d, sizeof(swapmm_custom_device));
  swapmm_file* file = NULL;
  swapmm_manager* manager;
  swapmm_numbers numbers = {0};
  swapmm_tensor tensor[tensors];
  static unsigned char data[bytes];
  int i, k;
  write_file(path, 5 + tensors * bytes);
  NEED(swapmm_weights_open(path, &file));
  manager = manager_on(backend, file, 0);
  for (k = 0; k < tensors; ++k)
    NEED(swapmm_tensor_create_constant(manager, bytes, "weight", file, 5 + (uint64_t)k * bytes, &tensor[k]));
  swapmm_file_destroy(file);  // the manager keeps it
  for (i = 0; i < 10; ++i) {
    NEED(swapmm_iteration_begin(manager, "read"));
    for (k = 0; k < tensors; ++k) NEED(use(manager, &d, tensor[k], SWAPMM_READ, k, 0));
    NEED(swapmm_iteration_end(manager));
  }
  numbers.struct_size = sizeof numbers;
  NEED(swapmm_manager_numbers(manager, &numbers));
  CHECK(numbers.iterations_followed > 0);
  CHECK(numbers.d2h == 0 && d.parts_out == 0);
  CHECK(numbers.h2d >= 10 * (tensors - 3) * (uint64_t)bytes);
  NEED(swapmm_tensor_download(manager, tensor[2], 100, data, 50));
  for (i = 0; i < 50; ++i) CHECK(data[i] == value(2, 100 + i));
  // Nothing writes them.
  CHECK(use(manager, &d, tensor[1], SWAPMM_UPDATE, 1, 0) == SWAPMM_USAGE_ERROR);
  CHECK(strstr(swapmm_last_error(), "constant") != NULL);
  CHECK(swapmm_tensor_upload(manager, tensor[1], 0, data, 10) == SWAPMM_USAGE_ERROR);
  // What is missing from a file that became shorter is an error of the operation that needs it.
  write_file(path, 5 + 4 * bytes);
  NEED(use(manager, &d, tensor[0], SWAPMM_READ, 0, 0));
  {
    swapmm_status status = SWAPMM_OK;
    for (k = 4; k < tensors && status == SWAPMM_OK; ++k) status = use(manager, &d, tensor[k], SWAPMM_READ, k, 0);
    CHECK_STATUS(SWAPMM_WORK_FAILED, status);
    CHECK(strstr(swapmm_last_error(), "ends at byte") != NULL);
  }
  swapmm_manager_destroy(manager);
  swapmm_backend_destroy(backend);
  remove(path);
}

static void values_go_to_a_file(void) {
  static device d;
  swapmm_backend* backend = backend_of(&d, sizeof(swapmm_custom_device));
  swapmm_file* file = NULL;
  swapmm_manager* manager;
  swapmm_tensor tensor[tensors];
  static unsigned char data[bytes];
  int i, k;
  NEED(swapmm_file_open(NULL, 1 << 24, &file));
  manager = manager_on(backend, file, 140000);
  for (k = 0; k < tensors; ++k) {
    for (i = 0; i < bytes; ++i) data[i] = value(k, i);
    NEED(swapmm_tensor_create(manager, bytes, "t", SWAPMM_OBSERVED, &tensor[k]));
    NEED(swapmm_tensor_upload(manager, tensor[k], 0, data, bytes));
  }
  for (i = 0; i < 10; ++i) {
    NEED(swapmm_iteration_begin(manager, "add"));
    for (k = 0; k < tensors; ++k) NEED(use(manager, &d, tensor[k], SWAPMM_UPDATE, k, i));
    NEED(swapmm_iteration_end(manager));
  }
  for (k = 0; k < tensors; ++k) {
    NEED(swapmm_tensor_download(manager, tensor[k], 0, data, bytes));
    for (i = 0; i < bytes; i += 991) CHECK(data[i] == (unsigned char)(value(k, i) + 10));
  }
  swapmm_manager_destroy(manager);
  swapmm_file_destroy(file);
  swapmm_backend_destroy(backend);
}

static void refusals(const char* path) {
  static device d;
  swapmm_backend* backend = backend_of(&d, sizeof(swapmm_custom_device));
  // As an older program has it, without functions for parts.
  swapmm_backend* old = backend_of(&d, offsetof(swapmm_custom_device, copy_part_to_host));
  swapmm_file* file = NULL;
  swapmm_manager* manager = NULL;
  swapmm_tensor tensor = 7;
  swapmm_options options;
  CHECK(swapmm_weights_open("/nowhere/at all", &file) == SWAPMM_BACKEND_ERROR && file == NULL);
  CHECK(strstr(swapmm_last_error(), "/nowhere/at all") != NULL);
  CHECK(swapmm_weights_open(NULL, &file) == SWAPMM_USAGE_ERROR);
  CHECK(swapmm_weights_open("x", NULL) == SWAPMM_USAGE_ERROR);
  CHECK(swapmm_file_open("/nowhere/at all", 4096, &file) != SWAPMM_OK && file == NULL);
  write_file(path, 5 + bytes);
  NEED(swapmm_weights_open(path, &file));
  NEED(swapmm_options_init(&options, sizeof options));
  options.device_budget = room;
  NEED(swapmm_manager_create(old, &options, &manager));
  CHECK(swapmm_tensor_create_constant(manager, bytes, "w", file, 5, &tensor) == SWAPMM_USAGE_ERROR && tensor == 0);
  swapmm_manager_destroy(manager);
  options.file = file;
  CHECK(swapmm_manager_create(old, &options, &manager) == SWAPMM_USAGE_ERROR && manager == NULL);
  CHECK(strstr(swapmm_last_error(), "copy_part_to_host") != NULL);
  NEED(swapmm_manager_create(backend, &options, &manager));
  CHECK(swapmm_tensor_create_constant(manager, bytes, "w", NULL, 5, &tensor) == SWAPMM_USAGE_ERROR);
  CHECK(swapmm_tensor_create_constant(manager, bytes, "w", file, 6, &tensor) == SWAPMM_USAGE_ERROR);  // beyond its end
  CHECK(swapmm_tensor_create_constant(manager, 0, "w", file, 0, &tensor) == SWAPMM_USAGE_ERROR);
  CHECK(swapmm_tensor_create_constant(manager, bytes, "w", file, UINT64_MAX - 2, &tensor) == SWAPMM_USAGE_ERROR);
  NEED(swapmm_tensor_create_constant(manager, bytes, "w", file, 5, &tensor));
  NEED(use(manager, &d, tensor, SWAPMM_READ, 0, 0));
  d.fails = 3;
  {
    swapmm_tensor other = 0;
    NEED(swapmm_tensor_create_constant(manager, bytes, "v", file, 5, &other));
    CHECK(use(manager, &d, other, SWAPMM_READ, 0, 0) == SWAPMM_BACKEND_ERROR);
    CHECK(strstr(swapmm_last_error(), "copy_part_to_device") != NULL);
    d.fails = 0;
    NEED(use(manager, &d, other, SWAPMM_READ, 0, 0));
  }
  swapmm_manager_destroy(manager);
  swapmm_file_destroy(file);
  swapmm_file_destroy(NULL);
  swapmm_backend_destroy(backend);
  swapmm_backend_destroy(old);
  remove(path);
}

int main(int count, char** words) {
  char path[4096];
  CHECK(count > 0);
  CHECK(snprintf(path, sizeof path, "%s.weights", words[0]) < (int)sizeof path);
  constants_come_from_their_file(path);
  values_go_to_a_file();
  refusals(path);
  return result_of_checks("file");
}
