#include "eager/window.h"

enum { LEAST_MATCH = 1024, SPAN = 512 };

static uint32_t back(const tt__period_t *p, uint64_t distance) {
  return p->history[(p->count - distance) % TT__HISTORY];
}

// How many of the latest ops repeat what was `length` before them, up to `wanted`.
static uint64_t matching(const tt__period_t *p, uint32_t length, uint64_t wanted) {
  uint64_t n = 0;
  while (n < wanted && back(p, n + 1) == back(p, n + 1 + length)) n++;
  return n;
}

// The shortest period that holds long enough not to be a loop inside one step.
void tt__period_look(tt__period_t *p) {
  uint64_t known = p->count < TT__HISTORY ? p->count : TT__HISTORY;
  if (p->length) return;
  for (uint32_t length = 1; 2 * (uint64_t)length <= known; length++) {
    uint64_t wanted = known - length;
    uint64_t least = length > LEAST_MATCH ? length : LEAST_MATCH;
    if (wanted < least) return;
    if (matching(p, length, least) < least) continue;
    p->length = length;
    p->span = length < SPAN ? SPAN / length * length : length;
    return;
  }
}

bool tt__period_step(tt__period_t *p, uint32_t id) {
  if (p->length && back(p, p->length) != id) p->length = 0;
  p->history[p->count++ % TT__HISTORY] = id;
  return p->length && ++p->phase >= p->span;
}
