// Running programs. Under the device's lock a run is checked, gets its outputs and arena from the
// allocator, and is either done on the spot (small, nothing pending) or put into the queue. The
// allocator hands out memory in queue order, which is why all this is one critical section: between
// choosing memory and taking a place in the queue nobody else may.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/device.h"
#include "softtpu/reference.h"

// Work of less than this many nanoseconds is done by the caller when nothing is pending: handing it
// to another thread costs as much.
#define INLINE_COST 20000
// Arguments and results for which a run needs no allocation of its own.
#define SMALL_COUNT 16

// What one run needs, on the stack or behind a task. `waits`, `copies` and `originals` are NULL
// where unused. Pointers are final when the run is enqueued: arrays may lose their memory
// afterwards, the run keeps the addresses and the queue's order keeps the memory.
typedef struct run_s {
  tt_program_t *program;
  tt_device_t *device;
  void *arena;
  const void **inputs;
  void **outputs;
  const void **copies;  // [output] what to put in it first: an input that could not be taken over
  const void **originals;  // [input] what to put in it first: it may not be written, this is a copy
  tt_queue_event_t **waits;  // retained: arguments that are not ready or have failed
  uint32_t wait_count;
  uint64_t (*scalars)[2];
} run_t;

// A queued run; its tables lie behind it in the same allocation.
typedef struct run_task_s {
  tt_task_t base;
  run_t run;
  tt_queue_event_t *event;
  struct group_s *group;  // NULL: on its own
} run_task_t;

static tt_status_t mismatch(const tt_program_t *program, uint32_t index, const tt_type_t *got) {
  char want_text[96], got_text[96];
  tt_type_format(program->input_types[index], want_text, sizeof want_text);
  tt_type_format(got, got_text, sizeof got_text);
  return TT_ERROR(INVALID_ARGUMENT, "argument %u of the program is %s, not %s", index, want_text,
                  got_text);
}

static bool fits(const tt_type_t *want, const tt_array_t *array) {
  return want->dtype == array->dtype && want->rank == array->rank &&
         memcmp(want->dims, array->dims, sizeof(int64_t) * want->rank) == 0;
}

// Checks every argument and counts its uses: an array that is passed twice cannot be written to.
// *out_ready: all may be read now, none has failed.
static tt_status_t check_inputs(const run_t *run, const tt_operand_t *inputs, bool *out_ready) {
  const tt_program_t *program = run->program;
  bool ready = true;
  for (uint32_t i = 0; i < program->input_count; i++) {
    tt_array_t *array = inputs[i].array;
    const tt_type_t *want = program->input_types[i];
    if (!array) {
      tt_type_t got = {(tt_dtype_t)inputs[i].dtype, 0, NULL};
      if (want->rank != 0 || want->dtype != got.dtype) return mismatch(program, i, &got);
      continue;
    }
    if (array->device != run->device) {
      return TT_ERROR(INVALID_ARGUMENT, "argument %u is on tpu:%u and the program runs on tpu:%u",
                      i, array->device->ordinal, run->device->ordinal);
    }
    if (!array->data) {
      return TT_ERROR(INVALID_ARGUMENT, "argument %u has been deleted or donated", i);
    }
    if (!fits(want, array)) {
      tt_type_t got = tt_array_type(array);
      return mismatch(program, i, &got);
    }
    array->uses = 0;
    if (array->ready &&
        (!tt_queue_event_is_done(array->ready) || tt_queue_event_failed(array->ready))) {
      ready = false;
    }
  }
  for (uint32_t i = 0; i < program->input_count; i++) {
    if (inputs[i].array) inputs[i].array->uses++;
  }
  *out_ready = ready;
  return TT_OK_STATUS;
}

// Whether the caller gives the array up, which it then loses even where its memory is not reused.
static bool donated(const tt_program_t *program, const tt_operand_t *inputs, uint32_t i) {
  return program->donations[i] != TT_KEEP && !inputs[i].keep && inputs[i].array;
}

// Whether the program may write to the argument's memory: nobody else can see it.
static bool may_take(const tt_program_t *program, const tt_operand_t *inputs, uint32_t i) {
  const tt_array_t *array = inputs[i].array;
  return donated(program, inputs, i) && array->uses == 1 && array->holds == 0 && !array->foreign;
}

