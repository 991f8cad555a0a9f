# SPDX-License-Identifier: Apache-2.0
# Replicas that learn together: on simulated devices, in threads, and in processes of MPI.

swapmm_keep_apart(replicas replicas)
swapmm_add_tests(replicas)

if(NOT TARGET swapmm::mpi OR NOT MPIEXEC_EXECUTABLE)
  add_test(NAME mpi COMMAND ${CMAKE_COMMAND} -E echo "skipped: there is no MPI (Debian: libopenmpi-dev openmpi-bin)")
  set_tests_properties(mpi PROPERTIES LABELS replicas SKIP_REGULAR_EXPRESSION "^skipped: ")
  return()
endif()
add_executable(swapmm_mpi_program mpi/main.cpp)
target_include_directories(swapmm_mpi_program PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(swapmm_mpi_program PRIVATE swapmm::mpi)
swapmm_warnings_for(swapmm_mpi_program)

# More processes than cores, by whomever: Open MPI wants to be told.
# What MPI keeps until the process ends is no leak of ours.
set(mpi_environment ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1:handle_sigill=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1)
foreach(processes IN ITEMS 2 3)
  math(EXPR replicas "(${processes} * 3) / 2")
  add_test(NAME mpi.same_bits_${processes} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${processes}
    $<TARGET_FILE:swapmm_mpi_program>)
  set_tests_properties(mpi.same_bits_${processes} PROPERTIES FAIL_REGULAR_EXPRESSION "ends: "
    PASS_REGULAR_EXPRESSION "${replicas} replicas, and these [12] have the bits of one device")
  list(APPEND mpi_tests mpi.same_bits_${processes})
endforeach()

# swapmm_mpi_failure(NAME WAY TEXT...): process 1 of 3 ends in that way; all end, not by the time limit, with a status that is
# not 0, and these texts.
function(swapmm_mpi_failure name way)
  set(conditions)
  foreach(text IN LISTS ARGN)
    string(APPEND conditions " && \$output == *'${text}'*")
  endforeach()
  add_test(NAME mpi.${name} COMMAND bash -c "output=$(timeout 60 '${MPIEXEC_EXECUTABLE}' ${MPIEXEC_NUMPROC_FLAG} 3 \\
'$<TARGET_FILE:swapmm_mpi_program>' '${way}' 2>&1); status=$?
echo \"$output\"; echo status $status; [[ $status != 0 && $status != 124${conditions} ]]")
  set(mpi_tests ${mpi_tests} mpi.${name} PARENT_SCOPE)
endfunction()
swapmm_mpi_failure(throws throws "process 1 of 3 ends: out of luck" "process 0 of 3 ends: replica process 1 failed: out of luck"
  "process 2 of 3 ends: replica process 1 failed: out of luck")
swapmm_mpi_failure(ends ends "replica process 1 has ended")
swapmm_mpi_failure(ends_early "ends before a long sum" "replica process 1 has ended")
swapmm_mpi_failure(handled "ends, and that is handled" "handled: replica process 1 has ended")
# What mpirun says of it, Open MPI's and MPICH's.
swapmm_mpi_failure(killed "is killed" "ignal")
swapmm_mpi_failure(exits exits "exit")
set_tests_properties(${mpi_tests} PROPERTIES LABELS replicas TIMEOUT 120 PROCESSORS 2 ENVIRONMENT "${mpi_environment}")
