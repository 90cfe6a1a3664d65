// Convolution without a library: blocks of result points, their inputs gathered as columns, times
// the kernel as a matrix. Small floats compute in f32.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/conv_internal.h"
#include "softtpu/dot_matmul.h"

// A block's columns stay in the second-level cache; a block is as wide as a packed panel of b.
enum { COLUMN_BYTES = 1 << 19, MAX_POINTS = 768 };

// points: of a result image; window: taps; depth: input features times taps, the product's k.
typedef struct job_s {
  const tt__conv_t *c;
  const char *x, *w;
  char *out;
  char *kernel;  // [g][o][i * k], f32 or f64
  int64_t points, window, depth, block, blocks;
  size_t size;  // of f32 or f64
  size_t in_size;
  _Atomic bool failed;  // no memory in some thread
} job_t;

// 30 operations a nanosecond: less than a product's 50, for columns have to be gathered.
uint64_t tt__conv_cost(const tt__conv_t *c) {
  double work = 2.0 * (double)(c->groups * c->batch * c->features * c->outputs) *
                (double)tt__conv_product(c->kernel, c->rank) *
                (double)tt__conv_product(c->result, c->rank);
  return (uint64_t)(work / 30) + 500;
}

// n elements `stride` apart into dense f32 (small floats) or as they are.
static void widen(const tt__conv_t *c, int64_t n, const char *from, int64_t stride, char *to) {
  const tt__kernels_t *k = tt__kernels();
  size_t size = tt_dtype_size(c->in);
  uint32_t half = tt__half_index(c->in);
  if (half == TT__HALF_COUNT) {
    tt__load(k, tt__size_log2(size), n, to, from, stride);
    return;
  }
  char line[512];
  for (int64_t at = 0; at < n; at += 256) {
    int64_t m = n - at < 256 ? n - at : 256;
    tt__load(k, tt__size_log2(size), m, line, from + at * stride * (int64_t)size, stride);
    k->widen[half](m, to + at * 4, line, line, line, 0);
  }
}

// The kernel as matrices [group][output][feature * tap], reversal undone. Once a run, by one
// thread: it is small beside the product.
static void pack_kernel(job_t *job) {
  const tt__conv_t *c = job->c;
  char *to = job->kernel;
  int64_t size = (int64_t)job->in_size;
  for (int64_t row = 0; row < c->groups * c->outputs * c->features; row++) {
    int64_t i = row % c->features, o = row / c->features % c->outputs,
            g = row / c->features / c->outputs;
    const char *from = job->w + (g * c->w.group + o * c->w.major + i * c->w.feature) * size;
    for (int64_t k = 0; k < job->window; k++, to += job->size) {
      int64_t left = k, where = 0;
      for (uint32_t d = c->rank; d-- > 0; left /= c->kernel[d]) {
        int64_t at = left % c->kernel[d];
        where += (c->reversed[d] ? c->kernel[d] - 1 - at : at) * c->w.spatial[d];
      }
      widen(c, 1, from + where * size, 1, to);
    }
  }
}

// Result points [p, p + n) of one row of the last spatial dimension, seen through one tap.
static void gather_row(const job_t *job, const char *image, int64_t base, const int64_t *tap,
                       int64_t p, int64_t n, char *to) {
  const tt__conv_t *c = job->c;
  uint32_t d = c->rank - 1;
  int64_t first = p * c->stride[d] + tap[d] * c->dilation[d] - c->padding[d];
  int64_t size = (int64_t)job->in_size, step = c->x.spatial[d];
  if (c->base_dilation[d] == 1) {
    // Points [low, high) fall inside the input.
    int64_t s = c->stride[d];
    int64_t low = first >= 0 ? 0 : (-first + s - 1) / s;
    int64_t high = c->size[d] - first <= 0 ? 0 : (c->size[d] - 1 - first) / s + 1;
    if (low > n) low = n;
    if (high > n) high = n;
    if (high < low) high = low;
    memset(to, 0, (size_t)low * job->size);
    if (high > low)
      widen(c, high - low, image + (base + (first + low * s) * step) * size, s * step,
            to + (size_t)low * job->size);
    memset(to + (size_t)high * job->size, 0, (size_t)(n - high) * job->size);
    return;
  }
  memset(to, 0, (size_t)n * job->size);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = first + i * c->stride[d];
    if (at < 0 || at % c->base_dilation[d] != 0 || at / c->base_dilation[d] >= c->size[d]) continue;
    widen(c, 1, image + (base + at / c->base_dilation[d] * step) * size, 1,
          to + (size_t)i * job->size);
  }
}

// The outer spatial dimensions of a point through a tap: an offset, or outside.
static bool outer_offset(const tt__conv_t *c, int64_t row, const int64_t *tap, int64_t *offset) {
  *offset = 0;
  for (uint32_t d = c->rank - 1; d-- > 0; row /= c->result[d]) {
    int64_t at = row % c->result[d] * c->stride[d] + tap[d] * c->dilation[d] - c->padding[d];
    if (at < 0 || at % c->base_dilation[d] != 0) return false;
    at /= c->base_dilation[d];
    if (at >= c->size[d]) return false;
    *offset += at * c->x.spatial[d];
  }
  return true;
}

