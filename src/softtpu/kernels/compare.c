// Comparisons into bytes of 0 and 1. Equality looks at bits where types have no NaN, so signed
// integers share the unsigned kernels. GT and GE are LT and LE with operands exchanged, which is
// right for NaN, too: every ordered comparison with one is false.
#include "softtpu/kernels/kernels.h"

#define EQUALITY(T)                          \
  TT__BINARY(equal_##T, T, uint8_t, x == y)  \
  TT__BINARY(differ_##T, T, uint8_t, x != y) \
  TT__UNARY(pred_##T, T, uint8_t, x != 0)
#define ORDER(T)                          \
  TT__BINARY(less_##T, T, uint8_t, x < y) \
  TT__BINARY(at_most_##T, T, uint8_t, x <= y)

EQUALITY(uint8_t)
EQUALITY(uint16_t)
EQUALITY(uint32_t)
EQUALITY(uint64_t)
EQUALITY(float)
EQUALITY(double)
ORDER(uint8_t)
ORDER(uint16_t)
ORDER(uint32_t)
ORDER(uint64_t)
ORDER(int8_t)
ORDER(int16_t)
ORDER(int32_t)
ORDER(int64_t)
ORDER(float)
ORDER(double)

#define SET(L, T, B)                  \
  k->compare[TT_EQ][L] = equal_##B;   \
  k->compare[TT_NE][L] = differ_##B;  \
  k->compare[TT_LT][L] = less_##T;    \
  k->compare[TT_LE][L] = at_most_##T; \
  k->to_pred[L] = pred_##B;

void TT__AT_LEVEL(tt__kernels_compare)(tt__kernels_t *k) {
  SET(TT__LANE_U8, uint8_t, uint8_t)
  SET(TT__LANE_S8, int8_t, uint8_t)
  SET(TT__LANE_U16, uint16_t, uint16_t)
  SET(TT__LANE_S16, int16_t, uint16_t)
  SET(TT__LANE_U32, uint32_t, uint32_t)
  SET(TT__LANE_S32, int32_t, uint32_t)
  SET(TT__LANE_U64, uint64_t, uint64_t)
  SET(TT__LANE_S64, int64_t, uint64_t)
  SET(TT__LANE_F32, float, float)
  SET(TT__LANE_F64, double, double)
}
