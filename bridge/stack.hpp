// The dispatcher's stack as a flat tt_call_t, and results back onto the stack.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <memory>
#include <vector>

#include "schema.hpp"
#include "tensor.hpp"

namespace tt {

// One call's arguments. Everything `call` points to lives in the frame or is borrowed from `args`,
// so the frame must not outlive the stack entries. Small calls allocate nothing.
class Frame {
 public:
  Frame(const Entry &entry, c10::ArrayRef<c10::IValue> args);
  Frame(const Frame &) = delete;
  Frame &operator=(const Frame &) = delete;

  tt_call_t call;
  // A factory call or a `device=` argument that names another device than tpu: not for the engine.
  bool foreign_device = false;

 private:
  template <class T>
  T *take(size_t count);
  void convert(size_t i, const c10::IValue &value);
  void convert_tensors(size_t i, const c10::IValue &value, bool indices);
  void convert_numbers(size_t i, ArgKind kind, c10::ArrayRef<c10::IValue> items);
  void convert_device(size_t i, c10::Device device);
  void describe(const at::Tensor &tensor, bool mutated, bool index, tt_tensor_t *out);
  void set_device(c10::Device device);

  static constexpr size_t kMaxArgs = 64;
  const Entry &entry_;
  c10::Device device_{c10::DeviceType::CPU};
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::vector<at::Tensor> moved_;  // host index tensors brought to the device
  char *cursor_, *limit_;
  tt_arg_t args_[kMaxArgs];
  alignas(16) char inline_[2048];
};

// A 0-d CPU tensor as a run-time value (TT_TENSOR_HOST).
void host_describe(const at::Tensor &tensor, tt_tensor_t *out);

// Replaces the call's arguments on the stack by its results. Takes the storages in `outs`.
void stack_return(const Entry &entry, tt_outs_t *outs, torch::jit::Stack *stack);

}  // namespace tt
