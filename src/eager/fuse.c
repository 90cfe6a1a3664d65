// Programs of whole windows: the cache, and making one on a miss.
#include <stdio.h>
#include <string.h>

#include "eager/window.h"
#include "ir/location.h"

static tt_table_t table;  // of tt__fused_t, retained
static uint64_t ops_held, most_ops = 1 << 17;

static bool matches(const void *entry, const void *key) {
  const tt__fused_t *p = entry;
  const tt__window_t *w = key;
  return p->key_count == w->key_count &&
         memcmp(p->key, w->trace, w->key_count * sizeof *p->key) == 0;
}

void tt__fused_limit(uint64_t op_count) { most_ops = op_count; }

void tt__fused_retain(tt__fused_t *p) {
  atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

void tt__fused_release(tt__fused_t *p) {
  if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1) return;
  if (p->executable) tt_executable_release(p->executable);
  tt_arena_deinit(&p->arena);
  tt_free(p);
}

static bool drop_unused(void *entry, uint64_t *excess) {
  tt__fused_t *p = entry;
  bool stays = p->used;
  p->used = false;
  if (stays) return false;
  *excess -= p->op_count < *excess ? p->op_count : *excess;
  ops_held -= p->op_count;
  tt__fused_release(p);
  return true;
}

// A quarter at a time, as in the cache of instances.
static void make_room(uint32_t op_count) {
  if (ops_held + op_count <= most_ops) return;
  tt_table_evict(&table, most_ops / 4 + op_count, drop_unused);
}

// --- building ------------------------------------------------------------------------------------

typedef struct builder_s {
  tt__window_t *w;
  tt_graph_t *graph;
  tt_build_t b;
  tt_value_t *values;     // of pending numbers
  tt_value_t *externals;  // arguments
  tt_value_t *scalars;
  uint8_t *needed;  // ops whose results or checks matter
  tt__check_list_t checks;
} builder_t;

// Walks the trace: calls `visit` for each op with its references and the numbers where its scalars
// and values start.
typedef struct step_s {
  uint32_t op, scalar, value;
  const uint32_t *references;
} step_t;

static bool next_step(const tt__window_t *w, step_t *s) {
  if (s->references) {
    const tt__instance_t *n = w->ops[s->op++];
    s->references += n->window_words;
    s->scalar += n->input_count - n->slot_input_count;
    s->value += n->output_count;
  } else {
    s->references = w->trace + 1;
  }
  return s->op < w->op_count;
}

// An op is needed when it checks something, or when one of its values is live or used by a needed
// op. Backwards, so that every user is known before.
static bool mark_needed(builder_t *B) {
  const tt__window_t *w = B->w;
  tt_arena_t *arena = &B->graph->arena;
  step_t *steps = TT_ARENA_ARRAY(arena, step_t, w->op_count);
  uint8_t *used = tt_arena_zeroed(arena, w->pending_count);
  B->needed = tt_arena_zeroed(arena, w->op_count);
  if (!steps || !used || !B->needed) return false;
  for (step_t s = {0}; next_step(w, &s);) steps[s.op] = s;
  for (uint32_t i = w->op_count; i-- > 0;) {
    const tt__instance_t *n = w->ops[i];
    bool needed = n->check_count > 0;
    for (uint32_t o = 0; o < n->output_count; o++) {
      uint32_t v = steps[i].value + o;
      needed |= used[v] || tt__bit(w->trace + w->live, v);
    }
    B->needed[i] = needed;
    for (uint32_t r = 0; needed && r < n->slot_input_count; r++) {
      uint32_t reference = steps[i].references[r];
      if (!(reference & TT__EXTERNAL)) used[reference] = 1;
    }
  }
  return true;
}

static tt_status_t make_arguments(builder_t *B) {
  tt__window_t *w = B->w;
  for (uint32_t i = 0; i < w->external_count; i++) {
    tt_type_t type = tt__layout_type(w->externals[i]->layout);
    TT_RETURN_IF_ERROR(tt_graph_argument(B->graph, B->graph->main, type, &B->externals[i]));
  }
  for (uint32_t i = 0; i < w->scalar_count; i++) {
    tt_type_t type = {(tt_dtype_t)w->scalars[i].dtype, 0, NULL};
    TT_RETURN_IF_ERROR(tt_graph_argument(B->graph, B->graph->main, type, &B->scalars[i]));
  }
  for (uint32_t i = 0; i < w->external_count; i++) {
    if (tt__bit(w->trace + w->own, i)) B->graph->donations[i] = TT_DONATE;
  }
  return TT_OK_STATUS;
}

// The nodes that op `op` was lowered to tell its Python line and its name.
static void locate(builder_t *B, uint32_t op, uint32_t before) {
  char text[640];
  int n = snprintf(text, sizeof text, "%s: %s", B->w->places[op], B->w->ops[op]->name);
  size_t size = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
  tt_location_assign(B->graph->main, before, tt_location_append(B->graph, text, size));
}

static tt_status_t lower_op(builder_t *B, const step_t *s) {
  tt__instance_t *n = B->w->ops[s->op];
  tt_arena_t *arena = &B->graph->arena;
  tt_value_t *inputs = TT_ARENA_ARRAY(arena, tt_value_t, n->input_count);
  if (!inputs) return tt__no_host_memory();
  uint32_t r = 0, scalar = s->scalar;
  for (uint32_t i = 0; i < n->input_count; i++) {
    if (n->inputs[i].kind != TT__INPUT_SLOT) {
      inputs[i] = B->scalars[scalar++];
      continue;
    }
    uint32_t reference = s->references[r++];
    inputs[i] =
        reference & TT__EXTERNAL ? B->externals[reference & ~TT__EXTERNAL] : B->values[reference];
  }
  uint32_t before = B->graph->main->node_count;
  tt_status_t status = tt__lower_instance(n, &B->b, inputs, B->values + s->value, &B->checks);
  if (!status && B->w->capture && B->w->places[s->op]) locate(B, s->op, before);
  return status ? tt_status_annotate(status, "%s", n->name) : status;
}

