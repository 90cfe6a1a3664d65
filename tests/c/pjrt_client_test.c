// The client against a plugin: the software TPU, or the one that TORCHTPU_PLUGIN names. What only
// the software TPU promises is in pjrt_soft_test.c.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "ir/build.h"
#include "pjrt/client.h"
#include "test.h"

static tt_client_t *client;

static tt_type_t vector(const int64_t *n) { return (tt_type_t){TT_F32, 1, n}; }

// main(x, y) = op(x, y) over f32[n]; y of rank 0 where `scalar`.
static tt_graph_t *binary_graph(tt_op_t op, int64_t n, bool scalar, int32_t donation) {
  tt_graph_t *graph;
  EXPECT_OK(tt_graph_create("main", &graph));
  tt_type_t type = vector(&n), rank0 = {TT_F32, 0, NULL};
  tt_value_t x, y;
  EXPECT_OK(tt_graph_argument(graph, graph->main, type, &x));
  EXPECT_OK(tt_graph_argument(graph, graph->main, scalar ? rank0 : type, &y));
  tt_build_t b = tt_build_on(graph, graph->main);
  tt_value_t out = tt_emit_binary(&b, op, x, y);
  EXPECT_OK(tt_build_finish(&b));
  EXPECT_OK(tt_graph_return(graph, graph->main, &out, 1));
  graph->donations[0] = donation;
  return graph;
}

static tt_executable_t *compile_binary(tt_op_t op, int64_t n, bool scalar, int32_t donation) {
  tt_graph_t *graph = binary_graph(op, n, scalar, donation);
  tt_executable_t *executable = NULL;
  EXPECT_OK(tt_client_compile(client, graph, &executable));
  tt_graph_destroy(graph);
  return executable;
}

static tt_buffer_t *upload(uint32_t device, int64_t n, float first, float step) {
  float *data = malloc(sizeof(float) * (size_t)(n + 1));
  for (int64_t i = 0; i < n; i++) data[i] = first + step * (float)i;
  tt_type_t type = vector(&n);
  tt_buffer_t *buffer = NULL;
  EXPECT_OK(tt_buffer_create(client, device, &type, data, &buffer));
  memset(data, 0x7f, sizeof(float) * (size_t)n);  // the copy was made before the call returned
  free(data);
  return buffer;
}

static void expect_ramp(tt_buffer_t *buffer, int64_t n, float first, float step) {
  float *data = calloc((size_t)n + 1, sizeof(float));
  EXPECT_OK(tt_buffer_read(buffer, data, sizeof(float) * (size_t)n));
  int wrong = 0;
  for (int64_t i = 0; i < n; i++) wrong += data[i] != first + step * (float)i;
  EXPECT_INT(wrong, 0);
  free(data);
}

static tt_input_t in(tt_buffer_t *buffer) { return (tt_input_t){.buffer = buffer}; }

static tt_input_t scalar(float value) {
  tt_input_t input = {.dtype = TT_F32};
  memcpy(input.bits, &value, sizeof value);
  return input;
}

TEST(names) {
  EXPECT(tt_client_device_count(client) >= 1);
  EXPECT(strlen(tt_client_platform(client)) > 0);
  EXPECT(strlen(tt_client_platform_version(client)) > 0);
  EXPECT(strlen(tt_client_device_kind(client, 0)) > 0);
  EXPECT_STR(tt_client_device_kind(client, 999), "");
}

TEST(upload_and_read) {
  int64_t sizes[] = {0, 1, 5, 1000};
  for (int i = 0; i < 4; i++) {
    tt_buffer_t *buffer = upload(0, sizes[i], 1, 2);
    EXPECT_INT(tt_buffer_bytes(buffer), sizes[i] * 4);
    EXPECT_OK(tt_buffer_await(buffer));
    EXPECT(tt_buffer_is_ready(buffer));
    expect_ramp(buffer, sizes[i], 1, 2);
    tt_buffer_release(buffer);
  }
}

TEST(read_checks_size) {
  tt_buffer_t *buffer = upload(0, 4, 0, 1);
  float data[8];
  EXPECT_ERROR(tt_buffer_read(buffer, data, 20), "20 bytes");
  tt_buffer_release(buffer);
}

