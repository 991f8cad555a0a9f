# SPDX-License-Identifier: Apache-2.0
# The programs that judge the bugs in zoo/: see docs/decisions/0011-bug-zoo.md. They are built from the tests that there are
# anyway, in pieces that are small enough to be compiled again for each bug; nothing but ./dev zoo builds them.

# What they share sees nothing of the runtime, so that no bug in it is waited for here.
set(sources ${support_sources})
list(FILTER sources EXCLUDE REGEX "/program_runner\\.cpp$")
add_library(swapmm_zoo_support STATIC EXCLUDE_FROM_ALL main.cpp ${sources})
set_target_properties(swapmm_zoo_support PROPERTIES UNITY_BUILD OFF)  # so that nothing is linked that is not asked for
get_target_property(folders swapmm_test_parts INCLUDE_DIRECTORIES)
target_include_directories(swapmm_zoo_support PUBLIC ${folders})
target_link_libraries(swapmm_zoo_support PUBLIC swapmm::swapmm doctest::doctest Boost::json)
swapmm_warnings_for(swapmm_zoo_support)

function(swapmm_add_zoo_program name)
  add_executable(swapmm_zoo_${name} EXCLUDE_FROM_ALL ${ARGN})
  set_target_properties(swapmm_zoo_${name} PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(swapmm_zoo_${name} PRIVATE swapmm_zoo_support)
  swapmm_warnings_for(swapmm_zoo_${name})
endfunction()

swapmm_add_zoo_program(programs property/program_property_test.cpp property/interleaving_property_test.cpp
  support/program_runner.cpp)
swapmm_add_zoo_program(failures faults/after_failure_test.cpp faults/failed_moves_test.cpp)
# The fault loop in one piece, which compiles in a fourth of the time, and with fewer faults.
file(GLOB sources CONFIGURE_DEPENDS faults/*.cpp)
swapmm_add_zoo_program(faults ${sources})
set_target_properties(swapmm_zoo_faults PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
target_compile_definitions(swapmm_zoo_faults PRIVATE SWAPMM_TEST_IS_SLOW)
file(GLOB sources CONFIGURE_DEPENDS unit/*_test.cpp)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  string(REGEX REPLACE "_test$" "" name ${name})
  swapmm_add_zoo_program(unit_${name} ${source})
endforeach()

# The runner itself.
if(SWAPMM_PYTHON AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_test(NAME zoo.runner COMMAND ${SWAPMM_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/zoo/run_test.py)
  set_tests_properties(zoo.runner PROPERTIES LABELS zoo TIMEOUT 300 FAIL_REGULAR_EXPRESSION "Ran 0 tests")
endif()
