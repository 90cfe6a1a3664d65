// The software TPU's device from inside: allocator, queue, events, failures of runs, joint runs.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "ir/build.h"
#include "softtpu/device.h"
#include "test.h"

enum { N = 1 << 15 };

static tt_device_t devices[2];

static tt_type_t type_of(const int64_t *n) { return (tt_type_t){TT_F32, 1, n}; }

// main(x) = (x + x) * x, or, deep, a thousand additions
static tt_program_t *make_program(int64_t n, int depth, int32_t donation) {
  tt_graph_t *graph;
  tt_program_t *program = NULL;
  EXPECT_OK(tt_graph_create("main", &graph));
  tt_value_t x;
  EXPECT_OK(tt_graph_argument(graph, graph->main, type_of(&n), &x));
  tt_build_t b = tt_build_on(graph, graph->main);
  tt_value_t y = x;
  for (int i = 0; i < depth; i++) y = tt_emit_binary(&b, TT_OP_ADD, y, x);
  EXPECT_OK(tt_build_finish(&b));
  EXPECT_OK(tt_graph_return(graph, graph->main, &y, 1));
  graph->donations[0] = donation;
  EXPECT_OK(tt_program_create(graph, false, &program));
  tt_graph_destroy(graph);
  return program;
}

static tt_array_t *make_array(tt_device_t *device, int64_t n, float value) {
  tt_type_t type = type_of(&n);
  tt_array_t *array = NULL;
  EXPECT_OK(tt_array_create(device, &type, &array));
  for (int64_t i = 0; i < n; i++) ((float *)array->data)[i] = value;
  return array;
}

static void expect_all(tt_array_t *array, int64_t n, float value) {
  const void *data;
  EXPECT_OK(tt_array_hold(array, &data));
  int wrong = 0;
  for (int64_t i = 0; i < n; i++) wrong += ((const float *)data)[i] != value;
  EXPECT_INT(wrong, 0);
  tt_array_drop(array);
}

// A task that holds up a queue until it is told.
typedef struct gate_s {
  tt_task_t base;
  tt_queue_event_t *open;
} gate_t;

static void run_gate(tt_task_t *task) {
  gate_t *gate = (gate_t *)task;
  EXPECT_OK(tt_queue_event_await(gate->open));
  tt_queue_event_release(gate->open);
  tt_free(gate);
}

static tt_queue_event_t *close_gate(tt_device_t *device) {
  gate_t *gate = tt_alloc(sizeof *gate);
  tt_queue_event_t *open = tt_queue_event_create();
  *gate = (gate_t){{NULL, run_gate}, open};
  tt_queue_event_retain(open);
  pthread_mutex_lock(&device->mutex);
  EXPECT_OK(tt_queue_push(&device->queue, &gate->base));
  pthread_mutex_unlock(&device->mutex);
  return open;
}

static void open_gate(tt_queue_event_t *gate) {
  tt_queue_event_set(gate, TT_OK_STATUS);
  tt_queue_event_release(gate);
}

static void count_call(void *context, tt_status_t error) {
  int *calls = context;
  *calls += error ? 100 : 1;
}

TEST(events) {
  int calls = 0;
  tt_queue_event_t *event = tt_queue_event_create();
  EXPECT(!tt_queue_event_is_done(event));
  EXPECT_INT(tt_queue_event_time(event), 0);
  EXPECT(tt_queue_event_on_done(event, count_call, &calls));
  EXPECT_INT(calls, 0);
  tt_queue_event_set(event, TT_ERROR(INTERNAL, "once"));
  EXPECT_INT(calls, 100);
  tt_queue_event_set(event, TT_OK_STATUS);  // only the first counts
  EXPECT(tt_queue_event_failed(event) && !tt_queue_event_observed(event));
  EXPECT_ERROR(tt_queue_event_await(event), "once");
  EXPECT(tt_queue_event_observed(event));
  EXPECT(tt_queue_event_on_done(event, count_call, &calls));
  EXPECT_INT(calls, 200);
  EXPECT(tt_queue_event_time(event) > 0);
  tt_queue_event_release(event);
}

