#include "pjrt/client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "pjrt/internal.h"
#include "pjrt/visible.h"

static char *copy_text(const char *text, size_t size) {
  char *copy = tt_alloc(size + 1);
  if (copy) {
    if (size) memcpy(copy, text, size);
    copy[size] = 0;
  }
  return copy;
}

static void destroy_handle(tt_client_t *client) {
  if (!client->handle || !TT_PJRT_OFFERS(client->plugin->api, Client_Destroy)) return;
  TT_PJRT_ARGS(tt_pjrt_ref_args_t, args, .self = client->handle);
  tt__plugin_ignore(client->plugin, client->plugin->api->Client_Destroy(&args));
}

static void drop_scalars(tt_client_t *client, tt_client_device_t *device) {
  for (int i = 0; i < TT_SCALAR_CACHE; i++) {
    if (!device->scalars[i].buffer) continue;
    TT_PJRT_ARGS(tt_pjrt_ref_args_t, args, .self = device->scalars[i].buffer);
    tt__plugin_ignore(client->plugin, client->plugin->api->Buffer_Destroy(&args));
  }
}

void tt_client_destroy(tt_client_t *client) {
  if (!client || atomic_fetch_sub(&client->refs, 1) != 1) return;
  for (uint32_t i = 0; client->devices && i < client->device_count; i++) {
    tt_client_device_t *device = &client->devices[i];
    drop_scalars(client, device);
    tt__fence_release(device->last);
    tt_free(device->kind);
    pthread_mutex_destroy(&device->mutex);
  }
  destroy_handle(client);
  tt_free(client->devices);
  tt_free(client->platform);
  tt_free(client->version);
  tt_free(client);
}

// XLA's CPU plugins open several devices unless told; others may refuse to be told.
static tt_status_t create_handle(tt_client_t *client, const char *name) {
  const char *text = getenv("TORCHTPU_NUM_DEVICES");
  long count = text ? strtol(text, NULL, 10) : 1;
  tt_pjrt_value_t option = {.struct_size = sizeof option,
                            .name = "cpu_device_count",
                            .name_size = 16,
                            .kind = TT_PJRT_VALUE_INT,
                            .u.i = count > 0 ? count : 1,
                            .count = 1};
  TT_PJRT_ARGS(tt_pjrt_client_create_args_t, args, .options = &option, .option_count = 1);
  if (client->ext || strcmp(name, "libtpu") == 0) args.option_count = 0;
  tt_status_t status = TT_CALL(client->plugin, Client_Create, &args);
  if (status && args.option_count) {
    tt_status_release(status);
    args.option_count = 0;
    status = TT_CALL(client->plugin, Client_Create, &args);
  }
  client->handle = args.client;
  return status;
}

static tt_status_t read_names(tt_client_t *client) {
  TT_PJRT_ARGS(tt_pjrt_text_args_t, name, .self = client->handle);
  TT_PJRT_ARGS(tt_pjrt_text_args_t, version, .self = client->handle);
  TT_RETURN_IF_ERROR(TT_CALL(client->plugin, Client_PlatformName, &name));
  TT_RETURN_IF_ERROR(TT_CALL(client->plugin, Client_PlatformVersion, &version));
  client->platform = copy_text(name.text, name.size);
  client->version = copy_text(version.text, version.size);
  if (client->platform && client->version) return TT_OK_STATUS;
  return TT_ERROR(OUT_OF_MEMORY, "no memory for a client");
}

static tt_status_t read_device(tt_client_t *client, tt_client_device_t *device, void *handle) {
  device->handle = handle;
  TT_PJRT_ARGS(tt_pjrt_get_args_t, description, .self = handle);
  TT_RETURN_IF_ERROR(TT_CALL(client->plugin, Device_GetDescription, &description));
  TT_PJRT_ARGS(tt_pjrt_text_args_t, kind, .self = description.result);
  TT_RETURN_IF_ERROR(TT_CALL(client->plugin, DeviceDescription_Kind, &kind));
  device->kind = copy_text(kind.text, kind.size);
  return device->kind ? TT_OK_STATUS : TT_ERROR(OUT_OF_MEMORY, "no memory for a client");
}

// What a plugin that runs on the host may take, where it does not say.
static bool host_platform(const tt_client_t *client) {
  return !client->ext && strcmp(client->platform, "cpu") == 0;
}

static int64_t host_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? (int64_t)pages * size : 0;
}

static tt_status_t read_devices(tt_client_t *client) {
  TT_PJRT_ARGS(tt_pjrt_list_args_t, list, .self = client->handle);
  TT_RETURN_IF_ERROR(TT_CALL(client->plugin, Client_AddressableDevices, &list));
  uint32_t count = (uint32_t)list.count;
  int64_t limit = host_platform(client) ? host_memory() : 0;
  client->devices = tt_alloc_zeroed(sizeof *client->devices * (count + 1u));
  uint32_t *ordinals = tt_alloc(sizeof *ordinals * (count + 1u));
  tt_status_t status = TT_OK_STATUS;
  if (!client->devices || !ordinals) status = TT_ERROR(OUT_OF_MEMORY, "no memory for devices");
  if (!status) status = tt_visible_devices(count, ordinals, &client->device_count);
  for (uint32_t i = 0; i < client->device_count; i++) {
    pthread_mutex_init(&client->devices[i].mutex, NULL);
    client->devices[i].stats.bytes_limit = limit;
    void *handle = ((void *const *)list.items)[ordinals[i]];
    if (!status) status = read_device(client, &client->devices[i], handle);
  }
  tt_free(ordinals);
  return status;
}

