// Calls in words, for messages.
#include <stdarg.h>
#include <stdio.h>

#include "eager/internal.h"

typedef struct text_s {
  char *buffer;
  size_t size, at;
} text_t;

static void add(text_t *t, const char *format, ...) TT_PRINTF(2, 3);
static void add(text_t *t, const char *format, ...) {
  if (t->at >= t->size) return;
  va_list args;
  va_start(args, format);
  int n = vsnprintf(t->buffer + t->at, t->size - t->at, format, args);
  va_end(args);
  if (n > 0) t->at += (size_t)n;
}

static void add_tensor(text_t *t, const tt_tensor_t *tensor) {
  if (tensor->rank == TT_NO_TENSOR) {
    add(t, "None");
    return;
  }
  add(t, "%s[", tt_dtype_text((tt_dtype_t)tensor->dtype));
  for (uint32_t i = 0; i < tensor->rank; i++) {
    add(t, i ? ", %lld" : "%lld", (long long)tensor->sizes[i]);
  }
  add(t, "]");
}

static void add_number(text_t *t, uint8_t kind, const void *payload) {
  const int64_t *i = payload;
  const double *d = payload;
  if (kind == TT_ARG_BOOL)
    add(t, *i ? "True" : "False");
  else if (kind == TT_ARG_INT)
    add(t, "%lld", (long long)*i);
  else if (kind == TT_ARG_FLOAT)
    add(t, "%g", *d);
  else
    add(t, "%g%+gj", d[0], d[1]);
}

static void add_argument(text_t *t, const tt_arg_t *arg) {
  enum { SHOWN = 8 };
  uint32_t shown = arg->count < SHOWN ? arg->count : SHOWN;
  switch (arg->kind) {
    case TT_ARG_TENSOR:
      add_tensor(t, arg->u.tensor);
      return;
    case TT_ARG_BOOL:
    case TT_ARG_INT:
    case TT_ARG_FLOAT:
    case TT_ARG_COMPLEX:
      add_number(t, arg->kind, &arg->u);
      return;
    case TT_ARG_STRING:
      add(t, "'%.*s'", (int)arg->count, arg->u.string);
      return;
    case TT_ARG_DTYPE:
      add(t, "%s", tt_dtype_text((tt_dtype_t)arg->u.i));
      return;
    case TT_ARG_TENSORS:
    case TT_ARG_INTS:
    case TT_ARG_FLOATS:
    case TT_ARG_BOOLS:
    case TT_ARG_SCALARS:
      break;
    default:
      add(t, arg->kind == TT_ARG_NONE ? "None" : "...");
      return;
  }
  add(t, "[");
  for (uint32_t i = 0; i < shown; i++) {
    if (i) add(t, ", ");
    if (arg->kind == TT_ARG_TENSORS)
      add_tensor(t, &arg->u.tensors[i]);
    else if (arg->kind == TT_ARG_INTS)
      add(t, "%lld", (long long)arg->u.ints[i]);
    else if (arg->kind == TT_ARG_FLOATS)
      add(t, "%g", arg->u.floats[i]);
    else if (arg->kind == TT_ARG_BOOLS)
      add(t, arg->u.bools[i] ? "True" : "False");
    else
      add_number(t, arg->u.scalars[i].kind, &arg->u.scalars[i].u);
  }
  add(t, arg->count > SHOWN ? ", ... %u in all]" : "]", arg->count);
}

const char *tt__call_name(const tt_call_t *call) {
  const tt_aten_op_t *op = tt__op(call->op);
  const char *name = call->variant == TT_INPLACE ? op->inplace
                     : call->variant == TT_OUT   ? op->out
                                                 : op->functional;
  return name && *name ? name : op->functional;
}

const char *tt__describe_call(const tt_call_t *call, char *buffer, size_t size) {
  text_t t = {buffer, size, 0};
  buffer[0] = '\0';
  add(&t, "%s(", tt__call_name(call));
  for (uint32_t i = 0; i < call->arg_count; i++) {
    if (i) add(&t, ", ");
    add_argument(&t, &call->args[i]);
  }
  add(&t, ")");
  return buffer;
}