static void bind_inputs(run_t *run, const tt_operand_t *inputs) {
  for (uint32_t i = 0; i < run->program->input_count; i++) {
    if (inputs[i].array) {
      run->inputs[i] = inputs[i].array->data;
    } else {
      run->scalars[i][0] = inputs[i].bits[0];
      run->scalars[i][1] = inputs[i].bits[1];
      run->inputs[i] = run->scalars[i];
    }
  }
}

// Undoes make_output for the first `count`.
static void discard_outputs(tt_array_t **outputs, uint32_t count, const run_t *run,
                            const tt_operand_t *inputs) {
  for (uint32_t i = 0; i < count; i++) {
    int32_t alias = run->program->aliases[i];
    if (alias >= 0 && inputs[alias].array && outputs[i]->data == inputs[alias].array->data) {
      outputs[i]->data = NULL;  // still the argument's
    }
    tt__array_discard(outputs[i]);
    outputs[i] = NULL;
  }
}

// A plan that writes an output over an input does so always. Where the input may not be written,
// the output starts as a copy of it and takes its place as the input.
static tt_status_t make_output(run_t *run, const tt_operand_t *inputs, uint32_t i,
                               tt_array_t **out_array) {
  const tt_program_t *program = run->program;
  const tt_type_t *type = program->output_types[i];
  size_t bytes = program->output_bytes[i];
  // The joint executor of talking devices wants results that overlap no argument.
  int32_t alias = run->copies ? program->aliases[i] : -1;
  if (alias >= 0 && may_take(program, inputs, (uint32_t)alias)) {
    *out_array = tt__array_header(run->device, type, bytes, inputs[alias].array->data);
    if (!*out_array) return TT_ERROR(OUT_OF_MEMORY, "no host memory for an array");
  } else {
    TT_RETURN_IF_ERROR(tt__array_allocate(run->device, type, bytes, false, out_array));
    if (alias >= 0) {
      run->copies[i] = run->inputs[alias];
      run->inputs[alias] = (*out_array)->data;
    }
  }
  run->outputs[i] = (*out_array)->data;
  return TT_OK_STATUS;
}

static size_t input_bytes(const run_t *run, uint32_t i) {
  return tt_type_bytes(run->program->input_types[i]);
}

// The arena and the copies go back at once: only work after this run can get them.
static void free_scratch(const run_t *run) {
  tt_memory_t *memory = &run->device->memory;
  uint64_t until = run->device->queue.enqueued;
  tt_memory_free(memory, run->arena, run->program->arena_bytes, until);
  for (uint32_t i = 0; run->originals && i < run->program->input_count; i++) {
    if (!run->originals[i]) continue;
    tt_memory_free(memory, (void *)(uintptr_t)run->inputs[i], input_bytes(run, i), until);
  }
}

// A plan that keeps its own values in an input's place does so always. Where that may not be
// written, a copy serves.
static tt_status_t copy_inputs(run_t *run, const tt_operand_t *inputs) {
  if (!run->originals) return TT_OK_STATUS;
  for (uint32_t i = 0; i < run->program->input_count; i++) run->originals[i] = NULL;
  for (uint32_t i = 0; i < run->program->input_count; i++) {
    void *copy = NULL;
    if (!run->program->borrows[i] || !inputs[i].array || may_take(run->program, inputs, i))
      continue;
    TT_RETURN_IF_ERROR(tt_memory_allocate(&run->device->memory, input_bytes(run, i), false, &copy));
    run->originals[i] = run->inputs[i];
    run->inputs[i] = copy;
  }
  return TT_OK_STATUS;
}

static tt_status_t make_scratch(run_t *run, const tt_operand_t *inputs) {
  TT_RETURN_IF_ERROR(
      tt_memory_allocate(&run->device->memory, run->program->arena_bytes, false, &run->arena));
  tt_status_t status = copy_inputs(run, inputs);
  if (status) free_scratch(run);
  return status;
}

static tt_status_t make_outputs(run_t *run, const tt_operand_t *inputs, tt_array_t **outputs) {
  for (uint32_t i = 0; i < run->program->output_count; i++) {
    if (run->copies) run->copies[i] = NULL;
    tt_status_t status = make_output(run, inputs, i, &outputs[i]);
    if (status) {
      discard_outputs(outputs, i, run, inputs);
      return status;
    }
  }
  tt_status_t status = make_scratch(run, inputs);
  if (status) discard_outputs(outputs, run->program->output_count, run, inputs);
  return status;
}