// n points from p on through one tap, row by row of the result's last dimension.
static void gather_tap(const job_t *job, const char *image, const int64_t *tap, int64_t p,
                       int64_t n, char *to) {
  const tt__conv_t *c = job->c;
  int64_t last = c->rank ? c->result[c->rank - 1] : 1;
  while (n > 0) {
    int64_t row = p / last, at = p % last, run = last - at < n ? last - at : n, base;
    if (c->rank == 0)
      widen(c, 1, image, 1, to);
    else if (outer_offset(c, row, tap, &base))
      gather_row(job, image, base, tap, at, run, to);
    else
      memset(to, 0, (size_t)run * job->size);
    to += (size_t)run * job->size;
    p += run;
    n -= run;
  }
}

// The matrix [feature * tap][point] of a block, in the kernel's order.
static void gather_columns(const job_t *job, int64_t g, int64_t image, int64_t p, int64_t n,
                           char *columns) {
  const tt__conv_t *c = job->c;
  for (int64_t i = 0; i < c->features; i++) {
    const char *from =
        job->x + (g * c->x.group + image * c->x.major + i * c->x.feature) * (int64_t)job->in_size;
    for (int64_t k = 0; k < job->window; k++, columns += (size_t)n * job->size) {
      int64_t tap[TT__CONV_SPATIAL], left = k;
      for (uint32_t d = c->rank; d-- > 0; left /= c->kernel[d]) tap[d] = left % c->kernel[d];
      gather_tap(job, from, tap, p, n, columns);
    }
  }
}

// One feature's points into the result, converted to its type.
static void put_points(const job_t *job, int64_t image, int64_t feature, int64_t p, int64_t n,
                       const char *from) {
  const tt__conv_t *c = job->c;
  int64_t size = (int64_t)tt_dtype_size(c->out);
  uint32_t half = tt__half_index(c->out);
  char *base = job->out + (image * c->out_batch + feature * c->out_feature) * size;
  char line[MAX_POINTS * 8];
  if (half != TT__HALF_COUNT) {
    tt__kernels()->narrow[half](n, line, from, from, from, 0);
    from = line;
  }
  while (n > 0) {
    int64_t left = p, where = 0, run = 1, inner = 1;
    for (uint32_t d = c->rank; d-- > 0; left /= c->result[d]) {
      if (d + 1 == c->rank) {
        run = c->result[d] - left % c->result[d];
        inner = c->out_spatial[d];
      }
      where += left % c->result[d] * c->out_spatial[d];
    }
    if (run > n) run = n;
    tt__kernels()->store[tt__size_log2((size_t)size)](run, base + where * size, from, inner);
    from += run * size;
    p += run;
    n -= run;
  }
}

// A thread's packed panels.
static _Thread_local _Alignas(64) char panels[TT__GEMM_SCRATCH];

// A unit: one block of points of one image and group.
static void run_unit(const job_t *job, int64_t u, char *columns, char *result) {
  const tt__conv_t *c = job->c;
  int64_t p = u % job->blocks * job->block;
  int64_t image = u / job->blocks % c->batch, g = u / job->blocks / c->batch;
  int64_t n = job->points - p < job->block ? job->points - p : job->block;
  gather_columns(job, g, image, p, n, columns);
  tt__gemm_t gemm = {.m = c->outputs,
                     .n = n,
                     .k = job->depth,
                     .a = job->kernel + (size_t)(g * c->outputs * job->depth) * job->size,
                     .a_row = job->depth,
                     .a_col = 1,
                     .b = columns,
                     .b_row = n,
                     .b_col = 1,
                     .c = result,
                     .c_row = n,
                     .scratch = panels};
  if (job->size == 4)
    tt__kernels()->gemm_f32(&gemm);
  else
    tt__kernels()->gemm_f64(&gemm);
  for (int64_t o = 0; o < c->outputs; o++)
    put_points(job, image, g * c->outputs + o, p, n, result + (size_t)(o * n) * job->size);
}

// Units do not share anything but `failed`, which only ever turns true.
static void run_units(void *context, int64_t begin, int64_t end) {
  job_t *job = context;
  size_t columns = tt_align_up((size_t)(job->depth * job->block) * job->size, 64);
  char *room = tt_alloc_aligned(64, columns + (size_t)(job->c->outputs * job->block) * job->size);
  if (!room) {
    job->failed = true;
    return;
  }
  for (int64_t u = begin; u < end; u++) run_unit(job, u, room, room + columns);
  tt_free(room);
}

tt_status_t tt__conv_im2col(const tt__run_t *run, const tt__conv_t *c, const char *x, const char *w,
                            char *out) {
  job_t job = {.c = c, .x = x, .w = w, .out = out};
  job.points = tt__conv_product(c->result, c->rank);
  job.window = tt__conv_product(c->kernel, c->rank);
  job.depth = c->features * job.window;
  job.size = c->in == TT_F64 ? 8 : 4;
  job.in_size = tt_dtype_size(c->in);
  job.block = COLUMN_BYTES / (job.depth * (int64_t)job.size);
  job.block = job.block < 32 ? 32 : job.block > MAX_POINTS ? MAX_POINTS : job.block;
  if (job.block > job.points) job.block = job.points;
  job.blocks = (job.points + job.block - 1) / job.block;
  job.kernel = tt_alloc_aligned(64, (size_t)(c->groups * c->outputs * job.depth) * job.size + 1);
  if (!job.kernel) return TT_ERROR(OUT_OF_MEMORY, "no memory for a convolution's kernel");
  pack_kernel(&job);
  tt__plan_parallel(run, c->groups * c->batch * job.blocks, tt__conv_cost(c), run_units, &job);
  tt_free(job.kernel);
  if (job.failed) return TT_ERROR(OUT_OF_MEMORY, "no memory for a convolution's columns");
  return TT_OK_STATUS;
}
