// Matrix products over strided operands: the host's library where it serves, else our own kernels.
#ifndef TT_SOFTTPU_DOT_MATMUL_H_
#define TT_SOFTTPU_DOT_MATMUL_H_

#include "base/dtype.h"
#include "softtpu/plan_internal.h"

// Whether tt__dot_matmul takes these types: floats of one type in, that type or a wider float out;
// complex numbers of one type.
bool tt__dot_types(tt_dtype_t in, tt_dtype_t out);
// out = a x b per batch; out's columns are dense. Halves accumulate in f32. The result does not
// depend on the number of threads. Fails for want of memory, or where a library stopped serving
// complex numbers.
tt_status_t tt__dot_matmul(const tt__run_t *run, tt_dtype_t in, tt_dtype_t out_dtype,
                           const tt_matrix_t *a, const tt_matrix_t *b,
                           const tt_matrix_t *out) TT_MUST_USE;
// Nanoseconds of one core, roughly: what a good kernel needs, 50 operations each (25 in f64).
uint64_t tt__dot_cost(tt_dtype_t in, int64_t batch, int64_t m, int64_t n, int64_t k);

#endif  // TT_SOFTTPU_DOT_MATMUL_H_
