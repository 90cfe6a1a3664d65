// Plans a convolution: canonical form, operands as strides or packed.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/conv_internal.h"

// The operand's origin, packed first where it has to be.
static const char *operand(const tt__step_t *s, const tt__run_t *run, const tt__conv_side_t *side,
                           tt_dtype_t dtype, char *const *in) {
  if (!side->pack) return in[side->read] + side->offset * (int64_t)tt_dtype_size(dtype);
  char *to = tt__at(run, s->scratch) + side->scratch;
  tt__tile_run(side->pack, run, in, &to);
  return to;
}

static tt_status_t run_conv(const tt__step_t *s, const tt__run_t *run) {
  const tt__conv_t *c = s->data;
  char *in[TT__TILE_LEAVES * 2], *out = tt__at(run, s->out[0]);
  for (uint32_t r = 0; r < s->read_count; r++) in[r] = tt__at(run, s->in[r]);
  const char *x = operand(s, run, &c->x, c->in, in), *w = operand(s, run, &c->w, c->in, in);
  if (tt__conv_library(c, x, w, out)) return TT_OK_STATUS;
  return tt__conv_im2col(run, c, x, w, out);
}

// --- planning ----------------------------------------------------------------------------------

// Dimension numbers of the three tensors.
typedef struct numbers_s {
  int64_t x_batch, x_feature, w_in, w_out, y_batch, y_feature;
  const int64_t *x_spatial, *w_spatial, *y_spatial;
} numbers_t;

static numbers_t read_numbers(const tt_node_t *n) {
  uint32_t count;
  return (numbers_t){
      .x_batch = tt_node_int(n, TT_ATTR_INPUT_BATCH_DIMENSION, 0),
      .x_feature = tt_node_int(n, TT_ATTR_INPUT_FEATURE_DIMENSION, 1),
      .w_in = tt_node_int(n, TT_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, 1),
      .w_out = tt_node_int(n, TT_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION, 0),
      .y_batch = tt_node_int(n, TT_ATTR_OUTPUT_BATCH_DIMENSION, 0),
      .y_feature = tt_node_int(n, TT_ATTR_OUTPUT_FEATURE_DIMENSION, 1),
      .x_spatial = tt_node_ints(n, TT_ATTR_INPUT_SPATIAL_DIMENSIONS, &count),
      .w_spatial = tt_node_ints(n, TT_ATTR_KERNEL_SPATIAL_DIMENSIONS, &count),
      .y_spatial = tt_node_ints(n, TT_ATTR_OUTPUT_SPATIAL_DIMENSIONS, &count),
  };
}

// Batch groups are groups, too: of images on the input's side instead of features.
static void describe(const tt__planner_t *p, const tt_node_t *n, const numbers_t *d,
                     tt__conv_t *c) {
  const tt_type_t *x = tt_graph_type(p->graph, n->operands[0]);
  const tt_type_t *w = tt_graph_type(p->graph, n->operands[1]);
  const tt_type_t *y = tt_graph_type(p->graph, n->first_result);
  int64_t feature_groups = tt_node_int(n, TT_ATTR_FEATURE_GROUP_COUNT, 1);
  int64_t batch_groups = tt_node_int(n, TT_ATTR_BATCH_GROUP_COUNT, 1);
  c->in = x->dtype;
  c->out = y->dtype;
  c->rank = x->rank - 2;
  c->batch_groups = batch_groups > 1;
  c->groups = c->batch_groups ? batch_groups : feature_groups;
  c->batch = x->dims[d->x_batch] / batch_groups;
  c->features = w->dims[d->w_in];
  c->outputs = w->dims[d->w_out] / c->groups;
  int64_t y_strides[TT__TILE_RANK], stride = 1;
  for (uint32_t k = y->rank; k-- > 0; stride *= y->dims[k]) y_strides[k] = stride;
  for (uint32_t i = 0; i < c->rank; i++) {
    c->size[i] = x->dims[d->x_spatial[i]];
    c->kernel[i] = w->dims[d->w_spatial[i]];
    c->result[i] = y->dims[d->y_spatial[i]];
    c->stride[i] = tt_node_entry(n, TT_ATTR_WINDOW_STRIDES, i, 1);
    c->padding[i] = tt_node_entry(n, TT_ATTR_PADDING, 2 * i, 0);
    c->padding_high[i] = tt_node_entry(n, TT_ATTR_PADDING, 2 * i + 1, 0);
    c->base_dilation[i] = tt_node_entry(n, TT_ATTR_LHS_DILATION, i, 1);
    c->dilation[i] = tt_node_entry(n, TT_ATTR_RHS_DILATION, i, 1);
    c->reversed[i] = tt_node_entry(n, TT_ATTR_WINDOW_REVERSAL, i, 0) != 0;
    c->out_spatial[i] = y_strides[d->y_spatial[i]];
  }
  c->out_batch = y_strides[d->y_batch];
  c->out_feature = y_strides[d->y_feature];
}

// The operand over [group, major, feature, spatial...]; the group counts in units of `extent` along
// dimension `grouped`.
typedef struct layout_s {
  int64_t grouped, major, feature;
  const int64_t *spatial;
  int64_t groups, extents[2];
} layout_t;

