// Captured programs: what torch.compile runs. A thread's calls go into a window of their own, which
// becomes a callable: inputs in, one program, outputs out.
#include "eager/capture.h"

#include <string.h>

#include "eager/window.h"

// An input or output tensor as it was at the capture.
typedef struct shape_s {
  tt_out_meta_t meta;
  int64_t offset;
  uint32_t storage;  // number among the storages of the inputs, or of the outputs
  bool is_input;     // an output: its storage is the input's own
} shape_t;

typedef struct kept_s {
  tt_storage_t *storage;  // only while capturing
  tt__version_t
      *version;    // what it held when the capture began; afterwards a stand-in with its layout
  uint32_t value;  // the number of the value that it holds at the end, or UNCHANGED
} kept_t;
#define UNCHANGED UINT32_MAX

struct tt_capture_s {
  int device;
  bool failed;        // a value was read meanwhile
  bool located;       // the program is to know its Python lines
  const char *place;  // the line that makes the present call
  tt__window_t *window;
  tt_arena_t arena;
  shape_t *inputs, *outputs;
  uint32_t input_count, output_count;
  kept_t *storages;  // of the inputs, each once
  uint32_t storage_count;
  uint32_t *fresh;  // the values that new storages of the outputs get
  size_t *fresh_bytes;
  uint32_t fresh_count;
  uint32_t *sources;  // of each external of the window: an input storage, or UNCHANGED: a constant
  uint32_t *input_of_storage;  // an input tensor that has it
  tt__fused_t *programs[2];    // [1] may use the memory of the inputs that it changes
  uint64_t hash;
};

static _Thread_local tt_capture_t *current;

tt__window_t *tt__capture_window(int device) {
  return current && current->device == device ? current->window : NULL;
}

// --- Python lines
// -----------------------------------------------------------------------------------

void tt_capture_locate(tt_capture_t *c) { c->located = true; }

const char *tt__capture_place(const tt_capture_t *c) { return c->place; }

void tt__capture_note_place(void) {
  tt_capture_t *c = current;
  const tt_eager_hooks_t *hooks = &tt__engine.hooks;
  char text[512];
  if (!c || !c->located || !hooks->python_location) return;
  if (!hooks->python_location(hooks->context, text, sizeof text)) {
    c->place = NULL;
  } else if (!c->place || strcmp(c->place, text) != 0) {
    c->place = tt_arena_string(&c->arena, text, strlen(text));
  }
}

// --- beginning
// ------------------------------------------------------------------------------------

static bool copy_shape(tt_capture_t *c, const tt_tensor_t *t, shape_t *to) {
  size_t size = t->rank * sizeof(int64_t);
  to->meta = (tt_out_meta_t){t->dtype, t->rank, tt_arena_copy(&c->arena, t->sizes, size),
                             tt_arena_copy(&c->arena, t->strides, size)};
  to->offset = t->offset;
  return to->meta.sizes && to->meta.strides;
}

static uint32_t find_storage(const tt_capture_t *c, const tt_storage_t *s) {
  uint32_t i = 0;
  while (i < c->storage_count && c->storages[i].storage != s) i++;
  return i;
}

static tt_status_t add_input(tt_capture_t *c, const tt_tensor_t *t) {
  shape_t *shape = &c->inputs[c->input_count];
  if (!copy_shape(c, t, shape)) return tt__no_host_memory();
  shape->storage = find_storage(c, t->storage);
  if (shape->storage == c->storage_count) {
    tt__version_t *v = t->storage->version;
    if (v) {
      TT_RETURN_IF_ERROR(tt__version_settle(v));
      tt__version_retain(v);
    }
    c->input_of_storage[c->storage_count] = c->input_count;
    c->storages[c->storage_count++] = (kept_t){t->storage, v, UNCHANGED};
  }
  c->input_count++;
  return TT_OK_STATUS;
}

static tt_status_t begin(tt_capture_t *c, const tt_tensor_t *inputs, uint32_t count) {
  c->inputs = TT_ARENA_ARRAY(&c->arena, shape_t, count);
  c->storages = TT_ARENA_ARRAY(&c->arena, kept_t, count);
  c->input_of_storage = TT_ARENA_ARRAY(&c->arena, uint32_t, count);
  if (!c->inputs || !c->storages || !c->input_of_storage) return tt__no_host_memory();
  for (uint32_t i = 0; i < count; i++) TT_RETURN_IF_ERROR(add_input(c, &inputs[i]));
  TT_RETURN_IF_ERROR(tt__window_create(c->device, &c->window));
  c->window->capture = c;
  return TT_OK_STATUS;
}

