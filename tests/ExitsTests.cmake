# SPDX-License-Identifier: Apache-2.0
# Ways for a process to end, each a test: on the simulated device, and on one of OpenCL.

set(ways main_returns static_manager static_tensors_last driver_first thread_local_manager exit_in_iteration
  exit_in_callable quick_exit exit_without_cleanup terminated_in_swap exception_caught exception_not_caught
  terminate_handler_exits exit_while_a_thread_is_inside detached_thread planning_job_is_left
  planning_outlives_the_manager fork_and_leave_alone fork_and_destroy fork_and_use plugin_is_unloaded plugin_stays
  download_is_pending device_is_lost)

# swapmm_add_exits(PREFIX PROGRAM LIBRARY DEFINITION...)
function(swapmm_add_exits prefix program library)
  add_executable(${program} exits/main.cpp exits/watchdog.cpp exits/ways.cpp)
  add_library(${program}_plugin MODULE exits/plugin.cpp exits/watchdog.cpp)
  foreach(target ${program} ${program}_plugin)
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_definitions(${target} PRIVATE ${ARGN})
    target_link_libraries(${target} PRIVATE ${library})
    swapmm_warnings_for(${target})
    if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
      target_compile_definitions(${target} PRIVATE SWAPMM_TEST_IS_SLOW)
    endif()
  endforeach()
  target_compile_definitions(${program} PRIVATE SWAPMM_EXITS_PLUGIN="$<TARGET_FILE:${program}_plugin>")
  target_link_libraries(${program} PRIVATE ${CMAKE_DL_LIBS})
  add_dependencies(${program} ${program}_plugin)
  foreach(way ${ways})
    add_test(NAME ${prefix}.${way} COMMAND ${program} ${way})
    list(APPEND tests ${prefix}.${way})
  endforeach()
  add_test(NAME ${prefix}.these_are_all COMMAND ${program} --ways ${ways})
  set_tests_properties(${tests} ${prefix}.these_are_all PROPERTIES
    LABELS exits TIMEOUT 300 SKIP_REGULAR_EXPRESSION "^skipped: ")
  set(tests ${tests} PARENT_SCOPE)
endfunction()

swapmm_add_exits(exits swapmm_exits swapmm::swapmm)
# What set-uid programs rely on. The CUDA backend is not asked: NVTX calls getenv() in its header, see
# backends/cuda/swapmm/cuda/ranges.cpp.
set(libraries)
if(TARGET swapmm::opencl)
  set(libraries $<TARGET_FILE:swapmm_opencl>)
endif()
set(readers $<TARGET_FILE:swapmm>)
if(TARGET swapmm_file)
  list(APPEND readers $<TARGET_FILE:swapmm_file>)
endif()
if(TARGET swapmm_opencl_layer)
  list(APPEND readers $<TARGET_FILE:swapmm_opencl_layer>)
endif()
add_test(NAME environment COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} "-DLIBRARIES=${libraries}"
  "-DREADERS=${readers}" -P ${CMAKE_CURRENT_SOURCE_DIR}/environment.cmake)
set_tests_properties(environment PROPERTIES LABELS exits)

if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  return()  # drivers are not compiled for sanitizers
endif()
if(TARGET swapmm::opencl)
  swapmm_add_exits(exits.opencl swapmm_exits_opencl swapmm::opencl SWAPMM_EXITS_OPENCL)
  target_sources(swapmm_exits_opencl PRIVATE opencl/api_calls.cpp)
  # Libraries that the program uses call the API through it, too.
  set_target_properties(swapmm_exits_opencl PROPERTIES ENABLE_EXPORTS ON)
else()
  add_test(NAME exits.opencl COMMAND ${CMAKE_COMMAND} -E echo "skipped: the OpenCL backend is not built")
  set_tests_properties(exits.opencl PROPERTIES LABELS exits SKIP_REGULAR_EXPRESSION "^skipped: ")
endif()
