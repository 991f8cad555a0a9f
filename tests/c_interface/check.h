// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the C tests share. Each test is a program; it prints what does not hold, and ends with the number of such lines.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <swapmm/swapmm.h>

static int failed_checks = 0;

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      ++failed_checks;                                                      \
      printf("%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                       \
  } while (0)

// The call must return this status.
#define CHECK_STATUS(expected, call)                                                                    \
  do {                                                                                                  \
    const swapmm_status status_ = (call);                                                               \
    if (status_ != (expected)) {                                                                        \
      ++failed_checks;                                                                                  \
      printf("%s:%d: %s returned %d, not %s: %s\n", __FILE__, __LINE__, #call, (int)status_, #expected, \
             swapmm_last_error());                                                                      \
    }                                                                                                   \
  } while (0)

// The same, and the error's text must contain this one.
#define CHECK_ERROR(expected, text, call)                                                                        \
  do {                                                                                                           \
    CHECK_STATUS(expected, call);                                                                                \
    if (strstr(swapmm_last_error(), text) == NULL) {                                                             \
      ++failed_checks;                                                                                           \
      printf("%s:%d: the text of %s has no \"%s\": %s\n", __FILE__, __LINE__, #call, text, swapmm_last_error()); \
    }                                                                                                            \
  } while (0)

// Nothing below makes sense without it.
#define NEED(call)                                                                                         \
  do {                                                                                                     \
    const swapmm_status status_ = (call);                                                                  \
    if (status_ != SWAPMM_OK) {                                                                            \
      printf("%s:%d: %s returned %d: %s\n", __FILE__, __LINE__, #call, (int)status_, swapmm_last_error()); \
      exit(99);                                                                                            \
    }                                                                                                      \
  } while (0)

static int result_of_checks(const char* what) {
  if (failed_checks == 0) printf("%s: all checks hold\n", what);
  return failed_checks == 0 ? 0 : 1;
}
