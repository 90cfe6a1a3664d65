#include "capture.hpp"

#include <c10/util/SmallVector.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include "base/alloc.h"
#include "eager/capture.h"
#include "stack.hpp"
#include "status.hpp"
#include "tensor.hpp"

namespace {

constexpr const char *kCapture = "torchtpu.capture";
constexpr const char *kPrograms = "torchtpu.programs";

void dispose(PyObject *capsule) {
  tt_capture_destroy(static_cast<tt_capture_t *>(PyCapsule_GetPointer(capsule, kCapture)));
}

// What a compiled graph is called with. Tensors are borrowed from the list.
struct Arguments {
  c10::SmallVector<tt_tensor_t, 16> tensors;
  c10::SmallVector<const at::Tensor *, 16> sources;  // of `tensors`
  c10::SmallVector<uint64_t, 16> words;              // all that is no tensor
  uint32_t count() const { return static_cast<uint32_t>(tensors.size()); }
  uint32_t word_count() const { return static_cast<uint32_t>(words.size()); }
};

bool describe(const at::Tensor &tensor, Arguments *out) {
  const at::TensorImpl *impl = tensor.unsafeGetTensorImpl();
  bool host = impl->device_type() == c10::DeviceType::CPU;
  if (host ? impl->dim() != 0 : impl->device_type() != tt::kTpu) return false;
  if (!impl->has_storage()) return false;
  out->sources.push_back(&tensor);
  auto &described = out->tensors.emplace_back();
  if (host) {
    tt::host_describe(tensor, &described);
  } else {
    tt::tensor_describe(impl, &described);
  }
  return true;
}

// Whether the list is all that keeps the tensor and its storage: what saved activations are to the
// backward pass that frees them.
bool is_last_use(PyObject *item, const at::Tensor &tensor) {
  return Py_REFCNT(item) == 1 && tensor.use_count() == 1 && tensor.storage().use_count() == 1;
}

// False where a program cannot take the item.
bool add_argument(PyObject *item, Arguments *out) {
  enum Kind : uint64_t { kNone, kBool, kInt, kFloat };
  if (THPVariable_Check(item)) {
    const at::Tensor &tensor = THPVariable_Unpack(item);
    if (!describe(tensor, out)) return false;
    if (is_last_use(item, tensor)) out->tensors.back().flags |= TT_TENSOR_GIVEN_UP;
    return true;
  }
  uint64_t value = 0;
  Kind kind = kNone;
  if (PyBool_Check(item)) {
    kind = kBool;
    value = item == Py_True;
  } else if (PyLong_CheckExact(item)) {
    int overflow = 0;
    kind = kInt;
    value = static_cast<uint64_t>(PyLong_AsLongLongAndOverflow(item, &overflow));
    if (overflow) return false;
  } else if (PyFloat_CheckExact(item)) {
    double d = PyFloat_AS_DOUBLE(item);
    kind = kFloat;
    std::memcpy(&value, &d, sizeof value);
  } else if (item != Py_None) {
    return false;
  }
  out->words.push_back(kind);
  out->words.push_back(value);
  return true;
}

bool read_arguments(PyObject *list, Arguments *out) {
  TORCH_CHECK_TYPE(PyList_Check(list), "a list of arguments, got ", Py_TYPE(list)->tp_name);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
    if (!add_argument(PyList_GET_ITEM(list, i), out)) return false;
  }
  return true;
}

Arguments read_tensors(PyObject *list) {
  Arguments out;
  TORCH_CHECK_TYPE(PyList_Check(list), "a list of tensors, got ", Py_TYPE(list)->tp_name);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
    PyObject *item = PyList_GET_ITEM(list, i);
    TORCH_CHECK_TYPE(THPVariable_Check(item), "a list of tensors holds a ", Py_TYPE(item)->tp_name);
    const at::Tensor &tensor = THPVariable_Unpack(item);
    TORCH_CHECK(describe(tensor, &out), "a captured program takes tpu tensors, not ",
                tensor.device());
  }
  return out;
}

tt_capture_t *capture_of(PyObject *capsule) {
  auto *capture = static_cast<tt_capture_t *>(PyCapsule_GetPointer(capsule, kCapture));
  if (!capture) throw python_error();
  return capture;
}

