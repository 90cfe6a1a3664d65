// The Python module torchtpu._C: what torchtpu/tpu/*.py needs beyond torch's own interfaces.
#include <Python.h>
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>

#include "allocator.hpp"
#include "capture.hpp"
#include "fallback.hpp"
#include "generator.hpp"
#include "guard.hpp"
#include "hooks.hpp"
#include "infer.hpp"
#include "library.hpp"
#include "process_group.hpp"
#include "python.hpp"
#include "register.hpp"
#include "status.hpp"
#include "tensor.hpp"

namespace {

// Runs `body` with the GIL released, C++ exceptions as Python ones.
template <class F>
PyObject *guarded(F body) {
  PyThreadState *state = PyEval_SaveThread();
  try {
    body();
  } catch (...) {
    PyEval_RestoreThread(state);
    torch::translate_exception_to_python(std::current_exception());
    return nullptr;
  }
  PyEval_RestoreThread(state);
  Py_RETURN_NONE;
}

bool dict_set(PyObject *dict, const char *key, PyObject *value) {
  bool ok = value && PyDict_SetItemString(dict, key, value) == 0;
  Py_XDECREF(value);
  return ok;
}

PyObject *py_start(PyObject *, PyObject *) {
  return guarded([] {
    tt::status_check_fork();
    TT_CALL(tt_eager_start());
  });
}

PyObject *py_is_started(PyObject *, PyObject *) { return PyBool_FromLong(tt_eager_is_started()); }

PyObject *py_in_bad_fork(PyObject *, PyObject *) {
  return PyBool_FromLong(tt::status_in_bad_fork());
}

PyObject *py_device_count(PyObject *, PyObject *) {
  int count = 0;
  if (!guarded([&] { count = tt::status_in_bad_fork() ? 0 : tt::device_count(); })) return nullptr;
  return PyLong_FromLong(count);
}

PyObject *py_mode(PyObject *, PyObject *) { return PyLong_FromLong(tt_eager_mode()); }

PyObject *py_set_mode(PyObject *, PyObject *arg) {
  long mode = PyLong_AsLong(arg);
  if (mode == -1 && PyErr_Occurred()) return nullptr;
  return guarded([&] { TT_CALL(tt_eager_set_mode(static_cast<tt_eager_mode_t>(mode))); });
}

PyObject *py_set_check_finite(PyObject *, PyObject *arg) {
  tt_eager_set_check_finite(PyObject_IsTrue(arg) == 1);
  Py_RETURN_NONE;
}

PyObject *py_seed_all(PyObject *, PyObject *arg) {
  uint64_t seed = PyLong_AsUnsignedLongLong(arg);
  if (PyErr_Occurred()) return nullptr;
  tt_generator_seed_all(seed);
  Py_RETURN_NONE;
}

PyObject *py_flush(PyObject *, PyObject *arg) {
  int device = static_cast<int>(PyLong_AsLong(arg));
  if (PyErr_Occurred()) return nullptr;
  return guarded([&] { TT_CALL(tt_eager_flush(device)); });
}

PyObject *py_device_info(PyObject *, PyObject *arg) {
  auto device = static_cast<uint32_t>(PyLong_AsLong(arg));
  if (PyErr_Occurred()) return nullptr;
  tt_memory_stats_t stats{};
  if (!guarded([&] {
        TT_CALL(tt_eager_start());
        TORCH_CHECK(device < tt_client_device_count(tt_eager_client()),
                    "invalid device ordinal: tpu:", device);
        stats = tt::memory_stats(static_cast<c10::DeviceIndex>(device));
      })) {
    return nullptr;
  }
  tt_client_t *client = tt_eager_client();
  return Py_BuildValue("{s:s,s:s,s:s,s:O,s:L}", "kind", tt_client_device_kind(client, device),
                       "platform", tt_client_platform(client), "platform_version",
                       tt_client_platform_version(client), "is_soft",
                       tt_client_is_soft(client) ? Py_True : Py_False, "total_memory",
                       static_cast<long long>(stats.bytes_limit));
}

PyObject *py_default_generator(PyObject *, PyObject *arg) {
  auto device = static_cast<c10::DeviceIndex>(PyLong_AsLong(arg));
  if (PyErr_Occurred()) return nullptr;
  const at::Generator *generator = nullptr;
  PyObject *done = guarded([&] { generator = &tt::generator_default(device); });
  return done ? THPGenerator_Wrap(*generator) : nullptr;
}

PyObject *py_stats(PyObject *, PyObject *) {
  tt_eager_stats_t s{};
  tt_eager_stats(&s);
  return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "instances", (long long)s.instances,
                       "programs_compiled", (long long)s.programs_compiled, "program_hits",
                       (long long)s.program_hits, "windows_flushed", (long long)s.windows_flushed,
                       "window_hits", (long long)s.window_hits, "ops_recorded",
                       (long long)s.ops_recorded, "ops_submitted", (long long)s.ops_submitted,
                       "compile_ns", (long long)s.compile_ns);
}

