#include <string.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

tt_pjrt_type_t tt__type_number(tt_dtype_t dtype) {
  static const tt_pjrt_type_t numbers[TT_DTYPE_COUNT] = {
#define X(number, name) [TT_##name] = number,
      TT_PJRT_TYPES(X)
#undef X
  };
  return numbers[dtype];
}

// --- handles -------------------------------------------------------------------------------------
tt_buffer_t *tt__buffer_wrap(tt_client_t *client, uint32_t device, void *handle) {
  tt_buffer_t *buffer = tt_alloc(sizeof *buffer);
  if (!buffer) return NULL;
  atomic_init(&buffer->refs, 1);
  atomic_init(&buffer->counted, false);
  buffer->device = device;
  buffer->client = client;
  buffer->handle = handle;
  buffer->bytes = 0;
  tt__client_retain(client);
  return buffer;
}

void tt__buffer_unwrap(tt_buffer_t *buffer) {
  tt_client_destroy(buffer->client);
  tt_free(buffer);
}

void tt__buffer_count(tt_buffer_t *buffer) {
  const tt_plugin_t *plugin = buffer->client->plugin;
  TT_PJRT_ARGS(tt_pjrt_size_args_t, args, .self = buffer->handle);
  tt_status_t status = TT_CALL(plugin, Buffer_OnDeviceSizeInBytes, &args);
  buffer->bytes = status ? 0 : args.value;
  tt_status_release(status);
  tt_client_device_t *device = &buffer->client->devices[buffer->device];
  tt_memory_stats_t *stats = &device->stats;
  pthread_mutex_lock(&device->mutex);
  stats->bytes_in_use += (int64_t)buffer->bytes;
  stats->allocations++;
  stats->live_allocations++;
  if (stats->bytes_in_use > stats->peak_bytes_in_use) {
    stats->peak_bytes_in_use = stats->bytes_in_use;
  }
  if ((int64_t)buffer->bytes > stats->largest_allocation) {
    stats->largest_allocation = (int64_t)buffer->bytes;
  }
  pthread_mutex_unlock(&device->mutex);
  atomic_store(&buffer->counted, true);
}

void tt__buffer_uncount(tt_buffer_t *buffer) {
  if (!atomic_exchange(&buffer->counted, false)) return;
  tt_client_device_t *device = &buffer->client->devices[buffer->device];
  pthread_mutex_lock(&device->mutex);
  device->stats.bytes_in_use -= (int64_t)buffer->bytes;
  device->stats.frees++;
  device->stats.live_allocations--;
  pthread_mutex_unlock(&device->mutex);
}

void tt_buffer_retain(tt_buffer_t *buffer) {
  atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
}

void tt_buffer_release(tt_buffer_t *buffer) {
  if (!buffer || atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel) != 1) return;
  tt_client_t *client = buffer->client;
  if (client->ext) {
    client->ext->release(buffer->handle);
  } else {
    tt__buffer_uncount(buffer);
    TT_PJRT_ARGS(tt_pjrt_ref_args_t, args, .self = buffer->handle);
    tt__plugin_ignore(client->plugin, client->plugin->api->Buffer_Destroy(&args));
  }
  tt__buffer_unwrap(buffer);
}

size_t tt_buffer_bytes(const tt_buffer_t *buffer) { return buffer->bytes; }

// --- events --------------------------------------------------------------------------------------
static void destroy_event(const tt_plugin_t *plugin, void *event) {
  if (!event) return;
  TT_PJRT_ARGS(tt_pjrt_ref_args_t, args, .self = event);
  tt__plugin_ignore(plugin, plugin->api->Event_Destroy(&args));
}

static tt_status_t await_event(const tt_plugin_t *plugin, void *event) {
  TT_PJRT_ARGS(tt_pjrt_ref_args_t, args, .self = event);
  tt_status_t status = TT_CALL(plugin, Event_Await, &args);
  destroy_event(plugin, event);
  return status;
}

