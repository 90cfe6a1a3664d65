// Collectives by messages. Ranks first tell each other what they call, as in shared memory. A sum
// that may be taken in any order goes host by host: shared memory inside, the hosts' leaders
// between.
#include "dist/far.h"

#include <string.h>

#include "base/alloc.h"
#include "dist/internal.h"

// From this many bytes on all_reduce goes host by host.
#define BY_HOST_BYTES ((size_t)16 << 10)

struct tt_far_s {
  tt_link_t collectives, messages;
  tt_group_t *local;  // this host's ranks
  uint32_t *leaders, leader_count;
  bool leads;
};

typedef struct call_s {
  tt_group_t *group;
  const char *what;
  size_t element_bytes;
  tt_part_t *sends, *receives;  // room for one a rank each
  uint32_t send_count, receive_count;
} call_t;

tt_status_t tt_group_create_far(const tt_meeting_t *meeting, const tt_link_t links[2],
                                tt_group_t *local, const uint32_t *leaders, uint32_t leader_count,
                                tt_group_t **out_group) {
  uint32_t size = meeting->size;
  tt_group_t *group = tt_alloc_zeroed(sizeof *group);
  tt_peer_t *peers = tt_alloc_zeroed(sizeof *peers * size);
  tt_far_t *far = tt_alloc_zeroed(sizeof *far);
  uint32_t *copies = tt_alloc(sizeof *copies * leader_count);
  if (!group || !peers || !far || !copies) {
    tt_free(group);
    tt_free(peers);
    tt_free(far);
    tt_free(copies);
    links[0].close(links[0].context);
    links[1].close(links[1].context);
    tt_group_destroy(local);
    return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for a group of %u", size);
  }
  memcpy(copies, leaders, sizeof *copies * leader_count);
  *far = (tt_far_t){links[0], links[1], local, copies, leader_count, local->rank == 0};
  *group = (tt_group_t){.rank = meeting->rank, .size = size, .fd = -1, .peers = peers, .far = far};
  pthread_mutex_init(&group->broken_lock, NULL);
  for (uint32_t k = 0; k < size; k++) {
    peers[k].name = k;
    peers[k].pidfd = -1;
    pthread_mutex_init(&peers[k].receive_lock, NULL);
  }
  tt_group_set_timeout(group, meeting->timeout_s);
  *out_group = group;
  return TT_OK_STATUS;
}

void tt__far_abort(tt_group_t *group) {
  tt_far_t *far = group->far;
  far->collectives.abort(far->collectives.context);
  far->messages.abort(far->messages.context);
  tt_group_abort(far->local);
}

void tt__far_destroy(tt_group_t *group) {
  tt_far_t *far = group->far;
  far->collectives.close(far->collectives.context);
  far->messages.close(far->messages.context);
  tt_group_destroy(far->local);
  tt_free(far->leaders);
  tt_free(far);
}

static double timeout_of(const tt_group_t *group) {
  return (double)atomic_load(&group->timeout_ns) * 1e-9;
}

// A failure ends the links, so that the others fail too and do not wait for their timeouts.
static tt_status_t fail(tt_group_t *group, const char *what, tt_status_t status) {
  status = tt_status_annotate(status, "tpu_dist: %s on rank %u", what, group->rank);
  status = tt__group_break(group, status);
  tt__far_abort(group);
  return status;
}

// --- calls
// -----------------------------------------------------------------------------------------

static void add(tt_part_t *parts, uint32_t *count, uint32_t rank, const void *data, size_t bytes) {
  if (bytes) parts[(*count)++] = (tt_part_t){rank, (void *)(uintptr_t)data, bytes};
}
static void add_send(call_t *c, uint32_t rank, const void *data, size_t elements) {
  add(c->sends, &c->send_count, rank, data, elements * c->element_bytes);
}
static void add_receive(call_t *c, uint32_t rank, void *data, size_t elements) {
  add(c->receives, &c->receive_count, rank, data, elements * c->element_bytes);
}

static tt_status_t run(call_t *c) {
  tt_link_t *link = &c->group->far->collectives;
  tt_status_t status = link->exchange(link->context, c->sends, c->send_count, c->receives,
                                      c->receive_count, 0, timeout_of(c->group));
  c->send_count = c->receive_count = 0;
  return status ? fail(c->group, c->what, status) : TT_OK_STATUS;
}

