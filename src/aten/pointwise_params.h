// The elementwise functions by name: parameters of the lowerings `unary`, `binary`, `foreach_*`.
#ifndef TT_ATEN_POINTWISE_PARAMS_H_
#define TT_ATEN_POINTWISE_PARAMS_H_

// Functions of one value: U(NAME, class, function of (builder, value))
//   FLOAT  integers become the result's floating type; computed in its opmath type
//   SAME   computed in the argument's own type (opmath for small floats)
//   EXACT  computed in the argument's own type, never widened
// The SPECIAL lists are the functions of pointwise_special.c and pointwise_series.c.
#define TT_SPECIAL_UNARIES(U)          \
  U(ERFC, FLOAT, tt__erfc)             \
  U(ERFINV, FLOAT, tt__erfinv)         \
  U(LGAMMA, FLOAT, tt__lgamma)         \
  U(DIGAMMA, FLOAT, tt__digamma)       \
  U(TRIGAMMA, FLOAT, tt__trigamma)     \
  U(I0, FLOAT, tt__i0)                 \
  U(I0E, FLOAT, tt__i0e)               \
  U(I1, FLOAT, tt__i1)                 \
  U(I1E, FLOAT, tt__i1e)               \
  U(NDTRI, FLOAT, tt__ndtri)           \
  U(LOG_NDTR, FLOAT, tt__log_ndtr)     \
  U(ERFCX, FLOAT, tt__erfcx)           \
  U(BESSEL_J0, FLOAT, tt__bessel_j0)   \
  U(BESSEL_J1, FLOAT, tt__bessel_j1)   \
  U(BESSEL_Y0, FLOAT, tt__bessel_y0)   \
  U(BESSEL_Y1, FLOAT, tt__bessel_y1)   \
  U(BESSEL_K0, FLOAT, tt__bessel_k0)   \
  U(BESSEL_K1, FLOAT, tt__bessel_k1)   \
  U(BESSEL_K0E, FLOAT, tt__bessel_k0e) \
  U(BESSEL_K1E, FLOAT, tt__bessel_k1e) \
  U(AIRY, FLOAT, tt__airy)
#define TT_UNARIES(U)                     \
  U(ABS, SAME, pw_abs)                    \
  U(NEG, SAME, tt__neg)                   \
  U(SIGN, SAME, pw_sign)                  \
  U(SGN, SAME, pw_sgn)                    \
  U(CEIL, SAME, pw_ceil)                  \
  U(FLOOR, SAME, pw_floor)                \
  U(ROUND, SAME, pw_round)                \
  U(TRUNC, SAME, pw_trunc)                \
  U(FRAC, SAME, pw_frac)                  \
  U(RELU, EXACT, pw_relu)                 \
  U(BITWISE_NOT, EXACT, tt__not)          \
  U(LOGICAL_NOT, EXACT, pw_logical_not)   \
  U(ISNAN, EXACT, pw_isnan)               \
  U(ISINF, EXACT, pw_isinf)               \
  U(ISPOSINF, EXACT, pw_isposinf)         \
  U(ISNEGINF, EXACT, pw_isneginf)         \
  U(SIGNBIT, EXACT, pw_signbit)           \
  U(CONJ, EXACT, pw_conj)                 \
  U(IDENTITY, EXACT, pw_identity)         \
  U(ZERO, EXACT, pw_zero)                 \
  U(ANGLE, FLOAT, pw_angle)               \
  U(RECIPROCAL, FLOAT, pw_reciprocal)     \
  U(SQRT, FLOAT, tt__sqrt)                \
  U(RSQRT, FLOAT, tt__rsqrt)              \
  U(EXP, FLOAT, tt__exp)                  \
  U(EXP2, FLOAT, tt__exp2)                \
  U(EXPM1, FLOAT, tt__expm1)              \
  U(LOG, FLOAT, tt__log)                  \
  U(LOG2, FLOAT, tt__log2)                \
  U(LOG10, FLOAT, pw_log10)               \
  U(LOG1P, FLOAT, tt__log1p)              \
  U(SIN, FLOAT, tt__sin)                  \
  U(COS, FLOAT, tt__cos)                  \
  U(TAN, FLOAT, pw_tan)                   \
  U(SINH, FLOAT, pw_sinh)                 \
  U(COSH, FLOAT, pw_cosh)                 \
  U(TANH, FLOAT, tt__tanh)                \
  U(ASIN, FLOAT, pw_asin)                 \
  U(ACOS, FLOAT, pw_acos)                 \
  U(ATAN, FLOAT, pw_atan)                 \
  U(ASINH, FLOAT, pw_asinh)               \
  U(ACOSH, FLOAT, pw_acosh)               \
  U(ATANH, FLOAT, pw_atanh)               \
  U(SIGMOID, FLOAT, tt__sigmoid)          \
  U(SINC, FLOAT, pw_sinc)                 \
  U(ERF, FLOAT, tt__erf)                  \
  U(ENTR, FLOAT, pw_entr)                 \
  U(SPHERICAL_J0, FLOAT, pw_spherical_j0) \
  U(RAD2DEG, FLOAT, pw_rad2deg)           \
  U(DEG2RAD, FLOAT, pw_deg2rad)           \
  U(SILU, FLOAT, pw_silu)                 \
  U(MISH, FLOAT, pw_mish)                 \
  U(HARDSIGMOID, FLOAT, pw_hardsigmoid)   \
  U(HARDSWISH, FLOAT, pw_hardswish)       \
  TT_SPECIAL_UNARIES(U)

