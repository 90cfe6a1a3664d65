#include <time.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

// --- fences --------------------------------------------------------------------------------------
static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

tt_fence_t *tt__fence_create(const tt_plugin_t *plugin) {
  tt_fence_t *fence = tt_alloc(sizeof *fence);
  if (!fence) return NULL;
  atomic_init(&fence->refs, 1);
  atomic_init(&fence->time, 0);
  fence->error = TT_OK_STATUS;
  fence->plugin = plugin;
  pthread_mutex_init(&fence->mutex, NULL);
  pthread_cond_init(&fence->cond, NULL);
  return fence;
}

void tt__fence_release(tt_fence_t *fence) {
  if (!fence || atomic_fetch_sub(&fence->refs, 1) != 1) return;
  tt_status_release(fence->error);
  pthread_cond_destroy(&fence->cond);
  pthread_mutex_destroy(&fence->mutex);
  tt_free(fence);
}

static void complete(tt_pjrt_error_t *error, void *context) {
  tt_fence_t *fence = context;
  tt_status_t status = tt__plugin_status(fence->plugin, error);
  pthread_mutex_lock(&fence->mutex);
  fence->error = status;
  atomic_store(&fence->time, now());
  pthread_cond_broadcast(&fence->cond);
  pthread_mutex_unlock(&fence->mutex);
  tt__fence_release(fence);
}

tt_status_t tt__fence_follow(tt_fence_t *fence, void *event) {
  const tt_plugin_t *plugin = fence->plugin;
  atomic_fetch_add(&fence->refs, 1);
  TT_PJRT_ARGS(tt_pjrt_on_ready_args_t, args, .self = event, .callback = complete,
               .context = fence);
  tt_status_t status = TT_CALL(plugin, Event_OnReady, &args);
  if (status) tt__fence_release(fence);
  TT_PJRT_ARGS(tt_pjrt_ref_args_t, destroy, .self = event);
  tt__plugin_ignore(plugin, plugin->api->Event_Destroy(&destroy));
  return status;
}

tt_status_t tt__fence_await(tt_fence_t *fence) {
  pthread_mutex_lock(&fence->mutex);
  while (!atomic_load(&fence->time)) pthread_cond_wait(&fence->cond, &fence->mutex);
  pthread_mutex_unlock(&fence->mutex);
  return tt_status_clone(fence->error);
}

// --- markers -------------------------------------------------------------------------------------
struct tt_marker_s {
  _Atomic uint32_t refs;
  tt_client_t *client;  // retained
  void *event;          // the software TPU's
  tt_fence_t *fence;    // other plugins'; NULL: nothing had been submitted
  int64_t created;
};

// On other plugins a device runs in order, so its last execution's fence stands for all before it.
tt_status_t tt_marker_create(tt_client_t *client, uint32_t device, tt_marker_t **out_marker) {
  *out_marker = NULL;
  TT_RETURN_IF_ERROR(tt__client_check_device(client, device));
  tt_marker_t *marker = tt_alloc_zeroed(sizeof *marker);
  if (!marker) return TT_ERROR(OUT_OF_MEMORY, "no memory for a marker");
  tt_client_device_t *d = &client->devices[device];
  atomic_init(&marker->refs, 1);
  marker->created = now();
  if (client->ext) {
    tt_status_t status =
        tt__plugin_status(client->plugin, client->ext->mark(d->handle, &marker->event));
    if (status) {
      tt_free(marker);
      return status;
    }
  } else {
    pthread_mutex_lock(&d->mutex);
    marker->fence = d->last;
    if (d->last) atomic_fetch_add(&d->last->refs, 1);
    pthread_mutex_unlock(&d->mutex);
  }
  marker->client = client;
  tt__client_retain(client);
  *out_marker = marker;
  return TT_OK_STATUS;
}

void tt_marker_release(tt_marker_t *marker) {
  if (!marker || atomic_fetch_sub(&marker->refs, 1) != 1) return;
  if (marker->event) {
    TT_PJRT_ARGS(tt_pjrt_ref_args_t, args, .self = marker->event);
    tt__plugin_ignore(marker->client->plugin, marker->client->plugin->api->Event_Destroy(&args));
  }
  tt__fence_release(marker->fence);
  tt_client_destroy(marker->client);
  tt_free(marker);
}

bool tt_marker_is_done(tt_marker_t *marker) {
  if (marker->event) return marker->client->ext->event_time(marker->event) != 0;
  return !marker->fence || atomic_load(&marker->fence->time) != 0;
}

tt_status_t tt_marker_await(tt_marker_t *marker) {
  if (marker->event) {
    TT_PJRT_ARGS(tt_pjrt_ref_args_t, args, .self = marker->event);
    return TT_CALL(marker->client->plugin, Event_Await, &args);
  }
  return marker->fence ? tt__fence_await(marker->fence) : TT_OK_STATUS;
}

// Work that ended before the marker was made counts from when it was made.
double tt_marker_time_ms(tt_marker_t *marker) {
  tt_status_release(tt_marker_await(marker));
  int64_t time = marker->event   ? marker->client->ext->event_time(marker->event)
                 : marker->fence ? atomic_load(&marker->fence->time)
                                 : 0;
  return (double)(time > marker->created ? time : marker->created) * 1e-6;
}
