// Bump allocation for things that die together (one graph, one plan, one window).
#ifndef TT_BASE_ARENA_H_
#define TT_BASE_ARENA_H_

#include <stddef.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Thread-compatible. [cursor, limit) is what is left of the newest block; blocks of a single large
// request sit behind it in the list.
typedef struct tt_arena_s {
  struct tt_arena_block_s *head;  // newest block first
  char *cursor, *limit;
  size_t block_size;
  size_t used;  // bytes handed out since init or reset
} tt_arena_t;

// init allocates nothing and cannot fail; block_size is the first block's. deinit frees everything
// and leaves the arena ready for use again.
void tt_arena_init(tt_arena_t *arena, size_t block_size);
void tt_arena_deinit(tt_arena_t *arena);
void tt_arena_reset(tt_arena_t *arena);  // keeps one block for reuse

// 16-byte aligned, uninitialised, valid until deinit or reset; NULL without memory. Size 0 gives a
// unique non-NULL pointer, so that NULL always means failure. tt_arena_string adds the final zero.
void *tt_arena_alloc(tt_arena_t *arena, size_t size) TT_MUST_USE;
void *tt_arena_zeroed(tt_arena_t *arena, size_t size) TT_MUST_USE;
void *tt_arena_copy(tt_arena_t *arena, const void *data, size_t size) TT_MUST_USE;
char *tt_arena_string(tt_arena_t *arena, const char *text, size_t length) TT_MUST_USE;

// Unchecked product: for counts that the program made itself or that were bounded before.
#define TT_ARENA_ARRAY(arena, type, count) \
  ((type *)tt_arena_alloc((arena), sizeof(type) * (size_t)(count)))

#ifdef __cplusplus
}
#endif
#endif  // TT_BASE_ARENA_H_
