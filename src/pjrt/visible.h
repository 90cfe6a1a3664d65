// Which of a plugin's devices this process uses: XRT_TPU_CONFIG="NAME:ORDINAL[;ORDINAL...]".
#ifndef TT_PJRT_VISIBLE_H_
#define TT_PJRT_VISIBLE_H_

#include <stdint.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Writes the ordinals to use, each once, in the order given, out of `available` devices; all of
// them where the variable is not set. `out_ordinals` has room for `available` of them. VALUE where
// the text is malformed or names a device that is not there.
tt_status_t tt_visible_devices(uint32_t available, uint32_t *out_ordinals,
                               uint32_t *out_count) TT_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif  // TT_PJRT_VISIBLE_H_
