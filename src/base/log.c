// One line a call, written at once, so that lines of several threads do not mix. The level is read
// from the environment at the first message and kept.
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = {"error", "warning", "info", "debug"};

static _Atomic int log_level = -1;  // -1: the environment has not been looked at

// Two threads may both look at the environment; they find the same, so a race is harmless.
static int level_now(void) {
  int level = atomic_load_explicit(&log_level, memory_order_relaxed);
  if (level >= 0) return level;
  level = TT_LOG_WARNING;
  const char *wanted = getenv("TORCHTPU_LOG");
  for (int i = 0; wanted && i < 4; i++) {
    if (strcmp(wanted, level_names[i]) == 0) level = i;
  }
  atomic_store_explicit(&log_level, level, memory_order_relaxed);
  return level;
}

void tt_log_text(const char *text, size_t size) { fwrite(text, 1, size, stderr); }

void tt_log(tt_log_level_t level, const char *format, ...) {
  if ((int)level > level_now()) return;
  char line[2048];
  int head = snprintf(line, sizeof line, "torchtpu %s: ", level_names[level]);
  va_list args;
  va_start(args, format);
  int body = vsnprintf(line + head, sizeof line - (size_t)head - 1, format, args);
  va_end(args);
  if (body < 0) return;
  // A message that does not fit is cut, never split over two lines.
  size_t size = (size_t)head + (size_t)body;
  if (size > sizeof line - 2) size = sizeof line - 2;
  line[size] = '\n';
  tt_log_text(line, size + 1);
}
