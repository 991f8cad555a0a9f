/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the zero codec for one size of an element, after zero_kernels.h. Whoever includes this file defines
 * SWAPMM_ZERO_ELEMENT_BYTES as 1, 2, 4 or 8 before. It may be included once for each size.
 *
 * A group does one block; the first one does block `first`. Neighbouring work items touch neighbouring elements. */

#if SWAPMM_ZERO_ELEMENT_BYTES == 1
#define SWAPMM_ZERO_ELEMENT unsigned char
#define SWAPMM_ZERO_NAME(name) swapmm_zero_##name##_1
#elif SWAPMM_ZERO_ELEMENT_BYTES == 2
#define SWAPMM_ZERO_ELEMENT unsigned short
#define SWAPMM_ZERO_NAME(name) swapmm_zero_##name##_2
#elif SWAPMM_ZERO_ELEMENT_BYTES == 4
#define SWAPMM_ZERO_ELEMENT swapmm_zero_u32
#define SWAPMM_ZERO_NAME(name) swapmm_zero_##name##_4
#else
#define SWAPMM_ZERO_ELEMENT swapmm_zero_u64
#define SWAPMM_ZERO_NAME(name) swapmm_zero_##name##_8
#endif

/* Writes how many elements of each block are not zero: a sum over the group in the form of a tree. */
SWAPMM_KERNEL void SWAPMM_ZERO_NAME(count)(SWAPMM_GLOBAL const SWAPMM_ZERO_ELEMENT* plain,
                                           SWAPMM_GLOBAL swapmm_zero_u32* scratch, const swapmm_index n,
                                           const swapmm_index first) {
  SWAPMM_ZERO_SHARED swapmm_zero_u32 sums[SWAPMM_ZERO_GROUP];
  const int item = SWAPMM_ZERO_ITEM;
  const swapmm_index block = first + SWAPMM_ZERO_GROUP_INDEX, begin = block * SWAPMM_ZERO_BLOCK;
  swapmm_zero_u32 count = 0;
  for (int i = item; i < SWAPMM_ZERO_BLOCK; i += SWAPMM_ZERO_GROUP) {
    if (begin + i < n) count += plain[begin + i] != 0 ? 1 : 0;
  }
  sums[item] = count;
  SWAPMM_ZERO_BARRIER();
  for (int distance = SWAPMM_ZERO_GROUP / 2; distance > 0; distance /= 2) {
    if (item < distance) sums[item] += sums[item + distance];
    SWAPMM_ZERO_BARRIER();
  }
  if (item == 0) swapmm_zero_blocks(scratch, n)[block] = sums[0];
}

/* Writes what comes after the header: table, bitmap and values, or all elements where the form is raw. */
SWAPMM_KERNEL void SWAPMM_ZERO_NAME(pack)(SWAPMM_GLOBAL const SWAPMM_ZERO_ELEMENT* plain,
                                          SWAPMM_GLOBAL swapmm_zero_u32* encoded,
                                          SWAPMM_GLOBAL swapmm_zero_u32* scratch, const swapmm_index n,
                                          const swapmm_index first) {
  SWAPMM_ZERO_SHARED unsigned char set[SWAPMM_ZERO_BLOCK]; /* 1 for each element that is not zero */
  SWAPMM_ZERO_SHARED swapmm_zero_u32 words[SWAPMM_ZERO_GROUP];
  SWAPMM_ZERO_SHARED swapmm_zero_u32 places[SWAPMM_ZERO_GROUP];
  const int item = SWAPMM_ZERO_ITEM, raw = scratch[1] == SWAPMM_ZERO_RAW;
  const swapmm_index block = first + SWAPMM_ZERO_GROUP_INDEX, begin = block * SWAPMM_ZERO_BLOCK;
  SWAPMM_GLOBAL swapmm_zero_u32* const table = encoded + SWAPMM_ZERO_HEADER_WORDS;
  SWAPMM_GLOBAL swapmm_zero_u32* const bitmap = table + SWAPMM_ZERO_BLOCKS(n);
  const swapmm_index values_at =
      raw ? SWAPMM_ZERO_HEADER_WORDS * 4 : swapmm_zero_values_at(n, SWAPMM_ZERO_ELEMENT_BYTES);
  SWAPMM_GLOBAL SWAPMM_ZERO_ELEMENT* const values =
      (SWAPMM_GLOBAL SWAPMM_ZERO_ELEMENT*)encoded + values_at / SWAPMM_ZERO_ELEMENT_BYTES;

  for (int i = item; i < SWAPMM_ZERO_BLOCK; i += SWAPMM_ZERO_GROUP) {
    const SWAPMM_ZERO_ELEMENT element = begin + i < n ? plain[begin + i] : 0;
    if (raw && begin + i < n) values[begin + i] = element;
    set[i] = !raw && element != 0 ? 1 : 0;
  }
  SWAPMM_ZERO_BARRIER();
  swapmm_zero_u32 word = 0;
  for (int bit = 0; bit < 32; ++bit) word |= (swapmm_zero_u32)set[item * 32 + bit] << bit;
  const swapmm_zero_u32 count = SWAPMM_ZERO_BITS_SET(word);
  const swapmm_zero_u32 before = swapmm_zero_scan_u32(places, item, count);
  const swapmm_index place = block * (SWAPMM_ZERO_BLOCK / 32) + item;
  if (!raw && item == SWAPMM_ZERO_GROUP - 1) table[block] = before + count;
  if (!raw && place < SWAPMM_ZERO_BITMAP_WORDS(n)) bitmap[place] = word;
  if (!raw && place == 0 && bitmap + SWAPMM_ZERO_BITMAP_WORDS(n) < (SWAPMM_GLOBAL swapmm_zero_u32*)values) {
    bitmap[SWAPMM_ZERO_BITMAP_WORDS(n)] = 0; /* the gap before values of 8 bytes */
  }
  words[item] = word;
  places[item] = before;
  SWAPMM_ZERO_BARRIER();
  const swapmm_zero_u64 to = raw ? 0 : swapmm_zero_before_block(scratch, n, block);
  for (int i = item; i < SWAPMM_ZERO_BLOCK; i += SWAPMM_ZERO_GROUP) {
    const swapmm_zero_u32 those = words[i / 32], bit = (swapmm_zero_u32)1 << (i % 32);
    if ((those & bit) != 0) values[to + places[i / 32] + SWAPMM_ZERO_BITS_SET(those & (bit - 1))] = plain[begin + i];
  }
}

