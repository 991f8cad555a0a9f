# SPDX-License-Identifier: Apache-2.0
# Ways for a program to end, natively and below the layer.

set(exits_folder ${CMAKE_CURRENT_SOURCE_DIR}/opencl_layer/exits)
add_executable(swapmm_opencl_exits_layer ${exits_folder}/main.cpp ${exits_folder}/scene.cpp)
add_library(swapmm_opencl_exits_plugin MODULE ${exits_folder}/plugin.cpp ${exits_folder}/scene.cpp)
# Libraries with unique symbols are never unloaded.
target_compile_options(swapmm_opencl_exits_plugin PRIVATE $<$<AND:$<CXX_COMPILER_ID:GNU>,$<NOT:$<BOOL:${SWAPMM_PROGRAMS_COMPILER_PATH}>>>:-fno-gnu-unique>)
# It brings the loader and the layer in with the plugin, so it is not linked with them.
add_executable(swapmm_opencl_exits_host ${exits_folder}/host.cpp)
foreach(target swapmm_opencl_exits_layer swapmm_opencl_exits_plugin)
  target_link_libraries(${target} PRIVATE OpenCL::OpenCL Threads::Threads)
endforeach()
target_link_libraries(swapmm_opencl_exits_host PRIVATE ${CMAKE_DL_LIBS})
foreach(target swapmm_opencl_exits_layer swapmm_opencl_exits_plugin swapmm_opencl_exits_host)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  swapmm_warnings_for(${target})
endforeach()

set(run_exits Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/opencl_layer/run_exits.py
  --program $<TARGET_FILE:swapmm_opencl_exits_layer> --host $<TARGET_FILE:swapmm_opencl_exits_host>
  --plugin $<TARGET_FILE:swapmm_opencl_exits_plugin> --layer $<TARGET_FILE:swapmm_opencl_layer>)
file(STRINGS ${exits_folder}/main.cpp lines REGEX "^    {\"[a-z_]+\", [a-z_]+},$")
set(layer_ways plugin_is_unloaded plugin_stays)
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^    {\"([a-z_]+)\".*" "\\1" way "${line}")
  list(APPEND layer_ways ${way})
endforeach()
foreach(way IN LISTS layer_ways)
  add_test(NAME opencl_layer.exits.${way} COMMAND ${run_exits} ${way})
  set_tests_properties(opencl_layer.exits.${way} PROPERTIES LABELS opencl_layer TIMEOUT 600)
endforeach()
