#include "opt/opt.h"

tt_status_t tt_expand_chlo(tt_graph_t *graph) {
  (void)graph;
  return TT_OK_STATUS;
}
