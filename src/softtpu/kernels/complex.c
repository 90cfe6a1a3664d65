// Complex arithmetic: c64 computes in f64 and rounds once, so products neither overflow nor cancel
// before their time. Parts lie interleaved, re then im.
#include "softtpu/kernels/kernels.h"

// GCC 12 fuses a vectorised x * y -+ z * w into fmaddsub whatever -ffp-contract says.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")
#endif

// Both operands are read before the result is written: d may be one of them.
#define COMPLEX_BINARY(name, F, re_expr, im_expr)                                       \
  static void name(int64_t n, void *d_, const void *a_, const void *b_, const void *c_, \
                   uint32_t mode) {                                                     \
    F *d = d_;                                                                          \
    const F *a = a_, *b = b_;                                                           \
    (void)c_;                                                                           \
    int64_t sa = mode & TT__MODE_A ? 0 : 2, sb = mode & TT__MODE_B ? 0 : 2;             \
    for (int64_t i = 0; i < n; i++) {                                                   \
      double xr = (double)a[i * sa], xi = (double)a[i * sa + 1];                        \
      double yr = (double)b[i * sb], yi = (double)b[i * sb + 1];                        \
      d[2 * i] = (F)(re_expr);                                                          \
      d[2 * i + 1] = (F)(im_expr);                                                      \
    }                                                                                   \
  }

// join runs backwards and so is right even where d begins where a does: places 2i and 2i + 1 of a
// have been read when place i of d covers them.
#define COMPLEX(F)                                                                            \
  COMPLEX_BINARY(add_##F, F, xr + yr, xi + yi)                                                \
  COMPLEX_BINARY(subtract_##F, F, xr - yr, xi - yi)                                           \
  COMPLEX_BINARY(multiply_##F, F, xr *yr - xi * yi, xr * yi + xi * yr)                        \
  static void negate_##F(int64_t n, void *d_, const void *a_, const void *b_, const void *c_, \
                         uint32_t mode) {                                                     \
    F *d = d_;                                                                                \
    const F *a = a_;                                                                          \
    TT__UNUSED_BC;                                                                            \
    TT__IVDEP for (int64_t i = 0; i < 2 * n; i++) d[i] = -a[i];                               \
  }                                                                                           \
  static void real_##F(int64_t n, void *d_, const void *a_, const void *b_, const void *c_,   \
                       uint32_t mode) {                                                       \
    F *d = d_;                                                                                \
    const F *a = a_;                                                                          \
    TT__UNUSED_BC;                                                                            \
    for (int64_t i = 0; i < n; i++) d[i] = a[2 * i];                                          \
  }                                                                                           \
  static void imag_##F(int64_t n, void *d_, const void *a_, const void *b_, const void *c_,   \
                       uint32_t mode) {                                                       \
    F *d = d_;                                                                                \
    const F *a = a_;                                                                          \
    TT__UNUSED_BC;                                                                            \
    for (int64_t i = 0; i < n; i++) d[i] = a[2 * i + 1];                                      \
  }                                                                                           \
  static void join_##F(int64_t n, void *d_, const void *a_, const void *b_, const void *c_,   \
                       uint32_t mode) {                                                       \
    F *d = d_;                                                                                \
    const F *a = a_, *b = b_;                                                                 \
    (void)c_;                                                                                 \
    int64_t sa = mode & TT__MODE_A ? 0 : 1, sb = mode & TT__MODE_B ? 0 : 1;                   \
    for (int64_t i = n; i-- > 0;) {                                                           \
      F re = a[i * sa], im = b[i * sb];                                                       \
      d[2 * i] = re;                                                                          \
      d[2 * i + 1] = im;                                                                      \
    }                                                                                         \
  }

COMPLEX(float)
COMPLEX(double)

// REAL, IMAG and COMPLEX are found under the complex type's lane.
#define SET(F, L)                          \
  k->op[TT_OP_ADD][L] = add_##F;           \
  k->op[TT_OP_SUBTRACT][L] = subtract_##F; \
  k->op[TT_OP_MULTIPLY][L] = multiply_##F; \
  k->op[TT_OP_NEGATE][L] = negate_##F;     \
  k->op[TT_OP_REAL][L] = real_##F;         \
  k->op[TT_OP_IMAG][L] = imag_##F;         \
  k->op[TT_OP_COMPLEX][L] = join_##F;

void TT__AT_LEVEL(tt__kernels_complex)(tt__kernels_t *k) {
  SET(float, TT__LANE_C64)
  SET(double, TT__LANE_C128)
}
