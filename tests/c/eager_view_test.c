// Views against a naive as_strided over bytes: random geometries, dtypes, base shapes.
#include "aten/view.h"
#include "softtpu/reference.h"
#include "test.h"

enum { MAX = 4096 };

static uint64_t state = 88172645463325252u;
static uint32_t rnd(uint32_t n) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 20) % n;
}

typedef struct geometry_s {
  int64_t sizes[8], strides[8], offset;
  uint32_t rank;
} geometry_t;

static int64_t count(const geometry_t *g) {
  int64_t n = 1;
  for (uint32_t i = 0; i < g->rank; i++) n *= g->sizes[i];
  return n;
}

static int64_t last(const geometry_t *g) {
  int64_t at = g->offset;
  for (uint32_t i = 0; i < g->rank; i++) at += (g->sizes[i] - 1) * g->strides[i];
  return at;
}

// The k-th element's position.
static int64_t position(const geometry_t *g, int64_t k) {
  int64_t at = g->offset;
  for (uint32_t i = g->rank; i-- > 0;) {
    at += k % g->sizes[i] * g->strides[i];
    k /= g->sizes[i];
  }
  return at;
}

// A view as users make them: slices, transposes, selects, expands, splits and merges; or just
// random numbers.
static geometry_t random_view(const int64_t *dims, uint32_t rank) {
  geometry_t g = {.rank = rank};
  int64_t stride = 1;
  for (uint32_t i = rank; i-- > 0;) {
    g.sizes[i] = dims[i];
    g.strides[i] = stride;
    stride *= dims[i];
  }
  if (rnd(5) == 0) {  // anything
    g.rank = rnd(4);
    g.offset = rnd(3);
    for (uint32_t i = 0; i < g.rank; i++) {
      g.sizes[i] = 1 + rnd(4);
      g.strides[i] = rnd(9);
    }
    return g;
  }
  for (uint32_t steps = rnd(6); steps-- > 0;) {
    uint32_t d = g.rank ? rnd(g.rank) : 0, e = g.rank ? rnd(g.rank) : 0;
    switch (g.rank ? rnd(6) : 5) {
      case 0: {  // slice
        int64_t step = 1 + rnd(3), start = rnd((uint32_t)g.sizes[d]);
        int64_t most = (g.sizes[d] - start + step - 1) / step;
        g.offset += start * g.strides[d];
        g.sizes[d] = 1 + rnd((uint32_t)most);
        g.strides[d] *= step;
        break;
      }
      case 1: {  // transpose
        int64_t s = g.sizes[d], t = g.strides[d];
        g.sizes[d] = g.sizes[e], g.strides[d] = g.strides[e];
        g.sizes[e] = s, g.strides[e] = t;
        break;
      }
      case 2:  // select
        g.offset += rnd((uint32_t)g.sizes[d]) * g.strides[d];
        for (uint32_t i = d; i + 1 < g.rank; i++) {
          g.sizes[i] = g.sizes[i + 1], g.strides[i] = g.strides[i + 1];
        }
        g.rank--;
        break;
      case 3:  // merge with the next
        if (d + 1 < g.rank && g.strides[d] == g.strides[d + 1] * g.sizes[d + 1]) {
          g.sizes[d] *= g.sizes[d + 1], g.strides[d] = g.strides[d + 1];
          for (uint32_t i = d + 1; i + 1 < g.rank; i++) {
            g.sizes[i] = g.sizes[i + 1], g.strides[i] = g.strides[i + 1];
          }
          g.rank--;
        }
        break;
      case 4:  // split
        if (g.rank < 6 && g.sizes[d] % 2 == 0) {
          for (uint32_t i = g.rank; i > d + 1; i--) {
            g.sizes[i] = g.sizes[i - 1], g.strides[i] = g.strides[i - 1];
          }
          g.sizes[d + 1] = 2, g.strides[d + 1] = g.strides[d];
          g.sizes[d] /= 2, g.strides[d] *= 2;
          g.rank++;
        }
        break;
      default:  // expand or unsqueeze
        if (g.rank < 6) {
          g.sizes[g.rank] = 1 + rnd(3), g.strides[g.rank] = rnd(3) ? 0 : 1 + rnd(7);
          if (g.strides[g.rank]) g.sizes[g.rank] = 1;
          g.rank++;
        }
    }
  }
  return g;
}

