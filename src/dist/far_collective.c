// Collectives on several hosts, in three stages: inside each host (where the ranks also compare
// what they call), between the hosts' speakers (who compare it again), and inside each host again.
// Arrays of all ranks lie host by host on the way.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "dist/far.h"
#include "dist/internal.h"

// From this many bytes on each speaker reduces a share of an all_reduce and collects the others'.
#define SHARED_BYTES ((size_t)32 << 10)
// How much longer than the timeout who only waits for others waits: who knows the reason says it.
#define GRACE_S 2.0

// What a speaker says of its host's ranks.
typedef struct record_s {
  tt_collective_header_t header;
  uint32_t code;  // TT_OK, or why they cannot go on
  char failure[252];
} record_t;

typedef struct call_s {
  tt_group_t *group;
  tt_far_t *far;
  const tt_collective_t *c;
  tt_collective_header_t header;
  const char *what;
  double timeout_s;
  size_t element_bytes;
  tt_dtype_t wide;              // what a reduction goes on in
  tt_part_t *sends, *receives;  // room for two a rank each
  uint32_t send_count, receive_count;
  void *buffers[12];  // more than any kind needs; freed at the call's end
  uint32_t buffer_count;
} call_t;

// --- stages -------------------------------------------------------------------------------------

static void add(tt_part_t *parts, uint32_t *count, uint32_t rank, const void *data, size_t bytes) {
  if (bytes) parts[(*count)++] = (tt_part_t){rank, (void *)(uintptr_t)data, bytes};
}
static void add_send(call_t *call, uint32_t rank, const void *data, size_t bytes) {
  add(call->sends, &call->send_count, rank, data, bytes);
}
static void add_receive(call_t *call, uint32_t rank, void *data, size_t bytes) {
  add(call->receives, &call->receive_count, rank, data, bytes);
}

static tt_status_t run_for(call_t *call, double timeout_s) {
  tt_link_t *link = &call->far->collectives;
  tt_status_t status = link->exchange(link->context, call->sends, call->send_count, call->receives,
                                      call->receive_count, 0, timeout_s);
  call->send_count = call->receive_count = 0;
  return tt_status_annotate(status, "tpu_dist: %s on rank %u", call->what, call->group->rank);
}
static tt_status_t run(call_t *call) { return run_for(call, call->timeout_s + GRACE_S); }

static tt_status_t no_memory(const call_t *call) {
  return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: %s on rank %u: no memory", call->what,
                  call->group->rank);
}

static void *reserve(call_t *call, size_t bytes) {
  return call->buffers[call->buffer_count++] = tt_alloc(bytes);
}

// Who sends and receives for the host: the call's root for its own.
static uint32_t speaker(const call_t *call, uint32_t host) {
  uint32_t root = call->c->root;
  return call->far->host_of[root] == host ? root : call->far->order[call->far->starts[host]];
}
static bool speaks(const call_t *call) {
  return speaker(call, call->far->host) == call->group->rank;
}

// The place of this host's speaker among its ranks.
static uint32_t speaker_place(const call_t *call) {
  const tt_far_t *far = call->far;
  uint32_t place = 0;
  while (far->order[far->starts[far->host] + place] != speaker(call, far->host)) place++;
  return place;
}

// A stage inside the host, for at most that long.
static tt_status_t inside(call_t *call, const tt_collective_t *stage, double timeout_s) {
  tt_collective_t limited = *stage;
  limited.timeout_s = timeout_s;
  return tt__shared_run(call->far->local, &limited, &call->header);
}

// Every speaker tells every other one what its host's ranks call, or why they cannot.
static tt_status_t compare(call_t *call, tt_status_t status) {
  uint32_t hosts = call->far->host_count, own = call->far->host;
  record_t *records = reserve(call, sizeof *records * hosts);
  if (!records) return tt_status_join(status, no_memory(call));
  record_t *mine = &records[own];
  *mine = (record_t){.header = call->header, .code = (uint32_t)tt_status_code(status)};
  snprintf(mine->failure, sizeof mine->failure, "%s", tt_status_message(status));
  for (uint32_t h = 0; h < hosts; h++) {
    if (h == own) continue;
    add_send(call, speaker(call, h), mine, sizeof *mine);
    add_receive(call, speaker(call, h), &records[h], sizeof *mine);
  }
  // With bad news it does not wait long for those who are not there yet.
  status = tt_status_join(status, status ? run_for(call, GRACE_S) : run(call));
  for (uint32_t h = 0; !status && h < hosts; h++) {
    const record_t *theirs = &records[h];
    if (theirs->code) {
      status = tt_status_make((tt_code_t)theirs->code, __FILE__, __LINE__, "%s", theirs->failure);
    } else if (memcmp(&theirs->header, &mine->header, sizeof mine->header) != 0) {
      status = tt__header_mismatch(call->group, &mine->header, speaker(call, h), &theirs->header);
    }
  }
  return status;
}

