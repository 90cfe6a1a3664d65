// Events: the queue's own, one reference a handle.
#include "base/alloc.h"
#include "softtpu/plugin/plugin.h"

tt_pjrt_error_t *tt__soft_Event_Destroy(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  tt_queue_event_release(a->self);
  return NULL;
}

tt_pjrt_error_t *tt__soft_Event_IsReady(tt_pjrt_bool_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = tt_queue_event_is_done(a->self);
  return NULL;
}

tt_pjrt_error_t *tt__soft_Event_Error(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  return tt__soft_error(tt_queue_event_error(a->self));
}

tt_pjrt_error_t *tt__soft_Event_Await(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  TT_SOFT_RETURN_IF_ERROR(tt_device_check());
  return tt__soft_error(tt_queue_event_await(a->self));
}

// The interface's callback owns its error, the queue's borrows it.
typedef struct ready_s {
  void (*callback)(tt_pjrt_error_t *error, void *context);
  void *context;
} ready_t;

static void call_back(void *context, tt_status_t error) {
  ready_t ready = *(ready_t *)context;
  tt_free(context);
  ready.callback(tt__soft_error(tt_status_clone(error)), ready.context);
}

tt_pjrt_error_t *tt__soft_Event_OnReady(tt_pjrt_on_ready_args_t *a) {
  TT_SOFT_CHECK(a, context);
  ready_t *ready = tt_alloc(sizeof *ready);
  if (ready) *ready = (ready_t){a->callback, a->context};
  if (!ready || !tt_queue_event_on_done(a->self, call_back, ready)) {
    tt_free(ready);
    return tt__soft_error(TT_ERROR(OUT_OF_MEMORY, "no host memory for a callback"));
  }
  return NULL;
}

// For clients that complete an event themselves, by Event_Set.
tt_pjrt_error_t *tt__soft_Event_Create(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  a->self = tt_queue_event_create();
  if (!a->self) return tt__soft_error(TT_ERROR(OUT_OF_MEMORY, "no host memory for an event"));
  return NULL;
}

tt_pjrt_error_t *tt__soft_Event_Set(tt_pjrt_event_set_args_t *a) {
  TT_SOFT_CHECK(a, message_size);
  tt_status_t status = TT_OK_STATUS;
  if (a->code != TT_PJRT_OK) {
    status = tt_status_make(tt__soft_code(a->code), __FILE__, __LINE__, "%.*s",
                            (int)a->message_size, a->message);
  }
  tt_queue_event_set(a->self, status);
  return NULL;
}
