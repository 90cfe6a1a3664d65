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
      trim,
      other_devices_array,
      not_plugins,
      fork_child,
  };
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tests[i]();
  tt_client_destroy(client);
  if (tt_test_failures) printf("%d failures\n", tt_test_failures);
  return tt_test_failures != 0;
}
