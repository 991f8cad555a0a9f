# SPDX-License-Identifier: Apache-2.0
# Every file of the library, by folder. A file that exists and is not listed, or is listed and does not exist, stops
# the configuration: nothing is left out by accident, and nothing comes in by accident.

set(SWAPMM_HEADERS)
set(SWAPMM_SOURCES)

# swapmm_files(FOLDER HEADERS NAME... SOURCES NAME...): names without folder and suffix.
macro(swapmm_files folder)
  cmake_parse_arguments(files "" "" "HEADERS;SOURCES" ${ARGN})
  list(TRANSFORM files_HEADERS REPLACE "(.+)" "${folder}/\\1.hpp" OUTPUT_VARIABLE headers)
  list(TRANSFORM files_SOURCES REPLACE "(.+)" "${folder}/\\1.cpp" OUTPUT_VARIABLE sources)
  list(APPEND SWAPMM_HEADERS ${headers})
  list(APPEND SWAPMM_SOURCES ${sources})
endmacro()

swapmm_files(include/swapmm
  HEADERS error layout memory_manager operation options report scheduler swapmm tensor version
  SOURCES report scheduler)
swapmm_files(include/swapmm/base
  HEADERS bytes figures ids result utf8
  SOURCES figures utf8)
swapmm_files(include/swapmm/ir
  HEADERS dot graph json_follower json_reader json_writer limits liveness profile profile_boxes profile_events
    profile_scale profile_svg svg_elements trace trace_json
  SOURCES digest dot graph json_follower json_reader json_writer liveness profile profile_boxes profile_events
    profile_scale profile_svg svg_elements trace trace_json)
swapmm_files(include/swapmm/plan
  HEADERS absence_stays away_search best best_plan best_search cholesky coarse_program command_writer copy_classes dataflow
    excess_overlap explainer findings fit grid_refinement happens_before interior_point known_places lower_bound machine
    machine_fields machine_json normal_equations on_demand option_blocks overlap_ledger overlap_stays overlap_trades
    packing packing_arenas packing_blame packing_board packing_budget packing_canonical packing_ejection
    packing_neighbours packing_placed packing_search packing_shape packing_skyline place_board place_check place_filling
    place_history place_search plan plan_check plan_json planner planning_case predicted_profile program_matrix
    range_load schedule simulator slack stalls stay_facts steady_state step_times swap_grid swap_model swap_prices
    swap_timing tensor_events validator value_check vdnn window_tree
  SOURCES absence_stays away_search best best_search cholesky coarse_program command_writer copy_classes dataflow excess_overlap
    explainer grid_refinement happens_before interior_point known_places lower_bound machine machine_json
    normal_equations on_demand overlap_ledger overlap_stays overlap_trades packing packing_arenas packing_blame
    packing_board packing_canonical packing_ejection packing_neighbours packing_placed packing_search packing_shape
    packing_skyline place_board place_check place_filling place_history place_search plan_check plan_json planner planning_case
    predicted_profile program_matrix range_load schedule simulator slack stalls stay_facts steady_state swap_grid
    swap_model swap_prices swap_timing tensor_events validator value_check vdnn)
swapmm_files(include/swapmm/runtime
  HEADERS access_check address_book around budget_change bundle capturing clock compiled_plan core course demand entry
    failures follower host_access host_block host_pool host_slabs link_estimate log measuring messages parts place_map
    plan_case plan_match planning_task profiler program program_book promises record recorder round_times sampler
    scrubber stopwatch store timeline
  SOURCES compiled_plan link_estimate messages place_map planning_task program program_book program_book_times)
swapmm_files(include/swapmm/backend
  HEADERS backend call_site device_choice fault_plan fault_state faulty simulated
  SOURCES device_choice simulated)
swapmm_files(include/swapmm/backend/simulated
  HEADERS body device memory options pattern random ring shadow step_order
  SOURCES checker device device_steps memory shadow step_order)

list(APPEND SWAPMM_HEADERS include/swapmm/kernel.h)

# The component `ilp`, a library of its own.
set(SWAPMM_ILP_HEADERS ilp ilp_orders ilp_polish ilp_slots ilp_solver)
set(SWAPMM_ILP_SOURCES ${SWAPMM_ILP_HEADERS})
list(TRANSFORM SWAPMM_ILP_HEADERS REPLACE "(.+)" "include/swapmm/plan/\\1.hpp")
list(TRANSFORM SWAPMM_ILP_SOURCES REPLACE "(.+)" "include/swapmm/plan/\\1.cpp")

function(swapmm_require_listed pattern)
  file(GLOB_RECURSE present RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS include/swapmm/${pattern})
  set(unlisted ${present})
  list(REMOVE_ITEM unlisted ${ARGN})
  set(missing ${ARGN})
  list(REMOVE_ITEM missing ${present})
  if(unlisted OR missing)
    list(JOIN unlisted "\n  " unlisted)
    list(JOIN missing "\n  " missing)
    message(FATAL_ERROR "cmake/SwapmmSources.cmake\n"
      "does not list:\n  ${unlisted}\n"
      "lists what does not exist:\n  ${missing}")
  endif()
endfunction()
swapmm_require_listed(*.h* ${SWAPMM_HEADERS} ${SWAPMM_ILP_HEADERS})
swapmm_require_listed(*.cpp ${SWAPMM_SOURCES} ${SWAPMM_ILP_SOURCES})
