# SPDX-License-Identifier: Apache-2.0
# Real programs, natively and below the layer for unmodified ones at the least budget: small sizes of those that ./dev clients
# has. What comes from PyPI is installed in build/clients, and skipped where PyPI cannot be reached.

find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(clients quick_pyclesperanto boost_compute)
if(SWAPMM_LONG_TESTS)
  list(APPEND clients quick_tg_cnn quick_tg_cnn_jit clblast)
endif()
foreach(client IN LISTS clients)
  add_test(NAME clients.${client} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/clients/run.py --tightest
    --watch $<TARGET_FILE:swapmm_opencl_watch> --layer $<TARGET_FILE:swapmm_opencl_layer> ${client})
  list(APPEND client_tests clients.${client})
endforeach()
# They share compiler caches. With two at once and cold caches, PoCL 3.1 was seen to abort while it read a binary. So they run
# one after the other, and begin first.
set_tests_properties(${client_tests} PROPERTIES RESOURCE_LOCK client_caches LABELS clients TIMEOUT 900 COST 200
  SKIP_REGULAR_EXPRESSION "skipped: no client can run here")