// The first stage. The speakers go on when all ranks of all hosts are there and agree.
static tt_status_t enter(call_t *call, const tt_collective_t *stage) {
  tt_status_t status = inside(call, stage, call->timeout_s);
  return speaks(call) ? compare(call, status) : status;
}

// The last stage. Who is no speaker has waited for other hosts here.
static tt_status_t leave(call_t *call, const tt_collective_t *stage) {
  return inside(call, stage, 2 * call->timeout_s + GRACE_S);
}

static tt_status_t leave_by_broadcast(call_t *call, tt_dtype_t dtype, void *data, size_t elements) {
  return leave(call, &(tt_collective_t){.kind = TT_COLLECTIVE_BROADCAST,
                                        .dtype = dtype,
                                        .root = speaker_place(call),
                                        .in = data,
                                        .out = data,
                                        .elements = elements});
}

static const tt_collective_t meeting_point = {.kind = TT_COLLECTIVE_BARRIER, .dtype = TT_U8};

static tt_status_t barrier(call_t *call) {
  TT_RETURN_IF_ERROR(enter(call, &meeting_point));
  return leave(call, &meeting_point);
}

// --- arrays of all ranks ------------------------------------------------------------------------

static uint32_t hosts_ranks(const tt_far_t *far, uint32_t host) {
  return far->starts[host + 1] - far->starts[host];
}

// The elements of each host's ranks together; the caller gives room.
static void lengths_by_host(const tt_far_t *far, const size_t *lengths, size_t *firsts,
                            size_t *counts) {
  size_t at = 0;
  for (uint32_t h = 0; h < far->host_count; h++) {
    firsts[h] = at;
    for (uint32_t i = far->starts[h]; i < far->starts[h + 1]; i++) at += lengths[far->order[i]];
    counts[h] = at - firsts[h];
  }
}

// The array that the list's arrays are parts of, host by host; NULL where they lie elsewhere.
static char *whole_of(const call_t *call, const void *const *list, const size_t *lengths) {
  const tt_far_t *far = call->far;
  const char *first = list[far->order[0]], *at = first;
  for (uint32_t i = 0; i < call->group->size; i++) {
    uint32_t rank = far->order[i];
    if (lengths[rank] && list[rank] != at) return NULL;
    at += lengths[rank] * call->element_bytes;
  }
  return (char *)(uintptr_t)first;
}

// Copies between such an array and the list's.
static void copy_parts(const call_t *call, char *whole, const void *const *list,
                       const size_t *lengths, bool to_list) {
  for (uint32_t i = 0; i < call->group->size; i++) {
    uint32_t rank = call->far->order[i];
    size_t bytes = lengths[rank] * call->element_bytes;
    void *part = (void *)(uintptr_t)list[rank];
    if (bytes) memcpy(to_list ? part : whole, to_list ? whole : part, bytes);
    whole += bytes;
  }
}

// This host's part of `whole` as lists of its ranks' arrays and lengths.
static bool host_lists(call_t *call, char *whole, const size_t *lengths, void ***out_list,
                       size_t **out_lengths) {
  const tt_far_t *far = call->far;
  uint32_t count = hosts_ranks(far, far->host);
  *out_list = reserve(call, sizeof **out_list * count);
  *out_lengths = reserve(call, sizeof **out_lengths * count);
  for (uint32_t k = 0; *out_list && *out_lengths && k < count; k++) {
    (*out_list)[k] = whole;
    (*out_lengths)[k] = lengths[far->order[far->starts[far->host] + k]];
    whole += (*out_lengths)[k] * call->element_bytes;
  }
  return *out_list && *out_lengths;
}

// Every speaker sends its host's part of `whole` to the others, and gets theirs.
static tt_status_t collect(call_t *call, char *whole, const size_t *firsts, const size_t *counts) {
  size_t size = call->element_bytes;
  uint32_t own = call->far->host;
  for (uint32_t h = 0; h < call->far->host_count; h++) {
    if (h == own) continue;
    add_send(call, speaker(call, h), whole + firsts[own] * size, counts[own] * size);
    add_receive(call, speaker(call, h), whole + firsts[h] * size, counts[h] * size);
  }
  return run(call);
}

