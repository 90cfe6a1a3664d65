// The binary interface of PJRT plugins, declared by us from its published layout: only what we call
// or serve, with our own names. One function of a plugin takes one argument record; records that
// look alike share a type here (a record that asks an object for a text is a tt_pjrt_text_args_t,
// whatever the object). tests/test_pjrt_abi.py compares every record with a vendor's header.
//
// Every record begins with its size: a callee may read no field past it, so records that grew
// between versions work in both directions. Serves versions 0.81 to 0.117.
#ifndef TT_PJRT_PJRT_ABI_H_
#define TT_PJRT_PJRT_ABI_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_pjrt_error_s tt_pjrt_error_t;  // the receiver destroys it

typedef struct tt_pjrt_extension_s {
  size_t struct_size;
  int type;  // tt_pjrt_extension_type_t
  struct tt_pjrt_extension_s *next;
} tt_pjrt_extension_t;

#define TT_PJRT_HEAD  \
  size_t struct_size; \
  tt_pjrt_extension_t *extensions

// Starts a record: TT_PJRT_ARGS(tt_pjrt_ref_args_t, a, .self = event);
#define TT_PJRT_ARGS(type, name, ...) type name = {.struct_size = sizeof(type), __VA_ARGS__}
// Whether the caller's record is long enough to hold `field`.
#define TT_PJRT_HAS(args, field) \
  ((args)->struct_size >= (size_t)((const char *)(&(args)->field + 1) - (const char *)(args)))

typedef enum tt_pjrt_extension_type_e {
  TT_PJRT_EXTENSION_LAYOUTS = 4,
  TT_PJRT_EXTENSION_FFI = 5,
  TT_PJRT_EXTENSION_SOFTTPU = 0x5454,  // ours: softtpu/ext.h
} tt_pjrt_extension_type_t;

// The status codes of Abseil.
typedef enum tt_pjrt_code_e {
  TT_PJRT_OK,
  TT_PJRT_CANCELLED,
  TT_PJRT_UNKNOWN,
  TT_PJRT_INVALID_ARGUMENT,
  TT_PJRT_DEADLINE_EXCEEDED,
  TT_PJRT_NOT_FOUND,
  TT_PJRT_ALREADY_EXISTS,
  TT_PJRT_PERMISSION_DENIED,
  TT_PJRT_RESOURCE_EXHAUSTED,
  TT_PJRT_FAILED_PRECONDITION,
  TT_PJRT_ABORTED,
  TT_PJRT_OUT_OF_RANGE,
  TT_PJRT_UNIMPLEMENTED,
  TT_PJRT_INTERNAL,
  TT_PJRT_UNAVAILABLE,
  TT_PJRT_DATA_LOSS,
  TT_PJRT_UNAUTHENTICATED,
} tt_pjrt_code_t;

// Element types. X(plugin's number, ours)
// clang-format off
#define TT_PJRT_TYPES(X)                                                                       \
  X(1, I1) X(2, S8) X(3, S16) X(4, S32) X(5, S64) X(6, U8) X(7, U16) X(8, U32) X(9, U64)       \
  X(10, F16) X(11, F32) X(12, F64) X(13, BF16) X(14, C64) X(15, C128) X(16, F8E5M2)            \
  X(17, F8E4M3FN) X(21, S4) X(22, U4)
// clang-format on
typedef int tt_pjrt_type_t;

typedef enum tt_pjrt_host_semantics_e {
  TT_PJRT_HOST_ONLY_DURING_CALL,
  TT_PJRT_HOST_UNTIL_TRANSFER_COMPLETES,
  TT_PJRT_HOST_IMMUTABLE_ZERO_COPY,
  TT_PJRT_HOST_MUTABLE_ZERO_COPY,
} tt_pjrt_host_semantics_t;

typedef enum tt_pjrt_value_kind_e {
  TT_PJRT_VALUE_STRING,
  TT_PJRT_VALUE_INT,
  TT_PJRT_VALUE_INTS,
  TT_PJRT_VALUE_FLOAT,
  TT_PJRT_VALUE_BOOL,
} tt_pjrt_value_kind_t;

