// Linear probing: an entry lies at its hash's place or in the run of occupied places after it, so
// taking one out means building the places anew.
#include "base/table.h"

#include "base/alloc.h"

// Room for 128 entries before the first doubling.
#define FIRST_SIZE 256u

// Moves the entries to `size` places, but for those that `drop` takes before *excess is 0.
static bool rebuild(tt_table_t *table, uint32_t size, tt_table_drop_fn_t drop, uint64_t *excess) {
  void **fresh = tt_alloc_zeroed(size * sizeof *fresh);
  if (!fresh) return false;
  for (uint32_t i = 0; i < table->size; i++) {
    if (!table->places[i]) continue;
    if (*excess && drop(table->places[i], excess)) {
      table->count--;
      continue;
    }
    uint32_t at = (uint32_t) * (const uint64_t *)table->places[i] & (size - 1);
    while (fresh[at]) at = (at + 1) & (size - 1);
    fresh[at] = table->places[i];
  }
  tt_free(table->places);
  table->places = fresh;
  table->size = size;
  return true;
}

// Doubles at half full: runs of occupied places stay short, so a miss costs two or three looks.
bool tt_table_reserve(tt_table_t *table) {
  if (2 * table->count < table->size) return true;
  uint64_t none = 0;
  return rebuild(table, table->size ? table->size * 2 : FIRST_SIZE, NULL, &none);
}

void tt_table_evict(tt_table_t *table, uint64_t excess, tt_table_drop_fn_t drop) {
  for (int look = 0; look < 2 && excess && table->count; look++) {
    if (!rebuild(table, table->size, drop, &excess)) return;
  }
}