static tt_status_t all_gather(call_t *call) {
  const tt_collective_t *c = call->c;
  tt_far_t *far = call->far;
  const size_t *lengths = c->out_lengths;
  const void *const *outs = (const void *const *)(const void *)c->outs;
  char *in_place = whole_of(call, outs, lengths), *whole = in_place;
  if (!whole) whole = reserve(call, call->header.elements * call->element_bytes);
  size_t *firsts = reserve(call, 2 * sizeof *firsts * far->host_count), *local_lengths;
  if (!whole || !firsts) return no_memory(call);
  size_t *counts = firsts + far->host_count;
  lengths_by_host(far, lengths, firsts, counts);
  void **list;
  char *own = whole + firsts[far->host] * call->element_bytes;
  if (!host_lists(call, own, lengths, &list, &local_lengths)) return no_memory(call);
  tt_collective_t stage = {.kind = TT_COLLECTIVE_GATHER,
                           .dtype = c->dtype,
                           .root = speaker_place(call),
                           .in = c->in,
                           .outs = list,
                           .out_lengths = local_lengths};
  TT_RETURN_IF_ERROR(enter(call, &stage));
  if (speaks(call)) TT_RETURN_IF_ERROR(collect(call, whole, firsts, counts));
  TT_RETURN_IF_ERROR(leave_by_broadcast(call, c->dtype, whole, call->header.elements));
  if (!in_place) copy_parts(call, whole, outs, lengths, true);
  return TT_OK_STATUS;
}

static tt_status_t broadcast(call_t *call) {
  const tt_collective_t *c = call->c;
  uint32_t own = call->far->host, root_host = call->far->host_of[c->root];
  size_t bytes = c->elements * call->element_bytes;
  bool root = call->group->rank == c->root;
  TT_RETURN_IF_ERROR(enter(call, &meeting_point));
  for (uint32_t h = 0; root && h < call->far->host_count; h++) {
    if (h != own) add_send(call, speaker(call, h), c->in, bytes);
  }
  if (speaks(call) && own != root_host) add_receive(call, c->root, c->out, bytes);
  TT_RETURN_IF_ERROR(run(call));
  void *data = root ? (void *)(uintptr_t)c->in : c->out;
  return leave_by_broadcast(call, c->dtype, data, c->elements);
}

// --- reductions ---------------------------------------------------------------------------------

// The first stage: the speaker gets its host's reduction, in the wide dtype. `room` for it may be
// NULL.
static tt_status_t reduce_inside(call_t *call, const void *in, size_t elements, void *room,
                                 const char **out_partial) {
  const tt_collective_t *c = call->c;
  if (call->wide != c->dtype) {
    room = reserve(call, elements * tt_dtype_size(call->wide));
    if (!room) return no_memory(call);
    tt_reduce_widen(c->dtype, room, in, elements);
    in = room;
  }
  if (hosts_ranks(call->far, call->far->host) == 1) {
    *out_partial = in;
    return enter(call, &meeting_point);
  }
  if (!room && speaks(call)) {
    room = reserve(call, elements * tt_dtype_size(call->wide));
    if (!room) return no_memory(call);
  }
  *out_partial = room;
  return enter(call, &(tt_collective_t){.kind = TT_COLLECTIVE_REDUCE,
                                        .dtype = call->wide,
                                        .op = tt_reduce_inner(c->op),
                                        .root = speaker_place(call),
                                        .in = in,
                                        .out = room,
                                        .elements = elements});
}

// Between the speakers: host h's gets the elements [firsts[h], firsts[h] + counts[h]) of everyone's
// `partial` reduced into `out`, in the order of the hosts.
static tt_status_t reduce_between(call_t *call, const char *partial, const size_t *firsts,
                                  const size_t *counts, void *out) {
  const tt_collective_t *c = call->c;
  uint32_t hosts = call->far->host_count, own = call->far->host;
  size_t size = tt_dtype_size(call->wide), mine = counts[own];
  char *parts = reserve(call, hosts * mine * size);
  const void **ins = reserve(call, sizeof *ins * hosts);
  if (!parts || !ins) return no_memory(call);
  for (uint32_t h = 0; h < hosts; h++) {
    ins[h] = h == own ? partial + firsts[h] * size : parts + h * mine * size;
    if (h == own) continue;
    add_send(call, speaker(call, h), partial + firsts[h] * size, counts[h] * size);
    add_receive(call, speaker(call, h), parts + h * mine * size, mine * size);
  }
  TT_RETURN_IF_ERROR(run(call));
  if (!mine) return TT_OK_STATUS;
  void *reduced = call->wide == c->dtype ? out : parts;
  tt_reduce(call->wide, tt_reduce_inner(c->op), reduced, ins, hosts, mine);
  if (call->wide != c->dtype || c->op == TT_REDUCE_AVG)
    tt_reduce_finish(c->dtype, c->op, out, reduced, call->group->size, mine);
  return TT_OK_STATUS;
}

