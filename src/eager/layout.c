// Interned types of storages' values.
#include <string.h>

#include "eager/internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tt__layout_t **table;  // open addressing, a power of two of places, at most half full
static uint32_t table_size, table_count;

static bool grow_table(void) {
  uint32_t size = table_size ? table_size * 2 : 256;
  tt__layout_t **fresh = tt_alloc_zeroed(size * sizeof(tt__layout_t *));
  if (!fresh) return false;
  for (uint32_t i = 0; i < table_size; i++) {
    if (!table[i]) continue;
    uint32_t at = (uint32_t)table[i]->hash & (size - 1);
    while (fresh[at]) at = (at + 1) & (size - 1);
    fresh[at] = table[i];
  }
  tt_free(table);
  table = fresh;
  table_size = size;
  return true;
}

static const tt__layout_t *find_or_make(uint64_t hash, tt_dtype_t dtype, uint32_t rank,
                                        const int64_t *dims) {
  if (2 * table_count >= table_size && !grow_table()) return NULL;
  size_t dims_size = rank * sizeof *dims;
  uint32_t at = (uint32_t)hash & (table_size - 1);
  for (; table[at]; at = (at + 1) & (table_size - 1)) {
    tt__layout_t *l = table[at];
    if (l->hash == hash && l->dtype == dtype && l->rank == rank &&
        (rank == 0 || memcmp(l->dims, dims, dims_size) == 0)) {
      return l;
    }
  }
  tt__layout_t *l = tt_alloc(sizeof *l + dims_size);
  if (!l) return NULL;
  *l = (tt__layout_t){.hash = hash, .dtype = dtype, .rank = rank};
  if (rank) memcpy(l->dims, dims, dims_size);
  tt_type_t type = tt__layout_type(l);
  l->bytes = tt_type_bytes(&type);
  table[at] = l;
  table_count++;
  return l;
}

const tt__layout_t *tt__layout(tt_dtype_t dtype, uint32_t rank, const int64_t *dims) {
  uint64_t hash = tt_hash_word(TT_HASH_SEED, (uint64_t)rank << 8 | dtype);
  hash = tt_hash_bytes(hash, dims, rank * sizeof *dims);
  pthread_mutex_lock(&lock);
  const tt__layout_t *l = find_or_make(hash, dtype, rank, dims);
  pthread_mutex_unlock(&lock);
  return l;
}
