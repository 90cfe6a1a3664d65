// Compiling for a TPU that is not there: libtpu takes a program and the name of a topology, and
// says whether it accepts it and what it would cost.
#ifndef TT_PJRT_AOT_H_
#define TT_PJRT_AOT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// All borrowed for the call.
typedef struct tt_aot_request_s {
  const char *plugin;    // as tt_client_create takes it
  const char *topology;  // "v5e:2x2", "v4:2x2x1", "v6e:1x1", "tpu7x:1x1x1", ...
  const char *text;      // StableHLO
  size_t size;
  uint32_t replica_count, partition_count;  // 0: 1
  bool spmd, shardy;
  int32_t optimization_level;  // 0: the compiler's own; 9 is fast and good for acceptance only
  const char *const *names, *const *values;  // the compiler's flags
  uint32_t override_count;
  const char
      *optimized;  // a file to write the compiler's program into (an HloModuleProto), or NULL
} tt_aot_request_t;

#define TT_AOT_UNKNOWN (-1)
// What the compiler said of the program that it accepted.
typedef struct tt_aot_report_s {
  char kind[64];      // of the topology's devices
  char version[256];  // of the plugin, its first line
  uint32_t device_count;
  // Bytes on one device; TT_AOT_UNKNOWN where the plugin does not say.
  int64_t code, argument, output, alias, temp, peak, total;
  // Loop bodies count once. Negative: the plugin has no figure.
  double flops, transcendentals, bytes_accessed, optimal_seconds;
  // The compiler's estimates of its fusions, summed; collectives and custom calls have none.
  int64_t estimated_cycles, cycle_op_count;
  char fingerprint[65];  // hexadecimal
  double compile_seconds;
} tt_aot_report_t;

// Runs in this process, which a program that the compiler does not expect can abort: call it in a
// child (tools/tt_aot.c does). Loads the plugin, so at most one process at a time with libtpu.
tt_status_t tt_aot_compile(const tt_aot_request_t *request,
                           tt_aot_report_t *out_report) TT_MUST_USE;

#endif  // TT_PJRT_AOT_H_
