// How the ranks of a group find each other: through the store that the launcher gave all of them.
//
// A meeting is a series of rounds; in each every rank publishes one record and waits for
// everyone's. A rank that failed says so in its record, so that the others fail at once with its
// words.
#ifndef TT_DIST_MEETING_H_
#define TT_DIST_MEETING_H_

#include <stddef.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TT_MEETING_KEY 96  // bytes that a key takes at most

// The store. Every function may be called from any thread; failures are those of the store itself.
typedef struct tt_store_s {
  void *context;
  tt_status_t (*publish)(void *context, const char *key, const void *data, size_t size);
  // Reads `size` bytes of the key where it is there. Does not wait.
  tt_status_t (*look)(void *context, const char *key, void *data, size_t size, bool *out_there);
  tt_status_t (*count)(void *context, const char *key, int64_t *out_count);  // adds 1 to the key
} tt_store_t;

typedef struct tt_meeting_s {
  const tt_store_t *store;  // borrowed
  uint32_t rank, size;
  double timeout_s;
  int64_t deadline;  // of the whole meeting, monotonic nanoseconds
  int64_t number;    // of this group among those that met through the same keys
} tt_meeting_t;

// What every record starts with.
typedef struct tt_record_s {
  uint32_t size;  // of the group, as its writer has it
  char failure[188];
} tt_record_t;

// Registers this rank. Fails where another process did so with the same number.
tt_status_t tt_meeting_begin(const tt_store_t *store, uint32_t rank, uint32_t size,
                             double timeout_s, tt_meeting_t *out_meeting) TT_MUST_USE;

// One round, named `round`: publishes `mine` and reads everyone's record into `all`, in rank order.
// `status` (consumed) is how this rank fares: a failure is published and returned at once.
// `gone` (may be NULL) tells why a rank cannot come any more.
tt_status_t tt_meeting_round(const tt_meeting_t *meeting, const char *round, tt_status_t status,
                             tt_record_t *mine, size_t bytes, void *all,
                             tt_status_t (*gone)(void *context, uint32_t rank),
                             void *context) TT_MUST_USE;

// Ranks with the same id reach each other's memory and processes: the machine and its namespaces of
// network, processes and users are the same. TORCHTPU_HOST_ID overrides it.
#define TT_HOST_ID 64
void tt_host_id(char out_id[TT_HOST_ID]);

int64_t tt__dist_now_ns(void);

#ifdef __cplusplus
}
#endif
#endif  // TT_DIST_MEETING_H_
