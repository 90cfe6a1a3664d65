// A hash table of pointers to what its users own. Each entry begins with its uint64_t hash, which
// never changes. Thread-compatible.
#ifndef TT_BASE_TABLE_H_
#define TT_BASE_TABLE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// All zero is an empty table; who owns it frees `places` (tt_free), and the entries before that.
typedef struct tt_table_s {
  void **places;  // open addressing: a power of two of places, at most half full
  uint32_t size, count;
} tt_table_t;

// Makes room for one entry more; false where there is no memory.
bool tt_table_reserve(tt_table_t *table) TT_MUST_USE;

// Makes room by the second chance algorithm: calls `drop` for one entry after another, for each at
// most twice, until *excess is 0. An entry that was used since the last look forgets that and stays
// (false); `drop` frees any other, lowers *excess by what that gave back, never below 0, and says
// true. Nothing happens where there is no memory.
typedef bool (*tt_table_drop_fn_t)(void *entry, uint64_t *excess);
void tt_table_evict(tt_table_t *table, uint64_t excess, tt_table_drop_fn_t drop);

// The place of the entry with this hash for which `same` holds, or the empty one where it would
// go. The table has room (tt_table_reserve) or the result is NULL.
static inline void **tt_table_place(const tt_table_t *table, uint64_t hash,
                                    bool (*same)(const void *entry, const void *key),
                                    const void *key) {
  if (!table->size) return NULL;
  uint32_t at = (uint32_t)hash & (table->size - 1);
  for (; table->places[at]; at = (at + 1) & (table->size - 1)) {
    if (*(const uint64_t *)table->places[at] == hash && same(table->places[at], key)) break;
  }
  return &table->places[at];
}

#endif
