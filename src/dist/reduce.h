// Elementwise reduction of several arrays into one, as c10d's reduce ops define it.
#ifndef TT_DIST_REDUCE_H_
#define TT_DIST_REDUCE_H_

#include "base/dtype.h"
#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// X(enum suffix, name in messages)
#define TT_REDUCE_OPS(X) \
  X(SUM, "sum")          \
  X(AVG, "avg")          \
  X(PRODUCT, "product")  \
  X(MIN, "min")          \
  X(MAX, "max")          \
  X(BAND, "band")        \
  X(BOR, "bor")          \
  X(BXOR, "bxor")

typedef enum tt_reduce_op_e {
#define X(name, text) TT_REDUCE_##name,
  TT_REDUCE_OPS(X)
#undef X
      TT_REDUCE_OP_COUNT,
} tt_reduce_op_t;

const char *tt_reduce_op_name(tt_reduce_op_t op);

// Whether op is defined for dtype (bitwise ops: integers and i1; min and max: not complex).
tt_status_t tt_reduce_check(tt_dtype_t dtype, tt_reduce_op_t op) TT_MUST_USE;

// out[i] = op over k of ins[k][i], in the order k = 0, 1, ...: every rank that reduces the same
// inputs gets the same bits. Halves and f8 accumulate in f32 and round once. AVG divides the sum by
// `count_in` (integers truncate). `out` may be one of the inputs. i1 SUM is or, PRODUCT is and.
void tt_reduce(tt_dtype_t dtype, tt_reduce_op_t op, void *out, const void *const *ins,
               uint32_t count_in, size_t elements);

// A reduction in stages: parts are widened, reduced (AVG as SUM) in the wide dtype and finished
// once, so that halves round once and averages divide once, as above.
tt_dtype_t tt_reduce_wide(tt_dtype_t dtype, tt_reduce_op_t op);  // `dtype` where nothing is lost
static inline tt_reduce_op_t tt_reduce_inner(tt_reduce_op_t op) {
  return op == TT_REDUCE_AVG ? TT_REDUCE_SUM : op;
}
void tt_reduce_widen(tt_dtype_t dtype, void *out, const void *in, size_t elements);
// `in` is wide, and may be `out`; `count_in` is how many arrays went into it.
void tt_reduce_finish(tt_dtype_t dtype, tt_reduce_op_t op, void *out, const void *in,
                      uint32_t count_in, size_t elements);

#ifdef __cplusplus
}
#endif
#endif  // TT_DIST_REDUCE_H_
