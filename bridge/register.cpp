#include "register.hpp"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include <cstring>

#include "fallback.hpp"
#include "infer.hpp"
#include "stack.hpp"
#include "status.hpp"

namespace tt {
namespace {

using torch::jit::Stack;

bool is_unlowered(tt_status_t status) {
  return tt_status_code(status) == TT_UNIMPLEMENTED &&
         std::strncmp(tt_status_message(status), "lower:", 6) == 0;
}

bool is_present(const c10::IValue &value) { return value.isTensor() && value.toTensor().defined(); }

// The only kernel there is: one object an overload.
class EngineKernel final : public c10::OperatorKernel {
 public:
  explicit EngineKernel(const Entry *entry) : entry_(*entry) {}

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
    status_check_fork();
    tt_outs_t outs;
    tt_status_t status = run(stack, &outs);
    if (__builtin_expect(status != TT_OK_STATUS, 0)) {
      auto resizes = infer_take_resizes();
      if (!resizes.empty()) {
        tt_status_release(status);
        resize(stack, resizes);
        status = run(stack, &outs);
      }
      if (status != TT_OK_STATUS) {
        if (!is_unlowered(status)) status_throw(status);
        tt_status_release(status);
        return fallback_run(op, stack, /*composite=*/true);
      }
    }
    stack_return(entry_, &outs, stack);
  }

 private:
  tt_status_t run(Stack *stack, tt_outs_t *outs) {
    auto args = torch::jit::last(*stack, entry_.kinds.size());
    if (entry_.checks_overlap) check_overlap(args);
    Frame frame(entry_, args);
    if (__builtin_expect(frame.foreign_device, 0)) {
      return TT_ERROR(UNIMPLEMENTED, "lower: the result is on another device");
    }
    status_forget_exception();
    outs->count = 0;
    outs->items = outs->inline_items;
    return tt_eager_call(&frame.call, outs);
  }

  void check_overlap(c10::ArrayRef<c10::IValue> args) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (!entry_.mutated[i] || !is_present(args[i])) continue;
      const at::Tensor &written = args[i].toTensor();
      at::assert_no_internal_overlap(written);
      for (size_t k = 0; k < args.size(); ++k) {
        if (k == i) continue;
        if (is_present(args[k])) at::assert_no_partial_overlap(written, args[k].toTensor());
        if (!args[k].isTensorList()) continue;
        for (const at::Tensor &read : args[k].toTensorList()) at::assert_no_overlap(written, read);
      }
    }
  }

  void resize(Stack *stack, const std::vector<Resize> &resizes) {
    for (const Resize &wanted : resizes) {
      const c10::IValue &value = torch::jit::peek(*stack, wanted.arg, entry_.kinds.size());
      const at::Tensor &out = value.toTensor();
      if (at::native::resize_output(out, wanted.sizes) && out.strides() != wanted.strides)
        out.as_strided_(wanted.sizes, wanted.strides);
    }
  }

  const Entry &entry_;
};

// Kernels that view.cpp and copy.cpp register themselves.
bool is_own(const std::string &name) {
  for (const char *own :
       {"copy_", "view", "as_strided", "_reshape_alias", "alias", "unfold", "view_as_real",
        "view_as_complex", "resize_", "set_", "empty", "empty_strided", "_copy_from",
        "_copy_from_and_resize", "_local_scalar_dense", "is_set_to"}) {
    if (name == own) return true;
  }
  return false;
}

}  // namespace

void register_ops() {
  // Lives as long as the process: dispatcher entries point into it.
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1,
                                __FILE__, __LINE__);
  entry_table_build();
  for (auto &forms : entry_table()) {
    for (auto &entry : forms) {
      if (!entry) continue;
      const auto &name = entry->handle.operator_name();
      if (is_own(name.name.substr(6))) continue;
      library.impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunctor(
                                                    std::make_unique<EngineKernel>(entry.get())));
    }
  }
}

}  // namespace tt
