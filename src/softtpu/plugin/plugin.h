// The software TPU as a PJRT plugin: what its files share. An interface's handle is one of the
// structs below; a buffer is a tt_array_t, an event a tt_queue_event_t. The functions of the table
// do three things: check that the caller's record is long enough, call the device, turn a status
// into an error. All may be called from any thread.
#ifndef TT_SOFTTPU_PLUGIN_PLUGIN_H_
#define TT_SOFTTPU_PLUGIN_PLUGIN_H_

#include "pjrt/pjrt_abi.h"
#include "softtpu/device.h"
#include "softtpu/ext.h"

#define TT_SOFT_PLATFORM "softtpu"
#define TT_SOFT_VERSION "softtpu 1"

// What one device looks like; `coords` are made up, a line of chips.
typedef struct tt_soft_description_s {
  int id;
  char text[32];
  int64_t coords[3];
  tt_pjrt_value_t attributes[2];
} tt_soft_description_t;

// What a client's devices look like; also stands alone, for compiling without a client.
typedef struct tt_soft_topology_s {
  uint32_t count;
  tt_soft_description_t *descriptions;
  void **list;  // the descriptions' addresses
} tt_soft_topology_t;

typedef struct tt_soft_client_s tt_soft_client_t;

// Data that a client of the interface hangs on a memory.
typedef struct tt_soft_user_data_s {
  struct tt_soft_user_data_s *next;
  const void *key;
  void *data;
  void (*destroy)(void *data);
} tt_soft_user_data_t;

// A device's only memory space. Thread-safe.
typedef struct tt_soft_memory_s {
  const tt_pjrt_memory_functions_t *functions;  // first: part of the interface
  int id;
  char text[40];
  struct tt_soft_device_s *device;
  void *device_list[1];
  pthread_mutex_t mutex;  // guards user_data
  tt_soft_user_data_t *user_data;
} tt_soft_memory_t;

// `device` is the first member: arrays know their tt_device_t only (tt__soft_device_of).
typedef struct tt_soft_device_s {
  tt_device_t device;
  tt_soft_client_t *client;
  tt_soft_description_t *description;
  tt_soft_memory_t memory;
  void *memory_list[1];
} tt_soft_device_t;

// Immutable once made. Destroying it waits for its devices; arrays must be gone before.
struct tt_soft_client_s {
  tt_soft_topology_t topology;
  tt_soft_device_t *devices;
  void **device_list, **memory_list;
  uint32_t count;
};

// An executable, loaded or not: the difference is `client`. Refcounted, because the one may be
// taken from the other.
typedef struct tt_soft_executable_s {
  _Atomic uint32_t refs;
  tt_program_t *program;
  tt_soft_client_t *client;  // NULL: compiled for a topology
  _Atomic bool deleted;
  char *name;
  char fingerprint[20];
  double flops;
  char *options;  // the serialized compile options it was made with
  size_t options_size;
  uint32_t device_count;
  tt_soft_device_t **devices;
  tt_pjrt_logical_id_t *logical_ids;
  // Answers to questions about inputs and outputs.
  tt_pjrt_type_t *output_types;
  int64_t *output_dims;
  size_t *output_ranks;
  const char **kinds;
  size_t *kind_sizes;
  tt_pjrt_value_t costs[3];
  void **layouts;  // outputs, then inputs
} tt_soft_executable_t;

static inline tt_soft_device_t *tt__soft_device_of(tt_device_t *device) {
  return (tt_soft_device_t *)device;  // its first member
}

// --- errors ---

// Consumes a status; NULL for OK.
tt_pjrt_error_t *tt__soft_error(tt_status_t status);
// Answers with a text that lives as long as the plugin or the object it is of.
tt_pjrt_error_t *tt__soft_answer(tt_pjrt_text_args_t *a, const char *text);
// The codes of errors, in both directions; the extension's are ours and more exact.
tt_code_t tt__soft_code(int pjrt_code);
int tt__soft_error_code(const tt_pjrt_error_t *error);

// TT_RETURN_IF_ERROR for functions of the table.
#define TT_SOFT_RETURN_IF_ERROR(expr)                        \
  do {                                                       \
    tt_status_t tt_s_ = (expr);                              \
    if (tt_s_ != TT_OK_STATUS) return tt__soft_error(tt_s_); \
  } while (0)

// Refuses a record that does not reach as far as `field`.
#define TT_SOFT_CHECK(args, field)                                                       \
  do {                                                                                   \
    if (!(args) || !TT_PJRT_HAS(args, field))                                            \
      return tt__soft_error(                                                             \
          TT_ERROR(INVALID_ARGUMENT, "%s: the caller's record is too short", __func__)); \
  } while (0)

// --- element types ---

// The interface's number of a type, and back.
tt_pjrt_type_t tt__soft_type_number(tt_dtype_t dtype);
// Fails for what the device does not have.
tt_status_t tt__soft_type(tt_pjrt_type_t number, tt_dtype_t *out_dtype) TT_MUST_USE;

// --- objects ---

// After a failed init there is nothing to deinit.
tt_status_t tt__soft_topology_init(tt_soft_topology_t *topology, uint32_t count) TT_MUST_USE;
void tt__soft_topology_deinit(tt_soft_topology_t *topology);
// TORCHTPU_NUM_DEVICES, 1 by default, 1 to 256.
uint32_t tt__soft_default_count(void);
// The device that a transfer's record names by device or memory.
tt_status_t tt__soft_target(tt_soft_client_t *client, void *device, void *memory,
                            tt_soft_device_t **out_device) TT_MUST_USE;

// Retains the program. `client` NULL: not loaded.
tt_status_t tt__soft_executable_create(tt_soft_client_t *client, tt_program_t *program,
                                       const char *name, const char *options, size_t options_size,
                                       tt_soft_executable_t **out_executable) TT_MUST_USE;

// From the compile options: how many devices, and which.
typedef struct tt_soft_options_s {
  uint32_t replica_count, partition_count;  // 0: not said
  bool spmd;
  uint32_t id_count;
  int64_t ids[256];  // device ids in replica-major order
} tt_soft_options_t;
tt_status_t tt__soft_options_parse(const char *bytes, size_t size,
                                   tt_soft_options_t *out_options) TT_MUST_USE;

// The serialized DeviceAssignmentProto of an executable; caller frees.
char *tt__soft_assignment_bytes(const tt_soft_executable_t *executable,
                                size_t *out_size) TT_MUST_USE;

// A layout as a client of the interface prints it, "{1,0}"; caller frees.
char *tt__soft_layout_text(uint32_t rank) TT_MUST_USE;

extern const tt_pjrt_layouts_t tt__soft_layouts;
extern const tt_soft_ext_t tt__soft_ext;

// Every function of the table, by its name there. Those that are not served are in unserved.c.
#define SLOT(name, args) tt_pjrt_error_t *tt__soft_##name(args *a);
#define SLOT_VOID(name, args) void tt__soft_##name(args *a);
#include "pjrt/pjrt_slots.def"
#undef SLOT
#undef SLOT_VOID

#endif  // TT_SOFTTPU_PLUGIN_PLUGIN_H_
