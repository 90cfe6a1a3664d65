// From an instance to StableHLO: its inputs as logical tensors, its op's lowering, and its results
// into the storages that they belong to.
#include <string.h>

#include "eager/internal.h"

// One run of a lowering. While `open`, inputs are found as they are asked for, each becoming an
// argument of main; else every input must be one that was found before.
typedef struct lowering_s {
  tt_lower_t L;  // first: callbacks get back from it to the whole
  tt__instance_t *instance;
  bool open;
  tt_value_t *values;  // of the instance's inputs
  uint32_t value_capacity;
  tt_value_t *slot_values;  // what writes of this call have made of each slot
} lowering_t;

static lowering_t *lowering_of(tt_lower_t *L) { return (lowering_t *)(void *)L; }

static void fail_memory(lowering_t *w) { tt_build_fail(w->L.b, tt__no_host_memory()); }

static bool same_input(const tt__input_t *a, const tt__input_t *b) {
  return a->kind == b->kind && a->dtype == b->dtype && a->arg == b->arg && a->index == b->index;
}

// A new input of an instance under construction.
static tt_value_t add_input(lowering_t *w, const tt__input_t *input) {
  tt__instance_t *n = w->instance;
  if (!tt_grow((void **)&n->inputs, &n->input_capacity, n->input_count + 1, sizeof *n->inputs) ||
      !tt_grow((void **)&w->values, &w->value_capacity, n->input_count + 1, sizeof *w->values)) {
    fail_memory(w);
    return TT_NO_VALUE;
  }
  tt_type_t type = {(tt_dtype_t)input->dtype, 0, NULL};
  if (input->kind == TT__INPUT_SLOT) type = tt__layout_type(n->slots[input->index].layout);
  tt_value_t v = TT_NO_VALUE;
  tt_status_t s = tt_graph_argument(w->L.b->graph, w->L.b->graph->main, type, &v);
  if (s) {
    tt_build_fail(w->L.b, s);
    return TT_NO_VALUE;
  }
  w->values[n->input_count] = v;
  n->inputs[n->input_count++] = *input;
  n->slot_input_count += input->kind == TT__INPUT_SLOT;
  return v;
}

static tt_value_t input_value(lowering_t *w, const tt__input_t *input) {
  if (w->L.b->status) return TT_NO_VALUE;
  for (uint32_t i = 0; i < w->instance->input_count; i++) {
    if (same_input(&w->instance->inputs[i], input)) return w->values[i];
  }
  if (w->open) return add_input(w, input);
  tt_build_fail(w->L.b, TT_ERROR(INTERNAL,
                                 "internal: %s asks for an input that it did not ask for "
                                 "before; please report",
                                 w->instance->name));
  return TT_NO_VALUE;
}

// The slot's value before the call; TT_NO_VALUE for one never written.
static tt_value_t slot_value(lowering_t *w, uint32_t slot) {
  if (!w->instance->slots[slot].layout) return TT_NO_VALUE;
  tt__input_t input = {TT__INPUT_SLOT, TT_DTYPE_NONE, 0, slot};
  return input_value(w, &input);
}

static uint32_t slot_of(const tt_tensor_t *t) { return (uint32_t)(uintptr_t)t->handle; }

static tt_view_t view_of(const tt_tensor_t *t) {
  return (tt_view_t){(tt_dtype_t)t->dtype, t->rank, t->sizes, t->strides, t->offset};
}

// Between memory and logical value: the same both ways.
static tt_value_t resolve_flags(tt_build_t *b, tt_value_t v, uint8_t flags) {
  if (flags & TT_TENSOR_CONJ && tt_dtype_is_complex(tt_build_dtype(b, v))) {
    tt_value_t im = tt_emit_unary(b, TT_OP_NEGATE, tt_emit_unary(b, TT_OP_IMAG, v));
    v = tt_emit_binary(b, TT_OP_COMPLEX, tt_emit_unary(b, TT_OP_REAL, v), im);
  }
  return flags & TT_TENSOR_NEG ? tt_emit_unary(b, TT_OP_NEGATE, v) : v;
}

