// Recognises a convolution as a library's forward, input-gradient or kernel-gradient call.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/conv_internal.h"

// Row-major among themselves; dimensions of size 1 have no say.
static bool dense_spatial(const tt__conv_t *c, const int64_t *strides, const int64_t *dims) {
  int64_t stride = 1;
  for (uint32_t i = c->rank; i-- > 0; stride *= dims[i])
    if (dims[i] > 1 && strides[i] != stride) return false;
  return true;
}

// The stride that a dense layout has there.
static bool is(int64_t extent, int64_t stride, int64_t wanted) {
  return extent == 1 || stride == wanted;
}

static bool all_equal(const int64_t *list, uint32_t n, int64_t value) {
  for (uint32_t i = 0; i < n; i++)
    if (list[i] != value) return false;
  return true;
}

// Whether some dimension is not reversed as wanted; a kernel of one tap is either.
static bool any_reversed(const tt__conv_t *c, bool want) {
  for (uint32_t i = 0; i < c->rank; i++)
    if (c->kernel[i] > 1 && c->reversed[i] != want) return true;
  return false;
}

// Whether [n][g][o][p] is the result's own order, or [o] outside [n] (a kernel gradient's).
static bool out_is(const tt__conv_t *c, bool feature_first) {
  int64_t points = tt__conv_product(c->result, c->rank), all = c->groups * c->outputs;
  return dense_spatial(c, c->out_spatial, c->result) &&
         is(c->batch, c->out_batch, feature_first ? points : all * points) &&
         is(all, c->out_feature, feature_first ? c->batch * points : points);
}

// The output size that symmetric padding gives.
static bool size_fits(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                      int64_t out) {
  int64_t room = in + 2 * padding - (kernel - 1) * dilation - 1;
  return padding >= 0 && room >= 0 && room / stride + 1 == out;
}

typedef struct dims_s {
  int64_t input[2 + TT__CONV_SPATIAL], kernel[2 + TT__CONV_SPATIAL], output[2 + TT__CONV_SPATIAL];
  int64_t padding[TT__CONV_SPATIAL];
} dims_t;

static void set_dims(int64_t *to, int64_t a, int64_t b, const int64_t *spatial, uint32_t rank) {
  to[0] = a;
  to[1] = b;
  memcpy(to + 2, spatial, sizeof *spatial * rank);
}

// Input [n][g i][p], kernel [g o][i][k], result [n][g o][p], all dense, symmetric padding.
static bool forward(const tt__conv_t *c, const char *x, const char *w, char *out) {
  int64_t points = tt__conv_product(c->size, c->rank),
          window = tt__conv_product(c->kernel, c->rank);
  dims_t d;
  if (c->batch_groups || any_reversed(c, false) || !all_equal(c->base_dilation, c->rank, 1) ||
      !out_is(c, false) || !dense_spatial(c, c->x.spatial, c->size) ||
      !dense_spatial(c, c->w.spatial, c->kernel) || !is(c->features, c->x.feature, points) ||
      !is(c->groups, c->x.group, points * c->features) ||
      !is(c->batch, c->x.major, points * c->features * c->groups) ||
      !is(c->features, c->w.feature, window) || !is(c->outputs, c->w.major, window * c->features) ||
      !is(c->groups, c->w.group, window * c->features * c->outputs))
    return false;
  for (uint32_t i = 0; i < c->rank; i++)
    if (!size_fits(c->size[i], c->kernel[i], c->stride[i], c->padding[i], c->dilation[i],
                   c->result[i]))
      return false;
  set_dims(d.input, c->batch, c->groups * c->features, c->size, c->rank);
  set_dims(d.kernel, c->groups * c->outputs, c->features, c->kernel, c->rank);
  set_dims(d.output, c->batch, c->groups * c->outputs, c->result, c->rank);
  tt_library_conv_t conv = {c->rank,    d.input,     d.kernel,  d.output, c->stride,
                            c->padding, c->dilation, c->groups, false};
  return tt_library()->conv && tt_library()->conv((int)c->in, &conv, x, w, out);
}

