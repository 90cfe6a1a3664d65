// Reads StableHLO text on stdin, runs tt_opt_run (or the pass named by the first argument) and
// prints.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "opt/opt.h"

static int fail(tt_status_t s) {
  fprintf(stderr, "%s\n", tt_status_message(s));
  tt_status_release(s);
  return 1;
}

int main(int argc, char **argv) {
  size_t capacity = 1 << 26, size;
  char *text = malloc(capacity), *printed;
  if (!text) return 2;
  size = fread(text, 1, capacity, stdin);
  tt_graph_t *g;
  tt_status_t s = tt_graph_parse(text, size, &g);
  if (s) return fail(s);
  if (argc > 1 && strcmp(argv[1], "expand_chlo") == 0) {
    s = tt_expand_chlo(g);
  } else {
    s = tt_opt_run(g);
  }
  if (!s) s = tt_graph_verify(g);
  if (!s) s = tt_graph_print(g, &printed, &size);
  if (s) return fail(s);
  fwrite(printed, 1, size, stdout);
  tt_free(printed);
  tt_graph_destroy(g);
  free(text);
  return tt_alloc_live() != 0;
}
