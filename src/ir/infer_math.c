// Rules of batch normalisation, linear algebra, Fourier transforms and random numbers.
#include <string.h>

#include "ir/internal.h"

// Operands [1, end) are vectors over the feature dimension of operand 0.
static tt_status_t check_features(const tt__infer_t *c, uint32_t end) {
  const tt_type_t *x = tt__operand(c, 0);
  int64_t f = tt_node_int(c->node, TT_ATTR_FEATURE_INDEX, -1);
  TT__REQUIRE(c, f >= 0 && f < (int64_t)x->rank, "c1", "feature_index %lld is outside rank %u",
              (long long)f, x->rank);
  TT__REQUIRE(c, tt_dtype_is_float(x->dtype), NULL, "the element type is no float");
  for (uint32_t i = 1; i < end; i++) {
    const tt_type_t *v = tt__operand(c, i);
    TT__REQUIRE(c, v->dtype == x->dtype, "c2", "element types differ");
    TT__REQUIRE(c, v->rank == 1 && v->dims[0] == x->dims[f], "c3",
                "operand %u is no vector of %lld features", i, (long long)x->dims[f]);
  }
  return TT_OK_STATUS;
}

// Operands: x, scale, offset, mean, variance.
tt_status_t tt__infer_batch_norm_inference(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_features(c, 5));
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  tt__infer_like(c, 0, tt__operand(c, 0)->dtype, tt__operand(c, 0));
  return TT_OK_STATUS;
}

// The operand's type and two feature vectors.
static tt_status_t norm_results(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(tt__infer_results(c, 3));
  tt_dtype_t d = tt__operand(c, 0)->dtype;
  tt__infer_like(c, 0, d, tt__operand(c, 0));
  tt__infer_like(c, 1, d, tt__operand(c, 1));
  tt__infer_like(c, 2, d, tt__operand(c, 1));
  return TT_OK_STATUS;
}

// Operands: x, scale, offset. Results: y, mean, variance.
tt_status_t tt__infer_batch_norm_training(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_features(c, 3));
  return norm_results(c);
}

// Operands: x, scale, mean, variance, gradient. Results: gradients of x, scale, offset.
tt_status_t tt__infer_batch_norm_grad(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_features(c, 4));
  TT__REQUIRE(c, tt_type_equal(tt__operand(c, 0), tt__operand(c, 4)), "c3",
              "grad_output and operand have different types");
  return norm_results(c);
}

static bool is_square(const tt_type_t *x) {
  return x->rank >= 2 && x->dims[x->rank - 2] == x->dims[x->rank - 1];
}

// Numbers that can be divided.
static bool is_field(tt_dtype_t d) { return tt_dtype_is_float(d) || tt_dtype_is_complex(d); }

// Batched square matrices; the other triangle of the result is unspecified.
tt_status_t tt__infer_cholesky(tt__infer_t *c) {
  const tt_type_t *x = tt__operand(c, 0);
  TT__REQUIRE(c, is_square(x), "c3", "the matrices are not square");
  TT__REQUIRE(c, is_field(x->dtype), NULL, "the element type is not supported");
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  tt__infer_like(c, 0, x->dtype, x);
  return TT_OK_STATUS;
}

// Operands: a, b. The result replaces b.
tt_status_t tt__infer_triangular_solve(tt__infer_t *c) {
  const tt_type_t *a = tt__operand(c, 0), *b = tt__operand(c, 1);
  TT__REQUIRE(c, a->dtype == b->dtype && is_field(a->dtype), "c1",
              "element types differ or are not supported");
  TT__REQUIRE(c, is_square(a) && a->rank == b->rank, "c2", "a is not square or ranks differ");
  for (uint32_t i = 0; i + 2 < a->rank; i++) {
    TT__REQUIRE(c, a->dims[i] == b->dims[i], "c3", "batch dimension %u differs", i);
  }
  bool left = tt_node_int(c->node, TT_ATTR_LEFT_SIDE, 0) != 0;
  TT__REQUIRE(c, b->dims[b->rank - (left ? 2 : 1)] == a->dims[a->rank - 1], "c3",
              "b does not fit a on the %s side", left ? "left" : "right");
  int64_t t = tt_node_int(c->node, TT_ATTR_TRANSPOSE_A, TT_NO_TRANSPOSE);
  TT__REQUIRE(c, t >= TT_NO_TRANSPOSE && t <= TT_ADJOINT, NULL, "transpose_a is invalid");
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  tt__infer_like(c, 0, b->dtype, b);
  return TT_OK_STATUS;
}

