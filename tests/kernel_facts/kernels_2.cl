// SPDX-License-Identifier: Apache-2.0
// Kernels in OpenCL C 2.0. See run.py.

global int kept;

int first(int* p) { return *p; }

// pure Wr  by addresses of any kind
kernel void any_kind(global int* to, global int* from) { to[get_global_id(0)] = first(from); }
// pure Wus  an address that may be of either kind; what is read there was just stored
kernel void generic_select(global int* a, global int* b, int n) {
  int mine = n;
  int* p = n > 2 ? &mine : (int*)a;
  *p = b[0];
  b[get_global_id(0)] = *p;
}
// pure w
kernel void index_from_variable(global int* to) { to[kept] = 1; }
// effects r
kernel void changes_a_variable(global const int* from) { kept = from[0]; }
// effects Wr
kernel void group_sum(global int* to, global const int* from) {
  to[get_global_id(0)] = work_group_reduce_add(from[get_global_id(0)]);
}
// effects wr
kernel void group_scan_as_index(global int* to, global const int* from) {
  to[work_group_scan_exclusive_add(from[get_global_id(0)])] = 1;
}
// pure Wu
kernel void new_atomics(global int* to, global atomic_int* count) {
  atomic_fetch_add_explicit(count, 1, memory_order_relaxed, memory_scope_device);
  to[get_global_id(0)] = 1;
}
// pure L
kernel void enqueued_size(global int* to) { to[get_enqueued_local_size(0)] = 1; }
