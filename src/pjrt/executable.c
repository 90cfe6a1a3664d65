#include <string.h>

#include "base/alloc.h"
#include "opt/opt.h"
#include "pjrt/internal.h"

#define SMALL_COUNT 32

// --- compiling -----------------------------------------------------------------------------------
static tt_status_t wrap(tt_client_t *client, void *handle, tt_executable_t **out_executable) {
  const tt_plugin_t *plugin = client->plugin;
  tt_executable_t *executable = tt_alloc_zeroed(sizeof *executable);
  tt_status_t status = TT_OK_STATUS;
  TT_PJRT_ARGS(tt_pjrt_get_args_t, get, .self = handle);
  TT_PJRT_ARGS(tt_pjrt_size_args_t, count, .self = NULL);
  if (!executable) status = TT_ERROR(OUT_OF_MEMORY, "no memory for an executable");
  if (!status) status = TT_CALL(plugin, LoadedExecutable_GetExecutable, &get);
  if (!status) {
    count.self = get.result;
    status = TT_CALL(plugin, Executable_NumOutputs, &count);
    TT_PJRT_ARGS(tt_pjrt_ref_args_t, destroy, .self = get.result);
    tt__plugin_ignore(plugin, plugin->api->Executable_Destroy(&destroy));
  }
  if (status) {
    TT_PJRT_ARGS(tt_pjrt_ref_args_t, destroy, .self = handle);
    tt__plugin_ignore(plugin, plugin->api->LoadedExecutable_Destroy(&destroy));
    tt_free(executable);
    return status;
  }
  atomic_init(&executable->refs, 1);
  executable->client = client;
  tt__client_retain(client);
  executable->handle = handle;
  executable->output_count = (uint32_t)count.value;
  *out_executable = executable;
  return TT_OK_STATUS;
}

static tt_status_t compile_text(tt_client_t *client, const char *text, size_t size,
                                tt_executable_t **out_executable) {
  TT_RETURN_IF_ERROR(tt__plugin_check_fork());
  tt_compile_options_t options = {.portable = true};
  char *bytes;
  size_t bytes_size;
  TT_RETURN_IF_ERROR(tt__options_encode(&options, &bytes, &bytes_size));
  tt_pjrt_program_t program = {.struct_size = sizeof program,
                               .code = (char *)(uintptr_t)text,
                               .code_size = size,
                               .format = "mlir",
                               .format_size = 4};
  TT_PJRT_ARGS(tt_pjrt_client_compile_args_t, args, .client = client->handle, .program = &program,
               .options = bytes, .options_size = bytes_size);
  tt_status_t status = TT_CALL(client->plugin, Client_Compile, &args);
  tt_free(bytes);
  if (status) return status;
  return wrap(client, args.executable, out_executable);
}

tt_status_t tt_client_compile_text(tt_client_t *client, const char *text, size_t size,
                                   tt_executable_t **out_executable) {
  *out_executable = NULL;
  return compile_text(client, text, size, out_executable);
}

// The graph as a text of StableHLO alone.
static tt_status_t print_plain(const tt_graph_t *graph, char **out_text, size_t *out_size) {
  tt_graph_t *plain;
  TT_RETURN_IF_ERROR(tt_graph_clone(graph, &plain));
  tt_status_t status = tt_expand_chlo(plain);
  if (!status) status = tt_graph_print(plain, out_text, out_size);
  tt_graph_destroy(plain);
  return status;
}

static tt_status_t compile_graph(tt_client_t *client, const tt_graph_t *graph,
                                 tt_executable_t **out_executable) {
  char *text;
  size_t size;
  TT_RETURN_IF_ERROR(print_plain(graph, &text, &size));
  tt_status_t status = compile_text(client, text, size, out_executable);
  tt_free(text);
  if (status) return status;
  uint32_t count = graph->main->arg_count;
  int32_t *donations = tt_alloc_zeroed(sizeof *donations * (count + 1));
  if (!donations) {
    tt_executable_release(*out_executable);
    *out_executable = NULL;
    return TT_ERROR(OUT_OF_MEMORY, "no memory for an executable");
  }
  if (graph->donations && count) memcpy(donations, graph->donations, sizeof *donations * count);
  (*out_executable)->donations = donations;
  (*out_executable)->input_count = count;
  return TT_OK_STATUS;
}

