// From a call to work: finds the instance, then submits it (Strict, Debug) or appends it to the
// stream's window (DeferAndFuse).
#include <string.h>

#include "eager/internal.h"

void tt_outs_deinit(tt_outs_t *outs) {
  if (outs->items != outs->inline_items) tt_free(outs->items);
  tt__instance_release(outs->instance);
  outs->instance = NULL;
  outs->items = outs->inline_items;
  outs->count = 0;
}

void tt__outs_drop(tt_outs_t *outs) {
  for (uint32_t i = 0; i < outs->count; i++) {
    tt_storage_t *s = outs->items[i].storage;
    if (!s) continue;
    // The engine's lock is held: the last reference is not given up by tt_storage_release.
    atomic_fetch_sub(&s->refs, 1);
    tt__storage_discard(s);
  }
  tt_outs_deinit(outs);
}

// Fresh storages for the instance's results, their versions not set.
static tt_status_t make_outs(tt__instance_t *n, int device, tt_outs_t *outs) {
  uint32_t inline_count = sizeof outs->inline_items / sizeof *outs->inline_items;
  outs->count = 0;
  outs->items = outs->inline_items;
  outs->instance = n;
  tt__instance_retain(n);
  uint32_t total = n->call.variant == TT_FUNCTIONAL ? n->returned_count : 0;
  if (total > inline_count) {
    outs->items = tt_alloc(total * sizeof *outs->items);
    if (!outs->items) {
      tt_outs_deinit(outs);
      return tt__no_host_memory();
    }
  }
  uint32_t fresh = 0;
  for (uint32_t i = 0; i < total; i++) {
    tt_out_t *out = &outs->items[i];
    *out = (tt_out_t){NULL, &n->outs[i], 0};
    if (n->outs[i].rank != TT_NO_TENSOR) {
      tt_status_t s = tt__storage_make(device, n->outputs[fresh++].bytes, &out->storage);
      if (s) {
        tt__outs_drop(outs);
        return s;
      }
    }
    outs->count++;
  }
  return TT_OK_STATUS;
}

void tt__output_set(const tt__instance_t *n, uint32_t o, const tt__frame_t *frame, tt_outs_t *outs,
                    tt__version_t *version) {
  const tt__output_t *output = &n->outputs[o];
  tt_storage_t *s = output->slot == TT__FRESH
                        ? outs->items[n->fresh_results[output->result]].storage
                        : frame->slots[output->slot].storage;
  tt__storage_set(s, version);
}

// --- Strict --------------------------------------------------------------------------------------

static void scalar_input(const tt__input_t *input, const tt_call_t *call, tt_input_t *to) {
  const tt_arg_t *arg = &call->args[input->arg];
  const tt_number_t *number = NULL;
  to->buffer = NULL;
  to->dtype = input->dtype;
  if (arg->kind == TT_ARG_SCALARS)
    number = &arg->u.scalars[input->index];
  else if (arg->kind == TT_ARG_TENSOR)
    number = &arg->u.tensor->number;
  else if (arg->kind == TT_ARG_TENSORS)
    number = &arg->u.tensors[input->index].number;
  tt_dtype_t dtype = (tt_dtype_t)input->dtype;
  if (number)
    tt__scalar_bits(number->kind, &number->u, dtype, to->bits);
  else if (arg->kind == TT_ARG_FLOATS) {
    tt__scalar_bits(TT_ARG_FLOAT, &arg->u.floats[input->index], dtype, to->bits);
  } else if (arg->kind == TT_ARG_INTS) {
    tt__scalar_bits(TT_ARG_INT, &arg->u.ints[input->index], dtype, to->bits);
  } else {
    tt__scalar_bits(arg->kind, &arg->u, dtype, to->bits);
  }
}

void tt__scalar_input(const tt__input_t *input, const tt_call_t *call, uint64_t seed,
                      uint64_t offset, tt_input_t *out_input) {
  if (input->kind == TT__INPUT_SCALAR) {
    scalar_input(input, call, out_input);
    return;
  }
  uint64_t word = input->kind == TT__INPUT_SEED ? seed : offset;
  *out_input = (tt_input_t){NULL, TT_U64, {word, 0}};
}

