// Products are cut into units by the shapes alone, so that every element is summed in one order
// whatever the number of threads.
#include "softtpu/dot_matmul.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/tile.h"

static bool is_complex(tt_dtype_t d) { return d == TT_C64 || d == TT_C128; }

bool tt__dot_types(tt_dtype_t in, tt_dtype_t out) {
  if (is_complex(in)) return in == out;
  if (!tt_dtype_is_float(in) || !tt_dtype_is_float(out)) return false;
  return in == out || out == TT_F32 || (out == TT_F64 && in == TT_F64);
}

uint64_t tt__dot_cost(tt_dtype_t in, int64_t batch, int64_t m, int64_t n, int64_t k) {
  double work = 2.0 * (double)batch * (double)m * (double)n * (double)k;
  return (uint64_t)(work / (in == TT_F64 ? 25 : 50)) + 200;
}

// --- our own kernels ---------------------------------------------------------------------------

// Multiples of the kernels' blocks (two of MC rows, one of NC f32 columns): a unit packs its panel
// of b once.
enum { UNIT_ROWS = 240, UNIT_COLUMNS = 768 };

// A thread's packed panels.
static _Thread_local _Alignas(64) char panels[TT__GEMM_SCRATCH];

typedef struct job_s {
  const tt_matrix_t *a, *b, *out;
  size_t size;  // of an element: f32 or f64
  int64_t row_units, column_units;
} job_t;

// Units are numbered with columns innermost.
static void run_units(void *context, int64_t begin, int64_t end) {
  const job_t *job = context;
  const tt__kernels_t *k = tt__kernels();
  for (int64_t u = begin; u < end; u++) {
    int64_t j = u % job->column_units * UNIT_COLUMNS;
    int64_t i = u / job->column_units % job->row_units * UNIT_ROWS;
    int64_t batch = u / job->column_units / job->row_units;
    const tt_matrix_t *a = job->a, *b = job->b, *c = job->out;
    int64_t size = (int64_t)job->size;
    tt__gemm_t g = {
        .m = c->rows - i < UNIT_ROWS ? c->rows - i : UNIT_ROWS,
        .n = c->cols - j < UNIT_COLUMNS ? c->cols - j : UNIT_COLUMNS,
        .k = a->cols,
        .a = (const char *)a->data + (batch * a->batch_stride + i * a->row_stride) * size,
        .a_row = a->row_stride,
        .a_col = a->col_stride,
        .b = (const char *)b->data + (batch * b->batch_stride + j * b->col_stride) * size,
        .b_row = b->row_stride,
        .b_col = b->col_stride,
        .c = (char *)c->data + (batch * c->batch_stride + i * c->row_stride + j) * size,
        .c_row = c->row_stride,
        .scratch = panels,
    };
    if (job->size == 4)
      k->gemm_f32(&g);
    else
      k->gemm_f64(&g);
  }
}

// --- the library's kernels ---------------------------------------------------------------------

// A library's own threads and ours would take the cores from each other, so its one-thread product
// is called on parts. Their size depends on the shapes only, and so do the results.
typedef struct parts_s {
  bool (*gemm)(int dtype, const tt_matrix_t *a, const tt_matrix_t *b, const tt_matrix_t *out);
  const tt_matrix_t *a, *b, *out;
  tt_dtype_t dtype;
  int64_t rows, columns;  // of a part
  int64_t row_parts, column_parts;
  _Atomic bool failed;
} parts_t;

// Parts large enough for a library's blocking to pay, halved until there is one for each of a few
// cores.
enum { PART_ROWS = 512, PART_COLUMNS = 1024, PART_LEAST = 64, PARTS_WANTED = 8 };

static int64_t part_count(int64_t n, int64_t part) { return (n + part - 1) / part; }

// Halves the side that gives the squarer parts.
static void choose_parts(parts_t *p, uint64_t cost) {
  int64_t least = (int64_t)(cost / 40000);  // so many parts are worth a core each
  if (least > PARTS_WANTED) least = PARTS_WANTED;
  p->rows = PART_ROWS;
  p->columns = PART_COLUMNS;
  for (;;) {
    p->row_parts = part_count(p->out->rows, p->rows);
    p->column_parts = part_count(p->out->cols, p->columns);
    if (p->out->batch * p->row_parts * p->column_parts >= least) return;
    bool by_row = p->out->rows / p->row_parts >= p->out->cols / p->column_parts;
    int64_t *part = by_row ? &p->rows : &p->columns;
    if (*part <= PART_LEAST) return;
    *part /= 2;
  }
}