typedef struct tt_pjrt_value_s {
  TT_PJRT_HEAD;
  const char *name;
  size_t name_size;
  int kind;
  union {
    const char *text;
    int64_t i;
    const int64_t *ints;
    float f;
    bool b;
  } u;
  size_t count;  // of text or ints; 1 otherwise
} tt_pjrt_value_t;

typedef struct tt_pjrt_program_s {
  TT_PJRT_HEAD;
  char *code;
  size_t code_size;
  const char *format;  // "mlir", "hlo", "hlo_with_config"
  size_t format_size;
} tt_pjrt_program_t;

typedef struct tt_pjrt_tiled_layout_s {
  TT_PJRT_HEAD;
  const int64_t *minor_to_major;
  size_t minor_to_major_size;
  const int64_t *tile_dims;
  const size_t *tile_dim_sizes;
  size_t tile_count;
} tt_pjrt_tiled_layout_t;

typedef struct tt_pjrt_strided_layout_s {
  TT_PJRT_HEAD;
  const int64_t *byte_strides;
  size_t count;
} tt_pjrt_strided_layout_t;

typedef struct tt_pjrt_layout_s {
  TT_PJRT_HEAD;
  union {
    tt_pjrt_tiled_layout_t tiled;
    tt_pjrt_strided_layout_t strided;
  } u;
  int is_strided;
} tt_pjrt_layout_t;

// --- records shared by many functions ------------------------------------------------------------
typedef struct {
  TT_PJRT_HEAD;
} tt_pjrt_head_args_t;
typedef struct {
  TT_PJRT_HEAD;
  void *self;
} tt_pjrt_ref_args_t;
typedef struct {
  TT_PJRT_HEAD;
  void *self;
  const char *text;
  size_t size;
} tt_pjrt_text_args_t;
typedef struct {
  TT_PJRT_HEAD;
  void *self;
  int value;
} tt_pjrt_int_args_t;
typedef struct {
  TT_PJRT_HEAD;
  void *self;
  bool value;
} tt_pjrt_bool_args_t;
typedef struct {
  TT_PJRT_HEAD;
  void *self;
  size_t value;
} tt_pjrt_size_args_t;
typedef struct {
  TT_PJRT_HEAD;
  void *self;
  void *result;
} tt_pjrt_get_args_t;
typedef struct {
  TT_PJRT_HEAD;
  void *self;
  int key;
  void *result;
} tt_pjrt_lookup_args_t;
typedef struct {
  TT_PJRT_HEAD;
  void *self;
  void *target;
  void *result;
} tt_pjrt_copy_args_t;
typedef struct {
  TT_PJRT_HEAD;
  const void *items;
  size_t count;
} tt_pjrt_own_list_args_t;
typedef struct {
  TT_PJRT_HEAD;
  void *self;
  const void *items;
  size_t count;
} tt_pjrt_list_args_t;
// The same two, count first.
typedef struct {
  TT_PJRT_HEAD;
  void *self;
  size_t count;
  const void *items;
} tt_pjrt_count_args_t;
// `count` lists: their items one after the other, and their sizes. Also texts and their sizes.
typedef struct {
  TT_PJRT_HEAD;
  void *self;
  size_t count;
  const void *items;
  const size_t *sizes;
} tt_pjrt_lists_args_t;
// Bytes that live until deleter(owner).
typedef struct {
  TT_PJRT_HEAD;
  const void *self;
  const char *bytes;
  size_t size;
  void *owner;
  void (*deleter)(void *owner);
} tt_pjrt_bytes_args_t;

// --- records of one function ---------------------------------------------------------------------
typedef struct {
  TT_PJRT_HEAD;
  void *self;
  void (*callback)(tt_pjrt_error_t *error, void *context);  // owns `error`
  void *context;
} tt_pjrt_on_ready_args_t;

