# SPDX-License-Identifier: Apache-2.0
# What ./dev mutate runs with a mutant switched on, and a test of ./dev mutate itself.

add_executable(swapmm_mutation_programs EXCLUDE_FROM_ALL mutation/programs.cpp)
target_link_libraries(swapmm_mutation_programs PRIVATE swapmm_test_parts)
swapmm_warnings_for(swapmm_mutation_programs)
swapmm_runs_long(swapmm_mutation_programs)

# Debian's Python has the bindings of clang. The test compiles a program of its own, the same in every configuration.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_test(NAME mutation COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/mutation/self_test.py)
  set_tests_properties(mutation PROPERTIES LABELS mutation TIMEOUT 300 SKIP_REGULAR_EXPRESSION "No module named 'clang'")
endif()
