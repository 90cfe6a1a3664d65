#include "status.hpp"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <atomic>
#include <string>
#include <utility>

#include "eager/eager.h"

namespace tt {
namespace {

thread_local std::exception_ptr pending;
std::atomic<bool> in_bad_fork{false};

template <class E>
[[noreturn]] void raise(std::string message) {
  throw E({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, std::move(message));
}

}  // namespace

void status_throw(tt_status_t status) {
  if (pending) {
    tt_status_release(status);
    std::rethrow_exception(std::exchange(pending, nullptr));
  }
  std::string message = tt_status_message(status);
  tt_code_t code = tt_status_code(status);
  tt_status_release(status);
  switch (code) {
    case TT_INDEX:
      raise<c10::IndexError>(std::move(message));
    case TT_VALUE:
      raise<c10::ValueError>(std::move(message));
    case TT_TYPE:
      raise<c10::TypeError>(std::move(message));
    case TT_UNIMPLEMENTED:
      raise<c10::NotImplementedError>(std::move(message));
    case TT_OUT_OF_MEMORY:
      raise<c10::OutOfMemoryError>(std::move(message));
    case TT_LINALG:
      raise<c10::LinAlgError>(std::move(message));
    default:
      raise<c10::Error>(std::move(message));
  }
}

tt_status_t status_from_exception(std::exception_ptr error) {
  pending = std::move(error);
  return TT_ERROR(INVALID_ARGUMENT, "shape inference failed");
}

void status_forget_exception() noexcept {
  if (__builtin_expect(static_cast<bool>(pending), 0)) pending = nullptr;
}

bool status_in_bad_fork() noexcept { return in_bad_fork.load(std::memory_order_relaxed); }

void status_check_fork() {
  TORCH_CHECK(!status_in_bad_fork(),
              "Cannot re-initialize TPU in forked subprocess. To use TPU with multiprocessing, you "
              "must use the 'spawn' start method");
}

void status_watch_fork() {
  pthread_atfork(nullptr, nullptr, [] {
    if (tt_eager_is_started()) in_bad_fork.store(true, std::memory_order_relaxed);
  });
}

}  // namespace tt