tt_status_t tt_capture_begin(int device, const tt_tensor_t *inputs, uint32_t count,
                             tt_capture_t **out_capture) {
  *out_capture = NULL;
  TT_RETURN_IF_ERROR(tt__ready(device));
  if (current) return TT_ERROR(INVALID_ARGUMENT, "this thread is capturing a program already");
  tt_capture_t *c = tt_alloc_zeroed(sizeof *c);
  if (!c) return tt__no_host_memory();
  c->device = device;
  tt_arena_init(&c->arena, 2048);
  tt__lock();
  tt_status_t s = begin(c, inputs, count);
  tt__unlock();
  if (s) {
    tt_capture_destroy(c);
    return s;
  }
  tt__engine.captures++;
  *out_capture = current = c;
  return TT_OK_STATUS;
}

tt_status_t tt__capture_read(tt_capture_t *c) {
  c->failed = true;
  return TT_ERROR(UNIMPLEMENTED, "capture: a value is read while a program is captured");
}

// A tensor that is no input and held a value before the capture may be read (it is a constant of
// the program) but not written: the write would have nowhere to go.
tt_status_t tt__capture_admit(const tt__window_t *w, const tt__frame_t *frame,
                              const tt__instance_t *instance) {
  const tt_capture_t *c = w->capture;
  for (uint32_t o = 0; o < instance->output_count; o++) {
    if (instance->outputs[o].slot == TT__FRESH) continue;
    const tt_storage_t *s = frame->slots[instance->outputs[o].slot].storage;
    if (!s->version || s->version->window == w || find_storage(c, s) < c->storage_count) continue;
    return TT_ERROR(UNIMPLEMENTED,
                    "capture: %s writes a tensor that is not an input of the program",
                    instance->name);
  }
  return TT_OK_STATUS;
}

// --- ending
// ---------------------------------------------------------------------------------------

// The capture has no effect: inputs hold again what they held, and say what they would hold.
static void restore_inputs(tt_capture_t *c) {
  for (uint32_t i = 0; i < c->storage_count; i++) {
    kept_t *k = &c->storages[i];
    tt__version_t *now = k->storage->version;
    if (now == k->version) continue;
    if (now && now->window == c->window) k->value = now->number;
    if (k->version) tt__version_retain(k->version);
    tt__storage_set(k->storage, k->version);
  }
}

// Where an output's storage comes from: an input's, or a new one for a value of the window.
static tt_status_t add_output(tt_capture_t *c, const tt_tensor_t *t, tt_storage_t **fresh) {
  shape_t *shape = &c->outputs[c->output_count];
  if (!copy_shape(c, t, shape)) return tt__no_host_memory();
  shape->storage = find_storage(c, t->storage);
  shape->is_input = shape->storage < c->storage_count;
  c->output_count++;
  if (shape->is_input) return TT_OK_STATUS;
  uint32_t i = 0;
  while (i < c->fresh_count && fresh[i] != t->storage) i++;
  shape->storage = i;
  if (i < c->fresh_count) return TT_OK_STATUS;
  tt__version_t *v = t->storage->version;
  if (!v || v->window != c->window) {
    return TT_ERROR(UNIMPLEMENTED, "capture: an output was not made by the captured calls");
  }
  fresh[i] = t->storage;
  c->fresh[i] = v->number;
  c->fresh_bytes[i] = t->storage->bytes;
  c->fresh_count++;
  return TT_OK_STATUS;
}

static tt_status_t collect_outputs(tt_capture_t *c, const tt_tensor_t *outputs, uint32_t count) {
  c->outputs = TT_ARENA_ARRAY(&c->arena, shape_t, count);
  c->fresh = TT_ARENA_ARRAY(&c->arena, uint32_t, count);
  c->fresh_bytes = TT_ARENA_ARRAY(&c->arena, size_t, count);
  tt_storage_t **fresh = TT_ARENA_ARRAY(&c->arena, tt_storage_t *, count);
  if (!c->outputs || !c->fresh || !c->fresh_bytes || !fresh) return tt__no_host_memory();
  for (uint32_t i = 0; i < count; i++) TT_RETURN_IF_ERROR(add_output(c, &outputs[i], fresh));
  return TT_OK_STATUS;
}

