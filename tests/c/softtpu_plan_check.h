// Runs a program planned and by the reference executor on the same inputs and compares.
#ifndef TT_TESTS_SOFTTPU_PLAN_CHECK_H_
#define TT_TESTS_SOFTTPU_PLAN_CHECK_H_

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "ir/build.h"
#include "softtpu/element.h"
#include "softtpu/plan.h"
#include "softtpu/reference.h"
#include "test.h"

enum { GUARD = 64, MAX_VALUES = 64 };

static uint64_t rng_state = 88172645463325252u;
static inline uint64_t rng_next(void) {
  rng_state ^= rng_state << 13;
  rng_state ^= rng_state >> 7;
  rng_state ^= rng_state << 17;
  return rng_state * UINT64_C(0x9e3779b97f4a7c15);
}
static inline int64_t rng_below(int64_t n) {
  return n <= 0 ? 0 : (int64_t)((rng_next() >> 33) % (uint64_t)n);
}
static inline double rng_unit(void) { return (double)(rng_next() >> 11) / 9007199254740992.0; }

// Memory with guard zones on both sides.
typedef struct guarded_s {
  char *base, *data;
  size_t bytes;
} guarded_t;

static inline guarded_t guarded(size_t bytes) {
  guarded_t g = {tt_alloc_aligned(64, bytes + 2 * GUARD), NULL, bytes};
  memset(g.base, 0xA5, bytes + 2 * GUARD);
  g.data = g.base + GUARD;
  return g;
}
static inline bool guard_ok(const guarded_t *g) {
  for (size_t i = 0; i < GUARD; i++)
    if ((unsigned char)g->base[i] != 0xA5 || (unsigned char)g->data[g->bytes + i] != 0xA5)
      return false;
  return true;
}

static inline void random_fill(tt_dtype_t dtype, int64_t count, void *data, bool special) {
  for (int64_t i = 0; i < count; i++) {
    double x = rng_unit() * 6 - 3;
    if (special && rng_below(12) == 0) {
      static const double odd[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 1e30, 0.5, 100};
      x = odd[rng_below(10)];
    }
    char *to = (char *)data + (size_t)i * tt_dtype_size(dtype);
    tt_element_t e;
    memset(&e, 0, sizeof e);
    switch (tt_element_wide(dtype)) {
      case TT_WIDE_REAL:
        e.real = x;
        break;
      case TT_WIDE_SIGNED:
        e.i = special ? (int64_t)rng_next() : rng_below(21) - 10;
        break;
      case TT_WIDE_UNSIGNED:
        e.u = dtype == TT_I1 ? rng_next() >> 63 : special ? rng_next() : (uint64_t)rng_below(20);
        break;
      case TT_WIDE_COMPLEX:
        e.z.re = x;
        e.z.im = rng_unit() * 4 - 2;
        break;
    }
    tt_element_store(dtype, &e, 1, to);
  }
}

// Distance relative to max(1, |b|) in the type's last places; equal NaN and infinities are 0.
// Values below this count as this large: sums of larger terms lose their small results.
static double distance_floor = 1e-3;

static inline double distance(double a, double b, tt_dtype_t dtype) {
  if (isnan(a) && isnan(b)) return 0;
  if (a == b) return 0;
  if (isnan(a) || isnan(b) || isinf(a) || isinf(b)) return INFINITY;
  double unit = ldexp(1, -(int)tt_dtype_infos[dtype].mantissa);
  double size = fabs(b) > distance_floor ? fabs(b) : distance_floor;
  return fabs(a - b) / (unit * size);
}

static inline double worst(tt_dtype_t dtype, int64_t count, const void *a, const void *b) {
  double most = 0;
  size_t size = tt_dtype_size(dtype);
  for (int64_t i = 0; i < count; i++) {
    const char *p = (const char *)a + (size_t)i * size, *q = (const char *)b + (size_t)i * size;
    if (memcmp(p, q, size) == 0) continue;
    tt_element_t x, y;
    tt_element_load(dtype, p, 1, &x);
    tt_element_load(dtype, q, 1, &y);
    double d = INFINITY;
    if (tt_element_wide(dtype) == TT_WIDE_REAL) {
      d = distance(x.real, y.real, dtype);
      if (d == 0 && x.real == 0) d = 0.25;  // zeros of different signs
    }
    if (tt_element_wide(dtype) == TT_WIDE_COMPLEX) {
      double re = distance(x.z.re, y.z.re, dtype);
      double im = distance(x.z.im, y.z.im, dtype);
      d = re > im ? re : im;
    }
    if (d > most) most = d;
  }
  return most;
}

