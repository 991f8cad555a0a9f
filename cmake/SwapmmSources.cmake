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
  HEADERS divided error fwd host_view layout measure_shared_links memory_manager operation options replicas report scheduler shared_links split swapmm tensor version
  SOURCES scheduler)
swapmm_files(include/swapmm/backend
  HEADERS backend device_choice file_memory file_transfer neighbour
  SOURCES device_choice file_memory neighbour)
swapmm_files(include/swapmm/backend/testing
  HEADERS call_site fault_plan fault_state faulty neighbour_memory_of simulated
  SOURCES simulated simulated_instances)
swapmm_files(include/swapmm/backend/testing/simulated
  HEADERS body device memory neighbour options pattern random ring shadow shared_clock step_order touch
  SOURCES checker device device_steps memory neighbour shadow shared_clock step_order)
swapmm_files(include/swapmm/base
  HEADERS bytes error export ids result)
swapmm_files(include/swapmm/base/text
  HEADERS figures sha256 utf8
  SOURCES figures sha256 utf8)
swapmm_files(include/swapmm/c_interface
  HEADERS custom_backend failure handles manager_on operation_checks options report structs tensor_table
  SOURCES calls custom custom_backend failure operation_checks options report simulated tensor_table)
swapmm_files(include/swapmm/codec
  HEADERS zero_code zero_format
  SOURCES zero_code)
swapmm_files(include/swapmm/formats
  HEADERS dot dot_name machine_json plan_json profile_events profile_svg quantity trace_json
  SOURCES dot dot_name machine_json plan_json profile_events profile_svg quantity trace_json)
swapmm_files(include/swapmm/formats/call_log
  HEADERS decode fields graph_dot reader records taking writer
  SOURCES decode fields graph_dot reader writer)
swapmm_files(include/swapmm/formats/chart
  HEADERS chart event_writer
  SOURCES chart event_writer)
swapmm_files(include/swapmm/formats/json
  HEADERS decoder integer_fields machine_fields name_table reader wait_fields writer
  SOURCES decoder reader wait_fields writer)
swapmm_files(include/swapmm/formats/svg
  HEADERS chart_picture elements profile_boxes profile_scale
  SOURCES chart_picture elements profile_boxes profile_scale)
swapmm_files(include/swapmm/formats/v2
  HEADERS machine_fields machine_json plan_json plan_target profile_events profile_svg
  SOURCES machine_json plan_json plan_target plan_writer profile_events profile_svg)
swapmm_files(include/swapmm/interface
  HEADERS options report shared_links
  SOURCES report)
swapmm_files(include/swapmm/ir
  HEADERS bundle graph limits liveness profile same_program trace
  SOURCES digest graph liveness profile trace)
swapmm_files(include/swapmm/ir/calls
  HEADERS call iteration program_graph repetition run window
  SOURCES iteration program_graph repetition run window)
swapmm_files(include/swapmm/ir/v2
  HEADERS profile
  SOURCES profile)
swapmm_files(include/swapmm/plan
  HEADERS bound changed_trace explain machine packing plan planner planner_choice planner_options planners predicted_profile simulate
          stalls step_times validate ways
  SOURCES changed_trace machine plan)
swapmm_files(include/swapmm/plan/baselines
  HEADERS excess on_demand slack vdnn
  SOURCES excess on_demand slack vdnn)
swapmm_files(include/swapmm/plan/excess_overlap
  HEADERS excess_overlap overlap_stays overlap_trades
  SOURCES excess_overlap overlap_stays overlap_trades)
swapmm_files(include/swapmm/plan/explain
  SOURCES explainer stalls)
swapmm_files(include/swapmm/plan/packing
  HEADERS arenas blame board search skyline
  SOURCES arenas blame board pack search skyline)
swapmm_files(include/swapmm/plan/packing/improve
  HEADERS canonical ejection neighbours placed
  SOURCES canonical ejection neighbours placed)
swapmm_files(include/swapmm/plan/packing/shape
  HEADERS budget shape
  SOURCES shape)
