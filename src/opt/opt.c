// The optimiser in one straight line. Every pass works in place on a valid graph and leaves a valid
// one, which debug builds verify after each.
#include "opt/opt.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

// Logs the graph where TT_DUMP names the pass.
static tt_status_t dump(const tt_graph_t *graph, const char *wanted, const char *pass) {
  if (!wanted || (strcmp(wanted, pass) != 0 && strcmp(wanted, "all") != 0)) return TT_OK_STATUS;
  char *text;
  size_t size;
  TT_RETURN_IF_ERROR(tt_graph_print(graph, &text, &size));
  tt_log_text("// after ", 9);
  tt_log_text(pass, strlen(pass));
  tt_log_text("\n", 1);
  tt_log_text(text, size);
  tt_free(text);
  return TT_OK_STATUS;
}

// Release builds trust the passes.
static tt_status_t check(const tt_graph_t *graph, const char *pass) {
#ifdef NDEBUG
  (void)graph;
  (void)pass;
  return TT_OK_STATUS;
#else
  tt_status_t s = tt_graph_verify(graph);
  return s ? tt_status_annotate(s, "after pass %s", pass) : TT_OK_STATUS;
#endif
}

#define PASS(name)                                              \
  do {                                                          \
    TT_RETURN_IF_ERROR(tt_##name(graph));                       \
    TT_RETURN_IF_ERROR(check(graph, #name));                    \
    if (wanted) TT_RETURN_IF_ERROR(dump(graph, wanted, #name)); \
  } while (0)

tt_status_t tt_opt_run(tt_graph_t *graph) {
  // Looked at on every run: a debugging session may set it while the process lives.
  const char *wanted = getenv("TT_DUMP");
  PASS(dce);       // first: what nobody uses need not be worked on, and uses are counted rightly
  PASS(fold);      // gives simplify the constants it looks for
  PASS(simplify);  // needs no dead nodes; leaves equal constants
  PASS(cse);       // leaves nodes without uses
  PASS(dce);
  return TT_OK_STATUS;
}