// Which input storage each external of the window is; its place is taken by a stand-in, so that a
// callable holds no example data.
static tt_status_t find_sources(tt_capture_t *c) {
  tt__window_t *w = c->window;
  c->sources = TT_ARENA_ARRAY(&c->arena, uint32_t, w->external_count);
  if (!c->sources) return tt__no_host_memory();
  for (uint32_t e = 0; e < w->external_count; e++) {
    uint32_t i = 0;
    while (i < c->storage_count && c->storages[i].version != w->externals[e]) i++;
    c->sources[e] = i < c->storage_count ? i : UNCHANGED;
  }
  for (uint32_t i = 0; i < c->storage_count; i++) {
    tt__version_t *v = c->storages[i].version;
    if (!v) continue;
    tt__version_t *stand_in = tt__version_make(v->layout, NULL);
    if (!stand_in) return tt__no_host_memory();
    c->storages[i].version = stand_in;
    tt__version_release(v);
  }
  for (uint32_t e = 0; e < w->external_count; e++) {
    if (c->sources[e] == UNCHANGED) continue;
    tt__version_t *v = c->storages[c->sources[e]].version;
    tt__version_retain(v);
    tt__version_release(w->externals[e]);
    w->externals[e] = v;
  }
  return TT_OK_STATUS;
}

static void set_bit(uint32_t *bits, uint32_t i) { bits[i / 32] |= UINT32_C(1) << i % 32; }

// Completes the window's key: what the outputs need is live, and (donate) the inputs that are
// written may give up their memory.
static tt_status_t complete_key(tt_capture_t *c, bool donate) {
  tt__window_t *w = c->window;
  if (!tt__window_key(w)) return tt__no_host_memory();
  uint32_t *live = w->trace + w->live, *own = w->trace + w->own;
  for (uint32_t i = 0; i < c->fresh_count; i++) set_bit(live, c->fresh[i]);
  for (uint32_t i = 0; i < c->storage_count; i++) {
    if (c->storages[i].value != UNCHANGED) set_bit(live, c->storages[i].value);
  }
  for (uint32_t e = 0; donate && e < w->external_count; e++) {
    uint32_t source = c->sources[e];
    if (source != UNCHANGED && c->storages[source].value != UNCHANGED) set_bit(own, e);
  }
  return TT_OK_STATUS;
}

// Finds or makes one of the two programs.
static tt_status_t make_program(tt_capture_t *c, bool donate) {
  tt__window_t *w = c->window;
  if (c->programs[donate]) return TT_OK_STATUS;
  TT_RETURN_IF_ERROR(complete_key(c, donate));
  uint64_t hash =
      tt_hash_bytes(w->hash, w->trace + w->live, (w->key_count - w->live) * sizeof *w->trace);
  return tt__fused_program(w, hash, &c->programs[donate]);
}

tt_status_t tt_capture_print(tt_capture_t *c, char **out_text, size_t *out_size) {
  tt__lock();
  tt_status_t s = complete_key(c, true);
  if (!s) s = tt__window_print(c->window, out_text, out_size);
  tt__unlock();
  return s;
}

static tt_status_t end(tt_capture_t *c, const tt_tensor_t *outputs, uint32_t count) {
  tt_status_t s = collect_outputs(c, outputs, count);
  restore_inputs(c);
  TT_RETURN_IF_ERROR(s);
  if (c->failed) return tt__capture_read(c);
  // Other holders of values of this window, the outputs themselves among them, get an error to
  // read.
  tt_status_t gone = TT_ERROR(INVALID_ARGUMENT, "the value was made while a program was captured");
  tt__window_give_up(c->window, gone);
  tt_status_release(gone);
  TT_RETURN_IF_ERROR(find_sources(c));
  return make_program(c, false);
}

static void leave(tt_capture_t *c) {
  if (current != c) return;
  current = NULL;
  tt__engine.captures--;
}

tt_status_t tt_capture_end(tt_capture_t *c, const tt_tensor_t *outputs, uint32_t count) {
  leave(c);
  tt__lock();
  tt_status_t s = end(c, outputs, count);
  tt__unlock();
  return s;
}

void tt_capture_destroy(tt_capture_t *c) {
  if (!c) return;
  bool capturing = current == c;
  leave(c);
  tt__lock();
  if (capturing) restore_inputs(c);
  for (uint32_t i = 0; i < c->storage_count; i++) tt__version_release(c->storages[i].version);
  if (c->window) tt__window_destroy(c->window);
  tt__unlock();
  tt_arena_deinit(&c->arena);
  tt_free(c);
}