static bool overlaps(const geometry_t *g) {
  static int seen[MAX], run;
  run++;
  for (int64_t k = 0; k < count(g); k++) {
    int64_t p = position(g, k);
    if (p < MAX && seen[p] == run) return true;
    if (p < MAX) seen[p] = run;
  }
  return false;
}

typedef struct pair_s {
  tt_dtype_t base, view;
} pair_t;
static const pair_t pairs[] = {{TT_F32, TT_F32}, {TT_F32, TT_F32}, {TT_S32, TT_F32},
                               {TT_S64, TT_S16}, {TT_U8, TT_S32},  {TT_C64, TT_F32},
                               {TT_F32, TT_C64}, {TT_BF16, TT_U8}, {TT_S16, TT_S16}};

// Bytes that are no NaN in any dtype, so that reading and writing floats keeps them.
static void fill(uint8_t *data, size_t n) {
  for (size_t i = 0; i < n; i++) data[i] = (uint8_t)rnd(0x3f);
}

static void describe(const geometry_t *g, const int64_t *dims, uint32_t rank, pair_t p) {
  printf("  base %s [", tt_dtype_text(p.base));
  for (uint32_t i = 0; i < rank; i++) printf(" %lld", (long long)dims[i]);
  printf(" ] view %s sizes", tt_dtype_text(p.view));
  for (uint32_t i = 0; i < g->rank; i++) printf(" %lld", (long long)g->sizes[i]);
  printf(" strides");
  for (uint32_t i = 0; i < g->rank; i++) printf(" %lld", (long long)g->strides[i]);
  printf(" offset %lld\n", (long long)g->offset);
}

static int gathers, scatters, total;
static void count_ops(const tt_graph_t *graph) {
  total++;
  for (uint32_t i = 0; i < graph->main->node_count; i++) {
    gathers += graph->main->nodes[i]->op == TT_OP_GATHER;
    scatters += graph->main->nodes[i]->op == TT_OP_SCATTER;
  }
}

// One random base and view, read and written. False when something differs.
static bool trial(void) {
  static uint8_t memory[MAX * 8], want[MAX * 8], got[MAX * 8], fresh[MAX * 8], after[MAX * 8];
  pair_t p = pairs[rnd(sizeof pairs / sizeof *pairs)];
  int64_t dims[4], elements = 1;
  uint32_t rank = rnd(5);
  for (uint32_t i = 0; i < rank; i++) elements *= dims[i] = 1 + rnd(6);
  size_t base_size = tt_dtype_size(p.base), size = tt_dtype_size(p.view);
  size_t bytes = (size_t)elements * base_size;
  geometry_t g;
  if (size == base_size) {
    g = random_view(dims, rank);
  } else {
    int64_t whole = (int64_t)(bytes / size);
    if (whole == 0) return true;
    g = random_view(&whole, 1);
  }
  if (count(&g) > MAX / 2 || last(&g) >= MAX / 2) return true;
  // Sometimes the storage has grown past its value since.
  size_t storage = (size_t)(last(&g) + 1) * size > bytes ? (size_t)(last(&g) + 1) * size : bytes;
  memset(memory, 0, sizeof memory);
  fill(memory, bytes);
  tt_view_t view = {p.view, g.rank, g.sizes, g.strides, g.offset};

  tt_graph_t *graph;
  tt_value_t base, value;
  EXPECT_OK(tt_graph_create(NULL, &graph));
  tt_build_t b = tt_build_on(graph, graph->main);
  EXPECT_OK(tt_graph_argument(graph, graph->main, (tt_type_t){p.base, rank, dims}, &base));
  EXPECT_OK(tt_graph_argument(graph, graph->main, (tt_type_t){p.view, g.rank, g.sizes}, &value));
  tt_value_t results[2] = {tt_view_read(&b, base, &view),
                           tt_view_write(&b, base, value, &view, storage)};
  tt_status_t s = tt_build_finish(&b);
  if (s) {
    EXPECT_OK(s);
    describe(&g, dims, rank, p);
    tt_graph_destroy(graph);
    return false;
  }
  EXPECT_OK(tt_graph_return(graph, graph->main, results, 2));
  count_ops(graph);
  fill(fresh, (size_t)count(&g) * size);
  memset(after, 0, sizeof after);
  EXPECT_OK(tt_reference_run(graph, (const void *[]){memory, fresh}, (void *[]){got, after}));
  bool ok = true;
  for (int64_t k = 0; k < count(&g); k++) {
    memcpy(want + (size_t)k * size, memory + (size_t)position(&g, k) * size, size);
  }
  if (memcmp(want, got, (size_t)count(&g) * size) != 0) ok = false, printf("read differs\n");
  size_t after_bytes = tt_type_bytes(tt_graph_type(graph, results[1]));
  if (after_bytes < bytes && after_bytes / size < bytes / size)
    ok = false, printf("write shrinks\n");
  if (!overlaps(&g)) {
    for (int64_t k = 0; k < count(&g); k++) {
      memcpy(memory + (size_t)position(&g, k) * size, fresh + (size_t)k * size, size);
    }
    if (memcmp(memory, after, after_bytes) != 0) ok = false, printf("write differs\n");
  }
  if (!ok) describe(&g, dims, rank, p);
  tt_graph_destroy(graph);
  return ok;
}

