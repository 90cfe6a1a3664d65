// Captured programs: what torch.compile runs (programs.c). A thread's calls go into a window of
// their own, which becomes a callable: inputs in, one program, outputs out.
#include "eager/capture.h"

#include <string.h>

#include "eager/captured.h"

static _Thread_local tt_capture_t *current;

tt__window_t *tt__capture_window(int device) {
  return current && current->device == device ? current->window : NULL;
}

// --- Python lines --------------------------------------------------------------------------------

void tt_capture_locate(tt_capture_t *c) { c->located = true; }
void tt_capture_open(tt_capture_t *c) { c->open = true; }
bool tt_capture_is_open(int device) {
  return current && current->device == device && current->open;
}

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

// --- beginning -----------------------------------------------------------------------------------

static uint32_t find_storage(const tt_capture_t *c, const tt_storage_t *s) {
  uint32_t i = 0;
  while (i < c->storage_count && c->storages[i].storage != s) i++;
  return i;
}

static tt_status_t add_storage(tt_capture_t *c, tt_storage_t *s, uint32_t input) {
  if (!tt_grow((void **)&c->storages, &c->storage_capacity, c->storage_count + 1,
               sizeof *c->storages))
    return tt__no_host_memory();
  tt__version_t *v = s->version;
  if (v) {
    TT_RETURN_IF_ERROR(tt__version_settle(v));
    tt__version_retain(v);
  }
  c->storages[c->storage_count++] = (tt__kept_t){s, v, input, TT__UNCHANGED, TT__UNCHANGED, false};
  return TT_OK_STATUS;
}

static tt_status_t add_input(tt_capture_t *c, const tt_tensor_t *t) {
  uint32_t input = c->input_count++;
  c->inputs[input] = *t;
  c->host_count += (t->flags & TT_TENSOR_HOST) != 0;
  if (t->flags & TT_TENSOR_HOST || find_storage(c, t->storage) < c->storage_count) {
    return TT_OK_STATUS;
  }
  return add_storage(c, t->storage, input);
}

static tt_status_t keep_key(tt_capture_t *c) {
  tt__key_t key;
  tt__key_init(&key);
  bool made = tt__key_inputs(&key, c->inputs, c->input_count);
  if (made) c->key = tt_arena_copy(&c->arena, key.words, key.count * sizeof *key.words);
  c->key_count = key.count;
  tt__key_deinit(&key);
  return c->key ? TT_OK_STATUS : tt__no_host_memory();
}