tt_status_t tt_client_compile(tt_client_t *client, const tt_graph_t *graph,
                              tt_executable_t **out_executable) {
  *out_executable = NULL;
  if (!client->ext) return compile_graph(client, graph, out_executable);
  void *handle;
  TT_RETURN_IF_ERROR(
      tt__plugin_status(client->plugin, client->ext->compile(client->handle, graph, &handle)));
  return wrap(client, handle, out_executable);
}

void tt_executable_release(tt_executable_t *executable) {
  if (!executable || atomic_fetch_sub(&executable->refs, 1) != 1) return;
  const tt_plugin_t *plugin = executable->client->plugin;
  TT_PJRT_ARGS(tt_pjrt_ref_args_t, args, .self = executable->handle);
  tt__plugin_ignore(plugin, plugin->api->LoadedExecutable_Destroy(&args));
  tt_client_destroy(executable->client);
  tt_free(executable->donations);
  tt_free(executable);
}

uint32_t tt_executable_output_count(const tt_executable_t *executable) {
  return executable->output_count;
}

// --- running -------------------------------------------------------------------------------------

// Room for a call's tables: a few on the stack, many from the heap.
static void *room(void *small, size_t small_size, size_t size) {
  return size <= small_size ? small : tt_alloc(size);
}

static void unwrap_outputs(tt_buffer_t **buffers, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (buffers[i]) tt__buffer_unwrap(buffers[i]);
    buffers[i] = NULL;
  }
}

// Headers before the run: it must not fail for want of them when it has consumed its inputs.
static tt_status_t make_outputs(tt_executable_t *executable, uint32_t device,
                                tt_buffer_t **buffers) {
  for (uint32_t i = 0; i < executable->output_count; i++) {
    buffers[i] = tt__buffer_wrap(executable->client, device, NULL);
    if (!buffers[i]) {
      unwrap_outputs(buffers, i);
      return TT_ERROR(OUT_OF_MEMORY, "no memory for a buffer");
    }
  }
  return TT_OK_STATUS;
}

static tt_status_t execute_soft(tt_executable_t *executable, uint32_t device,
                                const tt_input_t *inputs, uint32_t count, tt_buffer_t **buffers) {
  const tt_client_t *client = executable->client;
  tt_soft_operand_t small[SMALL_COUNT];
  void *small_outputs[SMALL_COUNT];
  uint32_t outputs = executable->output_count;
  tt_soft_operand_t *operands = room(small, sizeof small, sizeof *small * count);
  void **handles = room(small_outputs, sizeof small_outputs, sizeof(void *) * outputs);
  tt_status_t status = TT_OK_STATUS;
  if (!operands || !handles) status = TT_ERROR(OUT_OF_MEMORY, "no memory for a call");
  for (uint32_t i = 0; i < count && !status; i++) {
    const tt_input_t *in = &inputs[i];
    operands[i] = (tt_soft_operand_t){
        in->buffer ? in->buffer->handle : NULL, in->dtype, false, {in->bits[0], in->bits[1]}};
  }
  if (!status) {
    status = tt__plugin_status(
        client->plugin, client->ext->execute(executable->handle, client->devices[device].handle,
                                             operands, count, handles));
  }
  for (uint32_t i = 0; i < outputs && !status; i++) {
    buffers[i]->handle = handles[i];
    buffers[i]->bytes = client->ext->bytes(handles[i]);
  }
  if (operands != small) tt_free(operands);
  if (handles != small_outputs) tt_free(handles);
  return status;
}

// --- on other plugins ----------------------------------------------------------------------------

