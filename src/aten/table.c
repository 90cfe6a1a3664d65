// The table of ops with a lowering, made from aten.def.
#include "aten/lower.h"
#include "aten/params.h"
#include "aten/pointwise_params.h"
#include "aten/reduce_params.h"

// aten.def's flag column may leave the prefix out.
enum {
  STATIC_SCALARS = TT_ATEN_STATIC_SCALARS,
  RANDOM = TT_ATEN_RANDOM,
  TRAINING_STATS = TT_ATEN_TRAINING_STATS,
  INPLACE_ONLY = TT_ATEN_INPLACE_ONLY,
  MASKS = TT_ATEN_MASKS,
  KEEP_SELF_DTYPE = TT_ATEN_KEEP_SELF_DTYPE,
  LENGTH = TT_ATEN_LENGTH,
  FITS = TT_ATEN_FITS,
  FITS_PROMOTED = TT_ATEN_FITS_PROMOTED,
};

#define ATEN(functional, inplace, out, lower, param, flags) \
  void tt__lower_##lower(tt_lower_t *L, int param_);
#define ATEN_HOST(functional, inplace, out, name)
#include "aten/aten.def"
#undef ATEN
#undef ATEN_HOST

const tt_aten_op_t tt_aten_ops[] = {
#define ATEN(functional, inplace, out, lower, param, flags) \
  {functional, inplace, out, tt__lower_##lower, #lower, (int)(param), (uint32_t)(flags)},
#define ATEN_HOST(functional, inplace, out, name) \
  {functional, inplace, out, NULL, #name, 0, TT_ATEN_HOST},
#include "aten/aten.def"
#undef ATEN
#undef ATEN_HOST
    {NULL, NULL, NULL, NULL, NULL, 0, 0},
};

const uint32_t tt_aten_op_count = sizeof tt_aten_ops / sizeof *tt_aten_ops - 1;
