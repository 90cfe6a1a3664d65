// What the software TPU promises beyond other plugins, through the client: a size, out of memory
// that changes nothing, clean errors after fork; and plugins that are none.
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ir/build.h"
#include "pjrt/client.h"
#include "test.h"

#define MIB (1 << 20)

static tt_client_t *client;

static tt_buffer_t *zeros(int64_t n) {
  tt_type_t type = {TT_U8, 1, &n};
  void *data = calloc((size_t)n, 1);
  tt_buffer_t *buffer = NULL;
  EXPECT_OK(tt_buffer_create(client, 0, &type, data, &buffer));
  free(data);
  return buffer;
}

// main(x) = (x + x, x + x + x) over u8[n]
static tt_executable_t *compile_twice(int64_t n, int32_t donation) {
  tt_graph_t *graph;
  EXPECT_OK(tt_graph_create("main", &graph));
  tt_type_t type = {TT_U8, 1, &n};
  tt_value_t x, out[2];
  EXPECT_OK(tt_graph_argument(graph, graph->main, type, &x));
  tt_build_t b = tt_build_on(graph, graph->main);
  out[0] = tt_emit_binary(&b, TT_OP_ADD, x, x);
  out[1] = tt_emit_binary(&b, TT_OP_ADD, out[0], x);
  EXPECT_OK(tt_build_finish(&b));
  EXPECT_OK(tt_graph_return(graph, graph->main, out, 2));
  graph->donations[0] = donation;
  tt_executable_t *executable = NULL;
  EXPECT_OK(tt_client_compile(client, graph, &executable));
  tt_graph_destroy(graph);
  return executable;
}

static tt_memory_stats_t stats(void) {
  tt_memory_stats_t s;
  EXPECT_OK(tt_client_memory_stats(client, 0, &s));
  return s;
}

TEST(names) {
  EXPECT_STR(tt_client_platform(client), "softtpu");
  EXPECT(tt_client_is_soft(client));
  EXPECT_INT(tt_client_device_count(client), 2);
}

TEST(upload_out_of_memory) {
  EXPECT_INT(stats().bytes_limit, 64 * MIB);
  int64_t n = 65 * MIB;
  tt_type_t type = {TT_U8, 1, &n};
  tt_buffer_t *buffer;
  char *data = calloc((size_t)n, 1);
  tt_status_t status = tt_buffer_create(client, 0, &type, data, &buffer);
  free(data);
  EXPECT_INT(tt_status_code(status), TT_OUT_OF_MEMORY);
  EXPECT_ERROR(status, "68157440 bytes");
}

TEST(execute_out_of_memory) {
  int64_t before = stats().bytes_in_use;
  tt_buffer_t *x = zeros(15 * MIB), *out[2] = {NULL, NULL};
  tt_executable_t *program = compile_twice(15 * MIB, TT_KEEP);
  tt_input_t input = {.buffer = x};
  tt_buffer_t *ballast = zeros(20 * MIB);
  tt_status_t status = tt_executable_execute(program, 0, &input, 1, out);
  EXPECT_INT(tt_status_code(status), TT_OUT_OF_MEMORY);
  EXPECT_ERROR(status, "in use");
  EXPECT(!out[0] && !out[1]);
  EXPECT_INT(stats().bytes_in_use - before, 35 * MIB);
  unsigned char *data = malloc(15 * MIB);
  EXPECT_OK(tt_buffer_read(x, data, 15 * MIB));  // not consumed
  tt_buffer_release(ballast);
  EXPECT_OK(tt_executable_execute(program, 0, &input, 1, out));  // and the device goes on
  EXPECT_OK(tt_buffer_read(out[1], data, 15 * MIB));
  EXPECT_INT(data[15 * MIB - 1], 0);
  free(data);
  tt_buffer_release(x);
  tt_buffer_release(out[0]);
  tt_buffer_release(out[1]);
  tt_executable_release(program);
  EXPECT_INT(stats().bytes_in_use, before);
}

