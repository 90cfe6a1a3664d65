// grid_sampler_2d and _3d: reading an image at positions that are data.
//
// Each spatial dimension gives a few taps (1 nearest, 2 linear, 4 cubic): an integer position, a
// weight and the weight's derivative. A sample is the sum over their products; pixels are rows [N *
// HW, C], so that a tap is one row gather (and one row scatter backward).
#include "aten/emit.h"

#define TT_GRID_SPATIAL 3
#define TT_GRID_TAPS 4

typedef enum grid_mode_e { LINEAR, NEAREST, CUBIC } grid_mode_t;
typedef enum grid_padding_e { ZEROS, BORDER, REFLECTION } grid_padding_t;

typedef struct grid_tap_s {
  tt_value_t index;   // i32, in range
  tt_value_t inside;  // false where the tap counts as zero
  tt_value_t weight, slope;
} grid_tap_t;

typedef struct grid_s {
  uint32_t spatial, taps;
  grid_mode_t mode;
  grid_padding_t padding;
  bool align;
  tt_dtype_t d;
  int64_t n, c, points;
  const int64_t *in;  // spatial sizes
  int64_t flat[2];    // [N, P]
  grid_tap_t tap[TT_GRID_SPATIAL][TT_GRID_TAPS];
  tt_value_t batch;  // [N, P]: n * HW
  tt_value_t zero;   // [N, P]
} grid_t;

// x in [0, size) after clipping; *slope, where given, is multiplied by the clip's derivative.
static tt_value_t clip(tt_build_t *b, tt_value_t x, int64_t size, tt_value_t *slope) {
  const double top = (double)(size - 1);
  if (slope) {
    const tt_value_t moves = tt__and(b, tt__cmpc(b, TT_GT, x, 0), tt__cmpc(b, TT_LT, x, top));
    *slope = tt__zero_unless(b, moves, *slope);
  }
  const tt_value_t zero = tt__num(b, x, 0);
  const tt_value_t number = tt_emit_select(b, tt__isnan(b, x), tt_emit_splat_like(b, x, 0), x);
  return tt__min(b, tt__max(b, number, zero), tt__num(b, x, top));
}

static tt_value_t reflect(tt_build_t *b, tt_value_t x, double low, double high, tt_value_t *slope) {
  if (low == high) {
    if (slope) *slope = tt_emit_splat_like(b, *slope, 0);
    return tt_emit_splat_like(b, x, 0);
  }
  const double span = high - low;
  const tt_value_t from = tt__addc(b, x, -low), distance = tt__abs(b, from);
  const tt_value_t extra = tt__rem(b, distance, tt__num(b, x, span));
  const tt_value_t flips = tt__floor(b, tt__divc(b, distance, span));
  const tt_value_t even = tt__cmpc(b, TT_EQ, tt__rem(b, flips, tt__num(b, x, 2)), 0);
  if (slope) {
    const tt_value_t down = tt__cmpc(b, TT_LT, from, 0);
    const tt_value_t flipped = tt_emit_binary(b, TT_OP_XOR, down, tt__not(b, even));
    *slope = tt_emit_select(b, flipped, tt__neg(b, *slope), *slope);
  }
  return tt__addc(b, tt_emit_select(b, even, extra, tt__rsubc(b, span, extra)), low);
}

static tt_value_t pad_position(tt_build_t *b, const grid_t *g, tt_value_t x, int64_t size,
                               tt_value_t *slope) {
  if (g->padding == ZEROS) return x;
  if (g->padding == REFLECTION) {
    x = g->align ? reflect(b, x, 0, (double)(size - 1), slope)
                 : reflect(b, x, -0.5, (double)size - 0.5, slope);
  }
  return clip(b, x, size, slope);
}

// A tap at the whole number `at` (as float).
static grid_tap_t make_tap(tt_build_t *b, tt_value_t at, int64_t size, tt_value_t weight,
                           tt_value_t slope) {
  const double top = (double)(size - 1);
  grid_tap_t t = {.weight = weight, .slope = slope};
  t.inside = tt__and(b, tt__cmpc(b, TT_GE, at, 0), tt__cmpc(b, TT_LE, at, top));
  t.index = tt_emit_convert(b, clip(b, at, size, NULL), TT_S32);
  return t;
}

