# SPDX-License-Identifier: Apache-2.0

# swapmm_python_with(VARIABLE MODULE): a Python 3 that has the module, in the cache: importing may take seconds. Unset if
# there is none.
macro(swapmm_python_with variable module)
  if(NOT ${variable})
    foreach(candidate IN ITEMS ${Python3_EXECUTABLE} /usr/bin/python3 python3)
      execute_process(COMMAND ${candidate} -c "import ${module}" RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
      if(status EQUAL 0)
        set(${variable} ${candidate} CACHE STRING "A Python 3 that has ${module}")
        mark_as_advanced(${variable})
        break()
      endif()
    endforeach()
  endif()
endmacro()