void use_up(PyObject *capsule) {
  PyCapsule_SetDestructor(capsule, nullptr);
  PyCapsule_SetName(capsule, "torchtpu.capture.gone");
}

struct Programs {
  tt_programs_t *programs = nullptr;
  std::vector<PyObject *> results;  // by program: a list, None where a tensor goes
  std::vector<std::vector<Py_ssize_t>> places;
  ~Programs() {
    tt_programs_destroy(programs);
    for (PyObject *list : results) Py_DECREF(list);
  }
};

Programs *programs_of(PyObject *capsule) {
  auto *programs = static_cast<Programs *>(PyCapsule_GetPointer(capsule, kPrograms));
  if (!programs) throw python_error();
  return programs;
}

// Outputs over one storage share PyTorch's storage object too.
class Outputs {
 public:
  Outputs(const Arguments &inputs, const tt_program_run_t &run) : inputs_(inputs), run_(run) {
    for (uint32_t i = 0; i < run.storage_count; i++) {
      storages_.push_back(tt::storage_wrap(run.storages[i]));
    }
  }
  at::Tensor make(uint32_t i) const {
    const tt_capture_output_t &out = run_.outputs[i];
    c10::IntArrayRef sizes(out.meta.sizes, out.meta.rank), strides(out.meta.strides, out.meta.rank);
    const at::Tensor *input = out.input == TT_CAPTURE_FRESH ? nullptr : inputs_.sources[out.input];
    const at::ScalarType dtype = tt::dtype_from_c(out.meta.dtype);
    if (input && out.same) return *input;
    auto tensor = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(input ? input->storage() : storages_[out.storage]),
        c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(dtype));
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, out.offset);
    // A view without a call: a subclass or a mode is not asked. Writes are counted on both sides.
    if (input && !input->is_inference() && !tensor.is_inference())
      tensor.unsafeGetTensorImpl()->set_version_counter(
          input->unsafeGetTensorImpl()->version_counter());
    return tensor;
  }

 private:
  const Arguments &inputs_;
  const tt_program_run_t &run_;
  c10::SmallVector<c10::Storage, 8> storages_;
};

PyObject *make_results(const Programs &p, const Arguments &inputs, const tt_program_run_t &run) {
  Outputs outputs(inputs, run);
  PyObject *form = p.results[run.program];
  PyObject *list = PyList_GetSlice(form, 0, PyList_GET_SIZE(form));
  if (!list) throw python_error();
  for (uint32_t i = 0; i < run.output_count; i++) {
    PyList_SetItem(list, p.places[run.program][i], THPVariable_Wrap(outputs.make(i)));
  }
  return list;
}

}  // namespace

PyObject *tt::py_capture_begin(PyObject *, PyObject *args) {
  int device = 0, located = 0, open = 0;
  PyObject *list = nullptr;
  if (!PyArg_ParseTuple(args, "iOpp", &device, &list, &located, &open)) return nullptr;
  HANDLE_TH_ERRORS
  Arguments inputs = read_tensors(list);
  tt_capture_t *capture = nullptr;
  TT_CALL(tt_capture_begin(device, inputs.tensors.data(), inputs.count(), &capture));
  if (located) tt_capture_locate(capture);
  if (open) tt_capture_open(capture);
  return PyCapsule_New(capture, kCapture, dispose);
  END_HANDLE_TH_ERRORS
}

PyObject *tt::py_capture_end(PyObject *, PyObject *args) {
  PyObject *capsule = nullptr, *list = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &list)) return nullptr;
  HANDLE_TH_ERRORS
  Arguments outputs = read_tensors(list);
  for (const at::Tensor *tensor : outputs.sources) {
    TORCH_CHECK_NOT_IMPLEMENTED(!tensor->is_cpu(), "capture: an output is a CPU tensor");
  }
  TT_CALL(tt_capture_end(capture_of(capsule), outputs.tensors.data(), outputs.count()));
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyObject *tt::py_capture_same(PyObject *, PyObject *args) {
  PyObject *a = nullptr, *b = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &a, &b)) return nullptr;
  HANDLE_TH_ERRORS
  return PyBool_FromLong(tt_capture_same(capture_of(a), capture_of(b)));
  END_HANDLE_TH_ERRORS
}

