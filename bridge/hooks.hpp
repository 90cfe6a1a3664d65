// What PyTorch asks a device type: is it there, its generator, its pinned memory.
#pragma once

namespace tt {

// Once, at import; starts nothing.
void hooks_register();

}  // namespace tt
