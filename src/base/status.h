// The one status type. NULL is OK; anything else is owned by the receiver, who propagates or
// releases it.
#ifndef TT_BASE_STATUS_H_
#define TT_BASE_STATUS_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// TT_MUST_USE: the compiler refuses a caller that drops the result. TT_PRINTF: it checks the format
// against the arguments. TT_NEVER_NULL: it may rely on the pointer that comes back.
#define TT_MUST_USE __attribute__((warn_unused_result))
#define TT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define TT_NEVER_NULL __attribute__((returns_nonnull))

// X(enum suffix, the Python exception that the bridge raises)
#define TT_CODES(X)                          \
  X(INVALID_ARGUMENT, "RuntimeError")        \
  X(INDEX, "IndexError")                     \
  X(VALUE, "ValueError")                     \
  X(TYPE, "TypeError")                       \
  X(UNIMPLEMENTED, "NotImplementedError")    \
  X(OUT_OF_MEMORY, "torch.OutOfMemoryError") \
  X(NOT_FOUND, "RuntimeError")               \
  X(UNAVAILABLE, "RuntimeError")             \
  X(DEADLINE, "RuntimeError")                \
  X(LINALG, "torch.linalg.LinAlgError")      \
  X(UNKNOWN, "RuntimeError")                 \
  X(INTERNAL, "RuntimeError")

// Codes name whose mistake it is: the first four are a user's argument (and Python's exception for
// it), INTERNAL is our bug; the others say what is missing or went wrong outside.
typedef enum tt_code_e {
  TT_OK = 0,
#define X(name, exception) TT_##name,
  TT_CODES(X)
#undef X
} tt_code_t;

// Thread-compatible. A status names its code, a message and the place that made it. It is owned by
// whoever received it last: return it, annotate it or release it, exactly once.
typedef struct tt_status_s *tt_status_t;

#define TT_OK_STATUS ((tt_status_t)0)

// Makes a failed status; with no memory left it returns a static out-of-memory status, never NULL.
tt_status_t tt_status_make(tt_code_t code, const char *file, int line, const char *format,
                           ...) TT_MUST_USE TT_NEVER_NULL TT_PRINTF(4, 5);

// Puts "context: " before the message; consumes and returns `status`.
tt_status_t tt_status_annotate(tt_status_t status, const char *format, ...) TT_MUST_USE
    TT_PRINTF(2, 3);

// A second owner's copy of a failed status (OK stays OK).
tt_status_t tt_status_clone(tt_status_t status) TT_MUST_USE;

// These take OK, too. Texts live as long as the status.
tt_code_t tt_status_code(tt_status_t status);
const char *tt_status_message(tt_status_t status);    // borrowed, "" for OK
const char *tt_status_exception(tt_status_t status);  // Python exception's name
const char *tt_code_name(tt_code_t code);
void tt_status_release(tt_status_t status);  // NULL-safe

// Keeps `first` and drops `second`, or returns `second` where `first` is OK.
tt_status_t tt_status_join(tt_status_t first, tt_status_t second) TT_MUST_USE;

// How a failure is made and passed on. The message is for the user: it names op, shape or value.
#define TT_ERROR(code, ...) tt_status_make(TT_##code, __FILE__, __LINE__, __VA_ARGS__)

#define TT_RETURN_IF_ERROR(expr)             \
  do {                                       \
    tt_status_t tt_s_ = (expr);              \
    if (tt_s_ != TT_OK_STATUS) return tt_s_; \
  } while (0)

// Our own bug: asserts in debug builds, an INTERNAL status in release builds (so only in functions
// that return a status). A user can reach it with no input; what a user can reach is TT_ERROR.
#ifdef NDEBUG
#define TT_CHECK(cond)                                                                          \
  do {                                                                                          \
    if (!(cond)) return TT_ERROR(INTERNAL, "internal: check failed: %s; please report", #cond); \
  } while (0)
#else
#include <assert.h>
#define TT_CHECK(cond) assert(cond)
#endif

#ifdef __cplusplus
}
#endif
#endif  // TT_BASE_STATUS_H_