TEST(random_views) {
  int failures = 0;
  for (int i = 0; i < 6000 && failures < 5; i++) failures += !trial();
  EXPECT_INT(failures, 0);
  // Nearly all views that people make need no index arithmetic.
  EXPECT(total > 4000);
  EXPECT(gathers < total / 8);
  EXPECT(scatters < total / 8);
  if (tt_test_failures) printf("%d gathers, %d scatters in %d\n", gathers, scatters, total);
}

static uint32_t emitted(const tt_graph_t *graph) { return graph->main->node_count; }

TEST(identity_costs_nothing) {
  tt_graph_t *graph;
  tt_value_t base;
  int64_t sizes[2] = {2, 3}, strides[2] = {3, 1}, transposed[2] = {3, 2}, back[2] = {1, 3};
  EXPECT_OK(tt_graph_create(NULL, &graph));
  tt_build_t b = tt_build_on(graph, graph->main);
  EXPECT_OK(tt_graph_argument(graph, graph->main, (tt_type_t){TT_F32, 2, sizes}, &base));
  tt_view_t view = {TT_F32, 2, sizes, strides, 0};
  EXPECT_INT(tt_view_read(&b, base, &view), base);
  EXPECT_INT(tt_view_write(&b, TT_NO_VALUE, base, &view, 24), base);
  EXPECT_INT(emitted(graph), 0);
  tt_view_t t = {TT_F32, 2, transposed, back, 0};
  EXPECT(tt_view_covers(&t, 24));
  EXPECT(!tt_view_covers(&t, 28));
  tt_view_read(&b, base, &t);
  EXPECT_INT(emitted(graph), 1);
  EXPECT_INT(graph->main->nodes[0]->op, TT_OP_TRANSPOSE);
  EXPECT_OK(tt_build_finish(&b));
  tt_graph_destroy(graph);
}

TEST(unwritten_and_empty) {
  tt_graph_t *graph;
  int64_t sizes[1] = {3}, strides[1] = {2}, none[2] = {0, 4}, four[2] = {4, 1};
  float got[5], three[3] = {7, 8, 9}, storage[5];
  EXPECT_OK(tt_graph_create(NULL, &graph));
  tt_build_t b = tt_build_on(graph, graph->main);
  tt_value_t value;
  EXPECT_OK(tt_graph_argument(graph, graph->main, (tt_type_t){TT_F32, 1, sizes}, &value));
  tt_view_t view = {TT_F32, 1, sizes, strides, 0}, empty = {TT_F32, 2, none, four, 3};
  tt_value_t results[3] = {tt_view_read(&b, TT_NO_VALUE, &view),
                           tt_view_write(&b, TT_NO_VALUE, value, &view, 20),
                           tt_view_read(&b, value, &empty)};
  EXPECT_OK(tt_build_finish(&b));
  EXPECT_OK(tt_graph_return(graph, graph->main, results, 3));
  EXPECT_OK(tt_reference_run(graph, (const void *[]){three}, (void *[]){got, storage, got + 3}));
  EXPECT(got[0] == 0 && got[1] == 0 && got[2] == 0);
  EXPECT(storage[0] == 7 && storage[1] == 0 && storage[2] == 8 && storage[3] == 0 &&
         storage[4] == 9);
  tt_graph_destroy(graph);
}

TEST_MAIN(identity_costs_nothing, unwritten_and_empty, random_views)
