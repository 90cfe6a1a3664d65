#define _GNU_SOURCE

#include "pjrt/aot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

// --- the topology --------------------------------------------------------------------------------

// A host of a TPU holds 2x2x1 chips unless told: a smaller slice must say so.
static bool host_bounds(const char *topology, int64_t bounds[3]) {
  const int64_t usual[3] = {2, 2, 1};
  const char *at = strrchr(topology, ':');
  bool smaller = false;
  bounds[0] = bounds[1] = bounds[2] = 1;
  if (!at) return false;
  at++;
  for (int i = 0; i < 3 && *at; i++) {
    char *end;
    int64_t dim = strtoll(at, &end, 10);
    if (end == at || dim < 1) return false;
    bounds[i] = dim < usual[i] ? dim : usual[i];
    smaller = smaller || dim < usual[i];
    at = *end == 'x' ? end + 1 : end;
  }
  return smaller;
}

static tt_status_t make_topology(const tt_plugin_t *plugin, const char *name, void **out_topology) {
  int64_t bounds[3];
  tt_pjrt_value_t option = {.struct_size = sizeof option,
                            .name = "chips_per_host_bounds",
                            .name_size = 21,
                            .kind = TT_PJRT_VALUE_INTS,
                            .u.ints = bounds,
                            .count = 3};
  TT_PJRT_ARGS(tt_pjrt_topology_create_args_t, args, .name = name, .name_size = strlen(name));
  if (host_bounds(name, bounds)) {
    args.options = &option;
    args.option_count = 1;
  }
  tt_status_t status = TT_CALL(plugin, TopologyDescription_Create, &args);
  *out_topology = args.topology;
  return tt_status_annotate(status, "the topology %s", name);
}

static void copy_text(char *target, size_t size, const char *text, size_t length) {
  size_t n = length < size - 1 ? length : size - 1;
  const char *line = memchr(text, '\n', n);
  if (line) n = (size_t)(line - text);
  memcpy(target, text, n);
  target[n] = 0;
}

static tt_status_t describe_topology(const tt_plugin_t *plugin, void *topology,
                                     tt_aot_report_t *report) {
  TT_PJRT_ARGS(tt_pjrt_list_args_t, list, .self = topology);
  TT_RETURN_IF_ERROR(TT_CALL(plugin, TopologyDescription_GetDeviceDescriptions, &list));
  report->device_count = (uint32_t)list.count;
  if (list.count) {
    TT_PJRT_ARGS(tt_pjrt_text_args_t, kind, .self = ((void *const *)list.items)[0]);
    TT_RETURN_IF_ERROR(TT_CALL(plugin, DeviceDescription_Kind, &kind));
    copy_text(report->kind, sizeof report->kind, kind.text, kind.size);
  }
  TT_PJRT_ARGS(tt_pjrt_text_args_t, version, .self = topology);
  TT_RETURN_IF_ERROR(TT_CALL(plugin, TopologyDescription_PlatformVersion, &version));
  copy_text(report->version, sizeof report->version, version.text, version.size);
  return TT_OK_STATUS;
}

// --- the report ----------------------------------------------------------------------------------
static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void read_memory(const tt_plugin_t *plugin, void *executable, tt_aot_report_t *report) {
  TT_PJRT_ARGS(tt_pjrt_compiled_memory_args_t, args, .self = executable, .peak = TT_AOT_UNKNOWN,
               .total = TT_AOT_UNKNOWN);
  tt_status_t status = TT_CALL(plugin, Executable_GetCompiledMemoryStats, &args);
  if (!status) {
    report->code = args.code;
    report->argument = args.argument;
    report->output = args.output;
    report->alias = args.alias;
    report->temp = args.temp;
    report->peak = args.peak;
    report->total = args.total;
  }
  tt_status_release(status);
}

static void read_costs(const tt_plugin_t *plugin, void *executable, tt_aot_report_t *report) {
  const struct {
    const char *name;
    double *value;
  } wanted[] = {
      {"flops", &report->flops},
      {"transcendentals", &report->transcendentals},
      {"bytes accessed", &report->bytes_accessed},
      {"optimal_seconds", &report->optimal_seconds},
  };
  TT_PJRT_ARGS(tt_pjrt_count_args_t, args, .self = executable);
  tt_status_t status = TT_CALL(plugin, Executable_GetCostAnalysis, &args);
  const tt_pjrt_value_t *values = args.items;
  for (size_t i = 0; i < args.count && !status; i++) {
    for (size_t w = 0; w < sizeof wanted / sizeof *wanted; w++) {
      if (values[i].name_size == strlen(wanted[w].name) &&
          memcmp(values[i].name, wanted[w].name, values[i].name_size) == 0 &&
          values[i].kind == TT_PJRT_VALUE_FLOAT) {
        *wanted[w].value = (double)values[i].u.f;
      }
    }
  }
  tt_status_release(status);
}

