// SPDX-License-Identifier: Apache-2.0
// Kernels, and before each what swapmm-kernel-facts says of it. See run.py.

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

typedef struct { int count; float factors[3]; } Options;
constant int table[4] = {3, 1, 0, 2};

// ---- who is read and written

// pure Wr
kernel void copied(global float* to, global float* from) { to[get_global_id(0)] = from[get_global_id(0)]; }
// pure u
kernel void grown(global float* a) { a[get_global_id(0)] *= 2.0f; }
// pure W  the const is cast away
kernel void const_cast_away(global const float* a) { ((global float*)a)[get_global_id(0)] = 1.0f; }
// pure -
kernel void value_is_not_used(global float* a) { float unused = a[get_global_id(0)]; }
// pure -v
kernel void not_used(global float* a, int n) {}
// pure .
kernel void no_arguments() {}
// pure rWs  a table in constant memory of an argument
kernel void from_constant(constant float* from, global float* to, int n) {
  if ((int)get_global_id(0) < n) to[get_global_id(0)] = from[get_global_id(0) & 7];
}
// pure WWs  chosen by local memory that nobody has written: anything, so anything may be said
kernel void select_of_two_by_data(global int* a, global int* b, local int* chosen) {
  global int* p = chosen[0] ? a : b;
  *p = 1;
}
// pure WWs
kernel void select_of_two(global int* a, global int* b, int which) {
  global int* p = which ? a : b;
  p[get_global_id(0)] = 1;
}
// pure wwr
kernel void select_of_two_by_buffer(global int* a, global int* b, global const int* which) {
  global int* p = which[0] ? a : b;
  p[get_global_id(0)] = 1;
}
// pure Wr  what is read from a select of two is read from both
kernel void reads_itself_never(global int* a, global int* b) { a[get_global_id(0)] = b[a == 0 ? 0 : 1]; }
// pure urv
kernel void reads_from_select(global int* a, global int* b, int which) {
  global int* p = which ? a : b;
  a[get_global_id(0)] = p[3];
}
// effects uv  a pointer that a function of unknown kind gets
kernel void prints_address(global int* a, int n) { printf("%p", a); }
// effects W
kernel void prints(global int* a) {
  a[get_global_id(0)] = 1;
  printf("%d\n", (int)get_global_id(0));
}
// effects uv  pointers in an array that is indexed at run time
kernel void stored_pointers(global int* a, int n) {
  global int* pointers[4];
  for (int i = 0; i < 4; ++i) pointers[i] = a + i * n;
  pointers[n & 3][0] = 1;
}
// pure u  its address as a number
kernel void address_as_number(global int* a) { if ((size_t)a & 64) a[get_global_id(0)] = 1; }

// ---- where is written

// pure wr
kernel void index_from_data(global int* to, global const int* index) { to[index[get_global_id(0)]] = 1; }
// pure wr
kernel void masked(global int* to, global const int* mask) { if (mask[get_global_id(0)]) to[get_global_id(0)] = 1; }
// pure wr
kernel void early_return(global int* to, global const int* mask) {
  if (mask[get_global_id(0)] == 0) return;
  to[get_global_id(0)] = 1;
}
// pure wr
kernel void loop_bound_from_data(global int* to, global const int* count) {
  for (int i = 0; i < count[0]; ++i) to[i] = 1;
}
// pure wr  the loop stops because of data, and the store uses where it stopped
kernel void where_a_loop_stopped(global int* to, global const int* from) {
  int i = 0;
  while (i < 100 && from[i] != 7) ++i;
  to[i] = 1;
}
// pure Wr  the loop stops because of data, and the store does not use it
kernel void after_a_loop(global int* to, global const int* from) {
  int sum = 0;
  for (int i = 0; i < from[0]; ++i) sum += from[i];
  to[get_global_id(0)] = sum;
}
// pure wr
kernel void breaks_out(global int* to, global const int* from) {
  for (int i = 0; i < 100; ++i) {
    to[i] = 1;
    if (from[i] == 3) break;
  }
}
// pure wr
kernel void goes_on(global int* to, global const int* from) {
  for (int i = 0; i < 100; ++i) {
    if (from[i] == 3) continue;
    to[i] = 1;
  }
}
// pure wr
kernel void counted_by_data(global int* to, global const int* from) {
  int at = 0;
  for (int i = 0; i < 64; ++i) {
    if (from[i] > 0) ++at;
    to[at + i * 64] = i;
  }
}
// pure wr
kernel void switched(global int* to, global const int* from) {
  switch (from[0]) {
    case 0: to[1] = 1; break;
    case 1: to[7] = 2; break;
    default: to[9] = 3;
  }
}
// pure Wr  both ways write the same place
kernel void both_ways(global int* to, global const int* from) {
  if (from[get_global_id(0)] > 0) to[get_global_id(0)] = 1; else to[get_global_id(0)] = 2;
}
// pure Wrs
kernel void bound_is_scalar(global float* to, global const float* from, int n) {
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) to[i] = from[i];
}
// pure Ws  by a table of the program
kernel void index_from_table(global int* to, int n) { to[table[n & 3] + 4 * get_global_id(0)] = n; }
// pure Ws  by a structure of scalars
kernel void index_from_structure(global float* to, Options options) {
  to[get_global_id(0) * options.count] = options.factors[options.count % 3];
}
// pure wr
kernel void index_from_float(global int* to, global const float* from) { to[(int)sqrt(from[0])] = 1; }
// pure Ws
kernel void index_from_calculation(global int* to, float x) { to[(int)sqrt(x) + (int)get_global_id(0)] = 1; }

