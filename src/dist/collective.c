// Every collective is a loop of steps: write into the own slot of this step's parity, publish, wait
// for all, read the peers' slots. Two slots are enough: who has published step k + 1 is done
// reading step k.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "dist/far.h"
#include "dist/group.h"
#include "dist/internal.h"

// Below this many bytes every rank reduces everything: one step instead of two.
#define SMALL_BYTES ((size_t)32 << 10)
// From this many bytes on the ranks read each other's memory, where they may.
#define PULL_BYTES ((size_t)256 << 10)

typedef struct run_s {
  tt_group_t *group;
  const tt_collective_t *c;
  const char *what;
  tt_limit_t limit;
  size_t element_bytes;
  const tt_collective_header_t *unchecked;  // until the peers' were compared
} run_t;

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

static void copy(void *to, const void *from, size_t bytes) {
  if (to != from && bytes) memmove(to, from, bytes);
}

static unsigned char *slot(const run_t *run, uint32_t rank) {
  // The slot of the step that comes next (write) or was just completed (read): see begin_step.
  return run->group->peers[rank].slots[run->group->step & 1];
}

tt_status_t tt__header_mismatch(const tt_group_t *group, const tt_collective_header_t *mine,
                                uint32_t peer, const tt_collective_header_t *theirs) {
  const tt_collective_header_t *sides[2] = {mine, theirs};
  bool cut = mine->kind == theirs->kind && mine->elements == theirs->elements;
  char text[2][160];
  for (int i = 0; i < 2; i++) {
    const tt_collective_header_t *h = sides[i];
    snprintf(text[i], sizeof text[i], "%s number %llu of %llu x %s (op %s, root %u)%s",
             tt__kind_name(h->kind), (unsigned long long)h->number, (unsigned long long)h->elements,
             tt_dtype_text((tt_dtype_t)h->dtype), tt_reduce_op_name((tt_reduce_op_t)h->op), h->root,
             cut && i && mine->parts != h->parts ? " with parts of other lengths" : "");
  }
  return TT_ERROR(INVALID_ARGUMENT,
                  "tpu_dist: the ranks disagree: rank %u calls %s, rank %u calls %s",
                  tt__name(group), text[0], group->peers[peer].name, text[1]);
}

// Publishes what was written to the own slot and waits until every peer's is there. After it,
// slot() is the step's slot for reading; the next write goes to the other one.
static tt_status_t step(run_t *run) {
  tt_group_t *group = run->group;
  TT_RETURN_IF_ERROR(tt__group_step(group, run->limit, run->what));
  if (!run->unchecked) return TT_OK_STATUS;
  const tt_collective_header_t *mine = run->unchecked;
  for (uint32_t k = 0; k < group->size; k++) {
    const tt_collective_header_t *theirs =
        &group->peers[k].control->headers[group->collectives & 1];
    if (memcmp(theirs, mine, sizeof *mine) != 0) {
      return tt__group_break(group, tt__header_mismatch(group, mine, k, theirs));
    }
  }
  run->unchecked = NULL;
  return TT_OK_STATUS;
}
static tt_status_t step_again(void *context) { return step(context); }

// Where the next step's data is written. group->step has the parity of the last step done.
static unsigned char *own_next(const run_t *run) {
  return run->group->peers[run->group->rank].slots[(run->group->step + 1) & 1];
}

// --- reductions ---------------------------------------------------------------------------------

// One step: everyone reads everyone's chunk; who has an `out` reduces it in rank order.
static tt_status_t reduce_chunk_direct(run_t *run, const void *in, void *out, size_t elements,
                                       const void **ins) {
  copy(own_next(run), in, elements * run->element_bytes);
  TT_RETURN_IF_ERROR(step(run));
  for (uint32_t k = 0; k < run->group->size; k++) ins[k] = slot(run, k);
  if (out) tt_reduce(run->c->dtype, run->c->op, out, ins, run->group->size, elements);
  return TT_OK_STATUS;
}

// Two steps: each rank reduces its share of the chunk, then everyone collects the shares.
static tt_status_t reduce_chunk_shared(run_t *run, const void *in, void *out, size_t elements,
                                       const void **ins) {
  tt_group_t *group = run->group;
  size_t size = run->element_bytes;
  size_t share = (elements + group->size - 1) / group->size;
  copy(own_next(run), in, elements * size);
  TT_RETURN_IF_ERROR(step(run));
  size_t first = min_size(share * group->rank, elements);
  size_t count = min_size(share, elements - first);
  for (uint32_t k = 0; k < group->size; k++) ins[k] = slot(run, k) + first * size;
  tt_reduce(run->c->dtype, run->c->op, own_next(run), ins, group->size, count);
  TT_RETURN_IF_ERROR(step(run));
  for (uint32_t k = 0; k < group->size; k++) {
    first = min_size(share * k, elements);
    copy((char *)out + first * size, slot(run, k), min_size(share, elements - first) * size);
  }
  return TT_OK_STATUS;
}

