// Stable sorts by one key, everything else moved along.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plan_probe.h"
#include "softtpu/tile.h"

// Below SMALL an insertion sort beats the radix sort's counting.
enum { OPERANDS = 16, SMALL = 64 };

// Keys are sorted with their places; values move once, at the end.
typedef struct item_s {
  uint64_t key;
  int64_t index;
} item_t;

typedef struct sort_s {
  tt__order_t order;
  tt_dtype_t key;
  uint32_t count;
  uint32_t size_log2[OPERANDS];
  int64_t outer, length, inner;
} sort_t;

typedef struct job_s {
  const sort_t *sort;
  const char *in[OPERANDS];
  char *out[OPERANDS];
  _Atomic bool failed;
} job_t;

// Stable: an item passes only strictly larger keys.
static void insert_sort(item_t *items, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    item_t x = items[i];
    int64_t k = i;
    for (; k > 0 && items[k - 1].key > x.key; k--) items[k] = items[k - 1];
    items[k] = x;
  }
}

// Byte by byte from the lowest; bytes that all keys share are skipped. The result is in either
// array.
static item_t *radix_sort(item_t *items, item_t *spare, int64_t n, unsigned bytes) {
  int64_t counts[8][256];
  memset(counts, 0, sizeof counts[0] * bytes);
  for (int64_t i = 0; i < n; i++)
    for (unsigned b = 0; b < bytes; b++) counts[b][items[i].key >> (8 * b) & 255]++;
  for (unsigned b = 0; b < bytes; b++) {
    int64_t *count = counts[b], at = 0;
    if (count[items[0].key >> (8 * b) & 255] == n) continue;
    for (int v = 0; v < 256; v++) {
      int64_t here = count[v];
      count[v] = at;
      at += here;
    }
    for (int64_t i = 0; i < n; i++) spare[count[items[i].key >> (8 * b) & 255]++] = items[i];
    item_t *swap = items;
    items = spare;
    spare = swap;
  }
  return items;
}

#define MOVE(log2, T)                                                           \
  case log2: {                                                                  \
    const T *s = (const T *)(const void *)from;                                 \
    T *d = (T *)(void *)to;                                                     \
    for (int64_t i = 0; i < n; i++) d[i * stride] = s[items[i].index * stride]; \
    return;                                                                     \
  }
static void move(uint32_t size_log2, const char *from, char *to, const item_t *items, int64_t n,
                 int64_t stride) {
  switch (size_log2) {
    MOVE(0, uint8_t)
    MOVE(1, uint16_t)
    MOVE(2, uint32_t)
    MOVE(3, uint64_t)
    default:
      for (int64_t i = 0; i < n; i++)
        memcpy(to + i * stride * 16, from + items[i].index * stride * 16, 16);
  }
}

// A line is one run along the sorted dimension, its elements `inner` apart.
static void sort_lines(void *context, int64_t begin, int64_t end) {
  job_t *job = context;
  const sort_t *s = job->sort;
  size_t n = (size_t)s->length;
  char *room = tt_alloc(n * (2 * sizeof(item_t) + sizeof(uint64_t)));
  if (!room) {
    job->failed = true;
    return;
  }
  item_t *items = (item_t *)(void *)room, *spare = items + n;
  uint64_t *keys = (uint64_t *)(spare + n);
  for (int64_t line = begin; line < end; line++) {
    int64_t at = line / s->inner * s->length * s->inner + line % s->inner;
    tt__probe_keys(s->order, s->key, job->in[0] + (at << s->size_log2[0]), s->length, s->inner,
                   keys);
    for (int64_t i = 0; i < s->length; i++) items[i] = (item_t){keys[i], i};
    item_t *sorted = items;
    if (s->length <= SMALL)
      insert_sort(items, s->length);
    else
      sorted = radix_sort(items, spare, s->length, (unsigned)tt_dtype_size(s->key));
    for (uint32_t k = 0; k < s->count; k++)
      move(s->size_log2[k], job->in[k] + (at << s->size_log2[k]),
           job->out[k] + (at << s->size_log2[k]), sorted, s->length, s->inner);
  }
  tt_free(room);
}

static tt_status_t run_sort(const tt__step_t *step, const tt__run_t *run) {
  job_t job = {.sort = step->data};
  for (uint32_t k = 0; k < job.sort->count; k++) {
    job.in[k] = tt__at(run, step->in[k]);
    job.out[k] = tt__at(run, step->out[k]);
  }
  if (job.sort->length > 0)
    tt__plan_parallel(run, job.sort->outer * job.sort->inner, step->cost, sort_lines, &job);
  return job.failed ? TT_ERROR(OUT_OF_MEMORY, "no memory for a sort's keys") : TT_OK_STATUS;
}

tt_status_t tt__plan_sort_step(tt__planner_t *p, const tt_node_t *n, tt__step_t **out_step) {
  if (n->op != TT_OP_SORT || n->operand_count > OPERANDS) return TT_OK_STATUS;
  const tt_type_t *x = tt_graph_type(p->graph, n->operands[0]);
  tt__order_t order;
  TT_RETURN_IF_ERROR(tt__probe_comparator(p, n, &order));
  if (order == TT__ORDER_NONE || x->rank == 0) return TT_OK_STATUS;
  sort_t *s = tt_arena_zeroed(p->arena, sizeof *s);
  if (!s) return tt__plan_no_memory();
  int64_t dim = tt_node_int(n, TT_ATTR_DIMENSION, -1);
  if (dim < 0) dim += x->rank;
  s->order = order;
  s->key = x->dtype;
  s->count = n->operand_count;
  for (uint32_t k = 0; k < s->count; k++)
    s->size_log2[k] = tt__size_log2(tt_dtype_size(tt_graph_type(p->graph, n->operands[k])->dtype));
  s->outer = s->inner = 1;
  s->length = x->dims[dim];
  for (int64_t d = 0; d < dim; d++) s->outer *= x->dims[d];
  for (uint32_t d = (uint32_t)dim + 1; d < x->rank; d++) s->inner *= x->dims[d];
  TT_RETURN_IF_ERROR(tt__plan_plain_step(p, run_sort, "sort", n, out_step));
  (*out_step)->data = s;
  (*out_step)->cost = (uint64_t)tt_type_elements(x) * 20;
  return TT_OK_STATUS;
}
