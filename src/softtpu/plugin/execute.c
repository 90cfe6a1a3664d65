// Execution: arguments from the interface's tables into operands, then one run a device, or one for
// all where they talk to each other.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plugin/plugin.h"

// A context has nothing to hold; it is an address that differs from others.
tt_pjrt_error_t *tt__soft_ExecuteContext_Create(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  a->self = tt_alloc(1);
  if (!a->self) return tt__soft_error(TT_ERROR(OUT_OF_MEMORY, "no host memory for a context"));
  return NULL;
}

tt_pjrt_error_t *tt__soft_ExecuteContext_Destroy(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  tt_free(a->self);
  return NULL;
}

// Whether this call takes back the donation that the program declares.
static bool is_kept(const tt_pjrt_execute_options_t *options, uint32_t index) {
  if (!options || !TT_PJRT_HAS(options, non_donatable_count)) return false;
  for (size_t i = 0; i < options->non_donatable_count; i++) {
    if (options->non_donatable[i] == (int64_t)index) return true;
  }
  return false;
}

static void bind(const tt_pjrt_execute_args_t *a, size_t device, tt_operand_t *operands) {
  for (uint32_t i = 0; i < a->argument_count; i++) {
    operands[i] = (tt_operand_t){.array = a->arguments[device][i], .keep = is_kept(a->options, i)};
  }
}

// Whoever wants an event gets one, also for what is done already.
static tt_status_t hand_over(tt_pjrt_execute_args_t *a, size_t device, tt_queue_event_t *done) {
  if (!a->done) {
    tt_queue_event_release(done);
    return TT_OK_STATUS;
  }
  if (!done) done = tt_queue_event_create_done(TT_OK_STATUS);
  a->done[device] = done;
  return done ? TT_OK_STATUS : TT_ERROR(OUT_OF_MEMORY, "no host memory for an event");
}

static tt_status_t execute_on(tt_pjrt_execute_args_t *a, size_t index, tt_soft_device_t *device,
                              tt_operand_t *operands) {
  tt_soft_executable_t *executable = a->executable;
  tt_queue_event_t *done;
  bind(a, index, operands);
  TT_RETURN_IF_ERROR(tt_device_execute(&device->device, executable->program, operands,
                                       (uint32_t)a->argument_count,
                                       (tt_array_t **)a->outputs[index], &done));
  return hand_over(a, index, done);
}

// The tables differ in type only: lists of arrays are lists of buffers.
static tt_status_t execute_together(tt_pjrt_execute_args_t *a, tt_operand_t *operands) {
  tt_soft_executable_t *executable = a->executable;
  size_t count = a->device_count;
  tt_device_t **devices = tt_alloc(sizeof(void *) * count);
  const tt_operand_t **lists = tt_alloc(sizeof(void *) * count);
  tt_queue_event_t **done = tt_alloc(sizeof(void *) * count);
  tt_status_t status = TT_OK_STATUS;
  if (!devices || !lists || !done) {
    status = TT_ERROR(OUT_OF_MEMORY, "no host memory for a joint run");
  }
  for (size_t d = 0; d < count && !status; d++) {
    devices[d] = &executable->devices[d]->device;
    lists[d] = operands + d * a->argument_count;
    bind(a, d, operands + d * a->argument_count);
  }
  if (!status) {
    status = tt_device_execute_together(devices, (uint32_t)count, executable->program, lists,
                                        (uint32_t)a->argument_count,
                                        (tt_array_t * *const *)a->outputs, done);
    for (size_t d = 0; d < count && !status; d++) status = hand_over(a, d, done[d]);
  }
  tt_free(devices);
  tt_free(lists);
  tt_free(done);
  return status;
}

// Devices that do not talk run one after another's enqueuing; a failure leaves those before it
// running and their outputs with the caller.
tt_pjrt_error_t *tt__soft_LoadedExecutable_Execute(tt_pjrt_execute_args_t *a) {
  TT_SOFT_CHECK(a, done);
  tt_soft_executable_t *executable = a->executable;
  if (!executable->client || atomic_load(&executable->deleted)) {
    return tt__soft_error(TT_ERROR(INVALID_ARGUMENT, "the executable %s",
                                   executable->client ? "has been deleted" : "is not loaded"));
  }
  tt_soft_device_t *only = TT_PJRT_HAS(a, device) ? a->device : NULL;
  if (a->device_count < 1 ||
      (only ? a->device_count != 1 : a->device_count != executable->device_count)) {
    return tt__soft_error(TT_ERROR(INVALID_ARGUMENT,
                                   "the executable is for %u devices and was given %zu",
                                   executable->device_count, a->device_count));
  }
  tt_operand_t small[16];
  size_t needed = a->argument_count * a->device_count;
  tt_operand_t *operands = needed <= 16 ? small : tt_alloc(sizeof *operands * needed);
  if (!operands) return tt__soft_error(TT_ERROR(OUT_OF_MEMORY, "no host memory for arguments"));
  tt_status_t status = TT_OK_STATUS;
  if (a->device_count > 1 && executable->program->collective) {
    status = execute_together(a, operands);
  } else {
    for (size_t d = 0; d < a->device_count && !status; d++) {
      status = execute_on(a, d, only ? only : executable->devices[d], operands);
    }
  }
  if (operands != small) tt_free(operands);
  return tt__soft_error(status);
}
