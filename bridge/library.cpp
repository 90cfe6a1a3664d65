#include "library.hpp"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <vector>

#include "softtpu/library.h"
#include "status.hpp"
#include "tensor.hpp"

// BLAS as libtorch_cpu exports it where it was built with MKL; elsewhere these are NULL.
extern "C" {
__attribute__((weak)) void sgemm_(const char *, const char *, const int *, const int *, const int *,
                                  const float *, const float *, const int *, const float *,
                                  const int *, const float *, float *, const int *);
__attribute__((weak)) void dgemm_(const char *, const char *, const int *, const int *, const int *,
                                  const double *, const double *, const int *, const double *,
                                  const int *, const double *, double *, const int *);
__attribute__((weak)) int MKL_Set_Num_Threads_Local(int);
}

namespace tt {
namespace {

using at::IntArrayRef;
using at::Tensor;

// Below this many multiply-adds PyTorch's call costs more than the plugin's own loop.
constexpr int64_t kSmallestMatmul = 8192;

Tensor blob(int dtype, void *data, IntArrayRef sizes, IntArrayRef strides) {
  auto type = dtype_from_c(static_cast<uint8_t>(dtype));
  return at::from_blob(data, sizes, strides, at::TensorOptions().dtype(type));
}

Tensor dense(int dtype, const void *data, const int64_t *dims, uint32_t spatial_rank) {
  auto type = dtype_from_c(static_cast<uint8_t>(dtype));
  return at::from_blob(const_cast<void *>(data), IntArrayRef(dims, spatial_rank + 2),
                       at::TensorOptions().dtype(type));
}

Tensor matrix(int dtype, const tt_matrix_t &m) {
  if (m.batch == 1) return blob(dtype, m.data, {m.rows, m.cols}, {m.row_stride, m.col_stride});
  return blob(dtype, m.data, {m.batch, m.rows, m.cols},
              {m.batch_stride, m.row_stride, m.col_stride});
}

// The plugin's threads never see exceptions: a failed call is computed by its own kernel.
template <class F>
bool quietly(F body) {
  try {
    c10::InferenceMode inference;
    body();
    return true;
  } catch (const std::exception &) {
    return false;
  }
}

// at::from_blob takes no negative strides; it would end the process, not throw.
bool is_reversed(const tt_matrix_t &m) {
  return m.batch_stride < 0 || m.row_stride < 0 || m.col_stride < 0;
}

bool matmul(int dtype, const tt_matrix_t *a, const tt_matrix_t *b, const tt_matrix_t *out) {
  if (out->batch * out->rows * out->cols * a->cols < kSmallestMatmul) return false;
  if (is_reversed(*a) || is_reversed(*b) || is_reversed(*out)) return false;
  return quietly([&] {
    Tensor result = matrix(dtype, *out);
    if (out->batch == 1) {
      at::cpu::mm_out(result, matrix(dtype, *a), matrix(dtype, *b));
    } else {
      at::cpu::bmm_out(result, matrix(dtype, *a), matrix(dtype, *b));
    }
  });
}

// How BLAS, which counts by columns, reads a matrix: as it lies (its transpose) or flipped.
struct Operand {
  char flip;
  int leading;
  bool ok;
  explicit Operand(const tt_matrix_t &m) : flip('N'), leading(0), ok(false) {
    bool by_row = m.col_stride == 1 || m.cols == 1;
    bool by_column = m.row_stride == 1 || m.rows == 1;
    int64_t stride = by_row ? m.row_stride : m.col_stride;
    int64_t least = std::max<int64_t>(by_row ? m.cols : m.rows, 1);
    if (by_row ? m.rows == 1 : m.cols == 1) stride = std::max(stride, least);
    ok = (by_row || by_column) && stride >= least && stride <= INT_MAX && m.rows <= INT_MAX &&
         m.cols <= INT_MAX;
    flip = by_row ? 'N' : 'T';
    leading = static_cast<int>(stride);
  }
};

template <class T, class F>
bool blas(F function, const tt_matrix_t *a, const tt_matrix_t *b, const tt_matrix_t *out) {
  Operand x(*a), y(*b), z(*out);
  if (!x.ok || !y.ok || !z.ok || z.flip != 'N') return false;
  const int m = static_cast<int>(out->cols), n = static_cast<int>(out->rows),
            k = static_cast<int>(a->cols);
  const T one = 1, zero = 0;
  int before = MKL_Set_Num_Threads_Local(1);
  function(&y.flip, &x.flip, &m, &n, &k, &one, static_cast<const T *>(b->data), &y.leading,
           static_cast<const T *>(a->data), &x.leading, &zero, static_cast<T *>(out->data),
           &z.leading);
  MKL_Set_Num_Threads_Local(before);
  return true;
}

bool gemm(int dtype, const tt_matrix_t *a, const tt_matrix_t *b, const tt_matrix_t *out) {
  if (!MKL_Set_Num_Threads_Local || out->rows * out->cols * a->cols < kSmallestMatmul) return false;
  if (dtype == TT_F32 && sgemm_) return blas<float>(sgemm_, a, b, out);
  if (dtype == TT_F64 && dgemm_) return blas<double>(dgemm_, a, b, out);
  return false;
}

struct ConvGeometry {
  IntArrayRef stride, padding, dilation;
  std::vector<int64_t> no_output_padding;
  explicit ConvGeometry(const tt_library_conv_t &c)
      : stride(c.strides, c.spatial_rank),
        padding(c.padding_low, c.spatial_rank),
        dilation(c.dilation, c.spatial_rank),
        no_output_padding(c.spatial_rank, 0) {}
};

bool conv(int dtype, const tt_library_conv_t *c, const void *input, const void *kernel,
          void *output) {
  if (c->transposed) return false;
  return quietly([&] {
    ConvGeometry g(*c);
    dense(dtype, output, c->output, c->spatial_rank)
        .copy_(at::convolution(dense(dtype, input, c->input, c->spatial_rank),
                               dense(dtype, kernel, c->kernel, c->spatial_rank), std::nullopt,
                               g.stride, g.padding, g.dilation, false, g.no_output_padding,
                               c->groups));
  });
}

// `input` or `kernel` may be NULL where only its shape matters.
Tensor conv_grad(int dtype, const tt_library_conv_t &c, const void *grad, const void *input,
                 const void *kernel, bool of_input) {
  ConvGeometry g(c);
  auto given = [&](const void *data, const int64_t *dims) {
    return data
               ? dense(dtype, data, dims, c.spatial_rank)
               : at::from_blob(const_cast<void *>(grad), {1},
                               at::TensorOptions().dtype(dtype_from_c(static_cast<uint8_t>(dtype))))
                     .expand(IntArrayRef(dims, c.spatial_rank + 2));
  };
  auto [input_grad, kernel_grad, bias_grad] = at::convolution_backward(
      dense(dtype, grad, c.output, c.spatial_rank), given(input, c.input), given(kernel, c.kernel),
      std::nullopt, g.stride, g.padding, g.dilation, false, g.no_output_padding, c.groups,
      {of_input, !of_input, false});
  return of_input ? input_grad : kernel_grad;
}

bool conv_input_grad(int dtype, const tt_library_conv_t *c, const void *grad, const void *kernel,
                     void *input_grad) {
  if (c->transposed) return false;
  return quietly([&] {
    dense(dtype, input_grad, c->input, c->spatial_rank)
        .copy_(conv_grad(dtype, *c, grad, nullptr, kernel, true));
  });
}

bool conv_kernel_grad(int dtype, const tt_library_conv_t *c, const void *grad, const void *input,
                      void *kernel_grad) {
  if (c->transposed) return false;
  return quietly([&] {
    dense(dtype, kernel_grad, c->kernel, c->spatial_rank)
        .copy_(conv_grad(dtype, *c, grad, input, nullptr, false));
  });
}

const tt_library_t table = {sizeof(tt_library_t), &matmul,           &conv,
                            &conv_input_grad,     &conv_kernel_grad, &gemm};

}  // namespace

void library_install_once() {
  static std::atomic<bool> installed{false};
  if (__builtin_expect(installed.load(std::memory_order_relaxed), 1)) return;
  tt_client_t *client = tt_eager_client();
  if (client && !installed.exchange(true)) tt_client_install_library(client, &table);
}

}  // namespace tt
