// Random bits as XLA defines them, and the older `rng`, which is free in its choice of numbers.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

static uint32_t rotate(uint32_t x, unsigned by) { return x << by | x >> (32 - by); }

// Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
static void threefry(uint64_t key, uint64_t counter, uint32_t out[2]) {
  static const uint8_t rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t k[3] = {(uint32_t)key, (uint32_t)(key >> 32), 0};
  k[2] = k[0] ^ k[1] ^ 0x1BD11BDAu;
  uint32_t x = (uint32_t)counter + k[0], y = (uint32_t)(counter >> 32) + k[1];
  for (uint32_t group = 0; group < 5; group++) {
    for (uint32_t round = 0; round < 4; round++) {
      x += y;
      y = rotate(y, rotations[group % 2][round]) ^ x;
    }
    x += k[(group + 1) % 3];
    y += k[(group + 2) % 3] + group + 1;
  }
  out[0] = x;
  out[1] = y;
}

// Philox-4x32 with 10 rounds (same paper).
static void philox(uint64_t key, uint64_t low, uint64_t high, uint32_t out[4]) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  uint32_t x[4] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)};
  for (int round = 0; round < 10; round++) {
    uint64_t a = (uint64_t)x[0] * 0xD2511F53u, b = (uint64_t)x[2] * 0xCD9E8D57u;
    uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k0, (uint32_t)b,
                        (uint32_t)(a >> 32) ^ x[3] ^ k1, (uint32_t)a};
    memcpy(x, next, sizeof x);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  memcpy(out, x, sizeof x);
}

// The generators' state as XLA lays it out.
typedef struct stream_s {
  uint64_t state[3];  // key, counter low, counter high
} stream_t;

// Philox numbers in order: four words a counter value, a 64-bit number takes two.
static void philox_fill(stream_t *s, int64_t count, bool wide, uint64_t *numbers) {
  int64_t per_block = wide ? 2 : 4, blocks = (count + per_block - 1) / per_block;
  for (int64_t b = 0; b < blocks; b++) {
    uint32_t words[4];
    uint64_t low = s->state[1] + (uint64_t)b;
    philox(s->state[0], low, s->state[2] + (low < s->state[1]), words);
    for (int64_t i = 0; i < per_block && b * per_block + i < count; i++) {
      numbers[b * per_block + i] =
          wide ? words[2 * i] | (uint64_t)words[2 * i + 1] << 32 : words[i];
    }
  }
  uint64_t low = s->state[1] + (uint64_t)blocks;
  s->state[2] += low < s->state[1];
  s->state[1] = low;
}

// The dimension that XLA splits in pairs of numbers from one counter value: the first even one,
// else the largest.
static uint32_t pair_dim(const tt_type_t *type) {
  uint32_t largest = 0;
  for (uint32_t d = 0; d < type->rank; d++) {
    if (type->dims[d] % 2 == 0) return d;
    if (type->dims[d] > type->dims[largest]) largest = d;
  }
  return largest;
}

// Threefry numbers: a 64-bit number takes a counter value; 32-bit ones come in pairs along
// pair_dim.
static void threefry_fill(stream_t *s, const tt_type_t *type, bool wide, uint64_t *numbers) {
  int64_t count = tt_type_elements(type), index[TT__REF_MAX_RANK] = {0}, at = 0, counters = 1;
  uint32_t words[2], split = type->rank ? pair_dim(type) : 0;
  int64_t halves[TT__REF_MAX_RANK], strides[TT__REF_MAX_RANK];
  for (uint32_t d = 0; d < type->rank; d++) {
    halves[d] = d == split && !wide ? (type->dims[d] + 1) / 2 : type->dims[d];
    counters *= halves[d];
  }
  tt_type_t half = {type->dtype, type->rank, halves};
  tt__ref_strides(&half, strides);
  for (; at < count; at++, (void)tt__ref_next(type->rank, type->dims, index)) {
    uint64_t counter = s->state[1];
    for (uint32_t d = 0; d < type->rank; d++) {
      int64_t i = d == split && !wide ? index[d] / 2 : index[d];
      counter += (uint64_t)(i * strides[d]);
    }
    threefry(s->state[0], counter, words);
    numbers[at] =
        wide ? words[0] | (uint64_t)words[1] << 32 : words[type->rank ? index[split] % 2 : 0];
  }
  s->state[1] += (uint64_t)counters;
}

