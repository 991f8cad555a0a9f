# SPDX-License-Identifier: Apache-2.0
# Programs whose sequence or shapes depend on data.

add_executable(swapmm_dynamic_programs_tests main.cpp
  dynamic_programs/branching_program.cpp dynamic_programs/branching_test.cpp
  dynamic_programs/drop_rule_test.cpp dynamic_programs/shapes_test.cpp)
target_include_directories(swapmm_dynamic_programs_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(swapmm_dynamic_programs_tests PRIVATE swapmm_internals doctest::doctest)
swapmm_warnings_for(swapmm_dynamic_programs_tests)
swapmm_runs_long(swapmm_dynamic_programs_tests)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_compile_definitions(swapmm_dynamic_programs_tests PRIVATE SWAPMM_TEST_IS_SLOW)
endif()
add_test(NAME dynamic_programs COMMAND swapmm_dynamic_programs_tests)
set_tests_properties(dynamic_programs PROPERTIES LABELS property TIMEOUT 900)

# They check their own results.
if(TARGET tree_network)
  swapmm_runs_long(tree_network) # its loops are the kernels
  add_test(NAME examples.tree_network COMMAND tree_network --trees 50)
  add_test(NAME examples.tree_network.deep COMMAND tree_network --trees 1 --depth 10000)
  add_test(NAME examples.tree_network.options COMMAND tree_network --forest 1)
  set_tests_properties(examples.tree_network.options PROPERTIES PASS_REGULAR_EXPRESSION "unknown option")
  set_tests_properties(examples.tree_network examples.tree_network.deep examples.tree_network.options
    PROPERTIES LABELS examples TIMEOUT 300)
endif()
if(TARGET interpreter)
  swapmm_runs_long(interpreter) # its loops are the kernels
  add_test(NAME examples.interpreter COMMAND interpreter --practice 1000 --additions 40 --digits 1 --longer 2 --tests 2)
  add_test(NAME examples.interpreter.adds COMMAND interpreter --tests 10 --longer 8 --right 100 --observe 0)
  add_test(NAME examples.interpreter.options COMMAND interpreter --number 1)
  set_tests_properties(examples.interpreter PROPERTIES FAIL_REGULAR_EXPRESSION "iterations by a plan: 0 of")
  set_tests_properties(examples.interpreter.options PROPERTIES PASS_REGULAR_EXPRESSION "unknown option")
  set_tests_properties(examples.interpreter examples.interpreter.adds examples.interpreter.options
    PROPERTIES LABELS examples TIMEOUT 300)
endif()
