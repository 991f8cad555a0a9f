/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the zero codec that do not depend on the size of an element: one text, for OpenCL C and for CUDA C++.
 * <swapmm/codec/zero_format.hpp> describes the encoded form. zero_element_kernels.h has the other kernels.
 *
 * An encoding is four launches: count, scan_chunks, begin_encode, pack. A decoding is three: scan_chunks, begin_decode,
 * unpack. To move an encoded value is one. All have groups of SWAPMM_ZERO_GROUP work items. Barriers stand outside of
 * all conditions.
 *
 * The scratch memory is 32-bit words. Word 0 is the status of a decoding, word 1 the form, words 2 and 3 are the number
 * of elements that are not zero. Then there is for each chunk of blocks a number of 64 bits, and for each block one of
 * 32 bits: first the numbers of elements that are not zero, later those before the chunk, and those before the block in
 * its chunk. */
#include <swapmm/kernel.h>

#if defined(__OPENCL_C_VERSION__) || defined(__OPENCL_VERSION__)

#define SWAPMM_ZERO_FUNCTION static inline
#define SWAPMM_ZERO_SHARED __local    /* begins the declaration of an array that a group shares */
#define SWAPMM_ZERO_IN_SHARED __local /* qualifies what a pointer to it points to */
#define SWAPMM_ZERO_ITEM ((int)get_local_id(0))
#define SWAPMM_ZERO_GROUP_INDEX ((swapmm_index)get_group_id(0))
#define SWAPMM_ZERO_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define SWAPMM_ZERO_BITS_SET(word) popcount(word)
#define SWAPMM_ZERO_SET_BITS(place, bits) atomic_or(place, bits)
typedef unsigned long swapmm_zero_u64;

#elif defined(__CUDACC__)

#define SWAPMM_ZERO_FUNCTION inline __device__
#define SWAPMM_ZERO_SHARED __shared__
#define SWAPMM_ZERO_IN_SHARED
#define SWAPMM_ZERO_ITEM ((int)threadIdx.x)
#define SWAPMM_ZERO_GROUP_INDEX ((swapmm_index)blockIdx.x)
#define SWAPMM_ZERO_BARRIER() __syncthreads()
#define SWAPMM_ZERO_BITS_SET(word) ((unsigned)__popc(word))
#define SWAPMM_ZERO_SET_BITS(place, bits) atomicOr(place, bits)
typedef unsigned long long swapmm_zero_u64;

#endif /* on the host, whoever includes this file has defined them */

typedef unsigned int swapmm_zero_u32;

#define SWAPMM_ZERO_GROUP 128       /* work items of a group */
#define SWAPMM_ZERO_BLOCK 4096      /* elements of a block: 32 for each work item, that is one word of the bitmap */
#define SWAPMM_ZERO_CHUNK 1024      /* blocks of a chunk */
#define SWAPMM_ZERO_HEADER_WORDS 16 /* 32-bit words of the header */
#define SWAPMM_ZERO_SCRATCH_WORDS 4 /* 32-bit words of the scratch memory before the chunks */
#define SWAPMM_ZERO_MAGIC 0x31305a4d50415753 /* "SWAPMZ01" */

#define SWAPMM_ZERO_RAW 0u
#define SWAPMM_ZERO_BITMAP 1u
#define SWAPMM_ZERO_UNREADABLE 2u

#define SWAPMM_ZERO_STATUS_OTHER 1u        /* not the encoded form of such a tensor */
#define SWAPMM_ZERO_STATUS_TRUNCATED 2u    /* it does not fit the memory that it is said to be in */
#define SWAPMM_ZERO_STATUS_INCONSISTENT 4u /* table, bitmap and number of values contradict each other */

/* Numbers of blocks, of chunks, and of words of the bitmap. */
#define SWAPMM_ZERO_BLOCKS(n) (((n) + SWAPMM_ZERO_BLOCK - 1) / SWAPMM_ZERO_BLOCK)
#define SWAPMM_ZERO_CHUNKS(n) ((SWAPMM_ZERO_BLOCKS(n) + SWAPMM_ZERO_CHUNK - 1) / SWAPMM_ZERO_CHUNK)
#define SWAPMM_ZERO_BITMAP_WORDS(n) (((n) + 31) / 32)

