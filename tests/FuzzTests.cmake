# SPDX-License-Identifier: Apache-2.0
# Programs that feed any bytes to the readers, and to everything behind them. Preset `fuzz` links them with libFuzzer
# (./dev fuzz). Under AddressSanitizer they are tests: all run the inputs that are kept in fuzz/corpus, and those that
# read a trace, a machine or a plan then make new ones for some seconds, where the compiler is clang with libFuzzer.

if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,-]*address")
  return()
endif()

set(SWAPMM_FUZZ_SECONDS 20 CACHE STRING "What each reader of untrusted text is fuzzed for in the tests under AddressSanitizer")

set(all_counted FALSE)
if(CMAKE_CXX_FLAGS MATCHES "fuzzer-no-link")
  set(all_counted TRUE)
endif()
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
check_cxx_source_compiles(
  "extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }" SWAPMM_HAS_LIBFUZZER)
unset(CMAKE_REQUIRED_FLAGS)

# Where the rest of the library is not, the readers and what checks a text's contents are compiled so that libFuzzer sees
# which of their branches an input takes.
if(SWAPMM_HAS_LIBFUZZER AND NOT all_counted)
  set(readers formats/call_log/decode formats/call_log/fields formats/call_log/reader ir/calls/run ir/calls/window
    formats/json/decoder formats/json/reader formats/json/wait_fields formats/machine_json formats/plan_json
    formats/trace_json formats/v2/machine_json formats/v2/plan_json formats/v2/plan_target
    ir/trace plan/machine plan/v2/machine plan/v2/plan plan/validation/validator)
  list(TRANSFORM readers REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/include/swapmm/\\1.cpp")
  foreach(reader IN LISTS readers)
    if(NOT EXISTS ${reader})
      message(FATAL_ERROR "tests/FuzzTests.cmake: there is no ${reader}")
    endif()
  endforeach()
  # In one piece, as with SWAPMM_UNITY_BUILD, which leaves out sources that have options of their own.
  set(all_readers ${CMAKE_CURRENT_BINARY_DIR}/generated/fuzzed_readers.cpp)
  list(TRANSFORM readers REPLACE "${PROJECT_SOURCE_DIR}/include/(.+)" "#include <\\1>" OUTPUT_VARIABLE includes)
  list(JOIN includes "\n" includes)
  file(CONFIGURE OUTPUT ${all_readers} CONTENT "${includes}\n" @ONLY)
  target_sources(swapmm_objects PRIVATE ${all_readers})
  set_source_files_properties(${readers} TARGET_DIRECTORY swapmm_objects PROPERTIES HEADER_FILE_ONLY ON)
  set_source_files_properties(${all_readers} TARGET_DIRECTORY swapmm_objects PROPERTIES
    GENERATED ON COMPILE_OPTIONS -fsanitize=fuzzer-no-link)
endif()

# swapmm_add_fuzz_target(NAME [READER] [SECONDS N] SOURCE...): N in place of SWAPMM_FUZZ_SECONDS
function(swapmm_add_fuzz_target name)
  cmake_parse_arguments(PARSE_ARGV 1 arg READER SECONDS "")
  if(NOT arg_SECONDS)
    set(arg_SECONDS ${SWAPMM_FUZZ_SECONDS})
  endif()
  set(program swapmm_fuzz_${name})
  add_executable(${program} fuzz/${name}.cpp ${arg_UNPARSED_ARGUMENTS})
  target_include_directories(${program} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${program} PRIVATE swapmm_internals)
  swapmm_warnings_for(${program})
  if(all_counted OR (arg_READER AND SWAPMM_HAS_LIBFUZZER))
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${program} PRIVATE fuzz/replay.cpp)
  endif()
  if(all_counted)
    return()
  endif()
  if(arg_READER AND SWAPMM_HAS_LIBFUZZER)
    add_test(NAME fuzz.${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/run.sh $<TARGET_FILE:${program}> ${name}
      ${arg_SECONDS} ${CMAKE_CURRENT_BINARY_DIR}/fuzz)
  else()
    add_test(NAME fuzz.${name} COMMAND ${program} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
  endif()
  # ctest starts the tests with the highest cost first, so that no core waits for a minute of fuzzing at the end.
  set(cost 0)
  if(arg_READER)
    set(cost ${arg_SECONDS})
  endif()
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 300 COST ${cost})
endfunction()

# Which steps a numeric solver takes tells the fuzzer nothing, and counting them would take most of its time.
if(all_counted)
  set(numeric cholesky interior_point normal_equations program_matrix)
  list(TRANSFORM numeric REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/include/swapmm/plan/relaxation/solver/\\1.cpp")
  set_source_files_properties(${numeric} TARGET_DIRECTORY swapmm PROPERTIES COMPILE_OPTIONS
    "-fno-sanitize=fuzzer-no-link;-U_GLIBCXX_ASSERTIONS")
endif()

swapmm_add_fuzz_target(trace READER)
swapmm_add_fuzz_target(machine READER)
swapmm_add_fuzz_target(plan READER)
swapmm_add_fuzz_target(log READER SECONDS 10) # only the command reads logs
swapmm_add_fuzz_target(chain fuzz/decoded_case.cpp)
swapmm_add_fuzz_target(advice fuzz/plan_edits.cpp)
target_link_libraries(swapmm_fuzz_advice PRIVATE swapmm_test_parts)
swapmm_add_fuzz_target(packing ../examples/cli/buffers.cpp ../examples/cli/csv.cpp)
swapmm_add_fuzz_target(weights ${PROJECT_SOURCE_DIR}/backends/file/swapmm/file/safetensors.cpp)
target_include_directories(swapmm_fuzz_weights PRIVATE ${PROJECT_SOURCE_DIR}/backends/file)
target_link_libraries(swapmm_fuzz_weights PRIVATE Boost::json)
