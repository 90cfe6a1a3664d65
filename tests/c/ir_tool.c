// Reads StableHLO text on stdin, parses, verifies and prints it again. For tests in Python.
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "ir/graph.h"

static int fail(tt_status_t s) {
  fprintf(stderr, "%s\n", tt_status_message(s));
  tt_status_release(s);
  return 1;
}

int main(void) {
  char *text = NULL, *printed;
  size_t size = 0, capacity = 0, printed_size;
  for (size_t got;; size += got) {
    if (capacity - size < 65536) {
      capacity = capacity ? capacity * 2 : 1 << 17;
      text = realloc(text, capacity);
      if (!text) return 2;
    }
    got = fread(text + size, 1, capacity - size, stdin);
    if (got == 0) break;
  }
  tt_graph_t *g;
  tt_status_t s = tt_graph_parse(text, size, &g);
  if (s) return fail(s);
  s = tt_graph_verify(g);
  if (!s) s = tt_graph_print(g, &printed, &printed_size);
  if (s) return fail(s);
  fwrite(printed, 1, printed_size, stdout);
  tt_free(printed);
  tt_graph_destroy(g);
  free(text);
  if (tt_alloc_live() == 0) return 0;
  fprintf(stderr, "leaked\n");
  return 3;
}
