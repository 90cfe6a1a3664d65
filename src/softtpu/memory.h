// The memory of one software TPU: a caching allocator with a size limit and exact accounting.
// Blocks are recycled in queue order: memory that is freed while earlier work still uses it may
// serve work that is enqueued later.
#ifndef TT_SOFTTPU_MEMORY_H_
#define TT_SOFTTPU_MEMORY_H_

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// A cache line: kernels use aligned vectors, and no two arrays share a line. 160 size classes, four
// an octave, reach to 56 TiB.
#define TT_MEMORY_ALIGNMENT 64
#define TT_MEMORY_CLASSES 160

// A free block and the last piece of queued work that may still touch it.
typedef struct tt_memory_block_s {
  void *data;
  uint64_t sequence;
} tt_memory_block_t;

// A stack, newest last.
typedef struct tt_memory_list_s {
  tt_memory_block_t *blocks;
  uint32_t count, capacity;
} tt_memory_list_t;

// Thread-compatible: the device's lock guards it. in_use counts what was asked for, rounded up to
// the alignment, so that the limit does not depend on how classes round.
typedef struct tt_memory_s {
  uint32_t device;                    // named in errors
  const _Atomic uint64_t *completed;  // borrowed: the number of the last work that is done
  int64_t limit;
  int64_t in_use, peak;      // of live allocations, each rounded up to the alignment
  int64_t reserved, cached;  // taken from the system; the part of it that lies free
  int64_t high_water;        // largest in_use ever, decides how much is kept
  int64_t allocations, frees, live, largest;
  tt_memory_list_t free_lists[TT_MEMORY_CLASSES];
} tt_memory_t;

// `completed` is looked at whenever a block is to be recycled and must outlive the memory.
void tt_memory_init(tt_memory_t *memory, uint32_t device, int64_t limit,
                    const _Atomic uint64_t *completed);
void tt_memory_deinit(tt_memory_t *memory);  // frees what is cached

// 64-byte aligned, uninitialised: for use by work enqueued from now on or, where `idle`, by anybody
// at once. Size 0 gives a pointer that may not be dereferenced. Fails with OUT_OF_MEMORY, naming
// what was asked for, what is in use and the limit; nothing has changed then.
tt_status_t tt_memory_allocate(tt_memory_t *memory, size_t size, bool idle,
                               void **out_data) TT_MUST_USE;
// `sequence`: the last work that may use the block; `size` as it was asked for. Cannot fail.
void tt_memory_free(tt_memory_t *memory, void *data, size_t size, uint64_t sequence);
// Gives the cached blocks that no pending work touches back to the system.
void tt_memory_trim(tt_memory_t *memory);

#endif  // TT_SOFTTPU_MEMORY_H_
