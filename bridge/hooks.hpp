#pragma once

namespace tt {

void hooks_register();

}  // namespace tt
