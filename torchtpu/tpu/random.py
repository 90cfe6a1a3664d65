"""Random numbers: one generator a device, a seed and an offset each."""

import torch

from torchtpu import _C
from torchtpu.tpu._device_index import device_index
from torchtpu.tpu.device import current_device, device_count


class _DefaultGenerators:
    """``torch.tpu.default_generators[i]``: made when asked for."""

    def __len__(self) -> int:
        return device_count()

    def __getitem__(self, index: int) -> torch.Generator:
        if not 0 <= index < device_count():
            raise IndexError(f"invalid device ordinal: tpu:{index}")
        return _generator(index)

    def __iter__(self):
        return (self[i] for i in range(len(self)))


default_generators = _DefaultGenerators()


def _generator(index: int) -> torch.Generator:
    return _C.default_generator(index)


def manual_seed(seed: int) -> None:
    _generator(current_device()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Starts no device: ``torch.manual_seed`` comes here too."""
    _C.seed_all(torch.Generator().manual_seed(int(seed)).initial_seed())


def seed() -> None:
    """Sets a seed drawn from the operating system on the current device."""
    _generator(current_device()).seed()


def seed_all() -> None:
    value = _generator(current_device()).seed()
    manual_seed_all(value)


def initial_seed() -> int:
    return _generator(current_device()).initial_seed()


def get_rng_state(device="tpu") -> torch.Tensor:
    """16 bytes on the CPU: seed and offset."""
    return _generator(device_index(device)).get_state()


def set_rng_state(new_state: torch.Tensor, device="tpu") -> None:
    _generator(device_index(device)).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state_all(new_states) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