TEST(allocator_classes) {
  tt_memory_t memory;
  _Atomic uint64_t completed = 0;
  tt_memory_init(&memory, 3, (int64_t)1 << 40, &completed);
  int64_t expected = 0;
  void *blocks[200];
  size_t sizes[200];
  for (int i = 0; i < 200; i++) {
    sizes[i] = (size_t)(i * i * 97 % 300000) + (i % 7 == 0 ? 0 : 1);
    EXPECT_OK(tt_memory_allocate(&memory, sizes[i], false, &blocks[i]));
    EXPECT_INT((uintptr_t)blocks[i] % 64, 0);
    if (sizes[i]) memset(blocks[i], i, sizes[i]);
    expected += (int64_t)((sizes[i] + 63) / 64 * 64);
  }
  EXPECT_INT(memory.in_use, expected);
  for (int i = 0; i < 200; i++) {
    if (sizes[i]) EXPECT_INT(((unsigned char *)blocks[i])[sizes[i] - 1], (unsigned char)i);
    tt_memory_free(&memory, blocks[i], sizes[i], 0);
  }
  EXPECT_INT(memory.in_use, 0);
  EXPECT_INT(memory.peak, expected);
  EXPECT_INT(memory.cached, memory.reserved);
  EXPECT_ERROR(tt_memory_allocate(&memory, (size_t)1 << 41, false, &blocks[0]), "tpu:3");
  tt_memory_deinit(&memory);
  EXPECT_INT(memory.reserved, 0);
}

TEST(allocator_order) {
  tt_memory_t memory;
  _Atomic uint64_t completed = 4;
  tt_memory_init(&memory, 0, (int64_t)1 << 30, &completed);
  void *a, *b;
  EXPECT_OK(tt_memory_allocate(&memory, 1000, false, &a));
  tt_memory_free(&memory, a, 1000, 5);  // work 5 may still write to it
  EXPECT_OK(tt_memory_allocate(&memory, 1000, true, &b));
  EXPECT(a != b);
  tt_memory_free(&memory, b, 1000, 5);
  tt_memory_trim(&memory);
  EXPECT_INT(memory.cached, 2048);  // neither may go
  EXPECT_OK(tt_memory_allocate(&memory, 1000, false, &a));
  EXPECT(a == b);  // later work may have it, the newest first
  tt_memory_free(&memory, a, 1000, 6);
  atomic_store(&completed, 6);
  EXPECT_OK(tt_memory_allocate(&memory, 1000, true, &a));
  EXPECT(a == b);
  tt_memory_free(&memory, a, 1000, 6);
  tt_memory_deinit(&memory);
}

TEST(allocator_gives_back) {
  tt_memory_t memory;
  _Atomic uint64_t completed = 0;
  tt_memory_init(&memory, 0, (int64_t)4 << 30, &completed);
  for (size_t mib = 1; mib <= 200; mib++) {  // ever larger blocks: the smaller ones are of no use
    void *data;
    EXPECT_OK(tt_memory_allocate(&memory, mib << 20, false, &data));
    tt_memory_free(&memory, data, mib << 20, 0);
  }
  EXPECT(memory.reserved < (int64_t)400 << 20);
  tt_memory_deinit(&memory);
}

TEST(queued_run) {
  tt_program_t *program = make_program(N, 50, TT_KEEP);
  tt_array_t *x = make_array(&devices[0], N, 2), *y;
  tt_queue_event_t *gate = close_gate(&devices[0]), *done;
  tt_operand_t in = {.array = x};
  EXPECT_OK(tt_device_execute(&devices[0], program, &in, 1, &y, &done));
  EXPECT(done && !tt_queue_event_is_done(done) && !tt_array_is_ready(y));
  tt_array_release(x);  // the queue keeps what it needs
  open_gate(gate);
  expect_all(y, N, 102);
  EXPECT_OK(tt_queue_event_await(done));
  tt_queue_event_release(done);
  tt_array_release(y);
  tt_program_release(program);
}

TEST(small_run_waits_its_turn) {
  tt_program_t *program = make_program(4, 1, TT_KEEP);
  tt_array_t *x = make_array(&devices[0], 4, 2), *y, *z;
  tt_operand_t in = {.array = x};
  EXPECT_OK(tt_device_synchronize(&devices[0]));
  EXPECT_OK(tt_device_execute(&devices[0], program, &in, 1, &y, NULL));
  EXPECT(y->ready == NULL);  // was run by this thread
  tt_queue_event_t *gate = close_gate(&devices[0]);
  in.array = y;
  EXPECT_OK(tt_device_execute(&devices[0], program, &in, 1, &z, NULL));
  EXPECT(!tt_array_is_ready(z));
  open_gate(gate);
  expect_all(z, 4, 8);
  tt_array_release(x);
  tt_array_release(y);
  tt_array_release(z);
  tt_program_release(program);
}

