// The threads that run messages. Those of one direction, peer and tag go in order; others do not
// wait for them.
#ifndef TT_DIST_ROUTE_H_
#define TT_DIST_ROUTE_H_

#include <stdint.h>

#include "dist/lane.h"

typedef struct tt_routes_s tt_routes_t;  // thread-safe
typedef struct tt_route_s tt_route_t;    // one of its threads

typedef struct tt_route_key_s {
  uint32_t kind, peer, tag;
} tt_route_key_t;

// kept_bytes: as tt_lane_create's, of each thread.
tt_status_t tt_routes_create(size_t kept_bytes, tt_routes_t **out_routes) TT_MUST_USE;
void tt_routes_destroy(tt_routes_t *routes);  // ends the threads as tt_lane_destroy does; NULL-safe

// The thread for one more task of the key: the one that its unfinished ones are on, an idle one or
// a new one, so that there are as many as keys ever were under way at once.
tt_status_t tt_routes_enter(tt_routes_t *routes, tt_route_key_t key,
                            tt_route_t **out_route) TT_MUST_USE;
tt_lane_t *tt_route_lane(tt_route_t *route);
// The task is over, with all that it calls back, which may wait for other messages.
void tt_route_leave(tt_route_t *route);

#endif  // TT_DIST_ROUTE_H_
