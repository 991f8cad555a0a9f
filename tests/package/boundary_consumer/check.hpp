// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iostream>

// Each returns the number of checks that failed.
int check_opencl();
int check_cuda();
int check_file();
int check_ilp();
int check_mpi();

/// 0 if `call` throws exactly an E, 1 and a line if it does anything else.
template <class E, class Call>
int expect_exception(const char* what, Call&& call) {
  try {
    call();
    std::cout << what << ": nothing was thrown\n";
  } catch (const E&) {
    return 0;
  } catch (const std::exception& error) {
    std::cout << what << ": caught as another type: " << error.what() << '\n';
  } catch (...) {
    std::cout << what << ": caught as no exception of the library\n";
  }
  return 1;
}

inline int expect(const char* what, bool holds) {
  if (!holds) std::cout << what << ": does not hold\n";
  return holds ? 0 : 1;
}
