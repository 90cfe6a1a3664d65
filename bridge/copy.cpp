// Copies into, out of and between devices.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "status.hpp"
#include "tensor.hpp"

namespace tt {
namespace {

bool on_tpu(const at::Tensor &t) { return t.device().type() == kTpu; }

void upload(const at::Tensor &src, const at::Tensor &dst) {
  // A broadcast source crosses once and is broadcast on the device.
  if (src.numel() < dst.numel()) {
    at::Tensor small = at::empty(src.sizes(), dst.options());
    upload(src, small);
    auto to = tensor_describe(dst), from = tensor_describe(small);
    TT_CALL(tt_eager_copy(&to, &from));
    return;
  }
  at::Tensor host = src.to(dst.scalar_type()).expand(dst.sizes());
  if (dst.is_conj()) host = host.conj();
  if (dst.is_neg()) host = host._neg_view();
  host = host.resolve_conj().resolve_neg().contiguous();
  auto to = tensor_describe(dst);
  to.flags = 0;
  TT_CALL(tt_eager_upload(&to, host.const_data_ptr()));
}

void download(const at::Tensor &src, const at::Tensor &dst) {
  auto from = tensor_describe(src);
  bool direct = dst.is_contiguous() && dst.scalar_type() == src.scalar_type() && !dst.is_conj() &&
                !dst.is_neg() && dst.sizes() == src.sizes();
  at::Tensor host = direct ? dst : at::empty(src.sizes(), dst.options().dtype(src.scalar_type()));
  TT_CALL(tt_eager_download(&from, host.mutable_data_ptr()));
  if (!direct) dst.copy_(host);
}

at::Tensor copy_from(const at::Tensor &src, const at::Tensor &dst, bool) {
  if (dst.numel() == 0 || dst.is_same(src)) return dst;
  status_check_fork();
  status_forget_exception();
  if (on_tpu(src) && on_tpu(dst)) {
    auto to = tensor_describe(dst), from = tensor_describe(src);
    TT_CALL(tt_eager_copy(&to, &from));
  } else if (on_tpu(dst)) {
    TORCH_CHECK(src.is_cpu(), "tpu: cannot copy from ", src.device());
    upload(src, dst);
  } else {
    TORCH_CHECK(dst.is_cpu(), "tpu: cannot copy to ", dst.device());
    download(src, dst);
  }
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor &src, const at::Tensor &dst) {
  at::native::resize_output(dst, src.sizes());
  return copy_from(src, dst, false);
}

at::Tensor &copy_(at::Tensor &self, const at::Tensor &src, bool non_blocking) {
  if (self.is_same(src)) return self;
  TORCH_CHECK(src.defined(), "copy_: the source is undefined");
  at::assert_no_internal_overlap(self);
  at::assert_no_partial_overlap(self, src);
  if (src._is_zerotensor()) return self.zero_();
  // Checks that src broadcasts to self, in PyTorch's words.
  at::Tensor expanded = src.sizes() == self.sizes() ? src : src.expand(self.sizes());
  copy_from(on_tpu(src) ? expanded : src, self, non_blocking);
  return self;
}

at::Scalar local_scalar_dense(const at::Tensor &self) {
  TORCH_CHECK(self.numel() == 1, "a Tensor with ", self.numel(),
              " elements cannot be converted to Scalar");
  status_check_fork();
  auto from = tensor_describe(self);
  tt_number_t number;
  TT_CALL(tt_eager_item(&from, &number));
  if (self.scalar_type() == at::kUInt64) return at::Scalar(static_cast<uint64_t>(number.u.i));
  return number_to_scalar(number);
}

// A buffer lives until the work that was given it is done, on whichever stream.
void record_stream(at::Tensor &, c10::Stream) {}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("copy_", TORCH_FN(copy_));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  m.impl("record_stream", TORCH_FN(record_stream));
}

// copy_ reads the lazy conj and neg bits itself; resolving them first would copy through here
// again.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace tt