static tt_status_t gather_inputs(const tt__instance_t *n, const tt__frame_t *frame,
                                 tt_input_t *inputs) {
  uint64_t seed = 0, offset = 0;
  // Settle everything first: a failure must come before the generator moves.
  for (uint32_t i = 0; i < n->input_count; i++) {
    if (n->inputs[i].kind != TT__INPUT_SLOT) continue;
    tt__version_t *v = frame->slots[n->inputs[i].index].storage->version;
    if (__builtin_expect(!v->buffer, 0)) TT_RETURN_IF_ERROR(tt__version_settle(v));
  }
  if (n->random_count) tt__random_draw(n, frame->call, &seed, &offset);
  for (uint32_t i = 0; i < n->input_count; i++) {
    const tt__input_t *input = &n->inputs[i];
    if (input->kind == TT__INPUT_SLOT) {
      inputs[i].buffer = frame->slots[input->index].storage->version->buffer;
    } else {
      tt__scalar_input(input, frame->call, seed, offset, &inputs[i]);
    }
  }
  return TT_OK_STATUS;
}

// One bit an output whose input nobody but the storage holds (see mark_donations).
static uint64_t donated_outputs(const tt__instance_t *n, const tt__frame_t *frame) {
  uint64_t mask = 0, all_others = 1;
  for (uint32_t o = 0; o < n->output_count; o++) {
    const tt__output_t *output = &n->outputs[o];
    if (output->input == TT__NO_INPUT) continue;
    bool alone = frame->slots[output->slot].storage->version->refs == 1;
    if (o < 63)
      mask |= (uint64_t)alone << o;
    else
      all_others &= alone;
  }
  return n->output_count > 63 ? mask | all_others << 63 : mask;
}

static tt_status_t set_outputs(tt__instance_t *n, const tt__frame_t *frame, tt_outs_t *outs,
                               tt_buffer_t **buffers) {
  for (uint32_t o = 0; o < n->output_count; o++) {
    tt__version_t *v = tt__version_make(n->outputs[o].layout, buffers[o]);
    if (!v) {
      for (; o < n->output_count; o++) tt_buffer_release(buffers[o]);
      return tt__no_host_memory();
    }
    tt__output_set(n, o, frame, outs, v);
  }
  if (!n->check_count) return TT_OK_STATUS;
  return tt__check_add(frame->call->device, buffers[n->output_count], n->checks, NULL, n);
}

static tt_status_t submit_with(tt__instance_t *n, const tt__frame_t *frame, tt_outs_t *outs,
                               tt_input_t *inputs, tt_buffer_t **buffers) {
  TT_RETURN_IF_ERROR(gather_inputs(n, frame, inputs));
  uint64_t donated = n->donates ? donated_outputs(n, frame) : 0;
  tt_executable_t *executable;
  if (__builtin_expect(n->program_count > 0 && n->programs[0].donated == donated, 1)) {
    executable = n->programs[0].executable;
    tt__engine.stats.program_hits++;
  } else {
    TT_RETURN_IF_ERROR(tt__instance_program(n, donated, &executable));
  }
  int device = frame->call->device;
  TT_RETURN_IF_ERROR(tt__run(device, executable, inputs, n->input_count, buffers, n->name));
  return set_outputs(n, frame, outs, buffers);
}

static tt_status_t submit(tt__instance_t *n, const tt__frame_t *frame, tt_outs_t *outs) {
  enum { FEW = 24 };
  tt_input_t few_inputs[FEW];
  tt_buffer_t *few_buffers[FEW];
  if (__builtin_expect(n->input_count <= FEW && n->output_count < FEW, 1)) {
    return submit_with(n, frame, outs, few_inputs, few_buffers);
  }
  tt_input_t *inputs = tt_alloc(n->input_count * sizeof *inputs);
  tt_buffer_t **buffers = tt_alloc((n->output_count + 1) * sizeof(tt_buffer_t *));
  tt_status_t s =
      inputs && buffers ? submit_with(n, frame, outs, inputs, buffers) : tt__no_host_memory();
  tt_free(inputs);
  tt_free(buffers);
  return s;
}

