#include "library.hpp"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <c10/core/InferenceMode.h>

#include <atomic>
#include <vector>

#include "softtpu/library.h"
#include "status.hpp"
#include "tensor.hpp"

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

bool matmul(int dtype, const tt_matrix_t *a, const tt_matrix_t *b, const tt_matrix_t *out) {
  if (out->batch * out->rows * out->cols * a->cols < kSmallestMatmul) return false;
  return quietly([&] {
    Tensor result = matrix(dtype, *out);
    if (out->batch == 1) {
      at::cpu::mm_out(result, matrix(dtype, *a), matrix(dtype, *b));
    } else {
      at::cpu::bmm_out(result, matrix(dtype, *a), matrix(dtype, *b));
    }
  });
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

const tt_library_t table = {sizeof(tt_library_t), &matmul, &conv, &conv_input_grad,
                            &conv_kernel_grad};

}  // namespace

void library_install_once() {
  static std::atomic<bool> installed{false};
  if (__builtin_expect(installed.load(std::memory_order_relaxed), 1)) return;
  tt_client_t *client = tt_eager_client();
  if (client && !installed.exchange(true)) tt_client_install_library(client, &table);
}

}  // namespace tt