swapmm_files(include/swapmm/plan/planners
  HEADERS before_best
  SOURCES planner_choice planners)
swapmm_files(include/swapmm/plan/problem
  HEADERS linked_stores overlap_ledger part_of_time planning_case share slower_links
  SOURCES overlap_ledger planning_case)
swapmm_files(include/swapmm/plan/relaxation
  HEADERS coarse_program copy_classes grid_refinement lower_bound relaxation replay_bound swap_grid swap_model swap_prices window_tree
  SOURCES coarse_program copy_classes grid_refinement lower_bound replay_bound swap_grid swap_model swap_prices)
swapmm_files(include/swapmm/plan/relaxation/solver
  HEADERS cholesky interior_point normal_equations option_blocks program_matrix
  SOURCES cholesky interior_point normal_equations program_matrix)
swapmm_files(include/swapmm/plan/schedule
  HEADERS absence_stays best_plan command_writer fit known_stalls place_history schedule stay_facts
  SOURCES absence_stays command_writer place_history schedule stay_facts)
swapmm_files(include/swapmm/plan/search
  HEADERS best best_search reordering
  SOURCES best best_search reordering)
swapmm_files(include/swapmm/plan/search/places
  HEADERS known_places place_board place_filling place_search
  SOURCES known_places place_board place_filling place_search)
swapmm_files(include/swapmm/plan/search/timing
  HEADERS away_search held_changes range_load swap_timing timing_numbers
  SOURCES away_search away_stores range_load swap_decisions swap_gaps swap_run swap_stores swap_timing)
swapmm_files(include/swapmm/plan/simulation
  HEADERS dataflow steady_state
  SOURCES dataflow predicted_profile simulator steady_state)
swapmm_files(include/swapmm/plan/split
  HEADERS dependence quantity split
  SOURCES choose dependence from_pieces from_traces quantity written_out)
swapmm_files(include/swapmm/plan/v2
  HEADERS bound engines explain machine plan planners predicted_profile simulate transition validate ways
  SOURCES machine plan)
swapmm_files(include/swapmm/plan/v2/baselines
  HEADERS command_chain free_ranges on_demand paths residency uses victims
  SOURCES on_demand paths residency uses)
swapmm_files(include/swapmm/plan/v2/explain
  HEADERS absences sharing stall_search
  SOURCES absences explainer sharing stall_search)
swapmm_files(include/swapmm/plan/v2/joint
  HEADERS device_plans devices joint_search turns
  SOURCES device_plans devices joint_search turns)
swapmm_files(include/swapmm/plan/v2/planners
  SOURCES planners)
swapmm_files(include/swapmm/plan/v2/relaxation
  HEADERS lower_bound merged_host shared_bound store_bound store_master store_model store_prices
  SOURCES lower_bound merged_host shared_bound store_bound store_master store_model store_prices store_prices_written
          store_rounding)
swapmm_files(include/swapmm/plan/v2/relaxation/solver
  HEADERS sparse_program
  SOURCES sparse_program)
swapmm_files(include/swapmm/plan/v2/spread
  HEADERS engine_part hand_over serial_order shared_parts spare_memory spread spread_plans spread_shared stores timeline
  SOURCES engine_part hand_over serial_order shared_parts spare_memory spread spread_plans spread_shared stores timeline)
swapmm_files(include/swapmm/plan/v2/stores
  HEADERS only_device passing routes spread_far store_search stored_plan
  SOURCES only_device passing routes spread_far store_search stored_plan)
swapmm_files(include/swapmm/plan/v2/transition
  HEADERS boundary places
  SOURCES boundary check replan transition)
swapmm_files(include/swapmm/plan/v2/validation
  HEADERS findings order part_events parts place_check value_check
  SOURCES order part_events parts place_check validator value_check)
swapmm_files(include/swapmm/plan/ways
  HEADERS bound candidate changes checkpoints choices refinement turn units
  SOURCES bound candidate changes checkpoints choices refinement search turn units)
swapmm_files(include/swapmm/plan/ways/program
  HEADERS history pieces written
  SOURCES history pieces written)
