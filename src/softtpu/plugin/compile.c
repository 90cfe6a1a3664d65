// From a program's text to an executable, and back.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plugin/bytecode.h"
#include "softtpu/plugin/plugin.h"

#define SERIAL_MAGIC "softtpu1"

static bool is_format(const tt_pjrt_program_t *program, const char *format) {
  return program->format_size == strlen(format) &&
         memcmp(program->format, format, program->format_size) == 0;
}

// Text, or bytecode by way of text.
static tt_status_t parse(const char *code, size_t size, tt_graph_t **out_graph) {
  if (!tt__bytecode_is(code, size)) return tt_graph_parse(code, size, out_graph);
  char *text;
  size_t text_size;
  TT_RETURN_IF_ERROR(tt__bytecode_print(code, size, &text, &text_size));
  tt_status_t status = tt_graph_parse(text, text_size, out_graph);
  tt_free(text);
  return status;
}

// Options that say how many devices go before what the program says.
static tt_status_t compile_text(tt_soft_client_t *client, const char *text, size_t size,
                                const char *options, size_t options_size,
                                tt_soft_executable_t **out_executable) {
  tt_soft_options_t parsed;
  TT_RETURN_IF_ERROR(tt__soft_options_parse(options, options_size, &parsed));
  tt_graph_t *graph;
  TT_RETURN_IF_ERROR(parse(text, size, &graph));
  if (parsed.replica_count) graph->replica_count = parsed.replica_count;
  if (parsed.partition_count) graph->partition_count = parsed.partition_count;
  tt_program_t *program = NULL;
  tt_status_t status = tt_program_create(graph, true, &program);
  if (!status) {
    status = tt__soft_executable_create(client, program, graph->name, options, options_size,
                                        out_executable);
  }
  tt_program_release(program);
  tt_graph_destroy(graph);
  return status;
}

static tt_status_t compile(tt_soft_client_t *client, const tt_pjrt_program_t *program,
                           const char *options, size_t options_size, void **out_executable) {
  if (!is_format(program, "mlir")) {
    return TT_ERROR(UNIMPLEMENTED, "programs in format \"%.*s\"; pass \"mlir\"",
                    (int)program->format_size, program->format);
  }
  tt_soft_executable_t *executable;
  TT_RETURN_IF_ERROR(
      compile_text(client, program->code, program->code_size, options, options_size, &executable));
  *out_executable = executable;
  return TT_OK_STATUS;
}

tt_pjrt_error_t *tt__soft_Client_Compile(tt_pjrt_client_compile_args_t *a) {
  TT_SOFT_CHECK(a, executable);
  return tt__soft_error(
      compile(a->client, a->program, a->options, a->options_size, &a->executable));
}

// Without a client: for looking at and for loading later.
tt_pjrt_error_t *tt__soft_Compile(tt_pjrt_compile_args_t *a) {
  TT_SOFT_CHECK(a, executable);
  return tt__soft_error(compile(NULL, a->program, a->options, a->options_size, &a->executable));
}

// A second executable over the same program.
tt_pjrt_error_t *tt__soft_Client_Load(tt_pjrt_load_args_t *a) {
  TT_SOFT_CHECK(a, loaded);
  tt_soft_executable_t *from = a->executable, *loaded;
  bool own = a->options_size == 0;
  TT_SOFT_RETURN_IF_ERROR(tt__soft_executable_create(
      a->client, from->program, from->name, own ? from->options : a->options,
      own ? from->options_size : a->options_size, &loaded));
  a->loaded = loaded;
  return NULL;
}

// --- serialization: magic, the size of the options, the options, the program's text ---

tt_pjrt_error_t *tt__soft_Executable_Serialize(tt_pjrt_bytes_args_t *a) {
  TT_SOFT_CHECK(a, deleter);
  const tt_soft_executable_t *executable = a->self;
  if (!executable->program->graph) {
    return tt__soft_error(
        TT_ERROR(UNIMPLEMENTED, "serializing an executable that was compiled from memory"));
  }
  char *text;
  size_t size;
  TT_SOFT_RETURN_IF_ERROR(tt_graph_print(executable->program->graph, &text, &size));
  uint64_t options_size = executable->options_size;
  size_t total = 8 + sizeof options_size + options_size + size;
  char *bytes = tt_alloc(total);
  if (bytes) {
    memcpy(bytes, SERIAL_MAGIC, 8);
    memcpy(bytes + 8, &options_size, sizeof options_size);
    if (options_size) memcpy(bytes + 16, executable->options, options_size);
    memcpy(bytes + 16 + options_size, text, size);
  }
  tt_free(text);
  if (!bytes) return tt__soft_error(TT_ERROR(OUT_OF_MEMORY, "no host memory for an executable"));
  a->bytes = bytes;
  a->size = total;
  a->owner = bytes;
  a->deleter = tt_free;
  return NULL;
}

// The text is compiled again, by whatever version this is.
tt_pjrt_error_t *tt__soft_Executable_DeserializeAndLoad(tt_pjrt_deserialize_args_t *a) {
  TT_SOFT_CHECK(a, executable);
  uint64_t options_size = 0;
  if (a->size >= 16) memcpy(&options_size, a->bytes + 8, sizeof options_size);
  if (a->size < 16 || memcmp(a->bytes, SERIAL_MAGIC, 8) != 0 || options_size > a->size - 16) {
    return tt__soft_error(
        TT_ERROR(INVALID_ARGUMENT, "these are not the bytes of a software TPU's executable"));
  }
  const char *options = a->bytes + 16;
  const char *text = options + options_size;
  size_t size = a->size - 16 - options_size;
  if (TT_PJRT_HAS(a, options_size) && a->options_size) {
    options = a->options;
    options_size = a->options_size;
  }
  tt_soft_executable_t *executable;
  TT_SOFT_RETURN_IF_ERROR(compile_text(a->client, text, size, options, options_size, &executable));
  a->executable = executable;
  return NULL;
}

// Asked twice: first for the size.
tt_pjrt_error_t *tt__soft_Executable_OptimizedProgram(tt_pjrt_get_args_t *a) {
  TT_SOFT_CHECK(a, result);
  const tt_soft_executable_t *executable = a->self;
  tt_pjrt_program_t *program = a->result;
  if (!executable->program->graph) {
    return tt__soft_error(
        TT_ERROR(UNIMPLEMENTED, "the text of an executable that was compiled from memory"));
  }
  char *text;
  size_t size;
  TT_SOFT_RETURN_IF_ERROR(tt_graph_print(executable->program->graph, &text, &size));
  bool fits = program->code && program->code_size >= size;
  if (fits) memcpy(program->code, text, size);
  tt_free(text);
  if (program->code && !fits) {
    return tt__soft_error(TT_ERROR(INVALID_ARGUMENT, "the program needs %zu bytes", size));
  }
  program->code_size = size;
  program->format = "mlir";
  program->format_size = 4;
  return NULL;
}
