// Fourier transforms of any length: one recursive split by the smallest prime factor, in f64.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

// One dimension's transform: twiddle k of `length` is exp(-+2 pi i k / length).
typedef struct fft_s {
  int64_t length;
  tt_complex_t *twiddles, *line, *scratch;  // [length] each, one allocation
} fft_t;

static int64_t smallest_factor(int64_t n) {
  for (int64_t p = 2; p * p <= n; p++) {
    if (n % p == 0) return p;
  }
  return n;
}

static tt_complex_t product(tt_complex_t x, tt_complex_t y) {
  tt_complex_t r = {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
  return r;
}

// out[0..n) = transform of in[0], in[step], ...; `scratch` has room for n.
static void transform(const fft_t *fft, int64_t n, const tt_complex_t *in, int64_t step,
                      tt_complex_t *out, tt_complex_t *scratch) {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  int64_t p = smallest_factor(n), m = n / p, unit = fft->length / n;
  // `out` serves the halves as scratch: their results are combined from `scratch` into it.
  for (int64_t r = 0; r < p; r++) {
    transform(fft, m, in + r * step, step * p, scratch + r * m, out + r * m);
  }
  for (int64_t k = 0; k < n; k++) {
    tt_complex_t sum = {0, 0};
    for (int64_t r = 0; r < p; r++) {
      tt_complex_t term = product(scratch[r * m + k % m], fft->twiddles[r * k % n * unit]);
      sum.re += term.re;
      sum.im += term.im;
    }
    out[k] = sum;
  }
}

static tt_status_t fft_init(const tt_node_t *node, int64_t length, bool inverse, fft_t *fft) {
  const double pi = 3.14159265358979323846;
  fft->length = length;
  fft->twiddles = (tt_complex_t *)tt_alloc(sizeof(tt_complex_t) * (3 * (size_t)length + 1));
  if (!fft->twiddles) return tt__ref_no_memory(node);
  fft->line = fft->twiddles + length;
  fft->scratch = fft->line + length;
  for (int64_t k = 0; k < length; k++) {
    // Quarter turns are exact.
    static const double exact[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    double angle = 2 * pi * (double)k / (double)length;
    bool quarter = 4 * k % length == 0;
    double re = quarter ? exact[4 * k / length][0] : cos(angle);
    double im = quarter ? exact[4 * k / length][1] : sin(angle);
    fft->twiddles[k] = (tt_complex_t){re, inverse ? im : -im};
  }
  return TT_OK_STATUS;
}

// Transforms every line along `d` of a dense complex array, in place.
static tt_status_t transform_dim(const tt_node_t *node, const int64_t *dims, uint32_t rank,
                                 uint32_t d, bool inverse, tt_complex_t *data) {
  fft_t fft;
  int64_t length = dims[d], inner = 1, outer = 1;
  for (uint32_t i = 0; i < rank; i++) *(i < d ? &outer : &inner) *= i == d ? 1 : dims[i];
  TT_RETURN_IF_ERROR(fft_init(node, length, inverse, &fft));
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t i = 0; i < inner; i++) {
      tt_complex_t *line = data + o * length * inner + i;
      transform(&fft, length, line, inner, fft.line, fft.scratch);
      for (int64_t k = 0; k < length; k++) {
        double scale = inverse ? (double)length : 1;
        line[k * inner] = (tt_complex_t){fft.line[k].re / scale, fft.line[k].im / scale};
      }
    }
  }
  tt_free(fft.twiddles);
  return TT_OK_STATUS;
}

// Lines of `from` values become lines of `to`: cropped, or completed by Hermitian symmetry.
static void resize_lines(const tt_complex_t *in, int64_t lines, int64_t from, int64_t to,
                         tt_complex_t *out) {
  for (int64_t l = 0; l < lines; l++) {
    for (int64_t k = 0; k < to; k++) {
      bool mirrored = k >= from;
      tt_complex_t x = in[l * from + (mirrored ? to - k : k)];
      if (mirrored) x.im = -x.im;
      // The first value, and the middle one of an even length, are taken as real.
      if (from < to && (k == 0 || 2 * k == to)) x.im = 0;
      out[l * to + k] = x;
    }
  }
}

// The transforms over the last fft dims of `full`, whose last dimension is the real side's.
static tt_status_t transform_all(const tt__ref_call_t *call, const tt_type_t *full, uint32_t count,
                                 bool inverse, bool skip_last, tt_complex_t *data) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t d = full->rank - 1 - i;
    if (i == 0 && skip_last) continue;
    TT_RETURN_IF_ERROR(transform_dim(call->node, full->dims, full->rank, d, inverse, data));
  }
  return TT_OK_STATUS;
}

static tt_status_t run_fft(const tt__ref_call_t *call, tt_fft_t kind, uint32_t count,
                           tt_complex_t *data, tt_complex_t *other) {
  const tt_type_t *in = tt__ref_in(call, 0), *out = tt__ref_out(call, 0);
  int64_t from = in->dims[in->rank - 1], to = out->dims[out->rank - 1];
  int64_t lines = from ? tt_type_elements(in) / from : 0;
  bool inverse = kind == TT_IFFT || kind == TT_IRFFT;
  tt_element_convert(in->dtype, call->operands[0], tt_type_elements(in), TT_C128, data);
  if (kind == TT_IRFFT) {
    // The other dimensions first: the symmetry holds along the last one only after them.
    TT_RETURN_IF_ERROR(transform_all(call, in, count, true, true, data));
    resize_lines(data, lines, from, to, other);
    TT_RETURN_IF_ERROR(transform_dim(call->node, out->dims, out->rank, out->rank - 1, true, other));
  } else {
    TT_RETURN_IF_ERROR(transform_all(call, in, count, inverse, false, data));
    resize_lines(data, lines, from, to, other);
  }
  tt_element_convert(TT_C128, other, tt_type_elements(out), out->dtype, call->results[0]);
  return TT_OK_STATUS;
}

tt_status_t tt__ref_fft(const tt__ref_call_t *call) {
  uint32_t count;
  (void)tt_node_ints(call->node, TT_ATTR_FFT_LENGTH, &count);
  tt_fft_t kind = (tt_fft_t)tt_node_int(call->node, TT_ATTR_FFT_TYPE, TT_FFT);
  size_t in = (size_t)tt_type_elements(tt__ref_in(call, 0));
  size_t out = (size_t)tt_type_elements(tt__ref_out(call, 0));
  if (in == 0 || out == 0) return TT_OK_STATUS;
  tt_complex_t *data = (tt_complex_t *)tt_alloc(sizeof(tt_complex_t) * (in + out));
  if (!data) return tt__ref_no_memory(call->node);
  tt_status_t status = run_fft(call, kind, count, data, data + in);
  tt_free(data);
  return status;
}