swapmm_files(include/swapmm/plan/v2/schedule
  HEADERS prediction waits
  SOURCES waits)
swapmm_files(include/swapmm/plan/v2/simulation
  HEADERS deciding elements event_run fair_rates flows implied_waits occupation parts steady_state waits
  SOURCES deciding elements event_run fair_rates flows implied_waits parts simulator steady_state waits)
swapmm_files(include/swapmm/plan/v2/long_run
  HEADERS step_names turn
  SOURCES predicted_profile turn)
swapmm_files(include/swapmm/plan/v2/ways
  HEADERS search_ways way_parts written_plan
  SOURCES from_ways search_ways to_ways way_parts)
swapmm_files(include/swapmm/plan/validation
  HEADERS findings happens_before place_check tensor_events value_check
  SOURCES happens_before place_check tensor_events validator value_check)
swapmm_files(include/swapmm/pages
  HEADERS area fault_service fault_table page_access
  SOURCES area fault_service fault_table page_access)
swapmm_files(include/swapmm/replicas
  HEADERS chain chunk_size exchange host_sum thread_exchange
  SOURCES chunk_size exchange thread_exchange)
swapmm_files(include/swapmm/runtime HEADERS instances)
swapmm_files(include/swapmm/runtime/blocks
  HEADERS encoded_blocks encoding_types file_blocks home host_block neighbour_blocks place_map placed_blocks
  SOURCES place_map)
swapmm_files(include/swapmm/runtime/book
  HEADERS compiled_plan given_plan known_machine plan_case planning_task program_book stopwatch store_key tiered_plan
  SOURCES compiled_plan given_plan planning_task program_book program_book_budgets program_book_changes program_book_joint program_book_store program_book_times store_key
          tiered_plan)
swapmm_files(include/swapmm/runtime/core
  HEADERS budget_change core entrance_options failures gate host_access host_views iteration_capture kept_operations make_core neighbour_change observation plan_controller round_measurement
    run_again running_operation session session_state tensor_registry)
swapmm_files(include/swapmm/runtime/joint
  HEADERS link_group plan_turns turn_board turn_taker
  SOURCES link_group shared_links)
swapmm_files(include/swapmm/runtime/links
  HEADERS link_probe neighbour_links port_probe probe_ends)
swapmm_files(include/swapmm/runtime/moves
  HEADERS access_check demand drops faults followed_log plan_addresses plan_executor plan_start residents role_binding round_clock)
swapmm_files(include/swapmm/runtime/observe
  HEADERS generations late_times lingering log log_tensor plan_match program recorder replayed_program use_history
  SOURCES lingering program replayed_program use_history)
swapmm_files(include/swapmm/runtime/order
  HEADERS backend_scopes clock timeline)
swapmm_files(include/swapmm/runtime/run
  HEADERS callable run_operation)
swapmm_files(include/swapmm/runtime/slices
  HEADERS joined_slices slice_layout)
swapmm_files(include/swapmm/runtime/timing
  HEADERS encoding_history link_estimate profiler round_times sampler timed_copies
  SOURCES encoding_history link_estimate)
swapmm_files(include/swapmm/runtime/values
  HEADERS address_book away_copies bundle encoded_copies encodings file_copies homes host_ledger host_pool host_slabs messages neighbour_copies none promises record scrubber store traffic
  SOURCES messages)
swapmm_files(include/swapmm/runtime/views
  HEADERS open_views part_copies)
swapmm_files(include/swapmm/answers
  HEADERS as_json comparison disturbances explanation fit machine planning quantities simulation stall_search
  SOURCES as_json comparison disturbances explanation fit machine planning quantities simulation stall_search)
swapmm_files(include/swapmm/answers/ways
  HEADERS as_version_1 ways
  SOURCES as_version_1 ways)
swapmm_files(include/swapmm/answers/split
  HEADERS split
  SOURCES split)

list(APPEND SWAPMM_HEADERS include/swapmm/kernel.h include/swapmm/swapmm.h)