// ---- values that decide where is written, and those that do not

// pure Wrvs
kernel void scaled(global float* to, global const float* from, float by, int n) {
  int i = get_global_id(0);
  if (i < n) to[i] = from[i] * by;
}
// pure Wrv  how often the loop runs decides a value only
kernel void summed(global float* to, global const float* from, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += from[i];
  to[get_global_id(0)] = sum;
}
// pure Ws  where the loop stopped
kernel void stopped_at(global int* to, int n) {
  int i = 0;
  while (i * i < n) ++i;
  to[i] = 1;
}
// pure Wv  both ways write the same place
kernel void either_way(global int* to, int n) {
  if (n > 3) to[get_global_id(0)] = 1; else to[get_global_id(0)] = 2;
}
// pure Ws
kernel void returns_early(global int* to, int n) {
  if (n == 3) return;
  to[get_global_id(0)] = 1;
}
// pure Wsv  by way of a private array
kernel void place_from_array(global int* to, int n, int value) {
  int places[8];
  for (int i = 0; i < 8; ++i) places[i] = i * n;
  to[places[get_global_id(0) & 7]] = value;
}
// pure Lssv  by way of local memory
kernel void place_from_local(global int* to, local int* places, int n, int value) {
  places[get_local_id(0)] = n;
  barrier(CLK_LOCAL_MEM_FENCE);
  to[places[0] + get_global_id(0)] = value;
}
// pure Ws  which half of a vector
kernel void vector_part(global int* to, int2 at) { to[at.y + get_global_id(0)] = at.x; }
// pure WWsv  the place of one of two
kernel void one_of_two_places(global int* a, global int* b, int n, int m) {
  a[get_global_id(0) + n] = m;
  b[get_global_id(0)] = n;
}

// ---- private and local memory

