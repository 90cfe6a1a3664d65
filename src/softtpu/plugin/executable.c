// Loaded executables: what a program costs, its questions, and its serialized form.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plugin/plugin.h"

// --- what a program costs ---

static double node_flops(const tt_graph_t *graph, const tt_node_t *node);

static double block_flops(const tt_graph_t *graph, const tt_block_t *block) {
  double sum = 0;
  for (uint32_t i = 0; i < block->node_count; i++) sum += node_flops(graph, block->nodes[i]);
  return sum;
}

static double elements(const tt_graph_t *graph, tt_value_t value) {
  return (double)tt_type_elements(tt_graph_type(graph, value));
}

// Operations of a node, two a multiply-add: a dot's result times its depth, a convolution's result
// times the kernel elements that one output sees. A loop's body counts once.
static double node_flops(const tt_graph_t *graph, const tt_node_t *node) {
  if (node->result_count == 0) return 0;
  double result = elements(graph, node->first_result);
  if (node->op == TT_OP_DOT_GENERAL) {
    uint32_t count;
    const int64_t *dims = tt_node_ints(node, TT_ATTR_LHS_CONTRACTING_DIMENSIONS, &count);
    const tt_type_t *lhs = tt_graph_type(graph, node->operands[0]);
    double depth = 1;
    for (uint32_t i = 0; i < count; i++) depth *= (double)lhs->dims[dims[i]];
    return 2 * result * depth;
  }
  if (node->op == TT_OP_CONVOLUTION) {
    const tt_type_t *kernel = tt_graph_type(graph, node->operands[1]);
    int64_t features = tt_node_int(node, TT_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION, 0);
    double outputs = kernel->rank ? (double)kernel->dims[features] : 1;
    return outputs > 0 ? 2 * result * elements(graph, node->operands[1]) / outputs : 0;
  }
  if (node->op == TT_OP_REDUCE && node->operand_count) return elements(graph, node->operands[0]);
  if (tt_op_infos[node->op].traits & TT_TRAIT_ELEMENTWISE) return result;
  double sum = 0;
  for (uint32_t r = 0; r < node->region_count; r++) sum += block_flops(graph, node->regions[r]);
  return sum;
}

static size_t input_bytes(const tt_program_t *program) {
  size_t sum = 0;
  for (uint32_t i = 0; i < program->input_count; i++) sum += tt_type_bytes(program->input_types[i]);
  return sum;
}

static size_t output_bytes(const tt_program_t *program, bool aliased_only) {
  size_t sum = 0;
  for (uint32_t i = 0; i < program->output_count; i++) {
    if (!aliased_only || program->aliases[i] >= 0) sum += program->output_bytes[i];
  }
  return sum;
}

// --- making one ---

// Which devices the program runs on, replica by replica: those of the options' assignment, or the
// first ones. Without a client only the logical ids are known.
static tt_status_t assign_devices(tt_soft_executable_t *executable) {
  const tt_program_t *program = executable->program;
  tt_soft_options_t options;
  TT_RETURN_IF_ERROR(
      tt__soft_options_parse(executable->options, executable->options_size, &options));
  uint32_t replicas = options.replica_count ? options.replica_count : program->replica_count;
  uint32_t partitions =
      options.partition_count ? options.partition_count : program->partition_count;
  uint64_t count = (uint64_t)replicas * partitions;
  uint32_t limit = executable->client ? executable->client->count : 256;
  if (count > limit) {
    return TT_ERROR(INVALID_ARGUMENT,
                    "the program is for %u replicas of %u partitions; there are "
                    "%u devices",
                    replicas, partitions, limit);
  }
  executable->device_count = (uint32_t)count;
  executable->devices = tt_alloc_zeroed(sizeof(void *) * (count + 1));
  executable->logical_ids = tt_alloc_zeroed(sizeof *executable->logical_ids * (count + 1));
  if (!executable->devices || !executable->logical_ids) {
    return TT_ERROR(OUT_OF_MEMORY, "no host memory for %u devices", (uint32_t)count);
  }
  for (uint32_t i = 0; i < count; i++) {
    int64_t id = options.id_count == count ? options.ids[i] : (int64_t)i;
    if (id < 0 || id >= limit) {
      return TT_ERROR(INVALID_ARGUMENT, "device %lld is not among the %u devices", (long long)id,
                      limit);
    }
    executable->logical_ids[i] =
        (tt_pjrt_logical_id_t){(int)(i / partitions), (int)(i % partitions)};
    if (executable->client) executable->devices[i] = &executable->client->devices[id];
  }
  return TT_OK_STATUS;
}

