// Debug mode: every op is waited for, and a failure says which call it was and where from.
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "eager/internal.h"

static tt_status_t with_place(const tt_call_t *call, tt_status_t status) {
  char text[512], place[512];
  if (tt_status_code(status) == TT_UNIMPLEMENTED) return status;
  tt__describe_call(call, text, sizeof text);
  const tt_eager_hooks_t *hooks = &tt__engine.hooks;
  if (hooks->python_location && hooks->python_location(hooks->context, place, sizeof place)) {
    return tt_status_annotate(status, "%s at %s", text, place);
  }
  return tt_status_annotate(status, "%s", text);
}

static double element(tt_dtype_t dtype, const char *data, size_t i) {
  double d;
  float f;
  uint16_t h;
  switch (dtype) {
    case TT_F64:
    case TT_C128:
      memcpy(&d, data + 8 * i, 8);
      return d;
    case TT_F32:
    case TT_C64:
      memcpy(&f, data + 4 * i, 4);
      return (double)f;
    case TT_BF16:
      memcpy(&h, data + 2 * i, 2);
      return (double)tt_bf16_to_f32(h);
    case TT_F16:
      memcpy(&h, data + 2 * i, 2);
      return (double)tt_f16_to_f32(h);
    default:
      return 0;
  }
}

static tt_status_t check_finite(tt_buffer_t *buffer, const tt__layout_t *layout) {
  if (!tt_dtype_is_float(layout->dtype) && !tt_dtype_is_complex(layout->dtype)) return TT_OK_STATUS;
  char *data = tt_alloc(layout->bytes);
  if (!data) return tt__no_host_memory();
  tt_status_t s = tt_buffer_read(buffer, data, layout->bytes);
  size_t count = layout->bytes / tt_dtype_size(tt_dtype_real(layout->dtype));
  for (size_t i = 0; !s && i < count; i++) {
    double d = element(layout->dtype, data, i);
    if (!isfinite(d)) {
      s = TT_ERROR(INVALID_ARGUMENT, "the result has %s at element %zu of its memory",
                   isnan(d) ? "NaN" : "an infinity", i);
    }
  }
  tt_free(data);
  return s;
}

// Holding the version keeps other threads from donating it.
tt_status_t tt__debug_settle(tt_storage_t *storage) {
  tt__lock();
  tt__version_t *v = storage->version;
  bool has = v && v->buffer;
  if (has) tt__version_retain(v);
  tt__unlock();
  if (!has) return TT_OK_STATUS;
  tt_status_t s = tt_buffer_await(v->buffer);
  if (!s && atomic_load(&tt__engine.check_finite)) s = check_finite(v->buffer, v->layout);
  tt__lock();
  tt__version_release(v);
  tt__unlock();
  return s;
}

static tt_status_t settle_all(const tt_call_t *call, const tt__instance_t *n,
                              const tt_outs_t *outs) {
  tt_status_t s = TT_OK_STATUS;
  for (uint32_t i = 0; !s && i < outs->count; i++) {
    if (outs->items[i].storage) s = tt__debug_settle(outs->items[i].storage);
  }
  for (uint32_t a = 0; !s && call->variant != TT_FUNCTIONAL && a < call->arg_count; a++) {
    const tt_arg_t *arg = &call->args[a];
    uint32_t count = arg->kind == TT_ARG_TENSOR ? 1 : arg->kind == TT_ARG_TENSORS ? arg->count : 0;
    for (uint32_t i = 0; !s && i < count; i++) {
      if (arg->u.tensors[i].storage) s = tt__debug_settle(arg->u.tensors[i].storage);
    }
  }
  return !s && n->check_count ? tt__check_all(call->device) : s;
}

tt_status_t tt__debug_after(const tt_call_t *call, const tt__instance_t *instance, tt_outs_t *outs,
                            tt_status_t status) {
  if (status) return with_place(call, status);
  status = settle_all(call, instance, outs);
  if (!status) return status;
  tt__lock();
  tt__outs_drop(outs);
  tt__unlock();
  return with_place(call, status);
}
