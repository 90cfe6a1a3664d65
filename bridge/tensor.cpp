#include "tensor.hpp"

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include "status.hpp"

namespace tt {
namespace {

using c10::ScalarType;

#define TT_TYPE_PAIRS(X)     \
  X(Bool, I1)                \
  X(Char, S8)                \
  X(Short, S16)              \
  X(Int, S32)                \
  X(Long, S64)               \
  X(Byte, U8)                \
  X(UInt16, U16)             \
  X(UInt32, U32)             \
  X(UInt64, U64)             \
  X(Float8_e4m3fn, F8E4M3FN) \
  X(Float8_e5m2, F8E5M2)     \
  X(BFloat16, BF16)          \
  X(Half, F16)               \
  X(Float, F32)              \
  X(Double, F64)             \
  X(ComplexFloat, C64)       \
  X(ComplexDouble, C128)

struct TypeTables {
  uint8_t to_c[static_cast<size_t>(ScalarType::NumOptions)];
  ScalarType from_c[TT_DTYPE_COUNT];
  constexpr TypeTables() : to_c(), from_c() {
    for (auto &entry : to_c) entry = TT_DTYPE_NONE;
    for (auto &entry : from_c) entry = ScalarType::Undefined;
#define X(torch_name, c_name)                                      \
  to_c[static_cast<size_t>(ScalarType::torch_name)] = TT_##c_name; \
  from_c[TT_##c_name] = ScalarType::torch_name;
    TT_TYPE_PAIRS(X)
#undef X
  }
};
constexpr TypeTables types;

void storage_delete(void *context) { tt_storage_release(static_cast<tt_storage_t *>(context)); }

tt_number_t number_int(int64_t i, uint8_t kind = TT_ARG_INT) noexcept {
  tt_number_t n{};
  n.kind = kind;
  n.u.i = i;
  return n;
}

tt_number_t number_float(double f) noexcept {
  tt_number_t n{};
  n.kind = TT_ARG_FLOAT;
  n.u.f = f;
  return n;
}

}  // namespace

tt_dtype_t dtype_to_c(ScalarType type) noexcept {
  auto i = static_cast<size_t>(type);
  return i < std::size(types.to_c) ? static_cast<tt_dtype_t>(types.to_c[i]) : TT_DTYPE_NONE;
}

ScalarType dtype_from_c(uint8_t dtype) noexcept {
  return dtype < TT_DTYPE_COUNT ? types.from_c[dtype] : ScalarType::Undefined;
}

c10::DataPtr storage_data_ptr(tt_storage_t *storage) {
  return {tt_storage_address(storage), storage, &storage_delete,
          c10::Device(kTpu, static_cast<c10::DeviceIndex>(tt_storage_device(storage)))};
}

tt_storage_t *storage_of(c10::StorageImpl *storage) {
  const c10::DataPtr &ptr = storage->_mutable_data_ptr_no_checks();
  if (__builtin_expect(ptr.get_deleter() == &storage_delete, 1)) {
    return static_cast<tt_storage_t *>(ptr.get_context());
  }
  // torch.save looks at a storage through a tensor of its own over the same address.
  tt_storage_t *known = tt_storage_find(ptr.get());
  if (known && tt_storage_address(known) == ptr.get()) return known;
  TORCH_CHECK(storage->nbytes() == 0 && ptr.get() == nullptr,
              "tpu: this storage's memory was not allocated by the tpu device");
  tt_storage_t *made = nullptr;
  TT_CALL(tt_storage_create(device_index(storage->device()), 0, &made));
  storage->set_data_ptr_noswap(storage_data_ptr(made));
  return made;
}

tt_storage_t *tensor_storage(const at::TensorImpl *impl) {
  return storage_of(impl->unsafe_storage().unsafeGetStorageImpl());
}

c10::Storage storage_wrap(tt_storage_t *storage) {
  size_t bytes = tt_storage_bytes(storage);
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), c10::SymInt(static_cast<int64_t>(bytes)),
      storage_data_ptr(storage), device_allocator(), /*resizable=*/true));
}

at::Tensor tensor_wrap(tt_storage_t *storage, ScalarType type, c10::IntArrayRef sizes,
                       c10::IntArrayRef strides, int64_t offset) {
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      storage_wrap(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return tensor;
}

void tensor_describe(const at::TensorImpl *impl, tt_tensor_t *out) {
  auto sizes = impl->sizes();
  out->storage = tensor_storage(impl);
  out->sizes = sizes.data();
  out->strides = impl->strides().data();
  out->offset = impl->storage_offset();
  out->rank = static_cast<uint32_t>(sizes.size());
  tt_dtype_t dtype = dtype_to_c(c10::typeMetaToScalarType(impl->dtype()));
  TORCH_CHECK_TYPE(dtype != TT_DTYPE_NONE, "tpu: dtype ", impl->dtype(), " is not supported");
  out->dtype = static_cast<uint8_t>(dtype);
  auto keys = impl->key_set();
  out->flags = static_cast<uint8_t>((keys.has(c10::DispatchKey::Conjugate) ? TT_TENSOR_CONJ : 0) |
                                    (keys.has(c10::DispatchKey::Negative) ? TT_TENSOR_NEG : 0) |
                                    (impl->is_wrapped_number() ? TT_TENSOR_WRAPPED : 0));
  out->handle = impl;
}

tt_number_t number_of(const c10::Scalar &scalar) noexcept {
  if (scalar.isBoolean()) return number_int(scalar.toBool(), TT_ARG_BOOL);
  if (scalar.isIntegral(false)) {
    // An unsigned 64-bit value past INT64_MAX keeps its bits.
    return number_int(scalar.type() == ScalarType::UInt64 ? static_cast<int64_t>(scalar.toUInt64())
                                                          : scalar.toLong());
  }
  if (scalar.isFloatingPoint()) return number_float(scalar.toDouble());
  auto value = scalar.toComplexDouble();
  tt_number_t n{};
  n.kind = TT_ARG_COMPLEX;
  n.u.complex[0] = value.real();
  n.u.complex[1] = value.imag();
  return n;
}

tt_number_t number_of(const at::Tensor &tensor) {
  const auto *impl = tensor.unsafeGetTensorImpl();
  auto keys = impl->key_set();
  if (!keys.has(c10::DispatchKey::Conjugate) && !keys.has(c10::DispatchKey::Negative)) {
    const void *data = impl->data();
    switch (c10::typeMetaToScalarType(impl->dtype())) {
      case ScalarType::Double:
        return number_float(*static_cast<const double *>(data));
      case ScalarType::Float:
        return number_float(*static_cast<const float *>(data));
      case ScalarType::Long:
        return number_int(*static_cast<const int64_t *>(data));
      case ScalarType::Int:
        return number_int(*static_cast<const int32_t *>(data));
      case ScalarType::Bool:
        return number_int(*static_cast<const bool *>(data), TT_ARG_BOOL);
      default:
        break;
    }
  }
  return number_of(tensor.item());
}

c10::Scalar number_to_scalar(const tt_number_t &number) {
  switch (number.kind) {
    case TT_ARG_BOOL:
      return c10::Scalar(number.u.i != 0);
    case TT_ARG_INT:
      return c10::Scalar(number.u.i);
    case TT_ARG_FLOAT:
      return c10::Scalar(number.u.f);
    default:
      return c10::Scalar(c10::complex<double>(number.u.complex[0], number.u.complex[1]));
  }
}

c10::DeviceIndex device_index(std::optional<c10::Device> device) {
  return device && device->has_index() ? device->index() : current_device();
}

}  // namespace tt
