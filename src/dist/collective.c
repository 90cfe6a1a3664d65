// Every collective is a loop of steps: write into the own slot of this step's parity, publish, wait
// for all, read the peers' slots. Two slots are enough: who has published step k + 1 is done
// reading step k.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "dist/far.h"
#include "dist/group.h"
#include "dist/internal.h"

static const char *const kind_names[] = {"barrier",    "all_reduce", "reduce",
                                         "broadcast",  "all_gather", "reduce_scatter",
                                         "all_to_all", "gather",     "scatter"};

// Below this many bytes every rank reduces everything: one step instead of two.
#define SMALL_BYTES ((size_t)32 << 10)
// From this many bytes on the ranks read each other's memory, where they may.
#define PULL_BYTES ((size_t)256 << 10)

typedef struct run_s {
  tt_group_t *group;
  const char *what;
  int64_t deadline;
  size_t element_bytes;
  tt_collective_header_t *unchecked;  // this collective's header, until the peers' were compared
} run_t;

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

static void copy(void *to, const void *from, size_t bytes) {
  if (to != from && bytes) memmove(to, from, bytes);
}

static unsigned char *slot(const run_t *run, uint32_t rank) {
  // The slot of the step that comes next (write) or was just completed (read): see begin_step.
  return run->group->peers[rank].slots[run->group->step & 1];
}

const char *tt__kind_name(uint32_t kind) { return kind_names[kind]; }

tt_status_t tt__header_mismatch(const tt_group_t *group, const tt_collective_header_t *mine,
                                uint32_t peer, const tt_collective_header_t *theirs) {
  const tt_collective_header_t *sides[2] = {mine, theirs};
  char text[2][128];
  for (int i = 0; i < 2; i++) {
    const tt_collective_header_t *h = sides[i];
    snprintf(text[i], sizeof text[i], "%s number %llu of %llu x %s (op %s, root %u)",
             kind_names[h->kind], (unsigned long long)h->number, (unsigned long long)h->elements,
             tt_dtype_text((tt_dtype_t)h->dtype), tt_reduce_op_name((tt_reduce_op_t)h->op),
             h->root);
  }
  return TT_ERROR(INVALID_ARGUMENT,
                  "tpu_dist: the ranks disagree: rank %u calls %s, rank %u calls %s",
                  tt__name(group), text[0], group->peers[peer].name, text[1]);
}

// Publishes what was written to the own slot and waits until every peer's is there. After it,
// slot() is the step's slot for reading; the next write goes to the other one.
static tt_status_t step(run_t *run) {
  tt_group_t *group = run->group;
  TT_RETURN_IF_ERROR(tt__group_step(group, run->deadline, run->what));
  if (!run->unchecked) return TT_OK_STATUS;
  const tt_collective_header_t *mine = run->unchecked;
  for (uint32_t k = 0; k < group->size; k++) {
    const tt_collective_header_t *theirs = &group->peers[k].control->headers[mine->number & 1];
    if (memcmp(theirs, mine, sizeof *mine) != 0) {
      return tt__group_break(group, tt__header_mismatch(group, mine, k, theirs));
    }
  }
  run->unchecked = NULL;
  return TT_OK_STATUS;
}

// Where the next step's data is written. group->step has the parity of the last step done.
static unsigned char *own_next(const run_t *run) {
  return run->group->peers[run->group->rank].slots[(run->group->step + 1) & 1];
}

