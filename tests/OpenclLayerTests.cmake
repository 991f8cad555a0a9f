# SPDX-License-Identifier: Apache-2.0
# The layer for unmodified OpenCL programs, from outside: plain programs run natively and below it, and must do the same.

set(layer_tests ${CMAKE_CURRENT_SOURCE_DIR}/opencl_layer)

# What looks on from below. The loader loads it, so it must not need the sanitizers' runtime.
file(GLOB watch_sources CONFIGURE_DEPENDS ${layer_tests}/watch/*.cpp)
add_library(swapmm_opencl_watch MODULE ${watch_sources})
target_compile_features(swapmm_opencl_watch PRIVATE cxx_std_20)
set_target_properties(swapmm_opencl_watch PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_include_directories(swapmm_opencl_watch PRIVATE $<TARGET_PROPERTY:OpenCL::OpenCL,INTERFACE_INCLUDE_DIRECTORIES>)
swapmm_warnings_for(swapmm_opencl_watch)

find_package(Threads REQUIRED)
file(GLOB case_sources CONFIGURE_DEPENDS ${layer_tests}/cases/*.cpp)
add_executable(swapmm_opencl_cases ${case_sources})
target_link_libraries(swapmm_opencl_cases PRIVATE OpenCL::OpenCL Threads::Threads)
target_compile_features(swapmm_opencl_cases PRIVATE cxx_std_20)
swapmm_warnings_for(swapmm_opencl_cases)

find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(run_cases Python3::Interpreter ${layer_tests}/run_cases.py --cases $<TARGET_FILE:swapmm_opencl_cases>
  --watch $<TARGET_FILE:swapmm_opencl_watch>)
list(APPEND run_cases --layer $<TARGET_FILE:swapmm_opencl_layer>)

# The themes are those of the sources: CASE(theme, name).
set(themes "")
foreach(source IN LISTS case_sources)
  file(STRINGS ${source} lines REGEX "^CASE\\(")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^CASE\\(([a-z_]+),.*" "\\1" theme "${line}")
    list(APPEND themes ${theme})
  endforeach()
endforeach()
list(REMOVE_DUPLICATES themes)
foreach(theme IN LISTS themes)
  # ./dev layer runs all modes.
  set(modes --mode one_launch --mode evict_always)
  if(theme STREQUAL native_kernels) # they get the driver's allocations
    list(APPEND modes --mode small_allocations)
  endif()
  if(theme MATCHES "^(arguments|launches|programs)$")
    list(APPEND modes --mode no_argument_info)
  endif()
  if(theme MATCHES "^(arguments|buffers|budget|events|images|information|launches|maps|queues|user_events)$")
    list(APPEND modes --mode like_nvidia)
  endif()
  if(theme STREQUAL iterations)
    set(modes --mode half --mode values) # where plans are made
  endif()
  add_test(NAME opencl_layer.${theme} COMMAND ${run_cases} ${modes} ${theme})
  set_tests_properties(opencl_layer.${theme} PROPERTIES LABELS opencl_layer TIMEOUT 600)
endforeach()

# Plans are made, and they are followed.
set(plan_shares Python3::Interpreter ${layer_tests}/plan_shares.py --cases $<TARGET_FILE:swapmm_opencl_cases>
  --watch $<TARGET_FILE:swapmm_opencl_watch> --layer $<TARGET_FILE:swapmm_opencl_layer>)
add_test(NAME opencl_layer.plan_shares COMMAND ${plan_shares} iterations.kept_buffers:40 iterations.ping_pong:40
  iterations.made_anew:40 iterations.released_late:40 iterations.new_state_each_step:40 iterations.arguments_kept:40
  iterations.layers_within:40 iterations.reads_what_nobody_wrote:40)
add_test(NAME opencl_layer.plan_shares_without_reads COMMAND ${plan_shares} --warm-up 1200 --runs 2
  iterations.layers_without_reads:3600)
add_test(NAME opencl_layer.plan_shares_with_few_reads COMMAND ${plan_shares} --warm-up 20 --runs 3
  iterations.read_every_tenth_step:160)
add_test(NAME opencl_layer.plan_shares_with_failures COMMAND ${plan_shares} iterations.launch_refused_in_each_step:40
  iterations.buffer_refused_in_each_step:40 iterations.image_tried_in_each_step:40:20
  iterations.large_launch_tried_in_each_step:40:20)
add_test(NAME opencl_layer.waits_for_values COMMAND ${plan_shares} --values iterations.loss_known_early:40
  iterations.loss_known_early_blocking:40)
set_tests_properties(opencl_layer.plan_shares opencl_layer.plan_shares_without_reads opencl_layer.plan_shares_with_few_reads opencl_layer.plan_shares_with_failures opencl_layer.waits_for_values PROPERTIES LABELS opencl_layer TIMEOUT 600)

# What needs no copy is not copied.
add_test(NAME opencl_layer.few_moves COMMAND Python3::Interpreter ${layer_tests}/few_moves.py --cases $<TARGET_FILE:swapmm_opencl_cases>
  --watch $<TARGET_FILE:swapmm_opencl_watch> --layer $<TARGET_FILE:swapmm_opencl_layer>
  moves.images_made_one_after_another:300:300 moves.images_made_one_after_another:110:1000
  moves.beside_an_empty_context:90:300 moves.released_before_they_run:60:300)
set_tests_properties(opencl_layer.few_moves PROPERTIES LABELS opencl_layer TIMEOUT 600)

add_test(NAME opencl_layer.slow_steps COMMAND Python3::Interpreter ${layer_tests}/slow_steps.py --cases $<TARGET_FILE:swapmm_opencl_cases>
  --watch $<TARGET_FILE:swapmm_opencl_watch> --layer $<TARGET_FILE:swapmm_opencl_layer>)
set_tests_properties(opencl_layer.slow_steps PROPERTIES LABELS opencl_layer TIMEOUT 600)

# Little memory on the host as well, and a file.
if(TARGET swapmm_file_objects AND SWAPMM_LIBURING_ARCHIVE)
  add_test(NAME opencl_layer.files COMMAND Python3::Interpreter ${layer_tests}/files.py
    --cases $<TARGET_FILE:swapmm_opencl_cases> --watch $<TARGET_FILE:swapmm_opencl_watch>
    --layer $<TARGET_FILE:swapmm_opencl_layer> iterations.made_anew pressure.chain)
  set_tests_properties(opencl_layer.files PROPERTIES LABELS opencl_layer TIMEOUT 600)
endif()

# They survive the process.
add_test(NAME opencl_layer.plans_kept COMMAND Python3::Interpreter ${layer_tests}/plans_kept.py
  --cases $<TARGET_FILE:swapmm_opencl_cases> --layer $<TARGET_FILE:swapmm_opencl_layer>)
set_tests_properties(opencl_layer.plans_kept PROPERTIES LABELS opencl_layer TIMEOUT 600)

# What ran on the device and when, and lines of progress.
add_test(NAME opencl_layer.pictures COMMAND Python3::Interpreter ${layer_tests}/pictures.py
  --cases $<TARGET_FILE:swapmm_opencl_cases> --exits $<TARGET_FILE:swapmm_opencl_exits_layer>
  --layer $<TARGET_FILE:swapmm_opencl_layer>)
set_tests_properties(opencl_layer.pictures PROPERTIES LABELS opencl_layer TIMEOUT 600)

# Each failure of the driver reaches the program as an error of the API; ./dev layer lets every call fail.
set(sweep Python3::Interpreter ${layer_tests}/sweep.py --cases $<TARGET_FILE:swapmm_opencl_cases>
  --watch $<TARGET_FILE:swapmm_opencl_watch> --layer $<TARGET_FILE:swapmm_opencl_layer>)
foreach(case IN ITEMS pressure.chain maps.many_buffers threads.contexts_of_their_own images.mapped
  whole_writes.counts_once iterations.kept_buffers iterations.made_anew)
  add_test(NAME opencl_layer.driver_fails.${case} COMMAND ${sweep} --points 20 ${case})
  set_tests_properties(opencl_layer.driver_fails.${case} PROPERTIES LABELS opencl_layer TIMEOUT 600)
endforeach()

# What is known of kernels: what the helper says of them, and how the layer uses it.
set(facts Python3::Interpreter ${layer_tests}/facts.py --cases $<TARGET_FILE:swapmm_opencl_cases>
  --layer $<TARGET_FILE:swapmm_opencl_layer>)
if(TARGET swapmm-kernel-facts)
  list(APPEND facts --helper $<TARGET_FILE:swapmm-kernel-facts>)
  add_test(NAME kernel_facts COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/kernel_facts/run.py
    $<TARGET_FILE:swapmm-kernel-facts>)
  set_tests_properties(kernel_facts PROPERTIES LABELS opencl_layer TIMEOUT 300)
endif()
add_test(NAME opencl_layer.facts COMMAND ${facts})
set_tests_properties(opencl_layer.facts PROPERTIES LABELS opencl_layer TIMEOUT 600)

# The log of the calls, by a reader of its own; and recorded runs again.
set(record Python3::Interpreter ${layer_tests}/record.py --cases $<TARGET_FILE:swapmm_opencl_cases>
  --layer $<TARGET_FILE:swapmm_opencl_layer>)
add_test(NAME opencl_layer.log COMMAND ${record} all_kinds threads off killed)
set_tests_properties(opencl_layer.log PROPERTIES LABELS opencl_layer TIMEOUT 600)
if(TARGET swapmm_cli)
  add_test(NAME opencl_layer.replay COMMAND ${record} --swapmm $<TARGET_FILE:swapmm_cli> recorded.all_kinds recorded.loop
    recorded.threads pressure.chain maps.many_buffers transfers.rectangles_copied user_events.holds_a_command
    user_events.set_by_another_thread arguments.cloned_kernel subbuffers.root_and_part_in_one_launch
    subbuffers.overlapping queues.out_of_order_diamond queues.out_of_order_barriers maps.use_host buffers.use_host)
  set_tests_properties(opencl_layer.replay PROPERTIES LABELS opencl_layer TIMEOUT 900)
endif()

# The cases on a second implementation, which interprets kernels: the loader finds it as a driver, so layers apply. The cases
# left out are those that it does not do by itself as OpenCL has it: the layer checks flags, counts of maps and overlaps
# that it does not. It lacks OpenCL 2 and 3, and its clFlush() waits for user events.
if(SWAPMM_OCLGRIND_DRIVER)
  set(skipped arguments.cloned_kernel arguments.errors buffers.flags_refused buffers.host_access_refused
    buffers.with_properties maps.alignment maps.errors maps.nested_to_read maps.several_at_once subbuffers.creation_errors
    transfers.errors transfers.migration transfers.rectangles_copied)
  list(TRANSFORM skipped PREPEND "--skip=")
  add_test(NAME opencl_layer.on_oclgrind COMMAND ${run_cases} --vendors ${CMAKE_CURRENT_BINARY_DIR}/oclgrind --mode one_launch
    ${skipped} buffers maps)
  set_tests_properties(opencl_layer.on_oclgrind PROPERTIES LABELS opencl_layer TIMEOUT 900)
endif()

# Set-gid programs: the environment is their caller's.
add_test(NAME opencl_layer.more_rights COMMAND Python3::Interpreter ${layer_tests}/more_rights.py
  --cases $<TARGET_FILE:swapmm_opencl_cases> --layer $<TARGET_FILE:swapmm_opencl_layer>)
set_tests_properties(opencl_layer.more_rights PROPERTIES LABELS opencl_layer TIMEOUT 300 SKIP_REGULAR_EXPRESSION "^skipped: ")

# Settings that cannot be read.
add_test(NAME opencl_layer.bad_settings COMMAND Python3::Interpreter ${layer_tests}/bad_settings.py --cases $<TARGET_FILE:swapmm_opencl_cases>
  --watch $<TARGET_FILE:swapmm_opencl_watch> --layer $<TARGET_FILE:swapmm_opencl_layer>)
set_tests_properties(opencl_layer.bad_settings PROPERTIES LABELS opencl_layer TIMEOUT 300)

# Parts of the layer that need no driver.
swapmm_add_tests(opencl_layer_parts)
set(layer_folder ${PROJECT_SOURCE_DIR}/backends/opencl/layer)
target_sources(swapmm_opencl_layer_parts_tests PRIVATE ${layer_folder}/iterations/cycle_finder.cpp
  ${layer_folder}/profile/output_file.cpp ${layer_folder}/profile/segments.cpp)
target_include_directories(swapmm_opencl_layer_parts_tests PRIVATE ${layer_folder})
