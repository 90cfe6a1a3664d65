// tt_aot: compiles StableHLO for a named TPU topology and prints what came of it as JSON.
//
//   tt_aot --topology v5e:1x1 [--plugin libtpu] [--level N] [--replicas N] [--partitions N]
//          [--spmd] [--shardy] [--option NAME=VALUE]... [--timeout SECONDS]
//          [--optimized FILE] FILE   (or - for stdin)
//
// The work is done in a child process: a program that the compiler does not expect can abort it,
// and this one still answers. The status is 0 whenever an answer was printed, accepted or not.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "pjrt/aot.h"

#define MAX_OPTIONS 64
#define MAX_OUTPUT (1 << 20)

typedef struct arguments_s {
  tt_aot_request_t request;
  const char *names[MAX_OPTIONS], *values[MAX_OPTIONS];
  const char *file;
  double timeout;
} arguments_t;

// --- JSON ----------------------------------------------------------------------------------------
static void print_string(FILE *out, const char *text) {
  fputc('"', out);
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') {
      fprintf(out, "\\%c", c);
    } else if (c == '\n') {
      fputs("\\n", out);
    } else if (c < 0x20) {
      fprintf(out, "\\u%04x", c);
    } else {
      fputc(c, out);
    }
  }
  fputc('"', out);
}

static void print_int(FILE *out, const char *name, int64_t value) {
  if (value == TT_AOT_UNKNOWN) {
    fprintf(out, ", \"%s\": null", name);
  } else {
    fprintf(out, ", \"%s\": %lld", name, (long long)value);
  }
}

static void print_double(FILE *out, const char *name, double value) {
  if (value < 0) {
    fprintf(out, ", \"%s\": null", name);
  } else {
    fprintf(out, ", \"%s\": %.9g", name, value);
  }
}

static void print_text(FILE *out, const char *name, const char *text) {
  fprintf(out, ", \"%s\": ", name);
  print_string(out, text);
}

static void print_failure(FILE *out, const char *topology, const char *code, const char *message) {
  fputs("{\"accepted\": false", out);
  print_text(out, "topology", topology);
  fputs(", \"error\": {\"code\": ", out);
  print_string(out, code);
  print_text(out, "message", message);
  fputs("}}\n", out);
}

static void print_report(FILE *out, const char *topology, const tt_aot_report_t *r) {
  fputs("{\"accepted\": true", out);
  print_text(out, "topology", topology);
  print_text(out, "kind", r->kind);
  print_text(out, "version", r->version);
  print_int(out, "devices", r->device_count);
  fputs(", \"memory\": {\"unit\": \"bytes\"", out);
  print_int(out, "code", r->code);
  print_int(out, "argument", r->argument);
  print_int(out, "output", r->output);
  print_int(out, "alias", r->alias);
  print_int(out, "temp", r->temp);
  print_int(out, "peak", r->peak);
  print_int(out, "total", r->total);
  fputs("}", out);
  print_double(out, "flops", r->flops);
  print_double(out, "transcendentals", r->transcendentals);
  print_double(out, "bytes_accessed", r->bytes_accessed);
  print_double(out, "optimal_seconds", r->optimal_seconds);
  print_int(out, "estimated_cycles", r->cycle_op_count ? r->estimated_cycles : TT_AOT_UNKNOWN);
  print_int(out, "cycle_ops", r->cycle_op_count);
  print_text(out, "fingerprint", r->fingerprint);
  print_double(out, "compile_seconds", r->compile_seconds);
  fputs("}\n", out);
}