static tt_status_t begin(tt_group_t *group, tt_collective_kind_t kind, tt_dtype_t dtype,
                         tt_reduce_op_t op, size_t elements, uint32_t root, run_t *out_run) {
  TT_RETURN_IF_ERROR(tt__group_check(group));
  if (root >= group->size) {
    return TT_ERROR(VALUE, "tpu_dist: %s: root %u in a group of %u", kind_names[kind], root,
                    group->size);
  }
  tt_collective_header_t *header =
      &group->peers[group->rank].control->headers[(group->collectives + 1) & 1];
  *header = (tt_collective_header_t){.number = ++group->collectives,
                                     .elements = elements,
                                     .kind = (uint32_t)kind,
                                     .dtype = (uint32_t)dtype,
                                     .op = (uint32_t)op,
                                     .root = root};
  *out_run = (run_t){.group = group,
                     .what = kind_names[kind],
                     .deadline = tt__deadline(group),
                     .element_bytes = tt_dtype_size(dtype),
                     .unchecked = header};
  return TT_OK_STATUS;
}

static tt_status_t run_step(void *context) { return step(context); }

// Whether `bytes` (the same on every rank) are pulled; small ones go through the slots.
static bool pulls(const run_t *run, size_t bytes) {
  return run->group->pulls && run->group->size > 1 && bytes >= PULL_BYTES;
}

static tt_pull_t pull_of(run_t *run) {
  return (tt_pull_t){.group = run->group,
                     .what = run->what,
                     .step = run_step,
                     .context = run,
                     .number = run->group->collectives,
                     .element_bytes = run->element_bytes};
}

tt_status_t tt_group_barrier(tt_group_t *group) {
  if (group->far) return tt__far_barrier(group);
  run_t run;
  TT_RETURN_IF_ERROR(begin(group, TT_COLLECTIVE_BARRIER, TT_U8, TT_REDUCE_SUM, 0, 0, &run));
  return step(&run);
}

// --- reductions
// -------------------------------------------------------------------------------------

// One step: everyone reads everyone's chunk and reduces it in rank order.
static tt_status_t reduce_chunk_direct(run_t *run, tt_dtype_t dtype, tt_reduce_op_t op,
                                       const void *in, void *out, size_t elements,
                                       const void **ins) {
  copy(own_next(run), in, elements * run->element_bytes);
  TT_RETURN_IF_ERROR(step(run));
  for (uint32_t k = 0; k < run->group->size; k++) ins[k] = slot(run, k);
  if (out) tt_reduce(dtype, op, out, ins, run->group->size, elements);
  return TT_OK_STATUS;
}

// Two steps: each rank reduces its share of the chunk, then everyone collects the shares.
static tt_status_t reduce_chunk_shared(run_t *run, tt_dtype_t dtype, tt_reduce_op_t op,
                                       const void *in, void *out, size_t elements,
                                       const void **ins) {
  tt_group_t *group = run->group;
  size_t size = run->element_bytes;
  size_t share = (elements + group->size - 1) / group->size;
  copy(own_next(run), in, elements * size);
  TT_RETURN_IF_ERROR(step(run));
  size_t first = min_size(share * group->rank, elements);
  size_t count = min_size(share, elements - first);
  for (uint32_t k = 0; k < group->size; k++) ins[k] = slot(run, k) + first * size;
  tt_reduce(dtype, op, own_next(run), ins, group->size, count);
  TT_RETURN_IF_ERROR(step(run));
  for (uint32_t k = 0; k < group->size; k++) {
    first = min_size(share * k, elements);
    copy((char *)out + first * size, slot(run, k), min_size(share, elements - first) * size);
  }
  return TT_OK_STATUS;
}

static tt_status_t reduce_all(run_t *run, tt_dtype_t dtype, tt_reduce_op_t op, const void *in,
                              void *out, size_t elements, bool shared) {
  const void **ins = tt_alloc(sizeof *ins * run->group->size);
  if (!ins) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", run->what);
  size_t chunk = TT_SLOT_BYTES / run->element_bytes;
  size_t at = 0;
  tt_status_t status = TT_OK_STATUS;
  do {  // at least one step, so that every rank takes part
    size_t n = min_size(chunk, elements - at), offset = at * run->element_bytes;
    const char *from = (const char *)in + offset;
    char *to = out ? (char *)out + offset : NULL;
    status = shared ? reduce_chunk_shared(run, dtype, op, from, to, n, ins)
                    : reduce_chunk_direct(run, dtype, op, from, to, n, ins);
    at += n;
  } while (!status && at < elements);
  tt_free(ins);
  return status;
}

