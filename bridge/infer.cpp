#include "infer.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "python.hpp"
#include "status.hpp"

namespace tt {
namespace {

using c10::DispatchKey;
using c10::IValue;
using torch::jit::Stack;

thread_local std::vector<Resize> pending_resizes;

// Python meta kernels must not see the user's __torch_function__ modes (torch.device, ...).
class TorchFunctionOff {
 public:
  TorchFunctionOff() : before_(TLS::get_disabled_state()) {
    TLS::set_disabled_state(at::impl::TorchFunctionDisabledState::ALL_DISABLED);
  }
  ~TorchFunctionOff() { TLS::set_disabled_state(before_); }

 private:
  using TLS = at::impl::PythonTorchFunctionTLS;
  at::impl::TorchFunctionDisabledState before_;
};

// Makes meta copies of a call's tensors; arguments on one storage stay on one storage.
class MetaArguments {
 public:
  explicit MetaArguments(const tt_call_t &call) : call_(call) {}

  // `form` may be another form of the same op: `source(i)` says which argument of the call feeds
  // argument i of the form.
  template <class F>
  Stack stack(const Entry &form, F source) {
    Stack out;
    const auto &arguments = form.handle.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      int from = source(i);
      if (from >= 0 && static_cast<size_t>(from) < call_.arg_count) {
        // An undefined tensor is not what composite kernels take for a left-out optional one.
        bool left_out = call_.args[from].kind == TT_ARG_NONE &&
                        arguments[i].type()->kind() == c10::TypeKind::OptionalType;
        out.push_back(left_out ? IValue() : value(form.kinds[i], call_.args[from]));
      } else {
        out.push_back(arguments[i].default_value().value_or(IValue()));
      }
      if (form.kinds[i] == ArgKind::kDevice) out.back() = c10::Device(c10::DeviceType::Meta);
    }
    return out;
  }

 private:
  at::Tensor tensor(const tt_tensor_t &t);
  IValue tensors(ArgKind kind, const tt_arg_t &arg);
  IValue value(ArgKind kind, const tt_arg_t &arg);

  const tt_call_t &call_;
  std::vector<std::pair<const tt_storage_t *, c10::Storage>> storages_;
};

c10::Storage meta_storage(size_t bytes) {
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), c10::SymInt(static_cast<int64_t>(bytes)),
      c10::GetAllocator(c10::DeviceType::Meta), /*resizable=*/true));
}

at::Tensor MetaArguments::tensor(const tt_tensor_t &t) {
  if (t.flags & TT_TENSOR_HOST && t.flags & TT_TENSOR_WRAPPED) {
    // Python kernels get a wrapped number as a number, so it must have one.
    at::Tensor number = at::scalar_tensor(number_to_scalar(t.number), dtype_from_c(t.dtype));
    number.unsafeGetTensorImpl()->set_wrapped_number(true);
    return number;
  }
  c10::IntArrayRef sizes(t.sizes, t.rank), strides(t.strides, t.rank);
  auto type = c10::scalarTypeToTypeMeta(dtype_from_c(t.dtype));
  c10::Storage storage;
  for (auto &[known, meta] : storages_) {
    if (known == t.storage) storage = meta;
  }
  if (!storage) {
    size_t offset = static_cast<size_t>(t.offset);
    size_t bytes = at::detail::computeStorageNbytes(sizes, strides, type.itemsize(), offset);
    if (t.storage) bytes = std::max(bytes, tt_storage_bytes(t.storage));
    storage = meta_storage(bytes);
    if (t.storage) storages_.emplace_back(t.storage, storage);
  }
  auto out = at::detail::make_tensor<c10::TensorImpl>(std::move(storage),
                                                      c10::DispatchKeySet(DispatchKey::Meta), type);
  auto *impl = out.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(sizes, strides, t.offset);
  if (t.flags & TT_TENSOR_CONJ) out._set_conj(true);
  if (t.flags & TT_TENSOR_NEG) out._set_neg(true);
  return out;
}

