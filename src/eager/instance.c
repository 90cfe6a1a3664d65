// The cache of op instances, and how one is made on a miss.
#include <string.h>

#include "eager/internal.h"

static tt_table_t table;  // of tt__instance_t
static uint32_t last_id, looks, most = 1 << 14;

typedef struct words_s {
  const uint64_t *words;
  uint32_t count;
} words_t;

static bool matches(const void *entry, const void *key) {
  const tt__instance_t *n = entry;
  const words_t *k = key;
  return n->key_count == k->count && memcmp(n->key, k->words, k->count * sizeof *k->words) == 0;
}

// NULL before the table has any room.
static void **place_of(uint64_t hash, const uint64_t *words, uint32_t count) {
  const words_t key = {words, count};
  return tt_table_place(&table, hash, matches, &key);
}

tt__instance_t *tt__instance_find(const tt__frame_t *frame) {
  void **place = place_of(frame->hash, frame->key, frame->key_count);
  tt__instance_t *n = place ? *place : NULL;
  if (__builtin_expect(n && !n->used, 0)) n->used = true;
  return n;
}

void tt__instance_limit(uint32_t count) { most = count; }

static bool drop_unused(void *entry, uint64_t *excess) {
  tt__instance_t *n = entry;
  bool stays = n->used || n->pinned || n->held == looks;
  n->used = false;
  if (stays) return false;
  --*excess;
  tt__engine.stats.instances--;
  tt__instance_release(n);
  return true;
}

// A quarter at a time, so that looking through them all is rare.
static void make_room(void) {
  if (table.count < most) return;
  tt__windows_hold(++looks);
  tt_table_evict(&table, most / 4 + 1, drop_unused);
}

tt_status_t tt__instance_insert(tt__instance_t *instance) {
  make_room();
  if (!tt_table_reserve(&table)) {
    tt__instance_release(instance);
    return tt__no_host_memory();
  }
  void **place = place_of(instance->hash, instance->key, instance->key_count);
  if (*place) {
    tt__instance_release(instance);
    return TT_OK_STATUS;
  }
  *place = instance;
  table.count++;
  instance->id = last_id++;
  tt__engine.stats.instances++;
  return TT_OK_STATUS;
}

void tt__instance_retain(tt__instance_t *n) {
  atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
}

void tt__instance_release(tt__instance_t *n) {
  if (!n || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1) return;
  for (uint32_t i = 0; i < n->program_count; i++) {
    tt_executable_release(n->programs[i].executable);
  }
  tt_free(n->programs);
  tt_free(n->inputs);
  tt_graph_destroy(n->graph);
  tt_status_release(n->unsupported);
  tt_arena_deinit(&n->arena);
  tt_free(n);
}

// --- the copy of the call ------------------------------------------------------------------------

static bool copy_tensor(tt__instance_t *n, const tt__frame_t *frame, const tt_tensor_t *from,
                        tt_tensor_t *to) {
  *to = *from;
  to->storage = NULL;
  to->handle = NULL;
  if (from->rank == TT_NO_TENSOR) return true;
  to->sizes = tt_arena_copy(&n->arena, from->sizes, from->rank * sizeof(int64_t));
  to->strides = tt_arena_copy(&n->arena, from->strides, from->rank * sizeof(int64_t));
  if (!to->sizes || !to->strides) return false;
  if (from->flags & TT_TENSOR_HOST) return true;
  for (uint32_t s = 0; s < frame->slot_count; s++) {
    if (frame->slots[s].storage == from->storage) to->handle = (const void *)(uintptr_t)s;
  }
  return true;
}

static bool copy_tensors(tt__instance_t *n, const tt__frame_t *frame, const tt_arg_t *from,
                         uint32_t count, tt_arg_t *to) {
  tt_tensor_t *copies = TT_ARENA_ARRAY(&n->arena, tt_tensor_t, count);
  if (!copies) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (!copy_tensor(n, frame, &from->u.tensors[i], &copies[i])) return false;
  }
  to->u.tensors = copies;
  return true;
}

static bool copy_argument(tt__instance_t *n, const tt__frame_t *frame, const tt_arg_t *from,
                          tt_arg_t *to) {
  size_t size = 0;
  *to = *from;
  switch (from->kind) {
    case TT_ARG_TENSOR:
      return copy_tensors(n, frame, from, 1, to);
    case TT_ARG_TENSORS:
      return copy_tensors(n, frame, from, from->count, to);
    case TT_ARG_INTS:
      size = sizeof(int64_t);
      break;
    case TT_ARG_FLOATS:
      size = sizeof(double);
      break;
    case TT_ARG_SCALARS:
      size = sizeof(tt_number_t);
      break;
    case TT_ARG_BOOLS:
    case TT_ARG_STRING:
      size = 1;
      break;
    case TT_ARG_GENERATOR:
      to->u.generator = NULL;
      return true;
    default:
      return true;
  }
  to->u.ints = tt_arena_copy(&n->arena, from->u.ints, from->count * size);
  return to->u.ints != NULL;
}