tt_status_t tt_group_all_reduce(tt_group_t *group, tt_dtype_t dtype, tt_reduce_op_t op,
                                const void *in, void *out, size_t elements) {
  if (group->far) return tt__far_all_reduce(group, dtype, op, in, out, elements);
  run_t run;
  TT_RETURN_IF_ERROR(tt_reduce_check(dtype, op));
  TT_RETURN_IF_ERROR(begin(group, TT_COLLECTIVE_ALL_REDUCE, dtype, op, elements, 0, &run));
  if (pulls(&run, elements * run.element_bytes)) {
    tt_pull_t pull = pull_of(&run);
    return tt__pull_all_reduce(&pull, dtype, op, in, out, elements);
  }
  bool shared = group->size > 2 && elements * run.element_bytes > SMALL_BYTES;
  return reduce_all(&run, dtype, op, in, out, elements, shared);
}

tt_status_t tt_group_reduce(tt_group_t *group, tt_dtype_t dtype, tt_reduce_op_t op, const void *in,
                            void *out, size_t elements, uint32_t root) {
  if (group->far) return tt__far_reduce(group, dtype, op, in, out, elements, root);
  run_t run;
  TT_RETURN_IF_ERROR(tt_reduce_check(dtype, op));
  TT_RETURN_IF_ERROR(begin(group, TT_COLLECTIVE_REDUCE, dtype, op, elements, root, &run));
  return reduce_all(&run, dtype, op, in, group->rank == root ? out : NULL, elements, false);
}

tt_status_t tt_group_reduce_scatter(tt_group_t *group, tt_dtype_t dtype, tt_reduce_op_t op,
                                    const void *const *ins, void *out, const size_t *elements) {
  if (group->far) return tt__far_reduce_scatter(group, dtype, op, ins, out, elements);
  run_t run;
  size_t total = 0, most = 0;
  for (uint32_t k = 0; k < group->size; k++) {
    total += elements[k];
    if (elements[k] > most) most = elements[k];
  }
  TT_RETURN_IF_ERROR(tt_reduce_check(dtype, op));
  TT_RETURN_IF_ERROR(begin(group, TT_COLLECTIVE_REDUCE_SCATTER, dtype, op, total, 0, &run));
  size_t size = run.element_bytes;
  if (pulls(&run, total * size)) {
    tt_pull_t pull = pull_of(&run);
    return tt__pull_reduce_scatter(&pull, dtype, op, ins, out, elements[group->rank]);
  }
  size_t chunk = TT_SLOT_BYTES / group->size / TT_CACHE_LINE * TT_CACHE_LINE / size;
  const void **parts = tt_alloc(sizeof *parts * group->size);
  if (!parts) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", run.what);
  tt_status_t status = TT_OK_STATUS;
  size_t at = 0;
  do {
    for (uint32_t k = 0; k < group->size; k++) {
      size_t n = at < elements[k] ? min_size(chunk, elements[k] - at) : 0;
      if (n) copy(own_next(&run) + k * chunk * size, (const char *)ins[k] + at * size, n * size);
    }
    status = step(&run);
    size_t mine = at < elements[group->rank] ? min_size(chunk, elements[group->rank] - at) : 0;
    for (uint32_t k = 0; k < group->size; k++)
      parts[k] = slot(&run, k) + group->rank * chunk * size;
    if (!status && mine) tt_reduce(dtype, op, (char *)out + at * size, parts, group->size, mine);
    at += chunk;
  } while (!status && at < most);
  tt_free(parts);
  return status;
}

// --- data movement
// ----------------------------------------------------------------------------------