typedef struct {
  TT_PJRT_HEAD;
  const tt_pjrt_value_t *options;
  size_t option_count;
  void *kv_get, *kv_get_context, *kv_put, *kv_put_context;
  void *client;  // out
  void *kv_try_get, *kv_try_get_context;
} tt_pjrt_client_create_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *client;
  const tt_pjrt_program_t *program;
  const char *options;  // a serialized CompileOptionsProto
  size_t options_size;
  void *executable;  // out
} tt_pjrt_client_compile_args_t;

typedef struct {
  TT_PJRT_HEAD;
  const void *topology;
  const tt_pjrt_program_t *program;
  const char *options;
  size_t options_size;
  void *client;      // may be NULL
  void *executable;  // out
} tt_pjrt_compile_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *client;
  int replicas, partitions;
  size_t size;
  int *ids;  // caller's, replicas * partitions long
} tt_pjrt_assignment_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *client;
  const void *data;
  tt_pjrt_type_t type;
  const int64_t *dims;
  size_t rank;
  const int64_t *byte_strides;  // NULL: dense row-major
  size_t byte_stride_count;
  int semantics;  // tt_pjrt_host_semantics_t
  void *device, *memory;
  tt_pjrt_layout_t *layout;
  void *done;    // out: an event, when the host's memory is free again
  void *buffer;  // out
} tt_pjrt_upload_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *client;
  const int64_t *dims;
  size_t rank;
  tt_pjrt_type_t type;
  tt_pjrt_layout_t *layout;
  void *device, *memory;
  void *buffer;  // out
} tt_pjrt_uninitialized_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *client;
  void *data;
  const int64_t *dims;
  size_t rank;
  tt_pjrt_type_t type;
  tt_pjrt_layout_t *layout;
  void *device;
  void (*on_delete)(void *data, void *context);
  void *on_delete_context;
  intptr_t stream;
  void *buffer;  // out
  void *memory;
} tt_pjrt_view_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *self;
  tt_pjrt_layout_t *layout;  // NULL: the buffer's own
  void *data;                // NULL: answer with the size only
  size_t size;
  void *event;  // out
} tt_pjrt_download_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *self;
  void *data;
  int64_t offset, size;
  void *event;  // out
} tt_pjrt_raw_download_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *self;
  tt_pjrt_layout_t layout;
} tt_pjrt_layout_args_t;

typedef struct tt_pjrt_stat_s {
  int64_t value;
  bool is_set;
} tt_pjrt_stat_t;
typedef struct {
  TT_PJRT_HEAD;
  void *self;
  int64_t bytes_in_use;
  tt_pjrt_stat_t peak_bytes_in_use, allocations, largest_allocation, bytes_limit, bytes_reserved,
      peak_bytes_reserved, reservable_limit, largest_free_block, pool_bytes, peak_pool_bytes;
  tt_pjrt_stat_t peak_allocated;  // since 0.82 or later
} tt_pjrt_memory_stats_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *self;
  int64_t code, argument, output, alias, temp;
  int64_t host_code, host_argument, host_output, host_alias, host_temp;
  int64_t peak;
  int64_t total, total_allocation, indefinite, peak_unpadded;  // since 0.82 or later
} tt_pjrt_compiled_memory_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *send_callbacks, *recv_callbacks;
  size_t send_count, recv_count;
  int launch_id;
  const int64_t *non_donatable;
  size_t non_donatable_count;
  void *context;
  const char *call_location;
  size_t task_count;
  int *task_ids;
  int64_t *incarnation_ids;
} tt_pjrt_execute_options_t;

typedef struct {
  TT_PJRT_HEAD;
  void *executable;
  tt_pjrt_execute_options_t *options;
  void *const *const *arguments;  // [device][argument]
  size_t device_count, argument_count;
  void **const *outputs;  // [device][output], filled
  void **done;            // [device], filled; NULL: not wanted
  void *device;           // NULL: the devices it was compiled for
} tt_pjrt_execute_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *client;
  const char *bytes;
  size_t size;
  void *executable;  // out
  const char *options;
  size_t options_size;
  const void *load_options;  // since 0.82 or later
} tt_pjrt_deserialize_args_t;

