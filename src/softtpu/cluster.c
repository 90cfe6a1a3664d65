// Decides what is computed where. Elementwise nodes of one shape that feed each other become one
// tile program; views and cheap arithmetic are repeated inside every reader; the rest are steps of
// their own.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference.h"
#include "softtpu/tile.h"

// A set in a union-find forest, while members gather; the root's fields count.
typedef struct cluster_s {
  uint32_t parent, stage, size, id;  // id: from 1 on, unique in the plan
  uint32_t position;
  uint32_t stored;  // members that live in memory
  tt_value_t first;
} cluster_t;

// One attempt at a block.
typedef struct pass_s {
  tt__planner_t *p;
  const tt_block_t *block;
  cluster_t *clusters;
  uint32_t cluster_count;
  tt__step_t **steps;
  uint32_t step_count;
} pass_t;

static bool is_view(const tt_node_t *n) {
  switch (n->op) {
    case TT_OP_BROADCAST_IN_DIM:
    case TT_OP_RESHAPE:
    case TT_OP_TRANSPOSE:
    case TT_OP_REVERSE:
    case TT_OP_SLICE:
    case TT_OP_IOTA:
    case TT_OP_CONSTANT:
    case TT_OP_BITCAST_CONVERT:
      return true;
    default:
      return false;
  }
}

// Same bytes under another type.
static bool is_relabel(const tt__planner_t *p, const tt_node_t *n) {
  if (n->op == TT_OP_OPTIMIZATION_BARRIER || n->op == TT_OP_RESHAPE) return true;
  if (n->op != TT_OP_BITCAST_CONVERT) return false;
  const tt_type_t *x = tt_graph_type(p->graph, n->operands[0]);
  const tt_type_t *y = tt_graph_type(p->graph, n->first_result);
  unsigned narrow = tt_dtype_infos[x->dtype].bits < tt_dtype_infos[y->dtype].bits
                        ? tt_dtype_infos[x->dtype].bits
                        : tt_dtype_infos[y->dtype].bits;
  return narrow >= 8;
}

// What repeating an op costs, in simple operations: 1 where it is one vector instruction.
static uint32_t op_weight(tt_op_t op) {
  switch (op) {
    case TT_OP_ADD:
    case TT_OP_SUBTRACT:
    case TT_OP_MULTIPLY:
    case TT_OP_NEGATE:
    case TT_OP_ABS:
    case TT_OP_CONVERT:
    case TT_OP_COMPARE:
    case TT_OP_SELECT:
    case TT_OP_MAXIMUM:
    case TT_OP_MINIMUM:
    case TT_OP_AND:
    case TT_OP_OR:
    case TT_OP_NOT:
    case TT_OP_XOR:
      return 1;
    default:
      return 8;
  }
}

static int64_t elements(const tt__planner_t *p, tt_value_t v) {
  return tt_type_elements(tt_graph_type(p->graph, v));
}

// Beyond this much arithmetic an expression is worth the memory even for a single reader: programs
// that repeat it would become too large.
enum { INLINE_WEIGHT = 96 };

// Whether repeating an expression in its readers beats keeping its value: always where it is
// evaluated no more often than it has elements, else where the repetitions together cost less than
// about 4 operations, the price of a store and a load.
static bool is_cheap(const tt__planner_t *p, tt_value_t v) {
  const tt__value_t *info = &p->values[v];
  if (info->weight > INLINE_WEIGHT) return false;
  int64_t size = elements(p, v);
  if (info->demand <= size || size <= 1) return true;
  return (int64_t)info->weight * (info->demand / size) <= 4;
}

// The same where an operand is in memory anyway: then only the last steps are repeated, and their
// result never is in memory (an affine scale between a normalisation and two products).
static bool is_cheap_from_memory(const tt__planner_t *p, tt_value_t v) {
  const tt__value_t *info = &p->values[v];
  int64_t size = elements(p, v);
  if (size == 0 || info->demand % size != 0 || info->demand / size > 2) return false;
  return info->tail > 0 && info->tail * (uint32_t)(info->demand / size) <= 4;
}

static void need_stored(tt__planner_t *p, tt_value_t v) { p->values[v].stored = true; }

// A reader asks for `count` elements of v; `via`: not point by point in its own shape.
static void demand(tt__planner_t *p, tt_value_t v, int64_t count, bool via) {
  tt__value_t *info = &p->values[v];
  info->uses++;
  info->demand += count;
  info->via |= via;
}