PyObject *tt::py_capture_text(PyObject *, PyObject *capsule) {
  HANDLE_TH_ERRORS
  char *text = nullptr;
  size_t size = 0;
  TT_CALL(tt_capture_print(capture_of(capsule), &text, &size));
  PyObject *result = PyUnicode_FromStringAndSize(text, static_cast<Py_ssize_t>(size));
  tt_free(text);
  return result;
  END_HANDLE_TH_ERRORS
}

PyObject *tt::py_capture_scalars(PyObject *, PyObject *capsule) {
  HANDLE_TH_ERRORS
  const tt_capture_t *capture = capture_of(capsule);
  std::string all;
  uint64_t bits[2];
  for (uint32_t i = 0; tt_capture_scalar(capture, i, bits); i++) {
    all.append(reinterpret_cast<const char *>(bits), sizeof bits);
  }
  return PyBytes_FromStringAndSize(all.data(), static_cast<Py_ssize_t>(all.size()));
  END_HANDLE_TH_ERRORS
}

PyObject *tt::py_capture_cancel(PyObject *, PyObject *capsule) {
  HANDLE_TH_ERRORS
  tt_capture_destroy(capture_of(capsule));
  use_up(capsule);
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyObject *tt::py_programs_create(PyObject *, PyObject *) {
  HANDLE_TH_ERRORS
  auto programs = std::make_unique<Programs>();
  TT_CALL(tt_programs_create(&programs->programs));
  PyObject *capsule = PyCapsule_New(programs.get(), kPrograms, [](PyObject *self) {
    delete static_cast<Programs *>(PyCapsule_GetPointer(self, kPrograms));
  });
  if (capsule) programs.release();
  return capsule;
  END_HANDLE_TH_ERRORS
}

PyObject *tt::py_programs_add(PyObject *, PyObject *args) {
  PyObject *self = nullptr, *list = nullptr, *capsule = nullptr, *results = nullptr;
  if (!PyArg_ParseTuple(args, "OOOO!", &self, &list, &capsule, &PyList_Type, &results)) {
    return nullptr;
  }
  HANDLE_TH_ERRORS
  Programs *p = programs_of(self);
  Arguments arguments;
  TORCH_CHECK_TYPE(read_arguments(list, &arguments), "a program cannot take these arguments");
  tt_capture_t *capture = capture_of(capsule);
  use_up(capsule);
  TT_CALL(tt_programs_add(p->programs, arguments.words.data(), arguments.word_count(), capture));
  PyObject *form = PyList_GetSlice(results, 0, PyList_GET_SIZE(results));
  std::vector<Py_ssize_t> places;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(form); i++) {
    if (!THPVariable_Check(PyList_GET_ITEM(form, i))) continue;
    places.push_back(i);
    Py_INCREF(Py_None);
    PyList_SetItem(form, i, Py_None);
  }
  p->results.push_back(form);
  p->places.push_back(std::move(places));
  return PyLong_FromUnsignedLong(tt_programs_count(p->programs));
  END_HANDLE_TH_ERRORS
}

PyObject *tt::py_programs_run(PyObject *, PyObject *const *args, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  TORCH_CHECK_TYPE(count == 2, "programs_run takes 2 arguments, got ", count);
  Programs *p = programs_of(args[0]);
  Arguments arguments;
  if (!read_arguments(args[1], &arguments)) Py_RETURN_NONE;
  tt_program_run_t run;
  tt_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = tt_programs_run(p->programs, arguments.tensors.data(), arguments.count(),
                           arguments.words.data(), arguments.word_count(), &run);
  Py_END_ALLOW_THREADS;
  if (tt_status_code(status) == TT_NOT_FOUND) {
    tt_status_release(status);
    Py_RETURN_NONE;
  }
  TT_CALL(status);
  PyObject *results = make_results(*p, arguments, run);
  tt_program_run_deinit(&run);
  if (PyList_SetSlice(args[1], 0, PyList_GET_SIZE(args[1]), nullptr) != 0) throw python_error();
  return results;
  END_HANDLE_TH_ERRORS
}