static tt_value_t lower_tensor(tt_lower_t *L, uint32_t arg, uint32_t index) {
  lowering_t *w = lowering_of(L);
  const tt_arg_t *a = &L->call->args[arg];
  const tt_tensor_t *t = NULL;
  if (a->kind == TT_ARG_TENSOR)
    t = a->u.tensor;
  else if (a->kind == TT_ARG_TENSORS && index < a->count)
    t = &a->u.tensors[index];
  if (!t || t->rank == TT_NO_TENSOR) {
    tt_build_fail(L->b, TT_ERROR(INTERNAL,
                                 "internal: %s reads argument %u, which is no tensor; "
                                 "please report",
                                 L->op_name, arg));
    return TT_NO_VALUE;
  }
  if (t->flags & TT_TENSOR_HOST) {
    tt__input_t input = {TT__INPUT_SCALAR, t->dtype, (uint16_t)arg, index};
    return input_value(w, &input);
  }
  tt_view_t view = view_of(t);
  return resolve_flags(L->b, tt_view_read(L->b, slot_value(w, slot_of(t)), &view), t->flags);
}

static tt_value_t lower_scalar(tt_lower_t *L, uint32_t arg, uint32_t index, tt_dtype_t dtype) {
  const tt_arg_t *a = &L->call->args[arg];
  bool known = a->kind == TT_ARG_BOOL || a->kind == TT_ARG_INT || a->kind == TT_ARG_FLOAT ||
               a->kind == TT_ARG_COMPLEX || a->kind == TT_ARG_SCALARS || a->kind == TT_ARG_FLOATS ||
               a->kind == TT_ARG_INTS;
  if (arg >= L->call->arg_count || !known) {
    tt_build_fail(L->b, TT_ERROR(INTERNAL,
                                 "internal: %s reads argument %u, which is no number; "
                                 "please report",
                                 L->op_name, arg));
    return TT_NO_VALUE;
  }
  tt__input_t input = {TT__INPUT_SCALAR, (uint8_t)dtype, (uint16_t)arg, index};
  return input_value(lowering_of(L), &input);
}

static tt_value_t lower_random(tt_lower_t *L, bool want_offset) {
  tt__input_t input = {want_offset ? TT__INPUT_OFFSET : TT__INPUT_SEED, TT_U64, 0, 0};
  return input_value(lowering_of(L), &input);
}

static tt_lower_t make_lower(tt__instance_t *n, tt_build_t *b) {
  tt_lower_t L = {.b = b,
                  .call = &n->call,
                  .op_name = n->name,
                  .outs = n->outs,
                  .out_count = n->out_count,
                  .tensor = lower_tensor,
                  .scalar = lower_scalar,
                  .random = lower_random};
  return L;
}

// --- results -------------------------------------------------------------------------------------

static size_t span_bytes(const tt_out_meta_t *m) {
  size_t last = 0;
  for (uint32_t i = 0; i < m->rank; i++) {
    if (m->sizes[i] == 0) return 0;
    last += (size_t)((m->sizes[i] - 1) * m->strides[i]);
  }
  return (last + 1) * tt_dtype_size((tt_dtype_t)m->dtype);
}

static void write_destination(lowering_t *w, const tt_tensor_t *t, tt_value_t value) {
  tt_build_t *b = w->L.b;
  uint32_t slot = slot_of(t);
  size_t bytes = w->instance->slots[slot].bytes;
  tt_view_t view = view_of(t);
  value = tt_emit_convert(b, value, view.dtype);
  value = resolve_flags(b, tt_emit_broadcast_to(b, value, t->rank, t->sizes), t->flags);
  tt_value_t base = w->slot_values[slot];
  if (base == TT_NO_VALUE && !tt_view_covers(&view, bytes)) base = slot_value(w, slot);
  w->slot_values[slot] = tt_view_write(b, base, value, &view, bytes);
}