// pure Wrv  the array has places of the loop, its values are data
kernel void values_by_private_array(global int* to, global const int* from, int n) {
  int part[16];
  for (int i = 0; i < 16; ++i) part[i] = from[i];
  for (int i = 0; i < 16; ++i) to[i] = part[(i * n) & 15];
}
// pure Ws
kernel void index_from_private_array(global int* to, int n) {
  int part[16];
  for (int i = 0; i < 16; ++i) part[i] = i ^ n;
  to[part[n & 15]] = 1;
}
// pure wrv
kernel void data_from_private_array(global int* to, global const int* from, int n) {
  int part[16];
  for (int i = 0; i < 16; ++i) part[i] = i ^ n;
  part[n & 7] = from[0];
  to[part[n & 15]] = 1;
}
// pure wrv
kernel void private_array_at_data(global int* to, global const int* from, int n) {
  int part[16];
  for (int i = 0; i < 16; ++i) part[i] = i ^ n;
  part[from[0] & 15] = 0;
  to[part[n & 15]] = 1;
}
// pure Lrs  values by local memory; the places are those of the group
kernel void values_by_local_memory(global int* to, global const int* from, local int* part) {
  part[get_local_id(0)] = from[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  to[get_group_id(0) * get_local_size(0) + get_local_id(0)] = part[0];
}
// pure Wr
kernel void values_by_local_array(global int* to, global const int* from) {
  local int part[64];
  part[get_local_id(0)] = from[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  to[get_global_id(0)] = part[get_local_id(0) ^ 1];
}
// pure wr  stored to local memory, then used as an index
kernel void index_by_local_array(global int* to, global const int* from) {
  local int part[64];
  part[get_local_id(0)] = from[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  to[part[0]] = 1;
}
// pure L
kernel void group_leader(global int* to) { if (get_local_id(0) == 0) to[get_group_id(0)] = 1; }
// pure Lrs
kernel void reduced(global float* to, global const float* from, local float* part) {
  part[get_local_id(0)] = from[get_global_id(0)];
  for (int i = get_local_size(0) / 2; i > 0; i /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) < i) part[get_local_id(0)] += part[get_local_id(0) + i];
  }
  if (get_local_id(0) == 0) to[get_group_id(0)] = part[0];
}
// pure wr
kernel void local_atomic(global int* to, global const int* from) {
  local int count;
  if (get_local_id(0) == 0) count = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (from[get_global_id(0)] > 0) to[atomic_inc(&count)] = 1;
}
// pure w  the order of the work items decides
kernel void local_ticket(global int* to) {
  local int count;
  if (get_local_id(0) == 0) count = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  to[atomic_inc(&count)] = 1;
}

// ---- functions

void put(global int* to, int at, int value) { to[at] = value; }
__attribute__((noinline)) void put_far(global int* to, int at, int value) { put(to, at, value); }
__attribute__((noinline)) int get_far(global const int* from, int at) { return from[at]; }
// pure Wr
kernel void calls(global int* to, global const int* from) { put(to, get_global_id(0), get_far(from, 3)); }
// pure wr
kernel void calls_far(global int* to, global const int* from) { put_far(to, get_far(from, 3), 1); }
// pure Wr
kernel void calls_a_kernel(global int* to, global const int* from) {
  to[5] = 1;
  calls(to, from);
}

// ---- functions of the language

// pure W
kernel void vector_stored(global float* to) { vstore4((float4)(1.0f), get_global_id(0), to); }
// pure Wr
kernel void vector_loaded(global float* to, global const float* from) {
  vstore4(vload4(get_global_id(0), from), get_global_id(0), to);
}
// pure wr
kernel void vector_at_data(global float* to, global const int* from) { vstore3((float3)(1.0f), from[0], to); }
// pure Wr
kernel void half_stored(global half* to, global const half* from) { vstore_half(vload_half(get_global_id(0), from), get_global_id(0), to); }
// pure Wr
kernel void whole_vectors(global float4* to, global const float4* from) {
  to[get_global_id(0)] = fma(from[get_global_id(0)], (float4)(2.0f), from[0]);
}
// pure u  the compiler makes it a whole one
kernel void part_of_a_vector(global float4* to) { to[get_global_id(0)].xz = (float2)(1.0f, 2.0f); }
// pure Lrs
kernel void copied_by_group(global float* to, global const float* from, local float* part) {
  event_t done = async_work_group_copy(part, from + get_group_id(0) * 64, 64, 0);
  wait_group_events(1, &done);
  done = async_work_group_copy(to + get_group_id(0) * 64, part, 64, 0);
  wait_group_events(1, &done);
}
// pure wsr
kernel void copied_by_group_as_data_says(global float* to, local float* part, global const int* count) {
  event_t done = async_work_group_copy(to, part, count[0], 0);
  wait_group_events(1, &done);
}
// pure ur
kernel void counted(global int* count, global const int* from) { if (from[get_global_id(0)]) atomic_add(count, 1); }
// pure wu
kernel void compacted(global int* to, global int* count) { to[atomic_inc(count)] = get_global_id(0); }
// pure Wu  the other argument's counter decides nothing here
kernel void counts_beside(global int* to, global int* count) {
  atomic_inc(count);
  to[get_global_id(0)] = 1;
}
// pure ssW
kernel void from_image(read_only image2d_t from, sampler_t how, global float4* to) {
  to[get_global_id(0)] = read_imagef(from, how, (int2)(get_global_id(0), 0));
}
// pure sw
kernel void as_wide_as_an_image(read_only image2d_t from, global float* to) { to[get_image_width(from)] = 1; }
// effects sr
kernel void to_image(write_only image2d_t to, global const float4* from) {
  write_imagef(to, (int2)(get_global_id(0), 0), from[get_global_id(0)]);
}
// pure Wr
kernel void prefetched(global float* to, global const float* from) {
  prefetch(from + get_global_id(0), 1);
  to[get_global_id(0)] = from[get_global_id(0)];
}
// pure Wr  conditions on NaN are conditions on data, whatever the options
kernel void sincos_to_private(global float* to, global const float* from) {
  float c;
  float s = sincos(from[get_global_id(0)], &c);
  to[get_global_id(0)] = s + c;
}
// pure ur
kernel void sincos_to_argument(global float* to, global const float* from) { sincos(from[0], &to[get_global_id(0)]); }

// ---- addresses

// pure WWv
kernel void null_or_not(global int* to, global int* maybe, int n) {
  to[get_global_id(0)] = n;
  if (maybe) maybe[get_global_id(0)] = n;
}
// pure WW
kernel void two_null_or_not(global int* to, global int* maybe) {
  to[get_global_id(0)] = maybe == 0;
  if (maybe) maybe[get_global_id(0)] = 1;
}
// pure Ws
kernel void until_pointer(global int* to, int n) {
  for (global int* p = to; p != to + n; ++p) *p = 1;
}
// pure ww  which of two is first in memory
kernel void compared(global int* a, global int* b) {
  if (a < b) a[0] = 1; else b[0] = 1;
}
// pure Wr
kernel void structures(global Options* to, global const Options* from) { to[get_global_id(0)] = from[get_global_id(0)]; }
// pure W
kernel void cleared(global int* to) {
  for (int i = 0; i < 64; ++i) to[get_global_id(0) * 64 + i] = 0;
}
// pure wr
kernel void cleared_as_data_says(global int* to, global const int* from) {
  for (int i = 0; i < from[0]; ++i) to[i] = 0;
}