static bool copy_call(tt__instance_t *n, const tt__frame_t *frame) {
  const tt_call_t *from = frame->call;
  tt_arg_t *args = TT_ARENA_ARRAY(&n->arena, tt_arg_t, from->arg_count);
  n->slots = tt_arena_copy(&n->arena, frame->slots, frame->slot_count * sizeof *n->slots);
  n->key = tt_arena_copy(&n->arena, frame->key, frame->key_count * sizeof *n->key);
  if (!args || !n->slots || !n->key) return false;
  n->key_count = frame->key_count;
  n->hash = frame->hash;
  n->slot_count = frame->slot_count;
  n->call = *from;
  n->call.args = args;
  for (uint32_t i = 0; i < from->arg_count; i++) {
    if (!copy_argument(n, frame, &from->args[i], &args[i])) return false;
  }
  return true;
}

// --- results -------------------------------------------------------------------------------------

static tt_status_t copy_outs(tt__instance_t *n, const tt_inferred_t *inferred) {
  n->out_count = inferred->out_count;
  n->outs = tt_arena_copy(&n->arena, inferred->outs, n->out_count * sizeof *n->outs);
  if (!n->outs) return tt__no_host_memory();
  for (uint32_t i = 0; i < n->out_count; i++) {
    tt_out_meta_t *m = &n->outs[i];
    if (m->rank == TT_NO_TENSOR) continue;
    if (m->rank > TT_MAX_RANK) {
      return TT_ERROR(INVALID_ARGUMENT, "a tpu tensor has at most %d dimensions, not %u",
                      TT_MAX_RANK, m->rank);
    }
    m->sizes = tt_arena_copy(&n->arena, m->sizes, m->rank * sizeof(int64_t));
    m->strides = tt_arena_copy(&n->arena, m->strides, m->rank * sizeof(int64_t));
    if (!m->sizes || !m->strides) return tt__no_host_memory();
  }
  return TT_OK_STATUS;
}

// A result of a tensor's own type, dense.
static bool out_like(tt__instance_t *n, const tt_tensor_t *t, tt_out_meta_t *m) {
  int64_t *strides = TT_ARENA_ARRAY(&n->arena, int64_t, t->rank), stride = 1;
  if (!strides) return false;
  for (uint32_t d = t->rank; d-- > 0;) {
    strides[d] = stride;
    stride *= t->sizes[d] > 1 ? t->sizes[d] : 1;
  }
  *m = (tt_out_meta_t){t->dtype, t->rank, t->sizes, strides};
  return true;
}

static bool is_list(const tt_arg_t *a) { return a->kind == TT_ARG_TENSORS; }

// The arguments that an in-place or out= form writes, one bit each.
static uint64_t written_arguments(const tt__instance_t *n, uint64_t told) {
  uint32_t count = n->call.arg_count;
  if (told) return told;
  if (n->call.variant == TT_INPLACE) return 1;
  if (count && is_list(&n->call.args[count - 1])) return UINT64_C(1) << (count - 1);
  uint64_t mask = 0;
  for (uint32_t i = 0; i < n->out_count && i < count; i++) mask |= UINT64_C(1) << (count - 1 - i);
  return mask;
}

// The tensors of those arguments in order: results' destinations.
static uint32_t list_destinations(const tt__instance_t *n, uint64_t mask,
                                  const tt_tensor_t **out_tensors) {
  uint32_t count = 0;
  for (uint32_t a = 0; a < n->call.arg_count && a < 64; a++) {
    const tt_arg_t *arg = &n->call.args[a];
    if (!(mask >> a & 1)) continue;
    uint32_t items = is_list(arg) ? arg->count : arg->kind == TT_ARG_TENSOR ? 1 : 0;
    for (uint32_t i = 0; i < items; i++) {
      if (out_tensors) out_tensors[count] = &arg->u.tensors[i];
      count++;
    }
  }
  return count;
}

