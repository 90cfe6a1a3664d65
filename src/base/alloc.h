// Host memory for everything that is not device memory. The only file that may call malloc.
#ifndef TT_BASE_ALLOC_H_
#define TT_BASE_ALLOC_H_

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// All of these are thread-safe and answer NULL when memory (or the fault injector) says no. Size 0
// gives a unique pointer that may be freed and not read. Bytes are uninitialised but for
// tt_alloc_zeroed; tt_realloc keeps the old block valid where it fails.
void *tt_alloc(size_t size) TT_MUST_USE;
void *tt_alloc_zeroed(size_t size) TT_MUST_USE;
void *tt_realloc(void *ptr, size_t size) TT_MUST_USE;
void *tt_alloc_aligned(size_t alignment, size_t size) TT_MUST_USE;  // power of two, >= 16
void tt_free(void *ptr);  // NULL-safe; frees what any of the above returned
char *tt_strdup(const char *text) TT_MUST_USE;

// Fault injection for tests: the nth allocation from now fails (0: never). Live counts every
// allocation not yet freed, for leak checks.
// The injector is process-wide: only for a test that runs one thing at a time.
void tt_alloc_fail_at(int64_t nth);
int64_t tt_alloc_live(void);

// Size arithmetic: false on overflow. Every size that a user, a file or a shape has a say in goes
// through these before it reaches an allocation. tt_align_up wants a power of two and a value that
// is not within `alignment` of SIZE_MAX.
static inline bool tt_size_mul(size_t a, size_t b, size_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}
static inline bool tt_size_add(size_t a, size_t b, size_t *out) {
  return !__builtin_add_overflow(a, b, out);
}
static inline size_t tt_align_up(size_t value, size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

// Grows *ptr (room for *capacity elements; NULL and 0 at first) to hold at least `count` elements.
// False without memory: then nothing has changed. The new elements are uninitialised and old
// pointers into the array are invalid.
bool tt_grow(void **ptr, uint32_t *capacity, uint32_t count, size_t element_size) TT_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif  // TT_BASE_ALLOC_H_
