// A failed status is one block: the record, then its message. Nothing here can fail for lack of
// memory in a way the caller notices: there is one static status for that, which nobody frees.
#include "base/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

struct tt_status_s {
  tt_code_t code;
  int line;
  const char *file;
  char *message;  // in the same allocation
};

// What tt_status_make answers with when it cannot allocate; release knows it and leaves it alone.
static char no_memory_text[] = "out of host memory";
static struct tt_status_s no_memory = {TT_OUT_OF_MEMORY, __LINE__, __FILE__, no_memory_text};

// Room for a message of `length`; the static status where there is no memory.
static tt_status_t allocate(tt_code_t code, const char *file, int line, size_t length) {
  struct tt_status_s *s = tt_alloc(sizeof *s + length + 1);
  if (!s) return &no_memory;
  s->code = code;
  s->line = line;
  s->file = file;
  s->message = (char *)(s + 1);
  s->message[0] = '\0';
  return s;
}

// Formats twice, first for the length: messages hold shapes and names of any size.
tt_status_t tt_status_make(tt_code_t code, const char *file, int line, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  char suffix[160] = "";
  // A user's mistake is explained by its message; our own needs the place that found it.
  if (code == TT_INTERNAL) {
    const char *src = strstr(file, "src/");
    snprintf(suffix, sizeof suffix, " [%s:%d]", src ? src : file, line);
  }
  int length = vsnprintf(NULL, 0, format, args);
  size_t size = length < 0 ? 0 : (size_t)length;
  tt_status_t s = allocate(code, file, line, size + strlen(suffix));
  if (s != &no_memory) {
    if (size) vsnprintf(s->message, size + 1, format, again);
    strcpy(s->message + size, suffix);
  }
  va_end(again);
  va_end(args);
  return s;
}

tt_status_t tt_status_annotate(tt_status_t status, const char *format, ...) {
  if (!status || status == &no_memory) return status;
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  size_t size = length < 0 ? 0 : (size_t)length, old = strlen(status->message);
  tt_status_t s = allocate(status->code, status->file, status->line, size + 2 + old);
  if (s != &no_memory) {
    if (size) vsnprintf(s->message, size + 1, format, again);
    memcpy(s->message + size, ": ", 2);
    memcpy(s->message + size + 2, status->message, old + 1);
    tt_status_release(status);
  } else {
    s = status;  // the cause matters more than its context
  }
  va_end(again);
  va_end(args);
  return s;
}

tt_status_t tt_status_clone(tt_status_t status) {
  if (!status || status == &no_memory) return status;
  size_t length = strlen(status->message);
  tt_status_t s = allocate(status->code, status->file, status->line, length);
  if (s != &no_memory) memcpy(s->message, status->message, length + 1);
  return s;
}

tt_code_t tt_status_code(tt_status_t status) { return status ? status->code : TT_OK; }

const char *tt_status_message(tt_status_t status) { return status ? status->message : ""; }

// Both tables are in the enum's order because both come from TT_CODES.
const char *tt_status_exception(tt_status_t status) {
  static const char *const names[] = {"",
#define X(name, exception) exception,
                                      TT_CODES(X)
#undef X
  };
  return names[tt_status_code(status)];
}

const char *tt_code_name(tt_code_t code) {
  static const char *const names[] = {"OK",
#define X(name, exception) #name,
                                      TT_CODES(X)
#undef X
  };
  return (size_t)code < sizeof names / sizeof *names ? names[code] : "?";
}

void tt_status_release(tt_status_t status) {
  if (status != &no_memory) tt_free(status);
}

tt_status_t tt_status_join(tt_status_t first, tt_status_t second) {
  if (!first) return second;
  tt_status_release(second);
  return first;
}