static tt_status_t reduce_all(run_t *run, void *out, bool shared) {
  const void **ins = tt_alloc(sizeof *ins * run->group->size);
  if (!ins) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", run->what);
  size_t chunk = TT_SLOT_BYTES / run->element_bytes;
  size_t at = 0;
  tt_status_t status = TT_OK_STATUS;
  do {  // at least one step, so that every rank takes part
    size_t n = min_size(chunk, run->c->elements - at), offset = at * run->element_bytes;
    const char *from = (const char *)run->c->in + offset;
    char *to = out ? (char *)out + offset : NULL;
    status = shared ? reduce_chunk_shared(run, from, to, n, ins)
                    : reduce_chunk_direct(run, from, to, n, ins);
    at += n;
  } while (!status && at < run->c->elements);
  tt_free(ins);
  return status;
}

static tt_status_t all_reduce(run_t *run) {
  size_t bytes = run->c->elements * run->element_bytes;
  return reduce_all(run, run->c->out, run->group->size > 2 && bytes > SMALL_BYTES);
}

static tt_status_t reduce(run_t *run) {
  return reduce_all(run, run->group->rank == run->c->root ? run->c->out : NULL, false);
}

static size_t longest(const size_t *lengths, uint32_t count) {
  size_t most = 0;
  for (uint32_t k = 0; k < count; k++) most = lengths[k] > most ? lengths[k] : most;
  return most;
}

// How many elements of one pair's part fit into a slot.
static size_t part_chunk(const run_t *run) {
  return TT_SLOT_BYTES / run->group->size / TT_CACHE_LINE * TT_CACHE_LINE / run->element_bytes;
}

// Writes the chunk from element `at` on of the part for each rank.
static void show_parts(const run_t *run, const size_t *lengths, size_t at) {
  size_t chunk = part_chunk(run), size = run->element_bytes;
  for (uint32_t k = 0; k < run->group->size; k++) {
    size_t n = at < lengths[k] ? min_size(chunk, lengths[k] - at) : 0;
    if (!n) continue;
    copy(own_next(run) + k * chunk * size, (const char *)run->c->ins[k] + at * size, n * size);
  }
}

// What rank k has shown for this one.
static const unsigned char *part_of(const run_t *run, uint32_t k) {
  return slot(run, k) + run->group->rank * part_chunk(run) * run->element_bytes;
}

static tt_status_t reduce_scatter(run_t *run) {
  tt_group_t *group = run->group;
  const tt_collective_t *c = run->c;
  size_t chunk = part_chunk(run), most = longest(c->in_lengths, group->size), at = 0;
  const void **parts = tt_alloc(sizeof *parts * group->size);
  if (!parts) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", run->what);
  tt_status_t status = TT_OK_STATUS;
  do {
    show_parts(run, c->in_lengths, at);
    status = step(run);
    size_t length = c->in_lengths[group->rank];
    size_t mine = at < length ? min_size(chunk, length - at) : 0;
    for (uint32_t k = 0; k < group->size; k++) parts[k] = part_of(run, k);
    char *out = (char *)c->out + at * run->element_bytes;
    if (!status && mine) tt_reduce(c->dtype, c->op, out, parts, group->size, mine);
    at += chunk;
  } while (!status && at < most);
  tt_free(parts);
  return status;
}

// --- data movement ------------------------------------------------------------------------------

static tt_status_t broadcast(run_t *run) {
  size_t bytes = run->c->elements * run->element_bytes, at = 0;
  uint32_t root = run->c->root;
  bool gives = run->group->rank == root;
  do {
    size_t n = min_size(TT_SLOT_BYTES, bytes - at);
    if (gives) copy(own_next(run), (const char *)run->c->in + at, n);
    TT_RETURN_IF_ERROR(step(run));
    if (!gives) copy((char *)run->c->out + at, slot(run, root), n);
    at += n;
  } while (at < bytes);
  return TT_OK_STATUS;
}

// Each rank shows lengths[rank] elements of `size` bytes; `outs` (NULL: this rank only shows)
// receive everyone's.
static tt_status_t gather_arrays(run_t *run, const void *in, void *const *outs,
                                 const size_t *lengths, size_t size) {
  tt_group_t *group = run->group;
  size_t most = longest(lengths, group->size) * size, at = 0;
  do {
    size_t mine = lengths[group->rank] * size;
    if (at < mine) copy(own_next(run), (const char *)in + at, min_size(TT_SLOT_BYTES, mine - at));
    TT_RETURN_IF_ERROR(step(run));
    for (uint32_t k = 0; outs && k < group->size; k++) {
      size_t theirs = lengths[k] * size;
      if (at < theirs)
        copy((char *)outs[k] + at, slot(run, k), min_size(TT_SLOT_BYTES, theirs - at));
    }
    at += TT_SLOT_BYTES;
  } while (at < most);
  return TT_OK_STATUS;
}