typedef struct {
  TT_PJRT_HEAD;
  const char *name;
  size_t name_size;
  const tt_pjrt_value_t *options;
  size_t option_count;
  void *topology;  // out
} tt_pjrt_topology_create_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *client;
  void *executable;
  const char *options;
  size_t options_size;
  void *loaded;  // out
} tt_pjrt_load_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *self;
  tt_pjrt_type_t type;
  const int64_t *dims;
  size_t rank;
  tt_pjrt_layout_t *layout;
  void *result;
} tt_pjrt_bitcast_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *self;
  int code;
  const char *message;
  size_t message_size;
} tt_pjrt_event_set_args_t;

typedef struct {
  TT_PJRT_HEAD;
  void *self;
  const tt_pjrt_value_t *attributes;
  size_t count;
  void *owner;
  void (*deleter)(void *owner);
} tt_pjrt_device_attributes_args_t;

typedef struct tt_pjrt_logical_id_s {
  int replica, partition;
} tt_pjrt_logical_id_t;

// --- the table -----------------------------------------------------------------------------------
typedef struct tt_pjrt_version_s {
  TT_PJRT_HEAD;
  int major, minor;
} tt_pjrt_version_t;

typedef struct tt_pjrt_api_s {
  TT_PJRT_HEAD;
  tt_pjrt_version_t version;
#define SLOT(name, args) tt_pjrt_error_t *(*name)(args *);
#define SLOT_VOID(name, args) void (*name)(args *);
#include "pjrt/pjrt_slots.def"
#undef SLOT
#undef SLOT_VOID
} tt_pjrt_api_t;

// Whether a plugin's table reaches as far as `slot` and has it.
#define TT_PJRT_OFFERS(api, slot) \
  ((api)->struct_size >= offsetof(tt_pjrt_api_t, slot) + sizeof((api)->slot) && (api)->slot != NULL)

// Since 0.112 or so an error (and a memory) starts with a pointer to its own functions; a client
// may use either these or the table's.
typedef struct tt_pjrt_error_functions_s {
  size_t struct_size, instance_size;
  tt_pjrt_extension_t *extensions;
  void (*destroy)(tt_pjrt_error_t *error);
  void (*message)(const tt_pjrt_error_t *error, const char **out_text, size_t *out_size);
  int (*code)(const tt_pjrt_error_t *error);
  void (*for_each_payload)(const tt_pjrt_error_t *error, void *visitor, void *context);
} tt_pjrt_error_functions_t;

typedef struct tt_pjrt_memory_functions_s {
  size_t struct_size;
  tt_pjrt_extension_t *extensions;
  size_t instance_size;
  void *(*user_data)(void *memory, const void *key);
  void (*set_user_data)(void *memory, const void *key, void *data, void (*destroy)(void *));
} tt_pjrt_memory_functions_t;

// Extension TT_PJRT_EXTENSION_LAYOUTS.
typedef struct {
  TT_PJRT_HEAD;
  void *self;
  tt_pjrt_type_t type;
  const int64_t *dims;
  size_t rank;
  void *layout;  // out
} tt_pjrt_default_layout_args_t;

typedef struct tt_pjrt_layouts_s {
  tt_pjrt_extension_t base;
  tt_pjrt_error_t *(*destroy)(tt_pjrt_ref_args_t *);
  tt_pjrt_error_t *(*serialize)(tt_pjrt_bytes_args_t *);
  tt_pjrt_error_t *(*client_default)(tt_pjrt_default_layout_args_t *);
  tt_pjrt_error_t *(*buffer)(tt_pjrt_get_args_t *);
  tt_pjrt_error_t *(*topology_default)(tt_pjrt_default_layout_args_t *);
  tt_pjrt_error_t *(*outputs)(tt_pjrt_count_args_t *);
  tt_pjrt_error_t *(*parameters)(tt_pjrt_count_args_t *);
} tt_pjrt_layouts_t;

#ifdef __cplusplus
}
#endif
#endif  // TT_PJRT_PJRT_ABI_H_
