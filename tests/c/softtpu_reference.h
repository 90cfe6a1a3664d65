// Helpers of the reference executor's tests: one op or one program in, values out.
#ifndef TT_TESTS_SOFTTPU_REFERENCE_H_
#define TT_TESTS_SOFTTPU_REFERENCE_H_

#include <stdlib.h>
#include <string.h>

#include "ir/graph.h"
#include "softtpu/reference.h"
#include "test.h"

#define SCALAR(dtype) ((tt_type_t){dtype, 0, NULL})
#define VECTOR(dtype, n) ((tt_type_t){dtype, 1, (const int64_t[]){n}})

// Runs a one-node program. `results` may be NULL where the op derives its types.
static inline tt_status_t run_op(tt_op_t op, const tt_attr_t *attrs, uint32_t attr_count,
                                 const tt_type_t *types, uint32_t count, const void *const *in,
                                 const tt_type_t *results, uint32_t result_count,
                                 void *const *out) {
  tt_graph_t *graph = NULL;
  tt_value_t operands[8], first = 0, returns[4];
  TT_RETURN_IF_ERROR(tt_graph_create("main", &graph));
  tt_status_t status = TT_OK_STATUS;
  for (uint32_t i = 0; !status && i < count; i++) {
    status = tt_graph_argument(graph, graph->main, types[i], &operands[i]);
  }
  tt_node_spec_t spec = {op, operands, count, attrs, attr_count, NULL, 0, results, result_count};
  if (!status) status = tt_graph_append(graph, graph->main, &spec, &first);
  uint32_t n = tt_op_infos[op].results > 0 ? (uint32_t)tt_op_infos[op].results : 1;
  for (uint32_t i = 0; i < n; i++) returns[i] = first + i;
  if (!status) status = tt_graph_return(graph, graph->main, returns, n);
  if (!status) status = tt_reference_run(graph, in, out);
  tt_graph_destroy(graph);
  return status;
}

// Runs a program given as text on `devices` devices.
static inline tt_status_t run_text_on(const char *text, uint32_t devices,
                                      const void *const *const *in, void *const *const *out) {
  tt_graph_t *graph = NULL;
  TT_RETURN_IF_ERROR(tt_graph_parse(text, strlen(text), &graph));
  tt_status_t status = devices == 1 ? tt_reference_run(graph, in[0], out[0])
                                    : tt_reference_run_replicas(graph, devices, in, out);
  tt_graph_destroy(graph);
  return status;
}
static inline tt_status_t run_text(const char *text, const void *const *in, void *const *out) {
  return run_text_on(text, 1, &in, &out);
}

// Bit-for-bit, but any NaN equals any NaN.
static inline bool same_f32(const float *a, const float *b, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (isnan(a[i]) && isnan(b[i])) continue;
    if (memcmp(&a[i], &b[i], sizeof *a) != 0) {
      printf("element %lld is %.9g, expected %.9g\n", (long long)i, (double)a[i], (double)b[i]);
      return false;
    }
  }
  return true;
}
static inline bool near_f64(const double *a, const double *b, int64_t count, double tolerance) {
  for (int64_t i = 0; i < count; i++) {
    if (isnan(a[i]) && isnan(b[i])) continue;
    if (!(a[i] == b[i] || fabs(a[i] - b[i]) <= tolerance * fmax(1, fabs(b[i])))) {
      printf("element %lld is %.17g, expected %.17g\n", (long long)i, a[i], b[i]);
      return false;
    }
  }
  return true;
}
#define SAME(a, b) (memcmp((a), (b), sizeof(b)) == 0)

#endif  // TT_TESTS_SOFTTPU_REFERENCE_H_
