// What a lowering sees: the call's static facts, its inputs as IR values, and where results go.
//
// A lowering is `void tt__lower_<name>(tt_lower_t *L, int param)`. It runs when a program is built,
// never on the hot path. It emits through L->b (errors stick there), reads arguments by schema
// position and gives each result with tt_lower_return. Results are converted, permuted and written
// back (in-place, out=) by the caller: a lowering only ever computes the functional value in
// logical shape.
#ifndef TT_ATEN_LOWER_H_
#define TT_ATEN_LOWER_H_

#include "aten/call.h"
#include "aten/params.h"
#include "ir/build.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_lower_s tt_lower_t;
typedef void (*tt_lower_fn_t)(tt_lower_t *L, int param);

// A run-time check: when `ok` (rank-0 i1) is false, the error surfaces at the next synchronisation.
typedef struct tt_lower_check_s {
  tt_value_t ok;
  tt_code_t code;
  const char *message;  // in the graph's arena
} tt_lower_check_t;

// One inferred result (logical sizes; strides as PyTorch gives them on the CPU).
typedef struct tt_out_meta_s {
  uint8_t dtype;
  uint32_t rank;
  const int64_t *sizes, *strides;
} tt_out_meta_t;

struct tt_lower_s {
  tt_build_t *b;
  const tt_call_t *call;  // static facts only: never read tensor data or run-time scalars from it
  const char *op_name;    // "add.Tensor", for messages
  const tt_out_meta_t *outs;  // inferred results of the functional form
  uint32_t out_count;
  tt_value_t *results;  // filled by tt_lower_return
  tt_lower_check_t *checks;
  uint32_t check_count, check_capacity;
  // Given by the caller (the recorder, or a test): the value of tensor argument `arg` (list element
  // `index`) in logical shape with conj and neg resolved; and run-time scalars as rank-0 values.
  tt_value_t (*tensor)(tt_lower_t *L, uint32_t arg, uint32_t index);
  tt_value_t (*scalar)(tt_lower_t *L, uint32_t arg, uint32_t index, tt_dtype_t dtype);
  tt_value_t (*random)(tt_lower_t *L, bool want_offset);
  void *context;
};

// --- arguments -------------------------------------------------------------------------------
static inline const tt_arg_t *tt_lower_arg(const tt_lower_t *L, uint32_t i) {
  return &L->call->args[i];
}
static inline bool tt_lower_has(const tt_lower_t *L, uint32_t i) {
  return i < L->call->arg_count && L->call->args[i].kind != TT_ARG_NONE;
}
static inline bool tt_lower_is_tensor(const tt_lower_t *L, uint32_t i) {
  return L->call->args[i].kind == TT_ARG_TENSOR;
}
// The tensor's metadata (dtype, rank, sizes); never its storage.
static inline const tt_tensor_t *tt_lower_meta(const tt_lower_t *L, uint32_t i) {
  return L->call->args[i].u.tensor;
}
// Static integers, booleans, dtypes, enums. `otherwise` answers for an argument left out.
static inline int64_t tt_lower_int(const tt_lower_t *L, uint32_t i, int64_t otherwise) {
  return tt_lower_has(L, i) ? L->call->args[i].u.i : otherwise;
}
// Static lists; *out_count = 0 and NULL when left out.
const int64_t *tt_lower_ints(const tt_lower_t *L, uint32_t i, uint32_t *out_count);
// A dimension argument wrapped into [0, rank).
int64_t tt_lower_dim(const tt_lower_t *L, uint32_t i, uint32_t rank);
// Are the tensors i and j of one dtype? If not, the lowering fails as PyTorch's products do.
bool tt_lower_same_dtype(tt_lower_t *L, uint32_t i, uint32_t j);
static inline uint32_t tt_lower_list_count(const tt_lower_t *L, uint32_t i) {
  return L->call->args[i].count;
}
// A `float` or Scalar argument read at build time. Only for ops whose aten.def line says
// TT_ATEN_STATIC_SCALARS (their values are part of the cache key).
double tt_lower_static_float(const tt_lower_t *L, uint32_t i, double otherwise);
// Scalars are run-time values, but whether one equals exactly 0 or 1 is part of the cache key, so
// that alpha=1 costs nothing.
bool tt_lower_scalar_is(const tt_lower_t *L, uint32_t i, int zero_or_one);

