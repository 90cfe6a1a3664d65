// Places of the best element: NaN is better than any number, the first of equals stays. The row
// form finds the best value first, which vectorises, and then looks for its first place; the column
// form keeps value and place side by side.
#include "softtpu/kernels/kernels.h"

// `best` comes in as the best so far (or the first element): only what beats it takes its place, so
// tiles of a row can be searched one after another. For integers x != x is false and the NaN parts
// vanish.
#define ARG(name, T, BETTER)                                                           \
  static bool name##_row_##T(int64_t n, const void *src_, void *best_, int64_t *at) {  \
    const T *s = src_;                                                                 \
    T best = *(T *)best_, most = best;                                                 \
    int nan = 0;                                                                       \
    for (int64_t i = 0; i < n; i++) {                                                  \
      most = s[i] BETTER most ? s[i] : most;                                           \
      nan |= s[i] != s[i];                                                             \
    }                                                                                  \
    if (best != best || (!nan && !(most BETTER best))) return false;                   \
    int64_t i = 0;                                                                     \
    if (nan)                                                                           \
      while (s[i] == s[i]) i++;                                                        \
    else                                                                               \
      while (s[i] != most) i++;                                                        \
    *(T *)best_ = s[i];                                                                \
    *at = i;                                                                           \
    return true;                                                                       \
  }                                                                                    \
  static void name##_column_##T(int64_t n, const void *src_, void *best_, int64_t *at, \
                                int64_t row) {                                         \
    const T *s = src_;                                                                 \
    T *best = best_;                                                                   \
    TT__IVDEP for (int64_t i = 0; i < n; i++) {                                        \
      T x = s[i], b = best[i];                                                         \
      bool take = x BETTER b || (x != x && b == b);                                    \
      best[i] = take ? x : b;                                                          \
      at[i] = take ? row : at[i];                                                      \
    }                                                                                  \
  }
#define BOTH(T)      \
  ARG(largest, T, >) \
  ARG(smallest, T, <)
BOTH(uint8_t)
BOTH(int8_t)
BOTH(uint16_t)
BOTH(int16_t)
BOTH(uint32_t)
BOTH(int32_t)
BOTH(uint64_t)
BOTH(int64_t)
BOTH(float)
BOTH(double)

#define SET(L, T)                           \
  k->arg_row[1][L] = largest_row_##T;       \
  k->arg_row[0][L] = smallest_row_##T;      \
  k->arg_column[1][L] = largest_column_##T; \
  k->arg_column[0][L] = smallest_column_##T;

void TT__AT_LEVEL(tt__kernels_arg)(tt__kernels_t *k) {
  SET(TT__LANE_U8, uint8_t)
  SET(TT__LANE_S8, int8_t)
  SET(TT__LANE_U16, uint16_t)
  SET(TT__LANE_S16, int16_t)
  SET(TT__LANE_U32, uint32_t)
  SET(TT__LANE_S32, int32_t)
  SET(TT__LANE_U64, uint64_t)
  SET(TT__LANE_S64, int64_t)
  SET(TT__LANE_F32, float)
  SET(TT__LANE_F64, double)
}
