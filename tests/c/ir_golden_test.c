#include "golden.h"

static tt_status_t nothing(tt_graph_t *graph, const char *text) {
  (void)graph;
  (void)text;
  return TT_OK_STATUS;
}

TEST(text_round_trips) { golden_folder(__FILE__, "ir", nothing); }

TEST_MAIN(text_round_trips)
