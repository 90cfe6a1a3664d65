// cholesky and triangular_solve by their textbook loops, in f64.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

// Matrices are widened to complex; `real` types skip the imaginary part, so that infinities do not
// turn into NaN by 0 * inf.
typedef struct field_s {
  bool real;
} field_t;

static tt_complex_t conjugate(tt_complex_t x) {
  tt_complex_t r = {x.re, -x.im};
  return r;
}

// x - y * z
static tt_complex_t minus_product(field_t field, tt_complex_t x, tt_complex_t y, tt_complex_t z) {
  tt_complex_t r = {x.re - y.re * z.re, 0};
  if (field.real) return r;
  r.re += y.im * z.im;
  r.im = x.im - y.re * z.im - y.im * z.re;
  return r;
}

static tt_complex_t quotient(field_t field, tt_complex_t x, tt_complex_t y) {
  if (!field.real) return tt__ref_complex2(TT_OP_DIVIDE)(x, y);
  tt_complex_t r = {x.re / y.re, 0};
  return r;
}

// All matrices of a batch; caller frees. NULL: no memory.
static tt_complex_t *load_matrices(const tt_type_t *type, const void *data) {
  int64_t count = tt_type_elements(type);
  tt_complex_t *wide = (tt_complex_t *)tt_alloc(sizeof(tt_complex_t) * ((size_t)count + 1));
  if (!wide) return NULL;
  tt_element_convert(type->dtype, data, count, TT_C128, wide);
  return wide;
}

static void store_matrices(const tt_type_t *type, const tt_complex_t *wide, void *data) {
  tt_element_convert(TT_C128, wide, tt_type_elements(type), type->dtype, data);
}

static int64_t batch_count(const tt_type_t *type) {
  int64_t count = 1;
  for (uint32_t d = 0; d + 2 < type->rank; d++) count *= type->dims[d];
  return count;
}

// The lower factor L of a = L L^H from a's lower triangle, in place; false where a is not positive
// definite.
static bool factor_lower(field_t field, int64_t n, tt_complex_t *a) {
  for (int64_t j = 0; j < n; j++) {
    for (int64_t i = j; i < n; i++) {
      tt_complex_t sum = a[i * n + j];
      for (int64_t k = 0; k < j; k++) {
        sum = minus_product(field, sum, a[i * n + k], conjugate(a[j * n + k]));
      }
      if (i == j) {
        if (!(sum.re > 0)) return false;
        a[i * n + j] = (tt_complex_t){sqrt(sum.re), 0};
      } else {
        a[i * n + j] = (tt_complex_t){sum.re / a[j * n + j].re, sum.im / a[j * n + j].re};
      }
    }
  }
  return true;
}

// The conjugate transpose, in place.
static void adjoint(int64_t n, tt_complex_t *a) {
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j <= i; j++) {
      tt_complex_t swap = conjugate(a[i * n + j]);
      a[i * n + j] = conjugate(a[j * n + i]);
      a[j * n + i] = swap;
    }
  }
}

// The other triangle of the result is zero; a failed factor is NaN. The upper factor is the lower
// factor's adjoint, of the adjoint matrix: only the triangle that is asked for is read.
tt_status_t tt__ref_cholesky(const tt__ref_call_t *call) {
  const tt_type_t *type = tt__ref_in(call, 0);
  bool lower = tt_node_int(call->node, TT_ATTR_LOWER, 0) != 0;
  int64_t n = type->dims[type->rank - 1];
  field_t field = {!tt_dtype_is_complex(type->dtype)};
  tt_complex_t *wide = load_matrices(type, call->operands[0]);
  if (!wide) return tt__ref_no_memory(call->node);
  for (int64_t b = 0; b < batch_count(type); b++) {
    tt_complex_t *a = wide + b * n * n;
    if (!lower) adjoint(n, a);
    bool ok = factor_lower(field, n, a);
    for (int64_t i = 0; i < n; i++) {
      for (int64_t j = 0; j < n; j++) {
        if (j > i) a[i * n + j] = (tt_complex_t){0, 0};
        if (j <= i && !ok) a[i * n + j] = (tt_complex_t){(double)NAN, 0};
      }
    }
    if (!lower) adjoint(n, a);
  }
  store_matrices(type, wide, call->results[0]);
  tt_free(wide);
  return TT_OK_STATUS;
}

typedef struct solve_s {
  field_t field;
  bool lower, unit;
  tt_transpose_t transpose;
  int64_t n;
} solve_t;

// op(a)[i][j]
static tt_complex_t coefficient(const solve_t *s, const tt_complex_t *a, int64_t i, int64_t j) {
  if (s->transpose == TT_NO_TRANSPOSE) return a[i * s->n + j];
  tt_complex_t x = a[j * s->n + i];
  return s->transpose == TT_ADJOINT ? conjugate(x) : x;
}

// Solves op(a) x = b for one column; `step` is the distance of its elements. With `flip`, solves
// op(a)^T x = b: that is x op(a) = b for a row.
static void solve_vector(const solve_t *s, const tt_complex_t *a, bool flip, tt_complex_t *x,
                         int64_t step) {
  bool forward = (s->lower == (s->transpose == TT_NO_TRANSPOSE)) != flip;
  for (int64_t t = 0; t < s->n; t++) {
    int64_t i = forward ? t : s->n - 1 - t;
    tt_complex_t sum = x[i * step];
    for (int64_t u = 0; u < t; u++) {
      int64_t j = forward ? u : s->n - 1 - u;
      tt_complex_t c = flip ? coefficient(s, a, j, i) : coefficient(s, a, i, j);
      sum = minus_product(s->field, sum, c, x[j * step]);
    }
    x[i * step] = s->unit ? sum : quotient(s->field, sum, coefficient(s, a, i, i));
  }
}

// Column by column from the left, row by row from the right; a singular matrix gives infinities.
tt_status_t tt__ref_triangular_solve(const tt__ref_call_t *call) {
  const tt_node_t *node = call->node;
  const tt_type_t *a_type = tt__ref_in(call, 0), *b_type = tt__ref_in(call, 1);
  bool left = tt_node_int(node, TT_ATTR_LEFT_SIDE, 1) != 0;
  int64_t rows = b_type->dims[b_type->rank - 2], columns = b_type->dims[b_type->rank - 1];
  solve_t s = {
      .field = {!tt_dtype_is_complex(a_type->dtype)},
      .lower = tt_node_int(node, TT_ATTR_LOWER, 0) != 0,
      .unit = tt_node_int(node, TT_ATTR_UNIT_DIAGONAL, 0) != 0,
      .transpose = (tt_transpose_t)tt_node_int(node, TT_ATTR_TRANSPOSE_A, TT_NO_TRANSPOSE),
      .n = a_type->dims[a_type->rank - 1],
  };
  tt_complex_t *a = load_matrices(a_type, call->operands[0]);
  tt_complex_t *b = load_matrices(b_type, call->operands[1]);
  if (a && b) {
    for (int64_t batch = 0; batch < batch_count(a_type); batch++) {
      const tt_complex_t *m = a + batch * s.n * s.n;
      tt_complex_t *x = b + batch * rows * columns;
      for (int64_t c = 0; left && c < columns; c++) solve_vector(&s, m, false, x + c, columns);
      for (int64_t r = 0; !left && r < rows; r++) solve_vector(&s, m, true, x + r * columns, 1);
    }
    store_matrices(b_type, b, call->results[0]);
  }
  tt_status_t status = a && b ? TT_OK_STATUS : tt__ref_no_memory(node);
  tt_free(a);
  tt_free(b);
  return status;
}
