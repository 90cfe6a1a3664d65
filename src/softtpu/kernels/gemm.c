// Blocked matrix products of f32 and f64 on packed panels, after the scheme of Goto and van de
// Geijn: a panel of b (KC x NC) stays in the second-level cache, one of a (MC x KC) too, and the
// micro-kernel keeps MR rows by two vectors of c in registers while it runs down k. Packing makes
// both operands dense in the order in which they are read, pads the edges with zeros, and thereby
// takes transposed operands for free. Each element of c is summed over blocks of KC in order,
// whatever the shape of the rest.
#include <stddef.h>
#include <string.h>

#include "softtpu/kernels/kernels.h"
#if defined(__FMA__)
#include <immintrin.h>
#endif

// Vector bytes, rows of a register tile (its columns are two vectors).
#if defined(__AVX512F__)
enum { VECTOR = 64, MR = 12 };
#define VECTOR_BYTES 64
#define VFMA_float(a, b, c) ((vec_float)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define VFMA_double(a, b, c) ((vec_double)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#elif defined(__FMA__)
enum { VECTOR = 32, MR = 6 };
#define VECTOR_BYTES 32
#define VFMA_float(a, b, c) ((vec_float)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define VFMA_double(a, b, c) ((vec_double)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#else
enum { VECTOR = 16, MR = 4 };
#define VECTOR_BYTES 16
#define VFMA_float(a, b, c) ((a) * (b) + (c))
#define VFMA_double(a, b, c) ((a) * (b) + (c))
#endif

// KC rows of a tile's part of b, and of a, are what the first-level cache holds.
enum { KC = 256, MC = 120 };  // MC is a multiple of every MR