// Values that the node's regions use from outside; NULL without memory.
static tt_value_t *captures(tt__planner_t *p, const tt_node_t *n, uint32_t *out_count) {
  *out_count = n->region_count ? tt_reference_captures(p->graph, n, NULL, 0) : 0;
  tt_value_t *list = TT_ARENA_ARRAY(&p->scratch, tt_value_t, *out_count + 1);
  // The first count has a value once a use.
  if (list && *out_count) *out_count = tt_reference_captures(p->graph, n, list, *out_count);
  return list;
}

// --- roles, from the last node to the first -----------------------------------------------------

// Readers have been visited: `stored`, `uses`, `demand` and `via` say all that is asked of the
// value. A stored relabelling of something that a tile program would make is made under its new
// type at once where it can be, else it shares its operand's memory.
static void visit_fusible(tt__planner_t *p, const tt_node_t *n) {
  tt_value_t v = n->first_result;
  tt__value_t *info = &p->values[v];
  bool stored = info->stored || info->forced;
  if (!stored && info->uses == 0) {
    info->role = TT__ROLE_NONE;
    return;
  }
  if (is_view(n)) {
    info->role = stored ? TT__ROLE_MEMBER : TT__ROLE_INLINE;
    if (stored && is_relabel(p, n)) {
      const tt_node_t *maker = p->graph->values[n->operands[0]].node;
      bool made_here = !info->forced && maker && tt__tile_fusible(p, maker) &&
                       (maker->op == TT_OP_CONSTANT || maker->op == TT_OP_IOTA ||
                        maker->op == TT_OP_BROADCAST_IN_DIM);
      if (!made_here || maker->parent != n->parent) {
        info->role = TT__ROLE_ALIAS;
        p->values[n->operands[0]].uses++;
        need_stored(p, n->operands[0]);
        return;
      }
    }
  } else if (stored || !info->via || !(is_cheap(p, v) || is_cheap_from_memory(p, v))) {
    info->role = TT__ROLE_MEMBER;
  } else {
    info->role = TT__ROLE_INLINE;
  }
  info->stored = stored;
  bool member = info->role == TT__ROLE_MEMBER;
  int64_t asked = member ? elements(p, v) : info->demand;
  for (uint32_t i = 0; i < n->operand_count; i++) {
    bool twice = false;
    for (uint32_t k = 0; k < i; k++) twice |= n->operands[k] == n->operands[i];
    if (twice) continue;
    bool direct =
        member && !is_view(n) &&
        tt_type_same_shape(tt_graph_type(p->graph, n->operands[i]), tt_graph_type(p->graph, v));
    demand(p, n->operands[i], asked, !direct);
  }
}

// A step of its own: its results are in memory, and its operands too, except where the step
// computes them on the way in.
static tt_status_t visit_other(tt__planner_t *p, const tt_node_t *n) {
  bool live = (tt_op_infos[n->op].traits & TT_TRAIT_SIDE_EFFECT) != 0 || n->region_count != 0;
  for (uint32_t r = 0; r < n->result_count; r++) {
    const tt__value_t *info = &p->values[n->first_result + r];
    live |= info->stored || info->uses != 0;
  }
  for (uint32_t r = 0; r < n->result_count; r++)
    p->values[n->first_result + r].role = live ? TT__ROLE_MEMORY : TT__ROLE_NONE;
  if (!live) return TT_OK_STATUS;
  if (is_relabel(p, n)) {
    for (uint32_t r = 0; r < n->result_count; r++)
      p->values[n->first_result + r].role = TT__ROLE_ALIAS;
  }
  for (uint32_t i = 0; i < n->operand_count; i++) {
    tt_value_t x = n->operands[i];
    if (tt__plan_soft_operand(p, n, i)) {
      demand(p, x, elements(p, x), true);
    } else {
      p->values[x].uses++;
      need_stored(p, x);
    }
  }
  uint32_t count;
  tt_value_t *list = captures(p, n, &count);
  if (!list) return tt__plan_no_memory();
  for (uint32_t i = 0; i < count; i++) {
    p->values[list[i]].uses++;
    need_stored(p, list[i]);
  }
  return TT_OK_STATUS;
}

