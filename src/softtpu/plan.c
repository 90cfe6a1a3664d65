// Planning in order (order_block, assign_main, pack, resolve) and running, which is a loop over
// steps.
#include "softtpu/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "opt/opt.h"
#include "softtpu/plan_internal.h"
#include "softtpu/plan_rows.h"
#include "softtpu/reference.h"

tt_status_t tt__plan_no_memory(void) { return TT_ERROR(OUT_OF_MEMORY, "no memory for a plan"); }

tt_status_t tt__plan_step(tt__planner_t *p, tt__step_fn_t run, const char *kind,
                          const tt_node_t *node, uint32_t reads, uint32_t writes,
                          tt__step_t **out_step) {
  tt__step_t *s = tt_arena_zeroed(p->arena, sizeof *s);
  size_t refs = sizeof(tt__ref_t) * (reads + writes),
         values = sizeof(tt_value_t) * (reads + writes);
  char *room = tt_arena_zeroed(p->arena, refs + values + (size_t)reads * writes + 1);
  if (!s || !room) return tt__plan_no_memory();
  s->run = run;
  s->kind = kind;
  s->node = node;
  s->read_count = reads;
  s->write_count = writes;
  s->in = (tt__ref_t *)room;
  s->out = s->in + reads;
  s->reads = (tt_value_t *)(room + refs);
  s->writes = s->reads + reads;
  s->inplace = (bool *)(room + refs + values);
  *out_step = s;
  return TT_OK_STATUS;
}

tt_status_t tt__plan_data_step(tt__planner_t *p, tt__step_fn_t run, const char *kind,
                               const tt_node_t *node, const tt_value_t *reads, uint32_t read_count,
                               void *data, tt__step_t **out_step) {
  TT_RETURN_IF_ERROR(tt__plan_step(p, run, kind, node, read_count, 1, out_step));
  tt__step_t *s = *out_step;
  tt__plan_set_reads(s, reads);
  s->writes[0] = node->first_result;
  s->data = data;
  return TT_OK_STATUS;
}

tt_value_t tt__plan_root(const tt__planner_t *p, tt_value_t v) {
  while (p->values[v].role == TT__ROLE_ALIAS) {
    const tt_value_info_t *info = &p->graph->values[v];
    v = info->node->operands[info->node->operand_count > 1 ? info->index : 0];
  }
  return v;
}

// Work for a core to be worth waking it: waking takes some microseconds. Half of it is a thread's
// least share.
enum { PARALLEL_NANOSECONDS = 30000 };

void tt__plan_parallel(const tt__run_t *run, int64_t count, uint64_t nanoseconds, tt_pool_fn_t fn,
                       void *context) {
  if (!run->pool || nanoseconds < PARALLEL_NANOSECONDS || count < 2) {
    if (count > 0) fn(context, 0, count);
    return;
  }
  uint64_t parts = nanoseconds / (PARALLEL_NANOSECONDS / 2);
  int64_t grain = parts > (uint64_t)count ? 1 : count / (int64_t)parts;
  tt_pool_run(run->pool, count, grain < 1 ? 1 : grain, fn, context);
}

tt_status_t tt__plan_run_seq(const tt__seq_t *seq, const tt__run_t *run) {
  for (uint32_t i = 0; i < seq->count; i++) {
    const tt__step_t *s = seq->steps[i];
    tt_status_t status = s->run(s, run);
    if (status)
      return s->node ? tt_status_annotate(status, "%s", tt_op_infos[s->node->op].text) : status;
  }
  return TT_OK_STATUS;
}

// --- order -------------------------------------------------------------------------------------

// The memory behind v is needed until then.
static void use(tt__planner_t *p, tt_value_t v, uint32_t time) {
  tt__value_t *info = &p->values[tt__plan_root(p, v)];
  if (info->last < time) info->last = time;
}

// visit: 0 not seen, 1 on the stack, 2 emitted.
enum { VISIT_DONE = 2 };

// Emits the steps that `s` needs, then `s`. The stack is explicit: programs may be long chains.
static void emit(tt__planner_t *p, tt__step_t *s, tt__step_t **stack, tt__seq_t *seq) {
  uint32_t depth = 0;
  stack[depth++] = s;
  while (depth) {
    tt__step_t *top = stack[depth - 1];
    tt__step_t *wanted = NULL;
    for (uint32_t r = 0; r < top->read_count && top->visit != VISIT_DONE && !wanted; r++) {
      tt__step_t *maker = p->values[tt__plan_root(p, top->reads[r])].step;
      if (maker && maker->visit == 0) wanted = maker;
    }
    if (wanted) {
      wanted->visit = 1;
      stack[depth++] = wanted;
      continue;
    }
    if (top->visit != VISIT_DONE) seq->steps[seq->count++] = top;
    top->visit = VISIT_DONE;
    depth--;
  }
}

static void sort_steps(tt__step_t **steps, uint32_t count) {
  // Nearly sorted already: clusters sit where they were opened.
  for (uint32_t i = 1; i < count; i++) {
    tt__step_t *s = steps[i];
    uint32_t k = i;
    for (; k > 0 && steps[k - 1]->position > s->position; k--) steps[k] = steps[k - 1];
    steps[k] = s;
  }
}

