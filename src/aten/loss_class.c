// Losses whose target is a class: negative log likelihood and the margin losses.
#include <math.h>

#include "aten/emit.h"

// What the target says of each sample: a class in range, the class' weight (0 where ignored), and
// which element of the input it is.
typedef struct classes_s {
  tt_value_t index;   // s32, with the class dimension kept (size 1)
  tt_value_t weight;  // the same shape, opmath
  tt_value_t kept;    // i1, the same shape: not ignored
  tt_value_t here;    // i1, input's shape: this element is the target's class
  int64_t dim, count;
} classes_t;

static tt_value_t with_dim(tt_build_t *b, tt_value_t x, int64_t dim, uint32_t rank) {
  const tt_type_t *t = tt_build_type(b, x);
  if (t->rank == rank) return x;
  int64_t dims[TT_MAX_RANK];
  for (uint32_t i = 0, j = 0; i < rank; i++) dims[i] = i == dim || j >= t->rank ? 1 : t->dims[j++];
  return tt_emit_reshape(b, x, rank, dims);
}
static tt_value_t class_weight(tt_lower_t *L, uint32_t arg, tt_value_t index, tt_dtype_t d) {
  tt_build_t *b = L->b;
  const tt_type_t *t = tt_build_type(b, index);
  if (!tt_lower_has(L, arg)) return tt_emit_splat(b, d, t->rank, t->dims, 1);
  return tt_emit_take(b, tt_lower_tensor_as(L, arg, d), index, 0);
}

static classes_t classes(tt_lower_t *L, tt_value_t x, uint32_t target_arg, uint32_t weight_arg,
                         int64_t ignored) {
  tt_build_t *b = L->b;
  const tt_type_t *t = tt_build_type(b, x);
  classes_t c = {.dim = t->rank > 1 ? 1 : 0};
  c.count = t->dims[c.dim];
  tt_value_t target = with_dim(b, tt_lower_tensor_as(L, target_arg, TT_S64), c.dim, t->rank);
  c.kept = tt__ne(b, target, tt_emit_splat_int(b, TT_S64, 0, NULL, ignored));
  tt_value_t range =
      tt__and(b, tt__cmpc(b, TT_GE, target, 0), tt__cmpc(b, TT_LT, target, (double)c.count));
  tt_value_t bad = tt__and(b, c.kept, tt__not(b, range));
  bad = tt__sum(b, tt_emit_convert(b, bad, TT_S32));
  tt_lower_check(L, tt__cmpc(b, TT_EQ, bad, 0), TT_INDEX, "Target is out of bounds.");
  c.index = tt_emit_convert(b, tt__select_no(b, tt__and(b, c.kept, range), target, 0), TT_S32);
  c.weight = tt__select_no(b, c.kept, class_weight(L, weight_arg, c.index, t->dtype), 0);
  c.here = tt__eq(b, tt__iota(b, t->rank, t->dims, (uint32_t)c.dim),
                  tt_emit_broadcast_to(b, c.index, t->rank, t->dims));
  return c;
}

