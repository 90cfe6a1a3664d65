// Any bytes: the parser answers with a graph or an error with a place. What it accepts must verify,
// survive the passes, print, and read back as the same program.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "opt/opt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition) {
  if (!condition) abort();
}

// Verifies, prints and reads back; both must be the same program.
static void round_trip(const tt_graph_t *graph) {
  char *text;
  size_t size;
  tt_graph_t *again;
  tt_status_t s = tt_graph_print(graph, &text, &size);
  must(!s);
  s = tt_graph_parse(text, size, &again);
  must(!s);
  s = tt_graph_verify(again);
  must(!s);
  char *second;
  size_t second_size;
  s = tt_graph_print(again, &second, &second_size);
  must(!s && size == second_size && memcmp(text, second, size) == 0);
  tt_free(text);
  tt_free(second);
  tt_graph_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tt_graph_t *graph;
  int64_t live = tt_alloc_live();
  tt_status_t s = tt_graph_parse((const char *)data, size, &graph);
  if (s) {
    must(tt_status_message(s)[0] != '\0' && graph == NULL);
    tt_status_release(s);
  } else {
    s = tt_graph_verify(graph);
    if (!s) {
      round_trip(graph);
      s = tt_opt_run(graph);
      must(!s);
      s = tt_graph_verify(graph);
      must(!s);
    }
    tt_status_release(s);  // a donation that does not fit is the text's fault
    tt_graph_destroy(graph);
  }
  must(tt_alloc_live() == live);
  return 0;
}
