// The one place where a C status becomes a C++ exception.
#pragma once

#include <exception>

#include "base/status.h"

namespace tt {

// Throws what `status` says, in PyTorch's exception types; consumes it.
[[noreturn]] void status_throw(tt_status_t status);

// An exception that PyTorch's own code threw while C code was on the stack is kept here, so that
// the caller above the C code rethrows it unchanged.
tt_status_t status_from_exception(std::exception_ptr error);
void status_forget_exception() noexcept;

// Refuses device work in a forked child of a process that had started the device.
void status_check_fork();
bool status_in_bad_fork() noexcept;
void status_watch_fork();

}  // namespace tt

#define TT_CALL(expr)                                                        \
  do {                                                                       \
    tt_status_t tt_s_ = (expr);                                              \
    if (__builtin_expect(tt_s_ != TT_OK_STATUS, 0)) tt::status_throw(tt_s_); \
  } while (0)