/* Where the values begin, in bytes: at a multiple of 4, and of the size of an element. */
SWAPMM_ZERO_FUNCTION swapmm_index swapmm_zero_values_at(const swapmm_index n, const swapmm_index element_bytes) {
  const swapmm_index words = SWAPMM_ZERO_HEADER_WORDS + SWAPMM_ZERO_BLOCKS(n) + SWAPMM_ZERO_BITMAP_WORDS(n);
  return element_bytes == 8 ? (words + 1) / 2 * 8 : words * 4;
}

SWAPMM_ZERO_FUNCTION SWAPMM_GLOBAL swapmm_zero_u64* swapmm_zero_chunks(SWAPMM_GLOBAL swapmm_zero_u32* scratch) {
  return (SWAPMM_GLOBAL swapmm_zero_u64*)(scratch + SWAPMM_ZERO_SCRATCH_WORDS);
}
SWAPMM_ZERO_FUNCTION SWAPMM_GLOBAL swapmm_zero_u32* swapmm_zero_blocks(SWAPMM_GLOBAL swapmm_zero_u32* scratch,
                                                                       const swapmm_index n) {
  return scratch + SWAPMM_ZERO_SCRATCH_WORDS + 2 * SWAPMM_ZERO_CHUNKS(n);
}

/* How many elements before this block are not zero, once the scans are done. */
SWAPMM_ZERO_FUNCTION swapmm_zero_u64 swapmm_zero_before_block(SWAPMM_GLOBAL swapmm_zero_u32* scratch,
                                                              const swapmm_index n, const swapmm_index block) {
  return swapmm_zero_chunks(scratch)[block / SWAPMM_ZERO_CHUNK] + swapmm_zero_blocks(scratch, n)[block];
}

/* Prefix sums over the work items of a group (Hillis and Steele, 1986): returns the sum of `mine` of the items before
 * this one. Afterwards places[i] is the sum up to and with item i, so the last one is the sum of all. */
#define SWAPMM_ZERO_DEFINE_SCAN(name, number)                                                                 \
  SWAPMM_ZERO_FUNCTION number name(SWAPMM_ZERO_IN_SHARED number* places, const int item, const number mine) { \
    places[item] = mine;                                                                                      \
    SWAPMM_ZERO_BARRIER();                                                                                    \
    for (int distance = 1; distance < SWAPMM_ZERO_GROUP; distance *= 2) {                                     \
      const number before = item >= distance ? places[item - distance] : 0;                                   \
      SWAPMM_ZERO_BARRIER();                                                                                  \
      places[item] += before;                                                                                 \
      SWAPMM_ZERO_BARRIER();                                                                                  \
    }                                                                                                         \
    return places[item] - mine;                                                                               \
  }
SWAPMM_ZERO_DEFINE_SCAN(swapmm_zero_scan_u32, swapmm_zero_u32)
SWAPMM_ZERO_DEFINE_SCAN(swapmm_zero_scan_u64, swapmm_zero_u64)

/* The count of a block: from the scratch memory, or from the table of an encoded form, of which nothing is certain. */
SWAPMM_ZERO_FUNCTION swapmm_zero_u32 swapmm_zero_count_at(SWAPMM_GLOBAL const swapmm_zero_u32* counts,
                                                          const swapmm_index words, const swapmm_index place) {
  const swapmm_zero_u32 count = place < words ? counts[place] : 0;
  return count <= SWAPMM_ZERO_BLOCK ? count : SWAPMM_ZERO_BLOCK;
}

/* Replaces the counts of the blocks of a chunk by how many come before them in the chunk, and writes the chunk's sum.
 * The counts begin at word `at` of `counts`, which has `words` words; for an encoding they are in the scratch memory.
 * A group does one chunk; the first one does chunk `first`. */
