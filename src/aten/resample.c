// Interpolation (upsample_*) of any kind, as one sparse linear map a dimension.
//
// A dimension's map is a table: each output is a weighted sum of a few inputs ("taps"). The forward
// op applies the tables one dimension after the other; a backward op applies their transposes.
#include <math.h>

#include "aten/emit.h"

// rows x taps; row r's weights past its own taps are 0 and name one of its inputs again.
typedef struct taps_s {
  int64_t rows, taps;
  int64_t *index;
  double *weight;
} taps_t;

static taps_t taps_make(tt_build_t *b, int64_t rows, int64_t taps) {
  return (taps_t){rows, taps, TT_SCRATCH(b, int64_t, rows * taps),
                  TT_SCRATCH(b, double, rows *taps)};
}
static bool taps_ok(const taps_t *t) { return t->index && t->weight; }

// How an output position maps to an input position.
typedef struct axis_s {
  int64_t in, out;
  bool align_corners, wide;  // wide: computed in double, as for f64 tensors
  double factor;             // the scale factor that the user gave, or 0
} axis_t;

// PyTorch computes these in the tensor's opmath type; positions must fall the same way.
static double in_type(const axis_t *a, double v) { return a->wide ? v : (double)(float)v; }

static double axis_scale(const axis_t *a) {
  if (a->align_corners) {
    return a->out > 1 ? in_type(a, in_type(a, (double)(a->in - 1)) / (double)(a->out - 1)) : 0;
  }
  if (a->factor > 0) return in_type(a, 1.0 / a->factor);
  return in_type(a, in_type(a, (double)a->in) / in_type(a, (double)a->out));
}
static double axis_source(const axis_t *a, double scale, int64_t i, bool cubic) {
  if (a->align_corners) return in_type(a, scale * (double)i);
  const double x = in_type(a, in_type(a, scale * in_type(a, (double)i + 0.5)) - 0.5);
  return x < 0 && !cubic ? 0 : x;
}
static int64_t clamp_index(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

static void nearest_taps(const axis_t *a, bool exact, taps_t *t) {
  // Always in float, whatever the tensor's type.
  const float scale = a->factor > 0 ? (float)(1.0 / a->factor) : (float)a->in / (float)a->out;
  for (int64_t i = 0; i < a->out; i++) {
    const float at = exact ? floorf(((float)i + 0.5f) * scale) : floorf((float)i * scale);
    t->index[i] = clamp_index((int64_t)at, a->in);
    t->weight[i] = 1;
  }
}

static void linear_taps(const axis_t *a, taps_t *t) {
  const double scale = axis_scale(a);
  for (int64_t i = 0; i < a->out; i++) {
    const double x = axis_source(a, scale, i, false);
    const int64_t low = clamp_index((int64_t)x, a->in);
    double part = in_type(a, x - (double)low);
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    t->index[2 * i] = low;
    t->index[2 * i + 1] = low + (low < a->in - 1);
    t->weight[2 * i] = in_type(a, 1 - part);
    t->weight[2 * i + 1] = part;
  }
}

static double cubic_near(double x, double a) { return ((a + 2) * x - (a + 3)) * x * x + 1; }
static double cubic_far(double x, double a) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }

static void cubic_taps(const axis_t *a, taps_t *t) {
  const double scale = axis_scale(a), A = -0.75;
  for (int64_t i = 0; i < a->out; i++) {
    const double x = axis_source(a, scale, i, true), base = floor(x), part = x - base;
    const double w[] = {cubic_far(part + 1, A), cubic_near(part, A), cubic_near(1 - part, A),
                        cubic_far(2 - part, A)};
    for (int64_t j = 0; j < 4; j++) {
      t->index[4 * i + j] = clamp_index((int64_t)base - 1 + j, a->in);
      t->weight[4 * i + j] = in_type(a, w[j]);
    }
  }
}

// --- antialiasing filters ------------------------------------------------------------------------
static double triangle(double x) {
  x = fabs(x);
  return x < 1 ? 1 - x : 0;
}
static double cubic(double x) {
  const double A = -0.5;
  x = fabs(x);
  return x < 1 ? cubic_near(x, A) : x < 2 ? cubic_far(x, A) : 0;
}
static double sinc(double x) { return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x); }
static double lanczos(double x) { return fabs(x) < 3 ? sinc(x) * sinc(x / 3) : 0; }

