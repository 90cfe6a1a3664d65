// The fused LSTM and GRU cells that nn.LSTM and nn.GRU call on this device.
#include "aten/emit.h"

// input_gates + hidden_gates (+ biases); biases are the last two arguments.
static tt_value_t gates_sum(tt_lower_t *L, tt_dtype_t d, uint32_t bias) {
  tt_build_t *b = L->b;
  tt_value_t g = tt__add(b, tt_lower_tensor_as(L, 0, d), tt_lower_tensor_as(L, 1, d));
  if (tt_lower_has(L, bias)) g = tt__add(b, g, tt_lower_tensor_as(L, bias, d));
  if (tt_lower_has(L, bias + 1)) g = tt__add(b, g, tt_lower_tensor_as(L, bias + 1, d));
  return g;
}

// Chunk i of [N, k * H].
static tt_value_t chunk(tt_build_t *b, tt_value_t x, int64_t hidden, int64_t i) {
  return tt_emit_slice_dim(b, x, 1, i * hidden, (i + 1) * hidden, 1);
}

// _thnn_fused_lstm_cell(input_gates, hidden_gates, cx, input_bias, hidden_bias)
// -> (hy, cy, workspace): the workspace keeps the activated gates i, f, g, o.
TT_LOWER0(lstm_cell) {
  tt_build_t *b = L->b;
  const tt_tensor_t *c = tt_lower_meta(L, 2);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)c->dtype);
  const int64_t h = c->sizes[1];
  const tt_value_t gates = gates_sum(L, d, 3);
  const tt_value_t i = tt__sigmoid(b, chunk(b, gates, h, 0));
  const tt_value_t f = tt__sigmoid(b, chunk(b, gates, h, 1));
  const tt_value_t g = tt__tanh(b, chunk(b, gates, h, 2));
  const tt_value_t o = tt__sigmoid(b, chunk(b, gates, h, 3));
  const tt_value_t cy = tt__add(b, tt__mul(b, f, tt_lower_tensor_as(L, 2, d)), tt__mul(b, i, g));
  const tt_value_t parts[] = {i, f, g, o};
  tt_lower_return(L, 0, tt__mul(b, o, tt__tanh(b, cy)));
  tt_lower_return(L, 1, cy);
  tt_lower_return(L, 2, tt_emit_concat(b, parts, 4, 1));
}

static tt_value_t one_minus(tt_build_t *b, tt_value_t x) { return tt__rsubc(b, 1, x); }
// g * s * (1 - s)
static tt_value_t sigmoid_grad(tt_build_t *b, tt_value_t g, tt_value_t s) {
  return tt__mul(b, tt__mul(b, g, s), one_minus(b, s));
}
static tt_value_t tanh_grad(tt_build_t *b, tt_value_t g, tt_value_t t) {
  return tt__mul(b, g, one_minus(b, tt__square(b, t)));
}

// _thnn_fused_lstm_cell_backward_impl(grad_hy, grad_cy, cx, cy, workspace, has_bias)
// -> (grad_gates, grad_cx, grad_bias)
TT_LOWER0(lstm_cell_backward) {
  tt_build_t *b = L->b;
  const tt_tensor_t *c = tt_lower_meta(L, 2);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)c->dtype);
  const int64_t h = c->sizes[1];
  static const int64_t batch[] = {0};
  const tt_value_t ws = tt_lower_tensor_as(L, 4, d);
  const tt_value_t i = chunk(b, ws, h, 0), f = chunk(b, ws, h, 1), g = chunk(b, ws, h, 2),
                   o = chunk(b, ws, h, 3);
  const tt_value_t t = tt__tanh(b, tt_lower_tensor_as(L, 3, d));
  const tt_value_t zero = tt_emit_splat(b, d, c->rank, c->sizes, 0);
  const tt_value_t gh = tt_lower_has(L, 0) ? tt_lower_tensor_as(L, 0, d) : zero;
  tt_value_t gc = tanh_grad(b, tt__mul(b, gh, o), t);
  if (tt_lower_has(L, 1)) gc = tt__add(b, gc, tt_lower_tensor_as(L, 1, d));
  const tt_value_t parts[] = {
      sigmoid_grad(b, tt__mul(b, gc, g), i),
      sigmoid_grad(b, tt__mul(b, gc, tt_lower_tensor_as(L, 2, d)), f),
      tanh_grad(b, tt__mul(b, gc, i), g),
      sigmoid_grad(b, tt__mul(b, gh, t), o),
  };
  const tt_value_t gates = tt_emit_concat(b, parts, 4, 1);
  tt_lower_return(L, 0, gates);
  tt_lower_return(L, 1, tt__mul(b, gc, f));
  if (tt_lower_int(L, 5, 0)) tt_lower_return(L, 2, tt__sum_over(b, gates, batch, 1, false));
}

