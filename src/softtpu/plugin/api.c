// The table that a client of the interface gets: one slot a function, in the interface's order,
// filled from the same list that declares them.
#include "softtpu/plugin/plugin.h"

// The version whose table this is.
#define API_MINOR 114

static const tt_pjrt_api_t api = {
    .struct_size = sizeof api,
    .extensions = (tt_pjrt_extension_t *)&tt__soft_ext,
    .version = {.struct_size = sizeof(tt_pjrt_version_t), .major = 0, .minor = API_MINOR},
#define SLOT(name, args) .name = tt__soft_##name,
#define SLOT_VOID(name, args) .name = tt__soft_##name,
#include "pjrt/pjrt_slots.def"
#undef SLOT
#undef SLOT_VOID
};

__attribute__((visibility("default"))) const tt_pjrt_api_t *GetPjrtApi(void);
const tt_pjrt_api_t *GetPjrtApi(void) { return &api; }
