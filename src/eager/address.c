// Address ranges for storages: reserved, never backed. A storage keeps its range for life, and a
// dead storage waits with its range in a list of its size class, so ranges are recycled whole.
#define _DEFAULT_SOURCE
#include <sys/mman.h>

#include "eager/internal.h"

enum { UNIT_SHIFT = 20, CLASS_COUNT = 200 };
#define UNIT ((size_t)1 << UNIT_SHIFT)  // what one entry of the map stands for

// A run of equal ranges.
typedef struct run_s {
  struct run_s *next;  // all runs, so that leak checkers see them
  char *start;
  size_t stride;
  tt_storage_t **owners;
} run_t;

static char *region, *cursor, *limit;
static run_t *all_runs;
static run_t **unit_runs;              // one a unit of the region
static run_t *open_runs[CLASS_COUNT];  // where the next range of a class comes from
static uint32_t open_used[CLASS_COUNT], open_capacity[CLASS_COUNT];

// Four classes an octave, from 256 bytes, all multiples of 64. At least one byte more than asked
// for, so that a storage's end is never another's start.
static size_t class_size(uint32_t c) { return (size_t)(4 + (c & 3)) << ((c >> 2) + 6); }

uint8_t tt__address_class(size_t bytes) {
  size_t wanted = bytes + 1;
  if (wanted <= 256) return 0;
  uint32_t log = 63 - (uint32_t)__builtin_clzll(wanted - 1);  // 2^log < wanted <= 2^(log+1)
  uint32_t c = (log - 8) * 4;
  while (class_size(c) < wanted) c++;
  return (uint8_t)c;
}

static tt_status_t reserve_region(void) {
  for (size_t size = (size_t)1 << 42; size >= (size_t)1 << 34; size >>= 2) {
    void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    unit_runs = mmap(NULL, (size >> UNIT_SHIFT) * sizeof *unit_runs, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (unit_runs == MAP_FAILED) return tt__no_host_memory();
    region = p;
    limit = region + size;
    cursor = (char *)tt_align_up((size_t)p, UNIT);
    return TT_OK_STATUS;
  }
  return TT_ERROR(OUT_OF_MEMORY, "no address space for device pointers (is it limited?)");
}

static size_t unit_of(const char *address) { return (size_t)(address - region) >> UNIT_SHIFT; }

// A new run for class c: many small ranges, or one large.
static tt_status_t open_run(uint32_t c) {
  if (!region) TT_RETURN_IF_ERROR(reserve_region());
  size_t stride = class_size(c), size = tt_align_up(stride, UNIT);
  uint32_t count = (uint32_t)(size / stride);
  if (size > (size_t)(limit - cursor)) {
    return TT_ERROR(OUT_OF_MEMORY, "no address space left for a device pointer of %zu bytes",
                    stride);
  }
  run_t *run = tt_alloc(sizeof *run);
  tt_storage_t **owners = tt_alloc_zeroed(count * sizeof(tt_storage_t *));
  if (!run || !owners) {
    tt_free(run);
    tt_free(owners);
    return tt__no_host_memory();
  }
  *run = (run_t){all_runs, cursor, stride, owners};
  all_runs = run;
  for (size_t u = unit_of(cursor), end = u + (size >> UNIT_SHIFT); u < end; u++) unit_runs[u] = run;
  cursor += size;
  open_runs[c] = run;
  open_used[c] = 0;
  open_capacity[c] = count;
  return TT_OK_STATUS;
}

tt_status_t tt__address_reserve(tt_storage_t *storage, size_t bytes) {
  if (bytes >> 41) {
    return TT_ERROR(OUT_OF_MEMORY, "a storage of %zu bytes is more than any device has", bytes);
  }
  uint8_t c = tt__address_class(bytes);
  if (open_used[c] == open_capacity[c]) TT_RETURN_IF_ERROR(open_run(c));
  run_t *run = open_runs[c];
  uint32_t i = open_used[c]++;
  run->owners[i] = storage;
  storage->address = run->start + i * run->stride;
  storage->size_class = c;
  return TT_OK_STATUS;
}

tt_storage_t *tt__address_owner(const void *address) {
  const char *p = address;
  if (!region || p < region || p >= limit) return NULL;
  run_t *run = unit_runs[unit_of(p)];
  return run ? run->owners[(size_t)(p - run->start) / run->stride] : NULL;
}

static void set_owner(tt_storage_t *storage) {
  run_t *run = unit_runs[unit_of(storage->address)];
  run->owners[(size_t)(storage->address - run->start) / run->stride] = storage;
}

void tt__address_swap(tt_storage_t *a, tt_storage_t *b) {
  set_owner(a);
  set_owner(b);
}

size_t tt__address_capacity(uint8_t size_class) { return class_size(size_class) - 1; }