// The device's lock is held from finding scalars in the cache to the end of the call.
static void put_scalar(const tt_plugin_t *plugin, tt_scalar_t *entry, const tt_input_t *input,
                       void *buffer) {
  if (entry->buffer) {
    TT_PJRT_ARGS(tt_pjrt_ref_args_t, args, .self = entry->buffer);
    tt__plugin_ignore(plugin, plugin->api->Buffer_Destroy(&args));
  }
  *entry = (tt_scalar_t){input->dtype, {input->bits[0], input->bits[1]}, buffer};
}

// A rank-0 value as a buffer: the last one with this place in the cache, or a new one that takes
// it. `used`: places that this call's other scalars need.
static tt_status_t scalar_buffer(tt_client_t *client, tt_client_device_t *device,
                                 const tt_input_t *input, uint64_t *used, void **out_handle,
                                 bool *out_owned) {
  uint64_t hash =
      (input->bits[0] ^ input->bits[1] * 31 ^ input->dtype) * UINT64_C(0x9e3779b97f4a7c15);
  uint32_t place = (uint32_t)(hash >> 58);
  tt_scalar_t *entry = &device->scalars[place];
  *out_owned = false;
  if (entry->buffer && entry->dtype == input->dtype && entry->bits[0] == input->bits[0] &&
      entry->bits[1] == input->bits[1]) {
    *used |= UINT64_C(1) << place;
    *out_handle = entry->buffer;
    return TT_OK_STATUS;
  }
  tt_type_t type = {(tt_dtype_t)input->dtype, 0, NULL};
  int64_t no_dims = 0;
  TT_PJRT_ARGS(tt_pjrt_upload_args_t, args, .client = client->handle, .data = input->bits,
               .type = tt__type_number(type.dtype), .dims = &no_dims,
               .semantics = TT_PJRT_HOST_ONLY_DURING_CALL, .device = device->handle);
  TT_RETURN_IF_ERROR(TT_CALL(client->plugin, Client_BufferFromHostBuffer, &args));
  TT_PJRT_ARGS(tt_pjrt_ref_args_t, done, .self = args.done);
  tt__plugin_ignore(client->plugin, client->plugin->api->Event_Destroy(&done));
  *out_handle = args.buffer;
  *out_owned = (*used >> place & 1) != 0;
  if (!*out_owned) {
    put_scalar(client->plugin, entry, input, args.buffer);
    *used |= UINT64_C(1) << place;
  }
  return TT_OK_STATUS;
}

// A call's tables, in one block.
typedef struct call_s {
  void **handles;  // [input]
  int64_t *kept;   // inputs that are not donated
  void **outputs;  // [output]
  bool *owned;     // [input] a scalar's buffer of this call alone
  uint32_t kept_count;
} call_t;

static tt_status_t bind(tt_executable_t *executable, tt_client_device_t *device,
                        const tt_input_t *inputs, uint32_t count, call_t *call) {
  uint64_t used = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (inputs[i].buffer) {
      call->handles[i] = inputs[i].buffer->handle;
    } else {
      // A cached value must outlive the call, whatever the program says.
      call->kept[call->kept_count++] = i;
      TT_RETURN_IF_ERROR(scalar_buffer(executable->client, device, &inputs[i], &used,
                                       &call->handles[i], &call->owned[i]));
    }
  }
  return TT_OK_STATUS;
}

static tt_status_t run(tt_executable_t *executable, tt_client_device_t *device, uint32_t count,
                       call_t *call) {
  const tt_plugin_t *plugin = executable->client->plugin;
  tt_fence_t *fence = tt__fence_create(plugin);
  if (!fence) return TT_ERROR(OUT_OF_MEMORY, "no memory for a call");
  tt_pjrt_execute_options_t options = {.struct_size = sizeof options,
                                       .non_donatable = call->kept,
                                       .non_donatable_count = call->kept_count};
  void *done = NULL;
  void *const *arguments = call->handles;
  void **outputs = call->outputs;
  TT_PJRT_ARGS(tt_pjrt_execute_args_t, args, .executable = executable->handle, .options = &options,
               .arguments = &arguments, .device_count = 1, .argument_count = count,
               .outputs = &outputs, .done = &done, .device = device->handle);
  tt_status_t status = TT_CALL(plugin, LoadedExecutable_Execute, &args);
  if (!status && tt__fence_follow(fence, done) == TT_OK_STATUS) {
    tt__fence_release(device->last);
    device->last = fence;
  } else {
    tt__fence_release(fence);
  }
  return status;
}