// --- the child -----------------------------------------------------------------------------------
static int work(const tt_aot_request_t *request, int fd) {
  FILE *out = fdopen(fd, "w");
  if (!out) return 1;
  tt_aot_report_t report;
  tt_status_t status = tt_aot_compile(request, &report);
  if (status) {
    print_failure(out, request->topology, tt_code_name(tt_status_code(status)),
                  tt_status_message(status));
    tt_status_release(status);
  } else {
    print_report(out, request->topology, &report);
  }
  return fclose(out) == 0 ? 0 : 1;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// What the child writes to its two pipes, until it ends. False: the deadline came first.
static bool collect(const int fds[2], char *const buffers[2], size_t sizes[2], double deadline) {
  struct pollfd polls[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
  int open_count = 2;
  while (open_count > 0) {
    double left = deadline - now();
    if (left <= 0) return false;
    if (poll(polls, 2, left > 1 ? 1000 : (int)(left * 1000) + 1) < 0 && errno != EINTR)
      return false;
    for (int i = 0; i < 2; i++) {
      if (polls[i].fd < 0 || !polls[i].revents) continue;
      char chunk[4096];
      ssize_t n = read(fds[i], chunk, sizeof chunk);
      if (n <= 0) {
        polls[i].fd = -1;
        open_count--;
        continue;
      }
      size_t room = MAX_OUTPUT - 1 - sizes[i];
      size_t take = (size_t)n < room ? (size_t)n : room;
      memcpy(buffers[i] + sizes[i], chunk, take);
      sizes[i] += take;
    }
  }
  return true;
}

// The line in which a compiler that aborts says why.
static const char *abort_reason(char *text) {
  char *line = strstr(text, "Check failed");
  if (!line) line = strstr(text, "\nF");
  if (!line) return "no message";
  if (*line == '\n') line++;
  char *end = strchr(line, '\n');
  if (end) *end = 0;
  return line;
}

static int supervise(const arguments_t *a, pid_t child, const int fds[2]) {
  char *buffers[2] = {tt_alloc_zeroed(MAX_OUTPUT), tt_alloc_zeroed(MAX_OUTPUT)};
  size_t sizes[2] = {0, 0};
  const char *topology = a->request.topology;
  if (!buffers[0] || !buffers[1]) return 1;
  bool in_time = collect(fds, buffers, sizes, now() + a->timeout);
  if (!in_time) kill(child, SIGKILL);
  int result = 0;
  waitpid(child, &result, 0);
  char message[2048];
  if (!in_time) {
    snprintf(message, sizeof message, "no answer within %g seconds", a->timeout);
    print_failure(stdout, topology, "DEADLINE", message);
  } else if (WIFSIGNALED(result)) {
    snprintf(message, sizeof message, "the compiler was ended by signal %d: %s", WTERMSIG(result),
             abort_reason(buffers[1]));
    print_failure(stdout, topology, "ABORTED", message);
  } else if (sizes[0] == 0) {
    snprintf(message, sizeof message, "the compiler ended with status %d", WEXITSTATUS(result));
    print_failure(stdout, topology, "UNKNOWN", message);
  } else {
    fwrite(buffers[0], 1, sizes[0], stdout);
  }
  tt_free(buffers[0]);
  tt_free(buffers[1]);
  return fflush(stdout) == 0 ? 0 : 1;
}

static int run(const arguments_t *a) {
  int answer[2], errors[2];
  if (pipe(answer) != 0 || pipe(errors) != 0) return 1;
  pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    close(answer[0]);
    close(errors[0]);
    dup2(errors[1], STDERR_FILENO);
    _exit(work(&a->request, answer[1]));
  }
  close(answer[1]);
  close(errors[1]);
  return supervise(a, child, (const int[]){answer[0], errors[0]});
}

// --- arguments -----------------------------------------------------------------------------------
static int usage(const char *why) {
  fprintf(stderr, "tt_aot: %s\n", why);
  fprintf(stderr,
          "usage: tt_aot --topology NAME [--plugin NAME] [--level N] [--replicas N] "
          "[--partitions N] [--spmd] [--shardy] [--option NAME=VALUE]... [--timeout S] "
          "[--optimized FILE] FILE\n");
  return 2;
}

static bool parse_option(arguments_t *a, char *text) {
  char *equals = strchr(text, '=');
  uint32_t count = a->request.override_count;
  if (!equals || count == MAX_OPTIONS) return false;
  *equals = 0;
  a->names[count] = text;
  a->values[count] = equals + 1;
  a->request.override_count = count + 1;
  return true;
}

static bool parse_value(arguments_t *a, const char *name, char *value) {
  tt_aot_request_t *r = &a->request;
  if (strcmp(name, "--topology") == 0) {
    r->topology = value;
  } else if (strcmp(name, "--plugin") == 0) {
    r->plugin = value;
  } else if (strcmp(name, "--optimized") == 0) {
    r->optimized = value;
  } else if (strcmp(name, "--level") == 0) {
    r->optimization_level = atoi(value);
  } else if (strcmp(name, "--replicas") == 0) {
    r->replica_count = (uint32_t)atoi(value);
  } else if (strcmp(name, "--partitions") == 0) {
    r->partition_count = (uint32_t)atoi(value);
  } else if (strcmp(name, "--timeout") == 0) {
    a->timeout = atof(value);
  } else {
    return strcmp(name, "--option") == 0 && parse_option(a, value);
  }
  return true;
}

static bool parse(arguments_t *a, int count, char **texts) {
  for (int i = 1; i < count; i++) {
    if (strcmp(texts[i], "--spmd") == 0) {
      a->request.spmd = true;
    } else if (strcmp(texts[i], "--shardy") == 0) {
      a->request.shardy = true;
    } else if (strncmp(texts[i], "--", 2) == 0) {
      if (i + 1 == count || !parse_value(a, texts[i], texts[i + 1])) return false;
      i++;
    } else {
      a->file = texts[i];
    }
  }
  return a->file && a->request.topology && a->timeout > 0;
}

static char *read_file(const char *path, size_t *out_size) {
  FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  char *text = NULL;
  uint32_t size = 0, capacity = 0;
  size_t got = 1;
  while (file && got > 0) {
    if (!tt_grow((void **)&text, &capacity, size + 65536, 1)) break;
    got = fread(text + size, 1, capacity - size, file);
    size += (uint32_t)got;
  }
  bool ok = file && got == 0 && !ferror(file);
  if (file && file != stdin) fclose(file);
  *out_size = size;
  if (ok) return text;
  tt_free(text);
  return NULL;
}

int main(int argc, char **argv) {
  arguments_t a = {.request = {.plugin = "libtpu"}, .timeout = 600};
  a.request.names = a.names;
  a.request.values = a.values;
  if (!parse(&a, argc, argv)) return usage("wrong arguments");
  char *text = read_file(a.file, &a.request.size);
  if (!text) return usage("the program's file cannot be read");
  a.request.text = text;
  int result = run(&a);
  tt_free(text);
  return result;
}
