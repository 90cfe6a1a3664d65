#pragma once

#include "softtpu/library.h"

namespace tt {

// PyTorch's matrix kernels, for the software TPU.
const tt_library_t *library_table();

}  // namespace tt
