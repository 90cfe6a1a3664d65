// Which kernels reduce a type by an op, and how its numbers get into accumulators and out again.
#include "softtpu/plan_fold.h"

#include <string.h>

#include "softtpu/element.h"

// i1 adds by "or" and multiplies by "and".
static bool fold_kind(tt_op_t op, tt_dtype_t dtype, int *kind) {
  if (dtype == TT_I1 && op == TT_OP_ADD) op = TT_OP_OR;
  if (dtype == TT_I1 && op == TT_OP_MULTIPLY) op = TT_OP_AND;
  switch (op) {
    case TT_OP_ADD:
      *kind = TT__FOLD_SUM;
      return true;
    case TT_OP_MULTIPLY:
      *kind = TT__FOLD_PRODUCT;
      return true;
    case TT_OP_MAXIMUM:
      *kind = TT__FOLD_MAX;
      return true;
    case TT_OP_MINIMUM:
      *kind = TT__FOLD_MIN;
      return true;
    case TT_OP_AND:
      *kind = TT__FOLD_AND;
      return true;
    case TT_OP_OR:
      *kind = TT__FOLD_OR;
      return true;
    default:
      return false;
  }
}

// Extremes and bits are idempotent: partial results may all start from the initial value. Sums and
// products start from it once, elsewhere from the identity.
bool tt__fold_choose(tt_op_t op, tt_dtype_t dtype, tt__fold_t *f) {
  const tt__kernels_t *k = tt__kernels();
  int kind;
  memset(f, 0, sizeof *f);
  f->dtype = dtype;
  f->lane = tt__lane_of(dtype);
  if (!fold_kind(op, dtype, &kind) || f->lane == TT__LANE_COUNT || !k->fold_row[kind][f->lane])
    return false;
  bool adds = kind == TT__FOLD_SUM || kind == TT__FOLD_PRODUCT;
  bool is_float = f->lane == TT__LANE_F32 || f->lane == TT__LANE_F64;
  f->acc_lane = f->lane;
  if (adds && is_float) f->acc_lane = TT__LANE_F64;
  if (f->lane >= TT__LANE_C64) f->acc_lane = TT__LANE_C128;
  f->lane_bytes = tt__lane_bytes(f->lane);
  f->acc_bytes = tt__lane_bytes(f->acc_lane);
  f->row = k->fold_row[kind][f->lane];
  f->column = k->fold_column[kind][f->lane];
  f->combine = k->fold_column[kind][f->acc_lane];
  f->idempotent = !adds;
  double start[2] = {kind == TT__FOLD_SUM ? -0.0 : 1.0, -0.0};
  if (adds && (is_float || f->lane >= TT__LANE_C64))
    memcpy(f->identity, start, sizeof start);
  else if (kind == TT__FOLD_PRODUCT)
    f->identity[0] = 1;  // little-endian integers
  return true;
}

void tt__fold_init(const tt__fold_t *f, const char *data, char *acc) {
  uint32_t half = tt__half_index(f->dtype);
  if (f->acc_lane != f->lane)
    tt_element_load(f->dtype, data, 1, acc);
  else if (half != TT__HALF_COUNT)
    tt__kernels()->widen[half](1, acc, data, data, data, 0);
  else
    memcpy(acc, data, f->acc_bytes);
}

// f32 has a vector kernel of its own for the one rounding; other types go through the element
// layer.
void tt__fold_finish(const tt__fold_t *f, const char *acc, int64_t n, char *out) {
  uint32_t half = tt__half_index(f->dtype);
  if (f->dtype == TT_F32 && f->acc_lane == TT__LANE_F64)
    tt__kernels()->convert[TT__LANE_F64][TT__LANE_F32](n, out, acc, acc, acc, 0);
  else if (f->acc_lane != f->lane)
    tt_element_store(f->dtype, acc, n, out);
  else if (half != TT__HALF_COUNT)
    tt__kernels()->narrow[half](n, out, acc, acc, acc, 0);
  else
    memcpy(out, acc, f->acc_bytes * (size_t)n);
}

const char *tt__fold_lanes(const tt__fold_t *f, int64_t n, const char *src, int64_t stride,
                           char *line) {
  const tt__kernels_t *k = tt__kernels();
  uint32_t half = tt__half_index(f->dtype);
  if (half == TT__HALF_COUNT) {
    if (stride == 1) return src;
    tt__load(k, tt__size_log2(f->lane_bytes), n, line, src, stride);
    return line;
  }
  char raw[1024 * 2];
  if (stride != 1) {
    tt__load(k, tt__size_log2(tt_dtype_size(f->dtype)), n, raw, src, stride);
    src = raw;
  }
  k->widen[half](n, line, src, src, src, 0);
  return line;
}
