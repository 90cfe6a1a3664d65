// Ops with results that depend on data: TT_ATEN_HOST.
#include "eager/internal.h"

tt_status_t tt__host_call(const tt_call_t *call, tt_outs_t *outs) {
  outs->count = 0;
  outs->items = outs->inline_items;
  return TT_ERROR(UNIMPLEMENTED, "lower: %s", tt__call_name(call));
}
