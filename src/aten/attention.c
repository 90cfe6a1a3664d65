// The fused inference paths of nn.MultiheadAttention and nn.TransformerEncoderLayer. Training and
// scaled_dot_product_attention go through PyTorch's own composites.
#include <math.h>

#include "aten/norm.h"

typedef struct heads_s {
  int64_t batch, heads, width;  // width: of one head
  tt_dtype_t d;
} heads_t;

// x [.., I] times w [O, I] transposed, plus b [O]; arguments of the call.
static tt_value_t linear(tt_lower_t *L, tt_value_t x, tt_value_t w, tt_value_t bias) {
  tt_build_t *b = L->b;
  const uint32_t rank = tt__rank(b, x);
  if (rank == 0) return x;
  const int64_t last[] = {rank - 1}, one[] = {1};
  const tt_dot_t dot = {NULL, NULL, last, one, 0, 1};
  const tt_value_t y = tt_emit_dot(b, x, w, &dot, tt_build_dtype(b, x));
  return tt__add(b, y, tt__along(b, bias, rank, rank - 1));
}

// [B, T, H * width] -> [B, H, T, width]
static tt_value_t split_heads(tt_build_t *b, const heads_t *h, tt_value_t x) {
  const int64_t dims[] = {h->batch, tt__dim(b, x, 1), h->heads, h->width};
  static const int64_t permutation[] = {0, 2, 1, 3};
  return tt_emit_transpose(b, tt_emit_reshape(b, x, 4, dims), permutation);
}

// Rows [part * n, (part + 1) * n) of the packed projection, applied.
static tt_value_t project(tt_lower_t *L, const heads_t *h, tt_value_t x, uint32_t weight,
                          int64_t part) {
  tt_build_t *b = L->b;
  const int64_t n = h->heads * h->width;
  const tt_value_t w = tt_lower_tensor_as(L, weight, h->d);
  const tt_value_t bias = tt_lower_tensor_as(L, weight + 1, h->d);
  return split_heads(b, h,
                     linear(L, x, tt_emit_slice_dim(b, w, 0, part * n, (part + 1) * n, 1),
                            tt_emit_slice_dim(b, bias, 0, part * n, (part + 1) * n, 1)));
}

// True where a score does not count, over [B, H, T, S]; mask_type: 0 [T, S], 1 [B, S], 2 as it is.
static tt_value_t wide_mask(tt_lower_t *L, const heads_t *h, uint32_t mask, int64_t type,
                            const int64_t *dims) {
  tt_build_t *b = L->b;
  tt_value_t m = tt_lower_tensor_as(L, mask, TT_I1);
  if (type == 1) {
    const int64_t keys[] = {h->batch, 1, 1, dims[3]};
    m = tt_emit_reshape(b, m, 4, keys);
  }
  return tt_emit_broadcast_to(b, m, 4, dims);
}

// Softmax over the last dimension; where `mask` is true the result is zero.
static tt_value_t masked_softmax(tt_build_t *b, tt_value_t x, bool masked, tt_value_t mask) {
  static const int64_t keys[] = {3};
  if (masked) x = tt_emit_select(b, mask, tt_emit_splat_like(b, x, -INFINITY), x);
  tt_value_t most = tt_emit_reduce(b, TT_OP_MAXIMUM, x, keys, 1, true);
  if (masked) {  // a row without any key
    most = tt_emit_select(b, tt__cmpc(b, TT_EQ, most, -INFINITY), tt_emit_splat_like(b, most, 0),
                          most);
  }
  const tt_value_t e = tt__exp(b, tt__sub(b, x, most));
  const tt_value_t p = tt__div(b, e, tt__sum_over(b, e, keys, 1, true));
  return masked ? tt__zero_unless(b, tt__not(b, mask), p) : p;
}

// Attention of q, k, v (before projection); the projections' weights and biases are arguments
// `weight` to weight + 3. Gives the output [B, T, D] and the probabilities [B, H, T, S].
static tt_value_t attend(tt_lower_t *L, const heads_t *h, const tt_value_t *qkv, uint32_t weight,
                         uint32_t mask, int64_t mask_type, tt_value_t *out_weights) {
  tt_build_t *b = L->b;
  static const int64_t batch[] = {0, 1}, inner[] = {3}, back[] = {0, 2, 1, 3};
  const tt_dot_t scores_dot = {batch, batch, inner, inner, 2, 1};
  const tt_value_t q = tt__mulc(b, project(L, h, qkv[0], weight, 0), 1 / sqrt((double)h->width));
  const tt_value_t k = project(L, h, qkv[1], weight, 1), v = project(L, h, qkv[2], weight, 2);
  const tt_value_t scores = tt_emit_dot(b, q, k, &scores_dot, h->d);
  const int64_t dims[] = {h->batch, h->heads, tt__dim(b, q, 2), tt__dim(b, k, 2)};
  const bool masked = tt_lower_has(L, mask);
  const tt_value_t p = masked_softmax(
      b, scores, masked, masked ? wide_mask(L, h, mask, mask_type, dims) : TT_NO_VALUE);
  const int64_t merged[] = {h->batch, dims[2], h->heads * h->width};
  const tt_value_t context = tt_emit_transpose(b, tt_emit_matmul(b, p, v, h->d), back);
  *out_weights = p;
  return linear(L, tt_emit_reshape(b, context, 3, merged), tt_lower_tensor_as(L, weight + 2, h->d),
                tt_lower_tensor_as(L, weight + 3, h->d));
}

