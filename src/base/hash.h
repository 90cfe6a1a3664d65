// 64-bit hashing for cache keys: fast on short inputs, good avalanche, not cryptographic.
#ifndef TT_BASE_HASH_H_
#define TT_BASE_HASH_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Where every hash starts: 2^64 over the golden ratio, an arbitrary number without structure.
#define TT_HASH_SEED UINT64_C(0x9e3779b97f4a7c15)

// Folds one word into a running hash: a 64x64 -> 128 bit multiply, high xor low, which mixes every
// bit of the input into every bit of the result. The rotated old hash on top keeps the history
// where the multiplication meets a zero.
static inline uint64_t tt_hash_word(uint64_t hash, uint64_t word) {
  __extension__ typedef unsigned __int128 u128;
  u128 p = (u128)(hash ^ word ^ UINT64_C(0xa0761d6478bd642f)) * UINT64_C(0xe7037ed1a0b428db);
  return (uint64_t)p ^ (uint64_t)(p >> 64) ^ (hash << 23 | hash >> 41);
}

// Depends on the bytes and their number alone: the tail's length fills the last word's top byte, so
// that trailing zeros count. Keys live in one process; byte order does not matter.
static inline uint64_t tt_hash_bytes(uint64_t hash, const void *data, size_t size) {
  const unsigned char *p = (const unsigned char *)data;
  uint64_t word;
  for (; size >= 8; p += 8, size -= 8) {
    memcpy(&word, p, 8);
    hash = tt_hash_word(hash, word);
  }
  word = (uint64_t)size << 56;
  memcpy(&word, p, size);
  return tt_hash_word(hash, word);
}

#endif  // TT_BASE_HASH_H_
