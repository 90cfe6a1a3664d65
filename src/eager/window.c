// DeferAndFuse: a stream's window of recorded ops. Appending writes a trace of instance numbers and
// references; a flush looks the trace up among the programs made before (fuse.c) and runs it.
#include "eager/window.h"

#include <string.h>

enum { MOST_OPS = 4096 };

// Back to an empty window, of an epoch of its own.
static void reset(tt__window_t *w) {
  static uint64_t last_epoch;
  for (uint32_t i = 0; i < w->external_count; i++) tt__version_release(w->externals[i]);
  w->epoch = ++last_epoch;
  w->trace_count = w->op_count = w->pending_count = w->external_count = w->scalar_count = 0;
  w->check_count = w->draw_count = w->link_count = 0;
  w->bytes = 0;
  w->hash = TT_HASH_SEED;
}

tt_status_t tt__window_create(int device, tt_capture_t *capture, tt__window_t **out_window) {
  *out_window = NULL;
  tt__window_t *w = tt_alloc_zeroed(sizeof *w);
  if (!w) return tt__no_host_memory();
  w->device = device;
  w->capture = capture;
  if (!capture && !(w->period = tt_alloc_zeroed(sizeof *w->period))) {
    tt_free(w);
    return tt__no_host_memory();
  }
  w->most_bytes = SIZE_MAX;
  tt_memory_stats_t m;
  tt_status_t s = tt_client_memory_stats(tt__engine.client, (uint32_t)device, &m);
  if (!s && m.bytes_limit > 0) w->most_bytes = (size_t)m.bytes_limit / 2;
  tt_status_release(s);
  reset(w);
  *out_window = w;
  return TT_OK_STATUS;
}

void tt__window_hold(const tt__window_t *w, uint32_t look) {
  for (uint32_t i = 0; i < w->op_count; i++) w->ops[i]->held = look;
}

void tt__window_forget(tt__window_t *window, tt__version_t *version) {
  window->pending[version->number] = NULL;
}

void tt__window_destroy(tt__window_t *w) {
  tt_status_t gone = TT_ERROR(INVALID_ARGUMENT, "the value was made while a program was captured");
  tt__window_give_up(w, gone);
  tt_status_release(gone);
  reset(w);
  tt_free(w->trace);
  tt_free(w->ops);
  tt_free(w->pending);
  tt_free(w->externals);
  tt_free(w->scalars);
  tt_free(w->layouts);
  tt_free(w->draws);
  tt_free(w->links);
  tt_free(w->places);
  tt_free(w->period);
  tt_free(w);
}

// --- appending -----------------------------------------------------------------------------------

// Makes room first, so that nothing fails half-way.
static bool make_room(tt__window_t *w, const tt__instance_t *n) {
  uint32_t scalars = n->input_count - n->slot_input_count;
  return tt_grow((void **)&w->trace, &w->trace_capacity, w->trace_count + n->window_words,
                 sizeof *w->trace) &&
         tt_grow((void **)&w->ops, &w->op_capacity, w->op_count + 1, sizeof *w->ops) &&
         tt_grow((void **)&w->pending, &w->pending_capacity, w->pending_count + n->output_count,
                 sizeof *w->pending) &&
         tt_grow((void **)&w->externals, &w->external_capacity,
                 w->external_count + n->slot_input_count, sizeof *w->externals) &&
         tt_grow((void **)&w->scalars, &w->scalar_capacity, w->scalar_count + scalars,
                 sizeof *w->scalars) &&
         (!w->capture ||
          (tt_grow((void **)&w->layouts, &w->layout_capacity, w->pending_count + n->output_count,
                   sizeof *w->layouts) &&
           tt_grow((void **)&w->places, &w->place_capacity, w->op_count + 1, sizeof *w->places) &&
           tt_grow((void **)&w->draws, &w->draw_capacity, w->draw_count + 1, sizeof *w->draws) &&
           tt_grow((void **)&w->links, &w->link_capacity, w->link_count + scalars,
                   sizeof *w->links)));
}

// Inputs that another window has yet to compute, and inputs that are lost, are dealt with before
// anything is written down.
static tt_status_t settle_inputs(tt__window_t *w, const tt__frame_t *frame,
                                 const tt__instance_t *n) {
  for (uint32_t i = 0; i < n->input_count; i++) {
    if (n->inputs[i].kind != TT__INPUT_SLOT) continue;
    tt__version_t *v = frame->slots[n->inputs[i].index].storage->version;
    if (!v->buffer && v->window != w) TT_RETURN_IF_ERROR(tt__version_settle(v));
  }
  return TT_OK_STATUS;
}

