// One pointer, published with release and read with acquire: a thread that sees the table sees its
// contents.
#include "softtpu/library.h"

#include <stdatomic.h>

static _Atomic(const tt_library_t *) installed;

void tt_library_install(const tt_library_t *library) {
  atomic_store_explicit(&installed, library, memory_order_release);
}

const tt_library_t *tt_library(void) {
  return atomic_load_explicit(&installed, memory_order_acquire);
}
