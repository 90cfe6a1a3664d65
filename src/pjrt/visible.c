#include "pjrt/visible.h"

#include <stdlib.h>
#include <string.h>

static void add(uint32_t ordinal, uint32_t *ordinals, uint32_t *count) {
  for (uint32_t i = 0; i < *count; i++) {
    if (ordinals[i] == ordinal) return;
  }
  ordinals[(*count)++] = ordinal;
}

tt_status_t tt_visible_devices(uint32_t available, uint32_t *out_ordinals, uint32_t *out_count) {
  const char *text = getenv("XRT_TPU_CONFIG");
  *out_count = 0;
  if (!text || !*text) {
    for (uint32_t i = 0; i < available; i++) add(i, out_ordinals, out_count);
    return TT_OK_STATUS;
  }
  const char *at = strchr(text, ':');
  do {
    char *end = NULL;
    unsigned long ordinal = at ? strtoul(at + 1, &end, 10) : 0;
    if (!at || end == at + 1 || (*end && *end != ';')) {
      return TT_ERROR(VALUE, "XRT_TPU_CONFIG is \"%s\"; expected NAME:ORDINAL[;ORDINAL...]", text);
    }
    if (ordinal >= available) {
      return TT_ERROR(VALUE, "XRT_TPU_CONFIG is \"%s\"; there is no device %lu among %u", text,
                      ordinal, available);
    }
    add((uint32_t)ordinal, out_ordinals, out_count);
    at = end;
  } while (*at == ';');
  return TT_OK_STATUS;
}