// Donated arrays lose their memory: to the output that took it over, else to the allocator.
static void consume_inputs(const run_t *run, const tt_operand_t *inputs, tt_array_t **outputs) {
  const tt_program_t *program = run->program;
  if (run->copies) {
    for (uint32_t i = 0; i < program->output_count; i++) {
      int32_t alias = program->aliases[i];
      if (alias < 0 || !inputs[alias].array) continue;
      if (inputs[alias].array->data == outputs[i]->data) inputs[alias].array->data = NULL;
    }
  }
  for (uint32_t i = 0; i < program->input_count; i++) {
    if (donated(program, inputs, i)) tt__array_free_memory(inputs[i].array);
  }
}

// Without the lock, after it: tells the owners of donated foreign memory.
static void end_foreign_inputs(const tt_program_t *program, const tt_operand_t *inputs) {
  for (uint32_t i = 0; i < program->input_count; i++) {
    if (donated(program, inputs, i) && inputs[i].array->foreign) {
      tt__array_end_foreign(inputs[i].array);
    }
  }
}

static tt_status_t run_plan(const run_t *run, tt_pool_t *pool) {
  for (uint32_t i = 0; i < run->program->output_count; i++) {
    if (run->copies[i]) memcpy(run->outputs[i], run->copies[i], run->program->output_bytes[i]);
  }
  for (uint32_t i = 0; i < run->program->input_count; i++) {
    if (!run->originals[i]) continue;
    memcpy((void *)(uintptr_t)run->inputs[i], run->originals[i], input_bytes(run, i));
  }
  return tt_plan_run(run->program->plan, pool, run->inputs, run->outputs, run->arena);
}

// The device remembers the first failure until somebody hears of it.
static void record_failure(tt_device_t *device, tt_queue_event_t *event) {
  if (device->failure && !tt_queue_event_observed(device->failure)) return;
  tt_queue_event_release(device->failure);
  tt_queue_event_retain(event);
  device->failure = event;
}

// --- queued runs ---

// Arguments made by other devices' queues may be pending still; the first failure is passed on.
static tt_status_t await_inputs(const run_t *run) {
  tt_status_t status = TT_OK_STATUS;
  for (uint32_t i = 0; i < run->wait_count; i++) {
    status = tt_status_join(status, tt_queue_event_follow(run->waits[i]));
  }
  return status;
}

// `is_new`: the failure is this run's own and not an argument's, which is recorded elsewhere.
static void finish_task(run_task_t *task, tt_status_t status, bool is_new) {
  tt_device_t *device = task->run.device;
  tt_queue_event_set(task->event, status);
  if (status && is_new) {
    pthread_mutex_lock(&device->mutex);
    record_failure(device, task->event);
    pthread_mutex_unlock(&device->mutex);
  }
  tt_queue_event_release(task->event);
  for (uint32_t i = 0; i < task->run.wait_count; i++) tt_queue_event_release(task->run.waits[i]);
  tt_program_release(task->run.program);
  tt_free(task);
}

static void run_task(tt_task_t *base) {
  run_task_t *task = (run_task_t *)base;
  tt_status_t status = await_inputs(&task->run);
  bool is_new = !status;
  if (!status) status = run_plan(&task->run, tt_device_pool());
  finish_task(task, status, is_new);
}

// A task with all its tables in one block. `take`: outputs may take over inputs' memory.
static run_task_t *make_task(tt_program_t *program, tt_device_t *device, bool take) {
  size_t inputs = program->input_count, outputs = program->output_count;
  size_t size = sizeof(run_task_t) + inputs * (2 * sizeof(uint64_t) + 3 * sizeof(void *)) +
                outputs * 2 * sizeof(void *);
  run_task_t *task = tt_alloc(size);
  tt_queue_event_t *event = tt_queue_event_create();
  if (!task || !event) {
    tt_free(task);
    tt_queue_event_release(event);
    return NULL;
  }
  memset(task, 0, sizeof *task);
  task->base.run = run_task;
  task->event = event;
  run_t *run = &task->run;
  run->program = program;
  run->device = device;
  run->scalars = (uint64_t(*)[2])(task + 1);
  run->inputs = (const void **)(run->scalars + inputs);
  run->waits = (tt_queue_event_t **)(run->inputs + inputs);
  run->outputs = (void **)(run->waits + inputs);
  run->copies = take ? (const void **)(run->outputs + outputs) : NULL;
  run->originals = take ? (const void **)(run->outputs + 2 * outputs) : NULL;
  tt_program_retain(program);
  return task;
}