// Shrinking widens the filter by the scale, so that every input has a share; weights add up to one.
static taps_t antialias_taps(tt_build_t *b, const axis_t *a, double (*filter)(double),
                             double radius) {
  const double scale = axis_scale(a);
  const double support = scale >= 1 ? radius * scale : radius;
  const double inverse = scale >= 1 ? 1 / scale : 1;
  taps_t t = taps_make(b, a->out, (int64_t)ceil(support) * 2 + 1);
  if (!taps_ok(&t)) return t;
  for (int64_t i = 0; i < a->out; i++) {
    const double center = scale * ((double)i + 0.5);
    int64_t from = (int64_t)(center - support + 0.5), to = (int64_t)(center + support + 0.5);
    if (from < 0) from = 0;
    if (to > a->in) to = a->in;
    if (to - from > t.taps) to = from + t.taps;
    double total = 0;
    for (int64_t j = 0; j < t.taps; j++) {
      const bool inside = from + j < to;
      const double w = inside ? filter(((double)(from + j) - center + 0.5) * inverse) : 0;
      t.index[i * t.taps + j] = clamp_index(inside ? from + j : from, a->in);
      t.weight[i * t.taps + j] = w;
      total += w;
    }
    for (int64_t j = 0; j < t.taps && total != 0; j++) t.weight[i * t.taps + j] /= total;
  }
  return t;
}

static taps_t taps_of(tt_build_t *b, const axis_t *a, tt__resample_t kind) {
  taps_t t;
  switch (kind) {
    case TT__NEAREST:
    case TT__NEAREST_EXACT:
      t = taps_make(b, a->out, 1);
      if (taps_ok(&t)) nearest_taps(a, kind == TT__NEAREST_EXACT, &t);
      return t;
    case TT__LINEAR:
      t = taps_make(b, a->out, 2);
      if (taps_ok(&t)) linear_taps(a, &t);
      return t;
    case TT__CUBIC:
      t = taps_make(b, a->out, 4);
      if (taps_ok(&t)) cubic_taps(a, &t);
      return t;
    case TT__LINEAR_AA:
      return antialias_taps(b, a, triangle, 1);
    case TT__CUBIC_AA:
      return antialias_taps(b, a, cubic, 2);
    case TT__LANCZOS_AA:
      return antialias_taps(b, a, lanczos, 3);
  }
  return (taps_t){0, 0, NULL, NULL};
}

// The transposed table: `columns` rows, wide enough for the input that most outputs use.
static taps_t taps_transpose(tt_build_t *b, const taps_t *t, int64_t columns) {
  int64_t *used = TT_SCRATCH(b, int64_t, columns), most = 1;
  if (!used || !taps_ok(t)) return (taps_t){0, 0, NULL, NULL};
  for (int64_t i = 0; i < t->rows * t->taps; i++) {
    if (t->weight[i] != 0 && ++used[t->index[i]] > most) most = used[t->index[i]];
  }
  taps_t r = taps_make(b, columns, most);
  if (!taps_ok(&r)) return r;
  memset(used, 0, sizeof *used * (size_t)columns);
  for (int64_t row = 0; row < t->rows; row++) {
    for (int64_t j = 0; j < t->taps; j++) {
      const int64_t cell = row * t->taps + j, to = t->index[cell];
      if (t->weight[cell] == 0) continue;
      r.index[to * most + used[to]] = row;
      r.weight[to * most + used[to]++] = t->weight[cell];
    }
  }
  for (int64_t i = 0; i < columns; i++) {  // spare taps repeat an index that the row uses anyway
    for (int64_t j = used[i]; j < most; j++) r.index[i * most + j] = r.index[i * most];
  }
  return r;
}

// Adds the weights that a row gives to one input, the edge's; gives the largest weight or sum met.
static double taps_merge(taps_t *t) {
  double most = 0;
  for (int64_t i = 0; i < t->rows * t->taps; i++) {
    int64_t first = i - i % t->taps;
    while (t->index[first] != t->index[i]) first++;
    if (first < i) t->weight[first] += t->weight[i], t->weight[i] = 0;
    most = fmax(most, t->weight[first]);
  }
  return most;
}
// PyTorch interpolates bytes in 16-bit fixed point; its weights, and rounding after each dimension,
// decide ties.
static void taps_quantise(taps_t *t) {
  const double most = taps_merge(t);
  int bits = 0;
  while (bits < 22 && (int)(0.5 + most * (double)(2 << bits)) < 1 << 15) bits++;
  for (int64_t i = 0; i < t->rows * t->taps; i++) {
    const double scaled = t->weight[i] * (double)(1 << bits);
    t->weight[i] = trunc(scaled < 0 ? scaled - 0.5 : scaled + 0.5) / (double)(1 << bits);
  }
}
static tt_value_t to_byte(tt_build_t *b, tt_value_t v) {
  v = tt__floor(b, tt__addc(b, v, 0.5));
  return tt_emit_clamp(b, tt__num(b, v, 0), v, tt__num(b, v, 255));
}

