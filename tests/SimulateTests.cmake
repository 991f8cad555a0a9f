# SPDX-License-Identifier: Apache-2.0
# What ./dev simulate runs: many random programs, in all processes that there are cores for.

add_executable(swapmm_simulate simulate/main.cpp simulate/progress.cpp simulate/workers.cpp)
target_link_libraries(swapmm_simulate PRIVATE swapmm_test_parts)
swapmm_warnings_for(swapmm_simulate)
swapmm_runs_long(swapmm_simulate)
add_test(NAME simulate COMMAND swapmm_simulate --seeds 100 --jobs 2)
set_tests_properties(simulate PROPERTIES LABELS simulate TIMEOUT 900 PASS_REGULAR_EXPRESSION "\nall held")

# A program as it is printed where one fails: its text is what the printer must write, and it must take the same steps.
# The second one has host views.
foreach(name printed_program printed_host_views)
  add_executable(swapmm_${name} data/simulate/${name}.cpp)
  target_link_libraries(swapmm_${name} PRIVATE swapmm::swapmm)
  swapmm_warnings_for(swapmm_${name})
  add_dependencies(swapmm_unit_tests swapmm_${name})
endforeach()
set_source_files_properties(unit/support/printed_program_test.cpp PROPERTIES COMPILE_DEFINITIONS
  "SWAPMM_PRINTED_PROGRAM=\"$<TARGET_FILE:swapmm_printed_program>\";SWAPMM_PRINTED_HOST_VIEWS=\"$<TARGET_FILE:swapmm_printed_host_views>\"")