// The optimised program is a protocol buffer whose instructions carry JSON texts; the estimates are
// read from those, wherever they stand.
static void sum_cycles(const char *code, size_t size, tt_aot_report_t *report) {
  static const char key[] = "\"estimated_cycles\":";
  const char *at = code, *end = code + size;
  while ((at = memmem(at, (size_t)(end - at), key, sizeof key - 1))) {
    at += sizeof key - 1;
    int64_t value = 0;
    bool any = false;
    while (at < end && (*at == '"' || *at == ' ')) at++;
    for (; at < end && *at >= '0' && *at <= '9'; at++, any = true) {
      value = value > INT64_MAX / 10 - 9 ? INT64_MAX / 10 - 9 : value * 10 + (*at - '0');
    }
    // INT64_MAX stands for "no estimate" in some fusions; no fusion takes weeks.
    if (!any || value < 0 || value > INT64_C(1) << 50) continue;
    report->estimated_cycles += value;
    report->cycle_op_count++;
  }
}

static tt_status_t write_file(const char *path, const char *data, size_t size) {
  FILE *file = fopen(path, "wb");
  bool ok = file && fwrite(data, 1, size, file) == size;
  if (file && fclose(file) != 0) ok = false;
  return ok ? TT_OK_STATUS : TT_ERROR(INVALID_ARGUMENT, "cannot write the file %s", path);
}

// The estimates, and the whole program into the file that was asked for.
static tt_status_t read_program(const tt_plugin_t *plugin, void *executable, const char *path,
                                tt_aot_report_t *report) {
  tt_pjrt_program_t program = {.struct_size = sizeof program};
  TT_PJRT_ARGS(tt_pjrt_get_args_t, args, .self = executable, .result = &program);
  tt_status_t status = TT_CALL(plugin, Executable_OptimizedProgram, &args);
  if (!status && program.code_size > 0) {
    program.code = tt_alloc(program.code_size);
    if (program.code) status = TT_CALL(plugin, Executable_OptimizedProgram, &args);
    bool have = program.code && !status;
    if (have) sum_cycles(program.code, program.code_size, report);
    tt_status_t written = have && path ? write_file(path, program.code, program.code_size) : NULL;
    tt_free(program.code);
    if (written) return written;
  }
  tt_status_release(status);
  return TT_OK_STATUS;
}

static void read_fingerprint(const tt_plugin_t *plugin, void *executable, tt_aot_report_t *report) {
  TT_PJRT_ARGS(tt_pjrt_text_args_t, args, .self = executable);
  tt_status_t status = TT_CALL(plugin, Executable_Fingerprint, &args);
  for (size_t i = 0; i < args.size && i < 32 && !status; i++) {
    snprintf(report->fingerprint + 2 * i, 3, "%02x", (unsigned)(unsigned char)args.text[i]);
  }
  tt_status_release(status);
}

static tt_status_t compile(const tt_plugin_t *plugin, void *topology,
                           const tt_aot_request_t *request, tt_aot_report_t *report) {
  tt_compile_options_t options = {
      .replica_count = request->replica_count,
      .partition_count = request->partition_count,
      .spmd = request->spmd,
      .shardy = request->shardy,
      .optimization_level = request->optimization_level,
      .names = request->names,
      .values = request->values,
      .override_count = request->override_count,
  };
  char *bytes;
  size_t bytes_size;
  TT_RETURN_IF_ERROR(tt__options_encode(&options, &bytes, &bytes_size));
  tt_pjrt_program_t program = {.struct_size = sizeof program,
                               .code = (char *)(uintptr_t)request->text,
                               .code_size = request->size,
                               .format = "mlir",
                               .format_size = 4};
  TT_PJRT_ARGS(tt_pjrt_compile_args_t, args, .topology = topology, .program = &program,
               .options = bytes, .options_size = bytes_size);
  double start = seconds();
  tt_status_t status = TT_CALL(plugin, Compile, &args);
  report->compile_seconds = seconds() - start;
  tt_free(bytes);
  if (status) return status;
  read_memory(plugin, args.executable, report);
  read_costs(plugin, args.executable, report);
  read_fingerprint(plugin, args.executable, report);
  status = read_program(plugin, args.executable, request->optimized, report);
  TT_PJRT_ARGS(tt_pjrt_ref_args_t, destroy, .self = args.executable);
  tt__plugin_ignore(plugin, plugin->api->Executable_Destroy(&destroy));
  return status;
}

tt_status_t tt_aot_compile(const tt_aot_request_t *request, tt_aot_report_t *out_report) {
  memset(out_report, 0, sizeof *out_report);
  out_report->code = out_report->argument = out_report->output = TT_AOT_UNKNOWN;
  out_report->alias = out_report->temp = TT_AOT_UNKNOWN;
  out_report->peak = out_report->total = TT_AOT_UNKNOWN;
  out_report->flops = out_report->transcendentals = TT_AOT_UNKNOWN;
  out_report->bytes_accessed = out_report->optimal_seconds = TT_AOT_UNKNOWN;
  const tt_plugin_t *plugin;
  TT_RETURN_IF_ERROR(tt__plugin_load(request->plugin, &plugin));
  void *topology;
  TT_RETURN_IF_ERROR(make_topology(plugin, request->topology, &topology));
  tt_status_t status = describe_topology(plugin, topology, out_report);
  if (!status) status = compile(plugin, topology, request, out_report);
  TT_PJRT_ARGS(tt_pjrt_ref_args_t, destroy, .self = topology);
  tt__plugin_ignore(plugin, plugin->api->TopologyDescription_Destroy(&destroy));
  return status;
}
