// PyTorch's allocator of tpu memory, and what it tells of it.
#pragma once

#include <c10/core/Device.h>

#include "pjrt/client.h"

namespace tt {

// Makes it PyTorch's for the device type. Once, at import; starts nothing.
void allocator_register();
// All zero before the device was started.
tt_memory_stats_t memory_stats(c10::DeviceIndex device);

}  // namespace tt
