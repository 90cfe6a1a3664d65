// The current device and stream of a thread, as PyTorch switches them.
#pragma once

#include <c10/core/Device.h>

namespace tt {

// Once, at import; starts nothing.
void guard_register();
// How many devices there are; 0 where none can be started.
c10::DeviceIndex device_count() noexcept;
// Throws for an index that no device has.
void set_current_device(c10::DeviceIndex index);

}  // namespace tt
