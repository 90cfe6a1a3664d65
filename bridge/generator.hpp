// torch.Generator("tpu"): a seed and an offset, kept by the engine.
#pragma once

#include <ATen/core/Generator.h>

#include "eager/eager.h"

namespace tt {

// The engine's generator behind `generator`, borrowed; throws for a generator of another device.
tt_generator_t *generator_handle(const at::Generator &generator);
const at::Generator &generator_default(c10::DeviceIndex device);
at::Generator generator_new(c10::DeviceIndex device);

}  // namespace tt