IValue MetaArguments::tensors(ArgKind kind, const tt_arg_t &arg) {
  if (kind == ArgKind::kOptionalTensors) {
    c10::List<std::optional<at::Tensor>> list;
    for (uint32_t k = 0; k < arg.count; ++k) {
      const tt_tensor_t &t = arg.u.tensors[k];
      list.push_back(t.rank == TT_NO_TENSOR ? std::nullopt : std::make_optional(tensor(t)));
    }
    return list;
  }
  c10::List<at::Tensor> list;
  for (uint32_t k = 0; k < arg.count; ++k) list.push_back(tensor(arg.u.tensors[k]));
  return list;
}

IValue MetaArguments::value(ArgKind kind, const tt_arg_t &arg) {
  switch (arg.kind) {
    case TT_ARG_NONE:
      return kind == ArgKind::kTensor ? IValue(at::Tensor()) : IValue();
    case TT_ARG_TENSOR:
      return tensor(*arg.u.tensor);
    case TT_ARG_TENSORS:
      return tensors(kind, arg);
    case TT_ARG_BOOL:
      return arg.u.i != 0;
    case TT_ARG_INT:
    case TT_ARG_ENUM:
      return arg.u.i;
    case TT_ARG_FLOAT:
      return arg.u.f;
    case TT_ARG_COMPLEX:
      return c10::complex<double>(arg.u.complex[0], arg.u.complex[1]);
    case TT_ARG_DTYPE:
      return dtype_from_c(static_cast<uint8_t>(arg.u.i));
    case TT_ARG_INTS:
      return c10::IntArrayRef(arg.u.ints, arg.count);
    case TT_ARG_FLOATS:
      return c10::ArrayRef<double>(arg.u.floats, arg.count);
    case TT_ARG_BOOLS: {
      c10::List<bool> list;
      for (uint32_t k = 0; k < arg.count; ++k) list.push_back(arg.u.bools[k] != 0);
      return list;
    }
    case TT_ARG_SCALARS: {
      c10::List<c10::Scalar> list;
      for (uint32_t k = 0; k < arg.count; ++k) list.push_back(number_to_scalar(arg.u.scalars[k]));
      return list;
    }
    case TT_ARG_STRING:
      return std::string(arg.u.string, arg.count);
    default:
      return {};  // a generator draws nothing here, a device is set by the caller
  }
}

// A structured op's own shape function, in C++. Its Meta kernel may be PyTorch's Python reference,
// which is slower and words errors differently.
constexpr DispatchKey kStructured = DispatchKey::CompositeExplicitAutogradNonFunctional;

// Active while such a shape function runs: the out= kernel that it ends in has nothing to compute,
// and its Python reference would only cost time or trip over empty inputs. No one else uses this
// key.
constexpr DispatchKey kShapeMode = DispatchKey::TESTING_ONLY_GenericMode;

void skip_out_kernels(const c10::OperatorHandle &op, Stack *stack) {
  const auto &arguments = op.schema().arguments();
  if (arguments.empty() || !arguments.back().is_out()) {
    c10::impl::ExcludeDispatchKeyGuard leave(kShapeMode);
    return op.callBoxed(stack);
  }
  std::vector<IValue> outs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].is_out()) outs.push_back(torch::jit::peek(*stack, i, arguments.size()));
  }
  torch::jit::drop(*stack, arguments.size());
  for (auto &out : outs) stack->push_back(std::move(out));
}

bool has_meta(const Entry &form) {
  if (form.handle.hasKernelForDispatchKey(kStructured)) return true;
  if (form.handle.hasComputedKernelForDispatchKey(DispatchKey::Meta)) return true;
  python_import_meta_kernels();
  return form.handle.hasComputedKernelForDispatchKey(DispatchKey::Meta);
}

constexpr DispatchKey kComposite = DispatchKey::CompositeExplicitAutograd;

// PyTorch's Python reference of arange rounds ends and step in integer ranges. Its kernel does so
// for 64 bits alone: the length of others is that of the progression of floats.
void run_length(const Entry &form, Stack *stack) {
  constexpr size_t kDtype = 3;
  IValue &dtype = torch::jit::peek(*stack, kDtype, form.kinds.size());
  auto wanted = dtype.toOptional<at::ScalarType>();
  bool narrow =
      wanted && at::isIntegralType(*wanted, /*includeBool=*/false) && *wanted != at::kLong;
  if (narrow) dtype = at::kDouble;
  form.handle.callBoxedForDispatchKey(kComposite, *stack);
  if (narrow) stack->back() = stack->back().toTensor().to(*wanted);
}

