# SPDX-License-Identifier: Apache-2.0
# Random OpenCL programs: against a model of the host, and the same bytes with the layer beneath them.

file(GLOB random_sources CONFIGURE_DEPENDS opencl_layer/random/*.cpp)
add_executable(swapmm_random_opencl ${random_sources})
target_link_libraries(swapmm_random_opencl PRIVATE OpenCL::OpenCL Threads::Threads)
target_compile_definitions(swapmm_random_opencl PRIVATE CL_TARGET_OPENCL_VERSION=300
  CL_USE_DEPRECATED_OPENCL_1_1_APIS CL_USE_DEPRECATED_OPENCL_1_2_APIS)
target_compile_features(swapmm_random_opencl PRIVATE cxx_std_20)
swapmm_warnings_for(swapmm_random_opencl)
swapmm_runs_long(swapmm_random_opencl)

add_test(NAME opencl_layer.random COMMAND swapmm_random_opencl --seed 1 --seeds 40)
add_test(NAME opencl_layer.random_large COMMAND swapmm_random_opencl --seed 1 --seeds 5 --size large)
# What it is there to see, it sees.
add_test(NAME opencl_layer.random_sees COMMAND swapmm_random_opencl --seed 3 --spoil)
set_tests_properties(opencl_layer.random_sees PROPERTIES
  PASS_REGULAR_EXPRESSION "has read is wrong" SKIP_REGULAR_EXPRESSION "^skipped: ")
set(random_tests opencl_layer.random opencl_layer.random_large)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(mode least always) # ./dev layer runs all modes
  add_test(NAME opencl_layer.random_${mode}
    COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/opencl_layer/random/run.py
      $<TARGET_FILE:swapmm_random_opencl> --layer $<TARGET_FILE:swapmm_opencl_layer> --mode ${mode} --seed 1 --seeds 30 --limit 20)
  list(APPEND random_tests opencl_layer.random_${mode})
endforeach()
add_test(NAME opencl_layer.random_loops
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/opencl_layer/random/run.py $<TARGET_FILE:swapmm_random_opencl>
    --layer $<TARGET_FILE:swapmm_opencl_layer> --loops --mode part --mode values --seed 1 --seeds 40 --limit 20 --followed 50)
list(APPEND random_tests opencl_layer.random_loops)
set_tests_properties(${random_tests} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
set_tests_properties(${random_tests} opencl_layer.random_sees PROPERTIES LABELS opencl_layer TIMEOUT 600)