static tt_value_t horner(tt_build_t *b, tt_value_t x, double a, double c1, double c2, double c3) {
  return tt__addc(
      b, tt__mul(b, tt__addc(b, tt__mul(b, tt__addc(b, tt__mulc(b, x, a), c1), x), c2), x), c3);
}

// The weights of Keys' kernel with A = -0.75 at distances part + 1, part, 1 - part, 2 - part, and
// their derivatives along the position.
static void cubic_weights(tt_build_t *b, tt_value_t part, tt_value_t *w, tt_value_t *s) {
  const double A = -0.75;
  for (int i = 0; i < 4; i++) {
    const double sign = i < 2 ? 1 : -1;
    const tt_value_t x = i < 2 ? tt__addc(b, part, 1 - i) : tt__rsubc(b, i - 1, part);
    const bool far = i == 0 || i == 3;
    w[i] = far ? horner(b, x, A, -5 * A, 8 * A, -4 * A) : horner(b, x, A + 2, -(A + 3), 0, 1);
    s[i] = far ? horner(b, x, 0, 3 * A, -10 * A, 8 * A)
               : horner(b, x, 0, 3 * (A + 2), -2 * (A + 3), 0);
    s[i] = tt__mulc(b, s[i], sign);
  }
}

// The taps of spatial dimension k (0 outermost) at the normalised coordinate x.
static void dimension_taps(tt_build_t *b, grid_t *g, uint32_t k, tt_value_t x) {
  const int64_t size = g->in[k];
  const double half = (double)(g->align ? size - 1 : size) / 2;
  tt_value_t slope = tt_emit_splat_like(b, x, half);
  x = tt__mulc(b, tt__addc(b, x, 1), half);
  if (!g->align) x = tt__addc(b, x, -0.5);
  grid_tap_t *tap = g->tap[k];
  if (g->mode == CUBIC) {
    tt_value_t w[4], s[4];
    const tt_value_t base = tt__floor(b, x);
    cubic_weights(b, tt__sub(b, x, base), w, s);
    for (int i = 0; i < 4; i++) {
      const tt_value_t at = pad_position(b, g, tt__addc(b, base, i - 1), size, NULL);
      tap[i] = make_tap(b, at, size, w[i], tt__mul(b, s[i], slope));
    }
    return;
  }
  x = pad_position(b, g, x, size, &slope);
  if (g->mode == NEAREST) {
    tap[0] = make_tap(b, tt_emit_unary(b, TT_OP_ROUND_NEAREST_EVEN, x), size,
                      tt_emit_splat_like(b, x, 1), tt_emit_splat_like(b, x, 0));
    return;
  }
  const tt_value_t base = tt__floor(b, x), part = tt__sub(b, x, base);
  tap[0] = make_tap(b, base, size, tt__rsubc(b, 1, part), tt__neg(b, slope));
  tap[1] = make_tap(b, tt__addc(b, base, 1), size, part, slope);
}

// Reads the call: input, grid and modes at arguments `at`, at + 1, ...
static grid_t grid_read(tt_lower_t *L, uint32_t at, uint32_t spatial) {
  tt_build_t *b = L->b;
  const tt_tensor_t *x = tt_lower_meta(L, at), *p = tt_lower_meta(L, at + 1);
  grid_t g = {.spatial = spatial,
              .mode = (grid_mode_t)tt_lower_int(L, at + 2, 0),
              .padding = (grid_padding_t)tt_lower_int(L, at + 3, 0),
              .align = tt_lower_int(L, at + 4, 0) != 0,
              .d = tt_lower_opmath((tt_dtype_t)x->dtype),
              .n = x->sizes[0],
              .c = x->sizes[1],
              .points = tt__product(p->sizes + 1, spatial),
              .in = x->sizes + 2};
  g.taps = g.mode == CUBIC ? 4 : g.mode == NEAREST ? 1 : 2;
  g.flat[0] = g.n;
  g.flat[1] = g.points;
  const int64_t dims[] = {g.n, g.points, spatial};
  const tt_value_t grid = tt_emit_reshape(b, tt_lower_tensor_as(L, at + 1, g.d), 3, dims);
  for (uint32_t k = 0; k < spatial; k++) {
    // The grid's last dimension holds x first: the innermost spatial dimension.
    const int64_t slot = spatial - 1 - k;
    const tt_value_t c = tt_emit_slice_dim(b, grid, 2, slot, slot + 1, 1);
    dimension_taps(b, &g, k, tt_emit_reshape(b, c, 2, g.flat));
  }
  g.batch = tt__mulc(b, tt__iota(b, 2, g.flat, 0), (double)tt__product(g.in, spatial));
  g.zero = tt_emit_splat(b, g.d, 2, g.flat, 0);
  return g;
}

