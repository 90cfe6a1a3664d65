// The engine without PyTorch: tensors as C structs, an `infer` for pointwise ops, calls by name.
#ifndef TT_TESTS_EAGER_FIXTURE_H_
#define TT_TESTS_EAGER_FIXTURE_H_

#include <stdlib.h>
#include <string.h>

#include "eager/eager.h"
#include "test.h"

typedef struct tensor_s {
  tt_tensor_t t;
  int64_t sizes[6], strides[6];
} tensor_t;

static void tensor_fix(tensor_t *x) {
  x->t.sizes = x->sizes;
  x->t.strides = x->strides;
}

static tensor_t tensor_over(tt_storage_t *storage, tt_dtype_t dtype, uint32_t rank,
                            const int64_t *sizes) {
  tensor_t x = {.t = {.storage = storage, .dtype = (uint8_t)dtype, .rank = rank}};
  int64_t stride = 1;
  for (uint32_t i = rank; i-- > 0; stride *= sizes[i]) x.sizes[i] = sizes[i], x.strides[i] = stride;
  return x;
}

static inline tensor_t tensor_empty(tt_dtype_t dtype, uint32_t rank, const int64_t *sizes) {
  size_t bytes = tt_dtype_size(dtype);
  tt_storage_t *storage = NULL;
  for (uint32_t i = 0; i < rank; i++) bytes *= (size_t)sizes[i];
  EXPECT_OK(tt_storage_create(0, bytes, &storage));
  return tensor_over(storage, dtype, rank, sizes);
}

static inline tensor_t tensor_of(tt_dtype_t dtype, uint32_t rank, const int64_t *sizes,
                                 const void *data) {
  tensor_t x = tensor_empty(dtype, rank, sizes);
  tensor_fix(&x);
  EXPECT_OK(tt_eager_upload(&x.t, data));
  return x;
}

static inline tensor_t vector(uint32_t n, const float *data) {
  return tensor_of(TT_F32, 1, (int64_t[]){n}, data);
}

static inline void tensor_drop(tensor_t *x) { tt_storage_release(x->t.storage); }

static inline void tensor_read(tensor_t *x, void *host) {
  tensor_fix(x);
  EXPECT_OK(tt_eager_download(&x->t, host));
}

#define EXPECT_FLOATS(x, ...)                                                     \
  do {                                                                            \
    const float want_[] = {__VA_ARGS__};                                          \
    float got_[64];                                                               \
    tensor_read((x), got_);                                                       \
    for (size_t i_ = 0; i_ < sizeof want_ / sizeof *want_; i_++) {                \
      if (got_[i_] != want_[i_]) {                                                \
        printf("%s:%d: element %zu is %g, expected %g\n", __FILE__, __LINE__, i_, \
               (double)got_[i_], (double)want_[i_]);                              \
        tt_test_failures++;                                                       \
      }                                                                           \
    }                                                                             \
  } while (0)

static inline uint16_t op_named(const char *name, int variant) {
  for (uint32_t i = 0; i < tt_aten_op_count; i++) {
    const tt_aten_op_t *op = &tt_aten_ops[i];
    const char *have = variant == TT_INPLACE ? op->inplace
                       : variant == TT_OUT   ? op->out
                                             : op->functional;
    if (strcmp(have, name) == 0) return (uint16_t)i;
  }
  printf("no op %s\n", name);
  exit(1);
}

static inline tt_arg_t arg_tensor(tensor_t *x) {
  tensor_fix(x);
  return (tt_arg_t){.kind = TT_ARG_TENSOR, .u.tensor = &x->t};
}
static inline tt_arg_t arg_scalar(double f) {
  return (tt_arg_t){.kind = TT_ARG_FLOAT, .count = 1, .u.f = f};
}
static inline tt_arg_t arg_number(int64_t i) {
  return (tt_arg_t){.kind = TT_ARG_INT, .count = 1, .u.i = i};
}
static inline tt_arg_t arg_int(int64_t i) { return (tt_arg_t){.kind = TT_ARG_INT, .u.i = i}; }
static inline tt_arg_t arg_none(void) { return (tt_arg_t){.kind = TT_ARG_NONE}; }

static inline tt_status_t call_status(const char *name, int variant, const tt_arg_t *args,
                                      uint32_t count, tt_outs_t *outs) {
  tt_call_t call = {op_named(name, variant), (uint8_t)variant, (uint8_t)count, 0, args};
  return tt_eager_call(&call, outs);
}

static inline tensor_t tensor_from(const tt_out_t *out) {
  tensor_t x = {.t = {.storage = out->storage,
                      .dtype = out->meta->dtype,
                      .rank = out->meta->rank,
                      .offset = out->offset}};
  memcpy(x.sizes, out->meta->sizes, x.t.rank * sizeof(int64_t));
  memcpy(x.strides, out->meta->strides, x.t.rank * sizeof(int64_t));
  return x;
}