/* Writes all elements. begin_decode has checked the header against the memory. What is read of the table and of the
 * bitmap is checked before it is used as a position. An element that cannot be read becomes zero. */
SWAPMM_KERNEL void SWAPMM_ZERO_NAME(unpack)(SWAPMM_GLOBAL const swapmm_zero_u32* encoded,
                                            SWAPMM_GLOBAL SWAPMM_ZERO_ELEMENT* plain,
                                            SWAPMM_GLOBAL swapmm_zero_u32* scratch, const swapmm_index n,
                                            const swapmm_index first) {
  SWAPMM_ZERO_SHARED swapmm_zero_u32 words[SWAPMM_ZERO_GROUP];
  SWAPMM_ZERO_SHARED swapmm_zero_u32 places[SWAPMM_ZERO_GROUP];
  const int item = SWAPMM_ZERO_ITEM, raw = scratch[1] == SWAPMM_ZERO_RAW, packed = scratch[1] == SWAPMM_ZERO_BITMAP;
  const swapmm_zero_u64 nonzeros = scratch[2] + ((swapmm_zero_u64)scratch[3] << 32);
  const swapmm_index block = first + SWAPMM_ZERO_GROUP_INDEX, begin = block * SWAPMM_ZERO_BLOCK;
  SWAPMM_GLOBAL const swapmm_zero_u32* const table = encoded + SWAPMM_ZERO_HEADER_WORDS;
  SWAPMM_GLOBAL const swapmm_zero_u32* const bitmap = table + SWAPMM_ZERO_BLOCKS(n);
  const swapmm_index values_at =
      raw ? SWAPMM_ZERO_HEADER_WORDS * 4 : swapmm_zero_values_at(n, SWAPMM_ZERO_ELEMENT_BYTES);
  SWAPMM_GLOBAL const SWAPMM_ZERO_ELEMENT* const values =
      (SWAPMM_GLOBAL const SWAPMM_ZERO_ELEMENT*)encoded + values_at / SWAPMM_ZERO_ELEMENT_BYTES;

  const swapmm_index place = block * (SWAPMM_ZERO_BLOCK / 32) + item, rest = n - place * 32;
  const swapmm_zero_u32 all = rest >= 32 ? 0xffffffffu : rest <= 0 ? 0 : ((swapmm_zero_u32)1 << rest) - 1;
  const swapmm_zero_u32 read = packed && rest > 0 ? bitmap[place] : 0, word = read & all;
  const swapmm_zero_u32 count = SWAPMM_ZERO_BITS_SET(word);
  const swapmm_zero_u32 before = swapmm_zero_scan_u32(places, item, count);
  const int wrong_count = packed && item == SWAPMM_ZERO_GROUP - 1 && before + count != table[block];
  if (read != word || wrong_count) SWAPMM_ZERO_SET_BITS(scratch, SWAPMM_ZERO_STATUS_INCONSISTENT);
  words[item] = word;
  places[item] = before;
  SWAPMM_ZERO_BARRIER();
  const swapmm_zero_u64 from = packed ? swapmm_zero_before_block(scratch, n, block) : 0;
  for (int i = item; i < SWAPMM_ZERO_BLOCK; i += SWAPMM_ZERO_GROUP) {
    const swapmm_zero_u32 those = words[i / 32], bit = (swapmm_zero_u32)1 << (i % 32);
    const swapmm_zero_u64 at = from + places[i / 32] + SWAPMM_ZERO_BITS_SET(those & (bit - 1));
    if (begin + i < n) {
      plain[begin + i] = raw ? values[begin + i] : (those & bit) != 0 && at < nonzeros ? values[at] : 0;
    }
  }
}

#undef SWAPMM_ZERO_ELEMENT
#undef SWAPMM_ZERO_NAME
#undef SWAPMM_ZERO_ELEMENT_BYTES
