// Host memory for everything that is not device memory. The only file that may call malloc.
#ifndef TT_BASE_ALLOC_H_
#define TT_BASE_ALLOC_H_

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Uninitialised bytes, NULL when memory (or the fault injector) says no. Thread-safe.
void *tt_alloc(size_t size) TT_MUST_USE;
void *tt_alloc_zeroed(size_t size) TT_MUST_USE;
void *tt_realloc(void *ptr, size_t size) TT_MUST_USE;
void *tt_alloc_aligned(size_t alignment, size_t size) TT_MUST_USE;  // power of two, >= 16
void tt_free(void *ptr);  // NULL-safe; frees what any of the above returned
char *tt_strdup(const char *text) TT_MUST_USE;

// Fault injection for tests: the nth allocation from now fails (0: never). Live counts every
// allocation not yet freed, for leak checks.
void tt_alloc_fail_at(int64_t nth);
int64_t tt_alloc_live(void);

// Size arithmetic: false on overflow, `out` untouched then.
static inline bool tt_size_mul(size_t a, size_t b, size_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}
static inline bool tt_size_add(size_t a, size_t b, size_t *out) {
  return !__builtin_add_overflow(a, b, out);
}
static inline size_t tt_align_up(size_t value, size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

// Grows *ptr (capacity *capacity elements) to hold at least `count` elements; false without memory.
bool tt_grow(void **ptr, uint32_t *capacity, uint32_t count, size_t element_size) TT_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif  // TT_BASE_ALLOC_H_
