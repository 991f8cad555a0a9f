# SPDX-License-Identifier: Apache-2.0
# The planner that COIN-OR Cbc solves. A program of its own: it provides the planner to the whole process.

swapmm_add_tests(ilp)
target_link_libraries(swapmm_ilp_tests PRIVATE swapmm_ilp_internals)