static tt_status_t all_reduce_between(call_t *call, const char *partial) {
  const tt_collective_t *c = call->c;
  uint32_t hosts = call->far->host_count, own = call->far->host;
  size_t *firsts = reserve(call, 2 * sizeof *firsts * hosts), *counts = firsts + hosts;
  if (!firsts) return no_memory(call);
  bool shared = c->elements * call->element_bytes >= SHARED_BYTES;
  size_t share = shared ? (c->elements + hosts - 1) / hosts : c->elements;
  for (uint32_t h = 0; h < hosts; h++) {
    firsts[h] = shared ? share * h < c->elements ? share * h : c->elements : 0;
    counts[h] = c->elements - firsts[h] < share ? c->elements - firsts[h] : share;
  }
  char *out = c->out;
  TT_RETURN_IF_ERROR(
      reduce_between(call, partial, firsts, counts, out + firsts[own] * call->element_bytes));
  return shared ? collect(call, out, firsts, counts) : TT_OK_STATUS;
}

static tt_status_t all_reduce(call_t *call) {
  const tt_collective_t *c = call->c;
  const char *partial = NULL;
  TT_RETURN_IF_ERROR(reduce_inside(call, c->in, c->elements, c->out, &partial));
  if (speaks(call)) TT_RETURN_IF_ERROR(all_reduce_between(call, partial));
  return leave_by_broadcast(call, c->dtype, c->out, c->elements);
}

static tt_status_t reduce(call_t *call) {
  const tt_collective_t *c = call->c;
  tt_far_t *far = call->far;
  const char *partial = NULL;
  void *room = call->group->rank == c->root ? c->out : NULL;
  TT_RETURN_IF_ERROR(reduce_inside(call, c->in, c->elements, room, &partial));
  size_t *firsts = reserve(call, 2 * sizeof *firsts * far->host_count);
  if (!firsts) return no_memory(call);
  memset(firsts, 0, 2 * sizeof *firsts * far->host_count);
  size_t *counts = firsts + far->host_count;
  counts[far->host_of[c->root]] = c->elements;
  if (speaks(call)) TT_RETURN_IF_ERROR(reduce_between(call, partial, firsts, counts, room));
  return leave(call, &meeting_point);
}

static tt_status_t reduce_scatter(call_t *call) {
  const tt_collective_t *c = call->c;
  tt_far_t *far = call->far;
  char *whole = whole_of(call, c->ins, c->in_lengths);
  size_t *firsts = reserve(call, 2 * sizeof *firsts * far->host_count), *local_lengths;
  bool packs = !whole;
  if (packs) whole = reserve(call, call->header.elements * call->element_bytes);
  if (!whole || !firsts) return no_memory(call);
  if (packs) copy_parts(call, whole, c->ins, c->in_lengths, false);
  size_t *counts = firsts + far->host_count;
  lengths_by_host(far, c->in_lengths, firsts, counts);
  const char *partial = NULL;
  TT_RETURN_IF_ERROR(reduce_inside(call, whole, call->header.elements, NULL, &partial));
  char *mine = reserve(call, counts[far->host] * call->element_bytes);
  void **list;
  if (!mine || !host_lists(call, mine, c->in_lengths, &list, &local_lengths)) {
    return no_memory(call);
  }
  if (speaks(call)) TT_RETURN_IF_ERROR(reduce_between(call, partial, firsts, counts, mine));
  return leave(call, &(tt_collective_t){.kind = TT_COLLECTIVE_SCATTER,
                                        .dtype = c->dtype,
                                        .root = speaker_place(call),
                                        .ins = (const void *const *)(const void *)list,
                                        .in_lengths = local_lengths,
                                        .out = c->out});
}

// --- from rank to rank --------------------------------------------------------------------------

static void copy_own(void *to, const void *from, size_t bytes) {
  if (bytes && to != from) memmove(to, from, bytes);
}