// Outputs are the live values in the order of their numbers, then the check number where anything
// is checked: what hand_out in window.c counts on.
static tt_status_t lower_window(builder_t *B, uint32_t *out_outputs) {
  tt__window_t *w = B->w;
  tt_arena_t *arena = &B->graph->arena;
  B->values = TT_ARENA_ARRAY(arena, tt_value_t, w->pending_count);
  B->externals = TT_ARENA_ARRAY(arena, tt_value_t, w->external_count);
  B->scalars = TT_ARENA_ARRAY(arena, tt_value_t, w->scalar_count);
  tt_value_t *returns = TT_ARENA_ARRAY(arena, tt_value_t, w->pending_count + 1);
  if (!B->values || !B->externals || !B->scalars || !returns || !mark_needed(B)) {
    return tt__no_host_memory();
  }
  TT_RETURN_IF_ERROR(make_arguments(B));
  for (step_t s = {0}; next_step(w, &s);) {
    if (B->needed[s.op]) TT_RETURN_IF_ERROR(lower_op(B, &s));
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < w->pending_count; i++) {
    if (tt__bit(w->trace + w->live, i)) returns[count++] = B->values[i];
  }
  *out_outputs = count;
  if (B->checks.count) returns[count++] = tt__emit_checks(&B->b, &B->checks);
  TT_RETURN_IF_ERROR(tt_build_finish(&B->b));
  return tt_graph_return(B->graph, B->graph->main, returns, count);
}

// The window as a program, not compiled. The caller destroys the graph.
static tt_status_t make_graph(tt__window_t *w, tt__fused_t *p, tt_graph_t **out_graph) {
  builder_t B = {.w = w, .checks = {.arena = &p->arena}};
  TT_RETURN_IF_ERROR(tt_graph_create(p->name, &B.graph));
  B.b = tt_build_on(B.graph, B.graph->main);
  tt_status_t s = lower_window(&B, &p->output_count);
  tt_status_release(tt_build_finish(&B.b));
  p->checks = B.checks.checks;
  p->check_count = B.checks.count;
  *out_graph = B.graph;
  if (s) tt_graph_destroy(B.graph);
  return s;
}

static tt_status_t compile(tt__window_t *w, tt__fused_t *p) {
  int64_t start = tt__now_ns();
  tt_graph_t *graph;
  TT_RETURN_IF_ERROR(make_graph(w, p, &graph));
  tt_status_t s = TT_OK_STATUS;
  if (p->output_count + p->check_count > 0) {
    s = tt_client_compile(tt__engine.client, graph, &p->executable);
    tt__engine.stats.programs_compiled++;
  }
  tt__engine.stats.compile_ns += tt__now_ns() - start;
  tt_graph_destroy(graph);
  return s;
}

tt_status_t tt__window_print(tt__window_t *w, char **out_text, size_t *out_size) {
  tt__fused_t p = {.name = "main"};
  tt_graph_t *graph;
  tt_arena_init(&p.arena, 1024);
  tt_status_t s = make_graph(w, &p, &graph);
  if (!s) {
    if (w->replicas) graph->replica_count = w->replicas;
    s = tt_graph_print(graph, out_text, out_size);
    tt_graph_destroy(graph);
  }
  tt_arena_deinit(&p.arena);
  return s;
}

static const char *make_name(tt__window_t *w, tt_arena_t *arena) {
  char text[256];
  if (w->op_count == 0) return "a window of no op";
  const char *first = w->ops[0]->name, *last = w->ops[w->op_count - 1]->name;
  int n = w->op_count == 1
              ? snprintf(text, sizeof text, "%s", first)
              : snprintf(text, sizeof text, "a %s of %u ops, %s to %s",
                         w->capture ? "compiled graph" : "window", w->op_count, first, last);
  return tt_arena_string(arena, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

static tt_status_t make(tt__window_t *w, uint64_t hash, tt__fused_t **out_program) {
  tt__fused_t *p = *out_program = tt_alloc_zeroed(sizeof *p);
  if (!p) return tt__no_host_memory();
  tt_arena_init(&p->arena, 1024);
  atomic_init(&p->refs, 1);
  p->hash = hash;
  p->op_count = w->op_count;
  p->key_count = w->key_count;
  p->key = tt_arena_copy(&p->arena, w->trace, w->key_count * sizeof *p->key);
  p->name = make_name(w, &p->arena);
  tt_status_t s = p->key && p->name ? compile(w, p) : tt__no_host_memory();
  if (s) tt__fused_release(p);
  return s;
}

tt_status_t tt__fused_program(tt__window_t *w, uint64_t hash, tt__fused_t **out_program) {
  if (!tt_table_reserve(&table)) return tt__no_host_memory();
  void **place = tt_table_place(&table, hash, matches, w);
  if (*place) {
    tt__engine.stats.window_hits++;
  } else {
    tt__fused_t *made;
    make_room(w->op_count);
    TT_RETURN_IF_ERROR(make(w, hash, &made));
    place = tt_table_place(&table, hash, matches, w);
    *place = made;
    table.count++;
    ops_held += w->op_count;
  }
  *out_program = *place;
  (*out_program)->used = true;
  tt__fused_retain(*out_program);
  return TT_OK_STATUS;
}
