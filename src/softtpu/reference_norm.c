// batch_norm_*: per feature, in f64, rounded once.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

// The operand as [outer][features][inner]; per-feature vectors and the operand are widened.
typedef struct norm_s {
  int64_t outer, features, inner, count;
  double epsilon;
  double *wide[5];  // operands
  double *out[3];   // results
} norm_t;

// After a failure norm_finish frees what there is.
static tt_status_t norm_init(const tt__ref_call_t *call, norm_t *n) {
  const tt_type_t *in = tt__ref_in(call, 0);
  int64_t feature = tt_node_int(call->node, TT_ATTR_FEATURE_INDEX, 0);
  const tt_attr_t *epsilon = tt_node_attr(call->node, TT_ATTR_EPSILON);
  n->epsilon = epsilon ? epsilon->u.f : 0;
  n->outer = n->inner = 1;
  for (int64_t d = 0; d < (int64_t)in->rank; d++) {
    if (d < feature) n->outer *= in->dims[d];
    if (d > feature) n->inner *= in->dims[d];
  }
  n->features = in->dims[feature];
  n->count = n->outer * n->inner;
  if (!tt_dtype_is_float(in->dtype)) {
    return tt__ref_unimplemented(call->graph, call->node, "not defined for this element type");
  }
  for (uint32_t i = 0; i < call->node->operand_count; i++) {
    int64_t count = tt_type_elements(tt__ref_in(call, i));
    n->wide[i] = (double *)tt_alloc(sizeof(double) * ((size_t)count + 1));
    if (!n->wide[i]) return tt__ref_no_memory(call->node);
    tt_element_load(tt__ref_in(call, i)->dtype, call->operands[i], count, n->wide[i]);
  }
  for (uint32_t i = 0; i < call->node->result_count; i++) {
    int64_t count = tt_type_elements(tt__ref_out(call, i));
    n->out[i] = (double *)tt_alloc(sizeof(double) * ((size_t)count + 1));
    if (!n->out[i]) return tt__ref_no_memory(call->node);
  }
  return TT_OK_STATUS;
}

static void norm_finish(const tt__ref_call_t *call, norm_t *n, bool ok) {
  for (uint32_t i = 0; ok && i < call->node->result_count; i++) {
    const tt_type_t *type = tt__ref_out(call, i);
    tt_element_store(type->dtype, n->out[i], tt_type_elements(type), call->results[i]);
  }
  for (size_t i = 0; i < 5; i++) tt_free(n->wide[i]);
  for (size_t i = 0; i < 3; i++) tt_free(n->out[i]);
}

// The position of element i (of count) of a feature.
static int64_t at(const norm_t *n, int64_t feature, int64_t i) {
  return (i / n->inner * n->features + feature) * n->inner + i % n->inner;
}

// (x - mean) / sqrt(variance + epsilon) * scale + offset
static void normalize(norm_t *n, int64_t f, double mean, double variance, double scale,
                      double offset) {
  double deviation = sqrt(variance + n->epsilon);
  for (int64_t i = 0; i < n->count; i++) {
    int64_t p = at(n, f, i);
    n->out[0][p] = (n->wide[0][p] - mean) / deviation * scale + offset;
  }
}

tt_status_t tt__ref_batch_norm_inference(const tt__ref_call_t *call) {
  norm_t n = {0};
  tt_status_t status = norm_init(call, &n);
  for (int64_t f = 0; !status && f < n.features; f++) {
    normalize(&n, f, n.wide[3][f], n.wide[4][f], n.wide[1][f], n.wide[2][f]);
  }
  norm_finish(call, &n, !status);
  return status;
}

// The variance is the biased one, over centred values: two passes, which do not cancel.
tt_status_t tt__ref_batch_norm_training(const tt__ref_call_t *call) {
  norm_t n = {0};
  tt_status_t status = norm_init(call, &n);
  for (int64_t f = 0; !status && f < n.features; f++) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n.count; i++) mean += n.wide[0][at(&n, f, i)];
    mean /= (double)n.count;
    for (int64_t i = 0; i < n.count; i++) {
      double centered = n.wide[0][at(&n, f, i)] - mean;
      variance += centered * centered;
    }
    variance /= (double)n.count;
    n.out[1][f] = mean;
    n.out[2][f] = variance;
    normalize(&n, f, mean, variance, n.wide[1][f], n.wide[2][f]);
  }
  norm_finish(call, &n, !status);
  return status;
}

// With g the gradient, c = x - mean: grad_offset = sum g, grad_scale = sum g c / deviation, grad_x
// = scale / (deviation count) (count g - sum g - c sum(g c) / variance).
tt_status_t tt__ref_batch_norm_grad(const tt__ref_call_t *call) {
  norm_t n = {0};
  tt_status_t status = norm_init(call, &n);
  for (int64_t f = 0; !status && f < n.features; f++) {
    double scale = n.wide[1][f], mean = n.wide[2][f], variance = n.wide[3][f] + n.epsilon;
    double deviation = sqrt(variance), count = (double)n.count, sum = 0, product = 0;
    for (int64_t i = 0; i < n.count; i++) {
      int64_t p = at(&n, f, i);
      sum += n.wide[4][p];
      product += n.wide[4][p] * (n.wide[0][p] - mean);
    }
    for (int64_t i = 0; i < n.count; i++) {
      int64_t p = at(&n, f, i);
      double centered = (n.wide[0][p] - mean) * product / variance;
      n.out[0][p] = scale / deviation / count * (n.wide[4][p] * count - sum - centered);
    }
    n.out[1][f] = product / deviation;
    n.out[2][f] = sum;
  }
  norm_finish(call, &n, !status);
  return status;
}
