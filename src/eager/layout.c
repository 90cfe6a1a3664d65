// Interned types of storages' values.
#include <string.h>

#include "eager/internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tt_table_t table;  // of tt__layout_t

static bool matches(const void *entry, const void *key) {
  const tt__layout_t *l = entry;
  const tt_type_t *type = key;
  return l->dtype == type->dtype && l->rank == type->rank &&
         (l->rank == 0 || memcmp(l->dims, type->dims, l->rank * sizeof *l->dims) == 0);
}

static const tt__layout_t *find_or_make(uint64_t hash, const tt_type_t *type) {
  if (!tt_table_reserve(&table)) return NULL;
  void **place = tt_table_place(&table, hash, matches, type);
  if (*place) return *place;
  const size_t dims_size = type->rank * sizeof *type->dims;
  tt__layout_t *l = tt_alloc(sizeof *l + dims_size);
  if (!l) return NULL;
  *l = (tt__layout_t){
      .hash = hash, .bytes = tt_type_bytes(type), .dtype = type->dtype, .rank = type->rank};
  if (dims_size) memcpy(l->dims, type->dims, dims_size);
  *place = l;
  table.count++;
  return l;
}

const tt__layout_t *tt__layout(tt_dtype_t dtype, uint32_t rank, const int64_t *dims) {
  uint64_t hash = tt_hash_word(TT_HASH_SEED, (uint64_t)rank << 8 | dtype);
  hash = tt_hash_bytes(hash, dims, rank * sizeof *dims);
  pthread_mutex_lock(&lock);
  const tt_type_t type = {dtype, rank, (int64_t *)dims};
  const tt__layout_t *l = find_or_make(hash, &type);
  pthread_mutex_unlock(&lock);
  return l;
}