// The grouped dimension is cut in two: group * extent + position within the group.
static void lay_out(const tt_type_t *type, const layout_t *l, uint32_t spatial,
                    tt__tile_spec_t *spec, tt__view_t *view) {
  view->rank = type->rank;
  spec->extents[0] = l->groups;
  spec->extents[1] = l->extents[0];
  spec->extents[2] = l->extents[1];
  view->coef[l->grouped][0] = l->grouped == l->major ? l->extents[0] : l->extents[1];
  view->coef[l->major][1] = 1;
  view->coef[l->feature][2] = 1;
  for (uint32_t i = 0; i < spatial; i++) {
    spec->extents[3 + i] = type->dims[l->spatial[i]];
    view->coef[l->spatial[i]][3 + i] = 1;
  }
  spec->rank = 3 + spatial;
}

// Built twice at most: into a register first, which tells whether the operand is plain strided
// memory; only if it is not, as a program that packs it densely. `reads` is shared by both sides.
static tt_status_t plan_side(tt__planner_t *p, tt_value_t v, const layout_t *l, uint32_t spatial,
                             tt__tile_spec_t *reads, tt__conv_side_t *side, size_t *scratch) {
  const tt_type_t *type = tt_graph_type(p->graph, v);
  uint16_t reg;
  bool splat;
  tt__tile_root_t root = {.value = v, .into_register = true};
  tt__tile_spec_t spec = {.roots = &root,
                          .root_count = 1,
                          .out_regs = &reg,
                          .out_splats = &splat,
                          .reads = reads->reads,
                          .read_count = reads->read_count,
                          .read_capacity = reads->read_capacity};
  lay_out(type, l, spatial, &spec, &root.view);
  tt__tile_t *tile;
  tt_status_t status = tt__plan_tile(p, &spec, v, &tile);
  int64_t *strides = spec.plain_strides, dense[TT__TILE_DIMS], stride = 1;
  if (!status && !p->restart && !spec.plain) {
    for (uint32_t d = spec.rank; d-- > 0; stride *= spec.extents[d]) dense[d] = stride;
    memcpy(root.strides, dense, sizeof dense);
    root.into_register = false;
    status = tt__plan_tile(p, &spec, v, &side->pack);
    side->scratch = *scratch;
    *scratch += tt_align_up(tt_type_bytes(type), 64);
    strides = dense;
  }
  side->read = spec.plain_read;
  side->offset = side->pack ? 0 : spec.plain_offset;
  side->group = strides[0];
  side->major = strides[1];
  side->feature = strides[2];
  for (uint32_t i = 0; i < spatial; i++) side->spatial[i] = strides[3 + i];
  reads->reads = spec.reads;
  reads->read_count = spec.read_count;
  reads->read_capacity = spec.read_capacity;
  return status;
}

// Floats, of at most TT__CONV_SPATIAL spatial dimensions, nothing empty.
bool tt__conv_fits(const tt__planner_t *p, const tt_node_t *n) {
  if (n->op != TT_OP_CONVOLUTION) return false;
  const tt_type_t *x = tt_graph_type(p->graph, n->operands[0]);
  const tt_type_t *w = tt_graph_type(p->graph, n->operands[1]);
  const tt_type_t *y = tt_graph_type(p->graph, n->first_result);
  bool wide = x->dtype == TT_F64 ? y->dtype == TT_F64 : y->dtype == x->dtype || y->dtype == TT_F32;
  return tt_dtype_is_float(x->dtype) && x->dtype == w->dtype && wide && x->rank >= 2 &&
         x->rank - 2 <= TT__CONV_SPATIAL && tt_type_elements(x) > 0 && tt_type_elements(w) > 0 &&
         tt_type_elements(y) > 0;
}

static tt_status_t plan_sides(tt__planner_t *p, const tt_node_t *n, tt__conv_t *c,
                              tt__tile_spec_t *reads, size_t *scratch) {
  numbers_t d = read_numbers(n);
  describe(p, n, &d, c);
  layout_t x = {c->batch_groups ? d.x_batch : d.x_feature,
                d.x_batch,
                d.x_feature,
                d.x_spatial,
                c->groups,
                {c->batch, c->features}};
  layout_t w = {d.w_out, d.w_out, d.w_in, d.w_spatial, c->groups, {c->outputs, c->features}};
  TT_RETURN_IF_ERROR(plan_side(p, n->operands[0], &x, c->rank, reads, &c->x, scratch));
  if (p->restart) return TT_OK_STATUS;
  return plan_side(p, n->operands[1], &w, c->rank, reads, &c->w, scratch);
}

tt_status_t tt__conv_step(tt__planner_t *p, const tt_node_t *n, tt__step_t **out_step) {
  if (!tt__conv_fits(p, n)) return TT_OK_STATUS;
  tt__conv_t *c = tt_arena_zeroed(p->arena, sizeof *c);
  if (!c) return tt__plan_no_memory();
  tt__tile_spec_t reads = {.rank = 0};
  size_t scratch = 0;
  tt_status_t status = plan_sides(p, n, c, &reads, &scratch);
  if (!status && !p->restart)
    status = tt__plan_data_step(p, run_conv, "convolution", n, reads.reads, reads.read_count, c,
                                out_step);
  if (!status && !p->restart) {
    (*out_step)->scratch_bytes = scratch;
    (*out_step)->cost = tt__conv_cost(c);
  }
  tt_free(reads.reads);
  return status;
}
