# SPDX-License-Identifier: Apache-2.0
# The command `swapmm`, run as a shell runs it.

if(NOT SWAPMM_BUILD_EXAMPLES)
  return()
endif()
if(NOT TARGET swapmm_cli)
  add_test(NAME cli COMMAND ${CMAKE_COMMAND} -E echo "skipped: the command is not built; it needs CLI11 (Debian: libcli11-dev)")
  set_tests_properties(cli PROPERTIES LABELS cli SKIP_REGULAR_EXPRESSION "^skipped: ")
  return()
endif()
swapmm_keep_apart(cli record run_pictures)
swapmm_add_tests(cli)
target_link_libraries(swapmm_cli_tests PRIVATE swapmm_cli_parts)
target_compile_definitions(swapmm_cli_tests PRIVATE SWAPMM_CLI_PROGRAM="$<TARGET_FILE:swapmm_cli>")
add_dependencies(swapmm_cli_tests swapmm_cli)
if(TARGET swapmm_opencl_layer)
  target_compile_definitions(swapmm_cli_tests PRIVATE SWAPMM_TEST_LAYER="$<TARGET_FILE:swapmm_opencl_layer>"
    SWAPMM_TEST_OPENCL_PROGRAM="$<TARGET_FILE:swapmm_opencl_cases>")
  add_dependencies(swapmm_cli_tests swapmm_opencl_layer swapmm_opencl_cases)
  # Nothing is found in the user's folder for caches, or left there; and what is left in the folder for temporary files is theirs.
  set(scratch ${CMAKE_CURRENT_BINARY_DIR}/cli_scratch)
  file(MAKE_DIRECTORY ${scratch})
  set_tests_properties(cli.run cli.run_pictures cli.record PROPERTIES ENVIRONMENT "SWAPMM_CACHE=${CMAKE_CURRENT_BINARY_DIR}/cli_cache;TMPDIR=${scratch}")
endif()
