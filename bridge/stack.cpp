#include "stack.hpp"

#include <ATen/core/Generator.h>
#include <ATen/ops/_to_copy.h>
#include <c10/util/SmallVector.h>

#include "generator.hpp"
#include "status.hpp"

namespace tt {
namespace {

[[noreturn]] void throw_two_devices(c10::Device a, c10::Device b) {
  TORCH_CHECK(false,
              "Expected all tensors to be on the same device, but found at least two devices, ", a,
              " and ", b, "!");
}

}  // namespace

void host_describe(const at::Tensor &tensor, tt_tensor_t *out) {
  const at::TensorImpl *impl = tensor.unsafeGetTensorImpl();
  tt_dtype_t dtype = dtype_to_c(tensor.scalar_type());
  TORCH_CHECK_TYPE(dtype != TT_DTYPE_NONE, "tpu: dtype ", tensor.dtype(), " is not supported");
  static const int64_t none = 0;
  *out = {};
  out->sizes = out->strides = &none;
  out->dtype = static_cast<uint8_t>(dtype);
  out->flags =
      static_cast<uint8_t>(TT_TENSOR_HOST | (impl->is_wrapped_number() ? TT_TENSOR_WRAPPED : 0));
  out->number = number_of(tensor);
  out->handle = impl;
}

Frame::Frame(const Entry &entry, c10::ArrayRef<c10::IValue> args)
    : entry_(entry), cursor_(inline_), limit_(inline_ + sizeof(inline_)) {
  TORCH_CHECK(args.size() <= kMaxArgs, "internal: too many arguments");
  for (size_t i = 0; i < args.size(); ++i) {
    args_[i].kind = TT_ARG_NONE;
    args_[i].count = 0;
    if (!args[i].isNone()) convert(i, args[i]);
  }
  call.op = entry.op;
  call.variant = entry.variant;
  call.arg_count = static_cast<uint8_t>(args.size());
  call.device = device_.is_cpu() ? current_device() : device_.index();
  call.args = args_;
}

template <class T>
T *Frame::take(size_t count) {
  size_t bytes = (count * sizeof(T) + 15) & ~size_t{15};
  if (bytes > static_cast<size_t>(limit_ - cursor_)) {
    size_t size = std::max<size_t>(bytes, 16384);
    chunks_.emplace_back(new char[size]);
    cursor_ = chunks_.back().get();
    limit_ = cursor_ + size;
  }
  T *out = reinterpret_cast<T *>(cursor_);
  cursor_ += bytes;
  return out;
}

void Frame::set_device(c10::Device device) {
  if (device_.is_cpu()) {
    device_ = device;
  } else if (device_ != device) {
    throw_two_devices(device_, device);
  }
}

void Frame::describe(const at::Tensor &tensor, bool mutated, bool index, tt_tensor_t *out) {
  const at::TensorImpl *impl = tensor.unsafeGetTensorImpl();
  if (__builtin_expect(impl->device_type() == kTpu, 1)) {
    set_device(impl->device());
    return tensor_describe(impl, out);
  }
  if (!tensor.is_cpu() || mutated || (tensor.dim() != 0 && !index)) {
    c10::Device tpu = device_.is_cpu() ? c10::Device(kTpu, current_device()) : device_;
    throw_two_devices(tpu, tensor.device());
  }
  if (tensor.dim() != 0) {
    c10::Device tpu = device_.is_cpu() ? c10::Device(kTpu, current_device()) : device_;
    moved_.push_back(tensor.to(tpu));
    return tensor_describe(moved_.back().unsafeGetTensorImpl(), out);
  }
  host_describe(tensor, out);
}

void Frame::convert(size_t i, const c10::IValue &value) {
  tt_arg_t &arg = args_[i];
  switch (entry_.kinds[i]) {
    case ArgKind::kTensor: {
      const at::Tensor &tensor = value.toTensor();
      if (!tensor.defined()) return;
      auto *out = take<tt_tensor_t>(1);
      describe(tensor, entry_.mutated[i], false, out);
      arg.kind = TT_ARG_TENSOR;
      arg.u.tensor = out;
      return;
    }
    case ArgKind::kTensors:
      return convert_tensors(i, value, false);
    case ArgKind::kOptionalTensors:
      return convert_tensors(i, value, true);
    case ArgKind::kScalar: {
      tt_number_t number = number_of(value.toScalar());
      arg.kind = number.kind;
      static_assert(sizeof(number.u) == sizeof(arg.u));
      __builtin_memcpy(&arg.u, &number.u, sizeof(arg.u));
      arg.count = 1;  // a run-time value (call.h)
      return;
    }
    case ArgKind::kInt:
      arg.kind = TT_ARG_INT;
      arg.u.i = value.toInt();
      return;
    case ArgKind::kFloat:
      arg.kind = TT_ARG_FLOAT;
      arg.u.f = value.toDouble();
      return;
    case ArgKind::kBool:
      arg.kind = TT_ARG_BOOL;
      arg.u.i = value.toBool();
      return;
    case ArgKind::kDtype: {
      auto type = static_cast<c10::ScalarType>(value.toInt());
      arg.kind = TT_ARG_DTYPE;
      arg.u.i = dtype_to_c(type);
      TORCH_CHECK_TYPE(arg.u.i != TT_DTYPE_NONE, "tpu: dtype ", type, " is not supported");
      return;
    }
    case ArgKind::kEnum:
      arg.kind = TT_ARG_ENUM;
      arg.u.i = value.toInt();
      return;
    case ArgKind::kDevice:
      return convert_device(i, value.toDevice());
    case ArgKind::kString: {
      std::string_view text = value.toStringView();
      arg.kind = TT_ARG_STRING;
      arg.count = static_cast<uint32_t>(text.size());
      arg.u.string = text.data();
      return;
    }
    case ArgKind::kGenerator:
      arg.kind = TT_ARG_GENERATOR;
      arg.u.generator = generator_handle(value.toGenerator());
      return;
    case ArgKind::kInts:
    case ArgKind::kFloats:
    case ArgKind::kBools:
    case ArgKind::kScalars:
      return convert_numbers(i, entry_.kinds[i], value.toListRef());
    case ArgKind::kOther:
      break;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, "tpu: ", entry_.handle.operator_name(), " argument ", i,
                              " has a type that the device does not take");
}

void Frame::convert_tensors(size_t i, const c10::IValue &value, bool indices) {
  auto items = value.toListRef();
  auto *out = take<tt_tensor_t>(items.size());
  for (size_t k = 0; k < items.size(); ++k) {
    if (items[k].isNone() || !items[k].toTensor().defined()) {
      out[k] = {};
      out[k].rank = TT_NO_TENSOR;
    } else {
      describe(items[k].toTensor(), entry_.mutated[i], indices, &out[k]);
    }
  }
  args_[i].kind = TT_ARG_TENSORS;
  args_[i].count = static_cast<uint32_t>(items.size());
  args_[i].u.tensors = out;
}

void Frame::convert_numbers(size_t i, ArgKind kind, c10::ArrayRef<c10::IValue> items) {
  tt_arg_t &arg = args_[i];
  size_t count = items.size();
  arg.count = static_cast<uint32_t>(count);
  if (kind == ArgKind::kInts) {
    auto *out = take<int64_t>(count);
    for (size_t k = 0; k < count; ++k) out[k] = items[k].toInt();
    arg.kind = TT_ARG_INTS;
    arg.u.ints = out;
  } else if (kind == ArgKind::kFloats) {
    auto *out = take<double>(count);
    for (size_t k = 0; k < count; ++k) out[k] = items[k].toDouble();
    arg.kind = TT_ARG_FLOATS;
    arg.u.floats = out;
  } else if (kind == ArgKind::kBools) {
    auto *out = take<uint8_t>(count);
    for (size_t k = 0; k < count; ++k) out[k] = items[k].toBool();
    arg.kind = TT_ARG_BOOLS;
    arg.u.bools = out;
  } else {
    auto *out = take<tt_number_t>(count);
    for (size_t k = 0; k < count; ++k) out[k] = number_of(items[k].toScalar());
    arg.kind = TT_ARG_SCALARS;
    arg.u.scalars = out;
  }
}

void Frame::convert_device(size_t i, c10::Device device) {
  args_[i].kind = TT_ARG_DEVICE;
  if (device.type() != kTpu) {
    foreign_device = true;
    args_[i].u.i = -1;
    return;
  }
  c10::Device full(kTpu, device_index(device));
  args_[i].u.i = full.index();
  // Copies between devices are not for the table: the argument then differs from its inputs.
  if (!device_.is_cpu() && device_ != full) foreign_device = true;
  if (device_.is_cpu()) device_ = full;
}

namespace {

at::Tensor tensor_of(const tt_out_t &out) {
  const tt_out_meta_t *meta = out.meta;
  if (!meta || meta->rank == TT_NO_TENSOR) return {};
  return tensor_wrap(out.storage, dtype_from_c(meta->dtype), {meta->sizes, meta->rank},
                     {meta->strides, meta->rank}, out.offset);
}

// How many of the remaining outputs a Tensor[] result takes: all but one for each later result.
size_t list_length(size_t remaining, size_t later) {
  return remaining > later ? remaining - later : 0;
}

}  // namespace

void stack_return(const Entry &entry, tt_outs_t *outs, torch::jit::Stack *stack) {
  const auto &returns = entry.handle.schema().returns();
  c10::SmallVector<c10::IValue, 4> results;
  size_t next = 0;
  size_t first = stack->size() - entry.kinds.size();
  for (size_t r = 0; r < returns.size(); ++r) {
    if (entry.returned[r] >= 0) {
      results.push_back((*stack)[first + static_cast<size_t>(entry.returned[r])]);
    } else if (returns[r].type()->kind() == c10::TypeKind::TensorType) {
      results.emplace_back(next < outs->count ? tensor_of(outs->items[next]) : at::Tensor());
      ++next;
    } else if (returns[r].type()->kind() == c10::TypeKind::ListType) {
      c10::List<at::Tensor> list;
      size_t count = list_length(outs->count - next, returns.size() - r - 1);
      list.reserve(count);
      for (size_t k = 0; k < count; ++k) list.push_back(tensor_of(outs->items[next++]));
      results.emplace_back(std::move(list));
    } else if (returns[r].type()->kind() == c10::TypeKind::BoolType) {
      results.emplace_back(outs->items[next++].offset != 0);
    } else {
      // Counts beside tensors (attention's max_q) carry nothing that our backward reads.
      results.emplace_back(int64_t{0});
    }
  }
  tt_outs_deinit(outs);
  torch::jit::drop(*stack, entry.kinds.size());
  for (auto &result : results) stack->push_back(std::move(result));
}

}  // namespace tt
