// What joins hosts: a c10d backend for CPU tensors, as C sees it.
#pragma once

#include "dist/group.h"

namespace tt {
// `context`: a Python function from a name to a backend.
tt_status_t link_create(void *context, const char *name, tt_link_t *out_link);
}  // namespace tt
