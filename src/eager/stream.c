// Streams. A device runs what it is given in order, so a stream is a window of its own
// (DeferAndFuse) and an order that holds anyway.
#include "eager/internal.h"

enum { MOST_STREAMS = 1024 };

typedef struct device_streams_s {
  tt__window_t *windows[MOST_STREAMS];  // made on first use
  int64_t count;                        // streams handed out beyond stream 0
} device_streams_t;

static device_streams_t *devices[TT__MAX_DEVICES];
static _Thread_local int64_t current[TT__MAX_DEVICES];

static device_streams_t *streams_of(int device) {
  if (!devices[device]) devices[device] = tt_alloc_zeroed(sizeof *devices[device]);
  return devices[device];
}

tt_status_t tt_stream_create(int device, int64_t *out_stream) {
  *out_stream = 0;
  TT_RETURN_IF_ERROR(tt__ready(device));
  tt__lock();
  device_streams_t *d = streams_of(device);
  // Beyond the last one they are handed out again, as CUDA's pool does.
  if (d) *out_stream = 1 + d->count++ % (MOST_STREAMS - 1);
  tt__unlock();
  return d ? TT_OK_STATUS : tt__no_host_memory();
}

int64_t tt_stream_current(int device) {
  return device >= 0 && device < TT__MAX_DEVICES ? current[device] : 0;
}

void tt_stream_set_current(int device, int64_t stream) {
  bool valid = device >= 0 && device < TT__MAX_DEVICES && stream >= 0 && stream < MOST_STREAMS;
  if (valid) current[device] = stream;
}

tt__window_t *tt__stream_window(int device) {
  device_streams_t *d = streams_of(device);
  if (!d) return NULL;
  tt__window_t **w = &d->windows[current[device]];
  if (!*w) tt_status_release(tt__window_create(device, NULL, w));
  return *w;
}

void tt__windows_hold(uint32_t look) {
  for (int device = 0; device < TT__MAX_DEVICES; device++) {
    for (int i = 0; devices[device] && i < MOST_STREAMS; i++) {
      if (devices[device]->windows[i]) tt__window_hold(devices[device]->windows[i], look);
    }
  }
}

tt_status_t tt__flush_device(int device) {
  device_streams_t *d = devices[device];
  tt_status_t s = TT_OK_STATUS;
  for (int64_t i = 0; d && i < MOST_STREAMS; i++) {
    if (d->windows[i]) s = tt_status_join(s, tt__window_flush(d->windows[i]));
  }
  return s;
}

tt_status_t tt__flush_stream(int device, int64_t stream) {
  device_streams_t *d = devices[device];
  bool has = d && stream >= 0 && stream < MOST_STREAMS && d->windows[stream];
  return has ? tt__window_flush(d->windows[stream]) : TT_OK_STATUS;
}

static tt_status_t flush_and_mark(int device, int64_t stream, tt_marker_t **out_marker) {
  TT_RETURN_IF_ERROR(tt__ready(device));
  tt__lock();
  tt_status_t s = tt__flush_stream(device, stream);
  tt__unlock();
  TT_RETURN_IF_ERROR(s);
  return tt_marker_create(tt__engine.client, (uint32_t)device, out_marker);
}

tt_status_t tt_stream_synchronize(int device, int64_t stream) {
  tt_marker_t *marker = NULL;
  TT_RETURN_IF_ERROR(tt__ready(device));
  tt_status_t s = flush_and_mark(device, stream, &marker);
  if (!s) {
    s = tt_marker_await(marker);
    tt_marker_release(marker);
  }
  return tt_status_join(tt__check_all(device), s);
}

bool tt_stream_query(int device, int64_t stream) {
  tt_marker_t *marker = NULL;
  if (!tt_eager_is_started()) return true;
  tt_status_t s = flush_and_mark(device, stream, &marker);
  if (s) {
    tt_status_release(s);
    return false;
  }
  bool done = tt_marker_is_done(marker);
  tt_marker_release(marker);
  return done;
}
