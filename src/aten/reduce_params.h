// Parameters of the reduction lowerings: what is computed, or'ed with how the dimensions are given.
#ifndef TT_ATEN_REDUCE_PARAMS_H_
#define TT_ATEN_REDUCE_PARAMS_H_

typedef enum tt__reduction_e {
  TT_R_SUM,
  TT_R_NANSUM,
  TT_R_MEAN,
  TT_R_PROD,
  TT_R_MAX,
  TT_R_MIN,
  TT_R_ALL,
  TT_R_ANY,
  TT_R_COUNT,  // of non-zero elements
  TT_R_LOGSUMEXP,
} tt__reduction_t;

typedef enum tt__reduction_form_e {
  TT__FULL = 0x100,  // (self, ...): all elements
  TT__DIM = 0x200,   // (self, dim, keepdim, ...)
  TT__DIMS = 0x300,  // (self, dims, keepdim, ...)
} tt__reduction_form_t;

// or'ed to var: the square root; and the mean as a second result
#define TT__STD 1
#define TT__WITH_MEAN 2

#endif  // TT_ATEN_REDUCE_PARAMS_H_