// Work in the queue keeps using memory that the host has released; uploads must not touch it.
TEST(released_while_queued) {
  enum { N = 3 * MIB };
  tt_executable_t *program = compile_twice(N, TT_KEEP);
  unsigned char *data = malloc(N), *back = malloc(N);
  int64_t n = N;
  tt_type_t type = {TT_U8, 1, &n};
  tt_buffer_t *results[8];
  for (int i = 0; i < 8; i++) {
    memset(data, i + 1, N);
    tt_buffer_t *x, *out[2];
    EXPECT_OK(tt_buffer_create(client, 0, &type, data, &x));
    tt_input_t input = {.buffer = x};
    EXPECT_OK(tt_executable_execute(program, 0, &input, 1, out));
    tt_buffer_release(x);
    tt_buffer_release(out[0]);
    results[i] = out[1];
  }
  for (int i = 0; i < 8; i++) {
    EXPECT_OK(tt_buffer_read(results[i], back, N));
    int wrong = 0;
    for (int j = 0; j < N; j++) wrong += back[j] != (unsigned char)(3 * (i + 1));
    EXPECT_INT(wrong, 0);
    tt_buffer_release(results[i]);
  }
  free(data);
  free(back);
  tt_executable_release(program);
}

// The same array as the donated and as another argument: the program's result is as if it were two.
TEST(donated_and_used) {
  tt_graph_t *graph;
  int64_t n = 1000;
  tt_type_t type = {TT_U8, 1, &n};
  tt_value_t x, y;
  EXPECT_OK(tt_graph_create("main", &graph));
  EXPECT_OK(tt_graph_argument(graph, graph->main, type, &x));
  EXPECT_OK(tt_graph_argument(graph, graph->main, type, &y));
  tt_build_t b = tt_build_on(graph, graph->main);
  tt_value_t sum = tt_emit_binary(&b, TT_OP_ADD, x, y);
  tt_value_t out[2] = {tt_emit_binary(&b, TT_OP_ADD, sum, y), y};
  EXPECT_OK(tt_build_finish(&b));
  EXPECT_OK(tt_graph_return(graph, graph->main, out, 2));
  graph->donations[0] = 1;
  tt_executable_t *program = NULL;
  EXPECT_OK(tt_client_compile(client, graph, &program));
  tt_graph_destroy(graph);
  unsigned char data[1000];
  memset(data, 7, sizeof data);
  tt_buffer_t *buffer, *results[2];
  EXPECT_OK(tt_buffer_create(client, 0, &type, data, &buffer));
  tt_input_t inputs[2] = {{.buffer = buffer}, {.buffer = buffer}};
  EXPECT_OK(tt_executable_execute(program, 0, inputs, 2, results));
  EXPECT_OK(tt_buffer_read(results[0], data, sizeof data));
  EXPECT_INT(data[999], 21);
  EXPECT_OK(tt_buffer_read(results[1], data, sizeof data));
  EXPECT_INT(data[999], 7);
  EXPECT_ERROR(tt_buffer_read(buffer, data, sizeof data), "donated");
  tt_buffer_release(buffer);
  tt_buffer_release(results[0]);
  tt_buffer_release(results[1]);
  tt_executable_release(program);
}

