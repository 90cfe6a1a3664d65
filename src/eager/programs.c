// The programs of one compiled graph: found by what their inputs are, run in one step.
#include <string.h>

#include "eager/captured.h"

typedef struct entry_s {
  uint64_t hash;
  uint32_t number;  // in the order of tt_programs_add
  uint32_t key_count;
  tt_capture_t *capture;
  uint64_t key[];
} entry_t;

struct tt_programs_s {
  tt_table_t table;  // of entry_t
};

// --- keys ----------------------------------------------------------------------------------------

void tt__key_init(tt__key_t *key) {
  key->words = key->few;
  key->count = 0;
  key->capacity = sizeof key->few / sizeof *key->few;
}

void tt__key_deinit(tt__key_t *key) {
  if (key->words != key->few) tt_free(key->words);
}

static bool make_room(tt__key_t *key, uint32_t count) {
  if (key->count + count <= key->capacity) return true;
  uint32_t capacity = 2 * (key->count + count);
  uint64_t *words = tt_alloc(capacity * sizeof *words);
  if (!words) return false;
  memcpy(words, key->words, key->count * sizeof *words);
  tt__key_deinit(key);
  key->words = words;
  key->capacity = capacity;
  return true;
}

enum { FIXED_WORDS = 3 };

static uint32_t rank_of(const uint64_t *facts) { return (uint32_t)(facts[0] >> 16) & 0xff; }
const uint64_t *tt__key_sizes(const uint64_t *facts) { return facts + FIXED_WORDS; }
const uint64_t *tt__key_next(const uint64_t *facts) {
  return facts + FIXED_WORDS + 2 * rank_of(facts);
}

bool tt__key_inputs(tt__key_t *key, const tt_tensor_t *inputs, uint32_t count) {
  uint64_t serial = ++tt__engine.serial;
  for (uint32_t i = 0; i < count; i++) {
    const tt_tensor_t *t = &inputs[i];
    if (!make_room(key, FIXED_WORDS + 2 * t->rank)) return false;
    uint64_t *words = key->words + key->count;
    key->count += FIXED_WORDS + 2 * t->rank;
    uint64_t flags = t->flags & ~(unsigned)TT_TENSOR_GIVEN_UP;
    words[0] = t->dtype | flags << 8 | (uint64_t)t->rank << 16;
    words[1] = 0;
    words[2] = (uint64_t)t->offset;
    if (t->flags & TT_TENSOR_HOST) continue;
    tt_storage_t *s = t->storage;
    if (s->serial != serial) {
      s->serial = serial;
      s->slot = i;
    }
    words[0] |= (uint64_t)s->slot << 32;
    words[1] = s->version ? (uint64_t)(uintptr_t)s->version->layout : 0;
    if (t->rank == 0) continue;
    memcpy(words + FIXED_WORDS, t->sizes, t->rank * sizeof *words);
    memcpy(words + FIXED_WORDS + t->rank, t->strides, t->rank * sizeof *words);
  }
  return true;
}

// --- the table -----------------------------------------------------------------------------------

static uint64_t hash_key(const uint64_t *key, uint32_t count) {
  uint64_t hash = TT_HASH_SEED;
  for (uint32_t i = 0; i < count; i++) hash = tt_hash_word(hash, key[i]);
  return hash;
}

static bool matches(const void *entry, const void *key) {
  const entry_t *e = entry;
  const tt__key_t *k = key;
  return e->key_count == k->count && memcmp(e->key, k->words, k->count * sizeof *k->words) == 0;
}

// For adding: where two threads captured the same both are kept, since each has its number; either
// is found.
static bool matches_none(const void *entry, const void *key) {
  (void)entry;
  (void)key;
  return false;
}

static const entry_t *find(const tt_programs_t *p, const tt__key_t *key) {
  void **place = tt_table_place(&p->table, hash_key(key->words, key->count), matches, key);
  return place ? *place : NULL;
}