// nll_loss(self, target, weight, reduction, ignore_index) -> (output, total_weight)
TT_LOWER0(nll_loss) {
  tt_build_t *b = L->b;
  tt_value_t x = tt__opmath_tensor(L, 0);
  int64_t reduction = tt_lower_int(L, 3, 1);
  if (tt_lower_has(L, 2) && tt_lower_meta(L, 2)->dtype != tt_lower_meta(L, 0)->dtype) {
    TT__FAIL(L, INVALID_ARGUMENT, "weight: expected scalar type %s but found %s",
             tt_dtype_text((tt_dtype_t)tt_lower_meta(L, 0)->dtype),
             tt_dtype_text((tt_dtype_t)tt_lower_meta(L, 2)->dtype));
    return;
  }
  classes_t c = classes(L, x, 1, 2, tt_lower_int(L, 4, -100));
  tt_value_t picked = tt_emit_take_along(b, x, c.index, c.dim);
  // An ignored sample counts nothing, whatever stands there.
  tt_value_t loss = tt__select_no(b, c.kept, tt__neg(b, tt__mul(b, picked, c.weight)), 0);
  if (reduction == 0) {
    tt_lower_return(L, 0, tt__reshape_out(L, 0, loss));
    tt_lower_return(L, 1, tt__num(b, x, 0));
    return;
  }
  tt_value_t sum = tt__sum(b, loss), total = tt__sum(b, c.weight);
  tt_lower_return(L, 0, reduction == 1 ? tt__div(b, sum, total) : sum);
  tt_lower_return(L, 1, total);
}
// nll_loss_backward(grad, self, target, weight, reduction, ignore_index, total_weight)
TT_LOWER0(nll_loss_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = tt__opmath_tensor(L, 0), x = tt__opmath_tensor(L, 1);
  int64_t reduction = tt_lower_int(L, 4, 1);
  classes_t c = classes(L, x, 2, 3, tt_lower_int(L, 5, -100));
  if (reduction == 0) {
    g = with_dim(b, g, c.dim, tt__rank(b, x));
  } else if (reduction == 1) {
    g = tt__div(b, g, tt__opmath_tensor(L, 6));
  }
  tt_value_t part = tt__neg(b, tt__mul(b, c.weight, g));
  part = tt__select_no(b, c.kept, part, 0);
  const tt_type_t *t = tt_build_type(b, x);
  tt_lower_return(L, 0,
                  tt__zero_unless(b, c.here, tt_emit_broadcast_to(b, part, t->rank, t->dims)));
}

// --- margins -------------------------------------------------------------------------------------

// Rows of samples: [n, c], a single sample as one row.
static tt_value_t rows(tt_build_t *b, tt_value_t x) {
  const tt_type_t *t = tt_build_type(b, x);
  const int64_t dims[2] = {t->rank == 2 ? t->dims[0] : 1, t->rank ? t->dims[t->rank - 1] : 1};
  return tt_emit_reshape(b, x, 2, dims);
}
static tt_value_t column(tt_build_t *b, tt_value_t x, int64_t n) {
  const int64_t dims[2] = {n, 1};
  return tt_emit_reshape(b, x, 2, dims);
}
// max(0, margin - x[target] + x[j]), zero at the target itself.
static tt_value_t hinge(tt_lower_t *L, const classes_t *c, tt_value_t x, uint32_t margin_arg) {
  tt_build_t *b = L->b;
  tt_value_t picked = tt_emit_take_along(b, x, c->index, 1);
  tt_value_t z =
      tt__add(b, tt__sub(b, x, picked), tt_lower_scalar(L, margin_arg, tt_build_dtype(b, x)));
  return tt__select_yes(b, c->here, 0, tt__max(b, z, tt__num(b, z, 0)));
}
// The target argument of one row may be rank 0 or 1: classes() wants [n, 1].
static classes_t margin_classes(tt_lower_t *L, tt_value_t x, uint32_t target_arg,
                                uint32_t weight_arg) {
  tt_build_t *b = L->b;
  classes_t c = {.dim = 1, .count = tt__dim(b, x, 1)};
  const tt_type_t *t = tt_build_type(b, x);
  tt_value_t target = column(b, tt_lower_tensor_as(L, target_arg, TT_S64), t->dims[0]);
  tt_value_t range =
      tt__and(b, tt__cmpc(b, TT_GE, target, 0), tt__cmpc(b, TT_LT, target, (double)c.count));
  tt_value_t bad = tt__sum(b, tt_emit_convert(b, tt__not(b, range), TT_S32));
  tt_lower_check(L, tt__cmpc(b, TT_EQ, bad, 0), TT_INVALID_ARGUMENT, "target out of range");
  c.index = tt_emit_convert(b, tt__select_no(b, range, target, 0), TT_S32);
  c.weight = class_weight(L, weight_arg, c.index, t->dtype);
  c.here = tt__eq(b, tt__iota(b, 2, t->dims, 1), tt_emit_broadcast_to(b, c.index, 2, t->dims));
  return c;
}

