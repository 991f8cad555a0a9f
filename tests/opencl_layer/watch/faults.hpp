// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts the calls of each function, and makes one of them fail.

#include <map>
#include <string>

#include "opencl.hpp"

namespace watch {

/// Reads WATCH_FAIL: NAME:N[:CODE], or *:N[:CODE] for any function. Returns false if it cannot be read.
bool read_fault();

/// Replaces every entry of `table` that tells of an error by one that counts, may fail, and calls `next`.
/// `next` must live as long as the process.
void count_and_fail(cl_icd_dispatch& table, const cl_icd_dispatch& next);

/// The calls so far, by function; those never called are left out.
std::map<std::string, unsigned long> calls();

/// The function that failed as WATCH_FAIL says; null if that call was not made.
const char* failed_function_name();

}  // namespace watch
