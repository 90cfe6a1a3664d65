// The parameters that lines of the .def files hand to a family's lowering.
#ifndef TT_ATEN_PARAMS_H_
#define TT_ATEN_PARAMS_H_

// matmul: which product.
typedef enum tt__matmul_e {
  TT__MM,
  TT__BMM,
  TT__MV,
  TT__DOT,
  TT__VDOT,
  TT__BMM_SUM,  // summed over the batch
  TT__OUTER,
} tt__matmul_t;
#define TT__MATMUL_DTYPE 0x100       // or'ed: an out_dtype argument stands before beta
#define TT__MATMUL_ACTIVATION 0x200  // or'ed: relu or gelu follows

// norm: which arguments a batch norm has.
typedef enum tt__norm_e {
  TT__NORM_FULL,
  TT__NORM_NO_STATS,
  TT__NORM_UPDATE,
  TT__NORM_FROZEN,
} tt__norm_t;

// index: how a scatter combines, or whose argument says so.
typedef enum tt__combine_e {
  TT__REPLACE,
  TT__ADD,
  TT__BY_NAME,  // scatter.reduce's "add" or "multiply"
} tt__combine_t;

// resample: the filter; AA is antialiased.
typedef enum tt__resample_e {
  TT__NEAREST,
  TT__NEAREST_EXACT,
  TT__LINEAR,
  TT__CUBIC,
  TT__LINEAR_AA,
  TT__CUBIC_AA,
  TT__LANCZOS_AA,
} tt__resample_t;
#define TT__RESAMPLE_BACKWARD 0x100

#endif  // TT_ATEN_PARAMS_H_