// Tables that the interface hands out by address, so they live as long as the executable.
static tt_status_t describe_outputs(tt_soft_executable_t *executable) {
  const tt_program_t *program = executable->program;
  uint32_t outputs = program->output_count, inputs = program->input_count;
  uint32_t values = outputs + inputs, dims = 0;
  for (uint32_t i = 0; i < outputs; i++) dims += program->output_types[i]->rank;
  executable->output_types = tt_alloc(sizeof(tt_pjrt_type_t) * (outputs + 1));
  executable->output_ranks = tt_alloc(sizeof(size_t) * (outputs + 1));
  executable->output_dims = tt_alloc(sizeof(int64_t) * (dims + 1));
  executable->kinds = tt_alloc(sizeof(char *) * (values + 1));
  executable->kind_sizes = tt_alloc(sizeof(size_t) * (values + 1));
  executable->layouts = tt_alloc_zeroed(sizeof(void *) * (values + 1));
  if (!executable->output_types || !executable->output_ranks || !executable->output_dims ||
      !executable->kinds || !executable->kind_sizes || !executable->layouts) {
    return TT_ERROR(OUT_OF_MEMORY, "no host memory for an executable");
  }
  int64_t *at = executable->output_dims;
  for (uint32_t i = 0; i < values; i++) {
    const tt_type_t *type =
        i < outputs ? program->output_types[i] : program->input_types[i - outputs];
    executable->kinds[i] = "device";
    executable->kind_sizes[i] = 6;
    executable->layouts[i] = tt__soft_layout_text(type->rank);
    if (!executable->layouts[i]) return TT_ERROR(OUT_OF_MEMORY, "no host memory for a layout");
    if (i >= outputs) continue;
    executable->output_types[i] = tt__soft_type_number(type->dtype);
    executable->output_ranks[i] = type->rank;
    for (uint32_t d = 0; d < type->rank; d++) *at++ = type->dims[d];
  }
  return TT_OK_STATUS;
}

static tt_pjrt_value_t cost(const char *name, double value) {
  return (tt_pjrt_value_t){.struct_size = sizeof(tt_pjrt_value_t),
                           .name = name,
                           .name_size = strlen(name),
                           .kind = TT_PJRT_VALUE_FLOAT,
                           .u.f = (float)value,
                           .count = 1};
}

static void release(tt_soft_executable_t *executable) {
  if (!executable || atomic_fetch_sub(&executable->refs, 1) != 1) return;
  uint32_t values = executable->program->output_count + executable->program->input_count;
  for (uint32_t i = 0; executable->layouts && i < values; i++) tt_free(executable->layouts[i]);
  tt_free(executable->layouts);
  tt_program_release(executable->program);
  tt_free(executable->name);
  tt_free(executable->options);
  tt_free(executable->devices);
  tt_free(executable->logical_ids);
  tt_free(executable->output_types);
  tt_free(executable->output_ranks);
  tt_free(executable->output_dims);
  tt_free(executable->kinds);
  tt_free(executable->kind_sizes);
  tt_free(executable);
}