static void run_parts(void *context, int64_t begin, int64_t end) {
  parts_t *p = context;
  int64_t size = (int64_t)tt_dtype_size(p->dtype);
  for (int64_t u = begin; u < end; u++) {
    int64_t j = u % p->column_parts * p->columns;
    int64_t i = u / p->column_parts % p->row_parts * p->rows;
    int64_t batch = u / p->column_parts / p->row_parts;
    tt_matrix_t a = *p->a, b = *p->b, c = *p->out;
    a.batch = b.batch = c.batch = 1;
    c.rows = a.rows = c.rows - i < p->rows ? c.rows - i : p->rows;
    c.cols = b.cols = c.cols - j < p->columns ? c.cols - j : p->columns;
    a.data = (char *)a.data + (batch * a.batch_stride + i * a.row_stride) * size;
    b.data = (char *)b.data + (batch * b.batch_stride + j * b.col_stride) * size;
    c.data = (char *)c.data + (batch * c.batch_stride + i * c.row_stride + j) * size;
    if (!p->gemm((int)p->dtype, &a, &b, &c)) p->failed = true;
  }
}

// False: no library, or it does not serve these operands; out may be partly written then. A product
// over nothing is zero, which libraries do not all know.
static bool from_library(const tt__run_t *run, tt_dtype_t dtype, const tt_matrix_t *a,
                         const tt_matrix_t *b, const tt_matrix_t *out) {
  const tt_library_t *library = tt_library();
  if (!library || a->cols == 0) return false;
  uint64_t cost = tt__dot_cost(dtype, out->batch, out->rows, out->cols, a->cols);
  if (library->struct_size > offsetof(tt_library_t, gemm) && library->gemm) {
    parts_t p = {.gemm = library->gemm, .a = a, .b = b, .out = out, .dtype = dtype};
    choose_parts(&p, cost);
    tt__plan_parallel(run, out->batch * p.row_parts * p.column_parts, cost, run_parts, &p);
    if (!p.failed) return true;
  }
  return library->matmul && library->matmul((int)dtype, a, b, out);
}

static void multiply(const tt__run_t *run, tt_dtype_t dtype, const tt_matrix_t *a,
                     const tt_matrix_t *b, const tt_matrix_t *out) {
  if (from_library(run, dtype, a, b, out)) return;
  job_t job = {a,
               b,
               out,
               tt_dtype_size(dtype),
               (out->rows + UNIT_ROWS - 1) / UNIT_ROWS,
               (out->cols + UNIT_COLUMNS - 1) / UNIT_COLUMNS};
  tt__plan_parallel(run, out->batch * job.row_units * job.column_units,
                    tt__dot_cost(dtype, out->batch, out->rows, out->cols, a->cols), run_units,
                    &job);
}

// --- small floats by way of f32 ----------------------------------------------------------------

typedef struct cast_s {
  const tt_matrix_t *from;
  tt_dtype_t dtype;
  float *to;  // dense
} cast_t;

// Rows of all batches, numbered through, into dense f32.
static void widen_rows(void *context, int64_t begin, int64_t end) {
  const cast_t *c = context;
  const tt__kernels_t *k = tt__kernels();
  const tt_matrix_t *m = c->from;
  size_t size = tt_dtype_size(c->dtype);
  uint32_t log2 = tt__size_log2(size), half = tt__half_index(c->dtype);
  char line[2048];
  for (int64_t r = begin; r < end; r++) {
    const char *row = (const char *)m->data +
                      (r / m->rows * m->batch_stride + r % m->rows * m->row_stride) * (int64_t)size;
    for (int64_t j = 0; j < m->cols; j += 1024) {
      int64_t n = m->cols - j < 1024 ? m->cols - j : 1024;
      const char *src = row + j * m->col_stride * (int64_t)size;
      if (m->col_stride != 1) {
        tt__load(k, log2, n, line, src, m->col_stride);
        src = line;
      }
      float *to = c->to + r * m->cols + j;
      if (half == TT__HALF_COUNT)
        memcpy(to, src, (size_t)n * 4);
      else
        k->widen[half](n, to, src, src, src, 0);
    }
  }
}

static void narrow_rows(void *context, int64_t begin, int64_t end) {
  const cast_t *c = context;
  const tt_matrix_t *m = c->from;
  int64_t size = (int64_t)tt_dtype_size(c->dtype);
  for (int64_t r = begin; r < end; r++) {
    const float *src = c->to + r * m->cols;
    tt__kernels()->narrow[tt__half_index(c->dtype)](
        m->cols,
        (char *)m->data + (r / m->rows * m->batch_stride + r % m->rows * m->row_stride) * size, src,
        src, src, 0);
  }
}