// The argument's logical value, in its own dtype (a 0-d CPU tensor arrives as a run-time scalar).
static inline tt_value_t tt_lower_tensor(tt_lower_t *L, uint32_t i) { return L->tensor(L, i, 0); }
static inline tt_value_t tt_lower_list_tensor(tt_lower_t *L, uint32_t i, uint32_t index) {
  return L->tensor(L, i, index);
}
// ... converted to dtype.
tt_value_t tt_lower_tensor_as(tt_lower_t *L, uint32_t i, tt_dtype_t dtype);
// A float/int/Scalar argument as a rank-0 run-time value of `dtype` (converted on the host from
// double or int64 with one rounding).
static inline tt_value_t tt_lower_scalar(tt_lower_t *L, uint32_t i, tt_dtype_t dtype) {
  return L->scalar(L, i, 0, dtype);
}
static inline tt_value_t tt_lower_list_scalar(tt_lower_t *L, uint32_t i, uint32_t index,
                                              tt_dtype_t dtype) {
  return L->scalar(L, i, index, dtype);
}
// Tensor or Scalar argument alike, as dtype.
tt_value_t tt_lower_operand(tt_lower_t *L, uint32_t i, tt_dtype_t dtype);

// --- promotion -------------------------------------------------------------------------------
// PyTorch's result type of tensor and scalar arguments a and b (0-d and wrapped numbers rank
// lower).
tt_dtype_t tt_lower_promote(const tt_lower_t *L, uint32_t a, uint32_t b);
tt_dtype_t tt_promote_types(tt_dtype_t a, tt_dtype_t b);
// The dtype that PyTorch's CPU kernels compute in: f32 for bf16, f16; else itself.
tt_dtype_t tt_lower_opmath(tt_dtype_t dtype);

// --- results ---------------------------------------------------------------------------------
static inline tt_dtype_t tt_lower_out_dtype(const tt_lower_t *L, uint32_t i) {
  return (tt_dtype_t)L->outs[i].dtype;
}
// Gives result i; the value is converted to the inferred dtype, and its shape must be the inferred
// one (rank 0 or 1-sized dimensions broadcast).
void tt_lower_return(tt_lower_t *L, uint32_t i, tt_value_t value);
// A check of input values (an index in range, a positive definite matrix).
void tt_lower_check(tt_lower_t *L, tt_value_t ok, tt_code_t code, const char *format, ...)
    TT_PRINTF(4, 5);
// This form of the op cannot be lowered: the caller goes on to decomposition, then CPU fallback.
void tt_lower_unsupported(tt_lower_t *L, const char *format, ...) TT_PRINTF(2, 3);

// --- random numbers (aten/random.c) ------------------------------------------------------------
// Uniform in [0, 1), f32 or f64, counter-based: the same for (seed, offset, position) everywhere.
// Ops that draw say TT_ATEN_RANDOM. `stream` tells several draws of one op apart.
tt_value_t tt_lower_uniform(tt_lower_t *L, tt_dtype_t dtype, uint32_t rank, const int64_t *dims,
                            uint32_t stream);

// --- the table -------------------------------------------------------------------------------
typedef enum tt_aten_flag_e {
  TT_ATEN_STATIC_SCALARS = 1,  // Scalar and float arguments are part of the cache key, not run-time
  TT_ATEN_RANDOM = 2,          // draws from the device generator
  TT_ATEN_TRAINING_STATS = 4,  // native_batch_norm: writes running_mean, running_var (args 3, 4) as
                               // results 3, 4 when argument 5 (training) is true and they are given
  TT_ATEN_INPLACE_ONLY = 8,    // the line's functional name does not exist in PyTorch: only the
                               // in-place form is registered; result 0 has self's type
  TT_ATEN_HOST = 16,           // not a lowering: eager/ runs it in several steps (data-dependent
                               // sizes, values read back); `lower` is NULL
  TT_ATEN_MASKS = 64,          // argument 1 is a list of indices where boolean masks may stand;
                               // eager/ turns those into indices
  TT_ATEN_LENGTH = 128,  // arguments 0, 1 and 2 are a progression's start, end and step: only its
                         // length is part of the cache key
  TT_ATEN_FITS = 256,    // a Scalar argument must be a value that the type of argument 0 has
  TT_ATEN_FITS_PROMOTED = 512,   // ... but fractions make of integers a float that has every value
  TT_ATEN_KEEP_SELF_DTYPE = 32,  // result type is not inferred but that of self (no Meta kernel)
} tt_aten_flag_t;

// A line of aten.def: an op in its three dispatcher forms.
typedef struct tt_aten_op_s {
  const char *functional, *inplace, *out;  // overload names; "" where the form does not exist
  tt_lower_fn_t lower;
  const char *lower_name;
  int param;  // handed to `lower`
  uint32_t flags;
} tt_aten_op_t;

// In the order of aten.def; tt_call_t names an op by its place.
extern const tt_aten_op_t tt_aten_ops[];
extern const uint32_t tt_aten_op_count;

#ifdef __cplusplus
}
#endif
#endif  // TT_ATEN_LOWER_H_
