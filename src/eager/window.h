// A window's inside, shared by window.c (record, flush), fuse.c (programs) and period.c.
#ifndef TT_EAGER_WINDOW_H_
#define TT_EAGER_WINDOW_H_

#include "eager/internal.h"

// Finds where a trace without natural flushes repeats, so that it is cut at the same place each
// time.
enum { TT__HISTORY = 16384 };
typedef struct tt__period_s {
  uint32_t history[TT__HISTORY];  // instance numbers, a ring
  uint64_t count;                 // ops ever
  uint32_t length;                // of the period; 0: none known
  uint32_t span;                  // flush after so many ops: a multiple of the length
  uint32_t phase;                 // ops since the last flush that kept to the period
} tt__period_t;
void tt__period_look(tt__period_t *p);
// One more op; true when the window is to be flushed after it.
bool tt__period_step(tt__period_t *p, uint32_t id);
static inline void tt__period_flushed(tt__period_t *p) { p->phase = 0; }

// A captured call that draws: which scalars are its seed and offset (UINT32_MAX: none).
typedef struct tt__draw_s {
  uint64_t count;
  uint32_t seed, offset;
} tt__draw_t;

// A captured scalar that is a host input's value.
typedef struct tt__link_s {
  uint32_t scalar, input;
} tt__link_t;

#define TT__EXTERNAL 0x80000000u

// The trace: for each op its instance's number and then, for each of the instance's slot inputs, a
// reference: the number of a value made in this window, or TT__EXTERNAL | number of an external
// input. At a flush two bit sets follow: the live values, the inputs that nobody else holds.
struct tt__window_s {
  int device;
  tt_capture_t *capture;  // NULL: a stream's window
  uint32_t replicas;      // that the captured program's collectives join; 0: none
  uint64_t epoch;         // no two windows, nor the same after a flush, have the same
  uint64_t hash;          // of the trace
  uint32_t *trace;
  uint32_t trace_count, trace_capacity;
  uint32_t live, own,
      key_count;  // at a flush: where the bit sets stand, and the whole key's length
  tt__instance_t **ops;
  uint32_t op_count, op_capacity;
  tt__version_t **pending;  // by number, borrowed; NULL: nobody holds it any more
  uint32_t pending_count, pending_capacity;
  tt__version_t **externals;  // retained
  uint32_t external_count, external_capacity;
  tt_input_t *scalars;  // run-time scalars of all ops, in order
  uint32_t scalar_count, scalar_capacity;
  // Only while capturing: the layouts of the values by number, the draws of random numbers, and the
  // scalars that are inputs.
  const tt__layout_t **layouts;
  uint32_t layout_capacity;
  tt__draw_t *draws;
  uint32_t draw_count, draw_capacity;
  const char **places;  // of the ops: Python lines, in the capture's arena; NULL: unknown
  uint32_t place_capacity;
  tt__link_t *links;
  uint32_t link_count, link_capacity;
  uint32_t check_count;
  size_t bytes, most_bytes;  // of values made since the last flush
  tt__period_t *period;      // of a stream's window; NULL: captured
};
// Makes room for the bit sets behind the trace, all zero. False without memory.
bool tt__window_key(tt__window_t *w) TT_MUST_USE;

// A window's program: outputs are the live values in order, then the check number.
struct tt__fused_s {
  uint64_t hash;
  uint32_t *key;
  uint32_t key_count, output_count, check_count;
  tt__check_t *checks;
  const char *name;
  tt_executable_t *executable;
  tt_arena_t arena;
  atomic_uint refs;
  uint32_t op_count;
  bool used;  // since the cache was last looked through
};
// From the cache, or made; retained for the caller. Under the lock.
tt_status_t tt__fused_program(tt__window_t *w, uint64_t hash,
                              tt__fused_t **out_program) TT_MUST_USE;
// The cache holds programs of so many ops together (2 to 4 KB of host memory each); what was not
// used for the longest goes first.
void tt__fused_limit(uint64_t op_count);

// The window, its key complete, as StableHLO text. The caller frees it with tt_free.
tt_status_t tt__window_print(tt__window_t *w, char **out_text, size_t *out_size) TT_MUST_USE;

static inline bool tt__bit(const uint32_t *bits, uint32_t i) { return bits[i / 32] >> i % 32 & 1; }

#endif  // TT_EAGER_WINDOW_H_
