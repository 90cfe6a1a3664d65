#include "eager/internal.h"

// Dead storages by size class of the range that they keep; the last list has no range.
static tt_storage_t *free_lists[256];

tt_status_t tt__storage_make(int device, size_t bytes, tt_storage_t **out_storage) {
  uint8_t c = bytes ? tt__address_class(bytes) : TT__NO_RANGE;
  tt_storage_t *s = free_lists[c];
  *out_storage = NULL;
  if (s) {
    free_lists[c] = s->next_free;
  } else {
    s = tt_alloc_zeroed(sizeof *s);
    if (!s) return tt__no_host_memory();
    s->size_class = TT__NO_RANGE;
    tt_status_t status = bytes ? tt__address_reserve(s, bytes) : TT_OK_STATUS;
    if (status) {
      tt_free(s);
      return status;
    }
  }
  atomic_store_explicit(&s->refs, 1, memory_order_relaxed);
  s->device = (int8_t)device;
  s->bytes = bytes;
  s->version = NULL;
  *out_storage = s;
  return TT_OK_STATUS;
}

tt_status_t tt_storage_create(int device, size_t bytes, tt_storage_t **out_storage) {
  *out_storage = NULL;
  TT_RETURN_IF_ERROR(tt__ready(device));
  tt__lock();
  tt_status_t s = tt__storage_make(device, bytes, out_storage);
  tt__unlock();
  return s;
}

void tt_storage_retain(tt_storage_t *storage) {
  atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
}

void tt_storage_release(tt_storage_t *storage) {
  if (!storage) return;
  if (atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) != 1) return;
  // A forked child may have inherited a lock that nobody will ever open.
  if (atomic_load_explicit(&tt__engine.forked, memory_order_relaxed)) return;
  tt__lock();
  tt__storage_discard(storage);
  tt__unlock();
}

void tt__storage_discard(tt_storage_t *storage) {
  tt__storage_set(storage, NULL);
  storage->next_free = free_lists[storage->size_class];
  free_lists[storage->size_class] = storage;
}

void *tt_storage_address(const tt_storage_t *storage) {
  return storage->bytes ? storage->address : NULL;
}
size_t tt_storage_bytes(const tt_storage_t *storage) { return storage->bytes; }
int tt_storage_device(const tt_storage_t *storage) { return storage->device; }

// A range that is too small is left to a placeholder storage, which waits for a new owner.
static tt_status_t move_range(tt_storage_t *s, size_t bytes) {
  if (s->size_class == TT__NO_RANGE) return tt__address_reserve(s, bytes);
  tt_storage_t *other = NULL;
  TT_RETURN_IF_ERROR(tt__storage_make(s->device, bytes, &other));
  char *address = s->address;
  uint8_t size_class = s->size_class;
  s->address = other->address;
  s->size_class = other->size_class;
  other->address = address;
  other->size_class = size_class;
  tt__address_swap(s, other);
  atomic_store(&other->refs, 0);
  other->next_free = free_lists[size_class];
  free_lists[size_class] = other;
  return TT_OK_STATUS;
}

tt_status_t tt_storage_resize(tt_storage_t *storage, size_t bytes) {
  TT_RETURN_IF_ERROR(tt__ready(storage->device));
  tt__lock();
  tt_status_t s = TT_OK_STATUS;
  if (bytes &&
      (storage->size_class == TT__NO_RANGE || bytes > tt__address_capacity(storage->size_class))) {
    s = move_range(storage, bytes);
  }
  if (!s) {
    storage->bytes = bytes;
    if (bytes == 0) tt__storage_set(storage, NULL);
  }
  tt__unlock();
  return s;
}

tt_storage_t *tt_storage_find(const void *address) {
  tt__lock();
  tt_storage_t *s = tt__address_owner(address);
  bool alive =
      s && atomic_load(&s->refs) > 0 && (size_t)((const char *)address - s->address) < s->bytes;
  tt__unlock();
  return alive ? s : NULL;
}