// Runs the lowering and puts its results in place. out_fresh has one value a fresh result.
static void lower_body(lowering_t *w, tt_value_t *out_fresh) {
  tt__instance_t *n = w->instance;
  tt_build_t *b = w->L.b;
  n->op->lower(&w->L, n->op->param);
  for (uint32_t i = 0, fresh = 0; i < n->out_count; i++) {
    if (n->outs[i].rank == TT_NO_TENSOR) continue;
    tt_value_t value = w->L.results[i];
    if (value == TT_NO_VALUE && !b->status) {
      tt_build_fail(b, TT_ERROR(INTERNAL,
                                "internal: the lowering of %s leaves out result %u; "
                                "please report",
                                n->name, i));
    }
    if (b->status) return;
    if (n->destinations[i]) {
      write_destination(w, n->destinations[i], value);
      continue;
    }
    const tt_out_meta_t *m = &n->outs[i];
    tt_view_t view = {(tt_dtype_t)m->dtype, m->rank, m->sizes, m->strides, 0};
    out_fresh[fresh++] = tt_view_write(b, TT_NO_VALUE, value, &view, span_bytes(m));
  }
}

static tt_status_t add_checks(lowering_t *w, tt__check_list_t *list) {
  uint32_t wanted = list->count + w->L.check_count;
  if (wanted > list->capacity) {
    uint32_t capacity = 2 * wanted;
    tt_value_t *ok = TT_ARENA_ARRAY(list->arena, tt_value_t, capacity);
    tt__check_t *checks = TT_ARENA_ARRAY(list->arena, tt__check_t, capacity);
    if (!ok || !checks) return tt__no_host_memory();
    if (list->count) {
      memcpy(ok, list->ok, list->count * sizeof *ok);
      memcpy(checks, list->checks, list->count * sizeof *checks);
    }
    list->ok = ok, list->checks = checks, list->capacity = capacity;
  }
  for (uint32_t i = 0; i < w->L.check_count; i++) {
    const tt_lower_check_t *from = &w->L.checks[i];
    char *message = tt_arena_string(list->arena, from->message, strlen(from->message));
    if (!message) return tt__no_host_memory();
    list->ok[list->count] = from->ok;
    list->checks[list->count++] = (tt__check_t){from->code, w->instance->name, message};
  }
  return TT_OK_STATUS;
}

tt_value_t tt__emit_checks(tt_build_t *b, const tt__check_list_t *checks) {
  tt_value_t first = tt_emit_splat_int(b, TT_S32, 0, NULL, 0);
  for (uint32_t i = checks->count; i-- > 0;) {
    tt_value_t here = tt_emit_splat_int(b, TT_S32, 0, NULL, (int64_t)i + 1);
    first = tt_emit_select(b, checks->ok[i], first, here);
  }
  return first;
}

// --- the two uses --------------------------------------------------------------------------------

// Scratch for one run of the lowering lives in the graph's arena.
static bool prepare(lowering_t *w) {
  tt__instance_t *n = w->instance;
  tt_arena_t *arena = &w->L.b->graph->arena;
  w->L.results = TT_ARENA_ARRAY(arena, tt_value_t, n->out_count);
  w->slot_values = TT_ARENA_ARRAY(arena, tt_value_t, n->slot_count);
  if (!w->L.results || !w->slot_values) return false;
  for (uint32_t i = 0; i < n->out_count; i++) w->L.results[i] = TT_NO_VALUE;
  for (uint32_t i = 0; i < n->slot_count; i++) w->slot_values[i] = TT_NO_VALUE;
  return true;
}