void run_meta(const Entry &form, Stack *stack) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  TorchFunctionOff torch_function_off;
  if (form.handle.hasKernelForDispatchKey(kStructured)) {
    c10::impl::IncludeDispatchKeyGuard shape_mode(kShapeMode);
    return form.handle.callBoxedForDispatchKey(kStructured, *stack);
  }
  if (tt_aten_ops[form.op].flags & TT_ATEN_LENGTH &&
      form.handle.hasKernelForDispatchKey(kComposite))
    return run_length(form, stack);
  form.handle.redispatchBoxed(c10::DispatchKeySet(DispatchKey::Meta), stack);
}

template <class T>
T *arena_array(tt_arena_t *arena, size_t count) {
  auto *out = static_cast<T *>(tt_arena_alloc(arena, sizeof(T) * count));
  TORCH_CHECK(out, "out of memory");
  return out;
}

// False for a dtype that the device does not have.
bool meta_append(const at::Tensor &tensor, tt_arena_t *arena, tt_out_meta_t *out) {
  *out = {};
  if (!tensor.defined()) {
    out->dtype = TT_DTYPE_NONE;
    out->rank = TT_NO_TENSOR;
    return true;
  }
  auto sizes = tensor.sizes();
  auto *numbers = arena_array<int64_t>(arena, 2 * sizes.size());
  std::copy(sizes.begin(), sizes.end(), numbers);
  std::copy(tensor.strides().begin(), tensor.strides().end(), numbers + sizes.size());
  out->dtype = static_cast<uint8_t>(dtype_to_c(tensor.scalar_type()));
  out->rank = static_cast<uint32_t>(sizes.size());
  out->sizes = numbers;
  out->strides = numbers + sizes.size();
  return out->dtype != TT_DTYPE_NONE;
}

void flatten(const IValue &value, std::vector<at::Tensor> *out) {
  if (value.isTensor()) out->push_back(value.toTensor());
  if (value.isTensorList() ||
      (value.isList() && value.toListRef().size() && value.toListRef()[0].isTensor())) {
    for (const auto &item : value.toListRef()) out->push_back(item.toTensor());
  }
}

std::vector<at::Tensor> mutated_tensors(const Entry &form, const Stack &arguments) {
  std::vector<at::Tensor> out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (form.mutated[i]) flatten(arguments[i], &out);
  }
  return out;
}

// Notes which out= tensors the form's own Meta kernel resized.
void note_resizes(const Entry &form, const tt_call_t &call, const Stack &arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!form.mutated[i] || !arguments[i].isTensor() || call.args[i].kind != TT_ARG_TENSOR)
      continue;
    const tt_tensor_t &before = *call.args[i].u.tensor;
    const at::Tensor &after = arguments[i].toTensor();
    if (after.sizes() != c10::IntArrayRef(before.sizes, before.rank)) {
      pending_resizes.push_back({i, after.sizes().vec(), after.strides().vec()});
    }
  }
}

tt_status_t give(const std::vector<at::Tensor> &results, const char *op_name, tt_inferred_t *out) {
  out->out_count = static_cast<uint32_t>(results.size());
  out->outs = arena_array<tt_out_meta_t>(out->arena, results.size() + 1);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!meta_append(results[i], out->arena, &out->outs[i])) {
      return TT_ERROR(UNIMPLEMENTED, "lower: %s gives dtype %s", op_name,
                      c10::toString(results[i].scalar_type()));
    }
  }
  return TT_OK_STATUS;
}

// The functional form's results for a call of any form; empty where it has no Meta kernel, or where
// its own promotion has no answer that the called form does not need.
std::vector<at::Tensor> functional_results(const Entry &called, MetaArguments &arguments) {
  const Entry *functional = entry_table()[called.op][TT_FUNCTIONAL].get();
  std::vector<at::Tensor> results;
  if (!functional || !has_meta(*functional)) return results;
  bool same = functional == &called;
  // A progression's length depends on its type, which only the out= tensor says.
  if (tt_aten_ops[called.op].flags & TT_ATEN_LENGTH && !same) return results;
  Stack stack = arguments.stack(
      *functional, [&](size_t i) { return same ? static_cast<int>(i) : called.functional_arg[i]; });
  try {
    run_meta(*functional, &stack);
  } catch (const c10::Error &) {
    if (same) throw;
    return results;
  }
  for (const auto &value : stack) flatten(value, &results);
  return results;
}