// In-place and out= forms: every result has a destination.
static tt_status_t set_destinations(tt__instance_t *n, uint64_t told) {
  uint64_t mask = written_arguments(n, told);
  uint32_t count = list_destinations(n, mask, NULL);
  n->destinations = TT_ARENA_ARRAY(&n->arena, const tt_tensor_t *, count);
  if (!n->destinations) return tt__no_host_memory();
  list_destinations(n, mask, n->destinations);
  if (n->out_count == 0) {
    n->outs = TT_ARENA_ARRAY(&n->arena, tt_out_meta_t, count);
    if (!n->outs) return tt__no_host_memory();
    for (uint32_t i = 0; i < count; i++) {
      const tt_tensor_t *t = n->destinations[i];
      if (t->rank == TT_NO_TENSOR)
        n->outs[i] = (tt_out_meta_t){.rank = TT_NO_TENSOR};
      else if (!out_like(n, t, &n->outs[i]))
        return tt__no_host_memory();
    }
    n->out_count = count;
  }
  if (n->out_count > count) {
    return TT_ERROR(INTERNAL, "internal: %s writes %u tensors but has %u results; please report",
                    n->name, count, n->out_count);
  }
  for (uint32_t i = 0; i < n->out_count; i++) {
    const tt_tensor_t *t = n->destinations[i];
    if (t->rank != TT_NO_TENSOR && t->flags & TT_TENSOR_HOST) {
      return TT_ERROR(INVALID_ARGUMENT, "%s: a tensor to write is on the CPU", n->name);
    }
  }
  return TT_OK_STATUS;
}

// native_batch_norm in training: results 3 and 4 go to the running statistics. In evaluation its
// saved statistics are empty, as on the CPU.
static bool add_training_stats(tt__instance_t *n) {
  static const int64_t none = 0, one = 1;
  enum { STATS = 3, TRAINING = 5 };
  const tt_arg_t *args = n->call.args;
  if (n->out_count != STATS || n->call.arg_count <= TRAINING) return true;
  if (!args[TRAINING].u.i) {
    for (uint32_t i = 1; i < STATS; i++) n->outs[i].sizes = &none, n->outs[i].strides = &one;
    return true;
  }
  if (args[STATS].kind != TT_ARG_TENSOR) return true;
  tt_out_meta_t *outs = TT_ARENA_ARRAY(&n->arena, tt_out_meta_t, STATS + 2);
  if (!outs) return false;
  memcpy(outs, n->outs, STATS * sizeof *outs);
  for (uint32_t i = STATS; i < STATS + 2 && args[i].kind == TT_ARG_TENSOR; i++) {
    n->destinations[i] = args[i].u.tensor;
    if (!out_like(n, args[i].u.tensor, &outs[i])) return false;
    n->out_count++;
  }
  n->outs = outs;
  return true;
}

static tt_status_t set_fresh(tt__instance_t *n) {
  n->destinations = tt_arena_zeroed(&n->arena, (n->out_count + 2) * sizeof *n->destinations);
  if (!n->destinations) return tt__no_host_memory();
  n->returned_count = n->out_count;
  if (n->op->flags & TT_ATEN_TRAINING_STATS && !add_training_stats(n)) return tt__no_host_memory();
  return TT_OK_STATUS;
}

// How many random elements the call draws at most per stream of its lowering; a multiple of four.
static uint64_t count_random(const tt__instance_t *n) {
  if (!(n->op->flags & TT_ATEN_RANDOM)) return 0;
  uint64_t most = 1;
  for (uint32_t i = 0; i < n->out_count; i++) {
    uint64_t elements = 1;
    if (n->outs[i].rank == TT_NO_TENSOR) continue;
    for (uint32_t d = 0; d < n->outs[i].rank; d++) elements *= (uint64_t)n->outs[i].sizes[d];
    if (elements > most) most = elements;
  }
  return (most + 3) / 4 * 4;
}

static tt_status_t set_results(tt__instance_t *n, const tt_inferred_t *inferred) {
  TT_RETURN_IF_ERROR(copy_outs(n, inferred));
  bool functional = n->call.variant == TT_FUNCTIONAL;
  TT_RETURN_IF_ERROR(functional ? set_fresh(n) : set_destinations(n, inferred->mutated));
  n->fresh_results = TT_ARENA_ARRAY(&n->arena, uint32_t, n->out_count);
  if (!n->fresh_results) return tt__no_host_memory();
  for (uint32_t i = 0; i < n->out_count; i++) {
    if (n->outs[i].rank == TT_NO_TENSOR || n->destinations[i]) continue;
    n->fresh_results[n->fresh_count++] = i;
  }
  n->random_count = count_random(n);
  return TT_OK_STATUS;
}

static tt_status_t infer(tt__instance_t *n, const tt__frame_t *frame, tt_inferred_t *inferred) {
  if (n->op->flags & TT_ATEN_KEEP_SELF_DTYPE) {
    if (n->call.variant != TT_FUNCTIONAL) return TT_OK_STATUS;
    const tt_arg_t *self = &n->call.args[0];
    inferred->outs = TT_ARENA_ARRAY(&n->arena, tt_out_meta_t, 1);
    if (!inferred->outs || self->kind != TT_ARG_TENSOR) return tt__no_host_memory();
    inferred->out_count = 1;
    return out_like(n, self->u.tensor, inferred->outs) ? TT_OK_STATUS : tt__no_host_memory();
  }
  if (!tt__engine.hooks.infer) return TT_ERROR(INTERNAL, "internal: no inference is installed");
  return tt__engine.hooks.infer(tt__engine.hooks.context, frame->call, inferred);
}

