// The few places where native code asks Python. Each takes the GIL itself.
#pragma once

#include <cstddef>
#include <exception>

namespace tt {

// torch._meta_registrations, once.
void python_import_meta_kernels();
// A failed `assert` of a Python meta kernel as the RuntimeError that the CPU's check would give;
// any other exception as it is.
std::exception_ptr python_assertion_as_error(std::exception_ptr error);
// True when torchtpu.decompositions registered one for `op` ("aten::name.overload").
bool python_install_decomposition(const char *op);
// The user's innermost frame: "file.py:12 in step".
bool python_location(void *context, char *buffer, size_t size);

}  // namespace tt
