// The c10d backend `tpu_dist`.
#pragma once

#include <Python.h>

namespace tt {

// process_group_create(store, rank, size, timeout_s, ranks, world, link) -> torch.distributed's
// Backend. `link(name)` makes a backend between hosts. `ranks` is empty, or lists which ranks of
// `world` imagined ones the group is.
PyObject *py_process_group_create(PyObject *self, PyObject *args);

}  // namespace tt