// multi_margin_loss(self, target, p, margin, weight, reduction)
TT_LOWER0(multi_margin) {
  tt_build_t *b = L->b;
  tt_value_t x = rows(b, tt__opmath_tensor(L, 0));
  classes_t c = margin_classes(L, x, 1, 4);
  tt_value_t z = hinge(L, &c, x, 3);
  if (tt_lower_static_float(L, 2, 1) == 2) z = tt__square(b, z);
  int64_t one = 1;
  tt_value_t loss = tt_emit_reduce(b, TT_OP_ADD, tt__mul(b, z, c.weight), &one, 1, false);
  loss = tt__divc(b, loss, (double)c.count);
  int64_t reduction = tt_lower_int(L, 5, 1);
  tt_lower_return(
      L, 0, reduction ? tt__apply_reduction(b, loss, reduction) : tt__reshape_out(L, 0, loss));
}
// multi_margin_loss_backward(grad, self, target, p, margin, weight, reduction)
TT_LOWER0(multi_margin_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = tt__opmath_tensor(L, 0), x = rows(b, tt__opmath_tensor(L, 1));
  classes_t c = margin_classes(L, x, 2, 5);
  int64_t reduction = tt_lower_int(L, 6, 1), one = 1, n = tt__dim(b, x, 0);
  tt_value_t z = hinge(L, &c, x, 4);
  tt_value_t d = tt_lower_static_float(L, 3, 1) == 2
                     ? tt__mulc(b, z, 2)
                     : tt_emit_convert(b, tt__cmpc(b, TT_GT, z, 0), tt_build_dtype(b, z));
  d = tt__divc(b, tt__mul(b, d, c.weight), (double)c.count);
  tt_value_t sum = tt__neg(b, tt_emit_reduce(b, TT_OP_ADD, d, &one, 1, true));
  const tt_type_t *t = tt_build_type(b, x);
  d = tt__select(b, c.here, tt_emit_broadcast_to(b, sum, 2, t->dims), d);
  if (reduction == 0) g = column(b, g, n);
  if (reduction == 1) g = tt__divc(b, g, (double)n);
  tt_lower_return(L, 0, tt__reshape_out(L, 0, tt__mul(b, d, g)));
}