static void end(call_t *c) { tt_free(c->sends); }

// Everyone tells everyone what it calls.
static tt_status_t agree(call_t *c, const tt_collective_header_t *mine) {
  tt_group_t *g = c->group;
  tt_collective_header_t *all = tt_alloc_zeroed(sizeof *all * g->size);
  if (!all) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", c->what);
  for (uint32_t k = 0; k < g->size; k++) {
    if (k == g->rank) continue;
    add(c->sends, &c->send_count, k, mine, sizeof *mine);
    add(c->receives, &c->receive_count, k, &all[k], sizeof *mine);
  }
  tt_status_t status = run(c);
  for (uint32_t k = 0; !status && k < g->size; k++) {
    if (k == g->rank || memcmp(&all[k], mine, sizeof *mine) == 0) continue;
    status = tt__group_break(g, tt__header_mismatch(g, mine, k, &all[k]));
    tt__far_abort(g);
  }
  tt_free(all);
  return status;
}

static tt_status_t begin(tt_group_t *g, tt_collective_kind_t kind, tt_dtype_t dtype,
                         tt_reduce_op_t op, size_t elements, uint32_t root, call_t *c) {
  TT_RETURN_IF_ERROR(tt__group_check(g));
  *c = (call_t){.group = g, .what = tt__kind_name(kind), .element_bytes = tt_dtype_size(dtype)};
  if (root >= g->size) {
    return TT_ERROR(VALUE, "tpu_dist: %s: root %u in a group of %u", c->what, root, g->size);
  }
  c->sends = tt_alloc(2 * sizeof *c->sends * g->size);
  if (!c->sends) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", c->what);
  c->receives = c->sends + g->size;
  tt_collective_header_t mine = {.number = ++g->collectives,
                                 .elements = elements,
                                 .kind = (uint32_t)kind,
                                 .dtype = (uint32_t)dtype,
                                 .op = (uint32_t)op,
                                 .root = root};
  tt_status_t status = agree(c, &mine);
  if (status) end(c);
  return status;
}

tt_status_t tt__far_barrier(tt_group_t *group) {
  call_t c;
  TT_RETURN_IF_ERROR(begin(group, TT_COLLECTIVE_BARRIER, TT_U8, TT_REDUCE_SUM, 0, 0, &c));
  end(&c);
  return TT_OK_STATUS;
}

// --- reductions
// ------------------------------------------------------------------------------------

// Among `ranks` (this one is ranks[place]): each reduces its share of everyone's, in the order of
// the list, then everyone collects the shares.
static tt_status_t reduce_shares(call_t *c, const uint32_t *ranks, uint32_t count, uint32_t place,
                                 tt_dtype_t dtype, tt_reduce_op_t op, const void *in, void *out,
                                 size_t elements) {
  size_t share = (elements + count - 1) / count, size = c->element_bytes;
  size_t mine = share * place < elements ? elements - share * place : 0;
  if (mine > share) mine = share;
  char *parts = tt_alloc(count * share * size + 1);
  const void **ins = tt_alloc(sizeof *ins * count);
  tt_status_t status = TT_OK_STATUS;
  if (!parts || !ins) status = TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", c->what);
  for (uint32_t k = 0; !status && k < count; k++) {
    size_t first = share * k < elements ? share * k : elements;
    size_t n = elements - first < share ? elements - first : share;
    ins[k] = k == place ? (const char *)in + first * size : parts + k * share * size;
    if (k == place) continue;
    add_send(c, ranks[k], (const char *)in + first * size, n);
    add_receive(c, ranks[k], parts + k * share * size, mine);
  }
  if (!status) status = run(c);
  char *own = (char *)out + (share * place < elements ? share * place : elements) * size;
  if (!status && mine) tt_reduce(dtype, op, own, ins, count, mine);
  for (uint32_t k = 0; !status && k < count; k++) {
    size_t first = share * k < elements ? share * k : elements;
    if (k == place) continue;
    add_send(c, ranks[k], own, mine);
    add_receive(c, ranks[k], (char *)out + first * size,
                elements - first < share ? elements - first : share);
  }
  if (!status) status = run(c);
  tt_free(parts);
  tt_free(ins);
  return status;
}