tt_status_t tt_programs_create(tt_programs_t **out_programs) {
  *out_programs = tt_alloc_zeroed(sizeof **out_programs);
  return *out_programs ? TT_OK_STATUS : tt__no_host_memory();
}

void tt_programs_destroy(tt_programs_t *p) {
  if (!p) return;
  for (uint32_t i = 0; i < p->table.size; i++) {
    entry_t *e = p->table.places[i];
    if (e) tt_capture_destroy(e->capture);
    tt_free(e);
  }
  tt_free(p->table.places);
  tt_free(p);
}

uint32_t tt_programs_count(const tt_programs_t *p) { return p->table.count; }

static bool add(tt_programs_t *p, const uint64_t *words, uint32_t word_count, tt_capture_t *c) {
  uint32_t count = word_count + c->key_count;
  entry_t *e = tt_alloc(sizeof *e + count * sizeof *e->key);
  if (!e || !tt_table_reserve(&p->table)) {
    tt_free(e);
    return false;
  }
  if (word_count) memcpy(e->key, words, word_count * sizeof *e->key);
  memcpy(e->key + word_count, c->key, c->key_count * sizeof *e->key);
  e->hash = hash_key(e->key, count);
  e->number = p->table.count++;
  e->key_count = count;
  e->capture = c;
  *tt_table_place(&p->table, e->hash, matches_none, NULL) = e;
  return true;
}

tt_status_t tt_programs_add(tt_programs_t *p, const uint64_t *words, uint32_t word_count,
                            tt_capture_t *capture) {
  TT_CHECK(!capture->open);  // made to be read
  tt__lock();
  bool added = add(p, words, word_count, capture);
  tt__unlock();
  if (added) return TT_OK_STATUS;
  tt_capture_destroy(capture);
  return tt__no_host_memory();
}

// --- running -------------------------------------------------------------------------------------

// What a run needs for a moment.
typedef struct scratch_s {
  tt_input_t *inputs;
  tt_buffer_t **buffers;
  tt_input_t few_inputs[24];
  tt_buffer_t *few_buffers[24];
} scratch_t;

static bool scratch_init(scratch_t *s, uint32_t inputs, uint32_t buffers) {
  s->inputs = s->few_inputs;
  s->buffers = s->few_buffers;
  if (inputs > sizeof s->few_inputs / sizeof *s->few_inputs) {
    s->inputs = tt_alloc(inputs * sizeof *s->inputs);
  }
  if (buffers > sizeof s->few_buffers / sizeof(tt_buffer_t *)) {
    s->buffers = tt_alloc(buffers * sizeof(tt_buffer_t *));
  }
  return s->inputs && s->buffers;
}

static void scratch_deinit(scratch_t *s) {
  if (s->inputs != s->few_inputs) tt_free(s->inputs);
  if (s->buffers != s->few_buffers) tt_free(s->buffers);
}

static tt_storage_t *storage_of(const tt_capture_t *c, const tt_tensor_t *inputs, uint32_t i) {
  return inputs[c->storages[i].input].storage;
}

// Whether the program may have the memory of an input that it does not change: nobody else has the
// value, and no output is a view of it.
static bool is_given_up(const tt_capture_t *c, const tt_tensor_t *inputs, uint32_t i) {
  const tt_tensor_t *input = &inputs[c->storages[i].input];
  const tt__version_t *v = input->storage->version;
  if (!(input->flags & TT_TENSOR_GIVEN_UP) || !v || v->refs != 1) return false;
  for (uint32_t o = 0; o < c->output_count; o++) {
    uint32_t of = c->outputs[o].input;
    if (of != TT_CAPTURE_FRESH && inputs[of].storage == input->storage) return false;
  }
  return true;
}

