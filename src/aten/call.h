// One PyTorch dispatcher call, as flat C data. The bridge fills it from the stack; everything in it
// is borrowed for the time of the call.
#ifndef TT_ATEN_CALL_H_
#define TT_ATEN_CALL_H_

#include "base/dtype.h"
#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_storage_s tt_storage_t;  // eager/storage.h

typedef enum tt_arg_kind_e {
  TT_ARG_NONE,     // an optional argument left out
  TT_ARG_TENSOR,   // u.tensor
  TT_ARG_TENSORS,  // u.tensors[count]; a left-out element of Tensor?[] has rank TT_NO_TENSOR
  TT_ARG_BOOL,     // u.i; also a bool Scalar
  TT_ARG_INT,      // u.i; also SymInt (count 0: static) and an integer Scalar (count 1: a run-time
                   // value)
  TT_ARG_FLOAT,    // u.f; also a float Scalar
  TT_ARG_COMPLEX,  // u.complex; a complex Scalar
  TT_ARG_INTS,     // u.ints[count]
  TT_ARG_FLOATS,   // u.floats[count]
  TT_ARG_BOOLS,    // u.bools[count], one byte each
  TT_ARG_SCALARS,  // u.scalars[count]
  TT_ARG_DTYPE,    // u.i is a tt_dtype_t
  TT_ARG_ENUM,     // layout, memory format, pin_memory...: u.i is PyTorch's ordinal
  TT_ARG_DEVICE,   // u.i: device index of tpu, or -1 for the CPU
  TT_ARG_STRING,   // u.string, count bytes, not terminated
  TT_ARG_GENERATOR,  // u.generator
} tt_arg_kind_t;

typedef enum tt_tensor_flag_e {
  TT_TENSOR_CONJ = 1,       // lazily conjugated: the logical value is conj(memory)
  TT_TENSOR_NEG = 2,        // lazily negated
  TT_TENSOR_WRAPPED = 4,    // a Python number: does not take part in promotion like a 0-d tensor
  TT_TENSOR_HOST = 8,       // a 0-d CPU tensor: storage is NULL, its value is in `number`
  TT_TENSOR_GIVEN_UP = 16,  // programs' inputs: this call is the last to use tensor and storage
} tt_tensor_flag_t;

// A Python number, or a 0-d tensor's value, by value.
typedef struct tt_number_s {
  uint8_t kind;  // TT_ARG_BOOL, TT_ARG_INT, TT_ARG_FLOAT or TT_ARG_COMPLEX
  union {
    int64_t i;
    double f;
    double complex[2];
  } u;
} tt_number_t;

#define TT_NO_TENSOR UINT32_MAX
#define TT_MAX_RANK 64  // PyTorch's own limit

// PyTorch's strided metadata over a storage; pointers are borrowed from the tensor.
typedef struct tt_tensor_s {
  tt_storage_t *storage;  // NULL: TT_TENSOR_HOST
  const int64_t *sizes, *strides;
  int64_t offset;  // elements of dtype
  uint32_t rank;
  uint8_t dtype;       // tt_dtype_t
  uint8_t flags;       // tt_tensor_flag_t
  tt_number_t number;  // TT_TENSOR_HOST: its value
  const void *handle;  // the bridge's own (the TensorImpl)
} tt_tensor_t;

// One argument, in the schema's place.
typedef struct tt_arg_s {
  uint8_t kind;    // tt_arg_kind_t, which says what `u` holds
  uint32_t count;  // of a list's elements or a string's bytes
  union {
    int64_t i;
    double f;
    double complex[2];
    const tt_tensor_t *tensor;
    const tt_tensor_t *tensors;
    const int64_t *ints;
    const double *floats;
    const uint8_t *bools;
    const tt_number_t *scalars;
    const char *string;
    struct tt_generator_s *generator;
  } u;
} tt_arg_t;

// Which of an op's three dispatcher forms was called.
typedef enum tt_variant_e {
  TT_FUNCTIONAL,  // makes new tensors
  TT_INPLACE,     // result i goes to the i-th mutated tensor argument, in schema order
  TT_OUT,         // the same; the out arguments stand after the functional form's
} tt_variant_t;

// One call of an op: `args` are all of the overload's arguments, defaults filled in.
typedef struct tt_call_s {
  uint16_t op;      // index into tt_aten_ops
  uint8_t variant;  // tt_variant_t
  uint8_t arg_count;
  int8_t device;  // index of the tpu the call runs on
  const tt_arg_t *args;
} tt_call_t;

#ifdef __cplusplus
}
#endif
#endif  // TT_ATEN_CALL_H_