// [N, C, S...] <-> [N, S..., C] flattened to rows.
static tt_value_t to_rows(tt_build_t *b, tt_value_t x, uint32_t rank, const int64_t *sizes) {
  int64_t permutation[TT_GRID_SPATIAL + 2] = {0};
  for (uint32_t i = 1; i + 1 < rank; i++) permutation[i] = i + 1;
  permutation[rank - 1] = 1;
  const int64_t dims[] = {sizes[0] * tt__product(sizes + 2, rank - 2), sizes[1]};
  return tt_emit_reshape(b, tt_emit_transpose(b, x, permutation), 2, dims);
}
static tt_value_t from_rows(tt_build_t *b, tt_value_t rows, uint32_t rank, const int64_t *sizes) {
  int64_t permutation[TT_GRID_SPATIAL + 2] = {0}, dims[TT_GRID_SPATIAL + 2] = {sizes[0]};
  for (uint32_t i = 1; i + 1 < rank; i++) dims[i] = sizes[i + 1];
  dims[rank - 1] = sizes[1];
  permutation[1] = rank - 1;
  for (uint32_t i = 2; i < rank; i++) permutation[i] = i - 1;
  return tt_emit_transpose(b, tt_emit_reshape(b, rows, rank, dims), permutation);
}

// One combination of taps: where to read, whether it counts.
typedef struct corner_s {
  uint32_t tap[TT_GRID_SPATIAL];
  tt_value_t index, inside;  // [N, P]
} corner_t;

static bool next_corner(const grid_t *g, corner_t *c) {
  for (uint32_t k = g->spatial; k-- > 0;) {
    if (++c->tap[k] < g->taps) return true;
    c->tap[k] = 0;
  }
  return false;
}

static void place_corner(tt_build_t *b, const grid_t *g, corner_t *c) {
  int64_t unit = 1;
  c->index = g->batch;
  for (uint32_t k = g->spatial; k-- > 0; unit *= g->in[k]) {
    const grid_tap_t *t = &g->tap[k][c->tap[k]];
    c->index = tt__add(b, c->index, tt__mulc(b, t->index, (double)unit));
    c->inside = k + 1 == g->spatial ? t->inside : tt__and(b, c->inside, t->inside);
  }
}

// The product of weights, with dimension `along`'s slope instead of its weight (-1: none).
static tt_value_t corner_weight(tt_build_t *b, const grid_t *g, const corner_t *c, int along) {
  tt_value_t w = TT_NO_VALUE;
  for (uint32_t k = 0; k < g->spatial; k++) {
    const grid_tap_t *t = &g->tap[k][c->tap[k]];
    const tt_value_t f = (int)k == along ? t->slope : t->weight;
    w = w == TT_NO_VALUE ? f : tt__mul(b, w, f);
  }
  return w;
}

// A value [N, P] over channels.
static tt_value_t over_channels(tt_build_t *b, const grid_t *g, tt_value_t v) {
  const int64_t column[] = {g->n, g->points, 1}, dims[] = {g->n, g->points, g->c};
  return tt_emit_broadcast_to(b, tt_emit_reshape(b, v, 3, column), 3, dims);
}

static bool grid_is_empty(const tt_lower_t *L, uint32_t at) {
  const tt_tensor_t *x = tt_lower_meta(L, at), *p = tt_lower_meta(L, at + 1);
  return tt__product(x->sizes, x->rank) == 0 || tt__product(p->sizes, p->rank) == 0;
}

