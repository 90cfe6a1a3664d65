// Views of operands: which element of its operand a movement of data shows at an iteration point.
#include <string.h>

#include "softtpu/tile_build.h"

// A stretched dimension is always read at 0.
static void view_broadcast(const tt__build_t *b, const tt_node_t *n, const tt__view_t *v,
                           tt__view_t *out) {
  const tt_type_t *x = tt_graph_type(b->p->graph, n->operands[0]);
  uint32_t count;
  const int64_t *dims = tt_node_ints(n, TT_ATTR_BROADCAST_DIMENSIONS, &count);
  out->rank = x->rank;
  for (uint32_t k = 0; k < x->rank; k++) {
    if (x->dims[k] == 1) continue;
    out->offset[k] = v->offset[dims[k]];
    memcpy(out->coef[k], v->coef[dims[k]], sizeof out->coef[k]);
  }
}

static void view_transpose(const tt_node_t *n, const tt__view_t *v, tt__view_t *out) {
  uint32_t count;
  const int64_t *permutation = tt_node_ints(n, TT_ATTR_PERMUTATION, &count);
  for (uint32_t k = 0; k < v->rank; k++) {
    out->offset[permutation[k]] = v->offset[k];
    memcpy(out->coef[permutation[k]], v->coef[k], sizeof out->coef[k]);
  }
}

// start + stride * i, applied to offset and coefficients.
static void view_slice(const tt_node_t *n, const tt__view_t *v, tt__view_t *out) {
  uint32_t count;
  const int64_t *starts = tt_node_ints(n, TT_ATTR_START_INDICES, &count);
  const int64_t *strides = tt_node_ints(n, TT_ATTR_STRIDES, &count);
  for (uint32_t k = 0; k < v->rank; k++) {
    int64_t stride = strides ? strides[k] : 1;
    out->offset[k] = v->offset[k] * stride + starts[k];
    for (uint32_t d = 0; d < TT__TILE_DIMS; d++) out->coef[k][d] = v->coef[k][d] * stride;
  }
}

static void view_reverse(const tt__build_t *b, const tt_node_t *n, const tt__view_t *v,
                         tt__view_t *out) {
  const tt_type_t *x = tt_graph_type(b->p->graph, n->operands[0]);
  uint32_t count;
  const int64_t *dims = tt_node_ints(n, TT_ATTR_DIMENSIONS, &count);
  *out = *v;
  for (uint32_t i = 0; i < count; i++) {
    int64_t k = dims[i];
    out->offset[k] = x->dims[k] - 1 - v->offset[k];
    for (uint32_t d = 0; d < TT__TILE_DIMS; d++) out->coef[k][d] = -v->coef[k][d];
  }
}

// Cuts iteration dimension d so that its inner part has `inner` points; the build starts again.
static void request_split(tt__build_t *b, uint32_t d, int64_t inner) {
  b->split_dim = (int32_t)d;
  b->split_inner = inner;
}

// The linear position in the result is a sum over iteration dimensions; each must land inside one
// dimension of the operand. False where it does not, perhaps with a split requested.
static bool view_reshape(tt__build_t *b, const tt_node_t *n, const tt__view_t *v, tt__view_t *out) {
  const tt_type_t *x = tt_graph_type(b->p->graph, n->operands[0]);
  const tt_type_t *r = tt_graph_type(b->p->graph, n->first_result);
  out->rank = x->rank;
  if (tt_type_elements(r) == 0) return true;  // nothing is ever read
  int64_t linear[TT__TILE_DIMS] = {0}, offset = 0, stride = 1, strides[TT__TILE_RANK];
  for (uint32_t k = r->rank; k-- > 0; stride *= r->dims[k]) {
    offset += v->offset[k] * stride;
    for (uint32_t d = 0; d < b->rank; d++) linear[d] += v->coef[k][d] * stride;
  }
  stride = 1;
  for (uint32_t k = x->rank; k-- > 0; stride *= x->dims[k]) strides[k] = stride;
  int64_t reach[TT__TILE_RANK];
  for (uint32_t k = 0; k < x->rank; k++) {
    out->offset[k] = offset / strides[k] % x->dims[k];
    reach[k] = out->offset[k];
  }
  for (uint32_t d = 0; d < b->rank; d++) {
    int64_t c = linear[d];
    if (c == 0 || b->extents[d] == 1) continue;
    if (c < 0) return false;
    uint32_t k = 0;
    while (k < x->rank && (strides[k] > c || x->dims[k] == 1)) k++;
    if (k == x->rank || c % strides[k] != 0) return false;
    if (c / strides[k] * (b->extents[d] - 1) >= x->dims[k]) {
      int64_t room = strides[k] * x->dims[k];
      if (room % c == 0 && room / c > 1 && b->extents[d] % (room / c) == 0 &&
          b->rank < TT__TILE_DIMS)
        request_split(b, d, room / c);
      return false;
    }
    out->coef[k][d] += c / strides[k];
    reach[k] += c / strides[k] * (b->extents[d] - 1);
  }
  for (uint32_t k = 0; k < x->rank; k++)
    if (reach[k] >= x->dims[k]) return false;
  return true;
}

// Only a reshape can fail: where its view of the operand would not be affine.
bool tt__tile_view(tt__build_t *b, const tt_node_t *n, const tt__view_t *view, tt__view_t *out) {
  memset(out, 0, sizeof *out);
  out->rank = view->rank;
  switch (n->op) {
    case TT_OP_BROADCAST_IN_DIM:
      view_broadcast(b, n, view, out);
      return true;
    case TT_OP_TRANSPOSE:
      view_transpose(n, view, out);
      return true;
    case TT_OP_SLICE:
      view_slice(n, view, out);
      return true;
    case TT_OP_REVERSE:
      view_reverse(b, n, view, out);
      return true;
    default:
      return view_reshape(b, n, view, out);
  }
}
