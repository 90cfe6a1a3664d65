// Which plugin the process uses: TORCHTPU_PLUGIN, else libtpu where the PCI bus shows a TPU, else
// the software TPU.
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eager/internal.h"

// PCI devices of Google's vendor number 0x1ae0 that are TPUs (v2/v3, v4, v5p, v5e, v6e, 7x).
static const char *const tpu_ids[] = {"0x0027", "0x0056", "0x005e", "0x0062",
                                      "0x0063", "0x006f", "0x0076"};

// Does the device's attribute file hold `text`?
static bool attribute_is(const char *device, const char *attribute, const char *text) {
  char path[512], line[16];
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", device, attribute);
  FILE *file = fopen(path, "r");
  if (!file) return false;
  bool same = fgets(line, sizeof line, file) && strncmp(line, text, strlen(text)) == 0;
  fclose(file);
  return same;
}

static bool is_tpu(const char *device) {
  if (!attribute_is(device, "vendor", "0x1ae0")) return false;
  for (size_t i = 0; i < sizeof tpu_ids / sizeof *tpu_ids; i++) {
    if (attribute_is(device, "device", tpu_ids[i])) return true;
  }
  return false;
}

static bool find_tpu(void) {
  DIR *bus = opendir("/sys/bus/pci/devices");
  bool found = false;
  if (!bus) return false;
  for (struct dirent *e; !found && (e = readdir(bus));) found = is_tpu(e->d_name);
  closedir(bus);
  return found;
}

// Looked for once: PyTorch asks for devices at each op on fake tensors.
static bool has_tpu(void) {
  static _Atomic int known;  // 0: not yet, 1: none, 2: there is one
  if (!atomic_load(&known)) atomic_store(&known, find_tpu() ? 2 : 1);
  return atomic_load(&known) == 2;
}

const char *tt__plugin(void) {
  const char *plugin = getenv("TORCHTPU_PLUGIN");
  if (plugin && *plugin) return plugin;
  return has_tpu() ? "libtpu" : "soft";
}
