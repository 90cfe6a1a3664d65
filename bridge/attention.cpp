// Which attention scaled_dot_product_attention uses on tpu.
#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>

#include <optional>

namespace tt {
namespace {

using at::Tensor;

// The composite holds all scores, and their probabilities until the backward pass; so many (1 GiB
// in float32) are left to torchtpu/composed_attention.py, which has a block of them at a time.
constexpr int64_t kMostScores = int64_t{1} << 28;

bool in_blocks(const Tensor &query, const Tensor &key, const Tensor &value,
               const std::optional<Tensor> &mask, double dropout, bool grouped) {
  if (dropout != 0 || grouped || query.is_nested() || key.is_nested() || value.is_nested())
    return false;
  if (mask.has_value() && mask->requires_grad()) return false;
  if (query.dim() != 4 || key.dim() != 4 || value.dim() != 4) return false;
  if (!query.is_floating_point() || query.scalar_type() == at::kDouble) return false;
  for (int64_t d = 0; d < 2; ++d) {
    if (query.sym_size(d) != key.sym_size(d) || key.sym_size(d) != value.sym_size(d)) return false;
  }
  return query.sym_size(0) * query.sym_size(1) * query.sym_size(2) * key.sym_size(2) >= kMostScores;
}

int64_t choose(const Tensor &query, const Tensor &key, const Tensor &value,
               const std::optional<Tensor> &mask, double dropout, bool, std::optional<double>,
               bool grouped) {
  const bool blocks = at::globalContext().userEnabledOverrideableSDP() &&
                      in_blocks(query, key, value, mask, dropout, grouped);
  return static_cast<int64_t>(blocks ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

}  // namespace
}  // namespace tt

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &tt::choose)
}  // namespace at::native