// Arithmetic since values that probably are in memory: inputs, results of other steps, and what is
// dear and has several readers. 0: none to tell.
static uint32_t tail_weight(const tt__planner_t *p, const tt_node_t *n) {
  if (n->operand_count == 0) return 0;
  uint32_t tail = is_view(n) ? 0 : op_weight((tt_op_t)n->op);
  for (uint32_t i = 0; i < n->operand_count; i++) {
    const tt_value_info_t *x = &p->graph->values[n->operands[i]];
    if (x->block != n->parent || !x->node || !tt__tile_fusible(p, x->node)) continue;
    const tt__value_t *from = &p->values[n->operands[i]];
    if (from->weight > 4 && from->readers > 2) continue;
    tail += from->tail;
  }
  return tail;
}

// Resets what an earlier attempt found; only `forced` is kept. Weights are capped so that a chain
// of thousands of nodes does not overflow.
static void weigh(tt__planner_t *p, const tt_node_t *n, bool fusible) {
  for (uint32_t r = 0; r < n->result_count; r++) {
    tt__value_t *info = &p->values[n->first_result + r];
    bool forced = info->forced;
    uint32_t readers = info->readers;
    *info = (tt__value_t){.forced = forced, .readers = readers, .buffer = TT__NO_BUFFER};
    if (!fusible) continue;
    uint32_t weight = is_view(n) ? 0 : op_weight((tt_op_t)n->op);
    for (uint32_t i = 0; i < n->operand_count; i++)
      if (p->graph->values[n->operands[i]].block == n->parent)
        weight += p->values[n->operands[i]].weight;
    info->weight = forced ? 0 : weight > 10000 ? 10000 : weight;
    info->tail = tail_weight(p, n);
  }
}

static void count_readers(tt__planner_t *p, const tt_block_t *block) {
  for (uint32_t i = 0; i < block->node_count; i++) {
    const tt_node_t *n = block->nodes[i];
    for (uint32_t r = 0; r < n->result_count; r++) p->values[n->first_result + r].readers = 0;
    for (uint32_t k = 0; k < n->operand_count; k++) p->values[n->operands[k]].readers++;
  }
}

// Weights go from operands to results, needs from results to operands.
static tt_status_t give_roles(tt__planner_t *p, const tt_block_t *block, const bool *fusible) {
  count_readers(p, block);
  for (uint32_t i = 0; i < block->node_count; i++) weigh(p, block->nodes[i], fusible[i]);
  for (uint32_t i = 0; i < block->return_count; i++) need_stored(p, block->returns[i]);
  for (uint32_t i = block->node_count; i-- > 0;) {
    const tt_node_t *n = block->nodes[i];
    if (fusible[i])
      visit_fusible(p, n);
    else
      TT_RETURN_IF_ERROR(visit_other(p, n));
  }
  return TT_OK_STATUS;
}

// --- clusters, from the first node to the last --------------------------------------------------

// With path halving.
static uint32_t find(pass_t *s, uint32_t c) {
  while (s->clusters[c].parent != c)
    c = s->clusters[c].parent = s->clusters[s->clusters[c].parent].parent;
  return c;
}

// The first stage at which another step can read v.
static uint32_t ready(const pass_t *s, tt_value_t v) {
  if (s->p->graph->values[v].block != s->block) return 0;
  tt_value_t root = tt__plan_root(s->p, v);
  if (s->p->graph->values[root].block != s->block) return 0;
  const tt__value_t *info = &s->p->values[root];
  return info->role == TT__ROLE_MEMBER ? info->stage + 1 : info->stage;
}

// Whether n can take x from a register of its own program: same shape, point by point.
static bool is_direct(const pass_t *s, const tt_node_t *n, tt_value_t x) {
  return !is_view(n) && s->p->graph->values[x].block == s->block &&
         s->p->values[x].role == TT__ROLE_MEMBER &&
         tt_type_same_shape(tt_graph_type(s->p->graph, x),
                            tt_graph_type(s->p->graph, n->first_result));
}

static bool fits(pass_t *s, uint32_t c, uint32_t into) {
  return c == into || s->clusters[c].size + s->clusters[into].size < s->p->cluster_limit;
}

