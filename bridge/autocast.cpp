// torch.autocast("tpu"): the cast lists that PyTorch uses for CUDA, with one exception.
#include <ATen/autocast_mode.h>

namespace {

// The macros below name these unqualified.
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

#define TT_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define TT_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define TT_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
// AT_FORALL_FP32_SET_OPT_DTYPE without softmax: it computes in f32 whatever its type, and keeps its
// input's type under autocast, as on the CPU.
#define TT_FP32_SET_OPT_DTYPE_LIST(_) \
  _(prod)                             \
  _(prod, dim_int)                    \
  _(log_softmax, int)                 \
  _(cumprod)                          \
  _(cumsum)                           \
  _(linalg_vector_norm)               \
  _(linalg_matrix_norm)               \
  _(linalg_matrix_norm, str_ord)      \
  _(sum)                              \
  _(sum, dim_IntList)
#define TT_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

Tensor binary_cross_entropy_banned(const Tensor &, const Tensor &, const std::optional<Tensor> &,
                                   int64_t) {
  TORCH_CHECK(
      false,
      "binary_cross_entropy and BCELoss are unsafe to autocast: their input is a probability, "
      "which lower precision rounds to 0 or 1. Use binary_cross_entropy_with_logits or "
      "BCEWithLogitsLoss, which are safe, or leave autocast for the loss.");
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(TT_LOWER_PRECISION)
  AT_FORALL_FP32(TT_FP32)
  TT_FP32_SET_OPT_DTYPE_LIST(TT_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(TT_PROMOTE)
  m.impl("binary_cross_entropy", TORCH_FN(binary_cross_entropy_banned));
}

}  // namespace