static void drop_task(run_task_t *task) {
  tt_queue_event_release(task->event);
  tt_program_release(task->run.program);
  tt_free(task);
}

// Includes arguments of this very queue: they are done when the task runs, but may have failed.
static void collect_waits(run_t *run, const tt_operand_t *inputs) {
  run->wait_count = 0;
  for (uint32_t i = 0; i < run->program->input_count; i++) {
    tt_queue_event_t *ready = inputs[i].array ? inputs[i].array->ready : NULL;
    if (!ready || (tt_queue_event_is_done(ready) && !tt_queue_event_failed(ready))) continue;
    tt_queue_event_retain(ready);
    run->waits[run->wait_count++] = ready;
  }
}

// The lock is held from here to push: what is bound here stays what it is.
static tt_status_t prepare(run_task_t *task, const tt_operand_t *inputs, tt_array_t **outputs) {
  bool ready;
  TT_RETURN_IF_ERROR(check_inputs(&task->run, inputs, &ready));
  bind_inputs(&task->run, inputs);
  return make_outputs(&task->run, inputs, outputs);
}

// After the push, which cannot be undone and after which nothing here can fail.
static void commit(run_task_t *task, const tt_operand_t *inputs, tt_array_t **outputs) {
  collect_waits(&task->run, inputs);
  for (uint32_t i = 0; i < task->run.program->output_count; i++) {
    outputs[i]->ready = task->event;
    tt_queue_event_retain(task->event);
  }
  consume_inputs(&task->run, inputs, outputs);
  free_scratch(&task->run);
}

static void undo(run_task_t *task, const tt_operand_t *inputs, tt_array_t **outputs) {
  discard_outputs(outputs, task->run.program->output_count, &task->run, inputs);
  free_scratch(&task->run);
}

// Nothing is final before the push has succeeded: donations and the outputs' events are commit's,
// which cannot fail.
static tt_status_t execute_queued(tt_device_t *device, tt_program_t *program,
                                  const tt_operand_t *inputs, tt_array_t **outputs,
                                  tt_queue_event_t **out_done) {
  run_task_t *task = make_task(program, device, true);
  if (!task) return TT_ERROR(OUT_OF_MEMORY, "no host memory for a run");
  tt_status_t status = prepare(task, inputs, outputs);
  if (!status) {
    if (out_done) {
      tt_queue_event_retain(task->event);
      *out_done = task->event;
    }
    status = tt_queue_push(&device->queue, &task->base);
    if (!status) {
      commit(task, inputs, outputs);
      return TT_OK_STATUS;
    }
    undo(task, inputs, outputs);
    if (out_done) {
      tt_queue_event_release(*out_done);
      *out_done = NULL;
    }
  }
  drop_task(task);
  return status;
}

// --- runs by the caller ---

// A failed run's outputs share an event that says so.
static tt_status_t fail_outputs(run_t *run, tt_array_t **outputs, tt_status_t failure,
                                tt_queue_event_t **out_done) {
  tt_queue_event_t *event = tt_queue_event_create_done(failure);
  if (!event) return TT_ERROR(OUT_OF_MEMORY, "no host memory for an event");
  record_failure(run->device, event);
  for (uint32_t i = 0; i < run->program->output_count; i++) {
    tt_queue_event_retain(event);
    outputs[i]->ready = event;
  }
  if (out_done) {
    tt_queue_event_retain(event);
    *out_done = event;
  }
  tt_queue_event_release(event);
  return TT_OK_STATUS;
}

// On the caller's thread with the lock held: less than INLINE_COST, so nobody waits long.
// *out_taken false: an argument is not ready, the run has to be queued.
static tt_status_t execute_inline(tt_device_t *device, tt_program_t *program,
                                  const tt_operand_t *inputs, tt_array_t **outputs,
                                  tt_queue_event_t **out_done, bool *out_taken) {
  const void *input_pointers[SMALL_COUNT], *copies[SMALL_COUNT], *originals[SMALL_COUNT];
  void *output_pointers[SMALL_COUNT];
  uint64_t scalars[SMALL_COUNT][2];
  run_t run = {.program = program,
               .device = device,
               .inputs = input_pointers,
               .outputs = output_pointers,
               .copies = copies,
               .originals = originals,
               .scalars = scalars};
  bool ready;
  *out_taken = true;
  TT_RETURN_IF_ERROR(check_inputs(&run, inputs, &ready));
  *out_taken = ready;
  if (!ready) return TT_OK_STATUS;
  bind_inputs(&run, inputs);
  TT_RETURN_IF_ERROR(make_outputs(&run, inputs, outputs));
  consume_inputs(&run, inputs, outputs);
  tt_status_t failure = run_plan(&run, NULL);
  free_scratch(&run);
  return failure ? fail_outputs(&run, outputs, failure, out_done) : TT_OK_STATUS;
}

