// The extension's functions (softtpu/ext.h): the device without the interface's records.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plugin/plugin.h"

// No clone of the graph is kept: such an executable has no text and no fingerprint.
static tt_pjrt_error_t *compile(void *client, const tt_graph_t *graph, void **out_loaded) {
  tt_program_t *program;
  TT_SOFT_RETURN_IF_ERROR(tt_program_create(graph, false, &program));
  tt_soft_executable_t *executable = NULL;
  tt_status_t status =
      tt__soft_executable_create(client, program, graph->name, NULL, 0, &executable);
  tt_program_release(program);
  *out_loaded = executable;
  return tt__soft_error(status);
}

static tt_pjrt_error_t *execute(void *loaded, void *device, const tt_soft_operand_t *inputs,
                                uint32_t input_count, void **outputs) {
  // The two records are one: a buffer is an array.
  _Static_assert(sizeof(tt_soft_operand_t) == sizeof(tt_operand_t) &&
                     offsetof(tt_soft_operand_t, bits) == offsetof(tt_operand_t, bits) &&
                     offsetof(tt_soft_operand_t, keep) == offsetof(tt_operand_t, keep),
                 "operands");
  tt_soft_executable_t *executable = loaded;
  return tt__soft_error(tt_device_execute(&((tt_soft_device_t *)device)->device,
                                          executable->program, (const tt_operand_t *)inputs,
                                          input_count, (tt_array_t **)outputs, NULL));
}

// Straight into memory that no pending work uses.
static tt_pjrt_error_t *upload(void *device, const tt_type_t *type, const void *data,
                               void **out_buffer) {
  tt_array_t *array;
  TT_SOFT_RETURN_IF_ERROR(tt_array_create(&((tt_soft_device_t *)device)->device, type, &array));
  if (array->bytes) memcpy(array->data, data, array->bytes);
  *out_buffer = array;
  return NULL;
}

static tt_pjrt_error_t *read(void *buffer, void *data, size_t size) {
  tt_array_t *array = buffer;
  if (size != array->bytes) {
    return tt__soft_error(
        TT_ERROR(INVALID_ARGUMENT, "reading %zu bytes of an array of %zu", size, array->bytes));
  }
  const void *source;
  TT_SOFT_RETURN_IF_ERROR(tt_array_hold(array, &source));
  if (size) memcpy(data, source, size);
  tt_array_drop(array);
  return NULL;
}

static tt_pjrt_error_t *hold(void *buffer, const void **out_data) {
  return tt__soft_error(tt_array_hold(buffer, out_data));
}

static void drop(void *buffer) { tt_array_drop(buffer); }

static tt_pjrt_error_t *allocate(void *device, const tt_type_t *type, void **out_data,
                                 void **out_buffer) {
  tt_array_t *array;
  TT_SOFT_RETURN_IF_ERROR(tt_array_create(&((tt_soft_device_t *)device)->device, type, &array));
  *out_data = array->data;
  *out_buffer = array;
  return NULL;
}

static tt_pjrt_error_t *await(void *buffer) {
  tt_array_t *array = buffer;
  TT_SOFT_RETURN_IF_ERROR(tt_device_check());
  return array->ready ? tt__soft_error(tt_queue_event_await(array->ready)) : NULL;
}

static bool is_ready(void *buffer) { return tt_array_is_ready(buffer); }

static void release(void *buffer) { tt_array_release(buffer); }

static size_t bytes(void *buffer) { return ((tt_array_t *)buffer)->bytes; }

static tt_pjrt_error_t *mark(void *device, void **out_event) {
  tt_queue_event_t *event = NULL;
  tt_status_t status = tt_device_mark(&((tt_soft_device_t *)device)->device, &event);
  *out_event = event;
  return tt__soft_error(status);
}

static int64_t event_time(void *event) { return tt_queue_event_time(event); }

static tt_pjrt_error_t *synchronize(void *device) {
  return tt__soft_error(tt_device_synchronize(&((tt_soft_device_t *)device)->device));
}

static void memory_stats(void *self, tt_soft_stats_t *out_stats) {
  tt_device_t *device = &((tt_soft_device_t *)self)->device;
  pthread_mutex_lock(&device->mutex);
  const tt_memory_t *m = &device->memory;
  *out_stats = (tt_soft_stats_t){m->in_use,      m->peak,  m->limit, m->reserved,
                                 m->allocations, m->frees, m->live,  m->largest};
  pthread_mutex_unlock(&device->mutex);
}

static void reset_peak(void *self) {
  tt_device_t *device = &((tt_soft_device_t *)self)->device;
  pthread_mutex_lock(&device->mutex);
  device->memory.peak = device->memory.in_use;
  pthread_mutex_unlock(&device->mutex);
}

static void trim(void *self) {
  tt_device_t *device = &((tt_soft_device_t *)self)->device;
  pthread_mutex_lock(&device->mutex);
  tt_memory_trim(&device->memory);
  pthread_mutex_unlock(&device->mutex);
}

const tt_soft_ext_t tt__soft_ext = {
    .base = {sizeof tt__soft_ext, TT_PJRT_EXTENSION_SOFTTPU,
             (tt_pjrt_extension_t *)(uintptr_t)&tt__soft_layouts.base},
    .version = TT_SOFT_EXT_VERSION,
    .error_code = tt__soft_error_code,
    .compile = compile,
    .execute = execute,
    .upload = upload,
    .read = read,
    .await = await,
    .is_ready = is_ready,
    .release = release,
    .bytes = bytes,
    .mark = mark,
    .event_time = event_time,
    .synchronize = synchronize,
    .memory_stats = memory_stats,
    .reset_peak = reset_peak,
    .trim = trim,
    .install_library = tt_library_install,
    .hold = hold,
    .drop = drop,
    .allocate = allocate,
};