// Stages keep clusters free of cycles: a node joins the clusters of its direct operands only at the
// latest stage that any operand needs, so nothing in a cluster waits for something that waits for
// the cluster. Full clusters are not joined; their values come from memory one stage later.
static void join_cluster(pass_t *s, const tt_node_t *n, uint32_t position) {
  tt__planner_t *p = s->p;
  tt__value_t *info = &p->values[n->first_result];
  uint32_t stage = 0;
  for (uint32_t i = 0; i < n->operand_count; i++) {
    tt_value_t x = n->operands[i];
    uint32_t at = is_direct(s, n, x) ? p->values[x].stage : ready(s, x);
    if (at > stage) stage = at;
  }
  uint32_t mine = TT__NO_STEP;
  for (uint32_t i = 0; i < n->operand_count; i++) {
    tt_value_t x = n->operands[i];
    if (!is_direct(s, n, x) || p->values[x].stage != stage) continue;
    uint32_t c = find(s, p->values[x].cluster);
    if (mine == TT__NO_STEP && s->clusters[c].size < p->cluster_limit) {
      mine = c;
    } else if (mine != TT__NO_STEP && mine != c && fits(s, c, mine)) {
      s->clusters[c].parent = mine;
      s->clusters[mine].size += s->clusters[c].size;
      if (s->clusters[c].position > s->clusters[mine].position)
        s->clusters[mine].position = s->clusters[c].position;
    } else if (mine != c) {
      stage++;  // a full cluster: its values come from memory, after it ran
      mine = TT__NO_STEP;
      break;
    }
  }
  if (mine == TT__NO_STEP) {
    mine = s->cluster_count++;
    s->clusters[mine] = (cluster_t){.parent = mine, .stage = stage, .first = n->first_result};
  }
  s->clusters[mine].size++;
  s->clusters[mine].position = position;
  info->stage = stage;
  info->cluster = mine;
}

// A step's results are ready one stage after its operands.
static tt_status_t give_stages(pass_t *s, const bool *fusible) {
  tt__planner_t *p = s->p;
  for (uint32_t i = 0; i < s->block->node_count; i++) {
    const tt_node_t *n = s->block->nodes[i];
    tt__value_t *first = n->result_count ? &p->values[n->first_result] : NULL;
    if (first && (first->role == TT__ROLE_NONE || first->role == TT__ROLE_ALIAS)) continue;
    if (fusible[i] && first->role == TT__ROLE_MEMBER) {
      join_cluster(s, n, i);
      continue;
    }
    uint32_t stage = 0;
    for (uint32_t k = 0; k < n->operand_count; k++) {
      uint32_t at = ready(s, n->operands[k]);
      if (at > stage) stage = at;
    }
    uint32_t count;
    tt_value_t *list = captures(p, n, &count);
    if (!list) return tt__plan_no_memory();
    for (uint32_t k = 0; k < count; k++) {
      uint32_t at = ready(s, list[k]);
      if (at > stage) stage = at;
    }
    for (uint32_t r = 0; r < n->result_count; r++)
      p->values[n->first_result + r].stage = fusible[i] ? stage : stage + 1;
  }
  return TT_OK_STATUS;
}

// Members read from outside their cluster live in memory.
static void mark_stored(pass_t *s) {
  tt__planner_t *p = s->p;
  for (uint32_t i = 0; i < s->block->node_count; i++) {
    const tt_node_t *n = s->block->nodes[i];
    if (n->result_count && p->values[n->first_result].role == TT__ROLE_NONE) continue;
    bool member = n->result_count && p->values[n->first_result].role == TT__ROLE_MEMBER;
    for (uint32_t k = 0; k < n->operand_count; k++) {
      tt_value_t x = n->operands[k];
      if (p->graph->values[x].block != s->block || p->values[x].role != TT__ROLE_MEMBER) continue;
      bool inside = member && is_direct(s, n, x) &&
                    find(s, p->values[x].cluster) == find(s, p->values[n->first_result].cluster);
      if (!inside) p->values[x].stored = true;
    }
  }
  for (uint32_t i = 0; i < s->block->node_count; i++) {
    const tt_node_t *n = s->block->nodes[i];
    if (n->result_count != 1 || p->values[n->first_result].role != TT__ROLE_MEMBER) continue;
    tt__value_t *info = &p->values[n->first_result];
    cluster_t *c = &s->clusters[find(s, info->cluster)];
    if (c->id == 0) c->id = ++p->cluster_count;
    if (info->stored) c->stored++;
  }
}