static bool is_small(const tt_program_t *program) {
  return program->cost < INLINE_COST && program->input_count <= SMALL_COUNT &&
         program->output_count <= SMALL_COUNT;
}

static tt_status_t check_count(const tt_program_t *program, uint32_t input_count) {
  if (input_count == program->input_count) return TT_OK_STATUS;
  return TT_ERROR(INVALID_ARGUMENT, "the program takes %u arguments and was given %u",
                  program->input_count, input_count);
}

tt_status_t tt_device_execute(tt_device_t *device, tt_program_t *program,
                              const tt_operand_t *inputs, uint32_t input_count,
                              tt_array_t **outputs, tt_queue_event_t **out_done) {
  if (out_done) *out_done = NULL;
  TT_RETURN_IF_ERROR(tt_device_check());
  TT_RETURN_IF_ERROR(check_count(program, input_count));
  pthread_mutex_lock(&device->mutex);
  tt_queue_throttle(&device->queue);
  tt_status_t status = TT_OK_STATUS;
  bool taken = false;
  if (is_small(program) && tt_queue_is_idle(&device->queue)) {
    status = execute_inline(device, program, inputs, outputs, out_done, &taken);
  }
  if (!taken) status = execute_queued(device, program, inputs, outputs, out_done);
  pthread_mutex_unlock(&device->mutex);
  if (!status) end_foreign_inputs(program, inputs);
  return status;
}

// --- devices that talk to each other ---

// The last device to arrive runs all of them; the others wait.
// Shared by the tasks of a joint run; the last one to leave frees it.
typedef struct group_s {
  _Atomic uint32_t missing, refs;
  uint32_t count;
  tt_queue_event_t *finished;
  run_task_t *tasks[];
} group_t;

// All members have arrived: their queues stand here until the joint run is done.
static tt_status_t run_group(group_t *group) {
  tt_status_t status = TT_OK_STATUS;
  const void *const **inputs = tt_alloc(sizeof *inputs * group->count);
  void *const **outputs = tt_alloc(sizeof *outputs * group->count);
  if (!inputs || !outputs) status = TT_ERROR(OUT_OF_MEMORY, "no host memory for a joint run");
  for (uint32_t d = 0; d < group->count && !status; d++) {
    status = await_inputs(&group->tasks[d]->run);
    inputs[d] = group->tasks[d]->run.inputs;
    outputs[d] = group->tasks[d]->run.outputs;
  }
  if (!status) {
    status = tt_reference_run_replicas(group->tasks[0]->run.program->graph, group->count, inputs,
                                       outputs);
  }
  tt_free(inputs);
  tt_free(outputs);
  return status;
}

static void release_group(group_t *group) {
  if (atomic_fetch_sub(&group->refs, 1) != 1) return;
  tt_queue_event_release(group->finished);
  tt_free(group);
}

// Every member reports the failure as new: each device has to tell its own user.
static void run_member(tt_task_t *base) {
  run_task_t *task = (run_task_t *)base;
  group_t *group = task->group;
  if (atomic_fetch_sub(&group->missing, 1) == 1)
    tt_queue_event_set(group->finished, run_group(group));
  tt_status_t status = tt_queue_event_await(group->finished);
  release_group(group);
  finish_task(task, status, true);
}

// A group belongs to its members: the last to finish frees it.
static group_t *make_group(tt_device_t *const *devices, uint32_t count, tt_program_t *program) {
  group_t *group = tt_alloc_zeroed(sizeof *group + sizeof(run_task_t *) * count);
  tt_queue_event_t *finished = tt_queue_event_create();
  bool ok = group && finished;
  for (uint32_t d = 0; d < count && ok; d++) {
    group->tasks[d] = make_task(program, devices[d], false);
    ok = group->tasks[d] != NULL;
    if (ok) group->tasks[d]->base.run = run_member;
    if (ok) group->tasks[d]->group = group;
  }
  if (!ok) {
    for (uint32_t d = 0; group && d < count && group->tasks[d]; d++) drop_task(group->tasks[d]);
    tt_queue_event_release(finished);
    tt_free(group);
    return NULL;
  }
  atomic_init(&group->missing, count);
  atomic_init(&group->refs, count);
  group->count = count;
  group->finished = finished;
  return group;
}