static tt_status_t all_gather(run_t *run) {
  return gather_arrays(run, run->c->in, run->c->outs, run->c->out_lengths, run->element_bytes);
}

// A list of one length a rank: `lengths`, or `even` for all. The caller frees it.
static size_t *lengths_copy(const run_t *run, const size_t *lengths, size_t even) {
  size_t *copies = tt_alloc(sizeof *copies * run->group->size);
  for (uint32_t k = 0; copies && k < run->group->size; k++) {
    copies[k] = lengths ? lengths[k] : even;
  }
  return copies;
}

static tt_status_t gather(run_t *run) {
  const tt_collective_t *c = run->c;
  size_t *lengths = lengths_copy(run, c->out_lengths, c->elements);
  if (!lengths) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", run->what);
  void *const *outs = run->group->rank == c->root ? c->outs : NULL;
  tt_status_t status = gather_arrays(run, c->in, outs, lengths, run->element_bytes);
  tt_free(lengths);
  return status;
}

// Rank s's slot holds one part a receiver. `most` elements is the longest part of any pair.
static tt_status_t exchange_parts(run_t *run, const size_t *in_lengths, void *const *outs,
                                  const size_t *out_lengths, size_t most) {
  size_t size = run->element_bytes, chunk = part_chunk(run), at = 0;
  do {
    show_parts(run, in_lengths, at);
    TT_RETURN_IF_ERROR(step(run));
    for (uint32_t k = 0; k < run->group->size; k++) {
      size_t n = at < out_lengths[k] ? min_size(chunk, out_lengths[k] - at) : 0;
      if (n) copy((char *)outs[k] + at * size, part_of(run, k), n * size);
    }
    at += chunk;
  } while (at < most);
  return TT_OK_STATUS;
}

// table[from][to] elements go between two ranks; *out_most of any pair.
static tt_status_t check_table(tt_group_t *group, const tt_collective_t *c, const size_t *table,
                               size_t *out_most) {
  size_t size = group->size;
  *out_most = longest(table, (uint32_t)(size * size));
  for (uint32_t from = 0; from < size; from++) {
    size_t sent = table[from * size + group->rank];
    if (sent == c->out_lengths[from]) continue;
    tt_status_t status =
        TT_ERROR(INVALID_ARGUMENT,
                 "tpu_dist: all_to_all: rank %u sends %zu elements to rank %u, which expects %zu",
                 group->peers[from].name, sent, tt__name(group), c->out_lengths[from]);
    tt__group_leave(group, tt_status_message(status));
    return tt__group_break(group, status);
  }
  return TT_OK_STATUS;
}

// Lengths differ by pair: the ranks first tell each other, which also finds a wrong split.
static tt_status_t all_to_all(run_t *run) {
  tt_group_t *group = run->group;
  size_t size = group->size, most = 0;
  size_t *table = tt_alloc(sizeof(size_t) * size * size);
  void **rows = tt_alloc(sizeof(void *) * size);
  size_t *lengths = lengths_copy(run, NULL, size);
  tt_status_t status = TT_OK_STATUS;
  if (!table || !rows || !lengths)
    status = TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", run->what);
  for (size_t k = 0; !status && k < size; k++) rows[k] = table + k * size;
  if (!status) status = gather_arrays(run, run->c->in_lengths, rows, lengths, sizeof(size_t));
  if (!status) status = check_table(group, run->c, table, &most);
  if (!status)
    status = exchange_parts(run, run->c->in_lengths, run->c->outs, run->c->out_lengths, most);
  tt_free(table);
  tt_free(rows);
  tt_free(lengths);
  return status;
}

static tt_status_t scatter(run_t *run) {
  const tt_collective_t *c = run->c;
  uint32_t size = run->group->size, rank = run->group->rank;
  size_t *lengths = lengths_copy(run, c->in_lengths, c->elements);
  size_t *none = tt_alloc_zeroed(sizeof *none * size);
  void **outs = tt_alloc_zeroed(sizeof *outs * size);
  tt_status_t status = TT_OK_STATUS;
  if (!lengths || !none || !outs)
    status = TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", run->what);
  if (!status) {
    size_t most = longest(lengths, size), mine = lengths[rank];
    outs[c->root] = c->out;
    if (rank != c->root) memset(lengths, 0, sizeof *lengths * size);
    none[c->root] = mine;
    status = exchange_parts(run, lengths, outs, none, most);
  }
  tt_free(lengths);
  tt_free(none);
  tt_free(outs);
  return status;
}

