// Clients, their devices and memories. All devices of a client are addressable: there is one
// process.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plugin/plugin.h"

// What the smaller TPUs have a chip.
#define DEFAULT_MEMORY ((int64_t)16 << 30)

// TORCHTPU_HBM_BYTES: a number of bytes, or one followed by K, M or G.
static tt_status_t memory_limit(int64_t *out_limit) {
  *out_limit = DEFAULT_MEMORY;
  const char *text = getenv("TORCHTPU_HBM_BYTES");
  if (!text || !*text) return TT_OK_STATUS;
  char *end;
  long long value = strtoll(text, &end, 10);
  int shift = *end == 'K' || *end == 'k'   ? 10
              : *end == 'M' || *end == 'm' ? 20
              : *end == 'G' || *end == 'g' ? 30
                                           : 0;
  if (shift) end++;
  if (end == text || *end || value <= 0 || value > (INT64_MAX >> (shift + 1))) {
    return TT_ERROR(INVALID_ARGUMENT, "TORCHTPU_HBM_BYTES is \"%s\", not a size in bytes", text);
  }
  *out_limit = (int64_t)value << shift;
  return TT_OK_STATUS;
}

// --- memories ---

// Functions of the memory's own table, which newer clients call directly.
static void *user_data(void *self, const void *key) {
  tt_soft_memory_t *memory = self;
  void *data = NULL;
  pthread_mutex_lock(&memory->mutex);
  for (tt_soft_user_data_t *u = memory->user_data; u; u = u->next) {
    if (u->key != key) continue;
    data = u->data;
    break;
  }
  pthread_mutex_unlock(&memory->mutex);
  return data;
}

// The newest entry of a key goes to the front and hides the older ones, which stay for their
// destructors. Without memory nothing is kept: the interface has no way to say so.
static void set_user_data(void *self, const void *key, void *data, void (*destroy)(void *)) {
  tt_soft_memory_t *memory = self;
  tt_soft_user_data_t *entry = tt_alloc(sizeof *entry);
  if (!entry) return;
  pthread_mutex_lock(&memory->mutex);
  *entry = (tt_soft_user_data_t){memory->user_data, key, data, destroy};
  memory->user_data = entry;
  pthread_mutex_unlock(&memory->mutex);
}

static const tt_pjrt_memory_functions_t memory_functions = {
    sizeof memory_functions, NULL, sizeof(tt_soft_memory_t), user_data, set_user_data,
};

static void memory_init(tt_soft_device_t *device, int id) {
  tt_soft_memory_t *memory = &device->memory;
  memory->functions = &memory_functions;
  memory->id = id;
  snprintf(memory->text, sizeof memory->text, "SoftTpuMemory(id=%d)", id);
  memory->device = device;
  memory->device_list[0] = device;
  pthread_mutex_init(&memory->mutex, NULL);
  device->memory_list[0] = memory;
}

static void memory_deinit(tt_soft_memory_t *memory) {
  while (memory->user_data) {
    tt_soft_user_data_t *next = memory->user_data->next;
    if (memory->user_data->destroy) memory->user_data->destroy(memory->user_data->data);
    tt_free(memory->user_data);
    memory->user_data = next;
  }
  pthread_mutex_destroy(&memory->mutex);
}

// --- the client ---

// The first `device_count` devices have been made.
static void client_destroy(tt_soft_client_t *client, uint32_t device_count) {
  for (uint32_t i = 0; i < device_count; i++) {
    tt_device_deinit(&client->devices[i].device);
    memory_deinit(&client->devices[i].memory);
  }
  tt__soft_topology_deinit(&client->topology);
  tt_free(client->devices);
  tt_free(client->device_list);
  tt_free(client->memory_list);
  tt_free(client);
}

static tt_status_t device_init(tt_soft_client_t *client, uint32_t i, int64_t limit) {
  tt_soft_device_t *device = &client->devices[i];
  TT_RETURN_IF_ERROR(tt_device_init(&device->device, i, limit));
  device->client = client;
  device->description = &client->topology.descriptions[i];
  memory_init(device, (int)i);
  client->device_list[i] = device;
  client->memory_list[i] = &device->memory;
  return TT_OK_STATUS;
}

static tt_status_t client_create(uint32_t count, tt_soft_client_t **out_client) {
  int64_t limit;
  TT_RETURN_IF_ERROR(memory_limit(&limit));
  tt_soft_client_t *client = tt_alloc_zeroed(sizeof *client);
  if (!client) return TT_ERROR(OUT_OF_MEMORY, "no host memory for a client");
  client->count = count;
  tt_status_t status = tt__soft_topology_init(&client->topology, count);
  client->devices = tt_alloc_zeroed(sizeof *client->devices * count);
  client->device_list = tt_alloc_zeroed(sizeof(void *) * count);
  client->memory_list = tt_alloc_zeroed(sizeof(void *) * count);
  if (!status && (!client->devices || !client->device_list || !client->memory_list)) {
    status = TT_ERROR(OUT_OF_MEMORY, "no host memory for %u devices", count);
  }
  uint32_t made = 0;
  while (!status && made < count) {
    status = device_init(client, made, limit);
    if (!status) made++;
  }
  if (status) {
    client_destroy(client, made);
    return status;
  }
  *out_client = client;
  return TT_OK_STATUS;
}