// grid_sampler_{2,3}d(input, grid, interpolation_mode, padding_mode, align_corners)
TT_LOWER(grid_sampler) {
  tt_build_t *b = L->b;
  const tt_tensor_t *x = tt_lower_meta(L, 0);
  const tt_out_meta_t *y = &L->outs[0];
  if (grid_is_empty(L, 0)) {
    tt_lower_return(L, 0, tt_emit_splat(b, (tt_dtype_t)y->dtype, y->rank, y->sizes, 0));
    return;
  }
  const grid_t g = grid_read(L, 0, (uint32_t)param);
  const tt_value_t rows = to_rows(b, tt_lower_tensor_as(L, 0, g.d), x->rank, x->sizes);
  tt_value_t sum = TT_NO_VALUE;
  corner_t c = {.index = TT_NO_VALUE};
  do {
    place_corner(b, &g, &c);
    tt_value_t v = tt_emit_take(b, rows, c.index, 0);
    v = tt__zero_unless(b, over_channels(b, &g, c.inside), v);
    v = tt__mul(b, v, over_channels(b, &g, corner_weight(b, &g, &c, -1)));
    sum = sum == TT_NO_VALUE ? v : tt__add(b, sum, v);
  } while (next_corner(&g, &c));
  tt_lower_return(L, 0, from_rows(b, sum, y->rank, y->sizes));
}

// grid_sampler_{2,3}d_backward(grad, input, grid, interpolation_mode, padding_mode, align_corners,
// mask[2]) -> (grad_input, grad_grid)
TT_LOWER(grid_sampler_backward) {
  tt_build_t *b = L->b;
  const tt_tensor_t *gy = tt_lower_meta(L, 0), *x = tt_lower_meta(L, 1), *p = tt_lower_meta(L, 2);
  const bool want_input = tt__wanted(L, 6, 0);
  if (grid_is_empty(L, 1)) {
    if (want_input) {
      tt_lower_return(L, 0, tt_emit_splat(b, (tt_dtype_t)x->dtype, x->rank, x->sizes, 0));
    }
    tt_lower_return(L, 1, tt_emit_splat(b, (tt_dtype_t)p->dtype, p->rank, p->sizes, 0));
    return;
  }
  const grid_t g = grid_read(L, 1, (uint32_t)param);
  const int64_t dims[] = {g.n, g.points, g.c},
                row_dims[] = {g.n * tt__product(g.in, g.spatial), g.c};
  static const int64_t channel[] = {2};
  const tt_value_t rows = to_rows(b, tt_lower_tensor_as(L, 1, g.d), x->rank, x->sizes);
  const tt_value_t grad =
      tt_emit_reshape(b, to_rows(b, tt_lower_tensor_as(L, 0, g.d), gy->rank, gy->sizes), 3, dims);
  tt_value_t into = tt_emit_splat(b, g.d, 2, row_dims, 0);
  tt_value_t slopes[TT_GRID_SPATIAL] = {g.zero, g.zero, g.zero};
  corner_t c = {.index = TT_NO_VALUE};
  do {
    place_corner(b, &g, &c);
    const tt_value_t inside = over_channels(b, &g, c.inside);
    if (want_input) {
      const tt_value_t part = tt__mul(b, grad, over_channels(b, &g, corner_weight(b, &g, &c, -1)));
      into = tt_emit_put(b, into, c.index, tt__zero_unless(b, inside, part), 0, TT_OP_ADD);
    }
    if (g.mode == NEAREST) continue;
    const tt_value_t v = tt__zero_unless(b, inside, tt_emit_take(b, rows, c.index, 0));
    const tt_value_t dot = tt__sum_over(b, tt__mul(b, v, grad), channel, 1, false);
    for (uint32_t k = 0; k < g.spatial; k++) {
      slopes[k] = tt__add(b, slopes[k], tt__mul(b, dot, corner_weight(b, &g, &c, (int)k)));
    }
  } while (next_corner(&g, &c));
  if (want_input) tt_lower_return(L, 0, from_rows(b, into, x->rank, x->sizes));
  tt_value_t columns[TT_GRID_SPATIAL];
  const int64_t column[] = {g.n, g.points, 1};
  for (uint32_t k = 0; k < g.spatial; k++) {
    columns[g.spatial - 1 - k] = tt_emit_reshape(b, slopes[k], 3, column);
  }
  tt_lower_return(L, 1,
                  tt_emit_reshape(b, tt_emit_concat(b, columns, g.spatial, 2), p->rank, p->sizes));
}