static tt_status_t begin(tt_capture_t *c, const tt_tensor_t *inputs, uint32_t count) {
  c->inputs = TT_ARENA_ARRAY(&c->arena, tt_tensor_t, count);
  if (!c->inputs) return tt__no_host_memory();
  for (uint32_t i = 0; i < count; i++) TT_RETURN_IF_ERROR(add_input(c, &inputs[i]));
  TT_RETURN_IF_ERROR(keep_key(c));
  return tt__window_create(c->device, c, &c->window);
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

tt_status_t tt__capture_look(const tt_storage_t *storage) {
  tt_capture_t *c = current;
  for (uint32_t i = 0; c && i < c->storage_count; i++) {
    const tt__kept_t *k = &c->storages[i];
    bool shared = k->version && k->version == storage->version;
    if (shared || k->storage == storage) return tt__capture_read(c);
  }
  return TT_OK_STATUS;
}

tt_status_t tt__capture_upload(int device) {
  tt_capture_t *c = current && current->device == device ? current : NULL;
  if (!c || !c->host_count) return TT_OK_STATUS;
  return TT_ERROR(UNIMPLEMENTED, "capture: a host input is brought to the device");
}

uint32_t tt__capture_host(const tt_capture_t *c, const void *handle) {
  uint32_t i = 0;
  while (i < c->input_count &&
         !(c->inputs[i].flags & TT_TENSOR_HOST && c->inputs[i].handle == handle))
    i++;
  return i < c->input_count ? i : TT__UNCHANGED;
}

// Makes the storage one that the program writes; held until the capture's end.
static tt_status_t adopt(tt_capture_t *c, tt_storage_t *s) {
  TT_RETURN_IF_ERROR(add_storage(c, s, TT__UNCHANGED));
  tt_storage_retain(s);
  return TT_OK_STATUS;
}

// A tensor that is no input and held a value before the capture may be read (it is a constant of
// the program) but not written: the write would have nowhere to go.
tt_status_t tt__capture_admit(const tt__window_t *w, const tt__frame_t *frame,
                              const tt__instance_t *instance) {
  tt_capture_t *c = w->capture;
  for (uint32_t o = 0; o < instance->output_count; o++) {
    if (instance->outputs[o].slot == TT__FRESH) continue;
    tt_storage_t *s = frame->slots[instance->outputs[o].slot].storage;
    if (!s->version || s->version->window == w || find_storage(c, s) < c->storage_count) continue;
    if (c->open) {
      TT_RETURN_IF_ERROR(adopt(c, s));
      continue;
    }
    return TT_ERROR(UNIMPLEMENTED,
                    "capture: %s writes a tensor that is not an input of the program",
                    instance->name);
  }
  return TT_OK_STATUS;
}

// --- ending --------------------------------------------------------------------------------------

// The capture has no effect: inputs hold again what they held, and say what they would hold.
static tt_status_t restore_inputs(tt_capture_t *c) {
  bool lost = false;
  for (uint32_t i = 0; i < c->storage_count; i++) {
    tt__kept_t *k = &c->storages[i];
    tt__version_t *now = k->storage->version;
    if (now != k->version) {
      if (now && now->window == c->window)
        k->value = now->number;
      else
        lost = true;
      if (k->version) tt__version_retain(k->version);
      tt__storage_set(k->storage, k->version);
    }
    // The engine's lock is held: the last reference is not given up by tt_storage_release.
    if (k->input == TT__UNCHANGED && atomic_fetch_sub(&k->storage->refs, 1) == 1) {
      tt__storage_discard(k->storage);
    }
  }
  if (!lost) return TT_OK_STATUS;
  return TT_ERROR(UNIMPLEMENTED, "capture: an input is overwritten with host data");
}

static bool same_tensor(const tt_capture_output_t *o, const tt_tensor_t *t, const int64_t *sizes,
                        const int64_t *strides) {
  size_t size = t->rank * sizeof *sizes;
  return o->meta.dtype == t->dtype && o->meta.rank == t->rank && o->offset == t->offset &&
         t->flags == 0 &&
         (size == 0 ||
          (memcmp(o->meta.sizes, sizes, size) == 0 && memcmp(o->meta.strides, strides, size) == 0));
}

// An output over an input's storage: an input that is the same tensor, else any that has the
// storage. The inputs' sizes and strides are in the key.
static void find_input(const tt_capture_t *c, uint32_t storage, tt_capture_output_t *o) {
  const uint64_t *facts = c->key;
  o->input = c->storages[storage].input;
  for (uint32_t i = 0; i < c->input_count; i++) {
    const tt_tensor_t *t = &c->inputs[i];
    const int64_t *sizes = (const int64_t *)(const void *)tt__key_sizes(facts);
    facts = tt__key_next(facts);
    if (t->storage != c->storages[storage].storage) continue;
    if (!same_tensor(o, t, sizes, sizes + t->rank)) continue;
    o->input = i;
    o->same = true;
    return;
  }
}

// Where an output's storage comes from: an input's, or a new one for a value of the window.
static tt_status_t add_output(tt_capture_t *c, const tt_tensor_t *t, tt_storage_t **fresh) {
  tt_capture_output_t *o = &c->outputs[c->output_count];
  size_t size = t->rank * sizeof(int64_t);
  *o = (tt_capture_output_t){{t->dtype, t->rank, tt_arena_copy(&c->arena, t->sizes, size),
                              tt_arena_copy(&c->arena, t->strides, size)},
                             t->offset,
                             TT_CAPTURE_FRESH,
                             0,
                             false};
  if (!o->meta.sizes || !o->meta.strides) return tt__no_host_memory();
  c->output_count++;
  uint32_t storage = find_storage(c, t->storage);
  if (storage < c->storage_count) {
    find_input(c, storage, o);
    return TT_OK_STATUS;
  }
  while (o->storage < c->fresh_count && fresh[o->storage] != t->storage) o->storage++;
  if (o->storage < c->fresh_count) return TT_OK_STATUS;
  tt__version_t *v = t->storage->version;
  if (!v || v->window != c->window) {
    return TT_ERROR(UNIMPLEMENTED, "capture: an output was not made by the captured calls");
  }
  fresh[c->fresh_count] = t->storage;
  c->fresh[c->fresh_count++] = (tt__fresh_t){v->number, TT__UNCHANGED, t->storage->bytes};
  return TT_OK_STATUS;
}

static tt_status_t collect_outputs(tt_capture_t *c, const tt_tensor_t *outputs, uint32_t count) {
  c->outputs = TT_ARENA_ARRAY(&c->arena, tt_capture_output_t, count);
  c->fresh = TT_ARENA_ARRAY(&c->arena, tt__fresh_t, count);
  tt_storage_t **fresh = TT_ARENA_ARRAY(&c->arena, tt_storage_t *, count);
  if (!c->outputs || !c->fresh || !fresh) return tt__no_host_memory();
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
    c->sources[e] = i < c->storage_count ? i : TT__UNCHANGED;
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
    if (c->sources[e] == TT__UNCHANGED) continue;
    tt__version_t *v = c->storages[c->sources[e]].version;
    tt__version_retain(v);
    tt__version_release(w->externals[e]);
    w->externals[e] = v;
  }
  return TT_OK_STATUS;
}

