// A shared library for tests in Python (ctypes): parses StableHLO text and runs it on the reference
// executor. Failures return false with the message in `error`.
#include <stdio.h>
#include <string.h>

#include "ir/graph.h"
#include "softtpu/reference.h"

#define EXPORT __attribute__((visibility("default")))

static bool settle(tt_status_t status, char *error, size_t size) {
  if (!status) return true;
  snprintf(error, size, "%s: %s", tt_code_name(tt_status_code(status)), tt_status_message(status));
  tt_status_release(status);
  return false;
}

EXPORT bool tt_run_parse(const char *text, size_t text_size, tt_graph_t **out_graph, char *error,
                         size_t size);
EXPORT void tt_run_destroy(tt_graph_t *graph);
EXPORT bool tt_run_signature(const tt_graph_t *graph, char *out, size_t size);
EXPORT bool tt_run_execute(const tt_graph_t *graph, uint32_t device_count,
                           const void *const *const *inputs, void *const *const *outputs,
                           char *error, size_t size);

bool tt_run_parse(const char *text, size_t text_size, tt_graph_t **out_graph, char *error,
                  size_t size) {
  return settle(tt_graph_parse(text, text_size, out_graph), error, size);
}

void tt_run_destroy(tt_graph_t *graph) { tt_graph_destroy(graph); }

// Writes "argument types separated by ';' | result types".
bool tt_run_signature(const tt_graph_t *graph, char *out, size_t size) {
  size_t used = 0;
  const tt_block_t *main = graph->main;
  for (uint32_t i = 0; i < main->arg_count + main->return_count; i++) {
    tt_value_t value = i < main->arg_count ? main->args[i] : main->returns[i - main->arg_count];
    const char *lead = i == main->arg_count ? "|" : i ? ";" : "";
    used += (size_t)snprintf(out + used, size - used, "%s", lead);
    if (used + 128 > size) return false;
    used += (size_t)tt_type_format(tt_graph_type(graph, value), out + used, size - used);
    if (used + 128 > size) return false;
  }
  if (main->return_count == 0) snprintf(out + used, size - used, "|");
  return true;
}

bool tt_run_execute(const tt_graph_t *graph, uint32_t device_count,
                    const void *const *const *inputs, void *const *const *outputs, char *error,
                    size_t size) {
  tt_status_t status = device_count == 1
                           ? tt_reference_run(graph, inputs[0], outputs[0])
                           : tt_reference_run_replicas(graph, device_count, inputs, outputs);
  return settle(status, error, size);
}
