// What happens to an op that has no lowering: PyTorch's decomposition, else the CPU.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>
#include <utility>
#include <vector>

namespace tt {

// What a call does before it goes to the CPU: TORCHTPU_FALLBACK, until one is set. Thread-safe.
enum class FallbackPolicy { kWarn, kError, kSilent };
FallbackPolicy fallback_policy();
void fallback_set_policy(FallbackPolicy policy);

// Runs `op` some other way. `composite`: PyTorch's own composite kernel may be tried (it is
// shadowed where the table registers the op).
void fallback_run(const c10::OperatorHandle &op, torch::jit::Stack *stack, bool composite);

// Counts a call that goes to the CPU and warns of the first, or raises where the policy forbids it.
void fallback_count(const c10::OperatorHandle &op);

// Every op that ran on the CPU, with how often.
std::vector<std::pair<std::string, int64_t>> fallback_counts();
void fallback_reset();

}  // namespace tt