// --- steps -------------------------------------------------------------------------------------

static tt_status_t run_tile(const tt__step_t *step, const tt__run_t *run) {
  char *in[TT__TILE_LEAVES], *out[TT__TILE_STORES];
  for (uint32_t r = 0; r < step->read_count; r++) in[r] = tt__at(run, step->in[r]);
  for (uint32_t w = 0; w < step->write_count; w++) out[w] = tt__at(run, step->out[w]);
  tt__tile_run(step->data, run, in, out);
  return TT_OK_STATUS;
}

static tt_status_t add_step(pass_t *s, tt__step_t *step, uint32_t position) {
  step->position = position;
  for (uint32_t w = 0; w < step->write_count; w++) s->p->values[step->writes[w]].step = step;
  s->steps[s->step_count++] = step;
  return TT_OK_STATUS;
}

// The program has one root for each stored member; the other members are reached from them.
static tt_status_t build_cluster(pass_t *s, const cluster_t *c, const tt_value_t *stored) {
  tt__planner_t *p = s->p;
  tt__tile_spec_t spec = {.root_count = c->stored};
  tt__view_t identity;
  tt__tile_root_t *roots = TT_ARENA_ARRAY(&p->scratch, tt__tile_root_t, c->stored);
  if (!roots) return tt__plan_no_memory();
  tt__tile_identity(tt_graph_type(p->graph, stored[0]), &spec.rank, spec.extents, &identity);
  for (uint32_t i = 0; i < c->stored; i++) {
    memset(&roots[i], 0, sizeof roots[i]);
    roots[i].value = stored[i];
    roots[i].member = true;
    roots[i].view = identity;
    roots[i].write = i;
    int64_t stride = 1;
    for (uint32_t d = spec.rank; d-- > 0; stride *= spec.extents[d]) roots[i].strides[d] = stride;
  }
  spec.roots = roots;
  tt__tile_t *tile;
  tt__built_t built = tt__tile_build(p, &spec, &tile, &p->blocker);
  tt_status_t status = TT_OK_STATUS;
  if (built == TT__BUILT_FAILED) status = tt__plan_no_memory();
  if (built == TT__BUILT_STORE) p->restart = true;
  tt__step_t *step = NULL;
  if (built == TT__BUILT_OK)
    status = tt__plan_step(p, run_tile, "tile", NULL, spec.read_count, c->stored, &step);
  if (step) {
    tt__plan_set_reads(step, spec.reads);
    memcpy(step->writes, stored, sizeof *stored * c->stored);
    step->data = tile;
    step->cost = (uint64_t)tile->total * tile->point_cost / 1000;
    for (uint32_t r = 0; r < spec.read_count; r++)
      for (uint32_t w = 0; w < c->stored; w++)
        step->inplace[r * c->stored + w] = tt__tile_inplace(tile, r, w);
    status = add_step(s, step, c->position);
  }
  tt_free(spec.reads);
  return status;
}

static tt_status_t build_clusters(pass_t *s) {
  tt__planner_t *p = s->p;
  // Stored members, cluster by cluster, in program order.
  tt_value_t **lists = tt_arena_zeroed(&p->scratch, sizeof *lists * (s->cluster_count + 1));
  uint32_t *counts = tt_arena_zeroed(&p->scratch, sizeof *counts * (s->cluster_count + 1));
  if (!lists || !counts) return tt__plan_no_memory();
  for (uint32_t i = 0; i < s->block->node_count; i++) {
    const tt_node_t *n = s->block->nodes[i];
    if (n->result_count != 1) continue;
    tt__value_t *info = &p->values[n->first_result];
    if (info->role != TT__ROLE_MEMBER) continue;
    uint32_t c = find(s, info->cluster);
    info->cluster = s->clusters[c].id;
    if (!info->stored) continue;
    if (!lists[c]) lists[c] = TT_ARENA_ARRAY(&p->scratch, tt_value_t, s->clusters[c].stored);
    if (!lists[c]) return tt__plan_no_memory();
    lists[c][counts[c]++] = n->first_result;
  }
  for (uint32_t c = 0; c < s->cluster_count && !p->restart; c++)
    if (counts[c]) TT_RETURN_IF_ERROR(build_cluster(s, &s->clusters[c], lists[c]));
  return TT_OK_STATUS;
}