// Here the input is a gradient over the original's outputs, dilated by its stride; the kernel is
// reversed with its features exchanged. The original's padding follows from this one's.
static bool input_grad(const tt__conv_t *c, const char *x, const char *w, char *out) {
  int64_t points = tt__conv_product(c->size, c->rank),
          window = tt__conv_product(c->kernel, c->rank);
  dims_t d;
  if (c->batch_groups || any_reversed(c, true) || !all_equal(c->stride, c->rank, 1) ||
      !out_is(c, false) || !dense_spatial(c, c->x.spatial, c->size) ||
      !dense_spatial(c, c->w.spatial, c->kernel) || !is(c->features, c->x.feature, points) ||
      !is(c->groups, c->x.group, points * c->features) ||
      !is(c->batch, c->x.major, points * c->features * c->groups) ||
      !is(c->outputs, c->w.major, window) || !is(c->features, c->w.feature, window * c->outputs) ||
      !is(c->groups, c->w.group, window * c->outputs * c->features))
    return false;
  for (uint32_t i = 0; i < c->rank; i++) {
    d.padding[i] = c->dilation[i] * (c->kernel[i] - 1) - c->padding[i];
    if (!size_fits(c->result[i], c->kernel[i], c->base_dilation[i], d.padding[i], c->dilation[i],
                   c->size[i]))
      return false;
  }
  set_dims(d.input, c->batch, c->groups * c->outputs, c->result, c->rank);
  set_dims(d.kernel, c->groups * c->features, c->outputs, c->kernel, c->rank);
  set_dims(d.output, c->batch, c->groups * c->features, c->size, c->rank);
  tt_library_conv_t conv = {c->rank,   d.input,     d.kernel,  d.output, c->base_dilation,
                            d.padding, c->dilation, c->groups, false};
  return tt_library()->conv_input_grad &&
         tt_library()->conv_input_grad((int)c->in, &conv, x, w, out);
}

// [o][n][k] to where this node wants it.
static void permute(const tt__conv_t *c, const char *from, char *out) {
  size_t size = tt_dtype_size(c->out);
  int64_t points = tt__conv_product(c->result, c->rank), all = c->groups * c->outputs;
  for (int64_t o = 0; o < all; o++)
    for (int64_t n = 0; n < c->batch; n++)
      memcpy(out + (size_t)(o * c->out_feature + n * c->out_batch) * size,
             from + (size_t)((o * c->batch + n) * points) * size, (size_t)points * size);
}

// Here batch is the original's input features, features its batch, the kernel its output gradient;
// stride and dilation have changed places. Groups come as batch groups.
static bool kernel_grad(const tt__conv_t *c, const char *x, const char *w, char *out) {
  int64_t points = tt__conv_product(c->size, c->rank),
          window = tt__conv_product(c->kernel, c->rank);
  int64_t inputs = c->groups * c->batch, outputs = c->groups * c->outputs;
  dims_t d;
  if ((!c->batch_groups && c->groups != 1) || any_reversed(c, false) ||
      !all_equal(c->base_dilation, c->rank, 1) || !dense_spatial(c, c->out_spatial, c->result) ||
      !dense_spatial(c, c->x.spatial, c->size) || !dense_spatial(c, c->w.spatial, c->kernel) ||
      !is(c->batch, c->x.major, points) || !is(c->groups, c->x.group, points * c->batch) ||
      !is(c->features, c->x.feature, points * inputs) || !is(c->outputs, c->w.major, window) ||
      !is(c->groups, c->w.group, window * c->outputs) ||
      !is(c->features, c->w.feature, window * outputs))
    return false;
  for (uint32_t i = 0; i < c->rank; i++)
    if (!size_fits(c->size[i], c->result[i], c->dilation[i], c->padding[i], c->stride[i],
                   c->kernel[i]))
      return false;
  set_dims(d.input, c->features, inputs, c->size, c->rank);
  set_dims(d.kernel, outputs, c->batch, c->result, c->rank);
  set_dims(d.output, c->features, outputs, c->kernel, c->rank);
  tt_library_conv_t conv = {c->rank,    d.input,   d.kernel,  d.output, c->dilation,
                            c->padding, c->stride, c->groups, false};
  if (!tt_library()->conv_kernel_grad) return false;
  if (out_is(c, true)) return tt_library()->conv_kernel_grad((int)c->in, &conv, w, x, out);
  char *room =
      tt_alloc_aligned(64, (size_t)(outputs * c->batch * tt__conv_product(c->result, c->rank)) *
                                   tt_dtype_size(c->out) +
                               1);
  bool served = room && tt_library()->conv_kernel_grad((int)c->in, &conv, w, x, room);
  if (served) permute(c, room, out);
  tt_free(room);
  return served;
}

// A shape may fit several forms; each computes the same numbers, one of them fast.
bool tt__conv_library(const tt__conv_t *c, const char *x, const char *w, char *out) {
  if (!tt_library() || c->in != c->out || c->rank < 1 || c->rank > 3) return false;
  // Where batch and features are one, a kernel gradient looks like a forward convolution with a
  // very large window.
  if (tt__conv_product(c->kernel, c->rank) > tt__conv_product(c->result, c->rank) &&
      kernel_grad(c, x, w, out))
    return true;
  return forward(c, x, w, out) || input_grad(c, x, w, out) || kernel_grad(c, x, w, out);
}
