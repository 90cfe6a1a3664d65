// Matrix kernels that a host library provides. The plugin runs without one on its own portable
// kernels; PyTorch's bridge installs a table that reaches MKL and oneDNN.
#ifndef TT_SOFTTPU_LIBRARY_H_
#define TT_SOFTTPU_LIBRARY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// dtypes are tt_dtype_t numbers. All matrices are strided (element strides, which may be 0 or
// negative), so transposed operands need no copy. A function returns false where it cannot serve
// the call: the plan then uses its own kernel, so `out` may be half written.
typedef struct tt_matrix_s {
  void *data;
  int64_t batch, rows, cols;
  int64_t batch_stride, row_stride, col_stride;
} tt_matrix_t;

// A forward convolution, also for the two gradients: they are described by the convolution they
// belong to. All tensors dense, of one dtype.
typedef struct tt_library_conv_s {
  uint32_t spatial_rank;                            // 1, 2 or 3; NC[spatial] / OI[spatial], dense
  const int64_t *input, *kernel, *output;           // full dims
  const int64_t *strides, *padding_low, *dilation;  // symmetric padding only
  int64_t groups;
  bool transposed;  // lhs dilation form: strides are the input's dilation
} tt_library_conv_t;

// A table that may grow: a caller reads no field past struct_size. Functions may use threads of
// their own, except gemm, and must be thread-safe.
typedef struct tt_library_s {
  size_t struct_size;
  // out = a x b, all of `dtype` (f32, f64, bf16, f16, c64, c128); f32 accumulation for halves
  bool (*matmul)(int dtype, const tt_matrix_t *a, const tt_matrix_t *b, const tt_matrix_t *out);
  bool (*conv)(int dtype, const tt_library_conv_t *conv, const void *input, const void *kernel,
               void *output);
  // the two gradients of `conv`, for programs whose pattern is recognised; may be NULL
  bool (*conv_input_grad)(int dtype, const tt_library_conv_t *conv, const void *grad,
                          const void *kernel, void *input_grad);
  bool (*conv_kernel_grad)(int dtype, const tt_library_conv_t *conv, const void *grad,
                           const void *input, void *kernel_grad);
  // One product (batch 1) on the calling thread alone; called by several threads at once. May be
  // NULL or missing.
  bool (*gemm)(int dtype, const tt_matrix_t *a, const tt_matrix_t *b, const tt_matrix_t *out);
} tt_library_t;

// Process-wide; the table must outlive the process's last run. NULL: back to portable kernels.
void tt_library_install(const tt_library_t *library);
const tt_library_t *tt_library(void);

#ifdef __cplusplus
}
#endif
#endif  // TT_SOFTTPU_LIBRARY_H_
