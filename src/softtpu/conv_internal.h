// A convolution in canonical form, whatever its dimension numbers and groups:
//   out[n][g][o][p] = sum_{i,k} in[g][n][i][p * stride + k * dilation - padding] *
//   kernel[g][o][i][k]
#ifndef TT_SOFTTPU_CONV_INTERNAL_H_
#define TT_SOFTTPU_CONV_INTERNAL_H_

#include "softtpu/tile.h"

// Spatial dimensions that our own kernel takes; more go to the reference executor.
enum { TT__CONV_SPATIAL = 5 };

// Element strides of an operand over [group, batch or output feature, input feature, spatial...].
typedef struct tt__conv_side_s {
  tt__tile_t *pack;  // fills scratch densely in that order; NULL: plain memory
  uint32_t read;
  int64_t offset, group, major, feature, spatial[TT__CONV_SPATIAL];
  size_t scratch;
} tt__conv_side_t;

// Made when planning, read by any number of runs. Input coordinates are counted after base dilation
// and padding, kernel coordinates after reversal.
typedef struct tt__conv_s {
  tt_dtype_t in, out;
  uint32_t rank;                             // spatial
  int64_t groups, batch, features, outputs;  // per group: images, input and output features
  bool batch_groups;
  int64_t size[TT__CONV_SPATIAL], kernel[TT__CONV_SPATIAL], result[TT__CONV_SPATIAL];
  int64_t stride[TT__CONV_SPATIAL], padding[TT__CONV_SPATIAL], padding_high[TT__CONV_SPATIAL];
  int64_t base_dilation[TT__CONV_SPATIAL], dilation[TT__CONV_SPATIAL];
  bool reversed[TT__CONV_SPATIAL];
  tt__conv_side_t x, w;
  // of the result
  int64_t out_batch, out_feature, out_spatial[TT__CONV_SPATIAL];
} tt__conv_t;

static inline int64_t tt__conv_product(const int64_t *dims, uint32_t n) {
  int64_t all = 1;
  for (uint32_t i = 0; i < n; i++) all *= dims[i];
  return all;
}

// Our own kernel: columns gathered, then matrix products. `x` and `w` are the operands' origins.
// Fails only for want of memory.
tt_status_t tt__conv_im2col(const tt__run_t *run, const tt__conv_t *c, const char *x, const char *w,
                            char *out) TT_MUST_USE;
// The host's library: forward, input gradient or kernel gradient. False: it does not serve, and
// `out` may hold anything.
bool tt__conv_library(const tt__conv_t *c, const char *x, const char *w, char *out);
// Nanoseconds of one core, roughly.
uint64_t tt__conv_cost(const tt__conv_t *c);

#endif  // TT_SOFTTPU_CONV_INTERNAL_H_