static bool is_identity(const taps_t *t, int64_t in) {
  if (t->taps != 1 || t->rows != in) return false;
  for (int64_t i = 0; i < in; i++) {
    if (t->index[i] != i || t->weight[i] != 1) return false;
  }
  return true;
}

// One tap of every row: a weighted take. Column `j` of the table.
static tt_value_t apply_tap(tt_build_t *b, tt_value_t x, uint32_t rank, uint32_t dim,
                            const taps_t *t, int64_t j) {
  int64_t *index = TT_SCRATCH(b, int64_t, t->rows);
  double *weight = TT_SCRATCH(b, double, t->rows);
  bool ones = true;
  if (!index || !weight) return TT_NO_VALUE;
  for (int64_t i = 0; i < t->rows; i++) {
    index[i] = t->index[i * t->taps + j];
    weight[i] = t->weight[i * t->taps + j];
    ones = ones && weight[i] == 1;
  }
  const tt_value_t v = tt_emit_take(b, x, tt__constant_s32(b, index, 1, &t->rows), dim);
  if (ones) return v;
  const tt_value_t w = tt__constant_real(b, tt_build_dtype(b, x), weight, 1, &t->rows);
  return tt__mul(b, v, tt__along(b, w, rank, dim));
}

static tt_value_t apply_taps(tt_build_t *b, tt_value_t x, uint32_t rank, uint32_t dim, int64_t in,
                             const taps_t *t) {
  tt_value_t sum = TT_NO_VALUE;
  if (is_identity(t, in)) return x;
  for (int64_t j = 0; j < t->taps; j++) {
    const tt_value_t part = apply_tap(b, x, rank, dim, t, j);
    sum = sum == TT_NO_VALUE ? part : tt__add(b, sum, part);
  }
  return sum;
}

// upsample_*(self, output_size[, align_corners], scales...) and, with TT__RESAMPLE_BACKWARD,
// upsample_*_backward(grad, output_size, input_size[, align_corners], scales...). The parameter's
// low byte is the kind.
TT_LOWER(upsample) {
  tt_build_t *b = L->b;
  const tt__resample_t kind = (tt__resample_t)(param & 0xff);
  const bool backward = (param & TT__RESAMPLE_BACKWARD) != 0;
  const bool corners = kind != TT__NEAREST && kind != TT__NEAREST_EXACT;
  const tt_tensor_t *x = tt_lower_meta(L, 0);
  const tt_out_meta_t *y = &L->outs[0];
  const uint32_t rank = x->rank, spatial = rank - 2, at = backward ? 3 : 2;
  const tt_dtype_t type = (tt_dtype_t)x->dtype;
  const bool bytes = corners && tt_dtype_is_int(type);
  const tt_dtype_t d = bytes ? TT_F32 : tt_lower_opmath(type);
  tt_value_t v = tt_lower_tensor_as(L, 0, d);
  if (tt__product(y->sizes, y->rank) == 0 || tt__product(x->sizes, x->rank) == 0) {
    tt_lower_return(L, 0, tt_emit_splat(b, d, y->rank, y->sizes, 0));
    return;
  }
  for (uint32_t k = spatial; k-- > 0;) {
    const uint32_t dim = 2 + k;
    const axis_t axis = {
        .in = backward ? y->sizes[dim] : x->sizes[dim],
        .out = backward ? x->sizes[dim] : y->sizes[dim],
        .align_corners = corners && tt_lower_int(L, at, 0) != 0,
        .wide = d == TT_F64,
        .factor = tt_lower_static_float(L, at + (corners ? 1 : 0) + k, 0),
    };
    taps_t taps = taps_of(b, &axis, kind);
    if (backward) taps = taps_transpose(b, &taps, axis.in);
    if (!taps_ok(&taps)) return;
    if (bytes) taps_quantise(&taps);
    v = apply_taps(b, v, rank, dim, x->sizes[dim], &taps);
    if (bytes) v = to_byte(b, v);
  }
  tt_lower_return(L, 0, v);
}
