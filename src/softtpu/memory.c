// A size class is a stack of free blocks. A freed block remembers the last queued work that may use
// it; whoever allocates for later work may have it at once, the host only when that work is done.
// So an eager program that frees and allocates the same sizes runs in the same few blocks while its
// queue is far behind.
#define _GNU_SOURCE

#include "softtpu/memory.h"

#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"

// Blocks from here on come from the system in whole, in huge pages where it has them: page faults
// would otherwise cost more than the work done on a fresh block.
#define MAPPED_SIZE ((size_t)2 << 20)
// What may lie free above the largest amount ever in use, before blocks go back to the system.
#define CACHE_SLACK ((int64_t)64 << 20)

// What an allocation of size 0 points to.
static char empty_block[TT_MEMORY_ALIGNMENT] __attribute__((aligned(TT_MEMORY_ALIGNMENT)));

// Four classes an octave from 64 bytes on: at most a quarter of a block is waste.
static uint32_t class_of(size_t size) {
  if (size <= TT_MEMORY_ALIGNMENT) return 0;
  uint32_t octave = 63 - (uint32_t)__builtin_clzl(size - 1);  // size in (2^octave, 2^(octave+1)]
  uint32_t quarter = (uint32_t)((size - 1) >> (octave - 2)) & 3;
  return (octave - 6) * 4 + quarter + 1;
}

// The largest size of the class, which its blocks have.
static size_t class_size(uint32_t index) {
  if (index == 0) return TT_MEMORY_ALIGNMENT;
  uint32_t octave = (index - 1) / 4 + 6, quarter = (index - 1) % 4;
  return ((size_t)1 << octave) + ((size_t)(quarter + 1) << (octave - 2));
}

// What a size costs against the limit.
static size_t charge(size_t size) { return tt_align_up(size, TT_MEMORY_ALIGNMENT); }

static void *system_allocate(size_t size) {
  if (size < MAPPED_SIZE) return tt_alloc_aligned(TT_MEMORY_ALIGNMENT, size);
  void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
  (void)madvise(data, size, MADV_HUGEPAGE);
#endif
  return data;
}

static void system_free(void *data, size_t size) {
  if (size < MAPPED_SIZE) {
    tt_free(data);
  } else {
    (void)munmap(data, size);
  }
}

void tt_memory_init(tt_memory_t *memory, uint32_t device, int64_t limit,
                    const _Atomic uint64_t *completed) {
  memset(memory, 0, sizeof *memory);
  memory->device = device;
  memory->limit = limit;
  memory->completed = completed;
}

// Frees blocks of one class, from the oldest on, while more than `keep` bytes are cached.
static void trim_class(tt_memory_t *memory, uint32_t index, uint64_t completed, int64_t keep) {
  tt_memory_list_t *list = &memory->free_lists[index];
  size_t size = class_size(index);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    tt_memory_block_t block = list->blocks[i];
    if (memory->cached > keep && block.sequence <= completed) {
      system_free(block.data, size);
      memory->cached -= (int64_t)size;
      memory->reserved -= (int64_t)size;
    } else {
      list->blocks[kept++] = block;
    }
  }
  list->count = kept;
}

// Large classes first: few calls give back much.
static void trim_to(tt_memory_t *memory, int64_t keep) {
  uint64_t completed = atomic_load(memory->completed);
  for (uint32_t i = TT_MEMORY_CLASSES; i-- > 0 && memory->cached > keep;) {
    trim_class(memory, i, completed, keep);
  }
}

void tt_memory_trim(tt_memory_t *memory) { trim_to(memory, 0); }

void tt_memory_deinit(tt_memory_t *memory) {
  tt_memory_trim(memory);
  for (uint32_t i = 0; i < TT_MEMORY_CLASSES; i++) tt_free(memory->free_lists[i].blocks);
}

// The newest block that is idle enough: it is the likeliest to be in a cache.
static void *recycle(tt_memory_t *memory, uint32_t index, bool idle) {
  tt_memory_list_t *list = &memory->free_lists[index];
  uint64_t usable = idle ? atomic_load(memory->completed) : UINT64_MAX;
  for (uint32_t i = list->count; i-- > 0;) {
    if (list->blocks[i].sequence > usable) continue;
    void *data = list->blocks[i].data;
    list->count--;
    memmove(&list->blocks[i], &list->blocks[i + 1], sizeof *list->blocks * (list->count - i));
    memory->cached -= (int64_t)class_size(index);
    return data;
  }
  return NULL;
}

static tt_status_t out_of_memory(const tt_memory_t *memory, size_t size) {
  double mib = 1 << 20;
  return TT_ERROR(OUT_OF_MEMORY,
                  "tpu:%u out of memory: tried to allocate %zu bytes (%.2f MiB) while %lld bytes "
                  "(%.2f MiB) of %lld (%.2f MiB) are in use",
                  memory->device, size, (double)size / mib, (long long)memory->in_use,
                  (double)memory->in_use / mib, (long long)memory->limit,
                  (double)memory->limit / mib);
}

// A fresh block; what lies free goes back first where it is more than the past called for.
static void *expand(tt_memory_t *memory, size_t size) {
  int64_t keep = memory->high_water + memory->high_water / 4 + CACHE_SLACK;
  int64_t excess = memory->reserved + (int64_t)size - keep;
  if (excess > 0) trim_to(memory, memory->cached > excess ? memory->cached - excess : 0);
  void *data = system_allocate(size);
  if (!data) {
    tt_memory_trim(memory);
    data = system_allocate(size);
  }
  if (data) memory->reserved += (int64_t)size;
  return data;
}

tt_status_t tt_memory_allocate(tt_memory_t *memory, size_t size, bool idle, void **out_data) {
  *out_data = empty_block;
  if (size == 0) return TT_OK_STATUS;
  if (size > (size_t)memory->limit || (int64_t)charge(size) > memory->limit - memory->in_use) {
    return out_of_memory(memory, size);
  }
  uint32_t index = class_of(size);
  if (index >= TT_MEMORY_CLASSES) return out_of_memory(memory, size);
  void *data = recycle(memory, index, idle);
  if (!data) data = expand(memory, class_size(index));
  if (!data) return tt_status_annotate(out_of_memory(memory, size), "no memory on the host");
  memory->in_use += (int64_t)charge(size);
  if (memory->in_use > memory->peak) memory->peak = memory->in_use;
  if (memory->in_use > memory->high_water) memory->high_water = memory->in_use;
  memory->allocations++;
  memory->live++;
  if ((int64_t)size > memory->largest) memory->largest = (int64_t)size;
  *out_data = data;
  return TT_OK_STATUS;
}

void tt_memory_free(tt_memory_t *memory, void *data, size_t size, uint64_t sequence) {
  if (size == 0) return;
  uint32_t index = class_of(size);
  tt_memory_list_t *list = &memory->free_lists[index];
  memory->in_use -= (int64_t)charge(size);
  memory->frees++;
  memory->live--;
  // Without room to remember the block it is lost: that needs no memory and keeps pending work
  // safe.
  if (list->count == list->capacity &&
      !tt_grow((void **)&list->blocks, &list->capacity, list->count + 1, sizeof *list->blocks)) {
    return;
  }
  list->blocks[list->count++] = (tt_memory_block_t){data, sequence};
  memory->cached += (int64_t)class_size(index);
}
