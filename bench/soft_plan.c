// Times plans of the software TPU: overheads of a small program, throughput of large ones against
// memcpy. Prints one line a case. Not part of the build; link it with the static libraries.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "ir/build.h"
#include "softtpu/plan.h"

static double now(void) {
  struct timespec t;
  clock_gettime(getenv("CPU_TIME") ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static tt_graph_t *graph;
static tt_build_t b;
static tt_pool_t *pool;

static void must(tt_status_t status) {
  if (!status) return;
  fprintf(stderr, "%s\n", tt_status_message(status));
  exit(1);
}
static void start(void) {
  must(tt_graph_create("bench", &graph));
  b = tt_build_on(graph, graph->main);
}
static tt_value_t argument(tt_dtype_t dtype, uint32_t rank, const int64_t *dims) {
  tt_value_t v;
  tt_type_t type = {dtype, rank, dims};
  must(tt_graph_argument(graph, graph->main, type, &v));
  return v;
}
#define DIMS(...) \
  (const int64_t[]) { __VA_ARGS__ }

// The best of several runs of `repeat` each.
static void measure(const char *name, tt_value_t result, int repeat, double bytes, double flops) {
  must(tt_build_finish(&b));
  must(tt_graph_return(graph, graph->main, &result, 1));
  tt_plan_t *plan;
  double create = 1e9;
  for (int i = 0; i < 5; i++) {
    double t = now();
    must(tt_plan_create(graph, NULL, &plan));
    t = now() - t;
    if (t < create) create = t;
    if (i < 4) tt_plan_destroy(plan);
  }
  const void *in[16];
  void *out[4];
  for (uint32_t i = 0; i < tt_plan_input_count(plan); i++) {
    const tt_type_t *t = tt_plan_input_type(plan, i);
    size_t size = tt_type_bytes(t);
    char *data = tt_alloc_aligned(64, size + 64);
    if (t->dtype == TT_F32) {
      for (size_t k = 0; k < size / 4; k++)
        ((float *)(void *)data)[k] = (float)(k % 1000) * 0.002f - 1;
    } else {
      memset(data, 0x3c, size);
    }
    in[i] = data;
  }
  for (uint32_t i = 0; i < tt_plan_output_count(plan); i++) {
    out[i] = tt_alloc_aligned(64, tt_type_bytes(tt_plan_output_type(plan, i)) + 64);
    memset(out[i], 0, tt_type_bytes(tt_plan_output_type(plan, i)));
  }
  void *arena = tt_alloc_aligned(64, tt_plan_arena_bytes(plan) + 64);
  memset(arena, 0, tt_plan_arena_bytes(plan));
  for (int threaded = 0; threaded < 2; threaded++) {
    double best = 1e9;
    for (int i = 0; i < 7; i++) {
      double t = now();
      for (int k = 0; k < repeat; k++)
        must(tt_plan_run(plan, threaded ? pool : NULL, in, out, arena));
      t = (now() - t) / repeat;
      if (t < best) best = t;
    }
    printf("%-28s %s %10.3f us", name, threaded ? "pool" : "one ", best * 1e6);
    if (bytes > 0) printf("  %6.2f GB/s", bytes / best * 1e-9);
    if (flops > 0) printf("  %7.1f GFLOP/s", flops / best * 1e-9);
    if (!threaded) printf("  create %.1f us, %u kernels", create * 1e6, tt_plan_kernel_count(plan));
    printf("\n");
  }
  if (getenv("SHOW")) {
    char *text = tt_plan_describe(plan);
    printf("%s", text);
    tt_free(text);
  }
  for (uint32_t i = 0; i < tt_plan_input_count(plan); i++) tt_free((void *)(uintptr_t)in[i]);
  for (uint32_t i = 0; i < tt_plan_output_count(plan); i++) tt_free(out[i]);
  tt_free(arena);
  tt_plan_destroy(plan);
  tt_graph_destroy(graph);
}

static void bench_memcpy(void) {
  size_t bytes = (size_t)4 << 22;
  char *from = tt_alloc_aligned(64, bytes), *to = tt_alloc_aligned(64, bytes);
  memset(from, 1, bytes);
  memset(to, 1, bytes);
  double best = 1e9;
  for (int i = 0; i < 20; i++) {
    double t = now();
    memcpy(to, from, bytes);
    t = now() - t;
    if (t < best) best = t;
  }
  printf("%-28s      %10.3f us  %6.2f GB/s\n", "memcpy 4Mi f32", best * 1e6,
         2.0 * (double)bytes / best * 1e-9);
  tt_free(from);
  tt_free(to);
}

static tt_value_t chain(tt_value_t x, tt_value_t y) {
  tt_value_t v = tt_emit_binary(&b, TT_OP_MULTIPLY, x, y);
  v = tt_emit_binary(&b, TT_OP_ADD, v, tt_emit_splat_like(&b, v, 0.5));
  v = tt_emit_unary(&b, TT_OP_TANH, v);
  v = tt_emit_binary(&b, TT_OP_SUBTRACT, v, x);
  v = tt_emit_binary(&b, TT_OP_MAXIMUM, v, y);
  v = tt_emit_binary(&b, TT_OP_MULTIPLY, v, v);
  v = tt_emit_binary(&b, TT_OP_ADD, v, y);
  v = tt_emit_unary(&b, TT_OP_NEGATE, v);
  v = tt_emit_unary(&b, TT_OP_ABS, v);
  v = tt_emit_binary(&b, TT_OP_MULTIPLY, v, tt_emit_splat_like(&b, v, 0.7));
  v = tt_emit_binary(&b, TT_OP_ADD, v, x);
  v = tt_emit_binary(&b, TT_OP_MINIMUM, v, tt_emit_splat_like(&b, v, 3));
  return tt_emit_binary(&b, TT_OP_SUBTRACT, v, y);
}

static tt_value_t rows_of(tt_value_t v, const int64_t *dims) {
  return tt_emit_broadcast_to(&b, v, 2, dims);
}

static tt_value_t softmax(tt_value_t x, const int64_t *dims) {
  tt_value_t most = tt_emit_reduce(&b, TT_OP_MAXIMUM, x, DIMS(1), 1, true);
  tt_value_t e = tt_emit_unary(&b, TT_OP_EXPONENTIAL,
                               tt_emit_binary(&b, TT_OP_SUBTRACT, x, rows_of(most, dims)));
  tt_value_t sum = tt_emit_reduce(&b, TT_OP_ADD, e, DIMS(1), 1, true);
  return tt_emit_binary(&b, TT_OP_DIVIDE, e, rows_of(sum, dims));
}

static tt_value_t layer_norm(tt_value_t x, tt_value_t g, tt_value_t h, const int64_t *dims) {
  tt_value_t scale = tt_emit_scalar(&b, TT_F32, 1.0 / (double)dims[1]);
  tt_value_t mean =
      tt_emit_binary(&b, TT_OP_MULTIPLY, tt_emit_reduce(&b, TT_OP_ADD, x, DIMS(1), 1, true), scale);
  tt_value_t d = tt_emit_binary(&b, TT_OP_SUBTRACT, x, rows_of(mean, dims));
  tt_value_t sq = tt_emit_binary(&b, TT_OP_MULTIPLY, d, d);
  tt_value_t var = tt_emit_binary(&b, TT_OP_MULTIPLY,
                                  tt_emit_reduce(&b, TT_OP_ADD, sq, DIMS(1), 1, true), scale);
  tt_value_t r = tt_emit_unary(
      &b, TT_OP_RSQRT, tt_emit_binary(&b, TT_OP_ADD, var, tt_emit_scalar(&b, TT_F32, 1e-5)));
  tt_value_t y = tt_emit_binary(&b, TT_OP_MULTIPLY, d, rows_of(r, dims));
  return tt_emit_binary(&b, TT_OP_ADD, tt_emit_binary(&b, TT_OP_MULTIPLY, y, g), h);
}

int main(void) {
  must(tt_pool_create(2, &pool));
  bench_memcpy();
  start();
  measure("add 1",
          tt_emit_binary(&b, TT_OP_ADD, argument(TT_F32, 1, DIMS(1)), argument(TT_F32, 1, DIMS(1))),
          100000, 0, 0);
  start();
  measure("add rank 0 bf16",
          tt_emit_binary(&b, TT_OP_ADD, argument(TT_BF16, 0, NULL), argument(TT_BF16, 0, NULL)),
          100000, 0, 0);
  start();
  measure("sum 16", tt_emit_reduce(&b, TT_OP_ADD, argument(TT_F32, 1, DIMS(16)), DIMS(0), 1, false),
          100000, 0, 0);
  int64_t big = 4 << 20;
  start();
  measure("add 4Mi",
          tt_emit_binary(&b, TT_OP_ADD, argument(TT_F32, 1, &big), argument(TT_F32, 1, &big)), 4,
          12.0 * (double)big, 0);
  start();
  measure("chain of 13, 4Mi", chain(argument(TT_F32, 1, &big), argument(TT_F32, 1, &big)), 2,
          12.0 * (double)big, 0);
  start();
  measure("chain of 13 bf16, 4Mi", chain(argument(TT_BF16, 1, &big), argument(TT_BF16, 1, &big)), 2,
          6.0 * (double)big, 0);
  start();
  measure("tanh 4Mi", tt_emit_unary(&b, TT_OP_TANH, argument(TT_F32, 1, &big)), 2,
          8.0 * (double)big, 0);
  start();
  measure("exp 4Mi", tt_emit_unary(&b, TT_OP_EXPONENTIAL, argument(TT_F32, 1, &big)), 2,
          8.0 * (double)big, 0);
  start();
  measure("sin 4Mi", tt_emit_unary(&b, TT_OP_SINE, argument(TT_F32, 1, &big)), 2, 8.0 * (double)big,
          0);
  start();
  measure("transpose 2048x2048",
          tt_emit_transpose(&b, argument(TT_F32, 2, DIMS(2048, 2048)), DIMS(1, 0)), 2,
          8.0 * (double)big, 0);
  start();
  measure("sum rows 4096x1024",
          tt_emit_reduce(&b, TT_OP_ADD, argument(TT_F32, 2, DIMS(4096, 1024)), DIMS(1), 1, false),
          2, 4.0 * (double)big, 0);
  start();
  measure("sum columns 4096x1024",
          tt_emit_reduce(&b, TT_OP_ADD, argument(TT_F32, 2, DIMS(4096, 1024)), DIMS(0), 1, false),
          2, 4.0 * (double)big, 0);
  start();
  measure("sum all 4Mi",
          tt_emit_reduce(&b, TT_OP_ADD, argument(TT_F32, 1, &big), DIMS(0), 1, false), 2,
          4.0 * (double)big, 0);
  start();
  measure(
      "max rows 4096x1024",
      tt_emit_reduce(&b, TT_OP_MAXIMUM, argument(TT_F32, 2, DIMS(4096, 1024)), DIMS(1), 1, false),
      2, 4.0 * (double)big, 0);
  start();
  measure("softmax 1024x1024", softmax(argument(TT_F32, 2, DIMS(1024, 1024)), DIMS(1024, 1024)), 4,
          8.0 * 1048576, 0);
  start();
  tt_value_t x = argument(TT_F32, 2, DIMS(1024, 1024)), g = argument(TT_F32, 1, DIMS(1024)),
             h = argument(TT_F32, 1, DIMS(1024));
  measure("layer norm 1024x1024", layer_norm(x, g, h, DIMS(1024, 1024)), 4, 8.0 * 1048576, 0);
  start();
  measure("matmul 1024 f32",
          tt_emit_matmul(&b, argument(TT_F32, 2, DIMS(1024, 1024)),
                         argument(TT_F32, 2, DIMS(1024, 1024)), TT_F32),
          1, 0, 2.0 * 1073741824);
  start();
  measure("matmul 16 f32",
          tt_emit_matmul(&b, argument(TT_F32, 2, DIMS(16, 16)), argument(TT_F32, 2, DIMS(16, 16)),
                         TT_F32),
          1000, 0, 8192);
  tt_pool_destroy(pool);
  return 0;
}