static tt_status_t ready_event(tt_buffer_t *buffer, void **out_event) {
  TT_RETURN_IF_ERROR(tt__plugin_check_fork());
  TT_PJRT_ARGS(tt_pjrt_get_args_t, args, .self = buffer->handle);
  TT_RETURN_IF_ERROR(TT_CALL(buffer->client->plugin, Buffer_ReadyEvent, &args));
  *out_event = args.result;
  return TT_OK_STATUS;
}

tt_status_t tt_buffer_await(tt_buffer_t *buffer) {
  tt_client_t *client = buffer->client;
  if (client->ext) return tt__plugin_status(client->plugin, client->ext->await(buffer->handle));
  void *event;
  TT_RETURN_IF_ERROR(ready_event(buffer, &event));
  return await_event(client->plugin, event);
}

// Failed counts as ready: whoever reads it learns of that.
bool tt_buffer_is_ready(tt_buffer_t *buffer) {
  tt_client_t *client = buffer->client;
  if (client->ext) return client->ext->is_ready(buffer->handle);
  void *event;
  tt_status_t status = ready_event(buffer, &event);
  TT_PJRT_ARGS(tt_pjrt_bool_args_t, args, .value = true);
  if (!status) {
    args.self = event;
    status = TT_CALL(client->plugin, Event_IsReady, &args);
    destroy_event(client->plugin, event);
  }
  bool ready = status || args.value;
  tt_status_release(status);
  return ready;
}

// --- transfers -----------------------------------------------------------------------------------
static tt_status_t upload(tt_client_t *client, uint32_t device, const tt_type_t *type,
                          const void *data, void **out_handle) {
  TT_RETURN_IF_ERROR(tt__plugin_check_fork());
  TT_PJRT_ARGS(tt_pjrt_upload_args_t, args, .client = client->handle, .data = data,
               .type = tt__type_number(type->dtype), .dims = type->dims, .rank = type->rank,
               .semantics = TT_PJRT_HOST_ONLY_DURING_CALL,
               .device = client->devices[device].handle);
  TT_RETURN_IF_ERROR(TT_CALL(client->plugin, Client_BufferFromHostBuffer, &args));
  destroy_event(client->plugin, args.done);
  *out_handle = args.buffer;
  return TT_OK_STATUS;
}

tt_status_t tt_buffer_create(tt_client_t *client, uint32_t device, const tt_type_t *type,
                             const void *data, tt_buffer_t **out_buffer) {
  *out_buffer = NULL;
  TT_RETURN_IF_ERROR(tt__client_check_device(client, device));
  tt_buffer_t *buffer = tt__buffer_wrap(client, device, NULL);
  if (!buffer) return TT_ERROR(OUT_OF_MEMORY, "no memory for a buffer");
  tt_status_t status;
  if (client->ext) {
    status = tt__plugin_status(client->plugin, client->ext->upload(client->devices[device].handle,
                                                                   type, data, &buffer->handle));
    buffer->bytes = tt_type_bytes(type);
  } else {
    status = upload(client, device, type, data, &buffer->handle);
    if (!status) tt__buffer_count(buffer);
  }
  if (status) {
    tt__buffer_unwrap(buffer);
    return status;
  }
  *out_buffer = buffer;
  return TT_OK_STATUS;
}

tt_status_t tt_buffer_hold(tt_buffer_t *buffer, const void **out_data) {
  tt_client_t *client = buffer->client;
  *out_data = NULL;
  if (!client->ext) return TT_OK_STATUS;
  return tt__plugin_status(client->plugin, client->ext->hold(buffer->handle, out_data));
}

void tt_buffer_drop(tt_buffer_t *buffer) { buffer->client->ext->drop(buffer->handle); }

