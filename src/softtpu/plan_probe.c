// A comparator of elementwise ops over two scalars is a function: what it answers for a dozen
// telling values (zeros of both signs, infinities, NaN of both signs, the ends of the range)
// against each other decides which order it is. A body that agreed on all of them and differed
// elsewhere would have to look for particular numbers, which no comparator does.
#include "softtpu/plan_probe.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/element.h"
#include "softtpu/reference_internal.h"

// 9: all pairs of three indices, for arg-reductions.
enum { SAMPLES = 12, PAIRS = SAMPLES * SAMPLES * 9, MAX_NODES = 32 };

// Elementwise nodes over the block's arguments only; *out_used: bit i where argument i matters.
static bool is_simple(const tt__planner_t *p, const tt_block_t *block, uint64_t *out_used) {
  *out_used = 0;
  if (block->node_count == 0 || block->node_count > MAX_NODES || block->arg_count > 64)
    return false;
  for (uint32_t i = 0; i < block->node_count; i++) {
    const tt_node_t *n = block->nodes[i];
    if (!tt__ref_lane_can(n) || n->result_count != 1) return false;
    for (uint32_t k = 0; k < n->operand_count; k++) {
      const tt_value_info_t *info = &p->graph->values[n->operands[k]];
      if (info->block != block) return false;
      if (!info->node) *out_used |= UINT64_C(1) << info->index;
    }
  }
  return true;
}

// The telling values of a type; how many.
static int sample(tt_dtype_t dtype, char *out) {
  static const double reals[] = {-INFINITY, -2, -1, -0.0, 0.0, 1, 2, INFINITY};
  size_t size = tt_dtype_size(dtype);
  unsigned bits = tt_dtype_infos[dtype].bits;
  int n = 0;
  if (tt_dtype_is_float(dtype)) {
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
      tt_element_store(dtype, &reals[i], 1, out + size * (size_t)n++);
    for (int sign = 0; sign < 2; sign++) {
      double nan = copysign((double)NAN, sign ? -1 : 1);
      tt_element_store(dtype, &nan, 1, out + size * (size_t)n++);
    }
    return n;
  }
  uint64_t top = bits == 1 ? 1 : UINT64_C(1) << (bits - 1);
  const uint64_t words[] = {0, 1, 2, top - 1, top, top + 1, ~UINT64_C(0), ~UINT64_C(0) - 1};
  for (size_t i = 0; i < (bits == 1 ? 2u : 8u); i++)
    tt_element_store(dtype, &words[i], 1, out + size * (size_t)n++);
  return n;
}

// An unsigned integer that orders as asked: the sign bit flipped, negative floats complemented.
static uint64_t key_of(tt__order_t order, tt_dtype_t dtype, const char *at) {
  unsigned bits = tt_dtype_infos[dtype].bits;
  uint64_t mask = bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1, sign = UINT64_C(1)
                                                                                << (bits - 1);
  uint64_t word = 0;
  memcpy(&word, at, tt_dtype_size(dtype));
  word &= mask;
  bool total = order == TT__ORDER_TOTAL_ASCENDING || order == TT__ORDER_TOTAL_DESCENDING;
  bool descending = order == TT__ORDER_DESCENDING || order == TT__ORDER_TOTAL_DESCENDING;
  if (tt_dtype_is_float(dtype)) {
    double x;
    tt_element_load(dtype, at, 1, &x);
    if (!total && isnan(x)) return descending ? 0 : mask;
    if (!total && x == 0) word = 0;
    word = word & sign ? ~word & mask : word | sign;
  } else if (tt_dtype_is_signed_int(dtype)) {
    word ^= sign;
  }
  return descending ? ~word & mask : word;
}

// The common types without the detour over f64.
#define KEYS(T, U, is_nan, zero)                          \
  for (int64_t i = 0; i < count; i++) {                   \
    U w;                                                  \
    memcpy(&w, (const T *)data + i * stride, sizeof w);   \
    U sign = (U)((U)1 << (sizeof(U) * 8 - 1));            \
    bool nan = !total && (U)(w & (U)~sign) > (U)(is_nan); \
    if (!total && (U)(w << 1) == 0) w = 0;                \
    w = w & sign ? (U)~w : (U)(w | sign);                 \
    if (nan) w = (U) ~(U)0;                               \
    out_keys[i] = descending ? (U)~w : w;                 \
  }                                                       \
  return;

