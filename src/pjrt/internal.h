// What the client's files share.
#ifndef TT_PJRT_INTERNAL_H_
#define TT_PJRT_INTERNAL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "pjrt/client.h"
#include "pjrt/pjrt_abi.h"
#include "softtpu/ext.h"

// A loaded plugin: one a path and process, never unloaded (their threads and tables stay).
typedef struct tt_plugin_s {
  struct tt_plugin_s *next;
  char *path;
  const tt_pjrt_api_t *api;
  const tt_soft_ext_t *ext;  // NULL: not the software TPU
} tt_plugin_t;

// `name` as tt_client_create takes it. Loads and initializes the plugin at its first use.
tt_status_t tt__plugin_load(const char *name, const tt_plugin_t **out_plugin) TT_MUST_USE;
// Consumes the plugin's error; OK for NULL.
tt_status_t tt__plugin_status(const tt_plugin_t *plugin, tt_pjrt_error_t *error) TT_MUST_USE;
// For calls whose failure cannot matter (destroying things).
void tt__plugin_ignore(const tt_plugin_t *plugin, tt_pjrt_error_t *error);
// Fails in a child of fork that inherited a client.
tt_status_t tt__plugin_check_fork(void) TT_MUST_USE;

// Calls a function of the table: TT_CALL(plugin, Client_Create, &args). Fails where the plugin's
// table ends before it.
#define TT_CALL(plugin, slot, args)                             \
  (TT_PJRT_OFFERS((plugin)->api, slot)                          \
       ? tt__plugin_status((plugin), (plugin)->api->slot(args)) \
       : TT_ERROR(UNIMPLEMENTED, "the plugin %s does not have PJRT_" #slot, (plugin)->path))

// Completion of an execution on a foreign plugin, with the time at which it happened.
typedef struct tt_fence_s {
  _Atomic uint32_t refs;
  _Atomic int64_t time;  // nanoseconds of CLOCK_MONOTONIC, 0: pending
  tt_status_t error;     // written before `time`
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  const tt_plugin_t *plugin;
} tt_fence_t;

// Foreign plugins take no scalars in a call: each is uploaded once and kept, a few a device, the
// place told by its hash.
#define TT_SCALAR_CACHE 64
typedef struct tt_scalar_s {
  uint8_t dtype;
  uint64_t bits[2];
  void *buffer;  // NULL: empty
} tt_scalar_t;

// An addressable device, by its ordinal in this process.
typedef struct tt_client_device_s {
  void *handle;
  char *kind;
  pthread_mutex_t mutex;  // guards what follows, which only foreign plugins need
  tt_fence_t *last;       // of the last execution
  tt_memory_stats_t stats;
  tt_scalar_t scalars[TT_SCALAR_CACHE];
} tt_client_device_t;

struct tt_client_s {
  _Atomic uint32_t refs;
  const tt_plugin_t *plugin;
  const tt_soft_ext_t *ext;  // the plugin's
  void *handle;
  char *platform, *version;
  tt_client_device_t *devices;
  uint32_t device_count;
};

struct tt_executable_s {
  _Atomic uint32_t refs;
  tt_client_t *client;  // retained
  void *handle;
  uint32_t output_count;
  uint32_t input_count;  // of a graph; 0 for a text
  int32_t *donations;    // foreign plugins: a graph's; NULL for a text
};

struct tt_buffer_s {
  _Atomic uint32_t refs;
  uint32_t device;
  tt_client_t *client;  // retained
  void *handle;
  size_t bytes;
  _Atomic bool counted;  // in the device's statistics (foreign plugins)
};

static inline void tt__client_retain(tt_client_t *client) {
  atomic_fetch_add_explicit(&client->refs, 1, memory_order_relaxed);
}
// INVALID_ARGUMENT where there is no such device.
tt_status_t tt__client_check_device(const tt_client_t *client, uint32_t device) TT_MUST_USE;

// A buffer around a plugin's handle, which may be set later.
tt_buffer_t *tt__buffer_wrap(tt_client_t *client, uint32_t device, void *handle) TT_MUST_USE;
void tt__buffer_unwrap(tt_buffer_t *buffer);  // frees one without a handle
// Foreign plugins: asks the buffer's size and counts it.
void tt__buffer_count(tt_buffer_t *buffer);
void tt__buffer_uncount(tt_buffer_t *buffer);

// Pending; NULL without memory. Thread-safe, refcounted.
tt_fence_t *tt__fence_create(const tt_plugin_t *plugin) TT_MUST_USE;
void tt__fence_release(tt_fence_t *fence);  // NULL-safe
// Follows a plugin's event, which it consumes.
tt_status_t tt__fence_follow(tt_fence_t *fence, void *event) TT_MUST_USE;
tt_status_t tt__fence_await(tt_fence_t *fence) TT_MUST_USE;

// A serialized CompileOptionsProto. Caller frees.
typedef struct tt_compile_options_s {
  uint32_t replica_count, partition_count;  // 0: 1
  bool spmd, shardy;
  bool portable;               // runs on any one device
  int32_t optimization_level;  // 0: the compiler's own
  // Overrides of the compiler's flags, as text.
  const char *const *names, *const *values;
  uint32_t override_count;
} tt_compile_options_t;
tt_status_t tt__options_encode(const tt_compile_options_t *options, char **out_bytes,
                               size_t *out_size) TT_MUST_USE;

// The interface's number of a dtype.
tt_pjrt_type_t tt__type_number(tt_dtype_t dtype);

#endif  // TT_PJRT_INTERNAL_H_
