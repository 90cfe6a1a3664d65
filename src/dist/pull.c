// Large collectives straight from the peers' memory: one copy by the kernel, no staging, and a few
// steps in all instead of two for every slot.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "dist/internal.h"

#define DYING_MS 1000
#define CHUNK ((size_t)64 << 10)  // pulled at a time for a reduction: stays in the cache

tt_status_t tt__pull(tt_group_t *group, uint32_t peer, uint64_t from, void *to, size_t bytes,
                     const char *what) {
  const tt_peer_t *p = &group->peers[peer];
  while (bytes) {
    struct iovec mine = {to, bytes}, theirs = {(void *)(uintptr_t)from, bytes};
    ssize_t got = process_vm_readv(p->pid, &mine, 1, &theirs, 1, 0);
    if (got <= 0) {
      int error = errno;
      // The memory of a process that dies is gone a moment before the process is.
      struct pollfd fd = {.fd = p->pidfd, .events = POLLIN};
      (void)poll(&fd, 1, DYING_MS);
      tt_status_t failure = tt__peer_failure(group, peer, what);
      return failure ? failure
                     : TT_ERROR(UNAVAILABLE,
                                "tpu_dist: %s on rank %u: cannot read the memory of rank %u "
                                "(process %d): %s",
                                what, tt__name(group), p->name, (int)p->pid, strerror(error));
    }
    to = (char *)to + got;
    from += (uint64_t)got;
    bytes -= (size_t)got;
  }
  return TT_OK_STATUS;
}

static uint64_t *places(const tt_pull_t *p, uint32_t rank) {
  return p->group->peers[rank].control->places[p->group->collectives & 1];
}

static tt_status_t begin(const tt_pull_t *p, const void *in, void *out) {
  uint64_t *mine = places(p, p->group->rank);
  mine[TT_PLACE_IN] = (uint64_t)(uintptr_t)in;
  mine[TT_PLACE_OUT] = (uint64_t)(uintptr_t)out;
  return p->step(p->context);
}

// After a failure in the middle the peers would wait for a step that does not come.
static tt_status_t end(const tt_pull_t *p, tt_status_t status) {
  if (!status) return p->step(p->context);
  tt__group_leave(p->group, tt_status_message(status));
  return tt__group_break(p->group, status);
}

// out = the reduction of everyone's array at from[k]; this rank's own is not copied.
static tt_status_t reduce_from(const tt_pull_t *p, const uint64_t *from, void *out,
                               size_t elements) {
  uint32_t size = p->group->size, rank = p->group->rank;
  size_t chunk = CHUNK / p->element_bytes;
  char *scratch = tt_alloc_aligned(TT_CACHE_LINE, size * CHUNK);
  const void **ins = tt_alloc(size * sizeof *ins);
  tt_status_t status = TT_OK_STATUS;
  if (!scratch || !ins) status = TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", p->what);
  for (size_t at = 0; !status && at < elements; at += chunk) {
    size_t n = elements - at < chunk ? elements - at : chunk, offset = at * p->element_bytes;
    for (uint32_t k = 0; !status && k < size; k++) {
      ins[k] = k == rank ? (const char *)(uintptr_t)from[k] + offset : scratch + k * CHUNK;
      if (k == rank) continue;
      status = tt__pull(p->group, k, from[k] + offset, scratch + k * CHUNK, n * p->element_bytes,
                        p->what);
    }
    if (!status) tt_reduce(p->c->dtype, p->c->op, (char *)out + offset, ins, size, n);
  }
  tt_free(scratch);
  tt_free(ins);
  return status;
}

// The same of everyone's input from element `first` on.
static tt_status_t reduce_inputs(const tt_pull_t *p, size_t first, void *out, size_t elements) {
  uint32_t size = p->group->size;
  uint64_t *from = tt_alloc(size * sizeof *from);
  if (!from) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", p->what);
  for (uint32_t k = 0; k < size; k++) {
    from[k] = places(p, k)[TT_PLACE_IN] + first * p->element_bytes;
  }
  tt_status_t status = reduce_from(p, from, out, elements);
  tt_free(from);
  return status;
}