// Functions of two values: B(NAME, class, function of (builder, value, value))
//   ARITH    computed in the opmath type of the result's
//   REAL     ... and refuses complex numbers
//   EXACT    computed in the result's type, never widened
//   WHOLE    ... and refuses all but integers
//   COMPARE  computed in the operands' promoted type, gives booleans
//   LOGICAL  operands are compared with zero first
#define TT_SPECIAL_BINARIES(B)           \
  B(ZETA, ARITH, tt__zeta)               \
  B(IGAMMA, ARITH, tt__igamma)           \
  B(IGAMMAC, ARITH, tt__igammac)         \
  B(CHEBYSHEV_T, ARITH, tt__chebyshev_t) \
  B(CHEBYSHEV_U, ARITH, tt__chebyshev_u) \
  B(CHEBYSHEV_V, ARITH, tt__chebyshev_v) \
  B(CHEBYSHEV_W, ARITH, tt__chebyshev_w) \
  B(SHIFTED_T, ARITH, tt__shifted_t)     \
  B(SHIFTED_U, ARITH, tt__shifted_u)     \
  B(SHIFTED_V, ARITH, tt__shifted_v)     \
  B(SHIFTED_W, ARITH, tt__shifted_w)     \
  B(HERMITE_H, ARITH, tt__hermite_h)     \
  B(HERMITE_HE, ARITH, tt__hermite_he)   \
  B(LAGUERRE, ARITH, tt__laguerre)       \
  B(LEGENDRE, ARITH, tt__legendre)
#define TT_BINARIES(B)                  \
  B(ADD, ARITH, tt__add)                \
  B(SUB, ARITH, tt__sub)                \
  B(MUL, ARITH, tt__mul)                \
  B(DIV, ARITH, tt__div)                \
  B(POW, ARITH, tt__power)              \
  B(ATAN2, REAL, pw_atan2)              \
  B(HYPOT, REAL, tt__hypot)             \
  B(COPYSIGN, REAL, tt__copysign)       \
  B(NEXTAFTER, EXACT, pw_nextafter)     \
  B(MAXIMUM, EXACT, tt__max)            \
  B(MINIMUM, EXACT, tt__min)            \
  B(FMAX, EXACT, pw_fmax)               \
  B(FMIN, EXACT, pw_fmin)               \
  B(AND, EXACT, tt__and)                \
  B(OR, EXACT, tt__or)                  \
  B(XOR, EXACT, tt__xor)                \
  B(SHIFT_LEFT, WHOLE, pw_shift_left)   \
  B(SHIFT_RIGHT, WHOLE, pw_shift_right) \
  B(EQ, COMPARE, tt__eq)                \
  B(NE, COMPARE, tt__ne)                \
  B(LT, COMPARE, tt__lt)                \
  B(LE, COMPARE, tt__le)                \
  B(GT, COMPARE, tt__gt)                \
  B(GE, COMPARE, tt__ge)                \
  B(LOGICAL_AND, LOGICAL, tt__and)      \
  B(LOGICAL_OR, LOGICAL, tt__or)        \
  B(LOGICAL_XOR, LOGICAL, tt__xor)      \
  B(HEAVISIDE, EXACT, pw_heaviside)     \
  B(LOGADDEXP, ARITH, tt__logaddexp)    \
  B(LOGADDEXP2, REAL, pw_logaddexp2)    \
  B(XLOGY, REAL, pw_xlogy)              \
  B(XLOG1PY, REAL, pw_xlog1py)          \
  B(GCD, EXACT, pw_gcd)                 \
  B(LCM, EXACT, pw_lcm)                 \
  TT_SPECIAL_BINARIES(B)

typedef enum tt__unary_e {
#define U(name, cls, fn) TT_U_##name,
  TT_UNARIES(U)
#undef U
      TT_U_COUNT,
} tt__unary_t;

typedef enum tt__binary_e {
#define B(name, cls, fn) TT_B_##name,
  TT_BINARIES(B)
#undef B
      TT_B_COUNT,
} tt__binary_t;

// or'ed to a lowering's parameter
#define TT__REVERSED 0x100  // the operands stand the other way round
#define TT__RELU 0x200      // a ReLU follows

#endif  // TT_ATEN_POINTWISE_PARAMS_H_
