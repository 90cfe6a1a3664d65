"""torch.tpu: the device's module, shaped like torch.cuda."""

from torch import AcceleratorError, OutOfMemoryError

from torchtpu.tpu import _device_index as _utils_impl
from torchtpu.tpu import amp
from torchtpu.tpu.amp import get_amp_supported_dtype, is_bf16_supported
from torchtpu.tpu.device import (
    DeviceProperties,
    _exchange_device,  # noqa: F401
    _is_in_bad_fork,  # noqa: F401
    _lazy_init,  # noqa: F401
    _maybe_exchange_device,  # noqa: F401
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_initialized,
    set_device,
    synchronize,
)
from torchtpu.tpu.memory import (
    empty_cache,
    ipc_collect,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
)
from torchtpu.tpu.mode import (
    EagerMode,
    eager_mode,
    flush,
    get_eager_mode,
    set_check_finite,
    set_eager_mode,
)
from torchtpu.tpu.random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torchtpu.tpu.stats import cache_stats, fallback_stats, set_fallback
from torchtpu.tpu.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    is_current_stream_capturing,
    set_stream,
    stream,
)
from torchtpu.tpu.types import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)

__all__ = [
    "AcceleratorError",
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DeviceProperties",
    "DoubleTensor",
    "EagerMode",
    "Event",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "OutOfMemoryError",
    "ShortTensor",
    "Stream",
    "StreamContext",
    "amp",
    "cache_stats",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "eager_mode",
    "empty_cache",
    "fallback_stats",
    "flush",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_eager_mode",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_check_finite",
    "set_device",
    "set_eager_mode",
    "set_fallback",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]


class _utils:
    """What torch.load asks of a device module."""

    @staticmethod
    def _get_device_index(location, optional: bool = False, allow_cpu: bool = False) -> int:
        return _utils_impl.device_index(location, optional=optional)


def __getattr__(name: str):
    # torch.utils.checkpoint reads `_initialized` to decide whether to save the RNG state.
    if name == "_initialized":
        return is_initialized()
    raise AttributeError(f"module 'torch.tpu' has no attribute {name!r}")
