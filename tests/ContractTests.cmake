# SPDX-License-Identifier: Apache-2.0
# docs/formats.md is a contract: a validator in another language was written from it alone, and judges the same plans.

find_package(Python3 REQUIRED COMPONENTS Interpreter)

add_executable(swapmm_contract_cases contract/cases.cpp)
target_link_libraries(swapmm_contract_cases PRIVATE swapmm_test_parts)
swapmm_warnings_for(swapmm_contract_cases)
add_test(NAME contract.examples COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/contract/plan_v2_examples.py
  $<TARGET_FILE:swapmm_contract_cases>)
set(contract_seeds 1500)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")  # the library is slow
  set(contract_seeds 200)
endif()
add_test(NAME contract.plan_v2
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/contract/plan_v2_compare.py $<TARGET_FILE:swapmm_contract_cases> 1 ${contract_seeds})
set_tests_properties(contract.examples contract.plan_v2 PROPERTIES LABELS contract TIMEOUT 300
  ENVIRONMENT "PYTHONDONTWRITEBYTECODE=;PYTHONPYCACHEPREFIX=${CMAKE_CURRENT_BINARY_DIR}/pycache")
