// Captured programs for torch.compile.
#pragma once

#include <Python.h>

namespace tt {

// capture_begin(device, [input tensors], whether the text shall tell Python lines) -> capture.
// 0-d CPU tensors are run-time values.
PyObject *py_capture_begin(PyObject *self, PyObject *args);
// capture_end(capture, [output tensors])
PyObject *py_capture_end(PyObject *self, PyObject *args);
// capture_same(capture, capture) -> whether both do the same, whatever their host inputs' values
PyObject *py_capture_same(PyObject *self, PyObject *args);
// capture_cancel(capture): ends a capture that went wrong; the object is of no use afterwards
PyObject *py_capture_cancel(PyObject *self, PyObject *capsule);
// capture_text(capture) -> StableHLO
PyObject *py_capture_text(PyObject *self, PyObject *capsule);
// capture_scalars(capture) -> 16 bytes for each scalar, which are the text's last arguments
PyObject *py_capture_scalars(PyObject *self, PyObject *capsule);

// The programs of one compiled graph. Its arguments are a list of tpu tensors, 0-d CPU tensors,
// ints, floats, bools and Nones.
// programs_create() -> programs
PyObject *py_programs_create(PyObject *self, PyObject *none);
// programs_add(programs, [arguments], capture of their tensors, [results]) -> how many there are
// now. A result that is a tensor stands for the capture's next output. The capture is used up.
PyObject *py_programs_add(PyObject *self, PyObject *args);
// programs_run(programs, [arguments]) -> [results], the arguments let go; None: no program for
// these arguments yet
PyObject *py_programs_run(PyObject *self, PyObject *const *args, Py_ssize_t count);

}  // namespace tt