// A run fails: its outputs and what is computed from them fail, the device goes on.
TEST(failure_surfaces) {
  setenv("TORCHTPU_ENGINE", "reference", 1);
  tt_program_t *program = make_program(N, 20, TT_KEEP);
  unsetenv("TORCHTPU_ENGINE");
  tt_array_t *x = make_array(&devices[0], N, 1), *y, *z, *w;
  tt_queue_event_t *gate = close_gate(&devices[0]);
  tt_operand_t in = {.array = x};
  EXPECT_OK(tt_device_execute(&devices[0], program, &in, 1, &y, NULL));
  in.array = y;
  EXPECT_OK(tt_device_execute(&devices[0], program, &in, 1, &z, NULL));
  tt_alloc_fail_at(1);
  open_gate(gate);
  const void *data;
  tt_status_t status = tt_device_synchronize(&devices[0]);
  EXPECT_INT(tt_status_code(status), TT_OUT_OF_MEMORY);
  tt_status_release(status);
  EXPECT_OK(tt_device_synchronize(&devices[0]));  // it is told once
  status = tt_array_hold(y, &data);
  EXPECT_INT(tt_status_code(status), TT_OUT_OF_MEMORY);
  tt_status_release(status);
  status = tt_array_hold(z, &data);
  EXPECT_INT(tt_status_code(status), TT_OUT_OF_MEMORY);
  tt_status_release(status);
  in.array = x;
  EXPECT_OK(tt_device_execute(&devices[0], program, &in, 1, &w, NULL));
  expect_all(w, N, 21);
  EXPECT_OK(tt_device_synchronize(&devices[0]));
  tt_array_release(x);
  tt_array_release(y);
  tt_array_release(z);
  tt_array_release(w);
  tt_program_release(program);
}

// Every allocation of a call fails once: nothing is lost and nothing half done.
TEST(no_memory_anywhere) {
  tt_program_t *programs[] = {make_program(4, 1, TT_DONATE), make_program(N, 60, TT_DONATE)};
  for (int p = 0; p < 2; p++) {
    int64_t n = p ? N : 4;
    float sum = p ? 61 : 2;
    for (int64_t nth = 1; nth < 40; nth++) {
      tt_array_t *x = make_array(&devices[0], n, 1), *y = NULL;
      int64_t in_use = devices[0].memory.in_use;
      tt_operand_t in = {.array = x};
      tt_alloc_fail_at(nth);
      tt_status_t status = tt_device_execute(&devices[0], programs[p], &in, 1, &y, NULL);
      tt_alloc_fail_at(0);
      if (status) {
        EXPECT_INT(tt_status_code(status), TT_OUT_OF_MEMORY);
        EXPECT_INT(devices[0].memory.in_use, in_use);
        EXPECT(!tt_array_is_deleted(x));
        tt_status_release(status);
      } else {
        const void *data;
        status = tt_array_hold(y, &data);  // the run itself may have met the failure
        if (!status) tt_array_drop(y);
        if (!status) expect_all(y, n, sum);
        tt_status_release(status);
        EXPECT(tt_array_is_deleted(x));
        tt_array_release(y);
      }
      tt_array_release(x);
      tt_status_release(tt_device_synchronize(&devices[0]));
    }
    tt_program_release(programs[p]);
  }
}

TEST(copies_between_devices) {
  tt_program_t *program = make_program(N, 30, TT_KEEP);
  tt_array_t *x = make_array(&devices[0], N, 1), *y, *z, *w;
  tt_queue_event_t *gate = close_gate(&devices[0]);
  tt_operand_t in = {.array = x};
  EXPECT_OK(tt_device_execute(&devices[0], program, &in, 1, &y, NULL));
  EXPECT_OK(tt_array_copy(y, &devices[1], &z));
  in.array = z;
  EXPECT_OK(tt_device_execute(&devices[1], program, &in, 1, &w, NULL));
  tt_array_release(x);
  tt_array_release(y);
  tt_array_release(z);
  open_gate(gate);
  expect_all(w, N, 31 * 31);
  tt_array_release(w);
  tt_program_release(program);
  EXPECT_INT(devices[1].memory.in_use, 0);
}

static void count_end(void *data, void *context) {
  (void)data;
  ++*(_Atomic int *)context;
}