TEST(execute) {
  tt_executable_t *add = compile_binary(TT_OP_ADD, 5, false, TT_KEEP);
  EXPECT_INT(tt_executable_output_count(add), 1);
  tt_buffer_t *x = upload(0, 5, 1, 1), *y = upload(0, 5, 10, 10), *z = NULL;
  tt_input_t inputs[] = {in(x), in(y)};
  EXPECT_OK(tt_executable_execute(add, 0, inputs, 2, &z));
  expect_ramp(z, 5, 11, 11);
  expect_ramp(x, 5, 1, 1);  // kept
  tt_buffer_release(x);
  tt_buffer_release(y);
  tt_buffer_release(z);
  tt_executable_release(add);
}

TEST(scalars_in_the_call) {
  tt_executable_t *multiply = compile_binary(TT_OP_MULTIPLY, 4, true, TT_KEEP);
  tt_buffer_t *x = upload(0, 4, 1, 1);
  for (int i = 0; i < 300; i++) {  // more values than the cache has places
    tt_buffer_t *z = NULL;
    tt_input_t inputs[] = {in(x), scalar((float)(i % 150))};
    EXPECT_OK(tt_executable_execute(multiply, 0, inputs, 2, &z));
    expect_ramp(z, 4, (float)(i % 150), (float)(i % 150));
    tt_buffer_release(z);
  }
  tt_buffer_release(x);
  tt_executable_release(multiply);
}

TEST(chain) {
  enum { N = 4096, STEPS = 200 };
  tt_executable_t *add = compile_binary(TT_OP_ADD, N, true, TT_DONATE);
  tt_buffer_t *x = upload(0, N, 0, 1);
  for (int i = 0; i < STEPS; i++) {
    tt_input_t inputs[] = {in(x), scalar(1)};
    tt_buffer_t *z = NULL;
    EXPECT_OK(tt_executable_execute(add, 0, inputs, 2, &z));
    tt_buffer_release(x);
    x = z;
  }
  expect_ramp(x, N, STEPS, 1);
  tt_buffer_release(x);
  tt_executable_release(add);
}

TEST(donated_is_dead) {
  tt_executable_t *add = compile_binary(TT_OP_ADD, 64, false, 1);
  tt_buffer_t *x = upload(0, 64, 1, 1), *y = upload(0, 64, 1, 1), *z = NULL, *w = NULL;
  tt_input_t inputs[] = {in(x), in(y)};
  EXPECT_OK(tt_executable_execute(add, 0, inputs, 2, &z));
  expect_ramp(z, 64, 2, 2);
  float data[64];
  EXPECT_ERROR(tt_buffer_read(x, data, sizeof data), "donated");
  EXPECT_ERROR(tt_executable_execute(add, 0, inputs, 2, &w), "donated");
  EXPECT(w == NULL);
  expect_ramp(y, 64, 1, 1);
  tt_buffer_release(x);
  tt_buffer_release(y);
  tt_buffer_release(z);
  tt_executable_release(add);
}

TEST(wrong_arguments) {
  tt_executable_t *add = compile_binary(TT_OP_ADD, 8, false, TT_KEEP);
  tt_buffer_t *x = upload(0, 8, 1, 1), *z = NULL;
  tt_input_t inputs[] = {in(x), in(x), in(x)};
  EXPECT_ERROR(tt_executable_execute(add, 0, inputs, 1, &z), "1");
  EXPECT_ERROR(tt_executable_execute(add, 0, inputs, 3, &z), "3");
  EXPECT_ERROR(tt_executable_execute(add, 999, inputs, 2, &z), "999");
  EXPECT_OK(tt_executable_execute(add, 0, inputs, 2, &z));
  expect_ramp(z, 8, 2, 2);
  tt_buffer_release(x);
  tt_buffer_release(z);
  tt_executable_release(add);
}