static bool heads_read(tt_lower_t *L, uint32_t heads_arg, heads_t *h) {
  const tt_tensor_t *x = tt_lower_meta(L, 0);
  const int64_t heads = tt_lower_int(L, heads_arg, 1);
  if (x->rank != 3 || heads < 1 || tt__product(x->sizes, 3) == 0) {
    tt_lower_unsupported(L, "an input of rank %u, or empty", x->rank);
    return false;
  }
  *h = (heads_t){x->sizes[0], heads, x->sizes[2] / heads, tt_lower_opmath((tt_dtype_t)x->dtype)};
  return true;
}

// _native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias,
// proj_weight, proj_bias, mask, need_weights, average_attn_weights, mask_type) -> (output, weights)
TT_LOWER0(native_multi_head_attention) {
  tt_build_t *b = L->b;
  static const int64_t heads[] = {1};
  tt_value_t qkv[3], weights;
  heads_t h;
  if (!heads_read(L, 4, &h)) return;
  for (uint32_t i = 0; i < 3; i++) qkv[i] = tt_lower_tensor_as(L, i, h.d);
  tt_lower_return(L, 0, attend(L, &h, qkv, 5, 9, tt_lower_int(L, 12, 2), &weights));
  if (L->outs[1].rank == TT_NO_TENSOR) return;
  if (!tt_lower_int(L, 10, 1)) {
    const tt_out_meta_t *o = &L->outs[1];
    tt_lower_return(L, 1, tt_emit_splat(b, h.d, o->rank, o->sizes, 0));
    return;
  }
  if (tt_lower_int(L, 11, 1)) {
    weights = tt__divc(b, tt__sum_over(b, weights, heads, 1, false), (double)h.heads);
  }
  tt_lower_return(L, 1, weights);
}

// LayerNorm over the last dimension with weight and bias arguments `at`, at + 1.
static tt_value_t layer_norm(tt_lower_t *L, tt_value_t x, uint32_t at, uint32_t eps, tt_dtype_t d) {
  tt_build_t *b = L->b;
  static const int64_t last[] = {2};
  const tt__moments_t m = tt__moments(b, x, last, 1, tt__dim(b, x, 2));
  const tt_value_t rstd = tt__rsqrt(b, tt__add(b, m.variance, tt_lower_scalar(L, eps, d)));
  const tt_value_t y =
      tt__mul(b, tt__mul(b, m.centered, rstd), tt__along(b, tt_lower_tensor_as(L, at, d), 3, 2));
  return tt__add(b, y, tt__along(b, tt_lower_tensor_as(L, at + 1, d), 3, 2));
}

// _transformer_encoder_layer_fwd(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight,
// proj_bias, use_gelu, norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2,
// ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask, mask_type)
TT_LOWER0(transformer_encoder_layer) {
  enum { QKV = 3, GELU = 7, FIRST = 8, EPS = 9, NORM1 = 10, NORM2 = 12, FFN = 14, MASK = 18 };
  tt_build_t *b = L->b;
  tt_value_t weights;
  heads_t h;
  if (!heads_read(L, 2, &h)) return;
  const bool first = tt_lower_int(L, FIRST, 0) != 0;
  const tt_value_t src = tt_lower_tensor_as(L, 0, h.d);
  const tt_value_t x = first ? layer_norm(L, src, NORM1, EPS, h.d) : src;
  const tt_value_t qkv[] = {x, x, x};
  tt_value_t y = attend(L, &h, qkv, QKV, MASK, tt_lower_int(L, MASK + 1, 2), &weights);
  y = tt__add(b, y, src);
  if (!first) y = layer_norm(L, y, NORM1, EPS, h.d);
  tt_value_t f = first ? layer_norm(L, y, NORM2, EPS, h.d) : y;
  f = linear(L, f, tt_lower_tensor_as(L, FFN, h.d), tt_lower_tensor_as(L, FFN + 1, h.d));
  if (tt_lower_int(L, GELU, 0)) {
    const tt_value_t e = tt__erf(b, tt__mulc(b, f, 0.70710678118654752440));
    f = tt__mul(b, tt__mulc(b, f, 0.5), tt__addc(b, e, 1));
  } else {
    f = tt__max(b, f, tt__num(b, f, 0));
  }
  f = linear(L, f, tt_lower_tensor_as(L, FFN + 2, h.d), tt_lower_tensor_as(L, FFN + 3, h.d));
  y = tt__add(b, y, f);
  if (!first) y = layer_norm(L, y, NORM2, EPS, h.d);
  tt_lower_return(L, 0, y);
}