static tt_status_t gather(call_t *call) {
  const tt_collective_t *c = call->c;
  uint32_t rank = call->group->rank;
  size_t bytes = c->elements * call->element_bytes;
  TT_RETURN_IF_ERROR(barrier(call));
  if (rank != c->root) add_send(call, c->root, c->in, bytes);
  for (uint32_t k = 0; rank == c->root && k < call->group->size; k++) {
    if (k != rank) add_receive(call, k, c->outs[k], bytes);
  }
  if (rank == c->root) copy_own(c->outs[rank], c->in, bytes);
  return run(call);
}

static tt_status_t scatter(call_t *call) {
  const tt_collective_t *c = call->c;
  uint32_t rank = call->group->rank;
  size_t bytes = c->elements * call->element_bytes;
  TT_RETURN_IF_ERROR(barrier(call));
  if (rank != c->root) add_receive(call, c->root, c->out, bytes);
  for (uint32_t k = 0; rank == c->root && k < call->group->size; k++) {
    if (k != rank) add_send(call, k, c->ins[k], bytes);
  }
  if (rank == c->root) copy_own(c->out, c->ins[rank], bytes);
  return run(call);
}

// The lengths go first: what is sent and what is expected may differ.
static tt_status_t check_lengths(call_t *call) {
  uint32_t size = call->group->size, rank = call->group->rank;
  const tt_collective_t *c = call->c;
  size_t *lengths = reserve(call, sizeof *lengths * size);
  if (!lengths) return no_memory(call);
  lengths[rank] = c->in_lengths[rank];
  for (uint32_t k = 0; k < size; k++) {
    if (k == rank) continue;
    add_send(call, k, &c->in_lengths[k], sizeof *lengths);
    add_receive(call, k, &lengths[k], sizeof *lengths);
  }
  TT_RETURN_IF_ERROR(run(call));
  for (uint32_t k = 0; k < size; k++) {
    if (lengths[k] == c->out_lengths[k]) continue;
    return TT_ERROR(
        INVALID_ARGUMENT,
        "tpu_dist: all_to_all: rank %u sends %zu elements to rank %u, which expects %zu", k,
        lengths[k], rank, c->out_lengths[k]);
  }
  return TT_OK_STATUS;
}

static tt_status_t all_to_all(call_t *call) {
  const tt_collective_t *c = call->c;
  uint32_t rank = call->group->rank;
  size_t size = call->element_bytes;
  TT_RETURN_IF_ERROR(barrier(call));
  TT_RETURN_IF_ERROR(check_lengths(call));
  for (uint32_t k = 0; k < call->group->size; k++) {
    if (k == rank) continue;
    add_send(call, k, c->ins[k], c->in_lengths[k] * size);
    add_receive(call, k, c->outs[k], c->out_lengths[k] * size);
  }
  copy_own(c->outs[rank], c->ins[rank], c->in_lengths[rank] * size);
  return run(call);
}

// --- running one --------------------------------------------------------------------------------

tt_status_t tt__far_run(tt_group_t *group, const tt_collective_t *c) {
  static tt_status_t (*const kinds[])(call_t *) = {
      [TT_COLLECTIVE_BARRIER] = barrier,       [TT_COLLECTIVE_ALL_REDUCE] = all_reduce,
      [TT_COLLECTIVE_REDUCE] = reduce,         [TT_COLLECTIVE_BROADCAST] = broadcast,
      [TT_COLLECTIVE_ALL_GATHER] = all_gather, [TT_COLLECTIVE_REDUCE_SCATTER] = reduce_scatter,
      [TT_COLLECTIVE_ALL_TO_ALL] = all_to_all, [TT_COLLECTIVE_GATHER] = gather,
      [TT_COLLECTIVE_SCATTER] = scatter,
  };
  call_t call = {.group = group,
                 .far = group->far,
                 .c = c,
                 .header = tt__header_next(group, c),
                 .what = tt__kind_name(c->kind),
                 .timeout_s = tt__timeout(group, c->timeout_s),
                 .element_bytes = tt_dtype_size(c->dtype),
                 .wide = tt_reduce_wide(c->dtype, c->op)};
  group->collectives++;
  call.sends = tt_alloc(4 * sizeof *call.sends * group->size);
  call.receives = call.sends + 2 * (size_t)group->size;
  tt_status_t status = call.sends ? kinds[c->kind](&call) : no_memory(&call);
  for (uint32_t i = 0; i < call.buffer_count; i++) tt_free(call.buffers[i]);
  tt_free(call.sends);
  return status ? tt__far_fail(group, status) : TT_OK_STATUS;
}
