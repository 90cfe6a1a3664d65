#pragma once

#include <c10/core/Device.h>

#include "pjrt/client.h"

namespace tt {

void allocator_register();
// All zero before the device was started.
tt_memory_stats_t memory_stats(c10::DeviceIndex device);

}  // namespace tt