static uint32_t reference(tt__window_t *w, tt__version_t *v) {
  if (v->window == w) return v->number;
  if (v->epoch != w->epoch) {
    v->epoch = w->epoch;
    v->external = w->external_count;
    tt__version_retain(v);
    w->externals[w->external_count++] = v;
  }
  return TT__EXTERNAL | v->external;
}

// A captured call draws when it is run: here only where its seed and offset stand.
static void note_draw(tt__window_t *w, const tt__instance_t *n) {
  tt__draw_t d = {n->random_count, UINT32_MAX, UINT32_MAX};
  uint32_t scalar = w->scalar_count;
  for (uint32_t i = 0; i < n->input_count; i++) {
    if (n->inputs[i].kind == TT__INPUT_SLOT) continue;
    if (n->inputs[i].kind == TT__INPUT_SEED) d.seed = scalar;
    if (n->inputs[i].kind == TT__INPUT_OFFSET) d.offset = scalar;
    scalar++;
  }
  w->draws[w->draw_count++] = d;
}

// A captured call takes a host input's value when it is run.
static void note_host(tt__window_t *w, const tt__input_t *input, const tt_call_t *call) {
  if (input->kind != TT__INPUT_SCALAR) return;
  const tt_arg_t *arg = &call->args[input->arg];
  if (arg->kind != TT_ARG_TENSOR && arg->kind != TT_ARG_TENSORS) return;
  const tt_tensor_t *t = arg->kind == TT_ARG_TENSOR ? arg->u.tensor : &arg->u.tensors[input->index];
  uint32_t host = tt__capture_host(w->capture, t->handle);
  if (host != UINT32_MAX) w->links[w->link_count++] = (tt__link_t){w->scalar_count, host};
}

// The op's words and their hash; its run-time numbers go beside the trace, so that they are no part
// of what a program is found by.
static void write_trace(tt__window_t *w, const tt__frame_t *frame, tt__instance_t *n) {
  uint64_t seed = 0, offset = 0, hash = tt_hash_word(w->hash, n->id);
  uint32_t *words = w->trace + w->trace_count;
  if (n->random_count && w->capture)
    note_draw(w, n);
  else if (n->random_count)
    tt__random_draw(n, frame->call, &seed, &offset);
  w->trace_count += n->window_words;
  *words++ = n->id;
  for (uint32_t i = 0; i < n->input_count; i++) {
    const tt__input_t *input = &n->inputs[i];
    if (input->kind == TT__INPUT_SLOT) {
      uint32_t r = reference(w, frame->slots[input->index].storage->version);
      hash = tt_hash_word(hash, r);
      *words++ = r;
    } else {
      if (w->capture) note_host(w, input, frame->call);
      tt__scalar_input(input, frame->call, seed, offset, &w->scalars[w->scalar_count++]);
    }
  }
  w->hash = hash;
  if (w->capture) w->places[w->op_count] = tt__capture_place(w->capture);
  w->ops[w->op_count++] = n;
  n->pinned |= w->capture != NULL;
  tt__instance_settle(n);
  w->check_count += n->check_count;
}

static tt_status_t add_outputs(tt__window_t *w, const tt__frame_t *frame, tt__instance_t *n,
                               tt_outs_t *outs) {
  for (uint32_t o = 0; o < n->output_count; o++) {
    tt__version_t *v = tt__version_make(n->outputs[o].layout, NULL);
    if (w->capture) w->layouts[w->pending_count] = n->outputs[o].layout;
    w->pending[w->pending_count++] = v;  // a NULL is a value nobody wants
    if (!v) continue;
    v->window = w;
    v->number = w->pending_count - 1;
    w->bytes += n->outputs[o].layout->bytes;
    tt__output_set(n, o, frame, outs, v);
  }
  bool made =
      w->pending_count == 0 || n->output_count == 0 || w->pending[w->pending_count - 1] != NULL;
  return made ? TT_OK_STATUS : tt__no_host_memory();
}

tt_status_t tt__window_append(tt__window_t *w, tt__frame_t *frame, tt__instance_t *n,
                              tt_outs_t *outs) {
  if (!w->capture && (w->op_count >= MOST_OPS || w->bytes > w->most_bytes)) {
    // Its error is told by who reads its results, or by the next synchronisation.
    tt__error_defer(w->device, tt__window_flush(w));
    tt__period_look(w->period);
  }
  TT_RETURN_IF_ERROR(settle_inputs(w, frame, n));
  if (!make_room(w, n)) return tt__no_host_memory();
  write_trace(w, frame, n);
  TT_RETURN_IF_ERROR(add_outputs(w, frame, n, outs));
  if (w->period && tt__period_step(w->period, n->id))
    tt__error_defer(w->device, tt__window_flush(w));
  return TT_OK_STATUS;
}

