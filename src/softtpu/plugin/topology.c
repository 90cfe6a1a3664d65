// Topologies: descriptions of devices, of a client's or of none.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plugin/plugin.h"

#define MAX_DEVICES 256

uint32_t tt__soft_default_count(void) {
  const char *text = getenv("TORCHTPU_NUM_DEVICES");
  long count = text ? strtol(text, NULL, 10) : 1;
  return count < 1 ? 1 : count > MAX_DEVICES ? MAX_DEVICES : (uint32_t)count;
}

// What JAX asks of TPUs: coordinates in the mesh and the core on the chip.
static void describe(tt_soft_description_t *description, int id) {
  description->id = id;
  snprintf(description->text, sizeof description->text, "SoftTpuDevice(id=%d)", id);
  description->coords[0] = id;
  description->attributes[0] = (tt_pjrt_value_t){.struct_size = sizeof(tt_pjrt_value_t),
                                                 .name = "coords",
                                                 .name_size = 6,
                                                 .kind = TT_PJRT_VALUE_INTS,
                                                 .u.ints = description->coords,
                                                 .count = 3};
  description->attributes[1] = (tt_pjrt_value_t){.struct_size = sizeof(tt_pjrt_value_t),
                                                 .name = "core_on_chip",
                                                 .name_size = 12,
                                                 .kind = TT_PJRT_VALUE_INT,
                                                 .u.i = 0,
                                                 .count = 1};
}

tt_status_t tt__soft_topology_init(tt_soft_topology_t *topology, uint32_t count) {
  topology->count = count;
  topology->descriptions = tt_alloc_zeroed(sizeof *topology->descriptions * count);
  topology->list = tt_alloc(sizeof *topology->list * count);
  if (!topology->descriptions || !topology->list) {
    tt__soft_topology_deinit(topology);
    return TT_ERROR(OUT_OF_MEMORY, "no host memory for %u devices", count);
  }
  for (uint32_t i = 0; i < count; i++) {
    describe(&topology->descriptions[i], (int)i);
    topology->list[i] = &topology->descriptions[i];
  }
  return TT_OK_STATUS;
}

void tt__soft_topology_deinit(tt_soft_topology_t *topology) {
  tt_free(topology->descriptions);
  tt_free(topology->list);
  topology->descriptions = NULL;
  topology->list = NULL;
}

// "softtpu:4" or "4" asks for four devices, any other name for the default.
tt_pjrt_error_t *tt__soft_TopologyDescription_Create(tt_pjrt_topology_create_args_t *a) {
  TT_SOFT_CHECK(a, topology);
  char name[64] = "";
  size_t size = a->name_size < sizeof name ? a->name_size : sizeof name - 1;
  if (a->name) memcpy(name, a->name, size);
  const char *colon = strchr(name, ':');
  long count = strtol(colon ? colon + 1 : name, NULL, 10);
  if (count < 1 || count > MAX_DEVICES) count = tt__soft_default_count();
  tt_soft_topology_t *topology = tt_alloc_zeroed(sizeof *topology);
  if (!topology) return tt__soft_error(TT_ERROR(OUT_OF_MEMORY, "no host memory for a topology"));
  tt_status_t status = tt__soft_topology_init(topology, (uint32_t)count);
  if (status) {
    tt_free(topology);
    return tt__soft_error(status);
  }
  a->topology = topology;
  return NULL;
}

tt_pjrt_error_t *tt__soft_TopologyDescription_Destroy(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  if (a->self) tt__soft_topology_deinit(a->self);
  tt_free(a->self);
  return NULL;
}

tt_pjrt_error_t *tt__soft_TopologyDescription_PlatformName(tt_pjrt_text_args_t *a) {
  return tt__soft_answer(a, TT_SOFT_PLATFORM);
}

tt_pjrt_error_t *tt__soft_TopologyDescription_PlatformVersion(tt_pjrt_text_args_t *a) {
  return tt__soft_answer(a, TT_SOFT_VERSION);
}

tt_pjrt_error_t *tt__soft_TopologyDescription_GetDeviceDescriptions(tt_pjrt_list_args_t *a) {
  TT_SOFT_CHECK(a, count);
  const tt_soft_topology_t *topology = a->self;
  a->items = topology->list;
  a->count = topology->count;
  return NULL;
}

tt_pjrt_error_t *tt__soft_TopologyDescription_Attributes(tt_pjrt_list_args_t *a) {
  TT_SOFT_CHECK(a, count);
  a->items = NULL;
  a->count = 0;
  return NULL;
}

tt_pjrt_error_t *tt__soft_TopologyDescription_Serialize(tt_pjrt_bytes_args_t *a) {
  TT_SOFT_CHECK(a, deleter);
  char *text = tt_alloc(32);
  if (!text) return tt__soft_error(TT_ERROR(OUT_OF_MEMORY, "no host memory for a topology"));
  int size =
      snprintf(text, 32, TT_SOFT_PLATFORM ":%u", ((const tt_soft_topology_t *)a->self)->count);
  a->bytes = text;
  a->size = (size_t)size;
  a->owner = text;
  a->deleter = tt_free;
  return NULL;
}

tt_pjrt_error_t *tt__soft_TopologyDescription_Fingerprint(tt_pjrt_size_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = ((const tt_soft_topology_t *)a->self)->count;
  return NULL;
}

tt_pjrt_error_t *tt__soft_TopologyDescription_GetMemorySpaceKindIds(tt_pjrt_list_args_t *a) {
  static const int ids[1] = {0};
  TT_SOFT_CHECK(a, count);
  a->items = ids;
  a->count = 1;
  return NULL;
}

// --- descriptions of devices ---

tt_pjrt_error_t *tt__soft_DeviceDescription_Id(tt_pjrt_int_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = ((const tt_soft_description_t *)a->self)->id;
  return NULL;
}

tt_pjrt_error_t *tt__soft_DeviceDescription_ProcessIndex(tt_pjrt_int_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = 0;
  return NULL;
}

tt_pjrt_error_t *tt__soft_DeviceDescription_Attributes(tt_pjrt_count_args_t *a) {
  TT_SOFT_CHECK(a, items);
  a->items = ((const tt_soft_description_t *)a->self)->attributes;
  a->count = 2;
  return NULL;
}

tt_pjrt_error_t *tt__soft_DeviceDescription_Kind(tt_pjrt_text_args_t *a) {
  return tt__soft_answer(a, "Software TPU");
}

tt_pjrt_error_t *tt__soft_DeviceDescription_DebugString(tt_pjrt_text_args_t *a) {
  TT_SOFT_CHECK(a, size);
  return tt__soft_answer(a, ((const tt_soft_description_t *)a->self)->text);
}

tt_pjrt_error_t *tt__soft_DeviceDescription_ToString(tt_pjrt_text_args_t *a) {
  return tt__soft_DeviceDescription_DebugString(a);
}