SWAPMM_KERNEL void swapmm_zero_scan_chunks(SWAPMM_GLOBAL const swapmm_zero_u32* counts, const swapmm_index words,
                                           const swapmm_index at, SWAPMM_GLOBAL swapmm_zero_u32* scratch,
                                           const swapmm_index n, const swapmm_index first) {
  SWAPMM_ZERO_SHARED swapmm_zero_u32 places[SWAPMM_ZERO_GROUP];
  const int item = SWAPMM_ZERO_ITEM, each = SWAPMM_ZERO_CHUNK / SWAPMM_ZERO_GROUP;
  const swapmm_index chunk = first + SWAPMM_ZERO_GROUP_INDEX, blocks = SWAPMM_ZERO_BLOCKS(n);
  const swapmm_index begin = chunk * SWAPMM_ZERO_CHUNK + (swapmm_index)item * each;
  swapmm_zero_u32 sum = 0;
  for (int i = 0; i < each; ++i) {
    if (begin + i < blocks) sum += swapmm_zero_count_at(counts, words, at + begin + i);
  }
  swapmm_zero_u32 before = swapmm_zero_scan_u32(places, item, sum);
  for (int i = 0; i < each; ++i) {
    if (begin + i < blocks) {
      const swapmm_zero_u32 count = swapmm_zero_count_at(counts, words, at + begin + i);
      swapmm_zero_blocks(scratch, n)[begin + i] = before;
      before += count;
    }
  }
  if (item == SWAPMM_ZERO_GROUP - 1) swapmm_zero_chunks(scratch)[chunk] = before;
}

/* Replaces the sums of the chunks by how many elements that are not zero come before them, and returns the sum of all.
 * For one group. */
SWAPMM_ZERO_FUNCTION swapmm_zero_u64 swapmm_zero_scan_sums(SWAPMM_ZERO_IN_SHARED swapmm_zero_u64* places,
                                                           SWAPMM_GLOBAL swapmm_zero_u64* sums,
                                                           const swapmm_index chunks) {
  const int item = SWAPMM_ZERO_ITEM;
  swapmm_zero_u64 before = 0;
  for (swapmm_index begin = 0; begin < chunks; begin += SWAPMM_ZERO_GROUP) {
    const swapmm_index chunk = begin + item;
    const swapmm_zero_u64 sum = swapmm_zero_scan_u64(places, item, chunk < chunks ? sums[chunk] : 0);
    if (chunk < chunks) sums[chunk] = before + sum;
    before += places[SWAPMM_ZERO_GROUP - 1];
    SWAPMM_ZERO_BARRIER(); /* the next round overwrites the places */
  }
  return before;
}

/* Decides on the form, and writes the header. One group. */
SWAPMM_KERNEL void swapmm_zero_begin_encode(SWAPMM_GLOBAL swapmm_zero_u64* header,
                                            SWAPMM_GLOBAL swapmm_zero_u32* scratch, const swapmm_index n,
                                            const swapmm_index element_bytes) {
  SWAPMM_ZERO_SHARED swapmm_zero_u64 places[SWAPMM_ZERO_GROUP];
  const swapmm_zero_u64 nonzeros = swapmm_zero_scan_sums(places, swapmm_zero_chunks(scratch), SWAPMM_ZERO_CHUNKS(n));
  if (SWAPMM_ZERO_ITEM == 0) {
    const swapmm_zero_u64 raw = SWAPMM_ZERO_HEADER_WORDS * 4 + (swapmm_zero_u64)(n * element_bytes);
    const swapmm_zero_u64 packed =
        (swapmm_zero_u64)swapmm_zero_values_at(n, element_bytes) + nonzeros * (swapmm_zero_u64)element_bytes;
    const swapmm_zero_u32 form = packed < raw ? SWAPMM_ZERO_BITMAP : SWAPMM_ZERO_RAW;
    header[0] = SWAPMM_ZERO_MAGIC;
    header[1] = form;
    header[2] = (swapmm_zero_u64)n;
    header[3] = (swapmm_zero_u64)element_bytes;
    header[4] = SWAPMM_ZERO_BLOCK;
    header[5] = nonzeros;
    header[6] = packed < raw ? packed : raw;
    header[7] = 0;
    scratch[1] = form;
  }
}

/* Reads the header, of which nothing is certain, and writes the first four words of the scratch memory. `bytes` is the
 * size of the memory that the encoded form is in, at least a header. One group. */
