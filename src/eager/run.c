#include "eager/internal.h"

static tt_status_t explain_memory(int device, const char *name, tt_status_t status) {
  tt_memory_stats_t m;
  tt_status_t unknown = tt_client_memory_stats(tt__engine.client, (uint32_t)device, &m);
  if (unknown) {
    tt_status_release(unknown);
    return tt_status_annotate(status, "%s on tpu:%d", name, device);
  }
  return tt_status_annotate(
      status, "%s: tpu:%d has %.2f MiB in use of %.2f MiB (largest allocation %.2f MiB)", name,
      device, (double)m.bytes_in_use / 1048576, (double)m.bytes_limit / 1048576,
      (double)m.largest_allocation / 1048576);
}

tt_status_t tt__run(int device, tt_executable_t *executable, const tt_input_t *inputs,
                    uint32_t input_count, tt_buffer_t **out_buffers, const char *name) {
  tt_status_t s =
      tt_executable_execute(executable, (uint32_t)device, inputs, input_count, out_buffers);
  tt__engine.stats.ops_submitted++;
  if (__builtin_expect(!s, 1)) return s;
  if (tt_status_code(s) != TT_OUT_OF_MEMORY) return tt_status_annotate(s, "%s", name);
  // Memory of work under way comes back when that is done.
  tt_status_t waited = tt_client_synchronize(tt__engine.client, (uint32_t)device);
  tt_status_release(waited);
  tt_status_release(s);
  s = tt_executable_execute(executable, (uint32_t)device, inputs, input_count, out_buffers);
  if (!s) return s;
  return tt_status_code(s) == TT_OUT_OF_MEMORY ? explain_memory(device, name, s)
                                               : tt_status_annotate(s, "%s", name);
}