static void set_bit(uint32_t *bits, uint32_t i) { bits[i / 32] |= UINT32_C(1) << i % 32; }

static bool is_donated(const tt__kept_t *k, unsigned donate) {
  if (k->value != TT__UNCHANGED) return donate & TT__DONATE_WRITTEN;
  return donate & TT__DONATE_GIVEN_UP && k->given_up;
}

// Completes the window's key: what the outputs need is live, and which inputs may give up their
// memory.
static tt_status_t complete_key(tt_capture_t *c, unsigned donate) {
  tt__window_t *w = c->window;
  if (!tt__window_key(w)) return tt__no_host_memory();
  uint32_t *live = w->trace + w->live, *own = w->trace + w->own;
  for (uint32_t i = 0; i < c->fresh_count; i++) set_bit(live, c->fresh[i].value);
  for (uint32_t i = 0; i < c->storage_count; i++) {
    if (c->storages[i].value != TT__UNCHANGED) set_bit(live, c->storages[i].value);
  }
  for (uint32_t e = 0; donate && e < w->external_count; e++) {
    uint32_t source = c->sources[e];
    if (source != TT__UNCHANGED && is_donated(&c->storages[source], donate)) set_bit(own, e);
  }
  return TT_OK_STATUS;
}

tt_status_t tt__capture_program(tt_capture_t *c, unsigned donate) {
  tt__window_t *w = c->window;
  if (c->programs[donate]) return TT_OK_STATUS;
  TT_RETURN_IF_ERROR(complete_key(c, donate));
  uint64_t hash =
      tt_hash_bytes(w->hash, w->trace + w->live, (w->key_count - w->live) * sizeof *w->trace);
  return tt__fused_program(w, hash, &c->programs[donate]);
}