SWAPMM_KERNEL void swapmm_zero_begin_decode(SWAPMM_GLOBAL const swapmm_zero_u64* header, const swapmm_index bytes,
                                            SWAPMM_GLOBAL swapmm_zero_u32* scratch, const swapmm_index n,
                                            const swapmm_index element_bytes) {
  SWAPMM_ZERO_SHARED swapmm_zero_u64 places[SWAPMM_ZERO_GROUP];
  const swapmm_zero_u64 counted = swapmm_zero_scan_sums(places, swapmm_zero_chunks(scratch), SWAPMM_ZERO_CHUNKS(n));
  if (SWAPMM_ZERO_ITEM == 0) {
    const swapmm_zero_u64 form = header[1], nonzeros = header[5];
    const swapmm_zero_u64 values_at = form == SWAPMM_ZERO_RAW
                                          ? SWAPMM_ZERO_HEADER_WORDS * 4
                                          : (swapmm_zero_u64)swapmm_zero_values_at(n, element_bytes);
    const swapmm_zero_u64 values = form == SWAPMM_ZERO_RAW ? (swapmm_zero_u64)n : nonzeros;
    swapmm_zero_u32 status = 0;
    if (header[0] != SWAPMM_ZERO_MAGIC || form > SWAPMM_ZERO_BITMAP || header[2] != (swapmm_zero_u64)n ||
        header[3] != (swapmm_zero_u64)element_bytes || header[4] != SWAPMM_ZERO_BLOCK || header[7] != 0) {
      status = SWAPMM_ZERO_STATUS_OTHER;
    } else if (nonzeros > (swapmm_zero_u64)n || (form == SWAPMM_ZERO_BITMAP && nonzeros != counted) ||
               header[6] != values_at + values * (swapmm_zero_u64)element_bytes) {
      status = SWAPMM_ZERO_STATUS_INCONSISTENT;
    } else if (header[6] > (swapmm_zero_u64)bytes) {
      status = SWAPMM_ZERO_STATUS_TRUNCATED;
    }
    scratch[0] = status;
    scratch[1] = status == 0 ? (swapmm_zero_u32)form : SWAPMM_ZERO_UNREADABLE;
    scratch[2] = (swapmm_zero_u32)nonzeros;
    scratch[3] = (swapmm_zero_u32)(nonzeros >> 32);
  }
}

/* Copies an encoded value, whose size its header tells, to another memory. `most` is the size of the smaller memory, at
 * least a header: a value that says that it is larger is copied up to there, and a decoding finds that out. `items` is
 * the number of all work items. Few groups keep a bus busy, and leave the rest of the device to others. */
SWAPMM_KERNEL void swapmm_zero_move(SWAPMM_GLOBAL const swapmm_zero_u64* from, SWAPMM_GLOBAL swapmm_zero_u64* to,
                                    const swapmm_index most, const swapmm_index items) {
  const swapmm_zero_u64 told = from[6], header = SWAPMM_ZERO_HEADER_WORDS * 4;
  const swapmm_zero_u64 bytes = told < header ? header : told < (swapmm_zero_u64)most ? told : (swapmm_zero_u64)most;
  const swapmm_index first = SWAPMM_ZERO_GROUP_INDEX * SWAPMM_ZERO_GROUP + SWAPMM_ZERO_ITEM;
  const swapmm_index words = (swapmm_index)(bytes / 8), rest = (swapmm_index)(bytes % 8);
  swapmm_index at = first;
  for (; at + 3 * items < words; at += 4 * items) { /* four on their way at a time */
    const swapmm_zero_u64 a = from[at], b = from[at + items], c = from[at + 2 * items], d = from[at + 3 * items];
    to[at] = a;
    to[at + items] = b;
    to[at + 2 * items] = c;
    to[at + 3 * items] = d;
  }
  for (; at < words; at += items) to[at] = from[at];
  if (first < rest) {
    ((SWAPMM_GLOBAL unsigned char*)(to + words))[first] = ((SWAPMM_GLOBAL const unsigned char*)(from + words))[first];
  }
}