// _thnn_fused_gru_cell(input_gates, hidden_gates, hx, input_bias, hidden_bias) -> (hy, workspace):
// the workspace keeps r, z, n, hx and the hidden half of n before r.
TT_LOWER0(gru_cell) {
  tt_build_t *b = L->b;
  const tt_tensor_t *hx = tt_lower_meta(L, 2);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)hx->dtype);
  const int64_t h = hx->sizes[1];
  tt_value_t x = tt_lower_tensor_as(L, 0, d), y = tt_lower_tensor_as(L, 1, d);
  if (tt_lower_has(L, 3)) x = tt__add(b, x, tt_lower_tensor_as(L, 3, d));
  if (tt_lower_has(L, 4)) y = tt__add(b, y, tt_lower_tensor_as(L, 4, d));
  const tt_value_t old = tt_lower_tensor_as(L, 2, d);
  const tt_value_t r = tt__sigmoid(b, tt__add(b, chunk(b, x, h, 0), chunk(b, y, h, 0)));
  const tt_value_t z = tt__sigmoid(b, tt__add(b, chunk(b, x, h, 1), chunk(b, y, h, 1)));
  const tt_value_t hn = chunk(b, y, h, 2);
  const tt_value_t n = tt__tanh(b, tt__add(b, chunk(b, x, h, 2), tt__mul(b, r, hn)));
  const tt_value_t parts[] = {r, z, n, old, hn};
  tt_lower_return(L, 0, tt__add(b, n, tt__mul(b, z, tt__sub(b, old, n))));
  tt_lower_return(L, 1, tt_emit_concat(b, parts, 5, 1));
}

// _thnn_fused_gru_cell_backward(grad_hy, workspace, has_bias)
// -> (grad_input_gates, grad_hidden_gates, grad_hx, grad_input_bias, grad_hidden_bias)
TT_LOWER0(gru_cell_backward) {
  tt_build_t *b = L->b;
  const tt_tensor_t *gh = tt_lower_meta(L, 0);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)gh->dtype);
  const int64_t h = gh->sizes[1];
  static const int64_t batch[] = {0};
  const tt_value_t g = tt_lower_tensor_as(L, 0, d), ws = tt_lower_tensor_as(L, 1, d);
  const tt_value_t r = chunk(b, ws, h, 0), z = chunk(b, ws, h, 1), n = chunk(b, ws, h, 2),
                   old = chunk(b, ws, h, 3), hn = chunk(b, ws, h, 4);
  const tt_value_t gz = sigmoid_grad(b, tt__mul(b, g, tt__sub(b, old, n)), z);
  const tt_value_t gn = tanh_grad(b, tt__mul(b, g, one_minus(b, z)), n);
  const tt_value_t gr = sigmoid_grad(b, tt__mul(b, gn, hn), r);
  const tt_value_t in[] = {gr, gz, gn}, hidden[] = {gr, gz, tt__mul(b, gn, r)};
  const tt_value_t gi = tt_emit_concat(b, in, 3, 1), gj = tt_emit_concat(b, hidden, 3, 1);
  tt_lower_return(L, 0, gi);
  tt_lower_return(L, 1, gj);
  tt_lower_return(L, 2, tt__mul(b, g, z));
  if (tt_lower_int(L, 2, 0)) {
    tt_lower_return(L, 3, tt__sum_over(b, gi, batch, 1, false));
    tt_lower_return(L, 4, tt__sum_over(b, gj, batch, 1, false));
  }
}