// A program's results come in the order of the values' numbers.
static uint32_t place_of(const tt__window_t *w, uint32_t value) {
  const uint32_t *live = w->trace + w->live;
  uint32_t at = 0, below = (UINT32_C(1) << value % 32) - 1;
  for (uint32_t i = 0; i < value / 32; i++) at += (uint32_t)__builtin_popcount(live[i]);
  return at + (uint32_t)__builtin_popcount(live[value / 32] & below);
}

static void find_places(tt_capture_t *c) {
  for (uint32_t i = 0; i < c->fresh_count; i++) {
    c->fresh[i].place = place_of(c->window, c->fresh[i].value);
  }
  for (uint32_t i = 0; i < c->storage_count; i++) {
    tt__kept_t *k = &c->storages[i];
    if (k->value != TT__UNCHANGED) k->place = place_of(c->window, k->value);
  }
}

tt_status_t tt_capture_print(tt_capture_t *c, char **out_text, size_t *out_size) {
  tt__lock();
  tt_status_t s = complete_key(c, TT__DONATE_WRITTEN);
  if (!s) s = tt__window_print(c->window, out_text, out_size);
  tt__unlock();
  return s;
}

static tt_status_t end(tt_capture_t *c, const tt_tensor_t *outputs, uint32_t count) {
  tt_status_t s = collect_outputs(c, outputs, count);
  s = tt_status_join(s, restore_inputs(c));
  TT_RETURN_IF_ERROR(s);
  if (c->failed) return tt__capture_read(c);
  // Other holders of values of this window, the outputs themselves among them, get an error to
  // read.
  tt_status_t gone = TT_ERROR(INVALID_ARGUMENT, "the value was made while a program was captured");
  tt__window_give_up(c->window, gone);
  tt_status_release(gone);
  TT_RETURN_IF_ERROR(find_sources(c));
  if (c->open) return TT_OK_STATUS;  // it is only printed
  TT_RETURN_IF_ERROR(complete_key(c, 0));
  find_places(c);
  return TT_OK_STATUS;
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
  if (capturing) tt_status_release(restore_inputs(c));
  for (uint32_t i = 0; i < c->storage_count; i++) tt__version_release(c->storages[i].version);
  if (c->window) tt__window_destroy(c->window);
  tt__unlock();
  tt_free(c->storages);
  for (int i = 0; i <= TT__DONATE_ALL; i++) tt__fused_release(c->programs[i]);
  tt_arena_deinit(&c->arena);
  tt_free(c);
}

bool tt_capture_scalar(const tt_capture_t *c, uint32_t i, uint64_t out_bits[2]) {
  if (i >= c->window->scalar_count) return false;
  memcpy(out_bits, c->window->scalars[i].bits, sizeof c->window->scalars[i].bits);
  return true;
}

// Scalars that are linked to a host input may differ, all others may not: a value read in passing
// would have become one of those.
bool tt_capture_same(const tt_capture_t *a, const tt_capture_t *b) {
  const tt__window_t *v = a->window, *w = b->window;
  bool same = v->hash == w->hash && v->trace_count == w->trace_count &&
              v->external_count == w->external_count && v->scalar_count == w->scalar_count &&
              v->link_count == w->link_count &&
              memcmp(v->trace, w->trace, v->trace_count * sizeof *v->trace) == 0;
  for (uint32_t e = 0; same && e < w->external_count; e++) {
    same = a->sources[e] == b->sources[e] &&
           (a->sources[e] != TT__UNCHANGED || v->externals[e] == w->externals[e]);
  }
  for (uint32_t i = 0, link = 0; same && i < w->scalar_count; i++) {
    if (link < w->link_count && w->links[link].scalar == i) {
      same = v->links[link].scalar == i && v->links[link].input == w->links[link].input;
      link++;
    } else {
      same = memcmp(v->scalars[i].bits, w->scalars[i].bits, sizeof w->scalars[i].bits) == 0;
    }
  }
  return same;
}
