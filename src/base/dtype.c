// The table behind dtype.h's questions, in the order of the enumeration.
#include "base/dtype.h"

#include <string.h>

const tt_dtype_info_t tt_dtype_infos[TT_DTYPE_COUNT] = {
#define X(name, text, bits, bytes, cls, mantissa) {text, bits, bytes, TT_CLASS_##cls, mantissa},
    TT_DTYPES(X)
#undef X
};

tt_dtype_t tt_dtype_parse(const char *text, size_t length) {
  for (int d = 0; d < TT_DTYPE_COUNT; d++) {
    const char *name = tt_dtype_infos[d].text;
    if (strlen(name) == length && memcmp(name, text, length) == 0) return (tt_dtype_t)d;
  }
  return TT_DTYPE_NONE;
}