static inline void print_first(tt_dtype_t dtype, int64_t count, const void *a, const void *b) {
  size_t size = tt_dtype_size(dtype);
  for (int64_t i = 0, shown = 0; i < count && shown < 4; i++) {
    const char *p = (const char *)a + (size_t)i * size, *q = (const char *)b + (size_t)i * size;
    if (memcmp(p, q, size) == 0) continue;
    tt_element_t x = {0}, y = {0};
    tt_element_load(dtype, p, 1, &x);
    tt_element_load(dtype, q, 1, &y);
    printf("  [%lld] %g (%llx), expected %g (%llx)\n", (long long)i, x.real,
           (unsigned long long)x.u, y.real, (unsigned long long)y.u);
    shown++;
  }
}

typedef struct check_s {
  double tolerance;  // last places
  bool special;      // NaN, infinities and the like among the inputs
  tt_pool_t *pool;
  bool print;
} check_t;

// The worst distance over all outputs; INFINITY where a run failed or wrote out of bounds.
static inline double check_graph(const tt_graph_t *graph, const check_t *check) {
  tt_plan_t *plan;
  tt_status_t status = tt_plan_create(graph, NULL, &plan);
  if (status) {
    printf("plan: %s\n", tt_status_message(status));
    tt_status_release(status);
    return INFINITY;
  }
  uint32_t ins = tt_plan_input_count(plan), outs = tt_plan_output_count(plan);
  guarded_t in[MAX_VALUES], ref_in[MAX_VALUES], out[MAX_VALUES], want[MAX_VALUES];
  const void *in_data[MAX_VALUES], *ref_data[MAX_VALUES];
  void *out_data[MAX_VALUES], *want_data[MAX_VALUES];
  for (uint32_t i = 0; i < ins; i++) {
    const tt_type_t *type = tt_plan_input_type(plan, i);
    in[i] = guarded(tt_type_bytes(type));
    ref_in[i] = guarded(tt_type_bytes(type));
    random_fill(type->dtype, tt_type_elements(type), in[i].data, check->special);
    memcpy(ref_in[i].data, in[i].data, in[i].bytes);
    in_data[i] = in[i].data;
    ref_data[i] = ref_in[i].data;
  }
  for (uint32_t o = 0; o < outs; o++) {
    size_t bytes = tt_type_bytes(tt_plan_output_type(plan, o));
    out[o] = guarded(bytes);
    want[o] = guarded(bytes);
    int32_t alias = tt_plan_output_alias(plan, o);
    out_data[o] = alias >= 0 ? in[alias].data : out[o].data;
    want_data[o] = want[o].data;
  }
  guarded_t arena = guarded(tt_plan_arena_bytes(plan));
  double most = 0;
  tt_status_t s1 = tt_reference_run(graph, ref_data, want_data);
  tt_status_t s2 = tt_plan_run(plan, check->pool, in_data, out_data, arena.data);
  if (s1 || s2) {
    // Both may fail, for the same reason.
    if (!s1 || !s2) {
      printf("reference: %s; plan: %s\n", tt_status_message(s1), tt_status_message(s2));
      most = INFINITY;
    }
  } else {
    for (uint32_t o = 0; o < outs; o++) {
      const tt_type_t *type = tt_plan_output_type(plan, o);
      double d = worst(type->dtype, tt_type_elements(type), out_data[o], want_data[o]);
      if (d > check->tolerance && check->print) {
        printf("output %u is off by %g\n", o, d);
        print_first(type->dtype, tt_type_elements(type), out_data[o], want_data[o]);
      }
      if (d > most) most = d;
      if (!guard_ok(&out[o])) most = INFINITY;
    }
    if (!guard_ok(&arena)) {
      printf("the arena's guard was overwritten\n");
      most = INFINITY;
    }
    for (uint32_t i = 0; i < ins; i++) {
      bool donated = graph->donations && graph->donations[i] != TT_KEEP;
      if (!guard_ok(&in[i]) || (!donated && memcmp(in[i].data, ref_in[i].data, in[i].bytes) != 0)) {
        printf("input %u was overwritten\n", i);
        most = INFINITY;
      }
    }
  }
  tt_status_release(s1);
  tt_status_release(s2);
  if (most > check->tolerance && check->print) {
    char *text = NULL, *listing = tt_plan_describe(plan);
    size_t size = 0;
    tt_status_release(tt_graph_print(graph, &text, &size));
    printf("%.*s\n%s\n", (int)size, text ? text : "", listing ? listing : "");
    tt_free(text);
    tt_free(listing);
  }
  for (uint32_t i = 0; i < ins; i++) {
    tt_free(in[i].base);
    tt_free(ref_in[i].base);
  }
  for (uint32_t o = 0; o < outs; o++) {
    tt_free(out[o].base);
    tt_free(want[o].base);
  }
  tt_free(arena.base);
  tt_plan_destroy(plan);
  return most;
}

#endif  // TT_TESTS_SOFTTPU_PLAN_CHECK_H_
