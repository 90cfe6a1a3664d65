// Locations are a table of texts in the graph; nodes hold numbers into it. They are a courtesy:
// without memory a node's location is simply unknown.
#include "ir/location.h"

#include "ir/internal.h"

uint32_t tt_location_append(tt_graph_t *graph, const char *text, size_t length) {
  char *copy = tt_arena_string(&graph->arena, text, length);
  if (!copy ||
      !tt__arena_grow(&graph->arena, (void **)&graph->locations, &graph->location_capacity,
                      graph->location_count, graph->location_count + 1, sizeof *graph->locations)) {
    return 0;
  }
  graph->locations[graph->location_count] = copy;
  return graph->location_count++;
}

void tt_location_assign(tt_block_t *block, uint32_t first, uint32_t location) {
  for (uint32_t i = first; i < block->node_count; i++) {
    if (!block->nodes[i]->location) block->nodes[i]->location = location;
  }
}