// vec is a value in registers, mem the same in memory at any alignment. Rows of the last tile that
// do not exist are computed and not stored.
#define GEMM(T, NC)                                                                               \
  typedef T vec_##T __attribute__((vector_size(VECTOR_BYTES)));                                   \
  typedef T mem_##T __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));    \
  enum { W_##T = VECTOR / (int)sizeof(T), NR_##T = 2 * W_##T };                                   \
                                                                                                  \
  static void pack_a_##T(const tt__gemm_t *g, int64_t i0, int64_t mc, int64_t p0, int64_t kc,     \
                         T *to) {                                                                 \
    const T *a = (const T *)g->a + i0 * g->a_row + p0 * g->a_col;                                 \
    for (int64_t i = 0; i < mc; i += MR) {                                                        \
      int64_t rows = mc - i < MR ? mc - i : MR;                                                   \
      for (int64_t r = 0; r < MR; r++) {                                                          \
        const T *row = a + (i + (r < rows ? r : 0)) * g->a_row;                                   \
        for (int64_t p = 0; p < kc; p++) to[p * MR + r] = r < rows ? row[p * g->a_col] : 0;       \
      }                                                                                           \
      to += MR * kc;                                                                              \
    }                                                                                             \
  }                                                                                               \
                                                                                                  \
  static void pack_b_##T(const tt__gemm_t *g, int64_t j0, int64_t nc, int64_t p0, int64_t kc,     \
                         T *to) {                                                                 \
    const T *b = (const T *)g->b + p0 * g->b_row + j0 * g->b_col;                                 \
    for (int64_t j = 0; j < nc; j += NR_##T) {                                                    \
      int64_t cols = nc - j < NR_##T ? nc - j : NR_##T;                                           \
      if (g->b_col == 1) {                                                                        \
        for (int64_t p = 0; p < kc; p++) {                                                        \
          const T *row = b + p * g->b_row + j;                                                    \
          T *out = to + p * NR_##T;                                                               \
          if (cols == NR_##T) {                                                                   \
            memcpy(out, row, sizeof(T) * NR_##T);                                                 \
            continue;                                                                             \
          }                                                                                       \
          for (int64_t c = 0; c < NR_##T; c++) out[c] = c < cols ? row[c] : 0;                    \
        }                                                                                         \
      } else {                                                                                    \
        for (int64_t c = 0; c < NR_##T; c++) {                                                    \
          const T *column = b + (j + (c < cols ? c : 0)) * g->b_col;                              \
          for (int64_t p = 0; p < kc; p++)                                                        \
            to[p * NR_##T + c] = c < cols ? column[p * g->b_row] : 0;                             \
        }                                                                                         \
      }                                                                                           \
      to += NR_##T * kc;                                                                          \
    }                                                                                             \
  }                                                                                               \
                                                                                                  \
  static void micro_##T(int64_t kc, const T *a, const T *b, T *c, int64_t c_row, int64_t rows,    \
                        int64_t cols, bool first) {                                               \
    vec_##T s0[MR], s1[MR];                                                                       \
    for (int r = 0; r < MR; r++) s0[r] = s1[r] = (vec_##T){0};                                    \
    for (int64_t p = 0; p < kc; p++, a += MR, b += NR_##T) {                                      \
      vec_##T b0 = *(const mem_##T *)(const void *)b;                                             \
      vec_##T b1 = *(const mem_##T *)(const void *)(b + W_##T);                                   \
      _Pragma("GCC unroll 16") for (int r = 0; r < MR; r++) {                                     \
        vec_##T x = a[r] - (vec_##T){0};                                                          \
        s0[r] = VFMA_##T(x, b0, s0[r]);                                                           \
        s1[r] = VFMA_##T(x, b1, s1[r]);                                                           \
      }                                                                                           \
    }                                                                                             \
    if (cols == NR_##T) {                                                                         \
      _Pragma("GCC unroll 16") for (int r = 0; r < MR; r++) {                                     \
        if (r >= rows) break;                                                                     \
        mem_##T *c0 = (mem_##T *)(void *)(c + r * c_row);                                         \
        mem_##T *c1 = (mem_##T *)(void *)(c + r * c_row + W_##T);                                 \
        *c0 = first ? s0[r] : (vec_##T) * c0 + s0[r];                                             \
        *c1 = first ? s1[r] : (vec_##T) * c1 + s1[r];                                             \
      }                                                                                           \
      return;                                                                                     \
    }                                                                                             \
    T edge[NR_##T];                                                                               \
    _Pragma("GCC unroll 16") for (int r = 0; r < MR; r++) {                                       \
      if (r >= rows) break;                                                                       \
      memcpy(edge, &s0[r], sizeof s0[r]);                                                         \
      memcpy(edge + W_##T, &s1[r], sizeof s1[r]);                                                 \
      for (int64_t j = 0; j < cols; j++)                                                          \
        c[r * c_row + j] = first ? edge[j] : c[r * c_row + j] + edge[j];                          \
    }                                                                                             \
  }                                                                                               \
                                                                                                  \
  /* One row: no packing, b is read once. */                                                      \
  static void row_##T(const tt__gemm_t *g) {                                                      \
    const T *a = g->a, *b = g->b;                                                                 \
    T *c = g->c;                                                                                  \
    for (int64_t i = 0; i < g->m; i++, a += g->a_row, c += g->c_row) {                            \
      if (g->b_col == 1) {                                                                        \
        for (int64_t j = 0; j < g->n; j++) c[j] = 0;                                              \
        for (int64_t p = 0; p < g->k; p++) {                                                      \
          T x = a[p * g->a_col];                                                                  \
          const T *row = b + p * g->b_row;                                                        \
          TT__IVDEP for (int64_t j = 0; j < g->n; j++) c[j] += x * row[j];                        \
        }                                                                                         \
        continue;                                                                                 \
      }                                                                                           \
      for (int64_t j = 0; j < g->n; j++) {                                                        \
        const T *column = b + j * g->b_col;                                                       \
        T s[8] = {0};                                                                             \
        int64_t p = 0;                                                                            \
        for (; p + 8 <= g->k; p += 8)                                                             \
          for (int q = 0; q < 8; q++) s[q] += a[(p + q) * g->a_col] * column[(p + q) * g->b_row]; \
        for (; p < g->k; p++) s[0] += a[p * g->a_col] * column[p * g->b_row];                     \
        c[j] = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));                 \
      }                                                                                           \
    }                                                                                             \
  }                                                                                               \
                                                                                                  \
  static void gemm_##T(const tt__gemm_t *g) {                                                     \
    if (g->m <= 2 || g->n * g->k <= 64) {                                                         \
      row_##T(g);                                                                                 \
      return;                                                                                     \
    }                                                                                             \
    T *pa = g->scratch, *pb = pa + MC * KC;                                                       \
    for (int64_t j0 = 0; j0 < g->n; j0 += NC) {                                                   \
      int64_t nc = g->n - j0 < NC ? g->n - j0 : NC;                                               \
      for (int64_t p0 = 0; p0 < g->k || p0 == 0; p0 += KC) {                                      \
        int64_t kc = g->k - p0 < KC ? g->k - p0 : KC;                                             \
        pack_b_##T(g, j0, nc, p0, kc, pb);                                                        \
        for (int64_t i0 = 0; i0 < g->m; i0 += MC) {                                               \
          int64_t mc = g->m - i0 < MC ? g->m - i0 : MC;                                           \
          pack_a_##T(g, i0, mc, p0, kc, pa);                                                      \
          for (int64_t j = 0; j < nc; j += NR_##T)                                                \
            for (int64_t i = 0; i < mc; i += MR)                                                  \
              micro_##T(kc, pa + i * kc, pb + j * kc, (T *)g->c + (i0 + i) * g->c_row + j0 + j,   \
                        g->c_row, mc - i < MR ? mc - i : MR, nc - j < NR_##T ? nc - j : NR_##T,   \
                        p0 == 0);                                                                 \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }

GEMM(float, 768)
GEMM(double, 320)
// Packed panels: a, then b with its last panel padded.
_Static_assert((MC * KC + KC * (768 + 32)) * sizeof(float) <= TT__GEMM_SCRATCH, "f32 panels");
_Static_assert((MC * KC + KC * (320 + 16)) * sizeof(double) <= TT__GEMM_SCRATCH, "f64 panels");

void TT__AT_LEVEL(tt__kernels_gemm)(tt__kernels_t *k) {
  k->gemm_f32 = gemm_float;
  k->gemm_f64 = gemm_double;
}