static uint32_t place_in(const uint32_t *list, uint32_t count, uint32_t rank) {
  uint32_t k = 0;
  while (k < count && list[k] != rank) k++;
  return k;
}

static tt_status_t all_reduce_by_host(call_t *c, tt_dtype_t dtype, tt_reduce_op_t op,
                                      const void *in, void *out, size_t elements) {
  tt_far_t *far = c->group->far;
  tt_status_t status = tt_group_reduce(far->local, dtype, op, in, out, elements, 0);
  if (!status && far->leads) {
    uint32_t place = place_in(far->leaders, far->leader_count, c->group->rank);
    status =
        reduce_shares(c, far->leaders, far->leader_count, place, dtype, op, out, out, elements);
  }
  if (!status) status = tt_group_broadcast(far->local, dtype, out, out, elements, 0);
  if (status && !atomic_load(&c->group->broken)) {
    status = tt__group_break(c->group, status);
    tt__far_abort(c->group);
  }
  return status;
}

static tt_status_t all_reduce_flat(call_t *c, tt_dtype_t dtype, tt_reduce_op_t op, const void *in,
                                   void *out, size_t elements) {
  tt_group_t *g = c->group;
  uint32_t *ranks = tt_alloc(sizeof *ranks * g->size);
  if (!ranks) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", c->what);
  for (uint32_t k = 0; k < g->size; k++) ranks[k] = k;
  tt_status_t status = reduce_shares(c, ranks, g->size, g->rank, dtype, op, in, out, elements);
  tt_free(ranks);
  return status;
}

// Halves round once and averages divide once: they are reduced in one go.
static bool goes_by_host(tt_dtype_t dtype, tt_reduce_op_t op, size_t bytes) {
  bool wide = tt_dtype_size(dtype) >= 4 || !tt_dtype_is_float(dtype);
  return wide && op != TT_REDUCE_AVG && bytes >= BY_HOST_BYTES;
}

tt_status_t tt__far_all_reduce(tt_group_t *group, tt_dtype_t dtype, tt_reduce_op_t op,
                               const void *in, void *out, size_t elements) {
  call_t c;
  TT_RETURN_IF_ERROR(tt_reduce_check(dtype, op));
  TT_RETURN_IF_ERROR(begin(group, TT_COLLECTIVE_ALL_REDUCE, dtype, op, elements, 0, &c));
  tt_status_t status = goes_by_host(dtype, op, elements * c.element_bytes)
                           ? all_reduce_by_host(&c, dtype, op, in, out, elements)
                           : all_reduce_flat(&c, dtype, op, in, out, elements);
  end(&c);
  return status;
}

// Everyone's `counts` elements are gathered to `out` (of the rank that reduces) and reduced.
static tt_status_t reduce_mine(call_t *c, tt_dtype_t dtype, tt_reduce_op_t op,
                               const void *const *ins, const size_t *counts, void *out) {
  tt_group_t *g = c->group;
  size_t mine = counts[g->rank], size = c->element_bytes;
  char *parts = tt_alloc(g->size * mine * size + 1);
  const void **all = tt_alloc(sizeof *all * g->size);
  tt_status_t status = TT_OK_STATUS;
  if (!parts || !all) status = TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s: no memory", c->what);
  for (uint32_t k = 0; !status && k < g->size; k++) {
    all[k] = k == g->rank ? ins[k] : parts + k * mine * size;
    if (k == g->rank) continue;
    add_send(c, k, ins[k], counts[k]);
    add_receive(c, k, parts + k * mine * size, mine);
  }
  if (!status) status = run(c);
  if (!status && mine) tt_reduce(dtype, op, out, all, g->size, mine);
  tt_free(parts);
  tt_free(all);
  return status;
}