// A functional call with one result.
#define CALL(name, ...)                       \
  call_one((name), (tt_arg_t[]){__VA_ARGS__}, \
           (uint32_t)(sizeof((tt_arg_t[]){__VA_ARGS__}) / sizeof(tt_arg_t)))
static inline tensor_t call_one(const char *name, const tt_arg_t *args, uint32_t count) {
  tt_outs_t outs;
  tt_status_t s = call_status(name, TT_FUNCTIONAL, args, count, &outs);
  EXPECT_OK(s);
  if (s || outs.count == 0) return (tensor_t){0};
  tensor_t x = tensor_from(&outs.items[0]);
  tt_outs_deinit(&outs);
  return x;
}

#define CALL_INTO(name, variant, ...)                     \
  call_into((name), (variant), (tt_arg_t[]){__VA_ARGS__}, \
            (uint32_t)(sizeof((tt_arg_t[]){__VA_ARGS__}) / sizeof(tt_arg_t)))
static inline void call_into(const char *name, int variant, const tt_arg_t *args, uint32_t count) {
  tt_outs_t outs;
  EXPECT_OK(call_status(name, variant, args, count, &outs));
  EXPECT_INT(outs.count, 0);
  tt_outs_deinit(&outs);
}

static inline tt_status_t infer_result(tt_inferred_t *out, tt_dtype_t dtype, uint32_t rank,
                                       const int64_t *sizes) {
  tt_out_meta_t *m = tt_arena_alloc(out->arena, sizeof *m);
  int64_t *strides = tt_arena_alloc(out->arena, rank * sizeof *strides + 1), stride = 1;
  int64_t *copy = tt_arena_copy(out->arena, sizes, rank * sizeof *sizes);
  if (!m || !strides || !copy) return TT_ERROR(OUT_OF_MEMORY, "out of host memory");
  *m = (tt_out_meta_t){(uint8_t)dtype, rank, copy, strides};
  for (uint32_t i = rank; i-- > 0; stride *= sizes[i]) strides[i] = stride;
  out->outs = m;
  out->out_count = 1;
  return TT_OK_STATUS;
}

// index.Tensor with vectors for the leading dimensions.
static inline tt_status_t infer_index(const tt_call_t *call, tt_inferred_t *out) {
  const tt_tensor_t *self = call->args[0].u.tensor;
  uint32_t indices = call->args[1].count, rank = self->rank - indices + 1;
  int64_t sizes[16] = {call->args[1].u.tensors[0].sizes[0]};
  for (uint32_t i = 1; i < rank; i++) sizes[i] = self->sizes[indices + i - 1];
  return infer_result(out, (tt_dtype_t)self->dtype, rank, sizes);
}

// Pointwise: operands broadcast, dtypes promote (comparisons give i1).
static int infer_calls;
static inline tt_status_t infer_pointwise(void *context, const tt_call_t *call,
                                          tt_inferred_t *out) {
  (void)context;
  infer_calls++;
  if (strcmp(tt_aten_ops[call->op].functional, "index.Tensor") == 0) return infer_index(call, out);
  int64_t sizes[16];
  uint32_t rank = 0;
  tt_dtype_t dtype = TT_DTYPE_NONE;
  uint32_t count = call->variant == TT_OUT ? call->arg_count - 1u : call->arg_count;
  for (uint32_t i = 0; i < 16; i++) sizes[i] = 1;
  for (uint32_t a = 0; a < count; a++) {
    if (call->args[a].kind != TT_ARG_TENSOR) continue;
    const tt_tensor_t *t = call->args[a].u.tensor;
    dtype = tt_promote_types(dtype, (tt_dtype_t)t->dtype);
    if (t->rank > rank) rank = t->rank;
    for (uint32_t i = 0; i < t->rank; i++) {
      int64_t *have = &sizes[15 - i], size = t->sizes[t->rank - 1 - i];
      if (*have != size && *have != 1 && size != 1) {
        return TT_ERROR(INVALID_ARGUMENT, "The size of tensor a must match the size of tensor b");
      }
      if (size != 1) *have = size;
    }
  }
  const char *name = tt_aten_ops[call->op].functional;
  if (strcmp(name, "eq.Tensor") == 0) dtype = TT_I1;
  if (strcmp(name, "all") == 0) dtype = TT_I1, rank = 0;
  return infer_result(out, dtype, rank, sizes + 16 - rank);
}

static inline void engine_setup(void) {
  tt_eager_hooks_t hooks = {.infer = infer_pointwise};
#ifdef TT_SOFTTPU_PATH
  setenv("TORCHTPU_PLUGIN", TT_SOFTTPU_PATH, 0);
#endif
  tt_eager_install(&hooks);
  EXPECT_OK(tt_eager_start());
}

static inline tt_eager_stats_t stats_now(void) {
  tt_eager_stats_t s;
  tt_eager_stats(&s);
  return s;
}

#endif  // TT_TESTS_EAGER_FIXTURE_H_
