// Ops of the table, as PyTorch's dispatcher calls them.
#pragma once

namespace tt {

// Registers every overload of tt_aten_ops under PrivateUse1. Once a process.
void register_ops();

}  // namespace tt
