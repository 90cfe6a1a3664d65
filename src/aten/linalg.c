// What the matrix factorisations share.
#include "aten/linalg.h"

tt__matrix_t tt__matrix_arg(tt_lower_t *L, uint32_t arg) {
  const tt_tensor_t *t = tt_lower_meta(L, arg);
  tt__matrix_t m = {TT_NO_VALUE, 1, 1, 1, (tt_dtype_t)t->dtype};
  if (t->rank < 2) {
    tt_lower_unsupported(L, "a matrix of rank %u", t->rank);
    return m;
  }
  m.batch = tt__product(t->sizes, t->rank - 2);
  m.rows = t->sizes[t->rank - 2];
  m.cols = t->sizes[t->rank - 1];
  const int64_t dims[] = {m.batch, m.rows, m.cols};
  m.v = tt_emit_reshape(L->b, tt_lower_tensor(L, arg), 3, dims);
  return m;
}

void tt__matrix_return(tt_lower_t *L, uint32_t i, tt_value_t v) {
  if (i >= L->out_count || L->outs[i].rank == TT_NO_TENSOR) return;
  const tt_out_meta_t *out = &L->outs[i];
  if (tt__product(out->sizes, out->rank) == 0) {
    v = tt_emit_splat(L->b, (tt_dtype_t)out->dtype, out->rank, out->sizes, 0);
  }
  tt_lower_return(L, i, tt_emit_reshape(L->b, v, out->rank, out->sizes));
}

bool tt__matrix_all_empty(tt_lower_t *L) {
  for (uint32_t i = 0; i < L->out_count; i++) {
    const tt_out_meta_t *out = &L->outs[i];
    if (out->rank != TT_NO_TENSOR && tt__product(out->sizes, out->rank) != 0) return false;
  }
  for (uint32_t i = 0; i < L->out_count; i++) tt__matrix_return(L, i, TT_NO_VALUE);
  return true;
}

tt_value_t tt__matrix_adjoint(tt_build_t *b, tt_value_t v) {
  return tt__transpose_last(b, v, true);
}

bool tt__matrix_uses_transpose(const tt_tensor_t *t) {
  int64_t expected = 1;
  if (tt_dtype_is_complex((tt_dtype_t)t->dtype)) return false;
  for (uint32_t i = t->rank; i-- > 0;) {
    if (t->sizes[i] != 1 && t->strides[i] != expected) return false;
    expected *= t->sizes[i];
  }
  return true;
}

tt_value_t tt__row_numbers(tt_build_t *b, int64_t rows) {
  const int64_t dims[] = {1, rows, 1};
  return tt__iota(b, 3, dims, 1);
}
tt_value_t tt__col_numbers(tt_build_t *b, int64_t cols) {
  const int64_t dims[] = {1, 1, cols};
  return tt__iota(b, 3, dims, 2);
}

tt_value_t tt__select_wide(tt_build_t *b, tt_value_t pred, tt_value_t yes, tt_value_t no) {
  const tt_type_t *y = tt_build_type(b, yes), *n = tt_build_type(b, no),
                  *p = tt_build_type(b, pred);
  int64_t dims[3] = {1, 1, 1};
  if (y->rank != 3 || n->rank != 3 || p->rank != 3) return TT_NO_VALUE;
  for (uint32_t i = 0; i < 3; i++) {
    dims[i] = y->dims[i] != 1 ? y->dims[i] : n->dims[i] != 1 ? n->dims[i] : p->dims[i];
  }
  return tt_emit_select(b, tt_emit_broadcast_to(b, pred, 3, dims),
                        tt_emit_broadcast_to(b, yes, 3, dims),
                        tt_emit_broadcast_to(b, no, 3, dims));
}

tt_value_t tt__identity(tt_build_t *b, tt_dtype_t dtype, int64_t batch, int64_t rows,
                        int64_t cols) {
  const int64_t dims[] = {batch, rows, cols};
  const tt_value_t on = tt__eq(b, tt__row_numbers(b, rows), tt__col_numbers(b, cols));
  return tt_emit_broadcast_to(b, tt_emit_convert(b, on, dtype), 3, dims);
}

tt_value_t tt__triangle(tt_build_t *b, tt_value_t v, bool upper, int64_t k) {
  const tt_type_t *t = tt_build_type(b, v);
  if (t->rank != 3) return v;
  const tt_value_t away =
      tt__sub(b, tt__col_numbers(b, t->dims[2]), tt__row_numbers(b, t->dims[1]));
  const tt_value_t keep = tt__cmpc(b, upper ? TT_GE : TT_LE, away, (double)k);
  return tt__zero_unless(b, tt_emit_broadcast_to(b, keep, 3, t->dims), v);
}

tt_value_t tt__diagonal(tt_build_t *b, tt_value_t v) {
  const tt_type_t *t = tt_build_type(b, v);
  static const int64_t cols[] = {2};
  if (t->rank != 3) return v;
  const int64_t k = t->dims[1] < t->dims[2] ? t->dims[1] : t->dims[2];
  const tt_value_t square = tt_emit_slice_dim(b, v, 1, 0, k, 1);
  const tt_value_t on = tt__eq(b, tt__row_numbers(b, k), tt__col_numbers(b, t->dims[2]));
  const tt_type_t *s = tt_build_type(b, square);
  return tt__sum_over(b, tt__zero_unless(b, tt_emit_broadcast_to(b, on, 3, s->dims), square), cols,
                      1, false);
}

