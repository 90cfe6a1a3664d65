// The process's one engine: its client, its lock, what it was told.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "eager/internal.h"
#include "pjrt/visible.h"

tt__engine_t tt__engine = {.lock = PTHREAD_MUTEX_INITIALIZER};

void tt_eager_install(const tt_eager_hooks_t *hooks) { tt__engine.hooks = *hooks; }

tt_status_t tt__no_host_memory(void) { return TT_ERROR(OUT_OF_MEMORY, "out of host memory"); }

int64_t tt__now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void in_child(void) {
  if (atomic_load(&tt__engine.started)) atomic_store(&tt__engine.forked, true);
}

// TORCHTPU_EAGER_MODE is the mode until one is set. Start complains about a name it does not know.
static const char *unknown_mode;

static void read_mode(void) {
  static const char *const names[] = {"strict", "debug", "defer_and_fuse"};
  const char *text = getenv("TORCHTPU_EAGER_MODE");
  if (!text || !*text) return;
  for (int i = 0; i < 3; i++) {
    if (strcmp(text, names[i]) != 0) continue;
    atomic_store(&tt__engine.mode, i);
    return;
  }
  unknown_mode = text;
}

static void read_environment(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_mode);
}

static tt_status_t check_device_count(void) {
  const char *text = getenv("TORCHTPU_NUM_DEVICES");
  char *end = NULL;
  long count = text ? strtol(text, &end, 10) : 1;
  bool fits = !text || !*text || (!*end && count >= 1 && count <= TT__MAX_DEVICES);
  return fits ? TT_OK_STATUS
              : TT_ERROR(VALUE, "TORCHTPU_NUM_DEVICES is \"%s\", not a number from 1 to %d", text,
                         TT__MAX_DEVICES);
}

static tt_status_t check_environment(void) {
  read_environment();
  if (unknown_mode) {
    return TT_ERROR(VALUE,
                    "TORCHTPU_EAGER_MODE is \"%s\"; strict, debug or defer_and_fuse is meant",
                    unknown_mode);
  }
  // The bridge reads this one at the first fallback; a typing error should not wait for that.
  const char *policy = getenv("TORCHTPU_FALLBACK");
  if (policy && *policy && strcmp(policy, "warn") != 0 && strcmp(policy, "error") != 0 &&
      strcmp(policy, "silent") != 0) {
    return TT_ERROR(VALUE, "TORCHTPU_FALLBACK is \"%s\"; warn, error or silent is meant", policy);
  }
  return check_device_count();
}

static tt_status_t start_locked(void) {
  if (tt__engine.client) return TT_OK_STATUS;
  TT_RETURN_IF_ERROR(check_environment());
  TT_RETURN_IF_ERROR(tt_client_create(tt__plugin(), &tt__engine.client));
  uint32_t count = tt_client_device_count(tt__engine.client);
  tt__engine.device_count = count < TT__MAX_DEVICES ? (int)count : TT__MAX_DEVICES;
  pthread_atfork(NULL, NULL, in_child);
  atomic_store(&tt__engine.started, true);
  return TT_OK_STATUS;
}

tt_status_t tt_eager_start(void) {
  if (atomic_load_explicit(&tt__engine.forked, memory_order_relaxed)) {
    return TT_ERROR(UNAVAILABLE,
                    "Cannot re-initialize tpu in forked subprocess. To use tpu with "
                    "multiprocessing, you must use the 'spawn' start method");
  }
  if (atomic_load_explicit(&tt__engine.started, memory_order_acquire)) return TT_OK_STATUS;
  tt__lock();
  tt_status_t s = start_locked();
  tt__unlock();
  return s;
}

tt_status_t tt__ready(int device) {
  TT_RETURN_IF_ERROR(tt_eager_start());
  if (device < 0 || device >= tt__engine.device_count) {
    return TT_ERROR(INVALID_ARGUMENT, "tpu error: invalid device ordinal %d, there are %d devices",
                    device, tt__engine.device_count);
  }
  return TT_OK_STATUS;
}

bool tt_eager_is_started(void) { return atomic_load(&tt__engine.started); }

// What the software TPU will have, without starting it: a CPU program that seeds its generators or
// runs a backward pass asks for the count too.
static tt_status_t soft_device_count(int *out_count) {
  const char *text = getenv("TORCHTPU_NUM_DEVICES");
  long count = text ? strtol(text, NULL, 10) : 1;
  uint32_t available = count < 1 ? 1 : count > TT__MAX_DEVICES ? TT__MAX_DEVICES : (uint32_t)count;
  uint32_t ordinals[TT__MAX_DEVICES], visible = 0;
  TT_RETURN_IF_ERROR(tt_visible_devices(available, ordinals, &visible));
  *out_count = (int)visible;
  return TT_OK_STATUS;
}

tt_status_t tt_eager_device_count(int *out_count) {
  *out_count = 0;
  if (!tt_eager_is_started() && strcmp(tt__plugin(), "soft") == 0) {
    return soft_device_count(out_count);
  }
  TT_RETURN_IF_ERROR(tt_eager_start());
  *out_count = tt__engine.device_count;
  return TT_OK_STATUS;
}

tt_client_t *tt_eager_client(void) { return tt__engine.client; }

tt_status_t tt_eager_flush(int device) {
  TT_RETURN_IF_ERROR(tt__ready(device));
  tt__lock();
  tt_status_t s = tt__flush_device(device);
  tt__unlock();
  return s;
}

tt_status_t tt_eager_synchronize(int device) {
  TT_RETURN_IF_ERROR(tt__ready(device));
  tt_status_t flushed = tt_eager_flush(device);
  tt_status_t done = tt_client_synchronize(tt__engine.client, (uint32_t)device);
  // A check that failed explains what went wrong after it; a wait that failed explains nothing.
  return tt_status_join(tt_status_join(tt__check_all(device), flushed), done);
}

tt_eager_mode_t tt_eager_mode(void) {
  read_environment();
  return (tt_eager_mode_t)atomic_load(&tt__engine.mode);
}

tt_status_t tt_eager_set_mode(tt_eager_mode_t mode) {
  tt_status_t s = TT_OK_STATUS;
  if ((unsigned)mode > TT_MODE_DEFER_AND_FUSE) {
    return TT_ERROR(VALUE, "there is no eager mode %d", (int)mode);
  }
  read_environment();
  tt__lock();
  for (int d = 0; d < tt__engine.device_count; d++) s = tt_status_join(s, tt__flush_device(d));
  atomic_store(&tt__engine.mode, (int)mode);
  tt__unlock();
  return s;
}

void tt_eager_set_check_finite(bool on) { atomic_store(&tt__engine.check_finite, on); }

void tt_eager_stats(tt_eager_stats_t *out_stats) {
  tt__lock();
  *out_stats = tt__engine.stats;
  tt__unlock();
}