// --- flushing ------------------------------------------------------------------------------------

// The trace's key gets what a program also depends on: which values are still wanted, and which
// inputs nobody else holds.
bool tt__window_key(tt__window_t *w) {
  uint32_t live_words = (w->pending_count + 31) / 32, own_words = (w->external_count + 31) / 32;
  if (!tt_grow((void **)&w->trace, &w->trace_capacity, w->trace_count + live_words + own_words,
               sizeof *w->trace)) {
    return false;
  }
  memset(w->trace + w->trace_count, 0, (live_words + own_words) * sizeof *w->trace);
  w->live = w->trace_count;
  w->own = w->live + live_words;
  w->key_count = w->own + own_words;
  return true;
}

static bool finish_key(tt__window_t *w, uint64_t *out_hash) {
  if (!tt__window_key(w)) return false;
  uint32_t *live = w->trace + w->live, *own = w->trace + w->own;
  for (uint32_t i = 0; i < w->pending_count; i++) {
    live[i / 32] |= (uint32_t)(w->pending[i] != NULL) << i % 32;
  }
  for (uint32_t i = 0; i < w->external_count; i++) {
    own[i / 32] |= (uint32_t)(w->externals[i]->refs == 1) << i % 32;
  }
  *out_hash = tt_hash_bytes(w->hash, live, (w->key_count - w->live) * sizeof *live);
  return true;
}

static tt_status_t run_program(tt__window_t *w, tt__fused_t *p, tt_buffer_t **buffers) {
  uint32_t count = w->external_count + w->scalar_count;
  tt_input_t *inputs = tt_alloc(count * sizeof *inputs);
  if (!inputs) return tt__no_host_memory();
  for (uint32_t i = 0; i < w->external_count; i++) inputs[i].buffer = w->externals[i]->buffer;
  if (w->scalar_count) {
    memcpy(inputs + w->external_count, w->scalars, w->scalar_count * sizeof *inputs);
  }
  tt_status_t s = tt__run(w->device, p->executable, inputs, count, buffers, p->name);
  tt_free(inputs);
  return s;
}

// Every live value gets its buffer.
static tt_status_t hand_out(tt__window_t *w, tt__fused_t *p, tt_buffer_t **buffers) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < w->pending_count; i++) {
    tt__version_t *v = w->pending[i];
    if (!v) continue;
    v->window = NULL;
    v->buffer = buffers[next++];
  }
  return p->check_count ? tt__check_add(w->device, buffers[next], p->checks, p, NULL)
                        : TT_OK_STATUS;
}

// The values that got no buffer will tell why. (A failed check comes with buffers.)
void tt__window_give_up(tt__window_t *w, tt_status_t error) {
  for (uint32_t i = 0; i < w->pending_count; i++) {
    tt__version_t *v = w->pending[i];
    w->pending[i] = NULL;
    if (!v || v->window != w) continue;
    v->window = NULL;
    v->error = tt_status_clone(error);
  }
}

static tt_status_t run_and_hand_out(tt__window_t *w, tt__fused_t *p) {
  if (p->output_count + (p->check_count > 0) == 0) return TT_OK_STATUS;
  tt_buffer_t **buffers = tt_alloc((p->output_count + 1) * sizeof(tt_buffer_t *));
  if (!buffers) return tt__no_host_memory();
  tt_status_t s = run_program(w, p, buffers);
  if (!s) s = hand_out(w, p, buffers);
  tt_free(buffers);
  return s;
}

static tt_status_t flush(tt__window_t *w) {
  uint64_t hash;
  tt__fused_t *p;
  if (!finish_key(w, &hash)) return tt__no_host_memory();
  TT_RETURN_IF_ERROR(tt__fused_program(w, hash, &p));
  tt_status_t s = run_and_hand_out(w, p);
  tt__fused_release(p);
  return s;
}

tt_status_t tt__window_flush(tt__window_t *w) {
  if (w->op_count == 0) return TT_OK_STATUS;
  if (w->capture) return tt__capture_read(w->capture);
  tt__engine.stats.windows_flushed++;
  tt_status_t s = flush(w);
  if (s) tt__window_give_up(w, s);
  tt__period_flushed(w->period);
  reset(w);
  return s;
}
