// PyTorch's MKL and oneDNN as the software TPU's table of functions (softtpu/library.h).
#pragma once

namespace tt {

// Gives the software TPU PyTorch's matrix kernels as soon as there is a client. Cheap to repeat.
void library_install_once();

}  // namespace tt
