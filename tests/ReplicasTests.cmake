# SPDX-License-Identifier: Apache-2.0
# Replicas that learn together: on simulated devices, in threads, and in processes of MPI.

swapmm_keep_apart(replicas replicas)
swapmm_add_tests(replicas)