// The same where the plan keeps a value of its own in the donated array's place.
TEST(donated_for_room_and_used) {
  tt_graph_t *graph;
  int64_t n = 1000;
  tt_type_t type = {TT_F32, 1, &n};
  tt_value_t x, y, sorted;
  EXPECT_OK(tt_graph_create("main", &graph));
  EXPECT_OK(tt_graph_argument(graph, graph->main, type, &x));
  EXPECT_OK(tt_graph_argument(graph, graph->main, type, &y));
  tt_build_t b = tt_build_on(graph, graph->main);
  tt_value_t twice = tt_emit_binary(&b, TT_OP_ADD, x, x);
  tt_emit_sort(&b, &twice, 1, 0, false, &sorted);
  tt_value_t out[2];
  out[0] = tt_emit_slice_dim(&b, sorted, 0, 0, 1, 1);
  int64_t dims[1] = {0};
  int64_t rest = n - 1;  // of another size, so that no output takes the place over
  tt_value_t least = tt_emit_broadcast_in_dim(&b, out[0], 1, &rest, (int64_t[]){0});
  out[1] = tt_emit_binary(&b, TT_OP_ADD, tt_emit_slice_dim(&b, y, 0, 1, n, 1), least);
  EXPECT_OK(tt_build_finish(&b));
  EXPECT_OK(tt_graph_return(graph, graph->main, out, 2));
  graph->donations[0] = TT_DONATE;
  tt_executable_t *program = NULL;
  EXPECT_OK(tt_client_compile(client, graph, &program));
  tt_graph_destroy(graph);
  float data[1000];
  for (int i = 0; i < 1000; i++) data[i] = (float)(i + 1);
  tt_buffer_t *buffer, *results[2];
  EXPECT_OK(tt_buffer_create(client, 0, &type, data, &buffer));
  tt_input_t inputs[2] = {{.buffer = buffer}, {.buffer = buffer}};
  EXPECT_OK(tt_executable_execute(program, 0, inputs, 2, results));
  float first;
  EXPECT_OK(tt_buffer_read(results[0], &first, sizeof first));
  EXPECT(first == 2);
  EXPECT_OK(tt_buffer_read(results[1], data, sizeof data - sizeof *data));
  EXPECT(data[998] == 1002);
  tt_buffer_release(buffer);
  tt_buffer_release(results[0]);
  tt_buffer_release(results[1]);
  tt_executable_release(program);
}

TEST(trim) {
  tt_buffer_release(zeros(16 * MIB));
  EXPECT_OK(tt_client_synchronize(client, 0));
  EXPECT(stats().bytes_reserved >= 16 * MIB);
  tt_client_trim(client, 0);
  EXPECT_INT(stats().bytes_reserved < 16 * MIB, 1);
}

TEST(other_devices_array) {
  tt_executable_t *program = compile_twice(10, TT_KEEP);
  tt_buffer_t *x = zeros(10), *out[2];
  tt_input_t input = {.buffer = x};
  EXPECT_ERROR(tt_executable_execute(program, 1, &input, 1, out), "tpu:0");
  tt_buffer_release(x);
  tt_executable_release(program);
}

TEST(fork_child) {
  tt_executable_t *program = compile_twice(10, TT_KEEP);
  tt_buffer_t *x = zeros(10), *out[2];
  tt_input_t input = {.buffer = x};
  pid_t child = fork();
  if (child == 0) {
    char data[10];
    int ok = 0;
    tt_status_t status = tt_executable_execute(program, 0, &input, 1, out);
    ok += status && strstr(tt_status_message(status), "forked") != NULL;
    status = tt_buffer_read(x, data, 10);
    ok += status && strstr(tt_status_message(status), "forked") != NULL;
    tt_buffer_release(x);
    tt_executable_release(program);
    tt_client_destroy(client);
    tt_client_t *fresh;
    status = tt_client_create("soft", &fresh);
    ok += status && strstr(tt_status_message(status), "forked") != NULL;
    _exit(ok == 3 ? 42 : ok);
  }
  int result;
  waitpid(child, &result, 0);
  EXPECT(WIFEXITED(result));
  EXPECT_INT(WEXITSTATUS(result), 42);
  EXPECT_OK(tt_executable_execute(program, 0, &input, 1, out));  // the parent goes on
  tt_buffer_release(x);
  tt_buffer_release(out[0]);
  tt_buffer_release(out[1]);
  tt_executable_release(program);
}

