// Elementwise functions of integers of any width, in 64 bits. Signed operands come sign-extended,
// and results keep their low `bits`; i1 is an unsigned integer of one bit.
#include "softtpu/reference_internal.h"

// The low `bits` bits.
static uint64_t mask(unsigned bits) { return UINT64_MAX >> (64 - bits); }
static uint64_t sign_extend(uint64_t x, unsigned bits) {
  return (uint64_t)((int64_t)(x << (64 - bits)) >> (64 - bits));
}

static uint64_t add(uint64_t x, uint64_t y, unsigned bits) {
  return bits == 1 ? x | y : x + y;  // the sum of predicates is "or"
}
static uint64_t subtract(uint64_t x, uint64_t y, unsigned bits) { return (x - y) & mask(bits); }
static uint64_t multiply(uint64_t x, uint64_t y, unsigned bits) {
  (void)bits;
  return x * y;
}
static uint64_t and_bits(uint64_t x, uint64_t y, unsigned bits) {
  (void)bits;
  return x & y;
}
static uint64_t or_bits(uint64_t x, uint64_t y, unsigned bits) {
  (void)bits;
  return x | y;
}
static uint64_t xor_bits(uint64_t x, uint64_t y, unsigned bits) {
  (void)bits;
  return x ^ y;
}

// What the specification leaves open is as reference.h says: x / 0 is all ones, x % 0 is x.
static uint64_t divide_signed(uint64_t x, uint64_t y, unsigned bits) {
  (void)bits;
  if (y == 0) return UINT64_MAX;
  if (y == UINT64_MAX) return UINT64_C(0) - x;  // INT_MIN / -1 wraps to INT_MIN
  return (uint64_t)((int64_t)x / (int64_t)y);
}
static uint64_t divide_unsigned(uint64_t x, uint64_t y, unsigned bits) {
  (void)bits;
  return y == 0 ? UINT64_MAX : x / y;
}
static uint64_t remainder_signed(uint64_t x, uint64_t y, unsigned bits) {
  (void)bits;
  if (y == 0) return x;
  if (y == UINT64_MAX) return 0;
  return (uint64_t)((int64_t)x % (int64_t)y);
}
static uint64_t remainder_unsigned(uint64_t x, uint64_t y, unsigned bits) {
  (void)bits;
  return y == 0 ? x : x % y;
}

static uint64_t maximum_signed(uint64_t x, uint64_t y, unsigned bits) {
  (void)bits;
  return (int64_t)x > (int64_t)y ? x : y;
}
static uint64_t maximum_unsigned(uint64_t x, uint64_t y, unsigned bits) {
  (void)bits;
  return x > y ? x : y;
}
static uint64_t minimum_signed(uint64_t x, uint64_t y, unsigned bits) {
  (void)bits;
  return (int64_t)x < (int64_t)y ? x : y;
}
static uint64_t minimum_unsigned(uint64_t x, uint64_t y, unsigned bits) {
  (void)bits;
  return x < y ? x : y;
}

// By squaring; wraps.
static uint64_t power_unsigned(uint64_t x, uint64_t y, unsigned bits) {
  (void)bits;
  uint64_t result = 1;
  for (; y; y >>= 1, x *= x) {
    if (y & 1) result *= x;
  }
  return result;
}
// A negative exponent gives the reciprocal truncated: 1 for 1, +-1 for -1, else 0.
static uint64_t power_signed(uint64_t x, uint64_t y, unsigned bits) {
  if ((int64_t)y >= 0) return power_unsigned(x, y, bits);
  if (x == 1) return 1;
  if (x == UINT64_MAX) return y & 1 ? UINT64_MAX : 1;
  return 0;
}

// Amounts are unsigned: a negative one is past the width. The result is 0, or the sign for an
// arithmetic shift right.
static uint64_t shift_left(uint64_t x, uint64_t y, unsigned bits) {
  y &= mask(bits);
  return y >= bits ? 0 : x << y;
}
static uint64_t shift_right_logical(uint64_t x, uint64_t y, unsigned bits) {
  y &= mask(bits);
  return y >= bits ? 0 : (x & mask(bits)) >> y;
}
static uint64_t shift_right_arithmetic(uint64_t x, uint64_t y, unsigned bits) {
  y &= mask(bits);
  return (uint64_t)((int64_t)sign_extend(x, bits) >> (y >= bits ? bits - 1 : y));
}

static uint64_t absolute(uint64_t x, unsigned bits) {
  (void)bits;
  return (int64_t)x < 0 ? UINT64_C(0) - x : x;
}
static uint64_t same(uint64_t x, unsigned bits) {
  (void)bits;
  return x;
}
static uint64_t negate(uint64_t x, unsigned bits) { return (UINT64_C(0) - x) & mask(bits); }
static uint64_t invert(uint64_t x, unsigned bits) { return ~x & mask(bits); }
static uint64_t popcnt(uint64_t x, unsigned bits) {
  return (uint64_t)__builtin_popcountll(x & mask(bits));
}
static uint64_t count_leading_zeros(uint64_t x, unsigned bits) {
  x &= mask(bits);
  return x == 0 ? bits : (uint64_t)__builtin_clzll(x) - (64 - bits);
}
static uint64_t sign_signed(uint64_t x, unsigned bits) {
  (void)bits;
  return (int64_t)x < 0 ? UINT64_MAX : x != 0;
}
static uint64_t sign_unsigned(uint64_t x, unsigned bits) {
  (void)bits;
  return x != 0;
}

static const tt__ref_int1_t unary[TT_OP_COUNT][2] = {
    // unsigned, signed
    [TT_OP_ABS] = {same, absolute},
    [TT_OP_COUNT_LEADING_ZEROS] = {count_leading_zeros, count_leading_zeros},
    [TT_OP_NEGATE] = {negate, negate},
    [TT_OP_NOT] = {invert, invert},
    [TT_OP_POPCNT] = {popcnt, popcnt},
    [TT_OP_SIGN] = {sign_unsigned, sign_signed},
};

static const tt__ref_int2_t binary[TT_OP_COUNT][2] = {
    [TT_OP_ADD] = {add, add},
    [TT_OP_AND] = {and_bits, and_bits},
    [TT_OP_DIVIDE] = {divide_unsigned, divide_signed},
    [TT_OP_MAXIMUM] = {maximum_unsigned, maximum_signed},
    [TT_OP_MINIMUM] = {minimum_unsigned, minimum_signed},
    [TT_OP_MULTIPLY] = {multiply, multiply},
    [TT_OP_OR] = {or_bits, or_bits},
    [TT_OP_POWER] = {power_unsigned, power_signed},
    [TT_OP_REMAINDER] = {remainder_unsigned, remainder_signed},
    [TT_OP_SHIFT_LEFT] = {shift_left, shift_left},
    [TT_OP_SHIFT_RIGHT_ARITHMETIC] = {shift_right_arithmetic, shift_right_arithmetic},
    [TT_OP_SHIFT_RIGHT_LOGICAL] = {shift_right_logical, shift_right_logical},
    [TT_OP_SUBTRACT] = {subtract, subtract},
    [TT_OP_XOR] = {xor_bits, xor_bits},
};

tt__ref_int1_t tt__ref_int1(tt_op_t op, bool is_signed) { return unary[op][is_signed]; }
tt__ref_int2_t tt__ref_int2(tt_op_t op, bool is_signed) { return binary[op][is_signed]; }
