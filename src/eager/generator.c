// Random generators: a seed and an offset. The numbers come from (seed, offset, position) in the
// programs themselves, so a call only takes the pair and moves the offset on.
#include "eager/internal.h"

#define DEFAULT_SEED UINT64_C(67280421310721)  // PyTorch's own

struct tt_generator_s {
  uint64_t seed, offset;
  bool seeded;  // of a default generator: DEFAULT_SEED was put in
};

static tt_generator_t defaults[TT__MAX_DEVICES];

tt_status_t tt_generator_create(int device, tt_generator_t **out_generator) {
  (void)device;
  *out_generator = tt_alloc(sizeof **out_generator);
  if (!*out_generator) return tt__no_host_memory();
  **out_generator = (tt_generator_t){DEFAULT_SEED, 0, true};
  return TT_OK_STATUS;
}

void tt_generator_release(tt_generator_t *generator) {
  if (generator < defaults || generator >= defaults + TT__MAX_DEVICES) tt_free(generator);
}

static tt_generator_t *default_of(int device) {
  tt_generator_t *g = &defaults[device < 0 || device >= TT__MAX_DEVICES ? 0 : device];
  if (!g->seeded) *g = (tt_generator_t){DEFAULT_SEED, 0, true};
  return g;
}

tt_generator_t *tt_generator_default(int device) {
  tt__lock();
  tt_generator_t *g = default_of(device);
  tt__unlock();
  return g;
}

void tt_generator_state(const tt_generator_t *g, uint64_t *out_seed, uint64_t *out_offset) {
  tt__lock();
  *out_seed = g->seed;
  *out_offset = g->offset;
  tt__unlock();
}

void tt_generator_set_state(tt_generator_t *g, uint64_t seed, uint64_t offset) {
  tt__lock();
  *g = (tt_generator_t){seed, offset, true};
  tt__unlock();
}

void tt_generator_seed_all(uint64_t seed) {
  tt__lock();
  for (int i = 0; i < TT__MAX_DEVICES; i++) defaults[i] = (tt_generator_t){seed, 0, true};
  tt__unlock();
}

void tt__generator_advance(int device, uint64_t count, uint64_t *out_seed, uint64_t *out_offset) {
  tt_generator_t *g = default_of(device);
  *out_seed = g->seed;
  *out_offset = g->offset;
  g->offset += count;
}

void tt__random_draw(const tt__instance_t *instance, const tt_call_t *call, uint64_t *out_seed,
                     uint64_t *out_offset) {
  tt_generator_t *g = NULL;
  for (uint32_t i = 0; i < call->arg_count; i++) {
    if (call->args[i].kind == TT_ARG_GENERATOR) g = call->args[i].u.generator;
  }
  if (!g) g = default_of(call->device);
  *out_seed = g->seed;
  *out_offset = g->offset;
  g->offset += instance->random_count;
}
