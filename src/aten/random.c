// Random numbers. Threefry-2x32 with 20 rounds: the key is the generator's seed, the counter is the
// element's position and the generator's offset, so a number depends on nothing else.
#include "aten/random.h"

#include <math.h>

#include "aten/emit.h"

static tt_value_t word(tt_build_t *b, uint32_t value) {
  return tt_emit_splat_int(b, TT_U32, 0, NULL, value);
}
static tt_value_t rotate(tt_build_t *b, tt_value_t x, uint32_t by) {
  return tt__or(b, tt_emit_binary(b, TT_OP_SHIFT_LEFT, x, word(b, by)),
                tt_emit_binary(b, TT_OP_SHIFT_RIGHT_LOGICAL, x, word(b, 32 - by)));
}

static void threefry(tt_build_t *b, tt_value_t k0, tt_value_t k1, tt_value_t *x0, tt_value_t *x1) {
  static const uint8_t rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const tt_value_t keys[3] = {k0, k1, tt__xor(b, tt__xor(b, k0, k1), word(b, 0x1BD11BDA))};
  *x0 = tt__add(b, *x0, k0);
  *x1 = tt__add(b, *x1, k1);
  for (uint32_t round = 0; round < 20; round++) {
    *x0 = tt__add(b, *x0, *x1);
    *x1 = tt__xor(b, rotate(b, *x1, rotations[round % 8]), *x0);
    if (round % 4 != 3) continue;
    uint32_t s = round / 4 + 1;
    *x0 = tt__add(b, *x0, keys[s % 3]);
    *x1 = tt__add(b, *x1, tt__add(b, keys[(s + 1) % 3], word(b, s)));
  }
}

// Bits [low, low + 32) of a ui64.
static tt_value_t half(tt_build_t *b, tt_value_t x, int64_t low) {
  if (low) {
    x = tt_emit_binary(b, TT_OP_SHIFT_RIGHT_LOGICAL, x, tt_emit_splat_int(b, TT_U64, 0, NULL, low));
  }
  x = tt__and(b, x, tt_emit_splat_int(b, TT_U64, 0, NULL, UINT32_MAX));
  return tt_emit_convert(b, x, TT_U32);
}

tt__random_t tt__random_begin(tt_lower_t *L) {
  tt_build_t *b = L->b;
  tt_value_t seed = tt_emit_convert(b, L->random(L, false), TT_U64);
  tt_value_t offset = tt_emit_convert(b, L->random(L, true), TT_U64);
  // Eight streams to an offset; the offset's upper bits go into the key.
  tt_value_t shifted =
      tt_emit_binary(b, TT_OP_SHIFT_LEFT, offset, tt_emit_splat_int(b, TT_U64, 0, NULL, 3));
  return (tt__random_t){half(b, seed, 0), tt__add(b, half(b, seed, 32), half(b, shifted, 32)),
                        half(b, shifted, 0)};
}

// Both words of one block serve two elements, the second half of them after the first.
tt_value_t tt__random_bits(tt_build_t *b, const tt__random_t *r, uint32_t rank, const int64_t *dims,
                           uint32_t stream) {
  int64_t n = tt__product(dims, rank), pairs = (n + 1) / 2;
  if (n == 0) return tt_emit_splat_int(b, TT_U32, rank, dims, 0);
  tt_value_t words[2] = {
      tt_emit_iota(b, TT_U32, 1, &pairs, 0),
      tt_emit_broadcast_to(b, tt__add(b, r->counter, word(b, stream)), 1, &pairs)};
  threefry(b, r->key0, r->key1, &words[0], &words[1]);
  if (n == 1) return tt_emit_reshape(b, words[0], rank, dims);
  tt_value_t all = tt_emit_concat(b, words, 2, 0);
  if (n % 2) all = tt_emit_slice_dim(b, all, 0, 0, n, 1);
  return tt_emit_reshape(b, all, rank, dims);
}
tt__random_t tt__random_salt(tt_build_t *b, const tt__random_t *r, tt_value_t number) {
  tt_value_t salt = tt__mul(b, tt_emit_convert(b, number, TT_U32), word(b, 0x9E3779B9));
  return (tt__random_t){r->key0, tt__xor(b, r->key1, tt__add(b, salt, word(b, 0x7F4A7C15))),
                        r->counter};
}

