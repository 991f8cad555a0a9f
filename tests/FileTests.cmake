# SPDX-License-Identifier: Apache-2.0
# Files on a disk as a memory.

swapmm_add_tests(file)
target_link_libraries(swapmm_file_tests PRIVATE swapmm::file)
