"""`tpu_dist` between hosts: the cases of test_dist.py with ranks that may not share memory.

The hosts are forced (TORCHTPU_HOST_ID) on this machine.
"""

import signal
import time

import dist_worker
import pytest
from test_dist import World

EVERYWHERE = [name for name, entry in dist_worker.CASES.items() if 3 in entry["sizes"]]
TRAINING = ["ddp", "fsdp2", "dtensor", "tensor_parallel", "pipelines", "checkpoint", "ddp_join"]
QUICK = ["all_reduce", "all_reduce_large", "reduce_scatter", "all_gather", "all_to_all"]
QUICK += ["broadcast", "gather_scatter", "send_receive", "receive_any", "ddp", "fsdp2"]


def slow_unless_quick(names: list[str]) -> list:
    return [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in names]


@pytest.fixture(scope="module")
def two_and_one():
    world = World(3, hosts=["a", "a", "b"])
    yield world
    world.close()


@pytest.fixture(scope="module")
def one_and_one():
    world = World(2, hosts=["a", "b"])
    yield world
    world.close()


def run(world: World, name: str) -> None:
    answers = world.run(name)
    errors = [f"rank {r}: {a['error']}" for r, a in enumerate(answers) if a["error"]]
    assert not errors, "\n".join(errors)


@pytest.mark.parametrize("name", slow_unless_quick(EVERYWHERE))
def test_three_ranks_on_two_hosts(name: str, two_and_one: World) -> None:
    run(two_and_one, name)


@pytest.mark.parametrize("name", slow_unless_quick(TRAINING))
def test_training_on_two_hosts(name: str, one_and_one: World) -> None:
    run(one_and_one, name)


@pytest.mark.parametrize("name", ["other_dtype", "other_shape"])
def test_hosts_disagree(name: str, one_and_one: World) -> None:
    for answer in one_and_one.run(name, timeout=40):
        assert not answer["error"], answer["error"]
        assert all(w in answer["value"] for w in ("disagree", "rank 0", "rank 1", "f32"))


@pytest.mark.slow
def test_killed_rank_of_another_host() -> None:
    """Named at once by the other host, not after the timeout of 30 s."""
    world = World(2, hosts=["a", "b"])
    try:
        run(world, "barriers")
        start = time.monotonic()
        world.start("killed_all_reduce")
        answer = world.answer(0, 30)
        assert not answer["error"], answer["error"]
        assert "all_reduce on rank 0: rank 1" in answer["value"], answer["value"]
        assert time.monotonic() - start < 10
    finally:
        for rank in world.ranks:
            rank.send_signal(signal.SIGKILL)
        world.close()