// DEFAULT is Philox here. Narrow types take the low bits of 32-bit numbers.
tt_status_t tt__ref_rng_bit_generator(const tt__ref_call_t *call) {
  const tt_type_t *type = tt__ref_out(call, 1);
  size_t state_bytes = tt_type_bytes(tt__ref_in(call, 0));
  int64_t algorithm = tt_node_int(call->node, TT_ATTR_RNG_ALGORITHM, TT_RNG_DEFAULT);
  unsigned bits = tt_dtype_infos[type->dtype].bits;
  bool is_philox = algorithm != TT_RNG_THREE_FRY;
  if (state_bytes < 16 || tt_dtype_is_complex(type->dtype) || bits == 1) {
    return tt__ref_unimplemented(call->graph, call->node, "not defined for this type");
  }
  int64_t count = tt_type_elements(type);
  uint64_t *numbers = (uint64_t *)tt_alloc(sizeof(uint64_t) * ((size_t)count + 1));
  if (!numbers) return tt__ref_no_memory(call->node);
  stream_t stream = {0};
  memcpy(stream.state, call->operands[0], state_bytes < 24 ? state_bytes : 24);
  if (state_bytes < 24) stream.state[2] = stream.state[0];  // two words: the key is the high word
  if (is_philox) philox_fill(&stream, count, bits == 64, numbers);
  if (!is_philox) threefry_fill(&stream, type, bits == 64, numbers);
  memcpy(call->results[0], stream.state, state_bytes < 24 ? state_bytes : 24);
  size_t size = tt_dtype_size(type->dtype);
  for (int64_t i = 0; i < count; i++) {
    memcpy((char *)call->results[1] + (size_t)i * size, &numbers[i], size);  // little endian
    if (bits == 4) {
      tt_element_store(type->dtype, &numbers[i], 1, (char *)call->results[1] + (size_t)i);
    }
  }
  tt_free(numbers);
  return TT_OK_STATUS;
}

// A fraction in [0, 1) from the next number of the run's own sequence.
static double next_fraction(tt__ref_state_t *state) {
  uint32_t words[4];
  philox(UINT64_C(0x5eed), state->rng_counter++, 0, words);
  return (double)((words[0] | (uint64_t)words[1] << 32) >> 11) * 0x1p-53;
}

// Box and Muller's transform, the cosine half; 1 - fraction keeps the logarithm finite.
static double next_normal(tt__ref_state_t *state) {
  double u = 1 - next_fraction(state), v = next_fraction(state);
  return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

// uniform: [a, b), normal: mean a, deviation b.
tt_status_t tt__ref_rng(const tt__ref_call_t *call) {
  const tt_type_t *type = tt__ref_out(call, 0);
  bool normal = tt_node_int(call->node, TT_ATTR_RNG_DISTRIBUTION, 0) == 1;
  double a, b;
  if (tt_dtype_is_complex(type->dtype)) {
    return tt__ref_unimplemented(call->graph, call->node, "not defined for this element type");
  }
  tt_element_convert(type->dtype, call->operands[0], 1, TT_F64, &a);
  tt_element_convert(type->dtype, call->operands[1], 1, TT_F64, &b);
  size_t size = tt_dtype_size(type->dtype);
  for (int64_t i = 0; i < tt_type_elements(type); i++) {
    double x = normal ? a + b * next_normal(call->state) : a + (b - a) * next_fraction(call->state);
    if (!tt_dtype_is_float(type->dtype)) x = floor(x);
    char *to = (char *)call->results[0] + (size_t)i * size;
    tt_element_convert(TT_F64, &x, 1, type->dtype, to);
    double stored;
    tt_element_convert(type->dtype, to, 1, TT_F64, &stored);
    if (!normal && stored >= b && a < b) memcpy(to, call->operands[0], size);  // rounded up to b
  }
  return TT_OK_STATUS;
}