void tt__probe_keys(tt__order_t order, tt_dtype_t dtype, const void *data, int64_t count,
                    int64_t stride, uint64_t *out_keys) {
  bool total = order == TT__ORDER_TOTAL_ASCENDING || order == TT__ORDER_TOTAL_DESCENDING;
  bool descending = order == TT__ORDER_DESCENDING || order == TT__ORDER_TOTAL_DESCENDING;
  if (dtype == TT_F32) {
    KEYS(uint32_t, uint32_t, 0x7f800000u, 0)
  }
  if (dtype == TT_BF16) {
    KEYS(uint16_t, uint16_t, 0x7f80u, 0)
  }
  if (dtype == TT_F16) {
    KEYS(uint16_t, uint16_t, 0x7c00u, 0)
  }
  if (dtype == TT_F64) {
    KEYS(uint64_t, uint64_t, UINT64_C(0x7ff0000000000000), 0)
  }
  int64_t size = (int64_t)tt_dtype_size(dtype);
  for (int64_t i = 0; i < count; i++)
    out_keys[i] = key_of(order, dtype, (const char *)data + i * stride * size);
}

// On the reference executor, all pairs in one call.
static tt_status_t run_region(tt__planner_t *p, const tt_node_t *n, int64_t count,
                              const void *const *args, void *const *outs) {
  tt__ref_call_t call = {.graph = p->graph, .node = n};
  tt__ref_region_t *region;
  TT_RETURN_IF_ERROR(tt__ref_region_create(&call, n->regions[0], &region));
  tt_status_t status = tt__ref_region_run(region, count, args, outs);
  tt__ref_region_destroy(region);
  return status;
}

tt_status_t tt__probe_comparator(tt__planner_t *p, const tt_node_t *n, tt__order_t *out_order) {
  const tt_block_t *block = n->regions[0];
  uint64_t used;
  *out_order = TT__ORDER_NONE;
  if (!is_simple(p, block, &used) || (used & ~UINT64_C(3)) != 0) return TT_OK_STATUS;
  tt_dtype_t dtype = tt_graph_type(p->graph, block->args[0])->dtype;
  if (tt_dtype_is_complex(dtype)) return TT_OK_STATUS;
  size_t size = tt_dtype_size(dtype);
  char values[SAMPLES * 16], x[PAIRS * 8], y[PAIRS * 8];
  uint8_t less[PAIRS];
  static const char zeros[PAIRS * 16];
  int n_values = sample(dtype, values), pairs = 0;
  for (int i = 0; i < n_values; i++)
    for (int k = 0; k < n_values; k++, pairs++) {
      memcpy(x + size * (size_t)pairs, values + size * (size_t)i, size);
      memcpy(y + size * (size_t)pairs, values + size * (size_t)k, size);
    }
  const void *args[64];
  for (uint32_t i = 0; i < block->arg_count; i++) args[i] = i == 0 ? x : i == 1 ? y : zeros;
  void *outs[1] = {less};
  TT_RETURN_IF_ERROR(run_region(p, n, pairs, args, outs));
  // A plain "less" leaves NaN unordered: any place for NaN is right then, so those pairs may say
  // no.
  for (int lenient = 0; lenient < 2; lenient++) {
    for (int order = TT__ORDER_ASCENDING; order <= TT__ORDER_TOTAL_DESCENDING; order++) {
      bool same = true;
      for (int i = 0; i < pairs && same; i++) {
        const char *a = x + size * (size_t)i, *b = y + size * (size_t)i;
        double da = 0, db = 0;
        if (tt_dtype_is_float(dtype)) {
          tt_element_load(dtype, a, 1, &da);
          tt_element_load(dtype, b, 1, &db);
        }
        if (lenient && (isnan(da) || isnan(db)) && !less[i]) continue;
        same = (less[i] != 0) ==
               (key_of((tt__order_t)order, dtype, a) < key_of((tt__order_t)order, dtype, b));
      }
      if (!same) continue;
      *out_order = (tt__order_t)order;
      return TT_OK_STATUS;
    }
  }
  return TT_OK_STATUS;
}