tt_status_t tt__far_reduce(tt_group_t *group, tt_dtype_t dtype, tt_reduce_op_t op, const void *in,
                           void *out, size_t elements, uint32_t root) {
  call_t c;
  TT_RETURN_IF_ERROR(tt_reduce_check(dtype, op));
  TT_RETURN_IF_ERROR(begin(group, TT_COLLECTIVE_REDUCE, dtype, op, elements, root, &c));
  size_t *counts = tt_alloc_zeroed(sizeof *counts * group->size);
  const void **ins = tt_alloc(sizeof *ins * group->size);
  tt_status_t status = TT_OK_STATUS;
  if (!counts || !ins) status = TT_ERROR(OUT_OF_MEMORY, "tpu_dist: reduce: no memory");
  if (!status) {
    for (uint32_t k = 0; k < group->size; k++) ins[k] = in;
    counts[root] = elements;
    status = reduce_mine(&c, dtype, op, ins, counts, out);
  }
  tt_free(counts);
  tt_free(ins);
  end(&c);
  return status;
}

tt_status_t tt__far_reduce_scatter(tt_group_t *group, tt_dtype_t dtype, tt_reduce_op_t op,
                                   const void *const *ins, void *out, const size_t *elements) {
  call_t c;
  size_t total = 0;
  for (uint32_t k = 0; k < group->size; k++) total += elements[k];
  TT_RETURN_IF_ERROR(tt_reduce_check(dtype, op));
  TT_RETURN_IF_ERROR(begin(group, TT_COLLECTIVE_REDUCE_SCATTER, dtype, op, total, 0, &c));
  tt_status_t status = reduce_mine(&c, dtype, op, ins, elements, out);
  end(&c);
  return status;
}

// --- data movement
// ---------------------------------------------------------------------------------

tt_status_t tt__far_broadcast(tt_group_t *group, tt_dtype_t dtype, const void *in, void *out,
                              size_t elements, uint32_t root) {
  call_t c;
  TT_RETURN_IF_ERROR(
      begin(group, TT_COLLECTIVE_BROADCAST, dtype, TT_REDUCE_SUM, elements, root, &c));
  if (group->rank != root) add_receive(&c, root, out, elements);
  for (uint32_t k = 0; group->rank == root && k < group->size; k++) {
    if (k != root) add_send(&c, k, in, elements);
  }
  tt_status_t status = run(&c);
  end(&c);
  return status;
}

static void copy_own(void *to, const void *from, size_t bytes) {
  if (bytes && to != from) memmove(to, from, bytes);
}

tt_status_t tt__far_all_gather(tt_group_t *group, tt_dtype_t dtype, const void *in,
                               void *const *outs, const size_t *elements) {
  call_t c;
  size_t total = 0;
  for (uint32_t k = 0; k < group->size; k++) total += elements[k];
  TT_RETURN_IF_ERROR(begin(group, TT_COLLECTIVE_ALL_GATHER, dtype, TT_REDUCE_SUM, total, 0, &c));
  for (uint32_t k = 0; k < group->size; k++) {
    if (k == group->rank) continue;
    add_send(&c, k, in, elements[group->rank]);
    add_receive(&c, k, outs[k], elements[k]);
  }
  tt_status_t status = run(&c);
  copy_own(outs[group->rank], in, elements[group->rank] * c.element_bytes);
  end(&c);
  return status;
}

tt_status_t tt__far_gather(tt_group_t *group, tt_dtype_t dtype, const void *in, void *const *outs,
                           size_t elements, uint32_t root) {
  call_t c;
  TT_RETURN_IF_ERROR(begin(group, TT_COLLECTIVE_GATHER, dtype, TT_REDUCE_SUM, elements, root, &c));
  if (group->rank != root) add_send(&c, root, in, elements);
  for (uint32_t k = 0; group->rank == root && k < group->size; k++) {
    if (k != root) add_receive(&c, k, outs[k], elements);
  }
  tt_status_t status = run(&c);
  if (group->rank == root) copy_own(outs[root], in, elements * c.element_bytes);
  end(&c);
  return status;
}

tt_status_t tt__far_scatter(tt_group_t *group, tt_dtype_t dtype, const void *const *ins, void *out,
                            size_t elements, uint32_t root) {
  call_t c;
  TT_RETURN_IF_ERROR(begin(group, TT_COLLECTIVE_SCATTER, dtype, TT_REDUCE_SUM, elements, root, &c));
  if (group->rank != root) add_receive(&c, root, out, elements);
  for (uint32_t k = 0; group->rank == root && k < group->size; k++) {
    if (k != root) add_send(&c, k, ins[k], elements);
  }
  tt_status_t status = run(&c);
  if (group->rank == root) copy_own(out, ins[root], elements * c.element_bytes);
  end(&c);
  return status;
}