// Python Meta kernels give resized tensors no layout: that of the functional form's results counts.
void lay_out_resizes(const Entry &form, const tt_call_t &call) {
  MetaArguments arguments(call);
  auto results = functional_results(form, arguments);
  size_t next = 0;
  for (size_t i = 0; i < form.mutated.size() && next < results.size(); ++i) {
    if (!form.mutated[i]) continue;
    const at::Tensor &result = results[next++];
    for (Resize &wanted : pending_resizes) {
      if (wanted.arg == i && result.sizes() == wanted.sizes)
        wanted.strides = result.strides().vec();
    }
  }
}

// The results of an in-place or out= form: its own checks first.
tt_status_t infer_mutating(const Entry &form, const tt_call_t &call, MetaArguments &arguments,
                           tt_inferred_t *out) {
  Stack own = arguments.stack(form, [](size_t i) { return static_cast<int>(i); });
  Stack kept = own;
  if (has_meta(form)) {
    run_meta(form, &own);
    if (form.variant == TT_OUT) note_resizes(form, call, kept);
    if (!pending_resizes.empty()) {
      lay_out_resizes(form, call);
      return TT_ERROR(INVALID_ARGUMENT, "resize: out= needs resizing");
    }
  }
  MetaArguments fresh(call);
  auto results = functional_results(form, fresh);
  auto targets = mutated_tensors(form, kept);
  if (results.empty()) results = targets;
  for (size_t i = 0; i < form.mutated.size(); ++i) {
    if (form.mutated[i] && i < 64) out->mutated |= uint64_t{1} << i;
  }
  return give(results, form.handle.operator_name().name.c_str(), out);
}

tt_status_t infer_functional(const Entry &form, const tt_call_t &call, MetaArguments &arguments,
                             tt_inferred_t *out) {
  const char *name = form.handle.operator_name().name.c_str();
  if (!has_meta(form)) {
    if (tt_aten_ops[call.op].flags & TT_ATEN_KEEP_SELF_DTYPE) {
      Stack own = arguments.stack(form, [](size_t i) { return static_cast<int>(i); });
      return give({own[0].toTensor()}, name, out);
    }
    return TT_ERROR(UNIMPLEMENTED, "lower: %s has no Meta kernel", name);
  }
  return give(functional_results(form, arguments), name, out);
}

// PyTorch's Meta kernels of index_add and index_reduce look at row 0 of `source`, which an empty
// one does not have; the result is like self then.
bool adds_no_rows(const Entry &form, const tt_call_t &call) {
  const std::string &name = form.handle.operator_name().name;
  if (name.rfind("aten::index_add", 0) != 0 && name.rfind("aten::index_reduce", 0) != 0)
    return false;
  constexpr size_t kIndex = 2;
  const tt_arg_t &index = call.args[kIndex];
  return index.kind == TT_ARG_TENSOR && index.u.tensor->rank == 1 && index.u.tensor->sizes[0] == 0;
}

}  // namespace

tt_status_t infer(void *, const tt_call_t *call, tt_inferred_t *out) {
  const Entry *form = entry_table()[call->op][call->variant].get();
  if (!form)
    return TT_ERROR(UNIMPLEMENTED, "lower: op %u has no such form in this PyTorch", call->op);
  pending_resizes.clear();
  out->mutated = 0;
  try {
    MetaArguments arguments(*call);
    if (adds_no_rows(*form, *call)) {
      Stack own = arguments.stack(*form, [](size_t i) { return static_cast<int>(i); });
      return give({own[0].toTensor()}, "index_add", out);
    }
    return call->variant == TT_FUNCTIONAL ? infer_functional(*form, *call, arguments, out)
                                          : infer_mutating(*form, *call, arguments, out);
  } catch (...) {
    return status_from_exception(python_assertion_as_error(std::current_exception()));
  }
}

std::vector<Resize> infer_take_resizes() { return std::exchange(pending_resizes, {}); }

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&skip_out_kernels>());
}

}  // namespace tt