// Whether the body's answers are those of an arg-reduction for every pair.
static bool keeps_best(tt_dtype_t dtype, tt_dtype_t index, bool largest, int count,
                       char *const *args, char *const *outs) {
  tt__order_t order = largest ? TT__ORDER_ASCENDING : TT__ORDER_DESCENDING;
  size_t size = tt_dtype_size(dtype), index_size = tt_dtype_size(index);
  for (int i = 0; i < count; i++) {
    const char *v0 = args[0] + size * (size_t)i, *v1 = args[2] + size * (size_t)i;
    uint64_t k0 = key_of(order, dtype, v0), k1 = key_of(order, dtype, v1);
    // Smallest: the order is turned around, NaN stays best.
    int64_t i0 = tt_element_index(index, args[1], i), i1 = tt_element_index(index, args[3], i);
    bool first = k0 != k1 ? k0 > k1 : i0 <= i1;
    if (order == TT__ORDER_DESCENDING) {
      double d0 = 0, d1 = 0;
      if (tt_dtype_is_float(dtype)) {
        tt_element_load(dtype, v0, 1, &d0);
        tt_element_load(dtype, v1, 1, &d1);
      }
      if (isnan(d0) || isnan(d1)) first = isnan(d0) && isnan(d1) ? i0 <= i1 : isnan(d0);
    }
    if (memcmp(outs[0] + size * (size_t)i, first ? v0 : v1, size) != 0 && !(k0 == k1 && i0 == i1))
      return false;
    if (memcmp(outs[1] + index_size * (size_t)i,
               (first ? args[1] : args[3]) + index_size * (size_t)i, index_size) != 0)
      return false;
  }
  return true;
}

// There are many ways to write "keep the better value and, of equals, the lower index". Instead of
// matching forms the body is run on all pairs of sample values, NaN and infinities among them, with
// all orders of indices: what keeps the right one every time is such a reduction.
tt_status_t tt__probe_arg_reduce(tt__planner_t *p, const tt_node_t *n, bool *out_matches,
                                 bool *out_largest) {
  const tt_block_t *block = n->regions[0];
  uint64_t used;
  *out_matches = false;
  if (n->operand_count != 4 || block->return_count != 2 || !is_simple(p, block, &used))
    return TT_OK_STATUS;
  tt_dtype_t dtype = tt_graph_type(p->graph, block->args[0])->dtype;
  tt_dtype_t index = tt_graph_type(p->graph, block->args[1])->dtype;
  if (tt_dtype_is_complex(dtype) || !tt_dtype_is_int(index)) return TT_OK_STATUS;
  size_t size = tt_dtype_size(dtype), index_size = tt_dtype_size(index);
  char values[SAMPLES * 16];
  int n_values = sample(dtype, values), count = 0;
  char *room = tt_alloc_zeroed((size_t)PAIRS * 8 * 6);
  if (!room) return tt__plan_no_memory();
  char *args[4], *outs[2];
  for (int i = 0; i < 4; i++) args[i] = room + (size_t)i * PAIRS * 8;
  for (int i = 0; i < 2; i++) outs[i] = room + (size_t)(4 + i) * PAIRS * 8;
  for (int i = 0; i < n_values; i++)
    for (int k = 0; k < n_values; k++)
      for (uint64_t j = 0; j < 9; j++, count++) {
        const uint64_t i0 = j / 3, i1 = j % 3;
        memcpy(args[0] + size * (size_t)count, values + size * (size_t)i, size);
        memcpy(args[2] + size * (size_t)count, values + size * (size_t)k, size);
        tt_element_store(index, &i0, 1, args[1] + index_size * (size_t)count);
        tt_element_store(index, &i1, 1, args[3] + index_size * (size_t)count);
      }
  tt_status_t status = run_region(p, n, count, (const void *const *)args, (void *const *)outs);
  for (int largest = 0; largest < 2 && !status && !*out_matches; largest++) {
    *out_matches = keeps_best(dtype, index, largest, count, args, outs);
    *out_largest = largest != 0;
  }
  tt_free(room);
  return status;
}