static tt_value_t shift_right(tt_build_t *b, tt_value_t x, int64_t by) {
  return tt_emit_binary(b, TT_OP_SHIFT_RIGHT_LOGICAL, x,
                        tt_emit_splat_int(b, tt_build_dtype(b, x), 0, NULL, by));
}
// 64 bits from two streams.
tt_value_t tt__random_bits64(tt_build_t *b, const tt__random_t *r, uint32_t rank,
                             const int64_t *dims, uint32_t stream) {
  tt_value_t high = tt_emit_convert(b, tt__random_bits(b, r, rank, dims, stream), TT_U64);
  tt_value_t low = tt_emit_convert(b, tt__random_bits(b, r, rank, dims, stream + 1), TT_U64);
  tt_value_t up = tt_emit_splat_int(b, TT_U64, 0, NULL, 32);
  return tt__or(b, tt_emit_binary(b, TT_OP_SHIFT_LEFT, high, up), low);
}

tt_value_t tt__random_uniform(tt_build_t *b, const tt__random_t *r, tt_dtype_t dtype, uint32_t rank,
                              const int64_t *dims, uint32_t stream) {
  if (dtype == TT_F64) {
    tt_value_t bits = shift_right(b, tt__random_bits64(b, r, rank, dims, stream), 11);
    return tt__mulc(b, tt_emit_convert(b, bits, TT_F64), 0x1p-53);
  }
  // As many bits as the type holds, so that rounding never reaches 1.
  int bits = dtype == TT_BF16 ? 8 : dtype == TT_F16 ? 11 : 24;
  tt_value_t x = shift_right(b, tt__random_bits(b, r, rank, dims, stream), 32 - bits);
  return tt__mulc(b, tt_emit_convert(b, x, TT_F32), ldexp(1, -bits));
}

// Box and Muller: a radius from one uniform number in (0, 1], an angle from another.
static void polar_pair(tt_build_t *b, tt_value_t u, tt_value_t v, tt_value_t *out_x,
                       tt_value_t *out_y) {
  tt_value_t radius = tt__sqrt(b, tt__mulc(b, tt__log(b, u), -2)), angle = tt__mulc(b, v, 2 * M_PI);
  *out_x = tt__mul(b, radius, tt__cos(b, angle));
  *out_y = tt__mul(b, radius, tt__sin(b, angle));
}
tt_value_t tt__random_normal(tt_build_t *b, const tt__random_t *r, tt_dtype_t dtype, uint32_t rank,
                             const int64_t *dims, uint32_t stream) {
  int64_t n = tt__product(dims, rank), pairs = (n + 1) / 2;
  tt_value_t u, v, words[2];
  if (n == 0) return tt_emit_splat(b, dtype == TT_F64 ? TT_F64 : TT_F32, rank, dims, 0);
  if (dtype == TT_F64) {
    u = tt__rsubc(b, 1, tt__random_uniform(b, r, TT_F64, 1, &pairs, stream));
    v = tt__random_uniform(b, r, TT_F64, 1, &pairs, stream + 2);
  } else {
    u = tt__random_bits(b, r, 1, &pairs, stream);
    u = tt__max(b, tt_emit_convert(b, u, TT_F32), tt_emit_scalar(b, TT_F32, 1));
    u = tt__mulc(b, u, 0x1p-32);
    v = tt__random_uniform(b, r, TT_F32, 1, &pairs, stream + 1);
  }
  polar_pair(b, u, v, &words[0], &words[1]);
  if (n == 1) return tt_emit_reshape(b, words[0], rank, dims);
  tt_value_t all = tt_emit_concat(b, words, 2, 0);
  if (n % 2) all = tt_emit_slice_dim(b, all, 0, 0, n, 1);
  return tt_emit_reshape(b, all, rank, dims);
}

tt_value_t tt_lower_uniform(tt_lower_t *L, tt_dtype_t dtype, uint32_t rank, const int64_t *dims,
                            uint32_t stream) {
  tt__random_t r = tt__random_begin(L);
  return tt__random_uniform(L->b, &r, dtype, rank, dims, stream);
}