static bool is_named(const tt_pjrt_value_t *option, const char *name) {
  return option->name_size == strlen(name) && memcmp(option->name, name, option->name_size) == 0;
}

// Options that other devices know are accepted and ignored.
tt_pjrt_error_t *tt__soft_Client_Create(tt_pjrt_client_create_args_t *a) {
  TT_SOFT_CHECK(a, client);
  uint32_t count = tt__soft_default_count();
  for (size_t i = 0; i < a->option_count; i++) {
    const tt_pjrt_value_t *option = &a->options[i];
    if (!is_named(option, "device_count") || option->kind != TT_PJRT_VALUE_INT) continue;
    if (option->u.i < 1 || option->u.i > 256) {
      return tt__soft_error(
          TT_ERROR(INVALID_ARGUMENT, "device_count is %lld, not 1 to 256", (long long)option->u.i));
    }
    count = (uint32_t)option->u.i;
  }
  tt_soft_client_t *client = NULL;
  TT_SOFT_RETURN_IF_ERROR(client_create(count, &client));
  a->client = client;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Client_Destroy(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  tt_soft_client_t *client = a->self;
  if (client) client_destroy(client, client->count);
  return NULL;
}

tt_pjrt_error_t *tt__soft_Plugin_Initialize(tt_pjrt_head_args_t *a) {
  (void)a;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Plugin_Attributes(tt_pjrt_own_list_args_t *a) {
  // What bytecode.c reads: clients write down to it.
  static const int64_t version[3] = {0, 14, 0}, oldest[3] = {0, 9, 0};
  static const tt_pjrt_value_t attributes[] = {
      {.struct_size = sizeof *attributes,
       .name = "xla_version",
       .name_size = 11,
       .kind = TT_PJRT_VALUE_INT,
       .u.i = 2,
       .count = 1},
      {.struct_size = sizeof *attributes,
       .name = "stablehlo_current_version",
       .name_size = 25,
       .kind = TT_PJRT_VALUE_INTS,
       .u.ints = version,
       .count = 3},
      {.struct_size = sizeof *attributes,
       .name = "stablehlo_minimum_version",
       .name_size = 25,
       .kind = TT_PJRT_VALUE_INTS,
       .u.ints = oldest,
       .count = 3},
  };
  TT_SOFT_CHECK(a, count);
  a->items = attributes;
  a->count = sizeof attributes / sizeof *attributes;
  return NULL;
}

tt_pjrt_error_t *tt__soft_answer(tt_pjrt_text_args_t *a, const char *text) {
  TT_SOFT_CHECK(a, size);
  a->text = text;
  a->size = strlen(text);
  return NULL;
}

tt_pjrt_error_t *tt__soft_Client_PlatformName(tt_pjrt_text_args_t *a) {
  return tt__soft_answer(a, TT_SOFT_PLATFORM);
}

tt_pjrt_error_t *tt__soft_Client_PlatformVersion(tt_pjrt_text_args_t *a) {
  return tt__soft_answer(a, TT_SOFT_VERSION);
}

tt_pjrt_error_t *tt__soft_Client_ProcessIndex(tt_pjrt_int_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = 0;
  return NULL;
}

// Borrowed from the client.
static tt_pjrt_error_t *answer_list(tt_pjrt_list_args_t *a, const void *items, size_t count) {
  TT_SOFT_CHECK(a, count);
  a->items = items;
  a->count = count;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Client_Devices(tt_pjrt_list_args_t *a) {
  TT_SOFT_CHECK(a, self);
  tt_soft_client_t *client = a->self;
  return answer_list(a, client->device_list, client->count);
}

tt_pjrt_error_t *tt__soft_Client_AddressableDevices(tt_pjrt_list_args_t *a) {
  return tt__soft_Client_Devices(a);
}

tt_pjrt_error_t *tt__soft_Client_AddressableMemories(tt_pjrt_list_args_t *a) {
  TT_SOFT_CHECK(a, self);
  tt_soft_client_t *client = a->self;
  return answer_list(a, client->memory_list, client->count);
}

tt_pjrt_error_t *tt__soft_Client_LookupDevice(tt_pjrt_lookup_args_t *a) {
  TT_SOFT_CHECK(a, result);
  tt_soft_client_t *client = a->self;
  if (a->key < 0 || (uint32_t)a->key >= client->count) {
    return tt__soft_error(
        TT_ERROR(INVALID_ARGUMENT, "no device %d: there are %u", a->key, client->count));
  }
  a->result = &client->devices[a->key];
  return NULL;
}

tt_pjrt_error_t *tt__soft_Client_LookupAddressableDevice(tt_pjrt_lookup_args_t *a) {
  return tt__soft_Client_LookupDevice(a);
}

tt_pjrt_error_t *tt__soft_Client_TopologyDescription(tt_pjrt_get_args_t *a) {
  TT_SOFT_CHECK(a, result);
  a->result = &((tt_soft_client_t *)a->self)->topology;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Client_DefaultDeviceAssignment(tt_pjrt_assignment_args_t *a) {
  TT_SOFT_CHECK(a, ids);
  tt_soft_client_t *client = a->client;
  int64_t count = (int64_t)a->replicas * a->partitions;
  if (a->replicas < 1 || a->partitions < 1 || count > client->count || (size_t)count > a->size) {
    return tt__soft_error(TT_ERROR(INVALID_ARGUMENT, "%d replicas of %d partitions: %u devices",
                                   a->replicas, a->partitions, client->count));
  }
  for (int64_t i = 0; i < count; i++) a->ids[i] = (int)i;
  return NULL;
}

// A memory says more than a device; neither means device 0.
tt_status_t tt__soft_target(tt_soft_client_t *client, void *device, void *memory,
                            tt_soft_device_t **out_device) {
  tt_soft_device_t *target = memory   ? ((tt_soft_memory_t *)memory)->device
                             : device ? device
                                      : &client->devices[0];
  if (target->client != client) {
    return TT_ERROR(INVALID_ARGUMENT, "the device belongs to another client");
  }
  *out_device = target;
  return TT_OK_STATUS;
}

// --- devices ---

tt_pjrt_error_t *tt__soft_Device_GetDescription(tt_pjrt_get_args_t *a) {
  TT_SOFT_CHECK(a, result);
  a->result = ((tt_soft_device_t *)a->self)->description;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Device_IsAddressable(tt_pjrt_bool_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = true;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Device_LocalHardwareId(tt_pjrt_int_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = (int)((tt_soft_device_t *)a->self)->device.ordinal;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Device_AddressableMemories(tt_pjrt_list_args_t *a) {
  TT_SOFT_CHECK(a, self);
  return answer_list(a, ((tt_soft_device_t *)a->self)->memory_list, 1);
}

tt_pjrt_error_t *tt__soft_Device_DefaultMemory(tt_pjrt_get_args_t *a) {
  TT_SOFT_CHECK(a, result);
  a->result = &((tt_soft_device_t *)a->self)->memory;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Device_MemoryStats(tt_pjrt_memory_stats_args_t *a) {
  TT_SOFT_CHECK(a, bytes_limit);
  tt_soft_stats_t stats;
  tt__soft_ext.memory_stats(a->self, &stats);
  // The caller's record comes uninitialised.
  const size_t first = offsetof(tt_pjrt_memory_stats_args_t, bytes_in_use);
  size_t known = a->struct_size < sizeof *a ? a->struct_size : sizeof *a;
  memset((char *)a + first, 0, known - first);
  a->bytes_in_use = stats.bytes_in_use;
  a->peak_bytes_in_use = (tt_pjrt_stat_t){stats.peak_bytes_in_use, true};
  a->allocations = (tt_pjrt_stat_t){stats.allocations, true};
  a->largest_allocation = (tt_pjrt_stat_t){stats.largest_allocation, true};
  a->bytes_limit = (tt_pjrt_stat_t){stats.bytes_limit, true};
  if (TT_PJRT_HAS(a, bytes_reserved)) {
    a->bytes_reserved = (tt_pjrt_stat_t){stats.bytes_reserved, true};
  }
  return NULL;
}

tt_pjrt_error_t *tt__soft_Device_ClearMemoryStats(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  tt__soft_ext.reset_peak(a->self);
  return NULL;
}

tt_pjrt_error_t *tt__soft_Device_GetAttributes(tt_pjrt_device_attributes_args_t *a) {
  TT_SOFT_CHECK(a, deleter);
  tt_soft_device_t *device = a->self;
  a->attributes = device->description->attributes;
  a->count = 2;
  a->owner = NULL;
  a->deleter = tt_free;  // of NULL
  return NULL;
}

// --- memories' questions ---

tt_pjrt_error_t *tt__soft_Memory_Id(tt_pjrt_int_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = ((tt_soft_memory_t *)a->self)->id;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Memory_Kind_Id(tt_pjrt_int_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = 0;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Memory_Kind(tt_pjrt_text_args_t *a) {
  return tt__soft_answer(a, "device");
}

tt_pjrt_error_t *tt__soft_Memory_DebugString(tt_pjrt_text_args_t *a) {
  TT_SOFT_CHECK(a, size);
  return tt__soft_answer(a, ((tt_soft_memory_t *)a->self)->text);
}

tt_pjrt_error_t *tt__soft_Memory_ToString(tt_pjrt_text_args_t *a) {
  return tt__soft_Memory_DebugString(a);
}

tt_pjrt_error_t *tt__soft_Memory_AddressableByDevices(tt_pjrt_list_args_t *a) {
  TT_SOFT_CHECK(a, self);
  return answer_list(a, ((tt_soft_memory_t *)a->self)->device_list, 1);
}