TEST(foreign_memory) {
  static float data[N] __attribute__((aligned(64)));
  for (int i = 0; i < N; i++) data[i] = 3;
  int64_t n = N;
  _Atomic int ends = 0;
  tt_type_t type = type_of(&n);
  tt_array_t *x, *y;
  EXPECT_OK(tt_array_wrap(&devices[0], &type, data, count_end, &ends, &x));
  tt_program_t *program = make_program(N, 40, 1);
  tt_queue_event_t *gate = close_gate(&devices[0]);
  tt_operand_t in = {.array = x};
  EXPECT_OK(tt_device_execute(&devices[0], program, &in, 1, &y, NULL));
  EXPECT(tt_array_is_deleted(x));  // donated, and yet not written to
  tt_array_release(x);
  EXPECT_INT(ends, 0);  // the queue still reads it
  open_gate(gate);
  expect_all(y, N, 123);
  EXPECT_OK(tt_device_synchronize(&devices[0]));
  EXPECT_INT(ends, 1);
  EXPECT_INT((int)data[N - 1], 3);
  tt_array_release(y);
  tt_program_release(program);
}

TEST(held_memory) {
  tt_array_t *x = make_array(&devices[0], 100, 1);
  int64_t in_use = devices[0].memory.in_use;
  const void *data;
  EXPECT_OK(tt_array_pin(x, &data));
  tt_array_delete(x);
  EXPECT(tt_array_is_deleted(x));
  EXPECT_INT(devices[0].memory.in_use, in_use);
  EXPECT_INT((int)((const float *)data)[99], 1);
  tt_array_drop(x);
  EXPECT_INT(devices[0].memory.in_use, in_use - 448);
  const void *none;
  EXPECT_ERROR(tt_array_pin(x, &none), "deleted");
  tt_array_release(x);
}

TEST(joint_run) {
  const char *text =
      "module attributes {mhlo.num_replicas = 2 : i32} {\n"
      "  func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = \"stablehlo.all_reduce\"(%arg0) <{replica_groups = dense<[[0, 1]]> : "
      "tensor<1x2xi64>}> ({\n"
      "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "      %1 = stablehlo.add %a, %b : tensor<f32>\n"
      "      stablehlo.return %1 : tensor<f32>\n"
      "    }) : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n";
  tt_graph_t *graph = NULL;
  tt_program_t *program = NULL;
  EXPECT_OK(tt_graph_parse(text, strlen(text), &graph));
  if (!graph) return;
  graph->replica_count = 2;
  EXPECT_OK(tt_program_create(graph, false, &program));
  tt_graph_destroy(graph);
  if (!program) return;
  EXPECT(program->collective);
  for (int round = 0; round < 20; round++) {
    tt_array_t *x[2] = {make_array(&devices[0], 4, 1), make_array(&devices[1], 4, 10)};
    tt_operand_t in[2] = {{.array = x[0]}, {.array = x[1]}};
    const tt_operand_t *inputs[2] = {&in[0], &in[1]};
    tt_array_t *y[2] = {NULL, NULL};
    tt_array_t **outputs[2] = {&y[0], &y[1]};
    tt_queue_event_t *done[2];
    tt_device_t *both[2] = {&devices[0], &devices[1]};
    EXPECT_OK(tt_device_execute_together(both, 2, program, inputs, 1, outputs, done));
    for (int d = 0; d < 2; d++) {
      expect_all(y[d], 4, 11);
      EXPECT_OK(tt_queue_event_await(done[d]));
      tt_queue_event_release(done[d]);
      tt_array_release(y[d]);
      tt_array_release(x[d]);
    }
  }
  tt_program_release(program);
}

int main(void) {
  setbuf(stdout, NULL);
  for (uint32_t d = 0; d < 2; d++) EXPECT_OK(tt_device_init(&devices[d], d, 64 << 20));
  (void)tt_device_pool();
  int64_t live = tt_alloc_live();
  void (*const tests[])(void) = {
      events,           allocator_classes,
      allocator_order,  allocator_gives_back,
      queued_run,       small_run_waits_its_turn,
      failure_surfaces, copies_between_devices,
      foreign_memory,   held_memory,
      joint_run,        no_memory_anywhere,
  };
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tests[i]();
  for (uint32_t d = 0; d < 2; d++) {
    EXPECT_INT(devices[d].memory.in_use, 0);
    tt_device_deinit(&devices[d]);
  }
  // Blocks of memory below 2 MiB, freed with their devices, may have been there before.
  EXPECT(tt_alloc_live() <= live);
  if (tt_test_failures) printf("%d failures\n", tt_test_failures);
  return tt_test_failures != 0;
}