// After a failure release frees whatever is there.
tt_status_t tt__soft_executable_create(tt_soft_client_t *client, tt_program_t *program,
                                       const char *name, const char *options, size_t options_size,
                                       tt_soft_executable_t **out_executable) {
  tt_soft_executable_t *executable = tt_alloc_zeroed(sizeof *executable);
  if (!executable) return TT_ERROR(OUT_OF_MEMORY, "no host memory for an executable");
  atomic_init(&executable->refs, 1);
  executable->client = client;
  tt_program_retain(program);
  executable->program = program;
  executable->name = tt_strdup(name ? name : "main");
  executable->options = tt_alloc(options_size + 1);
  tt_status_t status = TT_OK_STATUS;
  if (!executable->name || !executable->options) {
    status = TT_ERROR(OUT_OF_MEMORY, "no host memory for an executable");
  }
  if (!status && options_size) memcpy(executable->options, options, options_size);
  executable->options_size = options_size;
  if (!status) status = assign_devices(executable);
  if (!status) status = describe_outputs(executable);
  if (status) {
    release(executable);
    return status;
  }
  if (program->graph) {
    executable->flops = block_flops(program->graph, program->graph->main);
    snprintf(executable->fingerprint, sizeof executable->fingerprint, "%016llx",
             (unsigned long long)tt_graph_hash(program->graph));
  }
  executable->costs[0] = cost("flops", executable->flops);
  executable->costs[1] =
      cost("bytes accessed", (double)(input_bytes(program) + output_bytes(program, false)));
  executable->costs[2] = cost("optimal_seconds", (double)program->cost * 1e-9);
  *out_executable = executable;
  return TT_OK_STATUS;
}

// --- questions ---

tt_pjrt_error_t *tt__soft_Executable_Destroy(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  release(a->self);
  return NULL;
}

tt_pjrt_error_t *tt__soft_LoadedExecutable_Destroy(tt_pjrt_ref_args_t *a) {
  return tt__soft_Executable_Destroy(a);
}

// The same object: what the one may be asked, the other may.
tt_pjrt_error_t *tt__soft_LoadedExecutable_GetExecutable(tt_pjrt_get_args_t *a) {
  TT_SOFT_CHECK(a, result);
  tt_soft_executable_t *executable = a->self;
  atomic_fetch_add(&executable->refs, 1);
  a->result = executable;
  return NULL;
}

tt_pjrt_error_t *tt__soft_LoadedExecutable_Delete(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  atomic_store(&((tt_soft_executable_t *)a->self)->deleted, true);
  return NULL;
}

tt_pjrt_error_t *tt__soft_LoadedExecutable_IsDeleted(tt_pjrt_bool_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = atomic_load(&((tt_soft_executable_t *)a->self)->deleted);
  return NULL;
}

tt_pjrt_error_t *tt__soft_Executable_Name(tt_pjrt_text_args_t *a) {
  TT_SOFT_CHECK(a, size);
  return tt__soft_answer(a, ((tt_soft_executable_t *)a->self)->name);
}

tt_pjrt_error_t *tt__soft_Executable_Fingerprint(tt_pjrt_text_args_t *a) {
  TT_SOFT_CHECK(a, size);
  tt_soft_executable_t *executable = a->self;
  if (!executable->fingerprint[0]) {
    return tt__soft_error(
        TT_ERROR(UNIMPLEMENTED, "the fingerprint of an executable that was compiled from memory"));
  }
  return tt__soft_answer(a, executable->fingerprint);
}

tt_pjrt_error_t *tt__soft_LoadedExecutable_Fingerprint(tt_pjrt_text_args_t *a) {
  return tt__soft_Executable_Fingerprint(a);
}