// MLIR bytecode as JAX sends it (VHLO 0.14, made by StableHLO's serializer) of
//   @main(x: f32[2,3], donated) = (reduce add from 0.5 over dimension 1, @neg(x))
// clang-format off
static const unsigned char bytecode[] = {
    0x4d, 0x4c, 0xef, 0x52, 0x09, 0x53, 0x74, 0x61, 0x62, 0x6c, 0x65, 0x48, 0x4c, 0x4f, 0x5f, 0x76,
    0x30, 0x2e, 0x31, 0x34, 0x2e, 0x30, 0x00, 0x01, 0x21, 0x05, 0x01, 0x05, 0x11, 0x01, 0x03, 0x05,
    0x03, 0x0f, 0x07, 0x09, 0x0b, 0x0d, 0x0f, 0x11, 0x13, 0x03, 0x73, 0x51, 0x13, 0x01, 0x37, 0x0b,
    0x13, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x13, 0x0b, 0x13, 0x33, 0x13, 0x33, 0x13, 0x13, 0x13, 0x13,
    0x13, 0x13, 0x0b, 0x13, 0x13, 0x0b, 0x13, 0x0b, 0x13, 0x13, 0x03, 0x1b, 0x0b, 0x0b, 0x0f, 0x13,
    0x0b, 0x0f, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x1f, 0x2f, 0x03, 0x13, 0x17, 0x0f, 0x07, 0x13, 0x07,
    0x1b, 0x17, 0x13, 0x07, 0x02, 0xca, 0x02, 0x05, 0x15, 0x17, 0x01, 0x09, 0x35, 0x05, 0x17, 0x05,
    0x19, 0x05, 0x1b, 0x05, 0x1d, 0x05, 0x1f, 0x03, 0x03, 0x05, 0x11, 0x05, 0x21, 0x17, 0x01, 0x03,
    0x03, 0x03, 0x0b, 0x07, 0x3b, 0x09, 0x43, 0x0b, 0x37, 0x05, 0x45, 0x0d, 0x47, 0x17, 0x01, 0x05,
    0x07, 0x03, 0x0b, 0x07, 0x37, 0x09, 0x49, 0x0b, 0x37, 0x05, 0x39, 0x0d, 0x4b, 0x17, 0x01, 0x11,
    0x07, 0x17, 0x01, 0x11, 0x35, 0x17, 0x01, 0x13, 0x15, 0x17, 0x01, 0x15, 0x0b, 0x17, 0x01, 0x05,
    0x27, 0x03, 0x03, 0x27, 0x4d, 0x05, 0x23, 0x17, 0x01, 0x07, 0x15, 0x03, 0x03, 0x2d, 0x4f, 0x05,
    0x25, 0x03, 0x03, 0x31, 0x39, 0x05, 0x27, 0x17, 0x01, 0x0b, 0x15, 0x17, 0x01, 0x0d, 0x0b, 0x03,
    0x01, 0x1d, 0x29, 0x03, 0x03, 0x3d, 0x0d, 0x03, 0x3f, 0x41, 0x1d, 0x2b, 0x13, 0x09, 0x05, 0x23,
    0x0b, 0x1d, 0x2d, 0x1d, 0x2f, 0x23, 0x0d, 0x1d, 0x31, 0x1f, 0x03, 0x09, 0x00, 0x00, 0x00, 0x3f,
    0x1f, 0x0f, 0x11, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x29, 0x05, 0x09, 0x0d, 0x05,
    0x29, 0x01, 0x05, 0x09, 0x29, 0x03, 0x09, 0x05, 0x1b, 0x11, 0x03, 0x01, 0x05, 0x07, 0x01, 0x11,
    0x03, 0x01, 0x03, 0x01, 0x29, 0x03, 0x05, 0x11, 0x1d, 0x04, 0xd3, 0x05, 0x01, 0x11, 0x13, 0x0f,
    0x07, 0x04, 0xc3, 0x03, 0x01, 0x09, 0x05, 0x11, 0x17, 0x15, 0x07, 0x04, 0x7b, 0x03, 0x09, 0x13,
    0x03, 0x03, 0x23, 0x00, 0x09, 0x03, 0x29, 0x25, 0x03, 0x03, 0x0b, 0x17, 0x03, 0x2b, 0x03, 0x07,
    0x05, 0x01, 0x03, 0x07, 0x04, 0x2d, 0x03, 0x07, 0x0b, 0x05, 0x07, 0x03, 0x07, 0x03, 0x00, 0x0f,
    0x06, 0x03, 0x03, 0x03, 0x05, 0x01, 0x03, 0x03, 0x04, 0x03, 0x03, 0x05, 0x0d, 0x07, 0x33, 0x2f,
    0x03, 0x01, 0x03, 0x01, 0x03, 0x04, 0x35, 0x05, 0x05, 0x07, 0x05, 0x11, 0x1b, 0x19, 0x07, 0x04,
    0x27, 0x03, 0x05, 0x0b, 0x03, 0x03, 0x1d, 0x00, 0x07, 0x06, 0x1f, 0x03, 0x01, 0x03, 0x01, 0x03,
    0x04, 0x21, 0x03, 0x03, 0x06, 0x03, 0x01, 0x05, 0x01, 0x00, 0xaa, 0x03, 0x33, 0x11, 0x03, 0x0b,
    0x27, 0x09, 0x0f, 0x17, 0x0d, 0x05, 0x1f, 0x15, 0x1d, 0x15, 0x13, 0x05, 0x0f, 0x11, 0x15, 0x19,
    0x15, 0x11, 0x15, 0x0f, 0x0b, 0x11, 0x62, 0x75, 0x69, 0x6c, 0x74, 0x69, 0x6e, 0x00, 0x76, 0x68,
    0x6c, 0x6f, 0x00, 0x6d, 0x6f, 0x64, 0x75, 0x6c, 0x65, 0x00, 0x72, 0x65, 0x74, 0x75, 0x72, 0x6e,
    0x5f, 0x76, 0x31, 0x00, 0x66, 0x75, 0x6e, 0x63, 0x5f, 0x76, 0x31, 0x00, 0x6e, 0x65, 0x67, 0x61,
    0x74, 0x65, 0x5f, 0x76, 0x31, 0x00, 0x63, 0x6f, 0x6e, 0x73, 0x74, 0x61, 0x6e, 0x74, 0x5f, 0x76,
    0x31, 0x00, 0x72, 0x65, 0x64, 0x75, 0x63, 0x65, 0x5f, 0x76, 0x31, 0x00, 0x63, 0x61, 0x6c, 0x6c,
    0x5f, 0x76, 0x31, 0x00, 0x61, 0x64, 0x64, 0x5f, 0x76, 0x31, 0x00, 0x2d, 0x00, 0x73, 0x79, 0x6d,
    0x5f, 0x6e, 0x61, 0x6d, 0x65, 0x00, 0x61, 0x72, 0x67, 0x5f, 0x61, 0x74, 0x74, 0x72, 0x73, 0x00,
    0x66, 0x75, 0x6e, 0x63, 0x74, 0x69, 0x6f, 0x6e, 0x5f, 0x74, 0x79, 0x70, 0x65, 0x00, 0x72, 0x65,
    0x73, 0x5f, 0x61, 0x74, 0x74, 0x72, 0x73, 0x00, 0x73, 0x79, 0x6d, 0x5f, 0x76, 0x69, 0x73, 0x69,
    0x62, 0x69, 0x6c, 0x69, 0x74, 0x79, 0x00, 0x6d, 0x00, 0x76, 0x61, 0x6c, 0x75, 0x65, 0x00, 0x64,
    0x69, 0x6d, 0x65, 0x6e, 0x73, 0x69, 0x6f, 0x6e, 0x73, 0x00, 0x63, 0x61, 0x6c, 0x6c, 0x65, 0x65,
    0x00, 0x6e, 0x65, 0x67, 0x00, 0x74, 0x66, 0x2e, 0x61, 0x6c, 0x69, 0x61, 0x73, 0x69, 0x6e, 0x67,
    0x5f, 0x6f, 0x75, 0x74, 0x70, 0x75, 0x74, 0x00, 0x6d, 0x61, 0x69, 0x6e, 0x00, 0x00, 0x70, 0x72,
    0x69, 0x76, 0x61, 0x74, 0x65, 0x00};