// RFFT halves the last dimension (plus one), IRFFT takes the full length from fft_length. c1: one
// to three trailing dimensions; c4: their sizes are fft_length's. An empty operand fits any length.
tt_status_t tt__infer_fft(tt__infer_t *c) {
  const tt_type_t *x = tt__operand(c, 0);
  uint32_t n;
  const int64_t *length = tt_node_ints(c->node, TT_ATTR_FFT_LENGTH, &n);
  int64_t type = tt_node_int(c->node, TT_ATTR_FFT_TYPE, -1), dims[TT_MAX_RANK];
  TT__REQUIRE(c, type >= TT_FFT && type <= TT_IRFFT, NULL, "fft_type is missing");
  TT__REQUIRE(c, n >= 1 && n <= 3 && n <= x->rank, "c1", "fft_length has %u elements", n);
  bool real_in = type == TT_RFFT, real_out = type == TT_IRFFT;
  tt_dtype_t d = x->dtype;
  TT__REQUIRE(c, real_in ? d == TT_F32 || d == TT_F64 : tt_dtype_is_complex(d), "c2",
              "the element type does not suit fft_type");
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = x->rank - n + i;
    bool last = i + 1 == n;
    int64_t wanted = real_out && last ? length[i] / 2 + 1 : length[i];
    TT__REQUIRE(c, length[i] >= 0 && x->dims[at] == (x->dims[at] ? wanted : 0), "c4",
                "dimension %u is %lld, fft_length asks for %lld", at, (long long)x->dims[at],
                (long long)wanted);
    if (last && real_in) dims[at] = x->dims[at] ? length[i] / 2 + 1 : 0;
    if (last && real_out) dims[at] = length[i];
  }
  if (real_in) d = d == TT_F32 ? TT_C64 : TT_C128;
  if (real_out) d = tt_dtype_real(d);
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  return tt__infer_dims(c, 0, d, x->rank, dims);
}

// Results: the new state and bits. ui32 states are JAX's way of writing ui64 ones.
tt_status_t tt__infer_rng_bit_generator(tt__infer_t *c) {
  const tt_type_t *state = tt__operand(c, 0);
  TT__REQUIRE(c, c->given_count == 2, NULL, "two result types are needed");
  TT__REQUIRE(c, state->rank == 1 && (state->dtype == TT_U64 || state->dtype == TT_U32), NULL,
              "the state is no vector of ui64");
  TT__REQUIRE(c, tt_type_equal(state, &c->given[0]), "c1", "the state's type changes");
  tt_dtype_t d = c->given[1].dtype;
  TT__REQUIRE(c, d < TT_DTYPE_COUNT && (tt_dtype_is_int(d) || tt_dtype_is_float(d)), NULL,
              "the output is neither integer nor float");
  return tt__infer_given(c);
}

// Parameters are scalars; the shape operand only repeats the result's shape.
tt_status_t tt__infer_rng(tt__infer_t *c) {
  const tt_type_t *a = tt__operand(c, 0), *b = tt__operand(c, 1), *shape = tt__operand(c, 2);
  TT__REQUIRE(c, c->given_count == 1, NULL, "the result type is missing");
  TT__REQUIRE(c, a->rank == 0 && b->rank == 0 && a->dtype == b->dtype, "c1",
              "the parameters are no scalars of one type");
  TT__REQUIRE(c, c->given[0].dtype == a->dtype, "c1", "the result has another element type");
  TT__REQUIRE(c, shape->rank == 1 && shape->dims[0] == (int64_t)c->given[0].rank, "c3",
              "the shape operand does not have the result's rank");
  return tt__infer_given(c);
}