tt_status_t tt_client_create(const char *plugin, tt_client_t **out_client) {
  *out_client = NULL;
  const tt_plugin_t *loaded;
  TT_RETURN_IF_ERROR(tt__plugin_load(plugin, &loaded));
  tt_client_t *client = tt_alloc_zeroed(sizeof *client);
  if (!client) return TT_ERROR(OUT_OF_MEMORY, "no memory for a client");
  atomic_init(&client->refs, 1);
  client->plugin = loaded;
  client->ext = loaded->ext;
  tt_status_t status = create_handle(client, plugin);
  if (!status) status = read_names(client);
  if (!status) status = read_devices(client);
  if (status) {
    tt_client_destroy(client);
    return tt_status_annotate(status, "the plugin %s gives no device", loaded->path);
  }
  *out_client = client;
  return TT_OK_STATUS;
}

const char *tt_client_platform(const tt_client_t *client) { return client->platform; }
const char *tt_client_platform_version(const tt_client_t *client) { return client->version; }
bool tt_client_is_soft(const tt_client_t *client) { return client->ext != NULL; }
uint32_t tt_client_device_count(const tt_client_t *client) { return client->device_count; }

const char *tt_client_device_kind(const tt_client_t *client, uint32_t device) {
  return device < client->device_count ? client->devices[device].kind : "";
}

tt_status_t tt__client_check_device(const tt_client_t *client, uint32_t device) {
  if (device < client->device_count) return TT_OK_STATUS;
  return TT_ERROR(INVALID_ARGUMENT, "no device %u: %s has %u", device, client->platform,
                  client->device_count);
}

void tt_client_install_library(tt_client_t *client, const tt_library_t *library) {
  if (client->ext) client->ext->install_library(library);
}

tt_status_t tt_client_synchronize(tt_client_t *client, uint32_t device) {
  TT_RETURN_IF_ERROR(tt__client_check_device(client, device));
  tt_client_device_t *d = &client->devices[device];
  if (client->ext) return tt__plugin_status(client->plugin, client->ext->synchronize(d->handle));
  TT_RETURN_IF_ERROR(tt__plugin_check_fork());
  pthread_mutex_lock(&d->mutex);
  tt_fence_t *last = d->last;
  if (last) atomic_fetch_add(&last->refs, 1);
  pthread_mutex_unlock(&d->mutex);
  if (!last) return TT_OK_STATUS;
  tt_status_t status = tt__fence_await(last);
  tt__fence_release(last);
  return status;
}

// --- memory --------------------------------------------------------------------------------------
static bool ask_plugin(tt_client_t *client, tt_client_device_t *device, tt_memory_stats_t *stats) {
  TT_PJRT_ARGS(tt_pjrt_memory_stats_args_t, args, .self = device->handle);
  tt_status_t status = TT_CALL(client->plugin, Device_MemoryStats, &args);
  bool ok = !status;
  tt_status_release(status);
  if (!ok || !args.bytes_limit.is_set) return false;
  stats->bytes_in_use = args.bytes_in_use;
  stats->bytes_limit = args.bytes_limit.value;
  if (args.peak_bytes_in_use.is_set) stats->peak_bytes_in_use = args.peak_bytes_in_use.value;
  if (args.bytes_reserved.is_set) stats->bytes_reserved = args.bytes_reserved.value;
  if (args.largest_allocation.is_set) stats->largest_allocation = args.largest_allocation.value;
  return true;
}

tt_status_t tt_client_memory_stats(tt_client_t *client, uint32_t device,
                                   tt_memory_stats_t *out_stats) {
  TT_RETURN_IF_ERROR(tt__client_check_device(client, device));
  tt_client_device_t *d = &client->devices[device];
  if (client->ext) {
    tt_soft_stats_t s;
    client->ext->memory_stats(d->handle, &s);
    *out_stats = (tt_memory_stats_t){s.bytes_in_use,     s.peak_bytes_in_use, s.bytes_limit,
                                     s.bytes_reserved,   s.allocations,       s.frees,
                                     s.live_allocations, s.largest_allocation};
    return TT_OK_STATUS;
  }
  pthread_mutex_lock(&d->mutex);
  *out_stats = d->stats;
  pthread_mutex_unlock(&d->mutex);
  (void)ask_plugin(client, d, out_stats);
  return TT_OK_STATUS;
}

void tt_client_reset_peak(tt_client_t *client, uint32_t device) {
  if (device >= client->device_count) return;
  tt_client_device_t *d = &client->devices[device];
  if (client->ext) {
    client->ext->reset_peak(d->handle);
    return;
  }
  pthread_mutex_lock(&d->mutex);
  d->stats.peak_bytes_in_use = d->stats.bytes_in_use;
  pthread_mutex_unlock(&d->mutex);
  if (!TT_PJRT_OFFERS(client->plugin->api, Device_ClearMemoryStats)) return;
  TT_PJRT_ARGS(tt_pjrt_ref_args_t, args, .self = d->handle);
  tt__plugin_ignore(client->plugin, client->plugin->api->Device_ClearMemoryStats(&args));
}

void tt_client_trim(tt_client_t *client, uint32_t device) {
  if (client->ext && device < client->device_count) {
    client->ext->trim(client->devices[device].handle);
  }
}