// clang-format on

TEST(bytecode_runs) {
  tt_executable_t *program = NULL;
  EXPECT_OK(tt_client_compile_text(client, (const char *)bytecode, sizeof bytecode, &program));
  if (!program) return;
  int64_t dims[] = {2, 3};
  tt_type_t type = {TT_F32, 2, dims};
  float x[] = {1, 2, 3, 4, 5, 6}, sums[2], negated[6];
  tt_buffer_t *buffer, *out[2];
  EXPECT_OK(tt_buffer_create(client, 0, &type, x, &buffer));
  tt_input_t input = {.buffer = buffer};
  EXPECT_OK(tt_executable_execute(program, 0, &input, 1, out));
  EXPECT_OK(tt_buffer_read(out[0], sums, sizeof sums));
  EXPECT_OK(tt_buffer_read(out[1], negated, sizeof negated));
  EXPECT(sums[0] == 6.5f && sums[1] == 15.5f);
  EXPECT(negated[0] == -1 && negated[5] == -6);
  EXPECT_ERROR(tt_buffer_read(buffer, x, sizeof x), "donated");
  tt_buffer_release(buffer);
  tt_buffer_release(out[0]);
  tt_buffer_release(out[1]);
  tt_executable_release(program);
}

TEST(broken_bytecode_is_an_error) {
  unsigned char copy[sizeof bytecode];
  int failures = 0;
  for (size_t size = 4; size < sizeof bytecode; size++) {
    tt_executable_t *program = NULL;
    memcpy(copy, bytecode, sizeof copy);
    tt_status_t status = tt_client_compile_text(client, (const char *)copy, size, &program);
    failures += status != TT_OK_STATUS;
    tt_status_release(status);
    tt_executable_release(program);
    copy[size] ^= 0xff;  // may still be a program: only the answer is asked for
    status = tt_client_compile_text(client, (const char *)copy, sizeof copy, &program);
    if (!status) tt_executable_release(program);
    tt_status_release(status);
  }
  EXPECT_INT(failures, sizeof bytecode - 4);
}

