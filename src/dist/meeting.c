#define _GNU_SOURCE
#include "dist/meeting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"

// Between two looks at the store: short at first, since ranks mostly come together.
#define FIRST_NAP_NS 200000
#define LONGEST_NAP_NS 20000000

int64_t tt__dist_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void key_of(const tt_meeting_t *m, const char *round, uint32_t rank,
                   char out_key[TT_MEETING_KEY]) {
  snprintf(out_key, TT_MEETING_KEY, "tpu_dist/%lld/%s/%u", (long long)m->number, round, rank);
}

tt_status_t tt_meeting_begin(const tt_store_t *store, uint32_t rank, uint32_t size,
                             double timeout_s, tt_meeting_t *m) {
  *m = (tt_meeting_t){.store = store, .rank = rank, .size = size, .timeout_s = timeout_s};
  m->deadline = tt__dist_now_ns() + (int64_t)(timeout_s * 1e9);
  int64_t arrivals = 0, claims = 0;
  TT_RETURN_IF_ERROR(store->count(store->context, "tpu_dist/arrivals", &arrivals));
  m->number = arrivals > 0 ? (arrivals - 1) / size : 0;
  char key[TT_MEETING_KEY];
  key_of(m, "claim", rank, key);
  TT_RETURN_IF_ERROR(store->count(store->context, key, &claims));
  if (claims <= 1) return TT_OK_STATUS;
  return TT_ERROR(VALUE, "tpu_dist: another process is rank %u of %u already", rank, size);
}

static tt_status_t check_record(const tt_meeting_t *m, uint32_t rank, const tt_record_t *record) {
  if (record->failure[0]) {
    return TT_ERROR(UNAVAILABLE, "tpu_dist: rank %u of %u: rank %u failed: %s", m->rank, m->size,
                    rank, record->failure);
  }
  if (record->size != m->size) {
    return TT_ERROR(VALUE,
                    "tpu_dist: the ranks disagree on the world size: rank %u says %u, rank %u "
                    "says %u",
                    m->rank, m->size, rank, record->size);
  }
  return TT_OK_STATUS;
}

static tt_status_t missing(const tt_meeting_t *m, const char *round, const bool *there) {
  char text[128] = "";
  size_t at = 0;
  for (uint32_t k = 0; k < m->size && at < sizeof text - 16; k++) {
    if (!there[k]) at += (size_t)snprintf(text + at, sizeof text - at, " %u", k);
  }
  return TT_ERROR(DEADLINE,
                  "tpu_dist: rank %u of %u: no sign of rank%s within %.1f s (%s; is world_size "
                  "right on every rank?)",
                  m->rank, m->size, text, m->timeout_s, round);
}

static void nap(int64_t *time) {
  nanosleep(&(struct timespec){0, *time}, NULL);
  if ((*time *= 2) > LONGEST_NAP_NS) *time = LONGEST_NAP_NS;
}

tt_status_t tt_meeting_round(const tt_meeting_t *m, const char *round, tt_status_t status,
                             tt_record_t *mine, size_t bytes, void *all,
                             tt_status_t (*gone)(void *context, uint32_t rank), void *context) {
  mine->size = m->size;
  snprintf(mine->failure, sizeof mine->failure, "%s", tt_status_message(status));
  char key[TT_MEETING_KEY];
  key_of(m, round, m->rank, key);
  status = tt_status_join(status, m->store->publish(m->store->context, key, mine, bytes));
  bool *there = tt_alloc_zeroed(m->size);
  if (!there) status = tt_status_join(status, TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory"));
  uint32_t left = m->size;
  for (int64_t time = FIRST_NAP_NS; !status && left; left ? nap(&time) : (void)0) {
    for (uint32_t k = 0; !status && k < m->size; k++) {
      if (there[k]) continue;
      tt_record_t *record = (tt_record_t *)(void *)((char *)all + k * bytes);
      key_of(m, round, k, key);
      // Looked at before the store: what a rank published before it went still counts.
      tt_status_t lost = gone ? gone(context, k) : TT_OK_STATUS;
      status = m->store->look(m->store->context, key, record, bytes, &there[k]);
      if (!status && there[k]) status = check_record(m, k, record);
      if (there[k]) left--;
      if (there[k]) tt_status_release(lost);
      if (!there[k]) status = tt_status_join(status, lost);
    }
    if (!status && left && tt__dist_now_ns() > m->deadline) status = missing(m, round, there);
  }
  tt_free(there);
  return status;
}

// --- the host -----------------------------------------------------------------------------------

static uint64_t mix_link(uint64_t hash, const char *path) {
  char target[64] = "";
  ssize_t size = readlink(path, target, sizeof target);
  return tt_hash_bytes(hash, target, size > 0 ? (size_t)size : 0);
}

void tt_host_id(char out_id[TT_HOST_ID]) {
  memset(out_id, 0, TT_HOST_ID);
  const char *forced = getenv("TORCHTPU_HOST_ID");
  if (forced && *forced) {
    snprintf(out_id, TT_HOST_ID, "%s", forced);
    return;
  }
  char boot[40] = "";
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  size_t got = file ? fread(boot, 1, 36, file) : 0;
  if (file) fclose(file);
  uint64_t spaces = mix_link(0, "/proc/self/ns/net");
  spaces = mix_link(mix_link(spaces, "/proc/self/ns/pid"), "/proc/self/ns/user");
  snprintf(out_id, TT_HOST_ID, "%.*s/%016llx", (int)got, boot, (unsigned long long)spaces);
}