static tt_matrix_t dense(const tt_matrix_t *like, float *data) {
  tt_matrix_t m = {data, like->batch, like->rows, like->cols, like->rows * like->cols, like->cols,
                   1};
  return m;
}

static size_t matrix_elements(const tt_matrix_t *m) {
  return (size_t)(m->batch * m->rows * m->cols);
}

// Every small float is an f32, so the operands lose nothing; the sum rounds to f32 as it grows and
// to the result's type once.
static tt_status_t multiply_small(const tt__run_t *run, tt_dtype_t in, tt_dtype_t out_dtype,
                                  const tt_matrix_t *a, const tt_matrix_t *b,
                                  const tt_matrix_t *out) {
  bool narrow = out_dtype != TT_F32;
  size_t na = matrix_elements(a), nb = matrix_elements(b), nc = narrow ? matrix_elements(out) : 0;
  float *room = tt_alloc_aligned(64, (na + nb + nc + 1) * sizeof *room);
  if (!room) return TT_ERROR(OUT_OF_MEMORY, "no memory for a product of %s", tt_dtype_text(in));
  cast_t ca = {a, in, room}, cb = {b, in, room + na}, cc = {out, out_dtype, room + na + nb};
  tt__plan_parallel(run, a->batch * a->rows, na, widen_rows, &ca);
  tt__plan_parallel(run, b->batch * b->rows, nb, widen_rows, &cb);
  tt_matrix_t fa = dense(a, ca.to), fb = dense(b, cb.to), fc = dense(out, cc.to);
  multiply(run, TT_F32, &fa, &fb, narrow ? &fc : out);
  if (narrow) tt__plan_parallel(run, out->batch * out->rows, nc, narrow_rows, &cc);
  tt_free(room);
  return TT_OK_STATUS;
}

// --- complex numbers ---------------------------------------------------------------------------

typedef struct complex_job_s {
  const tt_matrix_t *a, *b, *out;
  bool wide;  // c128
} complex_job_t;

static inline void complex_at(const tt_matrix_t *m, bool wide, int64_t at, double *out) {
  for (int part = 0; part < 2; part++) {
    out[part] = wide ? ((const double *)m->data)[2 * at + part]
                     : (double)((const float *)m->data)[2 * at + part];
  }
}

static void complex_rows(void *context, int64_t begin, int64_t end) {
  const complex_job_t *job = context;
  const tt_matrix_t *a = job->a, *b = job->b, *c = job->out;
  for (int64_t r = begin; r < end; r++) {
    int64_t batch = r / c->rows, i = r % c->rows;
    for (int64_t j = 0; j < c->cols; j++) {
      double sum[2] = {0, 0}, x[2], y[2];
      for (int64_t k = 0; k < a->cols; k++) {
        complex_at(a, job->wide, batch * a->batch_stride + i * a->row_stride + k * a->col_stride,
                   x);
        complex_at(b, job->wide, batch * b->batch_stride + k * b->row_stride + j * b->col_stride,
                   y);
        sum[0] += x[0] * y[0] - x[1] * y[1];
        sum[1] += x[0] * y[1] + x[1] * y[0];
      }
      int64_t at = batch * c->batch_stride + i * c->row_stride + j;
      for (int part = 0; part < 2; part++) {
        if (job->wide)
          ((double *)c->data)[2 * at + part] = sum[part];
        else
          ((float *)c->data)[2 * at + part] = (float)sum[part];
      }
    }
  }
}

// The products of complex numbers that the library does not take: small ones, or all without one.
static void multiply_complex(const tt__run_t *run, tt_dtype_t dtype, const tt_matrix_t *a,
                             const tt_matrix_t *b, const tt_matrix_t *out) {
  complex_job_t job = {a, b, out, dtype == TT_C128};
  uint64_t cost = 16 * tt__dot_cost(TT_F64, out->batch, out->rows, out->cols, a->cols);
  tt__plan_parallel(run, out->batch * out->rows, cost, complex_rows, &job);
}

tt_status_t tt__dot_matmul(const tt__run_t *run, tt_dtype_t in, tt_dtype_t out_dtype,
                           const tt_matrix_t *a, const tt_matrix_t *b, const tt_matrix_t *out) {
  if (matrix_elements(out) == 0) return TT_OK_STATUS;
  if (in == out_dtype && (in == TT_F32 || in == TT_F64)) {
    multiply(run, in, a, b, out);
    return TT_OK_STATUS;
  }
  if (in == out_dtype && from_library(run, in, a, b, out)) return TT_OK_STATUS;
  if (is_complex(in)) {
    multiply_complex(run, in, a, b, out);
    return TT_OK_STATUS;
  }
  return multiply_small(run, in, out_dtype, a, b, out);
}