tt_status_t tt_group_broadcast(tt_group_t *group, tt_dtype_t dtype, const void *in, void *out,
                               size_t elements, uint32_t root) {
  if (group->far) return tt__far_broadcast(group, dtype, in, out, elements, root);
  run_t run;
  TT_RETURN_IF_ERROR(
      begin(group, TT_COLLECTIVE_BROADCAST, dtype, TT_REDUCE_SUM, elements, root, &run));
  size_t bytes = elements * run.element_bytes, at = 0;
  if (pulls(&run, bytes)) {
    tt_pull_t pull = pull_of(&run);
    return tt__pull_broadcast(&pull, in, out, elements, root);
  }
  do {
    size_t n = min_size(TT_SLOT_BYTES, bytes - at);
    if (group->rank == root) copy(own_next(&run), (const char *)in + at, n);
    TT_RETURN_IF_ERROR(step(&run));
    if (group->rank != root) copy((char *)out + at, slot(&run, root), n);
    at += n;
  } while (at < bytes);
  return TT_OK_STATUS;
}

// Each rank shows `bytes[rank]` bytes; `outs` (NULL: this rank only shows) receive everyone's.
static tt_status_t gather_all(run_t *run, const void *in, void *const *outs,
                              const size_t *elements) {
  tt_group_t *group = run->group;
  size_t size = run->element_bytes, most = 0, at = 0;
  for (uint32_t k = 0; k < group->size; k++) {
    if (elements[k] * size > most) most = elements[k] * size;
  }
  do {
    size_t mine = elements[group->rank] * size;
    if (at < mine) copy(own_next(run), (const char *)in + at, min_size(TT_SLOT_BYTES, mine - at));
    TT_RETURN_IF_ERROR(step(run));
    for (uint32_t k = 0; outs && k < group->size; k++) {
      size_t theirs = elements[k] * size;
      if (at < theirs)
        copy((char *)outs[k] + at, slot(run, k), min_size(TT_SLOT_BYTES, theirs - at));
    }
    at += TT_SLOT_BYTES;
  } while (at < most);
  return TT_OK_STATUS;
}

tt_status_t tt_group_all_gather(tt_group_t *group, tt_dtype_t dtype, const void *in,
                                void *const *outs, const size_t *elements) {
  if (group->far) return tt__far_all_gather(group, dtype, in, outs, elements);
  run_t run;
  size_t total = 0;
  for (uint32_t k = 0; k < group->size; k++) total += elements[k];
  TT_RETURN_IF_ERROR(begin(group, TT_COLLECTIVE_ALL_GATHER, dtype, TT_REDUCE_SUM, total, 0, &run));
  if (pulls(&run, total * run.element_bytes)) {
    tt_pull_t pull = pull_of(&run);
    return tt__pull_all_gather(&pull, in, outs, elements);
  }
  return gather_all(&run, in, outs, elements);
}

tt_status_t tt_group_gather(tt_group_t *group, tt_dtype_t dtype, const void *in, void *const *outs,
                            size_t elements, uint32_t root) {
  if (group->far) return tt__far_gather(group, dtype, in, outs, elements, root);
  run_t run;
  TT_RETURN_IF_ERROR(
      begin(group, TT_COLLECTIVE_GATHER, dtype, TT_REDUCE_SUM, elements, root, &run));
  size_t *counts = tt_alloc(sizeof *counts * group->size);
  if (!counts) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", run.what);
  for (uint32_t k = 0; k < group->size; k++) counts[k] = elements;
  tt_status_t status = gather_all(&run, in, group->rank == root ? outs : NULL, counts);
  tt_free(counts);
  return status;
}