// An op that an element type does not have is "not implemented" in PyTorch's words, and not one
// that the CPU should try: it has no answer either.
static tt_status_t as_unimplemented(const tt_call_t *call, tt_status_t status) {
  if (tt_status_code(status) != TT_TYPE) return status;
  char text[512];
  tt_status_t s = TT_ERROR(UNIMPLEMENTED, "%s: %s", tt__describe_call(call, text, sizeof text),
                           tt_status_message(status));
  tt_status_release(status);
  return s;
}

// Errors that are no plain "not implemented" say which call it was.
static tt_status_t explain(const tt_call_t *call, tt_status_t status) {
  if (tt_status_code(status) == TT_UNIMPLEMENTED) return status;
  char text[512];
  return tt_status_annotate(status, "%s", tt__describe_call(call, text, sizeof text));
}

static tt_status_t build(tt__instance_t *n, const tt__frame_t *frame) {
  if (!copy_call(n, frame)) return tt__no_host_memory();
  tt_arena_t arena;
  tt_arena_init(&arena, 4096);
  tt_inferred_t inferred = {.arena = &arena};
  tt_status_t s = infer(n, frame, &inferred);
  if (!s) s = set_results(n, &inferred);
  tt_arena_deinit(&arena);
  TT_RETURN_IF_ERROR(s);
  s = tt__lower_new_instance(n);
  if (s) s = as_unimplemented(frame->call, s);
  if (s && tt_status_code(s) == TT_UNIMPLEMENTED) {
    n->unsupported = s;
    return TT_OK_STATUS;
  }
  if (s) return explain(frame->call, s);
  n->window_words = 1 + n->slot_input_count;
  return TT_OK_STATUS;
}

tt_status_t tt__instance_create(const tt__frame_t *frame, tt__instance_t **out_instance) {
  *out_instance = NULL;
  tt__instance_t *n = tt_alloc_zeroed(sizeof *n);
  if (!n) return tt__no_host_memory();
  atomic_init(&n->refs, 1);
  tt_arena_init(&n->arena, 1024);
  n->op = frame->op;
  n->name = tt__call_name(frame->call);
  tt_status_t s = build(n, frame);
  if (s)
    tt__instance_release(n);
  else
    *out_instance = n;
  return s;
}

// --- its own program -----------------------------------------------------------------------------

// Marks the inputs whose memory goes to an output; bit o of `donated` stands for output o, the last
// bit for all the others.
static void mark_donations(const tt__instance_t *n, tt_graph_t *graph, uint64_t donated) {
  for (uint32_t o = 0; o < n->output_count; o++) {
    uint32_t input = n->outputs[o].input;
    if (input == TT__NO_INPUT) continue;
    bool on = donated >> (o < 63 ? o : 63) & 1;
    bool same = n->outputs[o].layout == n->slots[n->outputs[o].slot].layout;
    graph->donations[input] = !on ? TT_KEEP : same ? (int32_t)o + 1 : TT_DONATE;
  }
}

static tt_status_t compile(tt__instance_t *n, uint64_t donated, tt_executable_t **out_executable) {
  if (!n->graph) {
    // The first program took the graph: lower again, with the inputs in the same order.
    tt__input_t *inputs = n->inputs;
    uint32_t count = n->input_count;
    n->inputs = NULL;
    n->input_count = n->input_capacity = n->slot_input_count = n->output_count = 0;
    tt_status_t s = tt__lower_new_instance(n);
    bool same = !s && n->input_count == count;
    tt_free(inputs);
    TT_RETURN_IF_ERROR(s);
    TT_CHECK(same);
  }
  mark_donations(n, n->graph, donated);
  int64_t start = tt__now_ns();
  tt_status_t s = tt_client_compile(tt__engine.client, n->graph, out_executable);
  tt__engine.stats.compile_ns += tt__now_ns() - start;
  tt__engine.stats.programs_compiled++;
  tt_graph_destroy(n->graph);
  n->graph = NULL;
  return s ? explain(&n->call, s) : TT_OK_STATUS;
}

tt_status_t tt__instance_program(tt__instance_t *n, uint64_t donated,
                                 tt_executable_t **out_executable) {
  for (uint32_t i = 0; i < n->program_count; i++) {
    if (n->programs[i].donated == donated) {
      *out_executable = n->programs[i].executable;
      return TT_OK_STATUS;
    }
  }
  if (!tt_grow((void **)&n->programs, &n->program_capacity, n->program_count + 1,
               sizeof *n->programs)) {
    return tt__no_host_memory();
  }
  TT_RETURN_IF_ERROR(compile(n, donated, out_executable));
  n->programs[n->program_count++] = (tt__program_t){*out_executable, donated};
  return TT_OK_STATUS;
}