// What the inputs hold is there. *out_donate: whose memory nobody else needs. What is given up is
// noted at the first run; later ones donate that or nothing.
static tt_status_t settle_inputs(tt_capture_t *c, const tt_tensor_t *inputs, unsigned *out_donate) {
  bool alone = true, changes = false, given_up = true, gives = false;
  *out_donate = 0;
  for (uint32_t i = 0; i < c->storage_count; i++) {
    tt__kept_t *k = &c->storages[i];
    tt__version_t *v = storage_of(c, inputs, i)->version;
    if (!v) continue;
    if (!v->buffer) TT_RETURN_IF_ERROR(tt__version_settle(v));
    if (k->value != TT__UNCHANGED) {
      changes = true;
      alone &= v->refs == 1;
    } else if (!c->ran || k->given_up) {
      bool now = is_given_up(c, inputs, i);
      if (!c->ran) k->given_up = now;
      gives |= k->given_up;
      given_up &= now || !k->given_up;
    }
  }
  c->ran = true;
  *out_donate =
      (alone && changes ? TT__DONATE_WRITTEN : 0U) | (given_up && gives ? TT__DONATE_GIVEN_UP : 0U);
  return TT_OK_STATUS;
}

static void gather_scalars(const tt_capture_t *c, const tt_tensor_t *inputs, tt_input_t *scalars) {
  const tt__window_t *w = c->window;
  if (w->scalar_count) memcpy(scalars, w->scalars, w->scalar_count * sizeof *scalars);
  for (uint32_t i = 0; i < w->link_count; i++) {
    tt_input_t *to = &scalars[w->links[i].scalar];
    const tt_number_t *number = &inputs[w->links[i].input].number;
    tt__scalar_bits(number->kind, &number->u, (tt_dtype_t)to->dtype, to->bits);
  }
  for (uint32_t i = 0; i < w->draw_count; i++) {
    const tt__draw_t *d = &w->draws[i];
    uint64_t seed, offset;
    tt__generator_advance(c->device, d->count, &seed, &offset);
    if (d->seed != UINT32_MAX) scalars[d->seed].bits[0] = seed;
    if (d->offset != UINT32_MAX) scalars[d->offset].bits[0] = offset;
  }
}

static void gather(const tt_capture_t *c, const tt_tensor_t *inputs, tt_input_t *to) {
  const tt__window_t *w = c->window;
  for (uint32_t e = 0; e < w->external_count; e++) {
    uint32_t source = c->sources[e];
    tt__version_t *v =
        source == TT__UNCHANGED ? w->externals[e] : storage_of(c, inputs, source)->version;
    to[e].buffer = v->buffer;
  }
  gather_scalars(c, inputs, to + w->external_count);
}

static tt_status_t set_value(const tt_capture_t *c, tt_storage_t *s, tt_buffer_t *buffer,
                             uint32_t value) {
  tt__version_t *v = tt__version_make(c->window->layouts[value], buffer);
  if (!v) return tt__no_host_memory();
  tt_buffer_retain(buffer);
  tt__storage_set(s, v);
  return TT_OK_STATUS;
}

static tt_status_t hand_out(const tt_capture_t *c, const tt_tensor_t *inputs, tt_buffer_t **buffers,
                            tt_program_run_t *run) {
  for (uint32_t i = 0; i < c->storage_count; i++) {
    const tt__kept_t *k = &c->storages[i];
    if (k->value == TT__UNCHANGED) continue;
    TT_RETURN_IF_ERROR(set_value(c, storage_of(c, inputs, i), buffers[k->place], k->value));
  }
  for (uint32_t i = 0; i < c->fresh_count; i++) {
    const tt__fresh_t *f = &c->fresh[i];
    TT_RETURN_IF_ERROR(tt__storage_make(c->device, f->bytes, &run->storages[i]));
    run->storage_count++;
    TT_RETURN_IF_ERROR(set_value(c, run->storages[i], buffers[f->place], f->value));
  }
  return TT_OK_STATUS;
}

static void drop_storages(tt_program_run_t *run) {
  for (uint32_t i = 0; i < run->storage_count; i++) {
    atomic_store(&run->storages[i]->refs, 0);
    tt__storage_discard(run->storages[i]);
  }
  run->storage_count = 0;
}

