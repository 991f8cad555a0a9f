# SPDX-License-Identifier: Apache-2.0
# Programs that feed any bytes to the readers, and to everything behind them. Preset `fuzz` links them with libFuzzer
# (./dev fuzz); under AddressSanitizer they run the inputs that are kept in fuzz/corpus, as tests.

if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,-]*address")
  return()
endif()

function(swapmm_add_fuzz_target name)
  set(program swapmm_fuzz_${name})
  add_executable(${program} fuzz/${name}.cpp ${ARGN})
  target_include_directories(${program} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${program} PRIVATE swapmm::swapmm)
  swapmm_warnings_for(${program})
  if(CMAKE_CXX_FLAGS MATCHES "fuzzer-no-link")
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${program} PRIVATE fuzz/replay.cpp)
    add_test(NAME fuzz.${name} COMMAND ${program} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 300)
  endif()
endfunction()

# Which steps a numeric solver takes tells the fuzzer nothing, and counting them would take most of its time.
if(CMAKE_CXX_FLAGS MATCHES "fuzzer-no-link")
  set(numeric cholesky interior_point normal_equations program_matrix)
  list(TRANSFORM numeric REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/include/swapmm/plan/\\1.cpp")
  set_source_files_properties(${numeric} TARGET_DIRECTORY swapmm PROPERTIES COMPILE_OPTIONS
    "-fno-sanitize=fuzzer-no-link;-U_GLIBCXX_ASSERTIONS")
endif()

swapmm_add_fuzz_target(trace)
swapmm_add_fuzz_target(machine)
swapmm_add_fuzz_target(plan)
swapmm_add_fuzz_target(chain fuzz/decoded_case.cpp)
swapmm_add_fuzz_target(advice fuzz/plan_edits.cpp)
target_link_libraries(swapmm_fuzz_advice PRIVATE swapmm_test_parts)
swapmm_add_fuzz_target(packing ../examples/cli/buffers.cpp ../examples/cli/csv.cpp)
