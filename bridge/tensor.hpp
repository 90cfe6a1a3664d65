// PyTorch tensors and storages as the C engine sees them, and back.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "eager/eager.h"

namespace tt {

inline constexpr c10::DeviceType kTpu = c10::DeviceType::PrivateUse1;

// TT_DTYPE_NONE and ScalarType::Undefined where the other side has no such type.
tt_dtype_t dtype_to_c(c10::ScalarType type) noexcept;
c10::ScalarType dtype_from_c(uint8_t dtype) noexcept;

// The storage behind a tpu tensor, borrowed; throws where the memory is not ours.
tt_storage_t *tensor_storage(const at::TensorImpl *impl);
tt_storage_t *storage_of(c10::StorageImpl *storage);

// Takes over one reference to `storage`.
c10::DataPtr storage_data_ptr(tt_storage_t *storage);
c10::Storage storage_wrap(tt_storage_t *storage);
at::Tensor tensor_wrap(tt_storage_t *storage, c10::ScalarType type, c10::IntArrayRef sizes,
                       c10::IntArrayRef strides, int64_t offset);

// Fills every field for a tpu tensor; pointers are borrowed from `impl`.
void tensor_describe(const at::TensorImpl *impl, tt_tensor_t *out);
inline tt_tensor_t tensor_describe(const at::Tensor &tensor) {
  tt_tensor_t out;
  tensor_describe(tensor.unsafeGetTensorImpl(), &out);
  return out;
}

// The value of a defined 0-d CPU tensor, conj and neg resolved.
tt_number_t number_of(const at::Tensor &scalar_tensor);
tt_number_t number_of(const c10::Scalar &scalar) noexcept;
c10::Scalar number_to_scalar(const tt_number_t &number);

c10::Allocator *device_allocator();  // of the device type, PyTorch's own pointer
// The device of the calling thread, and `device` with its index filled in.
c10::DeviceIndex current_device() noexcept;
c10::DeviceIndex device_index(std::optional<c10::Device> device);

}  // namespace tt