// A constant lives in the graph. One element serves as memory and as an immediate.
static tt_status_t place_constant(tt__planner_t *p, const tt_node_t *n) {
  const tt_attr_t *value = tt_node_attr(n, TT_ATTR_VALUE);
  tt__value_t *info = &p->values[n->first_result];
  info->role = TT__ROLE_MEMORY;
  TT_RETURN_IF_ERROR(tt__buffer_fixed(p, value->count, TT__BASE_NONE, (uintptr_t)value->u.bytes,
                                      false, &info->buffer));
  return TT_OK_STATUS;
}

// Whether the constant's attribute is its whole memory (not one element for a splat).
static bool in_graph(const tt__planner_t *p, const tt_node_t *n) {
  if (n->op != TT_OP_CONSTANT) return false;
  const tt_attr_t *value = tt_node_attr(n, TT_ATTR_VALUE);
  return value && value->count == tt_type_bytes(tt_graph_type(p->graph, n->first_result));
}

static tt_status_t build_nodes(pass_t *s, const bool *fusible) {
  tt__planner_t *p = s->p;
  for (uint32_t i = 0; i < s->block->node_count && !p->restart; i++) {
    const tt_node_t *n = s->block->nodes[i];
    uint8_t role = n->result_count ? p->values[n->first_result].role : TT__ROLE_MEMORY;
    if (fusible[i] || in_graph(p, n) || role == TT__ROLE_NONE || role == TT__ROLE_ALIAS) continue;
    tt__step_t *step;
    TT_RETURN_IF_ERROR(tt__plan_node_step(p, n, &step));
    if (!p->restart) TT_RETURN_IF_ERROR(add_step(s, step, i));
  }
  return TT_OK_STATUS;
}

// Ends with p->restart set where a program could not be built: then something has been learned (a
// value to force, or that clusters are too large), and the next attempt starts from nothing.
static tt_status_t attempt(tt__planner_t *p, const tt_block_t *block, const bool *fusible,
                           pass_t *s) {
  *s = (pass_t){.p = p, .block = block};
  s->clusters = TT_ARENA_ARRAY(&p->scratch, cluster_t, block->node_count + 1);
  s->steps = TT_ARENA_ARRAY(&p->scratch, tt__step_t *, block->node_count + 1);
  if (!s->clusters || !s->steps) return tt__plan_no_memory();
  p->restart = false;
  TT_RETURN_IF_ERROR(give_roles(p, block, fusible));
  for (uint32_t i = 0; i < block->node_count; i++) {
    const tt_node_t *n = block->nodes[i];
    if (in_graph(p, n) && p->values[n->first_result].role != TT__ROLE_NONE)
      TT_RETURN_IF_ERROR(place_constant(p, n));
  }
  TT_RETURN_IF_ERROR(give_stages(s, fusible));
  mark_stored(s);
  TT_RETURN_IF_ERROR(build_clusters(s));
  if (p->restart) return TT_OK_STATUS;
  return build_nodes(s, fusible);
}

// Members of a cluster at first; halved where a program does not keep tile.h's limits.
enum { CLUSTER_LIMIT = 48 };

// Terminates: every restart forces a value that was not forced, or halves the limit.
tt_status_t tt__cluster_block(tt__planner_t *p, const tt_block_t *block, tt__step_t ***out_steps,
                              uint32_t *out_count) {
  bool *fusible = TT_ARENA_ARRAY(&p->scratch, bool, block->node_count + 1);
  if (!fusible) return tt__plan_no_memory();
  for (uint32_t i = 0; i < block->node_count; i++)
    fusible[i] = tt__tile_fusible(p, block->nodes[i]);
  if (!p->cluster_limit) p->cluster_limit = CLUSTER_LIMIT;
  pass_t s;
  for (;;) {
    p->blocker = TT_NO_VALUE;
    TT_RETURN_IF_ERROR(attempt(p, block, fusible, &s));
    if (!p->restart) break;
    if (p->blocker != TT_NO_VALUE) {
      TT_CHECK(!p->values[p->blocker].forced);
      p->values[p->blocker].forced = true;
    } else {
      TT_CHECK(p->cluster_limit > 1);
      p->cluster_limit /= 2;
    }
  }
  *out_steps = s.steps;
  *out_count = s.step_count;
  return TT_OK_STATUS;
}