# The component `ilp`, a library of its own.
set(SWAPMM_ILP_HEADERS include/swapmm/plan/ilp.hpp)
set(SWAPMM_ILP_SOURCES include/swapmm/plan/ilp/ilp.cpp)
foreach(name IN ITEMS alike order_decisions orders polish search slots solver/checked solver/solver timed_plan windows)
  list(APPEND SWAPMM_ILP_HEADERS include/swapmm/plan/ilp/${name}.hpp)
  list(APPEND SWAPMM_ILP_SOURCES include/swapmm/plan/ilp/${name}.cpp)
endforeach()

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

# The public boundary. Only these two lists are installed. A header of the first list is for programs: it is documented,
# and stays as docs/versions.md promises. A header of the second list is internal: templates of the first list need it.
# tests/structure/boundary.py checks both lists against the includes.
set(SWAPMM_PUBLIC_HEADERS)

# swapmm_public(FOLDER NAME...): names without suffix.
macro(swapmm_public folder)
  foreach(name IN ITEMS ${ARGN})
    list(APPEND SWAPMM_PUBLIC_HEADERS ${folder}/${name}.hpp)
  endforeach()
endmacro()

swapmm_public(include/swapmm divided error fwd host_view layout measure_shared_links memory_manager operation options replicas report scheduler shared_links split swapmm tensor version)
swapmm_public(include/swapmm/base bytes error export ids result)
swapmm_public(include/swapmm/codec zero_code zero_format)
swapmm_public(include/swapmm/ir graph limits liveness profile trace)
swapmm_public(include/swapmm/formats dot machine_json plan_json profile_events profile_svg trace_json)
swapmm_public(include/swapmm/formats/v2 machine_json plan_json profile_events profile_svg)
swapmm_public(include/swapmm/ir/v2 profile)
swapmm_public(include/swapmm/plan
  bound changed_trace explain machine packing plan planner planner_choice planner_options planners predicted_profile simulate stalls step_times
  validate ways)
swapmm_public(include/swapmm/plan/split split)
swapmm_public(include/swapmm/plan/v2 bound explain machine plan planners predicted_profile simulate transition validate ways)
swapmm_public(include/swapmm/interface options report shared_links)
swapmm_public(include/swapmm/replicas chunk_size exchange thread_exchange)
swapmm_public(include/swapmm/backend backend device_choice file_memory neighbour)
swapmm_public(include/swapmm/backend/testing call_site fault_plan faulty simulated)
swapmm_public(include/swapmm/backend/testing/simulated neighbour options pattern shared_clock touch)
list(APPEND SWAPMM_PUBLIC_HEADERS include/swapmm/kernel.h include/swapmm/swapmm.h)
set(SWAPMM_ILP_PUBLIC_HEADERS include/swapmm/plan/ilp.hpp)

# Templates need all other headers of these rooms.
set(SWAPMM_TEMPLATE_HEADERS ${SWAPMM_HEADERS})
list(FILTER SWAPMM_TEMPLATE_HEADERS INCLUDE REGEX "^include/swapmm/(pages|replicas|runtime|backend/testing)/")
list(REMOVE_ITEM SWAPMM_TEMPLATE_HEADERS ${SWAPMM_PUBLIC_HEADERS} include/swapmm/runtime/book/store_key.hpp
  include/swapmm/runtime/book/tiered_plan.hpp include/swapmm/runtime/observe/generations.hpp include/swapmm/runtime/observe/lingering.hpp
  include/swapmm/runtime/observe/replayed_program.hpp)

set(not_headers ${SWAPMM_PUBLIC_HEADERS} ${SWAPMM_TEMPLATE_HEADERS} ${SWAPMM_ILP_PUBLIC_HEADERS})
list(REMOVE_ITEM not_headers ${SWAPMM_HEADERS} ${SWAPMM_ILP_HEADERS})
if(not_headers)
  list(JOIN not_headers "\n  " not_headers)
  message(FATAL_ERROR "cmake/SwapmmSources.cmake: the lists of installed headers name what is no header of the library:\n"
    "  ${not_headers}")
endif()