// chlo ops reach every plugin: as themselves or written in StableHLO.
TEST(chlo) {
  tt_graph_t *graph;
  int64_t n = 5;
  tt_value_t x, y;
  EXPECT_OK(tt_graph_create("main", &graph));
  EXPECT_OK(tt_graph_argument(graph, graph->main, vector(&n), &x));
  tt_build_t b = tt_build_on(graph, graph->main);
  y = tt_emit_unary(&b, TT_OP_ERF, x);
  EXPECT_OK(tt_build_finish(&b));
  EXPECT_OK(tt_graph_return(graph, graph->main, &y, 1));
  tt_executable_t *executable = NULL;
  EXPECT_OK(tt_client_compile(client, graph, &executable));
  tt_graph_destroy(graph);
  if (!executable) return;
  tt_buffer_t *in_buffer = upload(0, n, -1, 0.5f), *out = NULL;
  tt_input_t inputs[] = {in(in_buffer)};
  EXPECT_OK(tt_executable_execute(executable, 0, inputs, 1, &out));
  float data[5];
  EXPECT_OK(tt_buffer_read(out, data, sizeof data));
  for (int i = 0; i < 5; i++) EXPECT(fabs(data[i] - erf(-1 + 0.5 * i)) < 1e-6);
  tt_buffer_release(in_buffer);
  tt_buffer_release(out);
  tt_executable_release(executable);
}

TEST(text) {
  const char *program =
      "module {\n"
      "  func.func @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {\n"
      "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
      "    %1 = stablehlo.multiply %0, %0 : tensor<4xf32>\n"
      "    return %0, %1 : tensor<4xf32>, tensor<4xf32>\n"
      "  }\n"
      "}\n";
  tt_executable_t *executable = NULL;
  EXPECT_OK(tt_client_compile_text(client, program, strlen(program), &executable));
  EXPECT_INT(tt_executable_output_count(executable), 2);
  tt_buffer_t *x = upload(0, 4, 3, 0), *out[2];
  tt_input_t inputs[] = {in(x)};
  EXPECT_OK(tt_executable_execute(executable, 0, inputs, 1, out));
  expect_ramp(out[0], 4, 6, 0);
  expect_ramp(out[1], 4, 36, 0);
  tt_buffer_release(x);
  tt_buffer_release(out[0]);
  tt_buffer_release(out[1]);
  tt_executable_release(executable);
}

TEST(bad_text) {
  const char *program = "func.func @main() -> tensor<f32> { return %nothing : tensor<f32> }";
  tt_executable_t *executable = NULL;
  EXPECT_ERROR(tt_client_compile_text(client, program, strlen(program), &executable), ":");
  EXPECT(executable == NULL);
}

TEST(markers) {
  tt_executable_t *add = compile_binary(TT_OP_ADD, 1 << 16, true, TT_KEEP);
  tt_marker_t *before, *after;
  EXPECT_OK(tt_marker_create(client, 0, &before));
  EXPECT_OK(tt_marker_await(before));
  tt_buffer_t *x = upload(0, 1 << 16, 0, 1), *z = NULL;
  for (int i = 0; i < 5; i++) {
    tt_input_t inputs[] = {in(x), scalar(1)};
    EXPECT_OK(tt_executable_execute(add, 0, inputs, 2, &z));
    tt_buffer_release(x);
    x = z;
  }
  EXPECT_OK(tt_marker_create(client, 0, &after));
  EXPECT_OK(tt_marker_await(after));
  EXPECT(tt_marker_is_done(after));
  EXPECT(tt_buffer_is_ready(x));
  EXPECT(tt_marker_time_ms(after) >= tt_marker_time_ms(before));
  tt_marker_release(before);
  tt_marker_release(after);
  tt_buffer_release(x);
  EXPECT_OK(tt_client_synchronize(client, 0));
  tt_executable_release(add);
}

TEST(memory_statistics) {
  tt_memory_stats_t before, during, after;
  EXPECT_OK(tt_client_memory_stats(client, 0, &before));
  tt_client_reset_peak(client, 0);
  tt_buffer_t *x = upload(0, 1 << 18, 0, 1);
  EXPECT_OK(tt_client_memory_stats(client, 0, &during));
  EXPECT_INT(during.bytes_in_use - before.bytes_in_use, 1 << 20);
  EXPECT_INT(during.live_allocations - before.live_allocations, 1);
  tt_buffer_release(x);
  EXPECT_OK(tt_client_memory_stats(client, 0, &after));
  EXPECT_INT(after.bytes_in_use, before.bytes_in_use);
  EXPECT_INT(after.peak_bytes_in_use - before.bytes_in_use, 1 << 20);
  tt_client_reset_peak(client, 0);
  EXPECT_OK(tt_client_memory_stats(client, 0, &after));
  EXPECT_INT(after.peak_bytes_in_use, after.bytes_in_use);
}

