// Allocation, views and metadata: no device work.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "status.hpp"
#include "tensor.hpp"

namespace tt {
namespace {

using at::Tensor;
using c10::IntArrayRef;
using c10::OptionalIntArrayRef;
using c10::ScalarType;

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

struct Options {
  ScalarType type;
  c10::DeviceGuard guard;
  Options(std::optional<ScalarType> dtype, std::optional<c10::Layout> layout,
          std::optional<c10::Device> device, std::optional<bool> pin_memory)
      : type(dtype.value_or(c10::get_default_dtype_as_scalartype())),
        guard(c10::Device(kTpu, device_index(device))) {
    TORCH_CHECK(layout.value_or(c10::Layout::Strided) == c10::Layout::Strided,
                "tpu: only strided tensors are supported");
    TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  }
};

Tensor empty(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<c10::Layout> layout,
             std::optional<c10::Device> device, std::optional<bool> pin_memory,
             std::optional<c10::MemoryFormat> format) {
  Options options(dtype, layout, device, pin_memory);
  return at::detail::empty_generic(size, device_allocator(), kKeys, options.type, format);
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype,
                     std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                     std::optional<bool> pin_memory) {
  Options options(dtype, layout, device, pin_memory);
  return at::detail::empty_strided_generic(size, stride, device_allocator(), kKeys, options.type);
}

// Sets the geometry and grows the storage to hold it.
void resize_impl(at::TensorImpl *self, IntArrayRef size, OptionalIntArrayRef stride) {
  if (self->sizes() == size && (!stride || self->strides() == *stride)) return;
  size_t itemsize = self->dtype().itemsize();
  auto offset = static_cast<size_t>(self->storage_offset());
  size_t bytes;
  if (stride) {
    self->set_sizes_and_strides(size, *stride);
    bytes = at::detail::computeStorageNbytes(size, *stride, itemsize, offset);
  } else {
    self->set_sizes_contiguous(size);
    bytes = at::detail::computeStorageNbytesContiguous(size, itemsize, offset);
  }
  const c10::Storage &storage = self->unsafe_storage();
  if (self->numel() != 0 && bytes > storage.nbytes()) {
    at::native::resize_bytes_nocuda(storage, c10::SymInt(static_cast<int64_t>(bytes)));
  }
}

const Tensor &resize_(const Tensor &self, IntArrayRef size,
                      std::optional<c10::MemoryFormat> format) {
  at::detail::check_size_nonnegative(size);
  resize_impl(self.unsafeGetTensorImpl(), size, std::nullopt);
  if (format) {
    TORCH_CHECK(*format != c10::MemoryFormat::Preserve, "Unsupported memory format", *format);
    self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return self;
}

Tensor &set_storage_offset(Tensor &self, at::Storage source, int64_t offset, IntArrayRef size,
                           IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), offset, size, stride);
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  OptionalIntArrayRef strides = stride.data() ? OptionalIntArrayRef(stride) : std::nullopt;
  resize_impl(self.unsafeGetTensorImpl(), size, strides);
  return self;
}

Tensor &set_storage(Tensor &self, at::Storage source) {
  auto count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage_offset(self, std::move(source), 0, {count}, {});
}

Tensor &set_tensor(Tensor &self, const Tensor &source) {
  if (self.is_same(source)) return self;
  return set_storage_offset(self, source.storage(), source.storage_offset(), source.sizes(),
                            source.strides());
}

Tensor &set_nothing(Tensor &self) {
  c10::DeviceGuard guard(self.device());
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, device_allocator(), true);
  return set_storage_offset(self, std::move(storage), 0, {0}, {});
}

// Lets `tensor.data = other` go from the CPU to tpu and back, as it may between the CPU and CUDA:
// module.to("tpu") then keeps its parameters' identity, so ties and optimizers hold.
bool has_compatible_shallow_copy_type(const Tensor &self, const Tensor &from) {
  auto dense = [](const Tensor &t) {
    return t.layout() == c10::Layout::Strided && (t.is_cpu() || t.device().type() == kTpu) &&
           !t.is_quantized() && !t.is_mkldnn();
  };
  return (dense(self) && dense(from)) ||
         self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(from.key_set());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("alias", TORCH_FN(at::native::alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
  m.impl("is_set_to", TORCH_FN(at::native::is_set_to));
  m.impl("set_", TORCH_FN(set_nothing));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  m.impl("set_.source_Storage", TORCH_FN(set_storage));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage_offset));
}

}  // namespace tt
