// The only way anything here reaches the user's terminal: lines on stderr.
#ifndef TT_BASE_LOG_H_
#define TT_BASE_LOG_H_

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// The order is that of verbosity: a level lets through itself and all before it.
typedef enum tt_log_level_e {
  TT_LOG_ERROR,
  TT_LOG_WARNING,
  TT_LOG_INFO,
  TT_LOG_DEBUG
} tt_log_level_t;

// Thread-safe. Messages above the level (TORCHTPU_LOG: error, warning (default), info, debug) are
// dropped, before they are formatted. One call is one line; the newline is added, and what passes 2
// kB is cut.
void tt_log(tt_log_level_t level, const char *format, ...) TT_PRINTF(2, 3);

// Unconditional text, as it is (dumps that the user asked for).
void tt_log_text(const char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif  // TT_BASE_LOG_H_
