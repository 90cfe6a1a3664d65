"""What the cases of dist_worker.py are made of: the list of them, and every rank's data."""

from collections.abc import Callable

import torch

CASES: dict[str, dict] = {}
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.int64, torch.int32, torch.uint8)
DTYPES = (*FLOATS, *INTEGERS, torch.bool, torch.complex64)


def case(sizes: tuple[int, ...] = (2,), modes: tuple[str, ...] = ("strict", "defer_and_fuse")):
    """Registers a test: how many ranks it runs on, in which eager modes."""

    def register(fn: Callable[[int, int], None]):
        CASES[fn.__name__] = {"fn": fn, "sizes": sizes, "modes": modes}
        return fn

    return register


def data(rank: int, shape=(5, 3), dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """What `rank` contributes: small integers, exact in every dtype, on the CPU."""
    draw = torch.Generator().manual_seed(100 + rank)
    values = torch.randint(1, 5, shape, generator=draw)
    if dtype == torch.complex64:
        return torch.complex(values.float(), values.float().flip(0) - 2)
    return values % 2 == 0 if dtype == torch.bool else values.to(dtype)


def same(got: torch.Tensor, want: torch.Tensor, **tolerance) -> None:
    assert got.device.type == "tpu", got.device
    torch.testing.assert_close(got.cpu(), want, **(tolerance or {"rtol": 0, "atol": 0}))


def everyone(size: int, *args, **kw) -> list[torch.Tensor]:
    return [data(k, *args, **kw) for k in range(size)]