// Rank s's slot holds one part a receiver. `most` elements is the longest part of any pair.
static tt_status_t exchange_parts(run_t *run, const void *const *ins, const size_t *in_elements,
                                  void *const *outs, const size_t *out_elements, size_t most) {
  tt_group_t *group = run->group;
  size_t size = run->element_bytes, at = 0;
  size_t chunk = TT_SLOT_BYTES / group->size / TT_CACHE_LINE * TT_CACHE_LINE / size;
  do {
    for (uint32_t k = 0; k < group->size; k++) {
      size_t n = at < in_elements[k] ? min_size(chunk, in_elements[k] - at) : 0;
      if (n) copy(own_next(run) + k * chunk * size, (const char *)ins[k] + at * size, n * size);
    }
    TT_RETURN_IF_ERROR(step(run));
    for (uint32_t k = 0; k < group->size; k++) {
      size_t n = at < out_elements[k] ? min_size(chunk, out_elements[k] - at) : 0;
      const unsigned char *from = slot(run, k) + group->rank * chunk * size;
      if (n) copy((char *)outs[k] + at * size, from, n * size);
    }
    at += chunk;
  } while (at < most);
  return TT_OK_STATUS;
}

tt_status_t tt_group_all_to_all(tt_group_t *group, tt_dtype_t dtype, const void *const *ins,
                                const size_t *in_elements, void *const *outs,
                                const size_t *out_elements) {
  if (group->far) return tt__far_all_to_all(group, dtype, ins, in_elements, outs, out_elements);
  // Counts differ by pair: the ranks first agree on them, which also finds a wrong split.
  size_t size = group->size, bytes = sizeof(size_t) * size;
  size_t *table = tt_alloc(bytes * size);
  void **rows = tt_alloc(sizeof(void *) * size);
  size_t *lengths = tt_alloc(bytes);
  tt_status_t status = TT_OK_STATUS;
  if (!table || !rows || !lengths)
    status = TT_ERROR(OUT_OF_MEMORY, "tpu_dist: all_to_all: no memory");
  for (size_t k = 0; !status && k < size; k++) {
    rows[k] = table + k * size;
    lengths[k] = size;
  }
  if (!status) status = tt_group_all_gather(group, TT_U64, in_elements, rows, lengths);
  size_t most = 0;
  for (uint32_t from = 0; !status && from < size; from++) {
    for (uint32_t to = 0; to < size; to++) {
      if (table[from * size + to] > most) most = table[from * size + to];
    }
    if (table[from * size + group->rank] != out_elements[from]) {
      status = tt__group_break(
          group,
          TT_ERROR(INVALID_ARGUMENT,
                   "tpu_dist: all_to_all: rank %u sends %zu elements to rank %u, which expects %zu",
                   group->peers[from].name, table[from * size + group->rank], tt__name(group),
                   out_elements[from]));
    }
  }
  run_t run;
  if (!status) status = begin(group, TT_COLLECTIVE_ALL_TO_ALL, dtype, TT_REDUCE_SUM, most, 0, &run);
  if (!status) status = exchange_parts(&run, ins, in_elements, outs, out_elements, most);
  tt_free(table);
  tt_free(rows);
  tt_free(lengths);
  return status;
}

tt_status_t tt_group_scatter(tt_group_t *group, tt_dtype_t dtype, const void *const *ins, void *out,
                             size_t elements, uint32_t root) {
  if (group->far) return tt__far_scatter(group, dtype, ins, out, elements, root);
  run_t run;
  TT_RETURN_IF_ERROR(
      begin(group, TT_COLLECTIVE_SCATTER, dtype, TT_REDUCE_SUM, elements, root, &run));
  size_t *counts = tt_alloc_zeroed(2 * sizeof *counts * group->size);
  void **outs = tt_alloc_zeroed(sizeof *outs * group->size);
  tt_status_t status =
      counts && outs ? TT_OK_STATUS : TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", run.what);
  if (!status) {
    size_t *in_elements = counts, *out_elements = counts + group->size;
    for (uint32_t k = 0; group->rank == root && k < group->size; k++) in_elements[k] = elements;
    out_elements[root] = elements;
    outs[root] = out;
    status = exchange_parts(&run, ins, in_elements, outs, out_elements, elements);
  }
  tt_free(counts);
  tt_free(outs);
  return status;
}