// --- running one --------------------------------------------------------------------------------

typedef struct kind_s {
  const char *name;
  tt_status_t (*staged)(run_t *run);  // through the slots
  tt_status_t (*pulled)(const tt_pull_t *pull);
} kind_t;
static const kind_t kinds[] = {
    [TT_COLLECTIVE_BARRIER] = {"barrier", step, NULL},
    [TT_COLLECTIVE_ALL_REDUCE] = {"all_reduce", all_reduce, tt__pull_all_reduce},
    [TT_COLLECTIVE_REDUCE] = {"reduce", reduce, tt__pull_reduce},
    [TT_COLLECTIVE_BROADCAST] = {"broadcast", broadcast, tt__pull_broadcast},
    [TT_COLLECTIVE_ALL_GATHER] = {"all_gather", all_gather, tt__pull_all_gather},
    [TT_COLLECTIVE_REDUCE_SCATTER] = {"reduce_scatter", reduce_scatter, tt__pull_reduce_scatter},
    [TT_COLLECTIVE_ALL_TO_ALL] = {"all_to_all", all_to_all, NULL},
    [TT_COLLECTIVE_GATHER] = {"gather", gather, NULL},
    [TT_COLLECTIVE_SCATTER] = {"scatter", scatter, NULL},
};

const char *tt__kind_name(uint32_t kind) { return kinds[kind].name; }

// The lengths that all ranks must give alike, or NULL.
static const size_t *common_lengths(const tt_collective_t *c) {
  if (c->kind == TT_COLLECTIVE_ALL_GATHER) return c->out_lengths;
  return c->kind == TT_COLLECTIVE_REDUCE_SCATTER ? c->in_lengths : NULL;
}

// The elements of all ranks' arrays together where each has a length, of one array elsewhere.
static size_t elements_of(const tt_group_t *group, const tt_collective_t *c) {
  const size_t *lengths = common_lengths(c);
  size_t total = lengths ? 0 : c->elements;
  for (uint32_t k = 0; lengths && k < group->size; k++) total += lengths[k];
  return total;
}

tt_collective_header_t tt__header_next(tt_group_t *group, const tt_collective_t *c) {
  const size_t *lengths = common_lengths(c);
  size_t bytes = sizeof *lengths * group->size;
  return (tt_collective_header_t){
      .number = group->collectives + 1,
      .elements = elements_of(group, c),
      .parts = lengths ? tt_hash_bytes(TT_HASH_SEED, lengths, bytes) : 0,
      .kind = (uint32_t)c->kind,
      .dtype = (uint32_t)c->dtype,
      .op = (uint32_t)c->op,
      .root = c->root};
}

tt_status_t tt__shared_run(tt_group_t *group, const tt_collective_t *c,
                           const tt_collective_header_t *header) {
  TT_RETURN_IF_ERROR(tt__group_check(group));
  group->collectives++;
  group->peers[group->rank].control->headers[group->collectives & 1] = *header;
  run_t run = {.group = group,
               .c = c,
               .what = tt__kind_name(header->kind),
               .limit = tt__limit(group, c->timeout_s),
               .element_bytes = tt_dtype_size(c->dtype),
               .unchecked = header};
  const kind_t *kind = &kinds[c->kind];
  size_t bytes = elements_of(group, c) * run.element_bytes;
  if (!kind->pulled || !group->pulls || group->size == 1 || bytes < PULL_BYTES) {
    return kind->staged(&run);
  }
  tt_pull_t pull = {group, c, run.what, step_again, &run, run.element_bytes};
  return kind->pulled(&pull);
}

static bool reduces(tt_collective_kind_t kind) {
  return kind == TT_COLLECTIVE_ALL_REDUCE || kind == TT_COLLECTIVE_REDUCE ||
         kind == TT_COLLECTIVE_REDUCE_SCATTER;
}

tt_status_t tt_group_run(tt_group_t *group, const tt_collective_t *c) {
  TT_RETURN_IF_ERROR(tt__group_check(group));
  if (reduces(c->kind)) TT_RETURN_IF_ERROR(tt_reduce_check(c->dtype, c->op));
  if (c->root >= group->size) {
    return TT_ERROR(VALUE, "tpu_dist: %s: root %u in a group of %u", tt__kind_name(c->kind),
                    c->root, group->size);
  }
  if (group->far) return tt__far_run(group, c);
  tt_collective_header_t header = tt__header_next(group, c);
  return tt__shared_run(group, c, &header);
}