tt_status_t tt_buffer_allocate(tt_client_t *client, uint32_t device, const tt_type_t *type,
                               void **out_data, tt_buffer_t **out_buffer) {
  *out_buffer = NULL;
  *out_data = NULL;
  TT_RETURN_IF_ERROR(tt__client_check_device(client, device));
  if (!client->ext) return TT_OK_STATUS;
  tt_buffer_t *buffer = tt__buffer_wrap(client, device, NULL);
  if (!buffer) return TT_ERROR(OUT_OF_MEMORY, "no memory for a buffer");
  buffer->bytes = tt_type_bytes(type);
  tt_status_t status = tt__plugin_status(
      client->plugin,
      client->ext->allocate(client->devices[device].handle, type, out_data, &buffer->handle));
  if (status)
    tt__buffer_unwrap(buffer);
  else
    *out_buffer = buffer;
  return status;
}

// The row-major layout is asked for: a plugin's own may be any.
static tt_status_t download(tt_buffer_t *buffer, void *data, size_t size) {
  const tt_plugin_t *plugin = buffer->client->plugin;
  TT_RETURN_IF_ERROR(tt__plugin_check_fork());
  TT_PJRT_ARGS(tt_pjrt_list_args_t, dims, .self = buffer->handle);
  TT_RETURN_IF_ERROR(TT_CALL(plugin, Buffer_Dimensions, &dims));
  int64_t order[64];
  if (dims.count > 64) return TT_ERROR(UNIMPLEMENTED, "reading an array of rank %zu", dims.count);
  for (size_t i = 0; i < dims.count; i++) order[i] = (int64_t)(dims.count - 1 - i);
  tt_pjrt_layout_t layout = {.struct_size = sizeof layout};
  layout.u.tiled = (tt_pjrt_tiled_layout_t){.struct_size = sizeof layout.u.tiled,
                                            .minor_to_major = order,
                                            .minor_to_major_size = dims.count};
  TT_PJRT_ARGS(tt_pjrt_download_args_t, need, .self = buffer->handle, .layout = &layout);
  TT_RETURN_IF_ERROR(TT_CALL(plugin, Buffer_ToHostBuffer, &need));
  if (need.size != size) {
    return TT_ERROR(INVALID_ARGUMENT, "reading %zu bytes of an array of %zu", size, need.size);
  }
  TT_PJRT_ARGS(tt_pjrt_download_args_t, args, .self = buffer->handle, .layout = &layout,
               .data = data, .size = size);
  TT_RETURN_IF_ERROR(TT_CALL(plugin, Buffer_ToHostBuffer, &args));
  return await_event(plugin, args.event);
}

tt_status_t tt_buffer_read(tt_buffer_t *buffer, void *data, size_t size) {
  tt_client_t *client = buffer->client;
  if (client->ext) {
    return tt__plugin_status(client->plugin, client->ext->read(buffer->handle, data, size));
  }
  return download(buffer, data, size);
}

tt_status_t tt_buffer_copy_to_device(tt_buffer_t *buffer, uint32_t device,
                                     tt_buffer_t **out_buffer) {
  *out_buffer = NULL;
  tt_client_t *client = buffer->client;
  TT_RETURN_IF_ERROR(tt__client_check_device(client, device));
  TT_RETURN_IF_ERROR(tt__plugin_check_fork());
  tt_buffer_t *copy = tt__buffer_wrap(client, device, NULL);
  if (!copy) return TT_ERROR(OUT_OF_MEMORY, "no memory for a buffer");
  TT_PJRT_ARGS(tt_pjrt_copy_args_t, args, .self = buffer->handle,
               .target = client->devices[device].handle);
  tt_status_t status = TT_CALL(client->plugin, Buffer_CopyToDevice, &args);
  if (status) {
    tt__buffer_unwrap(copy);
    return status;
  }
  copy->handle = args.result;
  copy->bytes = buffer->bytes;
  if (!client->ext) tt__buffer_count(copy);
  *out_buffer = copy;
  return TT_OK_STATUS;
}