// --- the call ------------------------------------------------------------------------------------

// Finds or makes the instance. Gives up the lock on a miss, so the key is made anew after one.
static tt_status_t find_instance(tt__frame_t *frame, tt__instance_t **out_instance) {
  for (;;) {
    TT_RETURN_IF_ERROR(tt__frame_key(frame));
    *out_instance = tt__instance_find(frame);
    if (__builtin_expect(*out_instance != NULL, 1)) return TT_OK_STATUS;
    tt__instance_t *fresh;
    tt__unlock();
    tt_status_t s = tt__instance_create(frame, &fresh);
    tt__lock();
    TT_RETURN_IF_ERROR(s);
    TT_RETURN_IF_ERROR(tt__instance_insert(fresh));
  }
}

// The results' storages are there before anything is recorded, so that a failure takes back all of
// them. What could not be recorded has told its error here: it is not told again at the next
// synchronisation.
static tt_status_t record_locked(tt__frame_t *frame, tt_outs_t *outs,
                                 tt__instance_t **out_instance) {
  TT_RETURN_IF_ERROR(find_instance(frame, out_instance));
  tt__instance_t *n = *out_instance;
  int device = frame->call->device;
  if (__builtin_expect(n->unsupported != NULL, 0)) return tt_status_clone(n->unsupported);
  TT_RETURN_IF_ERROR(make_outs(n, device, outs));
  tt__engine.stats.ops_recorded++;
  tt_status_t s;
  tt__window_t *capture = NULL;
  if (__builtin_expect(atomic_load_explicit(&tt__engine.captures, memory_order_relaxed), 0)) {
    capture = tt__capture_window(device);
  }
  if (capture ||
      atomic_load_explicit(&tt__engine.mode, memory_order_relaxed) == TT_MODE_DEFER_AND_FUSE) {
    tt__window_t *window = capture ? capture : tt__stream_window(device);
    s = !window ? tt__no_host_memory() : capture ? tt__capture_admit(capture, frame, n) : NULL;
    if (!s) s = tt__window_append(window, frame, n, outs);
  } else {
    s = submit(n, frame, outs);
  }
  if (__builtin_expect(s != NULL, 0)) {
    tt__error_told(device, s);
    tt__outs_drop(outs);
  }
  return s;
}

// The hot path of every op: before the lock there are only loads of flags that hardly ever change.
tt_status_t tt__record(const tt_call_t *call, tt_outs_t *outs) {
  outs->count = 0;
  outs->items = outs->inline_items;
  outs->instance = NULL;
  if (__builtin_expect(!atomic_load_explicit(&tt__engine.started, memory_order_acquire) ||
                           atomic_load_explicit(&tt__engine.forked, memory_order_relaxed),
                       0)) {
    TT_RETURN_IF_ERROR(tt_eager_start());
  }
  if (__builtin_expect((unsigned)call->device >= (unsigned)tt__engine.device_count, 0)) {
    return tt__ready(call->device);
  }
  tt__frame_t frame;
  tt__instance_t *instance = NULL;
  tt__frame_init(&frame, call);
  if (__builtin_expect(atomic_load_explicit(&tt__engine.captures, memory_order_relaxed), 0)) {
    tt__capture_note_place();
  }
  tt__lock();
  tt_status_t s = record_locked(&frame, outs, &instance);
  tt__unlock();
  if (__builtin_expect(tt__engine.mode == TT_MODE_DEBUG, 0)) {
    s = tt__debug_after(call, instance, outs, s);
  }
  tt__frame_deinit(&frame);
  return s;
}

tt_status_t tt_eager_call(const tt_call_t *call, tt_outs_t *outs) {
  if (__builtin_expect(tt__op(call->op)->flags & (TT_ATEN_HOST | TT_ATEN_MASKS), 0))
    return tt__host_call(call, outs);
  return tt__record(call, outs);
}