// --- running
// --------------------------------------------------------------------------------------

static bool same_shape(const shape_t *shape, const tt_tensor_t *t) {
  size_t size = t->rank * sizeof(int64_t);
  return shape->meta.dtype == t->dtype && shape->meta.rank == t->rank &&
         shape->offset == t->offset &&
         (size == 0 || (memcmp(shape->meta.sizes, t->sizes, size) == 0 &&
                        memcmp(shape->meta.strides, t->strides, size) == 0));
}

static tt_storage_t *storage_of(const tt_capture_t *c, const tt_tensor_t *inputs, uint32_t i) {
  return inputs[c->input_of_storage[i]].storage;
}

// The inputs are of the captured kind; what they hold is there. *out_alone: nobody else holds what
// the program changes.
static tt_status_t check_inputs(const tt_capture_t *c, const tt_tensor_t *inputs, uint32_t count,
                                bool *out_alone) {
  bool same = count == c->input_count;
  *out_alone = false;
  for (uint32_t i = 0; same && i < count; i++) same = same_shape(&c->inputs[i], &inputs[i]);
  bool alone = true, changes = false;
  for (uint32_t i = 0; same && i < c->storage_count; i++) {
    tt__version_t *v = storage_of(c, inputs, i)->version, *captured = c->storages[i].version;
    same = (v ? v->layout : NULL) == (captured ? captured->layout : NULL);
    if (!same || !v) continue;
    if (!v->buffer) TT_RETURN_IF_ERROR(tt__version_settle(v));
    if (c->storages[i].value == UNCHANGED) continue;
    changes = true;
    alone &= v->refs == 1;
  }
  if (!same) {
    return TT_ERROR(NOT_FOUND, "capture: the inputs differ from those of the captured program");
  }
  *out_alone = alone && changes;
  return TT_OK_STATUS;
}

static void gather(const tt_capture_t *c, const tt_tensor_t *inputs, tt_input_t *to) {
  tt__window_t *w = c->window;
  for (uint32_t e = 0; e < w->external_count; e++) {
    uint32_t source = c->sources[e];
    tt__version_t *v =
        source == UNCHANGED ? w->externals[e] : storage_of(c, inputs, source)->version;
    to[e].buffer = v->buffer;
  }
  tt_input_t *scalars = to + w->external_count;
  if (w->scalar_count) memcpy(scalars, w->scalars, w->scalar_count * sizeof *scalars);
  for (uint32_t i = 0; i < w->draw_count; i++) {
    const tt__draw_t *d = &w->draws[i];
    uint64_t seed, offset;
    tt__generator_advance(c->device, d->count, &seed, &offset);
    if (d->seed != UINT32_MAX) scalars[d->seed].bits[0] = seed;
    if (d->offset != UINT32_MAX) scalars[d->offset].bits[0] = offset;
  }
}

// Buffers come in the order of the values' numbers.
static tt_buffer_t *take_buffer(const tt_capture_t *c, tt_buffer_t **buffers, uint32_t value) {
  const uint32_t *live = c->window->trace + c->window->live;
  uint32_t at = 0;
  for (uint32_t i = 0; i < value / 32; i++) at += (uint32_t)__builtin_popcount(live[i]);
  uint32_t below = (UINT32_C(1) << value % 32) - 1;
  at += (uint32_t)__builtin_popcount(live[value / 32] & below);
  tt_buffer_retain(buffers[at]);
  return buffers[at];
}

static tt_status_t set_value(tt_capture_t *c, tt_storage_t *s, tt_buffer_t **buffers,
                             uint32_t value) {
  tt_buffer_t *buffer = take_buffer(c, buffers, value);
  tt__version_t *v = tt__version_make(c->window->layouts[value], buffer);
  if (!v) {
    tt_buffer_release(buffer);
    return tt__no_host_memory();
  }
  tt__storage_set(s, v);
  return TT_OK_STATUS;
}