TEST(devices) {
  if (tt_client_device_count(client) < 2) return;
  tt_executable_t *add = compile_binary(TT_OP_ADD, 16, false, TT_KEEP);
  tt_buffer_t *x = upload(0, 16, 1, 1), *y = NULL, *z = NULL;
  EXPECT_OK(tt_buffer_copy_to_device(x, 1, &y));
  tt_input_t inputs[] = {in(y), in(y)};
  EXPECT_OK(tt_executable_execute(add, 1, inputs, 2, &z));
  expect_ramp(z, 16, 2, 2);
  tt_buffer_release(x);
  tt_buffer_release(y);
  tt_buffer_release(z);
  tt_executable_release(add);
}

TEST(two_clients) {
  const char *name = getenv("TORCHTPU_PLUGIN");
  tt_client_t *other = NULL, *first = client;
  EXPECT_OK(tt_client_create(name, &other));
  if (!other) return;
  client = other;
  execute();
  client = first;
  execute();
  // Its objects keep a client: the order of release does not matter.
  client = other;
  tt_buffer_t *x = upload(0, 3, 5, 1);
  tt_client_destroy(other);
  expect_ramp(x, 3, 5, 1);
  tt_buffer_release(x);
  client = first;
}

// Several threads run chains of their own on one device.
static void *thread_chain(void *argument) {
  tt_executable_t *add = argument;
  for (int round = 0; round < 20; round++) {
    tt_buffer_t *x = upload(0, 512, (float)round, 1);
    for (int i = 0; i < 10; i++) {
      tt_input_t inputs[] = {in(x), scalar(2)};
      tt_buffer_t *z = NULL;
      EXPECT_OK(tt_executable_execute(add, 0, inputs, 2, &z));
      tt_buffer_release(x);
      x = z;
    }
    expect_ramp(x, 512, (float)round + 20, 1);
    tt_buffer_release(x);
  }
  return NULL;
}

TEST(threads) {
  tt_executable_t *add = compile_binary(TT_OP_ADD, 512, true, TT_DONATE);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, thread_chain, add);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  tt_executable_release(add);
}

TEST(dtypes) {
  for (int d = 0; d < TT_DTYPE_COUNT; d++) {
    int64_t n = 3;
    tt_type_t type = {(tt_dtype_t)d, 1, &n};
    unsigned char data[48], back[48] = {0};
    for (int i = 0; i < 48; i++) data[i] = (unsigned char)(i & 1);
    tt_buffer_t *buffer = NULL;
    EXPECT_OK(tt_buffer_create(client, 0, &type, data, &buffer));
    if (!buffer) continue;
    EXPECT_OK(tt_buffer_read(buffer, back, tt_type_bytes(&type)));
    EXPECT(memcmp(data, back, tt_type_bytes(&type)) == 0);
    tt_buffer_release(buffer);
  }
}

int main(void) {
#ifdef TT_SOFTTPU_PATH
  setenv("TORCHTPU_SOFT_PATH", TT_SOFTTPU_PATH, 0);
#endif
  setenv("TORCHTPU_PLUGIN", "soft", 0);
  setenv("TORCHTPU_NUM_DEVICES", "2", 0);
  int64_t live = tt_alloc_live();
  EXPECT_OK(tt_client_create(getenv("TORCHTPU_PLUGIN"), &client));
  if (!client) return 1;
  void (*const tests[])(void) = {
      names,
      upload_and_read,
      read_checks_size,
      execute,
      scalars_in_the_call,
      chain,
      text,
      chlo,
      bad_text,
      donated_is_dead,
      wrong_arguments,
      markers,
      devices,
      threads,
      two_clients,
      dtypes,
      memory_statistics,
  };
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tests[i]();
  tt_client_destroy(client);
  // What stays is the plugin's entry and its path.
  EXPECT(tt_alloc_live() - live <= 2);
  if (tt_test_failures) printf("%d failures\n", tt_test_failures);
  return tt_test_failures != 0;
}
