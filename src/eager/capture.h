// Captured programs (eager.h) that tell where they come from.
#ifndef TT_EAGER_CAPTURE_H_
#define TT_EAGER_CAPTURE_H_

#include "eager/eager.h"

#ifdef __cplusplus
extern "C" {
#endif

// From now on the capture notes the Python line of each call: loc("...") in its text.
void tt_capture_locate(tt_capture_t *capture);

#ifdef __cplusplus
}
#endif
#endif  // TT_EAGER_CAPTURE_H_
