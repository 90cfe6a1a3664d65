#include "capture.hpp"

#include <ATen/ops/as_strided.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include "base/alloc.h"
#include "eager/capture.h"
#include "status.hpp"
#include "tensor.hpp"

namespace {

constexpr const char *kName = "torchtpu.capture";

void dispose(PyObject *capsule) {
  tt_capture_destroy(static_cast<tt_capture_t *>(PyCapsule_GetPointer(capsule, kName)));
}

struct Tensors {
  std::vector<at::Tensor> tensors;
  std::vector<tt_tensor_t> described;
  uint32_t count() const { return static_cast<uint32_t>(described.size()); }
};

Tensors unpack(PyObject *list) {
  Tensors out;
  TORCH_CHECK_TYPE(PyList_Check(list), "a list of tensors, got ", Py_TYPE(list)->tp_name);
  auto size = static_cast<size_t>(PyList_GET_SIZE(list));
  out.tensors.reserve(size);
  out.described.reserve(size);
  for (size_t i = 0; i < size; i++) {
    PyObject *item = PyList_GET_ITEM(list, static_cast<Py_ssize_t>(i));
    TORCH_CHECK_TYPE(THPVariable_Check(item), "a list of tensors holds a ", Py_TYPE(item)->tp_name);
    out.tensors.push_back(THPVariable_Unpack(item));
    TORCH_CHECK(out.tensors.back().device().type() == tt::kTpu,
                "a captured program takes tpu tensors, not ", out.tensors.back().device());
    out.described.push_back(tt::tensor_describe(out.tensors.back()));
  }
  return out;
}

// A result over an input's storage is a view of that input, any other a tensor of its own.
at::Tensor wrap(const Tensors &inputs, const tt_out_t &out) {
  at::IntArrayRef sizes(out.meta->sizes, out.meta->rank),
      strides(out.meta->strides, out.meta->rank);
  auto type = tt::dtype_from_c(out.meta->dtype);
  for (size_t i = 0; i < inputs.tensors.size(); i++) {
    if (inputs.described[i].storage != out.storage) continue;
    tt_storage_release(out.storage);
    return at::as_strided(inputs.tensors[i].detach(), sizes, strides, out.offset);
  }
  return tt::tensor_wrap(out.storage, type, sizes, strides, out.offset);
}

PyObject *to_list(const std::vector<at::Tensor> &tensors) {
  PyObject *list = PyList_New(static_cast<Py_ssize_t>(tensors.size()));
  for (size_t i = 0; list && i < tensors.size(); i++) {
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), THPVariable_Wrap(tensors[i]));
  }
  return list;
}

tt_capture_t *pointer(PyObject *capsule) {
  auto *capture = static_cast<tt_capture_t *>(PyCapsule_GetPointer(capsule, kName));
  if (!capture) throw python_error();
  return capture;
}

}  // namespace

PyObject *tt::py_capture_begin(PyObject *, PyObject *args) {
  int device = 0, located = 0;
  PyObject *list = nullptr;
  if (!PyArg_ParseTuple(args, "iOp", &device, &list, &located)) return nullptr;
  HANDLE_TH_ERRORS
  Tensors inputs = unpack(list);
  tt_capture_t *capture = nullptr;
  TT_CALL(tt_capture_begin(device, inputs.described.data(), inputs.count(), &capture));
  if (located) tt_capture_locate(capture);
  return PyCapsule_New(capture, kName, dispose);
  END_HANDLE_TH_ERRORS
}

PyObject *tt::py_capture_end(PyObject *, PyObject *args) {
  PyObject *capsule = nullptr, *list = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &list)) return nullptr;
  HANDLE_TH_ERRORS
  Tensors outputs = unpack(list);
  TT_CALL(tt_capture_end(pointer(capsule), outputs.described.data(), outputs.count()));
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyObject *tt::py_capture_run(PyObject *, PyObject *args) {
  PyObject *capsule = nullptr, *list = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &list)) return nullptr;
  HANDLE_TH_ERRORS
  Tensors inputs = unpack(list);
  tt_capture_t *capture = pointer(capsule);
  tt_outs_t outs{};
  tt_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = tt_capture_run(capture, inputs.described.data(), inputs.count(), &outs);
  Py_END_ALLOW_THREADS;
  if (tt_status_code(status) == TT_NOT_FOUND) {
    tt_status_release(status);
    Py_RETURN_NONE;
  }
  TT_CALL(status);
  std::vector<at::Tensor> results;
  results.reserve(outs.count);
  for (uint32_t i = 0; i < outs.count; i++) results.push_back(wrap(inputs, outs.items[i]));
  tt_outs_deinit(&outs);
  return to_list(results);
  END_HANDLE_TH_ERRORS
}

PyObject *tt::py_capture_text(PyObject *, PyObject *capsule) {
  HANDLE_TH_ERRORS
  char *text = nullptr;
  size_t size = 0;
  TT_CALL(tt_capture_print(pointer(capsule), &text, &size));
  PyObject *result = PyUnicode_FromStringAndSize(text, static_cast<Py_ssize_t>(size));
  tt_free(text);
  return result;
  END_HANDLE_TH_ERRORS
}

PyObject *tt::py_capture_cancel(PyObject *, PyObject *capsule) {
  HANDLE_TH_ERRORS
  tt_capture_destroy(pointer(capsule));
  PyCapsule_SetDestructor(capsule, nullptr);
  PyCapsule_SetName(capsule, "torchtpu.capture.cancelled");
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}