// Clusters and orders a block and, through its control flow, everything in it. A step with regions
// has two times, around those of its regions: what the regions capture lives to the second, since a
// loop comes back to it.
static tt_status_t order_block(tt__planner_t *p, const tt_block_t *block, tt__seq_t *seq) {
  for (uint32_t i = 0; i < block->arg_count; i++) p->values[block->args[i]].role = TT__ROLE_MEMORY;
  tt__step_t **steps;
  uint32_t count;
  TT_RETURN_IF_ERROR(tt__cluster_block(p, block, &steps, &count));
  sort_steps(steps, count);
  seq->steps = TT_ARENA_ARRAY(p->arena, tt__step_t *, count + 1);
  tt__step_t **stack = TT_ARENA_ARRAY(&p->scratch, tt__step_t *, count + 1);
  if (!seq->steps || !stack) return tt__plan_no_memory();
  seq->count = 0;
  for (uint32_t i = 0; i < count; i++)
    if (steps[i]->visit == 0) emit(p, steps[i], stack, seq);
  for (uint32_t i = 0; i < seq->count; i++) {
    tt__step_t *s = seq->steps[i];
    s->time = s->time_end = ++p->time;
    for (uint32_t r = 0; r < s->read_count; r++) use(p, s->reads[r], s->time);
    if (s->region_count == 0) continue;
    for (uint32_t k = 0; k < s->region_count; k++)
      TT_RETURN_IF_ERROR(order_block(p, s->node->regions[k], &s->regions[k]));
    s->time_end = ++p->time;
    for (uint32_t r = s->node->operand_count; r < s->read_count; r++)
      use(p, s->reads[r], s->time_end);
  }
  uint32_t end = ++p->time;
  for (uint32_t i = 0; i < block->return_count; i++) {
    tt_value_t v = tt__plan_root(p, block->returns[i]);
    use(p, v, end);
    if (p->graph->values[v].block == block && p->values[v].target == 0) p->values[v].target = i + 1;
  }
  return TT_OK_STATUS;
}

// --- create ------------------------------------------------------------------------------------

// Arguments live where the caller put them, outputs where he wants them, or over the argument that
// the graph or (later, in assign_write) the planner chose.
static tt_status_t assign_main(tt__planner_t *p) {
  tt_plan_t *plan = p->plan;
  const tt_block_t *main = p->graph->main;
  uint32_t *targets = TT_ARENA_ARRAY(&p->scratch, uint32_t, plan->output_count + 1);
  if (!targets) return tt__plan_no_memory();
  tt__plan_rows_find(p, &plan->main);
  for (uint32_t j = 0; j < main->arg_count; j++) {
    tt_value_t arg = main->args[j];
    tt__value_t *info = &p->values[arg];
    bool donated = p->graph->donations && p->graph->donations[j] != TT_KEEP;
    uint32_t buffer;
    TT_RETURN_IF_ERROR(tt__buffer_fixed(p, tt_type_bytes(tt_graph_type(p->graph, arg)),
                                        TT__BASE_INPUT + j, 0, donated, &buffer));
    info->buffer = buffer;
    info->reusable = donated;
    p->buffers[buffer].occupant = arg;
    p->buffers[buffer].busy = info->last;
  }
  for (uint32_t o = 0; o < plan->output_count; o++) {
    plan->aliases[o] = -1;
    for (uint32_t j = 0; j < main->arg_count; j++)
      if (p->graph->donations && p->graph->donations[j] == (int32_t)o + 1)
        plan->aliases[o] = (int32_t)j;
    if (plan->aliases[o] >= 0) {
      targets[o] = p->values[main->args[plan->aliases[o]]].buffer;
      continue;
    }
    TT_RETURN_IF_ERROR(tt__buffer_fixed(p, tt_type_bytes(tt_plan_output_type(plan, o)),
                                        TT__BASE_INPUT + plan->input_count + o, 0, true,
                                        &targets[o]));
  }
  return tt__buffer_assign(p, main, &plan->main, targets, plan->aliases);
}

// 30 ns a step for its dispatch; 16 turns is a guess at a loop's length.
static void count_kernels(tt_plan_t *plan, const tt__seq_t *seq, uint64_t times) {
  plan->kernel_count += seq->count;
  for (uint32_t i = 0; i < seq->count; i++) {
    const tt__step_t *s = seq->steps[i];
    plan->cost += (s->cost + 30) * times;
    for (uint32_t k = 0; k < s->region_count; k++)
      count_kernels(plan, &s->regions[k], s->node->op == TT_OP_WHILE ? times * 16 : times);
  }
}

