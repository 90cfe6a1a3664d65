// The c10d backend `tpu_dist`.
#pragma once

#include <Python.h>

namespace tt {

// process_group_create(store, rank, size, timeout_s) -> torch.distributed's Backend
PyObject *py_process_group_create(PyObject *self, PyObject *args);

}  // namespace tt
