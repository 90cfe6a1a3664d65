// A call's cache key. Words, in order: op, variant and device; then for each argument its kind and
// static facts. What a key leaves out are run-time values: scalars' numbers, generators, tensors'
// data.
#include <math.h>
#include <string.h>

#include "eager/internal.h"

void tt__frame_init(tt__frame_t *frame, const tt_call_t *call) {
  frame->call = call;
  frame->op = tt__op(call->op);
  frame->key = frame->few_words;
  frame->key_capacity = sizeof frame->few_words / sizeof *frame->few_words;
  frame->slots = frame->few_slots;
  frame->slot_capacity = sizeof frame->few_slots / sizeof *frame->few_slots;
}

void tt__frame_deinit(tt__frame_t *frame) {
  if (__builtin_expect(frame->key != frame->few_words, 0)) tt_free(frame->key);
  if (__builtin_expect(frame->slots != frame->few_slots, 0)) tt_free(frame->slots);
}

// Makes `*array` (at first `few`, not on the heap) hold at least `wanted` elements.
static bool widen(void **array, const void *few, uint32_t count, uint32_t *capacity,
                  uint32_t wanted, size_t element) {
  uint32_t fresh_capacity = *capacity;
  while (fresh_capacity < wanted) fresh_capacity *= 2;
  void *fresh = tt_alloc(fresh_capacity * element);
  if (!fresh) return false;
  memcpy(fresh, *array, count * element);
  if (*array != few) tt_free(*array);
  *array = fresh;
  *capacity = fresh_capacity;
  return true;
}

static inline bool room(tt__frame_t *f, uint32_t words) {
  if (__builtin_expect(f->key_count + words <= f->key_capacity, 1)) return true;
  return widen((void **)&f->key, f->few_words, f->key_count, &f->key_capacity, f->key_count + words,
               sizeof *f->key);
}

static inline void put(tt__frame_t *f, uint64_t word) { f->key[f->key_count++] = word; }

// The storage's slot; the first use also says what the storage holds.
static inline bool put_slot(tt__frame_t *f, tt_storage_t *s) {
  if (s->serial == tt__engine.serial) return true;
  if (f->slot_count == f->slot_capacity &&
      !widen((void **)&f->slots, f->few_slots, f->slot_count, &f->slot_capacity, f->slot_count + 1,
             sizeof *f->slots)) {
    return false;
  }
  s->serial = tt__engine.serial;
  s->slot = f->slot_count;
  const tt__layout_t *layout = s->version ? s->version->layout : NULL;
  f->slots[f->slot_count++] = (tt__slot_t){s, layout, s->bytes};
  put(f, (uint64_t)(uintptr_t)layout);
  put(f, s->bytes);
  return true;
}

// Of a 0-d CPU tensor the key has no value, which is a run-time input. A storage goes in as its
// slot's number, so that calls over other storages that alias in the same way are equal.
static inline bool put_tensor(tt__frame_t *f, const tt_tensor_t *t) {
  if (__builtin_expect(t->rank == TT_NO_TENSOR, 0)) {
    if (!room(f, 1)) return false;
    put(f, UINT64_MAX);
    return true;
  }
  if (!room(f, 4 + 2 * t->rank)) return false;
  if (t->flags & TT_TENSOR_HOST) {
    put(f, (uint64_t)t->dtype << 8 | (uint64_t)t->flags << 16 | (uint64_t)t->number.kind << 24);
    return true;
  }
  if (!put_slot(f, t->storage)) return false;
  put(f, (uint64_t)t->dtype << 8 | (uint64_t)t->flags << 16 | (uint64_t)t->rank << 24 |
             (uint64_t)t->storage->slot << 32);
  put(f, (uint64_t)t->offset);
  uint64_t *words = f->key + f->key_count;
  for (uint32_t i = 0; i < t->rank; i++) {
    words[2 * i] = (uint64_t)t->sizes[i];
    words[2 * i + 1] = (uint64_t)t->strides[i];
  }
  f->key_count += 2 * t->rank;
  return true;
}

static uint64_t double_bits(double d) {
  uint64_t bits;
  memcpy(&bits, &d, 8);
  return bits;
}

// Of a run-time number the key has only the kind and whether it is exactly 0 or 1.
static inline uint64_t zero_or_one(double d) { return d == 0 ? 1 : d == 1 ? 2 : 0; }

// `scalar`: the schema says Scalar, whose integers are run-time values; other integers are static.
static inline void put_number(tt__frame_t *f, uint8_t kind, uint32_t scalar, const void *payload) {
  bool fixed = (f->op->flags & TT_ATEN_STATIC_SCALARS) != 0;
  double d[2];
  int64_t i;
  switch (kind) {
    case TT_ARG_BOOL:
    case TT_ARG_INT:
      memcpy(&i, payload, 8);
      if (fixed || !scalar || kind == TT_ARG_BOOL) {
        put(f, (uint64_t)kind << 56);
        put(f, (uint64_t)i);
      } else {
        put(f, (uint64_t)kind << 56 | 1 << 8 | (i == 0 ? 1 : i == 1 ? 2 : 0));
      }
      break;
    case TT_ARG_FLOAT:
      memcpy(d, payload, 8);
      put(f, (uint64_t)kind << 56 | zero_or_one(d[0]));
      if (fixed) put(f, double_bits(d[0]));
      break;
    default:
      memcpy(d, payload, 16);
      put(f, (uint64_t)kind << 56 | (d[1] == 0 ? zero_or_one(d[0]) : 0));
      if (fixed) put(f, double_bits(d[0])), put(f, double_bits(d[1]));
  }
}