static tt_status_t run_program(tt_capture_t *c, const tt_tensor_t *inputs, unsigned donate,
                               scratch_t *scratch, tt_program_run_t *run) {
  tt__window_t *w = c->window;
  TT_RETURN_IF_ERROR(tt__capture_program(c, donate));
  tt__fused_t *p = c->programs[donate];
  if (p->executable) {
    gather(c, inputs, scratch->inputs);
    TT_RETURN_IF_ERROR(tt__run(c->device, p->executable, scratch->inputs,
                               w->external_count + w->scalar_count, scratch->buffers, p->name));
  }
  tt_status_t s = hand_out(c, inputs, scratch->buffers, run);
  for (uint32_t i = 0; i < p->output_count; i++) tt_buffer_release(scratch->buffers[i]);
  if (p->check_count) {
    s = tt_status_join(
        s, tt__check_add(c->device, scratch->buffers[p->output_count], p->checks, p, NULL));
  }
  if (s) drop_storages(run);
  return s;
}

static tt_status_t run_capture(tt_capture_t *c, const tt_tensor_t *inputs, tt_program_run_t *run) {
  unsigned donate;
  TT_RETURN_IF_ERROR(settle_inputs(c, inputs, &donate));
  scratch_t scratch;
  bool room = scratch_init(&scratch, c->window->external_count + c->window->scalar_count,
                           c->fresh_count + c->storage_count + 1);
  if (c->fresh_count > sizeof run->few / sizeof(tt_storage_t *)) {
    run->storages = tt_alloc(c->fresh_count * sizeof(tt_storage_t *));
  }
  run->output_count = c->output_count;
  run->outputs = c->outputs;
  tt_status_t s =
      room && run->storages ? run_program(c, inputs, donate, &scratch, run) : tt__no_host_memory();
  scratch_deinit(&scratch);
  return s;
}

static tt_status_t find_and_run(tt_programs_t *p, const tt_tensor_t *inputs, uint32_t count,
                                tt__key_t *key, tt_program_run_t *run, int *out_device) {
  if (!tt__key_inputs(key, inputs, count)) return tt__no_host_memory();
  const entry_t *e = find(p, key);
  if (!e) return TT_ERROR(NOT_FOUND, "capture: no program for these inputs yet");
  run->program = e->number;
  *out_device = e->capture->device;
  return run_capture(e->capture, inputs, run);
}

// Debug mode: a failure is told by the run itself.
static tt_status_t wait_for(int device, tt_program_run_t *run) {
  tt_status_t s = TT_OK_STATUS;
  for (uint32_t i = 0; !s && i < run->storage_count; i++) s = tt__debug_settle(run->storages[i]);
  s = tt_status_join(s, tt__check_all(device));
  if (!s) return s;
  tt__lock();
  drop_storages(run);
  tt__unlock();
  return tt_status_annotate(s, "a compiled graph");
}

tt_status_t tt_programs_run(tt_programs_t *p, const tt_tensor_t *inputs, uint32_t count,
                            const uint64_t *words, uint32_t word_count, tt_program_run_t *out_run) {
  *out_run = (tt_program_run_t){.storages = out_run->few};
  TT_RETURN_IF_ERROR(tt__ready(0));
  int device = 0;
  tt__key_t key;
  tt__key_init(&key);
  bool room = make_room(&key, word_count);
  if (room && word_count) memcpy(key.words, words, word_count * sizeof *words);
  key.count = word_count;
  tt__lock();
  tt_status_t s =
      room ? find_and_run(p, inputs, count, &key, out_run, &device) : tt__no_host_memory();
  tt__unlock();
  tt__key_deinit(&key);
  if (__builtin_expect(!s && tt__engine.mode == TT_MODE_DEBUG, 0)) {
    s = wait_for(device, out_run);
  }
  if (s) tt_program_run_deinit(out_run);
  return s;
}

void tt_program_run_deinit(tt_program_run_t *run) {
  if (run->storages != run->few) tt_free(run->storages);
  run->storages = run->few;
}