TEST(not_plugins) {
  tt_client_t *none;
  EXPECT_ERROR(tt_client_create("nonsense", &none), "nonsense");
  EXPECT_ERROR(tt_client_create("/no/such/plugin.so", &none), "/no/such/plugin.so does not exist");
  char path[] = "/tmp/pjrt_soft_test_XXXXXX";
  int file = mkstemp(path);
  EXPECT(write(file, "this is a text\n", 15) == 15);
  close(file);
  EXPECT_ERROR(tt_client_create(path, &none), "cannot be loaded");
  unlink(path);
  const char *libraries[] = {"/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6",
                             "/usr/lib64/libm.so.6", "/usr/lib/libm.so.6"};
  for (int i = 0; i < 4; i++) {
    if (access(libraries[i], R_OK) != 0) continue;
    EXPECT_ERROR(tt_client_create(libraries[i], &none), "no GetPjrtApi");
    break;
  }
}

int main(void) {
  setbuf(stdout, NULL);
#ifdef TT_SOFTTPU_PATH
  setenv("TORCHTPU_SOFT_PATH", TT_SOFTTPU_PATH, 0);
#endif
  setenv("TORCHTPU_NUM_DEVICES", "2", 1);
  tt_client_t *none;
  setenv("TORCHTPU_HBM_BYTES", "plenty", 1);
  EXPECT_ERROR(tt_client_create("soft", &none), "plenty");
  setenv("TORCHTPU_HBM_BYTES", "64M", 1);
  EXPECT_OK(tt_client_create("soft", &client));
  if (!client) return 1;
  void (*const tests[])(void) = {
      names,
      upload_out_of_memory,
      execute_out_of_memory,
      released_while_queued,
      donated_and_used,
      donated_for_room_and_used,
      trim,
      other_devices_array,
      bytecode_runs,
      broken_bytecode_is_an_error,
      not_plugins,
      fork_child,
  };
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tests[i]();
  tt_client_destroy(client);
  if (tt_test_failures) printf("%d failures\n", tt_test_failures);
  return tt_test_failures != 0;
}