static tt_status_t make_outputs(tt_capture_t *c, const tt_tensor_t *inputs, tt_buffer_t **buffers,
                                tt_storage_t **fresh, tt_outs_t *outs) {
  for (uint32_t i = 0; i < c->storage_count; i++) {
    uint32_t value = c->storages[i].value;
    if (value == UNCHANGED) continue;
    TT_RETURN_IF_ERROR(set_value(c, storage_of(c, inputs, i), buffers, value));
  }
  for (uint32_t i = 0; i < c->fresh_count; i++) {
    TT_RETURN_IF_ERROR(tt__storage_make(c->device, c->fresh_bytes[i], &fresh[i]));
    TT_RETURN_IF_ERROR(set_value(c, fresh[i], buffers, c->fresh[i]));
  }
  for (uint32_t i = 0; i < c->output_count; i++) {
    shape_t *shape = &c->outputs[i];
    tt_storage_t *s =
        shape->is_input ? storage_of(c, inputs, shape->storage) : fresh[shape->storage];
    tt_storage_retain(s);
    outs->items[outs->count++] = (tt_out_t){s, &shape->meta, shape->offset};
  }
  return TT_OK_STATUS;
}

// A new storage's first reference was the run's own.
static void drop_fresh(const tt_capture_t *c, tt_storage_t **fresh) {
  for (uint32_t i = 0; i < c->fresh_count; i++) {
    if (fresh[i] && atomic_fetch_sub(&fresh[i]->refs, 1) == 1) tt__storage_discard(fresh[i]);
  }
}

// The results of a run that failed: each holds one reference among others, an input's storage too.
static void drop_results(tt_outs_t *outs) {
  for (uint32_t i = 0; i < outs->count; i++) {
    tt_storage_t *s = outs->items[i].storage;
    if (atomic_fetch_sub(&s->refs, 1) == 1) tt__storage_discard(s);
  }
  tt_outs_deinit(outs);
}

static tt_status_t run_with(tt_capture_t *c, const tt_tensor_t *inputs, tt_input_t *arguments,
                            tt_buffer_t **buffers, tt_storage_t **fresh, bool donate,
                            tt_outs_t *outs) {
  tt__window_t *w = c->window;
  TT_RETURN_IF_ERROR(make_program(c, donate));
  tt__fused_t *p = c->programs[donate];
  if (p->executable) {
    gather(c, inputs, arguments);
    TT_RETURN_IF_ERROR(tt__run(c->device, p->executable, arguments,
                               w->external_count + w->scalar_count, buffers, p->name));
  }
  tt_status_t s = make_outputs(c, inputs, buffers, fresh, outs);
  for (uint32_t i = 0; i < p->output_count; i++) tt_buffer_release(buffers[i]);
  if (p->check_count) {
    s = tt_status_join(s, tt__check_add(c->device, buffers[p->output_count], p->checks));
  }
  return s;
}

static tt_status_t run(tt_capture_t *c, const tt_tensor_t *inputs, uint32_t count,
                       tt_outs_t *outs) {
  tt__window_t *w = c->window;
  bool alone;
  TT_RETURN_IF_ERROR(check_inputs(c, inputs, count, &alone));
  size_t argument_bytes = (w->external_count + w->scalar_count) * sizeof(tt_input_t);
  size_t buffer_bytes = (c->fresh_count + c->storage_count + 1) * sizeof(tt_buffer_t *);
  char *memory = tt_alloc(argument_bytes + buffer_bytes + c->fresh_count * sizeof(tt_storage_t *));
  if (!memory) return tt__no_host_memory();
  tt_input_t *arguments = (tt_input_t *)(void *)memory;
  tt_buffer_t **buffers = (tt_buffer_t **)(void *)(memory + argument_bytes);
  tt_storage_t **fresh = (tt_storage_t **)(void *)(memory + argument_bytes + buffer_bytes);
  memset(fresh, 0, c->fresh_count * sizeof(tt_storage_t *));
  tt_status_t s = run_with(c, inputs, arguments, buffers, fresh, alone, outs);
  if (s) drop_results(outs);
  drop_fresh(c, fresh);
  tt_free(memory);
  return s;
}

tt_status_t tt_capture_run(tt_capture_t *c, const tt_tensor_t *inputs, uint32_t count,
                           tt_outs_t *outs) {
  outs->count = 0;
  outs->items = outs->inline_items;
  TT_RETURN_IF_ERROR(tt__ready(c->device));
  if (c->output_count > sizeof outs->inline_items / sizeof *outs->inline_items) {
    outs->items = tt_alloc(c->output_count * sizeof *outs->items);
    if (!outs->items) {
      outs->items = outs->inline_items;
      return tt__no_host_memory();
    }
  }
  tt__lock();
  tt_status_t s = run(c, inputs, count, outs);
  tt__unlock();
  return s;
}
