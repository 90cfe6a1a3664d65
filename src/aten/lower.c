// What lowerings share: reading arguments, giving results, run-time checks.
#include "aten/lower.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const int64_t *tt_lower_ints(const tt_lower_t *L, uint32_t i, uint32_t *out_count) {
  const tt_arg_t *arg = &L->call->args[i];
  *out_count = 0;
  if (!tt_lower_has(L, i)) return NULL;
  if (arg->kind == TT_ARG_INT) {  // int[1] given as one number
    *out_count = 1;
    return &arg->u.i;
  }
  *out_count = arg->count;
  return arg->u.ints;
}

int64_t tt_lower_dim(const tt_lower_t *L, uint32_t i, uint32_t rank) {
  int64_t dim = tt_lower_int(L, i, 0), n = rank ? (int64_t)rank : 1;
  if (dim >= -n && dim < n) return dim < 0 ? dim + n : dim;
  tt_build_fail(L->b, TT_ERROR(INDEX,
                               "Dimension out of range (expected to be in range of [%lld, %lld], "
                               "but got %lld)",
                               (long long)-n, (long long)(n - 1), (long long)dim));
  return 0;
}

static double number_as_double(uint8_t kind, int64_t i, double f) {
  return kind == TT_ARG_FLOAT || kind == TT_ARG_COMPLEX ? f : (double)i;
}

double tt_lower_static_float(const tt_lower_t *L, uint32_t i, double otherwise) {
  if (!tt_lower_has(L, i)) return otherwise;
  const tt_arg_t *arg = &L->call->args[i];
  return number_as_double(arg->kind, arg->u.i, arg->u.f);
}

bool tt_lower_scalar_is(const tt_lower_t *L, uint32_t i, int zero_or_one) {
  if (!tt_lower_has(L, i)) return false;
  const tt_arg_t *arg = &L->call->args[i];
  switch (arg->kind) {
    case TT_ARG_BOOL:
    case TT_ARG_INT:
      return arg->u.i == zero_or_one;
    case TT_ARG_FLOAT:
      return arg->u.f == zero_or_one;
    case TT_ARG_COMPLEX:
      return arg->u.complex[0] == zero_or_one && arg->u.complex[1] == 0;
    default:
      return false;
  }
}

bool tt_lower_same_dtype(tt_lower_t *L, uint32_t i, uint32_t j) {
  const tt_dtype_t x = (tt_dtype_t)tt_lower_meta(L, i)->dtype;
  const tt_dtype_t y = (tt_dtype_t)tt_lower_meta(L, j)->dtype;
  if (x == y) return true;
  tt_build_fail(
      L->b, TT_ERROR(INVALID_ARGUMENT, "expected both to have the same dtype, but got: %s != %s",
                     tt_dtype_text(x), tt_dtype_text(y)));
  return false;
}

tt_value_t tt_lower_tensor_as(tt_lower_t *L, uint32_t i, tt_dtype_t dtype) {
  return tt_emit_convert(L->b, tt_lower_tensor(L, i), dtype);
}

tt_value_t tt_lower_operand(tt_lower_t *L, uint32_t i, tt_dtype_t dtype) {
  return tt_lower_is_tensor(L, i) ? tt_lower_tensor_as(L, i, dtype) : tt_lower_scalar(L, i, dtype);
}

// Can `type` be broadcast to the result's sizes?
static bool stretches(const tt_type_t *type, const tt_out_meta_t *out) {
  if (type->rank > out->rank) return false;
  for (uint32_t i = 0; i < type->rank; i++) {
    int64_t have = type->dims[i], want = out->sizes[out->rank - type->rank + i];
    if (have != want && have != 1) return false;
  }
  return true;
}

void tt_lower_return(tt_lower_t *L, uint32_t i, tt_value_t value) {
  if (value == TT_NO_VALUE) return;
  if (i >= L->out_count) {
    tt_build_fail(L->b, TT_ERROR(INTERNAL, "internal: %s returns result %u of %u; please report",
                                 L->op_name, i, L->out_count));
    return;
  }
  const tt_out_meta_t *out = &L->outs[i];
  const tt_type_t *type = tt_build_type(L->b, value);
  if (!stretches(type, out)) {
    char have[256], want[256];
    tt_type_t wanted = {(tt_dtype_t)out->dtype, out->rank, out->sizes};
    tt_type_format(type, have, sizeof have);
    tt_type_format(&wanted, want, sizeof want);
    tt_build_fail(L->b, TT_ERROR(INTERNAL,
                                 "internal: %s returns %s for result %u, inferred %s; "
                                 "please report",
                                 L->op_name, have, i, want));
    return;
  }
  value = tt_emit_convert(L->b, value, (tt_dtype_t)out->dtype);
  L->results[i] = tt_emit_broadcast_to(L->b, value, out->rank, out->sizes);
}

static char *format_in(tt_arena_t *arena, const char *format, va_list args) {
  char text[512];
  int n = vsnprintf(text, sizeof text, format, args);
  size_t length = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
  return tt_arena_string(arena, text, length);
}

void tt_lower_check(tt_lower_t *L, tt_value_t ok, tt_code_t code, const char *format, ...) {
  tt_arena_t *arena = &L->b->graph->arena;
  va_list args;
  va_start(args, format);
  char *message = format_in(arena, format, args);
  va_end(args);
  if (L->check_count == L->check_capacity) {
    uint32_t wanted = L->check_capacity ? 2 * L->check_capacity : 4;
    tt_lower_check_t *grown = TT_ARENA_ARRAY(arena, tt_lower_check_t, wanted);
    if (grown && L->check_count) memcpy(grown, L->checks, L->check_count * sizeof *grown);
    if (grown) L->checks = grown, L->check_capacity = wanted;
  }
  if (!message || L->check_count == L->check_capacity) {
    tt_build_fail(L->b, TT_ERROR(OUT_OF_MEMORY, "%s: out of host memory", L->op_name));
    return;
  }
  if (ok != TT_NO_VALUE) L->checks[L->check_count++] = (tt_lower_check_t){ok, code, message};
}

void tt_lower_unsupported(tt_lower_t *L, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tt_build_fail(L->b, TT_ERROR(UNIMPLEMENTED, "lower: %s: %s", L->op_name, text));
}