tt_status_t tt__lower_instance(tt__instance_t *instance, tt_build_t *b, tt_value_t *values,
                               tt_value_t *out_values, tt__check_list_t *checks) {
  lowering_t w = {.L = make_lower(instance, b), .instance = instance, .values = values};
  if (!prepare(&w)) return tt__no_host_memory();
  lower_body(&w, out_values);
  TT_RETURN_IF_ERROR(tt_build_finish(b));
  for (uint32_t i = 0; i < instance->output_count; i++) {
    uint32_t slot = instance->outputs[i].slot;
    if (slot != TT__FRESH) out_values[i] = w.slot_values[slot];
  }
  return add_checks(&w, checks);
}

static uint32_t input_of_slot(const tt__instance_t *n, uint32_t slot) {
  for (uint32_t i = 0; i < n->input_count; i++) {
    if (n->inputs[i].kind == TT__INPUT_SLOT && n->inputs[i].index == slot) return i;
  }
  return TT__NO_INPUT;
}

static tt_status_t set_output(tt__instance_t *n, tt_build_t *b, tt_value_t value,
                              tt__output_t output) {
  const tt_type_t *type = tt_build_type(b, value);
  output.layout = tt__layout(type->dtype, type->rank, type->dims);
  if (!output.layout) return tt__no_host_memory();
  n->donates |= output.input != TT__NO_INPUT;
  n->outputs[n->output_count++] = output;
  return TT_OK_STATUS;
}

// Fresh results first, then written slots in order.
static tt_status_t collect_outputs(lowering_t *w, tt_value_t *values) {
  tt__instance_t *n = w->instance;
  n->outputs = TT_ARENA_ARRAY(&n->arena, tt__output_t, n->fresh_count + n->slot_count);
  if (!n->outputs) return tt__no_host_memory();
  for (uint32_t i = 0; i < n->fresh_count; i++) {
    size_t bytes = span_bytes(&n->outs[n->fresh_results[i]]);
    tt__output_t output = {TT__FRESH, i, TT__NO_INPUT, NULL, bytes};
    TT_RETURN_IF_ERROR(set_output(n, w->L.b, values[i], output));
  }
  for (uint32_t s = 0; s < n->slot_count; s++) {
    if (w->slot_values[s] == TT_NO_VALUE) continue;
    values[n->output_count] = w->slot_values[s];
    tt__output_t output = {s, 0, input_of_slot(n, s), NULL, 0};
    TT_RETURN_IF_ERROR(set_output(n, w->L.b, w->slot_values[s], output));
  }
  return TT_OK_STATUS;
}

static tt_status_t finish_new(lowering_t *w, tt_value_t *values) {
  tt__instance_t *n = w->instance;
  TT_RETURN_IF_ERROR(tt_build_finish(w->L.b));
  TT_RETURN_IF_ERROR(collect_outputs(w, values));
  tt__check_list_t checks = {.arena = &n->arena};
  TT_RETURN_IF_ERROR(add_checks(w, &checks));
  n->checks = checks.checks;
  n->check_count = checks.count;
  uint32_t count = n->output_count;
  if (checks.count) values[count++] = tt__emit_checks(w->L.b, &checks);
  TT_RETURN_IF_ERROR(tt_build_finish(w->L.b));
  return tt_graph_return(w->L.b->graph, w->L.b->graph->main, values, count);
}

tt_status_t tt__lower_new_instance(tt__instance_t *instance) {
  TT_RETURN_IF_ERROR(tt_graph_create(instance->name, &instance->graph));
  tt_graph_t *graph = instance->graph;
  tt_build_t b = tt_build_on(graph, graph->main);
  lowering_t w = {.L = make_lower(instance, &b), .instance = instance, .open = true};
  uint32_t most = instance->fresh_count + instance->slot_count + 1;
  tt_value_t *values = TT_ARENA_ARRAY(&graph->arena, tt_value_t, most);
  if (!values || !prepare(&w)) return tt__no_host_memory();
  lower_body(&w, values);
  tt_status_t s = finish_new(&w, values);
  tt_free(w.values);
  return s;
}