// The lengths go first: what is sent and what is expected may differ.
static tt_status_t exchange_lengths(call_t *c, const size_t *in_elements, size_t *lengths) {
  for (uint32_t k = 0; k < c->group->size; k++) {
    if (k == c->group->rank) continue;
    add(c->sends, &c->send_count, k, &in_elements[k], sizeof *lengths);
    add(c->receives, &c->receive_count, k, &lengths[k], sizeof *lengths);
  }
  lengths[c->group->rank] = in_elements[c->group->rank];
  return run(c);
}

tt_status_t tt__far_all_to_all(tt_group_t *group, tt_dtype_t dtype, const void *const *ins,
                               const size_t *in_elements, void *const *outs,
                               const size_t *out_elements) {
  call_t c;
  TT_RETURN_IF_ERROR(begin(group, TT_COLLECTIVE_ALL_TO_ALL, dtype, TT_REDUCE_SUM, 0, 0, &c));
  size_t *lengths = tt_alloc(sizeof *lengths * group->size);
  tt_status_t status = lengths ? exchange_lengths(&c, in_elements, lengths)
                               : TT_ERROR(OUT_OF_MEMORY, "tpu_dist: all_to_all: no memory");
  for (uint32_t k = 0; !status && k < group->size; k++) {
    if (lengths[k] != out_elements[k]) {
      status = fail(group, c.what,
                    TT_ERROR(INVALID_ARGUMENT, "rank %u sends %zu elements, %zu are expected", k,
                             lengths[k], out_elements[k]));
    }
    if (k == group->rank) continue;
    add_send(&c, k, ins[k], in_elements[k]);
    add_receive(&c, k, outs[k], out_elements[k]);
  }
  if (!status) status = run(&c);
  uint32_t own = group->rank;
  if (!status) copy_own(outs[own], ins[own], in_elements[own] * c.element_bytes);
  tt_free(lengths);
  end(&c);
  return status;
}

// --- messages
// --------------------------------------------------------------------------------------

// A message is its length, then its data.
tt_status_t tt__far_send(tt_group_t *group, const void *data, size_t bytes, uint32_t to,
                         uint32_t tag) {
  tt_link_t *link = &group->far->messages;
  const tt_part_t parts[2] = {{to, &bytes, sizeof bytes}, {to, (void *)(uintptr_t)data, bytes}};
  tt_status_t status =
      link->exchange(link->context, parts, bytes ? 2 : 1, NULL, 0, tag, timeout_of(group));
  return status ? fail(group, "send", status) : TT_OK_STATUS;
}

static tt_status_t receive_data(tt_group_t *group, void *data, size_t sent, size_t bytes,
                                uint32_t from, uint32_t tag) {
  tt_link_t *link = &group->far->messages;
  const tt_part_t part = {from, data, bytes};
  if (sent != bytes) {
    return fail(
        group, "receive",
        TT_ERROR(INVALID_ARGUMENT, "rank %u sent %zu bytes, %zu are expected", from, sent, bytes));
  }
  if (!bytes) return TT_OK_STATUS;
  tt_status_t status = link->exchange(link->context, NULL, 0, &part, 1, tag, timeout_of(group));
  return status ? fail(group, "receive", status) : TT_OK_STATUS;
}

tt_status_t tt__far_receive(tt_group_t *group, void *data, size_t bytes, uint32_t from,
                            uint32_t tag) {
  tt_link_t *link = &group->far->messages;
  size_t sent = 0;
  const tt_part_t part = {from, &sent, sizeof sent};
  tt_status_t status = link->exchange(link->context, NULL, 0, &part, 1, tag, timeout_of(group));
  return status ? fail(group, "receive", status)
                : receive_data(group, data, sent, bytes, from, tag);
}

tt_status_t tt__far_receive_any(tt_group_t *group, void *data, size_t bytes, uint32_t tag,
                                uint32_t *out_from) {
  tt_link_t *link = &group->far->messages;
  size_t sent = 0;
  tt_status_t status =
      link->receive_any(link->context, &sent, sizeof sent, tag, timeout_of(group), out_from);
  return status ? fail(group, "receive from any rank", status)
                : receive_data(group, data, sent, bytes, *out_from, tag);
}