static bool put_bytes(tt__frame_t *f, const void *data, size_t size) {
  uint32_t words = (uint32_t)((size + 7) / 8);
  if (!room(f, words + 1)) return false;
  if (words) f->key[f->key_count + words - 1] = 0;
  if (size) memcpy(f->key + f->key_count, data, size);
  f->key_count += words;
  return true;
}

static bool put_list(tt__frame_t *f, const tt_arg_t *arg) {
  if (!room(f, 1)) return false;
  put(f, (uint64_t)arg->kind << 56 | arg->count);
  switch (arg->kind) {
    case TT_ARG_TENSORS:
      for (uint32_t i = 0; i < arg->count; i++) {
        if (!put_tensor(f, &arg->u.tensors[i])) return false;
      }
      return true;
    case TT_ARG_INTS:
      return put_bytes(f, arg->u.ints, arg->count * sizeof(int64_t));
    case TT_ARG_FLOATS:
      return put_bytes(f, arg->u.floats, arg->count * sizeof(double));
    case TT_ARG_BOOLS:
      return put_bytes(f, arg->u.bools, arg->count);
    case TT_ARG_STRING:
      return put_bytes(f, arg->u.string, arg->count);
    default:  // TT_ARG_SCALARS
      for (uint32_t i = 0; i < arg->count; i++) {
        if (!room(f, 3)) return false;
        put_number(f, arg->u.scalars[i].kind, 1, &arg->u.scalars[i].u);
      }
      return true;
  }
}

static inline bool put_argument(tt__frame_t *f, const tt_arg_t *arg) {
  switch (arg->kind) {
    case TT_ARG_TENSOR:
      return put_tensor(f, arg->u.tensor);
    case TT_ARG_BOOL:
    case TT_ARG_INT:
    case TT_ARG_FLOAT:
    case TT_ARG_COMPLEX:
      if (!room(f, 3)) return false;
      put_number(f, arg->kind, arg->count, &arg->u);
      return true;
    case TT_ARG_TENSORS:
    case TT_ARG_INTS:
    case TT_ARG_FLOATS:
    case TT_ARG_BOOLS:
    case TT_ARG_STRING:
    case TT_ARG_SCALARS:
      return put_list(f, arg);
    case TT_ARG_DTYPE:
    case TT_ARG_ENUM:
    case TT_ARG_DEVICE:
      if (!room(f, 1)) return false;
      put(f, (uint64_t)arg->kind << 56 | (uint32_t)arg->u.i);
      return true;
    default:
      if (!room(f, 1)) return false;
      put(f, (uint64_t)arg->kind << 56);
      return true;
  }
}

// The length of a progression as words, so that its ends stay run-time values. Where PyTorch rounds
// the ends first, or has to refuse the call, the ends themselves.
static bool put_length(tt__frame_t *f) {
  const tt_arg_t *a = f->call->args;
  double ends[3];
  bool all_int = true;
  if (!room(f, 3)) return false;
  for (int i = 0; i < 3; i++) {
    bool integer = a[i].kind == TT_ARG_INT || a[i].kind == TT_ARG_BOOL;
    if (!integer && a[i].kind != TT_ARG_FLOAT) return false;
    ends[i] = integer ? (double)a[i].u.i : a[i].u.f;
    all_int = all_int && integer;
  }
  bool plain = f->call->variant == TT_FUNCTIONAL && f->call->arg_count > 3 &&
               (a[3].kind == TT_ARG_NONE || tt_dtype_is_float((tt_dtype_t)a[3].u.i));
  double length = (ends[1] - ends[0]) / ends[2];
  bool exact = fabs(ends[0]) < 0x1p53 && fabs(ends[1]) < 0x1p53 && fabs(ends[2]) < 0x1p53;
  if ((all_int || plain) && exact && length >= 0 && length < 0x1p53) {
    put(f, (uint64_t)ceil(length));
    put(f, (uint64_t)floor(length));
  } else {
    for (int i = 0; i < 3; i++) put(f, (uint64_t)a[i].u.i);
  }
  return true;
}

// What the flags of the op ask for.
static tt_status_t put_extra(tt__frame_t *f) {
  if (f->op->flags & TT_ATEN_LENGTH && !put_length(f)) return tt__no_host_memory();
  if (!(f->op->flags & (TT_ATEN_FITS | TT_ATEN_FITS_PROMOTED))) return TT_OK_STATUS;
  return tt__check_fits(f->call, f->op->flags & TT_ATEN_FITS_PROMOTED);
}

tt_status_t tt__frame_key(tt__frame_t *frame) {
  const uint32_t extra = TT_ATEN_LENGTH | TT_ATEN_FITS | TT_ATEN_FITS_PROMOTED;
  const tt_call_t *call = frame->call;
  frame->key_count = frame->slot_count = 0;
  tt__engine.serial++;
  put(frame, (uint64_t)call->op | (uint64_t)call->variant << 16 | (uint64_t)call->arg_count << 24 |
                 (uint64_t)(uint8_t)call->device << 32);
  for (uint32_t i = 0; i < call->arg_count; i++) {
    if (!put_argument(frame, &call->args[i])) return tt__no_host_memory();
  }
  if (__builtin_expect((frame->op->flags & extra) != 0, 0)) {
    TT_RETURN_IF_ERROR(put_extra(frame));
  }
  uint64_t hash = TT_HASH_SEED;
  for (uint32_t i = 0; i < frame->key_count; i++) hash = tt_hash_word(hash, frame->key[i]);
  frame->hash = hash;
  return TT_OK_STATUS;
}
