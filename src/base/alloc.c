// The process's one door to malloc. It counts live blocks for the leak checks and can be told to
// fail at a chosen allocation: a test that runs a task once for every n proves that each failure
// path frees what it holds and says OUT_OF_MEMORY.
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic int64_t live_count;
static _Atomic int64_t fail_countdown;  // 0: off

// True when the fault injector wants this allocation to fail. The relaxed load keeps the cost of an
// injector that is off to one predictable branch; only a test, on one thread, turns it on.
static bool injected(void) {
  if (__builtin_expect(atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0, 1)) {
    return false;
  }
  return atomic_fetch_sub(&fail_countdown, 1) == 1;
}

// Relaxed: the count is read when the threads that change it have been joined.
static void *counted(void *ptr) {
  if (ptr) atomic_fetch_add_explicit(&live_count, 1, memory_order_relaxed);
  return ptr;
}

void *tt_alloc(size_t size) { return injected() ? NULL : counted(malloc(size ? size : 1)); }

void *tt_alloc_zeroed(size_t size) {
  return injected() ? NULL : counted(calloc(1, size ? size : 1));
}

// The live count stays: a block that moves is one block before and after.
void *tt_realloc(void *ptr, size_t size) {
  if (!ptr) return tt_alloc(size);
  return injected() ? NULL : realloc(ptr, size ? size : 1);
}

// C17's aligned_alloc wants a size that is a multiple of the alignment.
void *tt_alloc_aligned(size_t alignment, size_t size) {
  size_t padded;
  if (injected() || !tt_size_add(size ? size : 1, alignment - 1, &padded)) return NULL;
  return counted(aligned_alloc(alignment, padded & ~(alignment - 1)));
}

void tt_free(void *ptr) {
  if (!ptr) return;
  atomic_fetch_sub_explicit(&live_count, 1, memory_order_relaxed);
  free(ptr);
}

char *tt_strdup(const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = tt_alloc(size);
  if (copy) memcpy(copy, text, size);
  return copy;
}

void tt_alloc_fail_at(int64_t nth) { atomic_store(&fail_countdown, nth); }

int64_t tt_alloc_live(void) { return atomic_load(&live_count); }

// Doubling from 8 on, so that n appends cost O(n) and small lists one allocation; near UINT32_MAX
// the capacity stops there instead of wrapping.
bool tt_grow(void **ptr, uint32_t *capacity, uint32_t count, size_t element_size) {
  if (count <= *capacity) return true;
  uint32_t wanted = *capacity < 8 ? 8 : *capacity > UINT32_MAX / 2 ? UINT32_MAX : *capacity * 2;
  if (wanted < count) wanted = count;
  size_t bytes;
  if (!tt_size_mul(wanted, element_size, &bytes)) return false;
  void *grown = tt_realloc(*ptr, bytes);
  if (!grown) return false;
  *ptr = grown;
  *capacity = wanted;
  return true;
}
