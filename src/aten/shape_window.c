// im2col and col2im: sliding blocks of images as columns, by one strided slice a kernel position.
#include "aten/emit.h"

typedef struct blocks_s {
  const int64_t *kernel, *dilation, *padding, *stride;
  int64_t padded[2], out[2];  // padded image, number of block positions
} blocks_t;

// The kernel, dilation, padding and stride lists stand from argument `at` on.
static blocks_t blocks_of(tt_lower_t *L, uint32_t at, int64_t height, int64_t width) {
  uint32_t n;
  blocks_t s = {.kernel = tt_lower_ints(L, at, &n),
                .dilation = tt_lower_ints(L, at + 1, &n),
                .padding = tt_lower_ints(L, at + 2, &n),
                .stride = tt_lower_ints(L, at + 3, &n)};
  const int64_t size[2] = {height, width};
  for (int i = 0; i < 2; i++) {
    s.padded[i] = size[i] + 2 * s.padding[i];
    s.out[i] = (s.padded[i] - s.dilation[i] * (s.kernel[i] - 1) - 1) / s.stride[i] + 1;
  }
  return s;
}

// im2col(self, kernel, dilation, padding, stride): [n, c, h, w] -> [n, c kh kw, positions]
TT_LOWER0(im2col) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0);
  const tt_type_t *t = tt_build_type(b, x);
  const int64_t *size = t->dims + t->rank - 2;
  int64_t n = t->rank == 4 ? t->dims[0] : 1, c = t->dims[t->rank - 3];
  blocks_t s = blocks_of(L, 1, size[0], size[1]);
  const int64_t dims[4] = {n, c, size[0], size[1]}, pad[4] = {0, 0, s.padding[0], s.padding[1]};
  x = tt_emit_reshape(b, x, 4, dims);
  x = tt_emit_pad(b, x, tt__num(b, x, 0), pad, pad, NULL);
  int64_t count = s.kernel[0] * s.kernel[1], column[4] = {n, c, 1, s.out[0] * s.out[1]};
  tt_value_t *parts = TT_SCRATCH(b, tt_value_t, count);
  if (!parts) return;
  const int64_t strides[4] = {1, 1, s.stride[0], s.stride[1]};
  for (int64_t k = 0; k < count; k++) {
    int64_t i = k / s.kernel[1] * s.dilation[0], j = k % s.kernel[1] * s.dilation[1];
    const int64_t starts[4] = {0, 0, i, j};
    const int64_t limits[4] = {n, c, i + (s.out[0] - 1) * s.stride[0] + 1,
                               j + (s.out[1] - 1) * s.stride[1] + 1};
    parts[k] = tt_emit_reshape(b, tt_emit_slice(b, x, starts, limits, strides), 4, column);
  }
  tt_lower_return(
      L, 0,
      tt__reshape_out(L, 0, count == 1 ? parts[0] : tt_emit_concat(b, parts, (uint32_t)count, 2)));
}

// col2im(self, output_size, kernel, dilation, padding, stride): overlapping blocks add up.
TT_LOWER0(col2im) {
  tt_build_t *b = L->b;
  tt_value_t x = tt__widen(b, tt_lower_tensor(L, 0));
  const tt_type_t *t = tt_build_type(b, x);
  uint32_t two;
  const int64_t *size = tt_lower_ints(L, 1, &two);
  blocks_t s = blocks_of(L, 2, size[0], size[1]);
  int64_t count = s.kernel[0] * s.kernel[1], n = t->rank == 3 ? t->dims[0] : 1,
          c = t->dims[t->rank - 2] / count;
  const int64_t apart[5] = {n, c, count, s.out[0], s.out[1]}, block[4] = {n, c, s.out[0], s.out[1]};
  x = tt_emit_reshape(b, x, 5, apart);
  const int64_t image[4] = {n, c, s.padded[0], s.padded[1]},
                interior[4] = {0, 0, s.stride[0] - 1, s.stride[1] - 1};
  tt_value_t sum = tt_emit_splat(b, t->dtype, 4, image, 0);
  for (int64_t k = 0; k < count; k++) {
    int64_t i = k / s.kernel[1] * s.dilation[0], j = k % s.kernel[1] * s.dilation[1];
    tt_value_t part = tt_emit_reshape(b, tt_emit_slice_dim(b, x, 2, k, k + 1, 1), 4, block);
    const int64_t low[4] = {0, 0, i, j};
    const int64_t high[4] = {0, 0, s.padded[0] - i - (s.out[0] - 1) * s.stride[0] - 1,
                             s.padded[1] - j - (s.out[1] - 1) * s.stride[1] - 1};
    sum = tt__add(b, sum, tt_emit_pad(b, part, tt__num(b, part, 0), low, high, interior));
  }
  const int64_t starts[4] = {0, 0, s.padding[0], s.padding[1]};
  const int64_t limits[4] = {n, c, s.padding[0] + size[0], s.padding[1] + size[1]};
  tt_lower_return(L, 0, tt__reshape_out(L, 0, tt_emit_slice(b, sum, starts, limits, NULL)));
}