// Each rank reduces its share, then everyone collects the others'.
tt_status_t tt__pull_all_reduce(const tt_pull_t *p) {
  tt_group_t *g = p->group;
  size_t elements = p->c->elements;
  char *out = p->c->out;
  TT_RETURN_IF_ERROR(begin(p, p->c->in, out));
  size_t share = tt_align_up((elements + g->size - 1) / g->size, TT_CACHE_LINE);
  size_t first = share * g->rank < elements ? share * g->rank : elements;
  size_t count = share < elements - first ? share : elements - first;
  tt_status_t status = end(p, reduce_inputs(p, first, out + first * p->element_bytes, count));
  for (uint32_t i = 1; !status && i < g->size; i++) {
    uint32_t k = (g->rank + i) % g->size;
    first = share * k < elements ? share * k : elements;
    count = share < elements - first ? share : elements - first;
    size_t offset = first * p->element_bytes;
    status = tt__pull(g, k, places(p, k)[TT_PLACE_OUT] + offset, out + offset,
                      count * p->element_bytes, p->what);
    if (status) status = tt__group_break(g, status);
  }
  return status ? status : p->step(p->context);
}

tt_status_t tt__pull_reduce(const tt_pull_t *p) {
  TT_RETURN_IF_ERROR(begin(p, p->c->in, p->c->out));
  bool root = p->group->rank == p->c->root;
  return end(p, root ? reduce_inputs(p, 0, p->c->out, p->c->elements) : TT_OK_STATUS);
}

// The published place is the list of parts: a part's own place is pulled first.
tt_status_t tt__pull_reduce_scatter(const tt_pull_t *p) {
  tt_group_t *g = p->group;
  TT_RETURN_IF_ERROR(begin(p, p->c->ins, NULL));
  uint64_t *from = tt_alloc(g->size * sizeof *from);
  tt_status_t status = TT_OK_STATUS;
  if (!from) status = TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", p->what);
  for (uint32_t k = 0; !status && k < g->size; k++) {
    uint64_t place = places(p, k)[TT_PLACE_IN] + g->rank * sizeof(void *);
    if (k == g->rank) {
      from[k] = (uint64_t)(uintptr_t)p->c->ins[k];
    } else {
      status = tt__pull(g, k, place, &from[k], sizeof(void *), p->what);
    }
  }
  if (!status) status = reduce_from(p, from, p->c->out, p->c->in_lengths[g->rank]);
  tt_free(from);
  return end(p, status);
}

tt_status_t tt__pull_all_gather(const tt_pull_t *p) {
  tt_group_t *g = p->group;
  TT_RETURN_IF_ERROR(begin(p, p->c->in, NULL));
  tt_status_t status = TT_OK_STATUS;
  for (uint32_t i = 0; !status && i < g->size; i++) {
    uint32_t k = (g->rank + i) % g->size;
    size_t bytes = p->c->out_lengths[k] * p->element_bytes;
    if (k == g->rank) {
      if (bytes) memmove(p->c->outs[k], p->c->in, bytes);
    } else {
      status = tt__pull(g, k, places(p, k)[TT_PLACE_IN], p->c->outs[k], bytes, p->what);
    }
  }
  return end(p, status);
}

tt_status_t tt__pull_broadcast(const tt_pull_t *p) {
  uint32_t root = p->c->root;
  TT_RETURN_IF_ERROR(begin(p, p->c->in, p->c->out));
  tt_status_t status = TT_OK_STATUS;
  if (p->group->rank != root) {
    status = tt__pull(p->group, root, places(p, root)[TT_PLACE_IN], p->c->out,
                      p->c->elements * p->element_bytes, p->what);
  }
  return end(p, status);
}