tt_value_t tt__take_rows(tt_build_t *b, tt_value_t v, tt_value_t at) {
  const tt_type_t *t = tt_build_type(b, v), *a = tt_build_type(b, at);
  if (t->rank != 3 || a->rank != 2) return TT_NO_VALUE;
  const int64_t column[] = {a->dims[0], a->dims[1], 1},
                dims[] = {t->dims[0], a->dims[1], t->dims[2]};
  return tt_emit_take_along(b, v,
                            tt_emit_broadcast_to(b, tt_emit_reshape(b, at, 3, column), 3, dims), 1);
}

tt_value_t tt__square_norm(tt_build_t *b, tt_value_t x, int64_t dim) {
  tt_value_t sq;
  if (tt_dtype_is_complex(tt_build_dtype(b, x))) {
    const tt_value_t re = tt_emit_unary(b, TT_OP_REAL, x), im = tt_emit_unary(b, TT_OP_IMAG, x);
    sq = tt__add(b, tt__square(b, re), tt__square(b, im));
  } else {
    sq = tt__square(b, x);
  }
  return tt__sum_over(b, sq, &dim, 1, true);
}

static tt_value_t slice_at(tt_build_t *b, tt_value_t x, tt_value_t i, uint32_t dim) {
  const tt_type_t *t = tt_build_type(b, x);
  const tt_value_t zero = tt_emit_splat_int(b, TT_S32, 0, NULL, 0);
  tt_value_t starts[3] = {zero, zero, zero};
  if (t->rank != 3) return x;
  int64_t sizes[] = {t->dims[0], t->dims[1], t->dims[2]};
  sizes[dim] = 1;
  starts[dim] = i;
  return tt_emit_dynamic_slice(b, x, starts, sizes);
}
tt_value_t tt__column_at(tt_build_t *b, tt_value_t x, tt_value_t i) { return slice_at(b, x, i, 2); }
tt_value_t tt__row_at(tt_build_t *b, tt_value_t x, tt_value_t i) { return slice_at(b, x, i, 1); }

tt_value_t tt__triangular_solve(tt_build_t *b, tt_value_t a, tt_value_t x, bool left, bool lower,
                                bool unit, tt_transpose_t transpose) {
  tt__attrs_t attrs = {.count = 0};
  tt__attr_int(&attrs, TT_ATTR_LEFT_SIDE, left);
  tt__attr_int(&attrs, TT_ATTR_LOWER, lower);
  tt__attr_int(&attrs, TT_ATTR_UNIT_DIAGONAL, unit);
  tt__attr_int(&attrs, TT_ATTR_TRANSPOSE_A, transpose);
  const tt_value_t operands[] = {a, x};
  const tt_node_spec_t spec = {.op = TT_OP_TRIANGULAR_SOLVE,
                               .operands = operands,
                               .operand_count = 2,
                               .attrs = attrs.items,
                               .attr_count = attrs.count};
  return tt_emit(b, &spec);
}

// --- loops ---------------------------------------------------------------------------------------
#define TT_LOOP_STATE 12

void tt__while_loop(tt_build_t *b, tt_value_t *state, uint32_t count, tt__condition_fn_t condition,
                    tt__loop_fn_t body, void *context) {
  tt_type_t types[TT_LOOP_STATE + 1];
  tt_value_t init[TT_LOOP_STATE + 1], args[TT_LOOP_STATE + 1], outs[TT_LOOP_STATE + 1];
  if (count > TT_LOOP_STATE) {
    tt_build_fail(b, TT_ERROR(INTERNAL, "internal: a loop with %u values; please report", count));
  }
  if (b->status) return;
  init[0] = tt_emit_splat_int(b, TT_S32, 0, NULL, 0);
  for (uint32_t i = 0; i < count; i++) init[i + 1] = state[i];
  for (uint32_t i = 0; i <= count; i++) types[i] = *tt_build_type(b, init[i]);
  tt_block_t *test = tt_emit_region_begin(b, types, count + 1, args);
  const tt_value_t go = condition(b, context, args[0], args + 1);
  tt_emit_region_end(b, test, &go, 1);
  tt_block_t *step = tt_emit_region_begin(b, types, count + 1, args);
  const tt_value_t i = args[0];
  body(b, context, i, args + 1);
  args[0] = tt__addc(b, i, 1);
  tt_emit_region_end(b, step, args, count + 1);
  tt_emit_while(b, init, count + 1, test, step, outs);
  for (uint32_t k = 0; k < count; k++) state[k] = outs[k + 1];
}

typedef struct for_s {
  tt_value_t n;
  tt__loop_fn_t body;
  void *context;
} for_t;

static tt_value_t for_condition(tt_build_t *b, void *context, tt_value_t i,
                                const tt_value_t *state) {
  (void)state;
  return tt__lt(b, i, ((for_t *)context)->n);
}
static void for_body(tt_build_t *b, void *context, tt_value_t i, tt_value_t *state) {
  for_t *f = context;
  f->body(b, f->context, i, state);
}

void tt__for_loop(tt_build_t *b, tt_value_t n, tt_value_t *state, uint32_t count,
                  tt__loop_fn_t body, void *context) {
  for_t f = {n, body, context};
  tt__while_loop(b, state, count, for_condition, for_body, &f);
}