static void drop_owned(const tt_plugin_t *plugin, const call_t *call, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (!call->owned[i]) continue;
    TT_PJRT_ARGS(tt_pjrt_ref_args_t, args, .self = call->handles[i]);
    tt__plugin_ignore(plugin, plugin->api->Buffer_Destroy(&args));
  }
}

// What the program consumed no longer counts. A text's donations are known to its plugin only.
static void uncount_donated(const tt_executable_t *executable, const tt_input_t *inputs,
                            uint32_t count) {
  const tt_plugin_t *plugin = executable->client->plugin;
  for (uint32_t i = 0; i < count; i++) {
    if (!inputs[i].buffer) continue;
    bool donated = executable->donations && executable->donations[i] != TT_KEEP;
    if (!executable->donations) {
      TT_PJRT_ARGS(tt_pjrt_bool_args_t, args, .self = inputs[i].buffer->handle);
      tt_status_t status = TT_CALL(plugin, Buffer_IsDeleted, &args);
      donated = !status && args.value;
      tt_status_release(status);
    }
    if (donated) tt__buffer_uncount(inputs[i].buffer);
  }
}

// One block for all tables of the call. The lock is held to the call's end, since a cached scalar
// may be replaced by another call's as soon as it is given up.
static tt_status_t execute_foreign(tt_executable_t *executable, uint32_t device,
                                   const tt_input_t *inputs, uint32_t count,
                                   tt_buffer_t **buffers) {
  TT_RETURN_IF_ERROR(tt__plugin_check_fork());
  tt_client_t *client = executable->client;
  tt_client_device_t *d = &client->devices[device];
  uint32_t outputs = executable->output_count;
  char small[SMALL_COUNT * 32];
  size_t size =
      count * (sizeof(void *) + sizeof(int64_t) + sizeof(bool)) + outputs * sizeof(void *) + 1;
  char *block = room(small, sizeof small, size);
  if (!block) return TT_ERROR(OUT_OF_MEMORY, "no memory for a call");
  memset(block, 0, size);
  call_t call = {.handles = (void **)block};
  call.kept = (int64_t *)(call.handles + count);
  call.outputs = (void **)(call.kept + count);
  call.owned = (bool *)(call.outputs + outputs);
  pthread_mutex_lock(&d->mutex);
  tt_status_t status = bind(executable, d, inputs, count, &call);
  if (!status) status = run(executable, d, count, &call);
  drop_owned(client->plugin, &call, count);
  pthread_mutex_unlock(&d->mutex);
  if (!status) uncount_donated(executable, inputs, count);
  for (uint32_t i = 0; i < outputs && !status; i++) {
    buffers[i]->handle = call.outputs[i];
    tt__buffer_count(buffers[i]);
  }
  if (block != small) tt_free(block);
  return status;
}

tt_status_t tt_executable_execute(tt_executable_t *executable, uint32_t device,
                                  const tt_input_t *inputs, uint32_t input_count,
                                  tt_buffer_t **out_buffers) {
  tt_client_t *client = executable->client;
  TT_RETURN_IF_ERROR(tt__client_check_device(client, device));
  if (executable->donations && input_count != executable->input_count) {
    return TT_ERROR(INVALID_ARGUMENT, "the program takes %u arguments and was given %u",
                    executable->input_count, input_count);
  }
  TT_RETURN_IF_ERROR(make_outputs(executable, device, out_buffers));
  tt_status_t status = client->ext
                           ? execute_soft(executable, device, inputs, input_count, out_buffers)
                           : execute_foreign(executable, device, inputs, input_count, out_buffers);
  if (status) unwrap_outputs(out_buffers, executable->output_count);
  return status;
}
