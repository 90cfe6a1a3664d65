// Programs: a plan and the tables that a run looks at, filled once so that starting a run calls
// nothing.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/device.h"

// Whether what a device computes depends on the other devices or on which one it is.
static bool talks(const tt_block_t *block) {
  for (uint32_t i = 0; i < block->node_count; i++) {
    const tt_node_t *node = block->nodes[i];
    if (tt_op_infos[node->op].traits & TT_TRAIT_COLLECTIVE) return true;
    if (node->op == TT_OP_REPLICA_ID || node->op == TT_OP_PARTITION_ID) return true;
    for (uint32_t r = 0; r < node->region_count; r++) {
      if (talks(node->regions[r])) return true;
    }
  }
  return false;
}

// One entry more than needed, since empty tables would be no allocation; release frees what there
// is.
static bool allocate_tables(tt_program_t *program) {
  size_t inputs = program->input_count + 1, outputs = program->output_count + 1;
  program->donations = tt_alloc_zeroed(inputs * sizeof *program->donations);
  program->input_types = tt_alloc_zeroed(inputs * sizeof(void *));
  program->aliases = tt_alloc_zeroed(outputs * sizeof *program->aliases);
  program->borrows = tt_alloc_zeroed(inputs * sizeof *program->borrows);
  program->output_types = tt_alloc_zeroed(outputs * sizeof(void *));
  program->output_bytes = tt_alloc_zeroed(outputs * sizeof(size_t));
  return program->donations && program->input_types && program->aliases && program->borrows &&
         program->output_types && program->output_bytes;
}

static void fill_tables(tt_program_t *program, const tt_graph_t *graph) {
  for (uint32_t i = 0; i < program->input_count; i++) {
    program->input_types[i] = tt_plan_input_type(program->plan, i);
    program->donations[i] = graph->donations ? graph->donations[i] : TT_KEEP;
    program->borrows[i] = tt_plan_input_written(program->plan, i);
  }
  for (uint32_t i = 0; i < program->output_count; i++) {
    program->output_types[i] = tt_plan_output_type(program->plan, i);
    program->output_bytes[i] = tt_type_bytes(program->output_types[i]);
    program->aliases[i] = tt_plan_output_alias(program->plan, i);
    if (program->aliases[i] < 0) continue;
    program->alias_count++;
    program->borrows[program->aliases[i]] = false;
  }
}

// The environment is looked at for each program, so that a test may change the engine.
tt_status_t tt_program_create(const tt_graph_t *graph, bool keep_graph,
                              tt_program_t **out_program) {
  *out_program = NULL;
  const char *engine = getenv("TORCHTPU_ENGINE");
  if (engine && strcmp(engine, "reference") != 0 && strcmp(engine, "planned") != 0) {
    return TT_ERROR(INVALID_ARGUMENT, "TORCHTPU_ENGINE is \"%s\"; it may be reference or planned",
                    engine);
  }
  tt_plan_options_t options = {.reference = engine && strcmp(engine, "reference") == 0};
  tt_program_t *program = tt_alloc_zeroed(sizeof *program);
  if (!program) return TT_ERROR(OUT_OF_MEMORY, "no host memory for a program");
  atomic_init(&program->refs, 1);
  program->replica_count = graph->replica_count ? graph->replica_count : 1;
  program->partition_count = graph->partition_count ? graph->partition_count : 1;
  program->collective = talks(graph->main);
  tt_status_t status = tt_plan_create(graph, &options, &program->plan);
  if (!status && (keep_graph || program->collective)) {
    status = tt_graph_clone(graph, &program->graph);
  }
  if (!status) {
    program->input_count = tt_plan_input_count(program->plan);
    program->output_count = tt_plan_output_count(program->plan);
    program->arena_bytes = tt_plan_arena_bytes(program->plan);
    program->cost = tt_plan_cost(program->plan);
    if (!allocate_tables(program)) {
      status = TT_ERROR(OUT_OF_MEMORY, "no host memory for a program's tables");
    }
  }
  if (status) {
    tt_program_release(program);
    return status;
  }
  fill_tables(program, graph);
  *out_program = program;
  return TT_OK_STATUS;
}

void tt_program_retain(tt_program_t *program) {
  atomic_fetch_add_explicit(&program->refs, 1, memory_order_relaxed);
}

void tt_program_release(tt_program_t *program) {
  if (!program || atomic_fetch_sub(&program->refs, 1) != 1) return;
  tt_plan_destroy(program->plan);
  tt_graph_destroy(program->graph);
  tt_free(program->donations);
  tt_free(program->aliases);
  tt_free(program->borrows);
  tt_free(program->input_types);
  tt_free(program->output_types);
  tt_free(program->output_bytes);
  tt_free(program);
}
