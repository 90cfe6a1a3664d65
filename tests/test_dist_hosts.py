"""`tpu_dist` between hosts: the cases of test_dist.py with ranks that may not share memory.

The hosts are forced (TORCHTPU_HOST_ID) on this machine, or are network namespaces of it.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

import dist_worker
import pytest
from test_dist import World

EVERYWHERE = [name for name, entry in dist_worker.CASES.items() if 3 in entry["sizes"]]
TRAINING = ["ddp", "fsdp2", "dtensor", "tensor_parallel", "pipelines", "checkpoint", "ddp_join"]
QUICK = ["all_reduce", "all_reduce_large", "reduce_scatter", "all_gather", "all_to_all"]
QUICK += [
    "reductions",
    "movements",
    "broadcast",
    "gather_scatter",
    "send_receive",
    "receive_any",
    "overtaking",
    "other_message",
    "ddp",
    "fsdp2",
]


def slow_unless_quick(names: list[str]) -> list:
    return [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in names]


@pytest.fixture(scope="module")
def two_and_one():
    world = World(3, hosts=["a", "a", "b"])
    yield world
    world.close()


REDUCTIONS = [
    "reductions",
    pytest.param("large_reductions", marks=pytest.mark.slow),
    "movements",
    "averages_do_not_wrap",
    "halves_round_once",
]


@pytest.fixture(
    scope="module",
    params=[
        "abab",
        *(pytest.param(p, marks=pytest.mark.slow) for p in ("aabb", "abaa", "aba", "abbc")),
    ],
)
def placed(request: pytest.FixtureRequest):
    """One letter a rank: its host."""
    world = World(len(request.param), hosts=list(request.param))
    yield world
    world.close()


@pytest.mark.parametrize("name", [*REDUCTIONS, "all_to_all", "gather_scatter", "broadcast"])
def test_placements(name: str, placed: World) -> None:
    run(placed, name)


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


@contextlib.contextmanager
def two_networks():
    """Commands that run something in each of two network namespaces, joined by a cable (tt0)."""
    if os.geteuid() or not all(shutil.which(tool) for tool in ("unshare", "nsenter", "ip")):
        pytest.skip("network namespaces: needs root, unshare, nsenter and ip")
    ours = os.readlink("/proc/self/ns/net")
    holders = [subprocess.Popen(["unshare", "--net", "sleep", "600"]) for _ in range(2)]
    try:
        for holder in holders:
            link = pathlib.Path(f"/proc/{holder.pid}/ns/net")
            while holder.poll() is None and os.readlink(link) == ours:
                time.sleep(0.01)
            if holder.poll() is not None:
                pytest.skip("network namespaces: unshare --net is not permitted")
        a, b = (str(holder.pid) for holder in holders)
        inside = [["nsenter", f"--net=/proc/{pid}/ns/net"] for pid in (a, b)]
        commands = [["ip", "link", "add", "tt0", "netns", a, "type", "veth"]]
        commands[0] += ["peer", "name", "tt0", "netns", b]
        for k, enter in enumerate(inside):
            commands.append([*enter, "ip", "address", "add", f"10.77.0.{k + 1}/24", "dev", "tt0"])
            commands += [[*enter, "ip", "link", "set", name, "up"] for name in ("lo", "tt0")]
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"network namespaces: {' '.join(command)}: {done.stderr.strip()}")
        yield inside
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


@pytest.fixture(scope="module")
def networks():
    with two_networks() as inside:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GLOO_SOCKET_IFNAME", "tt0")
            world = World(2, inside=inside)
        yield world, inside[0]
        world.close()


def received(inside: list[str]) -> int:
    """How many bytes came out of the cable."""
    text = subprocess.check_output([*inside, "cat", "/proc/net/dev"], text=True)
    return int(text.partition("tt0:")[2].split()[0])


@pytest.mark.parametrize("name", ["all_reduce", "all_reduce_large", "send_receive", "ddp"])
def test_two_networks(name: str, networks: tuple[World, list[str]]) -> None:
    """Hosts without any forcing: each rank has a network of its own and only the cable between."""
    world, inside = networks
    before = received(inside)
    run(world, name)
    assert received(inside) > before + 1000


def test_what_crosses() -> None:
    """Once a host, not once a rank: the array of 4 MB once, of the parts of 1 MB two."""
    with two_networks() as inside:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GLOO_SOCKET_IFNAME", "tt0")
            world = World(4, inside=[inside[k // 2] for k in range(4)])
        try:
            run(world, "barriers")
            for name, megabytes in [("broadcast", 4), ("all_gather", 2), ("reduce_scatter", 2)]:
                before = received(inside[0])
                run(world, f"counted_{name}")
                crossed = (received(inside[0]) - before) / (1 << 20)
                assert megabytes <= crossed < 1.5 * megabytes, (name, crossed)
        finally:
            world.close()


@pytest.mark.slow
def test_killed_rank_among_hosts() -> None:
    """Everyone gets an error within moments, in whichever collective it was."""
    world = World(4, hosts=list("abab"))
    try:
        run(world, "barriers")
        start = time.monotonic()
        world.start("killed_in_turns")
        answers = [world.answer(rank, 30) for rank in (0, 2, 3)]
        assert not any(a["error"] for a in answers), answers
        assert all("rank 1" in a["value"] for a in answers), answers
        assert time.monotonic() - start < 10, answers
    finally:
        for rank in world.ranks:
            rank.send_signal(signal.SIGKILL)
        world.close()


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


@pytest.mark.parametrize(
    ("name", "words"), [("silent", "rank 2 did not answer"), ("gone", "rank 2")]
)
def test_failure_crosses_hosts(name: str, words: str) -> None:
    """Every rank is told which one it was, also those of the other host, and at once."""
    world = World(3, hosts=["a", "b", "b"])
    try:
        run(world, "barriers")
        start = time.monotonic()
        world.start(name)
        for rank in (0, 1):
            answer = world.answer(rank, 30)
            assert not answer["error"], answer["error"]
            assert words in answer["value"], answer["value"]
        assert time.monotonic() - start < 15
    finally:
        for rank in world.ranks:
            rank.send_signal(signal.SIGKILL)
        world.close()
