# SPDX-License-Identifier: Apache-2.0
# cmake -DNM=... -DREADERS=... -DLIBRARIES=... -P environment.cmake: none of these libraries calls getenv(), which a
# set-uid program must not trust; those in READERS call secure_getenv().

cmake_minimum_required(VERSION 3.25)
foreach(library IN LISTS LIBRARIES READERS)
  execute_process(COMMAND ${NM} -u ${library} OUTPUT_VARIABLE undefined COMMAND_ERROR_IS_FATAL ANY)
  if(undefined MATCHES "[ \n]getenv[@\n]")
    message(FATAL_ERROR "${library} calls getenv()")
  endif()
  if(library IN_LIST READERS AND NOT undefined MATCHES "[ \n]secure_getenv[@\n]")
    message(FATAL_ERROR "${library} does not call secure_getenv()")
  endif()
endforeach()