// The last logical id is the largest in both coordinates.
tt_pjrt_error_t *tt__soft_Executable_NumReplicas(tt_pjrt_size_args_t *a) {
  TT_SOFT_CHECK(a, value);
  const tt_soft_executable_t *executable = a->self;
  a->value = executable->device_count
                 ? (size_t)executable->logical_ids[executable->device_count - 1].replica + 1
                 : 1;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Executable_NumPartitions(tt_pjrt_size_args_t *a) {
  TT_SOFT_CHECK(a, value);
  const tt_soft_executable_t *executable = a->self;
  a->value = executable->device_count
                 ? (size_t)executable->logical_ids[executable->device_count - 1].partition + 1
                 : 1;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Executable_NumOutputs(tt_pjrt_size_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = ((tt_soft_executable_t *)a->self)->program->output_count;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Executable_SizeOfGeneratedCodeInBytes(tt_pjrt_size_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = 0;  // plans run kernels that are there already
  return NULL;
}

tt_pjrt_error_t *tt__soft_Executable_GetCostAnalysis(tt_pjrt_count_args_t *a) {
  TT_SOFT_CHECK(a, items);
  a->items = ((tt_soft_executable_t *)a->self)->costs;
  a->count = 3;
  return NULL;
}

// Fields that older clients' records do not have are left alone.
tt_pjrt_error_t *tt__soft_Executable_GetCompiledMemoryStats(tt_pjrt_compiled_memory_args_t *a) {
  TT_SOFT_CHECK(a, temp);
  const tt_program_t *program = ((tt_soft_executable_t *)a->self)->program;
  a->code = 0;
  a->argument = (int64_t)input_bytes(program);
  a->output = (int64_t)output_bytes(program, false);
  a->alias = (int64_t)output_bytes(program, true);
  a->temp = (int64_t)program->arena_bytes;
  if (TT_PJRT_HAS(a, host_temp)) {
    a->host_code = a->host_argument = a->host_output = a->host_alias = a->host_temp = 0;
  }
  int64_t peak = a->argument + a->output - a->alias + a->temp;
  if (TT_PJRT_HAS(a, peak)) a->peak = peak;
  if (TT_PJRT_HAS(a, peak_unpadded)) {
    a->total = a->total_allocation = a->peak_unpadded = peak;
    a->indefinite = 0;
  }
  return NULL;
}

tt_pjrt_error_t *tt__soft_Executable_OutputElementTypes(tt_pjrt_list_args_t *a) {
  TT_SOFT_CHECK(a, count);
  const tt_soft_executable_t *executable = a->self;
  a->items = executable->output_types;
  a->count = executable->program->output_count;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Executable_OutputDimensions(tt_pjrt_lists_args_t *a) {
  TT_SOFT_CHECK(a, sizes);
  const tt_soft_executable_t *executable = a->self;
  a->count = executable->program->output_count;
  a->items = executable->output_dims;
  a->sizes = executable->output_ranks;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Executable_OutputMemoryKinds(tt_pjrt_lists_args_t *a) {
  TT_SOFT_CHECK(a, sizes);
  const tt_soft_executable_t *executable = a->self;
  a->count = executable->program->output_count;
  a->items = executable->kinds;
  a->sizes = executable->kind_sizes;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Executable_ParameterMemoryKinds(tt_pjrt_lists_args_t *a) {
  TT_SOFT_CHECK(a, sizes);
  const tt_soft_executable_t *executable = a->self;
  a->count = executable->program->input_count;
  a->items = executable->kinds;
  a->sizes = executable->kind_sizes;
  return NULL;
}

tt_pjrt_error_t *tt__soft_LoadedExecutable_AddressableDevices(tt_pjrt_list_args_t *a) {
  TT_SOFT_CHECK(a, count);
  const tt_soft_executable_t *executable = a->self;
  a->items = executable->devices;
  a->count = executable->device_count;
  return NULL;
}

tt_pjrt_error_t *tt__soft_LoadedExecutable_AddressableDeviceLogicalIds(tt_pjrt_list_args_t *a) {
  TT_SOFT_CHECK(a, count);
  const tt_soft_executable_t *executable = a->self;
  a->items = executable->logical_ids;
  a->count = executable->device_count;
  return NULL;
}

tt_pjrt_error_t *tt__soft_LoadedExecutable_GetDeviceAssignment(tt_pjrt_bytes_args_t *a) {
  TT_SOFT_CHECK(a, deleter);
  char *bytes = tt__soft_assignment_bytes(a->self, &a->size);
  if (!bytes) return tt__soft_error(TT_ERROR(OUT_OF_MEMORY, "no host memory for an assignment"));
  a->bytes = bytes;
  a->owner = bytes;
  a->deleter = tt_free;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Executable_GetCompileOptions(tt_pjrt_bytes_args_t *a) {
  TT_SOFT_CHECK(a, deleter);
  const tt_soft_executable_t *executable = a->self;
  a->bytes = executable->options;
  a->size = executable->options_size;
  a->owner = NULL;
  a->deleter = tt_free;  // of NULL
  return NULL;
}
