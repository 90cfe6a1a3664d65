// A list of blocks and a cursor into the newest. Nothing is freed alone, so an allocation is an
// addition and a comparison, and a graph of a thousand nodes goes away in a handful of frees.
#include "base/arena.h"

#include <string.h>

#include "base/alloc.h"

typedef struct tt_arena_block_s {
  struct tt_arena_block_s *next;
  size_t size;  // of the memory behind the header
} tt_arena_block_t;

// Blocks stop growing here: beyond it a larger block saves no time and wastes its unused end.
enum { LARGEST_BLOCK = 256 * 1024 };

// Memory starts behind the header at a multiple of 16, which is what callers are promised.
#define HEADER_SIZE tt_align_up(sizeof(tt_arena_block_t), 16)

void tt_arena_init(tt_arena_t *arena, size_t block_size) {
  memset(arena, 0, sizeof *arena);
  arena->block_size = tt_align_up(block_size < 256 ? 256 : block_size, 16);
}

static void free_blocks(tt_arena_block_t *block) {
  while (block) {
    tt_arena_block_t *next = block->next;
    tt_free(block);
    block = next;
  }
}

void tt_arena_deinit(tt_arena_t *arena) {
  free_blocks(arena->head);
  tt_arena_init(arena, arena->block_size);
}

// The newest block is kept because it is the largest: the next round of the same work fits in it.
void tt_arena_reset(tt_arena_t *arena) {
  arena->used = 0;
  tt_arena_block_t *kept = arena->head;
  if (!kept) return;
  free_blocks(kept->next);
  kept->next = NULL;
  arena->cursor = (char *)kept + HEADER_SIZE;
  arena->limit = arena->cursor + kept->size;
}

// A request of more than a quarter block gets a block of its own when the rest of the current one
// is still worth keeping.
static void *alloc_slow(tt_arena_t *arena, size_t size) {
  bool own = arena->head && size > arena->block_size / 4;
  size_t space = size > arena->block_size || own ? size : arena->block_size;
  size_t total;
  if (!tt_size_add(space, HEADER_SIZE, &total)) return NULL;
  tt_arena_block_t *block = tt_alloc(total);
  if (!block) return NULL;
  block->size = space;
  char *memory = (char *)block + HEADER_SIZE;
  arena->used += size;
  if (own) {
    block->next = arena->head->next;
    arena->head->next = block;
    return memory;
  }
  // Later blocks are larger: big programs should not pay for many small allocations.
  if (arena->head && arena->block_size < LARGEST_BLOCK) arena->block_size *= 2;
  block->next = arena->head;
  arena->head = block;
  arena->cursor = memory + size;
  arena->limit = memory + space;
  return memory;
}

// The first check keeps tt_align_up from wrapping; an arena without a block has cursor == limit and
// takes the slow way.
void *tt_arena_alloc(tt_arena_t *arena, size_t size) {
  if (size > SIZE_MAX / 2) return NULL;
  size = size ? tt_align_up(size, 16) : 16;
  if (__builtin_expect(size > (size_t)(arena->limit - arena->cursor), 0)) {
    return alloc_slow(arena, size);
  }
  void *ptr = arena->cursor;
  arena->cursor += size;
  arena->used += size;
  return ptr;
}

void *tt_arena_zeroed(tt_arena_t *arena, size_t size) {
  void *ptr = tt_arena_alloc(arena, size);
  return ptr ? memset(ptr, 0, size) : NULL;
}

void *tt_arena_copy(tt_arena_t *arena, const void *data, size_t size) {
  void *ptr = tt_arena_alloc(arena, size);
  if (ptr && size) memcpy(ptr, data, size);
  return ptr;
}

char *tt_arena_string(tt_arena_t *arena, const char *text, size_t length) {
  char *copy = tt_arena_alloc(arena, length + 1);
  if (!copy) return NULL;
  if (length) memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}