// The classes a row of targets names: those before its first negative entry. [n, k] and [n, c].
static void label_sets(tt_lower_t *L, tt_value_t target, tt_value_t *out_valid,
                       tt_value_t *out_here) {
  tt_build_t *b = L->b;
  const tt_type_t *t = tt_build_type(b, target);
  tt_value_t ends = tt_emit_convert(b, tt__cmpc(b, TT_LT, target, 0), TT_S32);
  *out_valid = tt__cmpc(b, TT_EQ, tt__prefix_sum(b, ends, 1), 0);
  const int64_t cube[3] = {t->dims[0], t->dims[1], t->dims[1]}, places[2] = {0, 1};
  tt_value_t wide = tt_emit_broadcast_in_dim(b, target, 3, cube, places);
  tt_value_t valid = tt_emit_broadcast_in_dim(b, *out_valid, 3, cube, places);
  *out_here = tt__and(b, valid, tt__eq(b, wide, tt_emit_iota(b, TT_S64, 3, cube, 2)));
}
// max(0, 1 - x[target k] + x[j]) for valid k and j not among the targets: [n, k, j].
static tt_value_t label_hinge(tt_build_t *b, tt_value_t x, tt_value_t target, tt_value_t valid,
                              tt_value_t is_target) {
  const tt_type_t *t = tt_build_type(b, x);
  const int64_t cube[3] = {t->dims[0], t->dims[1], t->dims[1]}, by_k[2] = {0, 1}, by_j[2] = {0, 2};
  tt_value_t safe = tt_emit_convert(b, tt__max(b, target, tt__num(b, target, 0)), TT_S32);
  tt_value_t picked = tt_emit_broadcast_in_dim(b, tt_emit_take_along(b, x, safe, 1), 3, cube, by_k);
  tt_value_t z = tt__sub(b, tt_emit_broadcast_in_dim(b, x, 3, cube, by_j), picked);
  z = tt__max(b, tt__addc(b, z, 1), tt__num(b, z, 0));
  tt_value_t counts = tt__and(b, tt_emit_broadcast_in_dim(b, valid, 3, cube, by_k),
                              tt__not(b, tt_emit_broadcast_in_dim(b, is_target, 3, cube, by_j)));
  return tt__select_no(b, counts, z, 0);
}
// multilabel_margin_loss_forward(self, target, reduction) -> (output, is_target)
TT_LOWER0(multilabel_margin) {
  tt_build_t *b = L->b;
  tt_value_t x = rows(b, tt__opmath_tensor(L, 0)),
             target = rows(b, tt_lower_tensor_as(L, 1, TT_S64)), valid, here;
  tt_value_t range = tt__and(b, tt__cmpc(b, TT_GE, target, -1),
                             tt__cmpc(b, TT_LT, target, (double)tt__dim(b, x, 1)));
  tt_value_t bad = tt__sum(b, tt_emit_convert(b, tt__not(b, range), TT_S32));
  tt_lower_check(L, tt__cmpc(b, TT_EQ, bad, 0), TT_INVALID_ARGUMENT, "target is out of range");
  label_sets(L, target, &valid, &here);
  const int64_t inner[2] = {1, 2};
  tt_value_t is_target = tt_emit_reduce(b, TT_OP_OR, here, inner, 1, false);
  tt_value_t z = label_hinge(b, x, target, valid, is_target);
  tt_value_t loss =
      tt__divc(b, tt_emit_reduce(b, TT_OP_ADD, z, inner, 2, false), (double)tt__dim(b, x, 1));
  int64_t reduction = tt_lower_int(L, 2, 1);
  tt_lower_return(
      L, 0, reduction ? tt__apply_reduction(b, loss, reduction) : tt__reshape_out(L, 0, loss));
  tt_lower_return(L, 1, tt__reshape_out(L, 1, is_target));
}
// multilabel_margin_loss_backward(grad, self, target, reduction, is_target)
TT_LOWER0(multilabel_margin_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = tt__opmath_tensor(L, 0), x = rows(b, tt__opmath_tensor(L, 1));
  tt_value_t target = rows(b, tt_lower_tensor_as(L, 2, TT_S64)), valid, here;
  int64_t reduction = tt_lower_int(L, 3, 1), n = tt__dim(b, x, 0), one = 1, two = 2;
  label_sets(L, target, &valid, &here);
  tt_value_t is_target = tt_emit_reduce(b, TT_OP_OR, here, &one, 1, false);
  tt_value_t z = label_hinge(b, x, target, valid, is_target);
  tt_value_t active = tt_emit_convert(b, tt__cmpc(b, TT_GT, z, 0), tt_build_dtype(b, x));
  tt_value_t up = tt_emit_reduce(b, TT_OP_ADD, active, &one, 1, false);
  // What target k loses goes to the class it names.
  tt_value_t down = tt_emit_reduce(b, TT_OP_ADD, active, &two, 1, true);
  const tt_type_t *cube = tt_build_type(b, here);
  down = tt__zero_unless(b, here, tt_emit_broadcast_to(b, down, 3, cube->dims));
  down = tt_emit_reduce(b, TT_OP_ADD, down, &one, 1, false);
  tt_value_t d = tt__divc(b, tt__sub(b, up, down), (double)tt__dim(b, x, 1));
  if (reduction == 0) g = column(b, g, n);
  if (reduction == 1) g = tt__divc(b, g, (double)n);
  tt_lower_return(L, 0, tt__reshape_out(L, 0, tt__mul(b, d, g)));
}
