// Result metadata from PyTorch's own Meta kernels, asked once per new combination of argument
// facts.
#pragma once

#include "schema.hpp"
#include "stack.hpp"

namespace tt {

// tt_eager_hooks_t's `infer`. An exception that PyTorch throws comes back as a status
// (status_from_exception), so that none crosses the C code.
tt_status_t infer(void *context, const tt_call_t *call, tt_inferred_t *out);

// out= tensors that the last failed call on this thread wants resized: argument and layout.
struct Resize {
  size_t arg;
  std::vector<int64_t> sizes, strides;
};
std::vector<Resize> infer_take_resizes();

}  // namespace tt
