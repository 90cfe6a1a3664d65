#include "fallback.hpp"

#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>

#include "python.hpp"
#include "tensor.hpp"

namespace tt {
namespace {

using c10::DispatchKey;

// Decompositions written in Python are registered here, where nothing else looks.
constexpr DispatchKey kDecomposition = DispatchKey::PrivateUse3;

std::mutex mutex;
std::map<std::string, int64_t> counts;
std::unordered_map<std::string, bool> decomposed;
std::atomic<int> policy{-1};

// Ops whose decomposition runs on this thread: one that ends in itself must go to the CPU.
thread_local std::vector<const void *> running;

class Running {
 public:
  explicit Running(const void *op) { running.push_back(op); }
  ~Running() { running.pop_back(); }
};

bool is_running(const void *op) {
  return std::find(running.begin(), running.end(), op) != running.end();
}

// Takes no lock while Python imports: another thread may hold the GIL and want it.
bool has_decomposition(const c10::OperatorHandle &op) {
  std::string name = c10::toString(op.operator_name());
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = decomposed.find(name);
    if (found != decomposed.end()) return found->second;
  }
  bool installed = python_install_decomposition(name.c_str());
  std::lock_guard<std::mutex> lock(mutex);
  return decomposed.emplace(name, installed).first->second;
}

}  // namespace

void fallback_count(const c10::OperatorHandle &op) {
  std::string name = c10::toString(op.operator_name());
  FallbackPolicy how = fallback_policy();
  TORCH_CHECK_NOT_IMPLEMENTED(how != FallbackPolicy::kError, name,
                              " has no tpu kernel, and TORCHTPU_FALLBACK=error forbids the CPU");
  bool first;
  {
    std::lock_guard<std::mutex> lock(mutex);
    first = counts[name]++ == 0;
  }
  if (first && how == FallbackPolicy::kWarn) {
    TORCH_WARN(name,
               " has no tpu kernel: it runs on the CPU (warned once; see "
               "torch.tpu.fallback_stats(), TORCHTPU_FALLBACK=silent|error)");
  }
}

namespace {

void fallback_boxed(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  fallback_run(op, stack, /*composite=*/false);
}

}  // namespace

FallbackPolicy fallback_policy() {
  int value = policy.load(std::memory_order_relaxed);
  if (value < 0) {
    const char *text = std::getenv("TORCHTPU_FALLBACK");
    std::string_view wanted = text ? text : "warn";
    value = static_cast<int>(wanted == "error"    ? FallbackPolicy::kError
                             : wanted == "silent" ? FallbackPolicy::kSilent
                                                  : FallbackPolicy::kWarn);
    policy.store(value, std::memory_order_relaxed);
  }
  return static_cast<FallbackPolicy>(value);
}

void fallback_set_policy(FallbackPolicy wanted) { policy.store(static_cast<int>(wanted)); }

void fallback_run(const c10::OperatorHandle &op, torch::jit::Stack *stack, bool composite) {
  const void *id = &op.schema();
  if (!is_running(id)) {
    Running guard(id);
    auto shadowed = [&](DispatchKey key) { return composite && op.hasKernelForDispatchKey(key); };
    for (DispatchKey key :
         {DispatchKey::CompositeExplicitAutograd, DispatchKey::CompositeImplicitAutograd}) {
      if (shadowed(key)) return op.callBoxedForDispatchKey(key, *stack);
    }
    if (has_decomposition(op)) return op.callBoxedForDispatchKey(kDecomposition, *stack);
    // A structured op's composite allocates the result and calls the out= form, which comes back
    // here.
    constexpr DispatchKey structured = DispatchKey::CompositeExplicitAutogradNonFunctional;
    if (shadowed(structured)) return op.callBoxedForDispatchKey(structured, *stack);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(op.hasComputedKernelForDispatchKey(DispatchKey::CPU),
                              op.operator_name(),
                              " has no tpu kernel, and PyTorch has none for the CPU either");
  fallback_count(op);
  at::native::cpu_fallback(op, stack);
}

std::vector<std::pair<std::string, int64_t>> fallback_counts() {
  std::lock_guard<std::mutex> lock(mutex);
  return {counts.begin(), counts.end()};
}

void fallback_reset() {
  std::lock_guard<std::mutex> lock(mutex);
  counts.clear();
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback_boxed>());
}

// PyTorch's kernel for every device, which a fallback comes behind, says that there is none.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char *name : {"_scaled_dot_product_fused_attention_overrideable",
                           "_scaled_dot_product_fused_attention_overrideable_backward"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback_boxed>());
  }
}

}  // namespace tt
