#include "python.hpp"

#include <Python.h>
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>

namespace tt {
namespace {

class Gil {
 public:
  Gil() : state_(PyGILState_Ensure()) {}
  ~Gil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

// Calls module.function(argument) or only imports; a Python error is reported, not raised: the
// caller then goes on without what it asked for.
bool call_bool(const char *module_name, const char *function, const char *argument) {
  if (!Py_IsInitialized()) return false;
  Gil gil;
  PyObject *module = PyImport_ImportModule(module_name);
  PyObject *result = nullptr;
  if (module && function) result = PyObject_CallMethod(module, function, "s", argument);
  bool ok = function ? result && PyObject_IsTrue(result) == 1 : module != nullptr;
  if (PyErr_Occurred()) PyErr_WriteUnraisable(module);
  Py_XDECREF(result);
  Py_XDECREF(module);
  return ok;
}

// The folder of a package, with its slash; nothing starts with what is not found.
std::string package_folder(const char *name) {
  PyObject *module = PyImport_ImportModule(name);
  PyObject *file = module ? PyObject_GetAttrString(module, "__file__") : nullptr;
  const char *path = file && PyUnicode_Check(file) ? PyUnicode_AsUTF8(file) : nullptr;
  std::string folder = path ? path : "";
  folder = folder.substr(0, folder.rfind('/') + 1);
  Py_XDECREF(file);
  Py_XDECREF(module);
  PyErr_Clear();
  return folder.empty() ? "?" : folder;
}

// The library's own frames, and those of code that it or Python made, are not what the user wrote.
bool is_library_file(const char *file) {
  static const std::array<std::string, 4> starts{
      package_folder("torch"), package_folder("torchtpu"), "<frozen ", "<eval_with_key>"};
  return std::any_of(starts.begin(), starts.end(), [&](const std::string &start) {
    return strncmp(file, start.c_str(), start.size()) == 0;
  });
}

bool print_frame(PyFrameObject *frame, bool any, char *buffer, size_t size) {
  PyCodeObject *code = PyFrame_GetCode(frame);
  const char *file = PyUnicode_AsUTF8(code->co_filename);
  const char *name = PyUnicode_AsUTF8(code->co_name);
  bool take = file && name && (any || !is_library_file(file));
  if (take) std::snprintf(buffer, size, "%s:%d in %s", file, PyFrame_GetLineNumber(frame), name);
  PyErr_Clear();
  Py_DECREF(code);
  return take;
}

}  // namespace

void python_import_meta_kernels() {
  static bool done = false;
  if (done) return;
  done = call_bool("torch._meta_registrations", nullptr, nullptr);
}

std::exception_ptr python_assertion_as_error(std::exception_ptr error) {
  auto converted = [&](PyObject *type, PyObject *value) {
    if (!PyErr_GivenExceptionMatches(type, PyExc_AssertionError)) return error;
    PyObject *text = PyObject_Str(value ? value : Py_None);
    const char *words = text ? PyUnicode_AsUTF8(text) : nullptr;
    std::string message = words ? words : "a check of the arguments failed";
    Py_XDECREF(text);
    PyErr_Clear();
    return std::make_exception_ptr(
        c10::Error({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, std::move(message)));
  };
  try {
    std::rethrow_exception(error);
  } catch (python_error &python) {
    Gil gil;
    return converted(python.type, python.value);
  } catch (pybind11::error_already_set &python) {
    Gil gil;
    return converted(python.type().ptr(), python.value().ptr());
  } catch (...) {
    return error;
  }
}

bool python_install_decomposition(const char *op) {
  return call_bool("torchtpu.decompositions", "install", op);
}

bool python_location(void *, char *buffer, size_t size) {
  if (!Py_IsInitialized()) return false;
  Gil gil;
  PyFrameObject *innermost = PyEval_GetFrame();
  if (!innermost) return false;
  bool found = false;
  Py_INCREF(innermost);
  for (PyFrameObject *frame = innermost; frame && !found;) {
    found = print_frame(frame, false, buffer, size);
    PyFrameObject *back = PyFrame_GetBack(frame);
    if (frame != innermost) Py_DECREF(frame);
    frame = back;
    if (found) Py_XDECREF(back);
  }
  if (!found) found = print_frame(innermost, true, buffer, size);
  Py_DECREF(innermost);
  return found;
}

}  // namespace tt
