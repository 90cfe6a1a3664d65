// Sparse and nested tensors: PyTorch's own kernels where those are written in terms of other ops,
// the kernels of torchtpu/sparse.py for the rest, and the CPU, counted, behind both.
#include <ATen/core/Tensor.h>
#include <ATen/ops/copy.h>
#include <torch/library.h>

#include "fallback.hpp"
#include "tensor.hpp"

namespace tt {
namespace {

using c10::DispatchKey;
using c10::IValue;
using torch::jit::Stack;

// The kernel that PyTorch registers under `key` for the same op: it names no device.
template <DispatchKey key>
void same_as(const c10::OperatorHandle &op, Stack *stack) {
  op.callBoxedForDispatchKey(key, *stack);
}

template <DispatchKey key>
torch::CppFunction kernel() {
  return torch::CppFunction::makeFromBoxedFunction<&same_as<key>>();
}

template <class F>
IValue map_tensors(const IValue &value, F f) {
  if (value.isTensor()) return value.toTensor().defined() ? IValue(f(value.toTensor())) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> out;
    for (const at::Tensor &t : value.toTensorVector()) out.push_back(f(t));
    return out;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> out;
    for (const std::optional<at::Tensor> &t : value.toOptionalTensorVector()) {
      out.push_back(t && t->defined() ? std::make_optional(f(*t)) : t);
    }
    return out;
  }
  return value;
}

void write_back(const at::Tensor &to, const at::Tensor &from) {
  if (!to.is_sparse() && to.layout() == c10::Layout::Strided && to.sizes() != from.sizes()) {
    to.resize_(from.sizes());
  }
  to.copy_(from);
}

// Moves the call to the CPU and its results back; counted and warned as every such call is.
void on_cpu(const c10::OperatorHandle &op, Stack *stack) {
  fallback_count(op);
  const auto &schema = op.schema();
  size_t count = schema.arguments().size(), first = stack->size() - count;
  std::vector<IValue> given(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  std::vector<IValue> host;
  c10::Device device(kTpu, current_device());
  for (size_t i = 0; i < count; ++i) {
    host.push_back(map_tensors(given[i], [&](const at::Tensor &t) {
      if (t.device().type() == kTpu) device = t.device();
      // Some kernels ask whether there will be a backward pass.
      return t.requires_grad() ? t.cpu().detach().requires_grad_() : t.cpu();
    }));
    if (given[i].isDevice()) host[i] = c10::Device(c10::DeviceType::CPU);
    (*stack)[first + i] = host[i];
  }
  op.callBoxed(stack);
  for (size_t i = 0; i < count; ++i) {
    const c10::AliasInfo *alias = schema.arguments()[i].alias_info();
    if (alias && alias->isWrite() && given[i].isTensor()) {
      write_back(given[i].toTensor(), host[i].toTensor());
    }
  }
  for (size_t r = 0; r < schema.returns().size(); ++r) {
    IValue &result = (*stack)[first + r];
    size_t same = 0;
    while (same < count && !(result.isTensor() && host[same].isTensor() &&
                             result.toTensor().is_same(host[same].toTensor()))) {
      ++same;
    }
    result = same < count ? given[same]
                          : map_tensors(result, [&](const at::Tensor &t) { return t.to(device); });
  }
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
#define COO(op) m.impl(op, kernel<DispatchKey::SparseCPU>());
#include "layout_ops.inc"
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
#define CSR(op) m.impl(op, kernel<DispatchKey::SparseCsrCPU>());
#include "layout_ops.inc"
}

TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
#define NESTED(op) m.impl(op, kernel<DispatchKey::NestedTensorCPU>());
#include "layout_ops.inc"
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
#define DENSE(op) m.impl(op, kernel<DispatchKey::CPU>());
#include "layout_ops.inc"
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
}
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
}
TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
}

}  // namespace tt
