// Random programs, planned against reference. TT_FUZZ_SEED and TT_FUZZ_COUNT widen the search.
#include "softtpu_plan_check.h"

typedef struct fuzz_s {
  tt_build_t b;
  tt_value_t pool[256];
  uint32_t count;
  bool exact;
} fuzz_t;

static const tt_dtype_t all_types[] = {
    TT_F32, TT_F32, TT_F32, TT_BF16, TT_F16, TT_F64, TT_S32,  TT_S64,    TT_S8,      TT_S16,
    TT_U8,  TT_U32, TT_U64, TT_I1,   TT_C64, TT_U16, TT_C128, TT_F8E5M2, TT_F8E4M3FN};

static tt_value_t pick(fuzz_t *f) {
  // Late values more often: long chains.
  if (rng_below(2)) return f->pool[f->count - 1 - (uint32_t)rng_below(f->count < 4 ? f->count : 4)];
  return f->pool[rng_below(f->count)];
}
static void push(fuzz_t *f, tt_value_t v) {
  if (v != TT_NO_VALUE && f->count < 256) f->pool[f->count++] = v;
}
static tt_value_t pick_type(fuzz_t *f, tt_dtype_t dtype) {
  for (int i = 0; i < 12; i++) {
    tt_value_t v = pick(f);
    if (tt_build_dtype(&f->b, v) == dtype) return v;
  }
  return TT_NO_VALUE;
}
static bool broadcastable(const tt_type_t *a, const tt_type_t *b) {
  for (uint32_t i = 1; i <= a->rank && i <= b->rank; i++) {
    int64_t x = a->dims[a->rank - i], y = b->dims[b->rank - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}
static int64_t small_dim(void) {
  static const int64_t dims[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 1, 0};
  int64_t d = dims[rng_below(12)];
  return d == 0 && rng_below(4) ? 6 : d;
}
static bool small_enough(const tt_type_t *t) {
  return tt_type_elements(t) <= 40000 && t->rank <= 6;
}

static void unary(fuzz_t *f) {
  static const tt_op_t floats[] = {TT_OP_ABS,
                                   TT_OP_NEGATE,
                                   TT_OP_CEIL,
                                   TT_OP_FLOOR,
                                   TT_OP_SIGN,
                                   TT_OP_SQRT,
                                   TT_OP_ROUND_NEAREST_EVEN,
                                   TT_OP_ROUND_NEAREST_AFZ};
  static const tt_op_t fuzzy[] = {TT_OP_EXPONENTIAL,  TT_OP_TANH,  TT_OP_LOGISTIC,
                                  TT_OP_ERF,          TT_OP_SINE,  TT_OP_COSINE,
                                  TT_OP_LOG,          TT_OP_RSQRT, TT_OP_EXPONENTIAL_MINUS_ONE,
                                  TT_OP_LOG_PLUS_ONE, TT_OP_CBRT,  TT_OP_ATAN};
  static const tt_op_t ints[] = {TT_OP_ABS, TT_OP_NEGATE, TT_OP_SIGN, TT_OP_NOT, TT_OP_POPCNT};
  tt_value_t x = pick(f);
  tt_dtype_t d = tt_build_dtype(&f->b, x);
  tt_op_t op = TT_OP_NEGATE;
  if (tt_dtype_is_float(d)) {
    op = floats[rng_below(8)];
    if (!f->exact && rng_below(2)) op = fuzzy[rng_below(12)];
    if (rng_below(12) == 0) op = TT_OP_IS_FINITE;
  } else if (tt_dtype_is_signed_int(d)) {
    op = ints[rng_below(5)];
  } else if (d == TT_I1) {
    op = TT_OP_NOT;
  } else if (tt_dtype_is_complex(d)) {
    static const tt_op_t ops[] = {TT_OP_NEGATE, TT_OP_REAL, TT_OP_IMAG, TT_OP_ABS};
    op = ops[rng_below(4)];
  } else {
    op = rng_below(2) ? TT_OP_NOT : TT_OP_POPCNT;
  }
  push(f, tt_emit_unary(&f->b, op, x));
}

static void binary(fuzz_t *f) {
  static const tt_op_t floats[] = {TT_OP_ADD,     TT_OP_SUBTRACT, TT_OP_MULTIPLY, TT_OP_DIVIDE,
                                   TT_OP_MAXIMUM, TT_OP_MINIMUM,  TT_OP_ADD,      TT_OP_MULTIPLY};
  static const tt_op_t ints[] = {TT_OP_ADD,
                                 TT_OP_SUBTRACT,
                                 TT_OP_MULTIPLY,
                                 TT_OP_DIVIDE,
                                 TT_OP_AND,
                                 TT_OP_OR,
                                 TT_OP_XOR,
                                 TT_OP_REMAINDER,
                                 TT_OP_SHIFT_LEFT,
                                 TT_OP_SHIFT_RIGHT_LOGICAL,
                                 TT_OP_SHIFT_RIGHT_ARITHMETIC,
                                 TT_OP_MAXIMUM,
                                 TT_OP_MINIMUM};
  tt_value_t x = pick(f), y = pick_type(f, tt_build_dtype(&f->b, x));
  if (y == TT_NO_VALUE) return;
  tt_type_t tx = *tt_build_type(&f->b, x), ty = *tt_build_type(&f->b, y);
  if (!broadcastable(&tx, &ty)) return;
  tt_op_t op;
  if (tt_dtype_is_float(tx.dtype)) {
    op = floats[rng_below(8)];
    if (!f->exact && rng_below(6) == 0) op = TT_OP_POWER;
  } else if (tt_dtype_is_complex(tx.dtype)) {
    op = floats[rng_below(3)];
  } else if (tx.dtype == TT_I1) {
    static const tt_op_t ops[] = {TT_OP_ADD, TT_OP_MULTIPLY, TT_OP_AND,
                                  TT_OP_OR,  TT_OP_XOR,      TT_OP_MAXIMUM};
    op = ops[rng_below(6)];
  } else {
    op = ints[rng_below(13)];
  }
  tt_value_t v = rng_below(5) == 0 && !tt_dtype_is_complex(tx.dtype)
                     ? tt_emit_compare(&f->b, (tt_compare_t)rng_below(6), x, y)
                     : tt_emit_binary(&f->b, op, x, y);
  push(f, v);
}

static void ternary(fuzz_t *f) {
  tt_value_t x = pick(f), y = pick_type(f, tt_build_dtype(&f->b, x));
  tt_type_t type = *tt_build_type(&f->b, x);
  if (y == TT_NO_VALUE || !tt_type_same_shape(&type, tt_build_type(&f->b, y))) return;
  if (rng_below(3) == 0 && !tt_dtype_is_complex(type.dtype)) {
    tt_value_t low = tt_emit_scalar(&f->b, type.dtype, type.dtype == TT_I1 ? 0 : 1);
    push(f, tt_emit_clamp(&f->b, low, x, y));
    return;
  }
  tt_value_t p = pick_type(f, TT_I1);
  if (p == TT_NO_VALUE) return;
  tt_type_t tp = *tt_build_type(&f->b, p);
  if (tp.rank == 0 || tt_type_same_shape(&tp, &type)) push(f, tt_emit_select(&f->b, p, x, y));
}

static void convert(fuzz_t *f) {
  push(f, tt_emit_convert(&f->b, pick(f), all_types[rng_below(19)]));
}

static void shape(fuzz_t *f) {
  tt_value_t x = pick(f);
  tt_type_t t = *tt_build_type(&f->b, x);
  int64_t dims[8], extra[8], third[8];
  switch (rng_below(8)) {
    case 0: {  // transpose
      for (uint32_t i = 0; i < t.rank; i++) dims[i] = i;
      for (uint32_t i = t.rank; i-- > 1;) {
        int64_t k = rng_below(i + 1), swap = dims[i];
        dims[i] = dims[k];
        dims[k] = swap;
      }
      push(f, tt_emit_transpose(&f->b, x, dims));
      return;
    }
    case 1: {  // slice
      for (uint32_t i = 0; i < t.rank; i++) {
        dims[i] = rng_below(t.dims[i]);
        extra[i] = dims[i] + rng_below(t.dims[i] - dims[i] + 1);
        third[i] = 1 + rng_below(3);
      }
      push(f, tt_emit_slice(&f->b, x, dims, extra, third));
      return;
    }
    case 2: {  // reshape: flatten, or split a dimension, or merge two
      if (t.rank >= 2 && rng_below(2)) {
        uint32_t at = (uint32_t)rng_below(t.rank - 1);
        uint32_t n = 0;
        for (uint32_t i = 0; i < t.rank; i++) {
          if (i == at + 1) continue;
          dims[n++] = i == at ? t.dims[i] * t.dims[i + 1] : t.dims[i];
        }
        push(f, tt_emit_reshape(&f->b, x, n, dims));
        return;
      }
      uint32_t n = 0;
      for (uint32_t i = 0; i < t.rank && n < 6; i++) {
        int64_t d = t.dims[i], by = d % 4 == 0 && d ? 4 : d % 3 == 0 && d ? 3 : 1;
        if (by > 1 && n < 5 && rng_below(2)) {
          dims[n++] = d / by;
          dims[n++] = by;
        } else {
          dims[n++] = d;
        }
      }
      int64_t total = 1;
      for (uint32_t i = 0; i < n; i++) total *= dims[i];
      if (total == tt_type_elements(&t)) push(f, tt_emit_reshape(&f->b, x, n, dims));
      return;
    }
    case 3: {  // broadcast
      if (t.rank > 4) return;
      uint32_t n = 0;
      dims[n++] = 1 + rng_below(4);
      for (uint32_t i = 0; i < t.rank; i++) dims[n++] = t.dims[i] == 1 ? small_dim() : t.dims[i];
      int64_t total = 1;
      for (uint32_t i = 0; i < n; i++) total *= dims[i];
      if (total <= 40000) push(f, tt_emit_broadcast_to(&f->b, x, n, dims));
      return;
    }
    case 4: {  // reverse
      if (t.rank == 0) return;
      dims[0] = rng_below(t.rank);
      push(f, tt_emit_reverse(&f->b, x, dims, 1));
      return;
    }
    case 5: {  // pad
      for (uint32_t i = 0; i < t.rank; i++) {
        dims[i] = rng_below(4) - 1;
        extra[i] = rng_below(4) - 1;
        third[i] = rng_below(3) == 0;
        int64_t size =
            t.dims[i] + (t.dims[i] > 0 ? (t.dims[i] - 1) * third[i] : 0) + dims[i] + extra[i];
        if (size < 0) return;
      }
      tt_value_t zero = tt_emit_scalar(&f->b, t.dtype, 1);
      push(f, tt_emit_pad(&f->b, x, zero, dims, extra, third));
      return;
    }
    case 6: {  // concatenate with itself and another
      if (t.rank == 0) return;
      tt_value_t y = pick_type(f, t.dtype);
      tt_value_t xs[3] = {x, y, x};
      if (y == TT_NO_VALUE || !tt_type_same_shape(&t, tt_build_type(&f->b, y))) xs[1] = x;
      push(f, tt_emit_concat(&f->b, xs, 3, rng_below(t.rank)));
      return;
    }
    default: {  // iota
      if (t.dtype == TT_I1 || tt_dtype_is_complex(t.dtype) || t.rank == 0) return;
      push(f, tt_emit_iota(&f->b, t.dtype, t.rank, t.dims, rng_below(t.rank)));
    }
  }
}

static void reduce(fuzz_t *f) {
  tt_value_t x = pick(f);
  tt_type_t t = *tt_build_type(&f->b, x);
  if (t.rank == 0 || tt_dtype_is_complex(t.dtype)) return;
  int64_t dims[8];
  uint32_t n = 0;
  for (uint32_t i = 0; i < t.rank; i++)
    if (rng_below(2)) dims[n++] = i;
  if (n == 0) dims[n++] = rng_below(t.rank);
  static const tt_op_t ops[] = {TT_OP_ADD, TT_OP_MAXIMUM, TT_OP_MINIMUM, TT_OP_ADD};
  tt_op_t op = ops[rng_below(4)];
  if (t.dtype == TT_I1) op = rng_below(2) ? TT_OP_AND : TT_OP_OR;
  // The order of f64 sums shows; those of smaller floats do not.
  if (t.dtype == TT_F64 && op == TT_OP_ADD) op = TT_OP_MAXIMUM;
  push(f, tt_emit_reduce(&f->b, op, x, dims, n, rng_below(2)));
}

static void memory(fuzz_t *f) {
  tt_value_t x = pick(f);
  tt_type_t t = *tt_build_type(&f->b, x);
  if (t.rank == 0 || t.rank > 5) return;
  int64_t sizes[8];
  tt_value_t starts[8];
  bool empty = false;
  for (uint32_t i = 0; i < t.rank; i++) {
    sizes[i] = 1 + rng_below(t.dims[i]);
    empty |= t.dims[i] == 0;
    starts[i] = tt_emit_scalar(&f->b, TT_S32, (double)(rng_below(12) - 2));
  }
  if (empty) return;
  if (rng_below(2)) {
    push(f, tt_emit_dynamic_slice(&f->b, x, starts, sizes));
    return;
  }
  tt_value_t update = tt_emit_dynamic_slice(
      &f->b,
      tt_emit_unary(
          &f->b, t.dtype == TT_I1 || tt_dtype_is_unsigned(t.dtype) ? TT_OP_NOT : TT_OP_NEGATE, x),
      starts, sizes);
  for (uint32_t i = 0; i < t.rank; i++)
    starts[i] = tt_emit_scalar(&f->b, TT_S32, (double)(rng_below(12) - 2));
  push(f, tt_emit_dynamic_update_slice(&f->b, x, update, starts));
}

static void make_inputs(fuzz_t *f, tt_graph_t *g) {
  uint32_t inputs = 1 + (uint32_t)rng_below(4);
  int64_t dims[4];
  uint32_t rank = (uint32_t)rng_below(5);
  for (uint32_t i = 0; i < 4; i++) dims[i] = small_dim();
  tt_dtype_t dtype = all_types[rng_below(19)];
  for (uint32_t i = 0; i < inputs; i++) {
    if (rng_below(3) == 0) dtype = all_types[rng_below(19)];
    if (rng_below(3) == 0) rank = (uint32_t)rng_below(5);
    int64_t mine[4];
    for (uint32_t k = 0; k < 4; k++) mine[k] = rng_below(6) == 0 ? 1 : dims[k];
    tt_type_t type = {dtype, rank, mine + (4 - rank)};
    if (rank == 4 && tt_type_elements(&type) > 20000) type.rank = 2;
    tt_value_t v;
    EXPECT_OK(tt_graph_argument(g, g->main, type, &v));
    push(f, v);
  }
}

static tt_graph_t *make_graph(uint64_t seed, bool exact, int families) {
  rng_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 12345;
  for (int i = 0; i < 4; i++) rng_next();
  tt_graph_t *g;
  EXPECT_OK(tt_graph_create("fuzz", &g));
  fuzz_t f = {.b = tt_build_on(g, g->main), .exact = exact};
  make_inputs(&f, g);
  int steps = 2 + (int)rng_below(rng_below(4) ? 14 : 60);
  for (int i = 0; i < steps; i++) {
    uint32_t before = f.count;
    int64_t what = rng_below(20);
    if (what < 5)
      unary(&f);
    else if (what < 10)
      binary(&f);
    else if (what < 12)
      ternary(&f);
    else if (what < 13)
      convert(&f);
    else if (what < 17)
      shape(&f);
    else if (what < 19) {
      if (families & 1) reduce(&f);
    } else if (families & 2)
      memory(&f);
    if (f.count > before && !small_enough(tt_build_type(&f.b, f.pool[f.count - 1]))) f.count--;
  }
  tt_value_t returns[4];
  uint32_t n = 1 + (uint32_t)rng_below(4);
  for (uint32_t i = 0; i < n; i++) returns[i] = i == 0 ? f.pool[f.count - 1] : pick(&f);
  EXPECT_OK(tt_build_finish(&f.b));
  EXPECT_OK(tt_graph_return(g, g->main, returns, n));
  for (uint32_t i = 0; i < g->main->arg_count; i++)
    if (rng_below(3) == 0) g->donations[i] = TT_DONATE;
  // A mandatory alias where types allow.
  for (uint32_t i = 0; i < g->main->arg_count && rng_below(2); i++)
    if (tt_type_equal(tt_graph_type(g, g->main->args[i]), tt_graph_type(g, returns[0]))) {
      g->donations[i] = 1;
      break;
    }
  return g;
}

static void fuzz(uint64_t first, uint64_t count, bool exact, double tolerance, int families) {
  tt_pool_t *pool;
  EXPECT_OK(tt_pool_create(2, &pool));
  int bad = 0;
  for (uint64_t seed = first; seed < first + count && bad < 3; seed++) {
    tt_graph_t *g = make_graph(seed, exact, families);
    check_t check = {
        .tolerance = tolerance, .special = seed & 1, .print = true, .pool = seed & 2 ? pool : NULL};
    double d = check_graph(g, &check);
    if (d > tolerance) {
      printf("seed %llu exact %d: %g\n", (unsigned long long)seed, exact, d);
      bad++;
      tt_test_failures++;
    }
    tt_graph_destroy(g);
  }
  tt_pool_destroy(pool);
}

static uint64_t setting(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

TEST(exact_programs_are_bitwise_equal) {
  fuzz(setting("TT_FUZZ_SEED", 1), setting("TT_FUZZ_COUNT", 1500), true, 0, 2);
}
TEST(reductions_agree) {
  fuzz(setting("TT_FUZZ_SEED", 500001), setting("TT_FUZZ_COUNT", 800), true, 1.0, 3);
}

// f32 functions are within 2 last places; programs of several amplify that, so one op each here.
TEST(functions_are_accurate) {
  static const tt_op_t ops[] = {TT_OP_EXPONENTIAL,  TT_OP_TANH,  TT_OP_LOGISTIC,
                                TT_OP_ERF,          TT_OP_SINE,  TT_OP_COSINE,
                                TT_OP_LOG,          TT_OP_RSQRT, TT_OP_EXPONENTIAL_MINUS_ONE,
                                TT_OP_LOG_PLUS_ONE, TT_OP_CBRT,  TT_OP_SQRT,
                                TT_OP_POWER};
  static const double scales[] = {0.01, 1, 10, 1000, 1e-30};
  static const tt_dtype_t types[] = {TT_F32, TT_BF16, TT_F16};
  const int64_t n = 20000;
  for (int t = 0; t < 3; t++) {
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
      for (int s = 0; s < 5; s++) {
        tt_graph_t *g;
        tt_value_t x, y;
        tt_type_t type = {types[t], 1, &n};
        EXPECT_OK(tt_graph_create("function", &g));
        EXPECT_OK(tt_graph_argument(g, g->main, type, &x));
        EXPECT_OK(tt_graph_argument(g, g->main, type, &y));
        tt_build_t b = tt_build_on(g, g->main);
        tt_value_t v =
            tt_emit_binary(&b, TT_OP_MULTIPLY, x, tt_emit_scalar(&b, types[t], scales[s]));
        v = ops[o] == TT_OP_POWER
                ? tt_emit_binary(&b, TT_OP_POWER, tt_emit_unary(&b, TT_OP_ABS, v), y)
                : tt_emit_unary(&b, ops[o], v);
        EXPECT_OK(tt_build_finish(&b));
        EXPECT_OK(tt_graph_return(g, g->main, &v, 1));
        check_t check = {.tolerance = 2.5, .special = s == 1, .print = true};
        distance_floor = 1e-37;
        double d = check_graph(g, &check);
        if (d > 2.5) printf("%s at scale %g: %g\n", tt_op_infos[ops[o]].text, scales[s], d);
        EXPECT(d <= 2.5);
        tt_graph_destroy(g);
      }
    }
  }
  distance_floor = 1e-3;
}

TEST_MAIN(functions_are_accurate, exact_programs_are_bitwise_equal, reductions_agree)