PyObject *py_fallback_counts(PyObject *, PyObject *) {
  PyObject *dict = PyDict_New();
  for (const auto &[name, count] : tt::fallback_counts()) {
    if (dict && !dict_set(dict, name.c_str(), PyLong_FromLongLong(count))) Py_CLEAR(dict);
  }
  return dict;
}

PyObject *py_fallback_reset(PyObject *, PyObject *) {
  tt::fallback_reset();
  Py_RETURN_NONE;
}

PyObject *py_fallback_set_policy(PyObject *, PyObject *arg) {
  long policy = PyLong_AsLong(arg);
  if (policy == -1 && PyErr_Occurred()) return nullptr;
  tt::fallback_set_policy(static_cast<tt::FallbackPolicy>(policy));
  Py_RETURN_NONE;
}

// {functional, in-place and out overloads that the table registers}
PyObject *py_registered_ops(PyObject *, PyObject *) {
  PyObject *list = PyList_New(0);
  for (const auto &forms : tt::entry_table()) {
    for (const auto &entry : forms) {
      if (!entry || !list) continue;
      PyObject *name = PyUnicode_FromString(c10::toString(entry->handle.operator_name()).c_str());
      if (!name || PyList_Append(list, name) != 0) Py_CLEAR(list);
      Py_XDECREF(name);
    }
  }
  return list;
}

PyMethodDef methods[] = {
    {"start", py_start, METH_NOARGS, nullptr},
    {"is_started", py_is_started, METH_NOARGS, nullptr},
    {"in_bad_fork", py_in_bad_fork, METH_NOARGS, nullptr},
    {"device_count", py_device_count, METH_NOARGS, nullptr},
    {"device_info", py_device_info, METH_O, nullptr},
    {"mode", py_mode, METH_NOARGS, nullptr},
    {"set_mode", py_set_mode, METH_O, nullptr},
    {"set_check_finite", py_set_check_finite, METH_O, nullptr},
    {"flush", py_flush, METH_O, nullptr},
    {"seed_all", py_seed_all, METH_O, nullptr},
    {"default_generator", py_default_generator, METH_O, nullptr},
    {"stats", py_stats, METH_NOARGS, nullptr},
    {"fallback_counts", py_fallback_counts, METH_NOARGS, nullptr},
    {"fallback_reset", py_fallback_reset, METH_NOARGS, nullptr},
    {"fallback_set_policy", py_fallback_set_policy, METH_O, nullptr},
    {"registered_ops", py_registered_ops, METH_NOARGS, nullptr},
    {"process_group_create", tt::py_process_group_create, METH_VARARGS, nullptr},
    {"capture_begin", tt::py_capture_begin, METH_VARARGS, nullptr},
    {"capture_end", tt::py_capture_end, METH_VARARGS, nullptr},
    {"capture_same", tt::py_capture_same, METH_VARARGS, nullptr},
    {"capture_cancel", tt::py_capture_cancel, METH_O, nullptr},
    {"capture_text", tt::py_capture_text, METH_O, nullptr},
    {"capture_scalars", tt::py_capture_scalars, METH_O, nullptr},
    {"programs_create", tt::py_programs_create, METH_NOARGS, nullptr},
    {"programs_add", tt::py_programs_add, METH_VARARGS, nullptr},
    {"programs_run", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(tt::py_programs_run)),
     METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "torchtpu._C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) PyObject *PyInit__C() {
  try {
    static const tt_eager_hooks_t hooks = {nullptr, &tt::infer, &tt::python_location};
    tt_eager_install(&hooks);
    tt::status_watch_fork();
    tt::allocator_register();
    tt::guard_register();
    tt::hooks_register();
    tt::register_ops();
  } catch (const std::exception &e) {
    PyErr_SetString(PyExc_ImportError, e.what());
    return nullptr;
  }
  return PyModule_Create(&definition);
}