static tt_status_t plan_graph(tt_plan_t *plan) {
  tt__planner_t p = {.plan = plan, .graph = plan->graph, .arena = &plan->arena};
  tt_arena_init(&p.scratch, 16384);
  tt_status_t status = TT_OK_STATUS;
  p.values = tt_arena_zeroed(&p.scratch, sizeof *p.values * (plan->graph->value_count + 1));
  plan->aliases = TT_ARENA_ARRAY(&plan->arena, int32_t, plan->output_count + 1);
  plan->written = tt_arena_zeroed(&plan->arena, plan->input_count + 1);
  if (!p.values || !plan->aliases || !plan->written) status = tt__plan_no_memory();
  for (uint32_t v = 0; !status && v < plan->graph->value_count; v++)
    p.values[v].buffer = TT__NO_BUFFER;
  if (!status) status = order_block(&p, plan->graph->main, &plan->main);
  if (!status) status = assign_main(&p);
  if (!status) status = tt__buffer_pack(&p);
  if (!status) {
    tt__buffer_resolve(&p, &plan->main);
    status = tt__plan_rows_join(&p, &plan->main);
    count_kernels(plan, &plan->main, 1);
  }
  tt_free(p.buffers);
  tt_arena_deinit(&p.scratch);
  return status;
}

// The passes leave what they replaced in the graph's arena, as much again as what stays: a plan
// keeps its graph for as long as it lives, so a large one is copied out (2 % of the time).
enum { COMPACT_BYTES = 1 << 16 };

static tt_status_t compact(tt_graph_t **graph) {
  tt_graph_t *fresh;
  if ((*graph)->arena.used < COMPACT_BYTES) return TT_OK_STATUS;
  TT_RETURN_IF_ERROR(tt_graph_clone(*graph, &fresh));
  tt_graph_destroy(*graph);
  *graph = fresh;
  return TT_OK_STATUS;
}

tt_status_t tt_plan_create(const tt_graph_t *graph, const tt_plan_options_t *options,
                           tt_plan_t **out_plan) {
  *out_plan = NULL;
  tt_plan_t *plan = tt_alloc_zeroed(sizeof *plan);
  if (!plan) return tt__plan_no_memory();
  tt_arena_init(&plan->arena, 2048);
  plan->reference = options && options->reference;
  tt_status_t status = tt_graph_clone(graph, &plan->graph);
  if (!status) {
    plan->input_count = plan->graph->main->arg_count;
    plan->output_count = plan->graph->main->return_count;
    plan->base_count = TT__BASE_INPUT + plan->input_count + plan->output_count;
    if (!plan->reference) status = tt_opt_run(plan->graph);
    if (!plan->reference && !status) status = compact(&plan->graph);
    if (!plan->reference && !status) status = plan_graph(plan);
  }
  if (status) {
    tt_plan_destroy(plan);
    return status;
  }
  *out_plan = plan;
  return TT_OK_STATUS;
}

void tt_plan_destroy(tt_plan_t *plan) {
  if (!plan) return;
  tt_graph_destroy(plan->graph);
  tt_arena_deinit(&plan->arena);
  tt_free(plan);
}

uint32_t tt_plan_input_count(const tt_plan_t *plan) { return plan->input_count; }
uint32_t tt_plan_output_count(const tt_plan_t *plan) { return plan->output_count; }
const tt_type_t *tt_plan_input_type(const tt_plan_t *plan, uint32_t index) {
  return tt_graph_type(plan->graph, plan->graph->main->args[index]);
}
const tt_type_t *tt_plan_output_type(const tt_plan_t *plan, uint32_t index) {
  return tt_graph_type(plan->graph, plan->graph->main->returns[index]);
}
size_t tt_plan_arena_bytes(const tt_plan_t *plan) { return plan->arena_bytes; }
int32_t tt_plan_output_alias(const tt_plan_t *plan, uint32_t index) {
  return plan->aliases ? plan->aliases[index] : -1;
}
bool tt_plan_input_written(const tt_plan_t *plan, uint32_t index) {
  return plan->written && plan->written[index];
}
uint64_t tt_plan_cost(const tt_plan_t *plan) { return plan->cost; }
uint32_t tt_plan_kernel_count(const tt_plan_t *plan) { return plan->kernel_count; }

// --- run ---------------------------------------------------------------------------------------

// Arguments and outputs of almost every program: a run then allocates nothing.
enum { STACK_BASES = 64 };

tt_status_t tt_plan_run(const tt_plan_t *plan, tt_pool_t *pool, const void *const *inputs,
                        void *const *outputs, void *arena) {
  if (plan->reference) return tt_reference_run(plan->graph, inputs, outputs);
  char *stack[STACK_BASES];
  char **bases = stack;
  if (plan->base_count > STACK_BASES) {
    bases = tt_alloc(sizeof *bases * plan->base_count);
    if (!bases) return tt__plan_no_memory();
  }
  bases[TT__BASE_ARENA] = arena;
  bases[TT__BASE_NONE] = NULL;
  char **next = bases + TT__BASE_INPUT;
  for (uint32_t i = 0; i < plan->input_count; i++) *next++ = (char *)(uintptr_t)inputs[i];
  for (uint32_t i = 0; i < plan->output_count; i++) *next++ = outputs[i];
  tt__run_t run = {plan, pool, bases};
  tt_status_t status = tt__plan_run_seq(&plan->main, &run);
  if (bases != stack) tt_free(bases);
  return status;
}
