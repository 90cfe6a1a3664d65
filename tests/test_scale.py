"""The model of collectives against a count of what each link carries."""

import json

import pytest
from test_cli import torchtpu

from torchtpu import scale
from torchtpu.chips import CHIPS


def busiest_link(size: int, wraps: bool) -> float:
    """Of an all-gather in which each of `size` chips has a part of 1: what the busiest direction of
    a link carries when every part takes the shortest way to every chip."""
    load: dict[tuple[int, int], float] = {}
    for origin in range(size):
        ways = []
        if wraps:
            # half of the ring each way; the chip opposite gets half of it from either side
            far = size // 2
            ways = [(+1, far - 1 + size % 2, 1.0), (-1, far - 1 + size % 2, 1.0)]
            if size % 2 == 0:
                for step in (+1, -1):
                    for hop in range(far):
                        key = ((origin + step * hop) % size, step)
                        load[key] = load.get(key, 0) + 0.5
                ways = [(+1, far - 1, 0.5), (-1, far - 1, 0.5)]
        else:
            ways = [(+1, size - 1 - origin, 1.0), (-1, origin, 1.0)]
        for step, count, part in ways:
            for hop in range(count):
                key = ((origin + step * hop) % size, step)
                load[key] = load.get(key, 0) + part
    return max(load.values())


@pytest.mark.parametrize("size", [2, 4, 8, 16])
@pytest.mark.parametrize("wraps", [False, True])
def test_axis_is_its_busiest_link(size: int, wraps: bool) -> None:
    chip = CHIPS["v5p"]
    mesh = scale.Mesh(chip, (scale.Axis(size, wraps),), 1)
    part = 1e9
    carried = busiest_link(size, wraps) * part / chip.link_bandwidth
    latency = scale.HOP_SECONDS * mesh.axes[0].hops
    assert scale.all_gather(mesh, size * part) - latency == pytest.approx(carried, rel=1e-9)


@pytest.mark.parametrize("name", sorted(CHIPS))
def test_meshes(name: str) -> None:
    chip = CHIPS[name]
    for n in (1 << i for i in range(14)):
        mesh = scale.mesh(chip, n)
        assert mesh.chips == n and mesh.slice_chips <= chip.pod
        assert len(mesh.axes) == chip.axes
    with pytest.raises(ValueError, match="power of two"):
        scale.mesh(chip, 24)


def test_v4_pod_is_what_is_published() -> None:
    pod = scale.mesh(CHIPS["v4"], 4096)
    seconds = scale.all_reduce(pod, 1e10)
    assert 2e10 / seconds == pytest.approx(1.1e15 / 4096, rel=0.15)


def test_steps() -> None:
    job = scale.Job(7e9)
    for name, chip in CHIPS.items():
        for step in (scale.data_parallel, scale.fully_sharded):
            rows = [step(scale.mesh(chip, 1 << i), job) for i in range(3, 14)]
            assert all(0 < row.efficiency <= 1 for row in rows), name
            assert all(row.exposed <= row.communication for row in rows)
        assert not scale.data_parallel(scale.mesh(CHIPS["v4"], 64), job).fits
        assert scale.fully_sharded(scale.mesh(CHIPS["v4"], 64), job).fits
    # Less to compute: communication shows.
    few = scale.Job(7e9, tokens=128)
    mesh = scale.mesh(CHIPS["v5e"], 8192)
    assert scale.fully_sharded(mesh, few).efficiency < scale.fully_sharded(mesh, job).efficiency


def test_command() -> None:
    done = torchtpu("scale", "1e9", "--chip", "tpu7x", "--chips", "8", "8192", "--json")
    answer = json.loads(done.stdout)
    assert [row["chips"] for row in answer["fully sharded"]] == [8, 8192]
    wrong = torchtpu("scale", "many")
    assert wrong.returncode == 2 and "Traceback" not in wrong.stderr