// All locks are held: every queue gets its member of this group before a member of another one.
static tt_status_t enqueue_group(group_t *group, const tt_operand_t *const *inputs,
                                 tt_array_t **const *outputs, tt_queue_event_t **out_done) {
  tt_status_t status = TT_OK_STATUS;
  uint32_t ready = 0, pushed = 0;
  for (; ready < group->count && !status; ready++) {
    status = prepare(group->tasks[ready], inputs[ready], outputs[ready]);
    if (status) break;
  }
  for (uint32_t d = 0; d < group->count && !status; d++) {
    tt_queue_t *queue = &group->tasks[d]->run.device->queue;
    if (out_done) {
      tt_queue_event_retain(group->tasks[d]->event);
      out_done[d] = group->tasks[d]->event;
    }
    // Only the start of a thread can fail, and then no member has been pushed: start them all
    // first.
    status = tt_queue_start(queue);
  }
  for (; pushed < group->count && !status; pushed++) {
    status = tt_queue_push(&group->tasks[pushed]->run.device->queue, &group->tasks[pushed]->base);
    if (!status) commit(group->tasks[pushed], inputs[pushed], outputs[pushed]);
  }
  if (!status) return TT_OK_STATUS;
  for (uint32_t d = 0; d < ready; d++) undo(group->tasks[d], inputs[d], outputs[d]);
  for (uint32_t d = 0; out_done && d < group->count; d++) {
    tt_queue_event_release(out_done[d]);
    out_done[d] = NULL;
  }
  return status;
}

// In the order of addresses, so that two groups never wait for each other's locks.
static tt_device_t *next_device(tt_device_t *const *devices, uint32_t count, tt_device_t *after) {
  tt_device_t *next = NULL;
  for (uint32_t d = 0; d < count; d++) {
    if (devices[d] > after && (!next || devices[d] < next)) next = devices[d];
  }
  return next;
}

// A device twice would wait for itself.
static tt_status_t check_group(tt_device_t *const *devices, uint32_t count,
                               const tt_program_t *program) {
  for (uint32_t d = 0; d < count; d++) {
    for (uint32_t e = 0; e < d; e++) {
      if (devices[d] == devices[e]) {
        return TT_ERROR(INVALID_ARGUMENT, "tpu:%u appears twice in one run", devices[d]->ordinal);
      }
    }
  }
  uint32_t wanted = program->replica_count * program->partition_count;
  if (wanted != 1 && wanted != count) {
    return TT_ERROR(INVALID_ARGUMENT, "the program is for %u devices and was given %u", wanted,
                    count);
  }
  return TT_OK_STATUS;
}

tt_status_t tt_device_execute_together(tt_device_t *const *devices, uint32_t device_count,
                                       tt_program_t *program, const tt_operand_t *const *inputs,
                                       uint32_t input_count, tt_array_t **const *outputs,
                                       tt_queue_event_t **out_done) {
  for (uint32_t d = 0; out_done && d < device_count; d++) out_done[d] = NULL;
  TT_RETURN_IF_ERROR(tt_device_check());
  TT_RETURN_IF_ERROR(check_count(program, input_count));
  TT_RETURN_IF_ERROR(check_group(devices, device_count, program));
  group_t *group = make_group(devices, device_count, program);
  if (!group) return TT_ERROR(OUT_OF_MEMORY, "no host memory for a joint run");
  tt_device_t *device = NULL;
  while ((device = next_device(devices, device_count, device))) pthread_mutex_lock(&device->mutex);
  tt_status_t status = enqueue_group(group, inputs, outputs, out_done);
  if (status) {
    for (uint32_t d = 0; d < device_count; d++) drop_task(group->tasks[d]);
    tt_queue_event_release(group->finished);
    tt_free(group);
  }
  for (uint32_t d = 0; d < device_count; d++) pthread_mutex_unlock(&devices[d]->mutex);
  for (uint32_t d = 0; d < device_count && !status; d++) end_foreign_inputs(program, inputs[d]);
  return status;
}
