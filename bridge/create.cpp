// The short forms of arange, by way of the form that the table has.
#include <ATen/ops/arange.h>
#include <torch/library.h>

namespace tt {
namespace {

using c10::Scalar;
using std::optional;

at::Tensor arange_start(const Scalar &start, const Scalar &end, optional<c10::ScalarType> dtype,
                        optional<c10::Layout> layout, optional<c10::Device> device,
                        optional<bool> pin_memory) {
  return at::arange(start, end, /*step=*/1, dtype, layout, device, pin_memory);
}

at::Tensor arange_end(const Scalar &end, optional<c10::ScalarType> dtype,
                      optional<c10::Layout> layout, optional<c10::Device> device,
                      optional<bool> pin_memory) {
  return at::arange(/*start=*/0, end, /*step=*/1, dtype, layout, device, pin_memory);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("arange", TORCH_FN(arange_end));
  m.impl("arange.start", TORCH_FN(arange_start));
}

}  // namespace tt
