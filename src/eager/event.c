#include "eager/internal.h"

struct tt_event_s {
  int device;
  tt_marker_t *marker;  // NULL: never recorded
};

tt_status_t tt_event_create(int device, tt_event_t **out_event) {
  *out_event = tt_alloc(sizeof **out_event);
  if (!*out_event) return tt__no_host_memory();
  **out_event = (tt_event_t){device, NULL};
  return TT_OK_STATUS;
}

void tt_event_destroy(tt_event_t *event) {
  if (!event) return;
  if (event->marker) tt_marker_release(event->marker);
  tt_free(event);
}

tt_status_t tt_event_record(tt_event_t *event, int64_t stream) {
  tt_marker_t *marker = NULL;
  TT_RETURN_IF_ERROR(tt__ready(event->device));
  tt__lock();
  tt_status_t s = tt__flush_stream(event->device, stream);
  tt__unlock();
  TT_RETURN_IF_ERROR(s);
  TT_RETURN_IF_ERROR(tt_marker_create(tt__engine.client, (uint32_t)event->device, &marker));
  if (event->marker) tt_marker_release(event->marker);
  event->marker = marker;
  return TT_OK_STATUS;
}

tt_status_t tt_event_wait(tt_event_t *event, int64_t stream) {
  // What was recorded before the event is in the device's queue, and what `stream` submits later
  // stands behind it. A stream of another device has to wait on the host.
  (void)stream;
  return event->marker && tt__engine.device_count > 1 ? tt_marker_await(event->marker)
                                                      : TT_OK_STATUS;
}

bool tt_event_query(tt_event_t *event) {
  return !event->marker || tt_marker_is_done(event->marker);
}

tt_status_t tt_event_synchronize(tt_event_t *event) {
  if (!event->marker) return TT_OK_STATUS;
  tt_status_t s = tt_marker_await(event->marker);
  return tt_status_join(tt__check_all(event->device), s);
}

tt_status_t tt_event_elapsed_ms(tt_event_t *start, tt_event_t *end, double *out_ms) {
  *out_ms = 0;
  if (!start->marker || !end->marker) {
    return TT_ERROR(INVALID_ARGUMENT,
                    "Both events must be recorded before calculating elapsed time.");
  }
  if (start->device != end->device) {
    return TT_ERROR(INVALID_ARGUMENT,
                    "elapsed time needs two events of one device, not of tpu:%d and tpu:%d",
                    start->device, end->device);
  }
  *out_ms = tt_marker_time_ms(end->marker) - tt_marker_time_ms(start->marker);
  return TT_OK_STATUS;
}
