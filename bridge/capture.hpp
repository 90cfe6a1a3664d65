// Captured programs for torch.compile.
#pragma once

#include <Python.h>

namespace tt {

// capture_begin(device, [input tensors], whether the text shall tell Python lines) -> capture
PyObject *py_capture_begin(PyObject *self, PyObject *args);
// capture_end(capture, [output tensors])
PyObject *py_capture_end(PyObject *self, PyObject *args);
// capture_run(capture, [input tensors]) -> [output tensors], or None: capture again for these
// inputs
PyObject *py_capture_run(PyObject *self, PyObject *args);

// capture_cancel(capture): ends a capture that went wrong; the object is of no use afterwards
PyObject *py_capture_cancel(PyObject *self, PyObject *capsule);
// capture_text(capture) -> StableHLO
PyObject *py_capture_text(PyObject *self, PyObject *capsule);

}  // namespace tt
