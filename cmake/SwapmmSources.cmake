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
  HEADERS best_plan command_writer dataflow excess_overlap findings fit happens_before machine machine_fields machine_json
    on_demand overlap_ledger overlap_stays overlap_trades packing packing_board place_check place_history plan plan_check plan_json
    planner planning_case predicted_profile schedule simulator stalls stay_facts steady_state tensor_events validator value_check
  SOURCES command_writer dataflow excess_overlap happens_before machine machine_json on_demand overlap_ledger
    overlap_stays overlap_trades packing packing_board place_check place_history plan_check plan_json planner planning_case
    predicted_profile schedule simulator stalls stay_facts steady_state tensor_events validator value_check)
swapmm_files(include/swapmm/runtime
  HEADERS access_check address_book around bundle capturing clock compiled_plan core course demand entry failures follower
    host_access host_block host_pool host_slabs link_estimate log messages parts place_map plan_match profiler program program_book promises record recorder store timeline
  SOURCES compiled_plan link_estimate messages place_map program program_book)
swapmm_files(include/swapmm/backend
  HEADERS backend device_choice fault_plan faulty simulated
  SOURCES device_choice simulated)
swapmm_files(include/swapmm/backend/simulated
  HEADERS body device memory options pattern random ring shadow step_order
  SOURCES checker device device_steps memory shadow step_order)

list(APPEND SWAPMM_HEADERS include/swapmm/kernel.h)

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
swapmm_require_listed(*.h* ${SWAPMM_HEADERS})
swapmm_require_listed(*.cpp ${SWAPMM_SOURCES})
