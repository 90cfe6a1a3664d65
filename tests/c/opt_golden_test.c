#include "golden.h"
#include "opt/opt.h"

// The first line says which passes run: "// pass: simplify".
static tt_status_t run(tt_graph_t *graph, const char *text) {
  static const struct {
    const char *name;
    tt_status_t (*pass)(tt_graph_t *);
  } passes[] = {{"simplify", tt_simplify}, {"cse", tt_cse},     {"dce", tt_dce},
                {"fold", tt_fold},         {"opt", tt_opt_run}, {"expand_chlo", tt_expand_chlo}};
  char name[64] = "";
  if (sscanf(text, "// pass: %63s", name) == 1) {
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
      if (strcmp(name, passes[i].name) == 0) return passes[i].pass(graph);
    }
  }
  return TT_ERROR(NOT_FOUND, "no pass named '%s'", name);
}

TEST(passes_do_as_written) { golden_folder(__FILE__, "opt", run); }

TEST_MAIN(passes_do_as_written)
