// Where a program's nodes come from: texts that loc("...") prints and compilers repeat in what they
// say.
#ifndef TT_IR_LOCATION_H_
#define TT_IR_LOCATION_H_

#include "ir/graph.h"

// A new entry of graph->locations, the text copied; equal texts are not looked for. 0, "unknown",
// without memory.
uint32_t tt_location_append(tt_graph_t *graph, const char *text, size_t length);

// Gives `location` to the block's nodes from number `first` on that have none.
void tt_location_assign(tt_block_t *block, uint32_t first, uint32_t location);

#endif  // TT_IR_LOCATION_H_
