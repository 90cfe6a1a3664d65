#include "dist/route.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"

struct tt_route_s {
  tt_routes_t *owner;
  tt_route_t *next;
  tt_lane_t *lane;
  tt_route_key_t key;
  uint32_t tasks;  // not over yet
};

struct tt_routes_s {
  pthread_mutex_t lock;
  size_t kept_bytes;
  tt_route_t *head;
};

tt_status_t tt_routes_create(size_t kept_bytes, tt_routes_t **out_routes) {
  tt_routes_t *routes = tt_alloc_zeroed(sizeof *routes);
  if (!routes) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for threads");
  pthread_mutex_init(&routes->lock, NULL);
  routes->kept_bytes = kept_bytes;
  *out_routes = routes;
  return TT_OK_STATUS;
}

void tt_routes_destroy(tt_routes_t *routes) {
  if (!routes) return;
  while (routes->head) {
    tt_route_t *route = routes->head;
    tt_lane_destroy(route->lane);
    routes->head = route->next;
    tt_free(route);
  }
  pthread_mutex_destroy(&routes->lock);
  tt_free(routes);
}

static tt_route_t *find(const tt_routes_t *routes, tt_route_key_t key) {
  tt_route_t *idle = NULL;
  for (tt_route_t *r = routes->head; r; r = r->next) {
    if (!r->tasks) {
      idle = r;
    } else if (memcmp(&r->key, &key, sizeof key) == 0) {
      return r;
    }
  }
  return idle;
}

static tt_status_t add(tt_routes_t *routes, tt_route_t **out_route) {
  tt_route_t *route = tt_alloc_zeroed(sizeof *route);
  if (!route) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for a thread");
  tt_status_t status = tt_lane_create(routes->kept_bytes, &route->lane);
  if (status) {
    tt_free(route);
    return status;
  }
  route->owner = routes;
  route->next = routes->head;
  *out_route = routes->head = route;
  return TT_OK_STATUS;
}

tt_status_t tt_routes_enter(tt_routes_t *routes, tt_route_key_t key, tt_route_t **out_route) {
  pthread_mutex_lock(&routes->lock);
  *out_route = find(routes, key);
  tt_status_t status = *out_route ? TT_OK_STATUS : add(routes, out_route);
  if (!status) {
    (*out_route)->key = key;
    (*out_route)->tasks++;
  }
  pthread_mutex_unlock(&routes->lock);
  return status;
}

tt_lane_t *tt_route_lane(tt_route_t *route) { return route->lane; }

void tt_route_leave(tt_route_t *route) {
  pthread_mutex_lock(&route->owner->lock);
  route->tasks--;
  pthread_mutex_unlock(&route->owner->lock);
}
