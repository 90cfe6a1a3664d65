"""`tpu_dist` between processes: collectives, messages, training, faults. The cases: dist_worker.py.

The ranks of a world live for the whole file, because starting one costs more than all its cases; a
case that fails costs its world, and the next one gets a new one.
"""

import atexit
import json
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import tempfile
import time

import dist_worker
import pytest

WORKER = pathlib.Path(__file__).with_name("dist_worker.py")


class World:
    """Some ranks that run cases.

    `program` is what each runs instead of WORKER; `inside[r]` the command that runs rank r.
    """

    def __init__(
        self,
        size: int,
        hosts: list[str] | None = None,
        program: list[str] | None = None,
        inside: list[list[str]] | None = None,
    ):
        self.folder = tempfile.TemporaryDirectory()
        program = program or [str(WORKER)]
        environment = dict(os.environ)
        environment.pop("PYTHONSAFEPATH", None)  # the worker imports the cases beside it
        self.ranks = [
            subprocess.Popen(
                [
                    *(inside[r] if inside else []),
                    *(sys.executable, *program, str(r), str(size), f"{self.folder.name}/store"),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                bufsize=1,
                env=environment | ({"TORCHTPU_HOST_ID": hosts[r]} if hosts else {}),
            )
            for r in range(size)
        ]

    def start(self, name: str, mode: str = "strict") -> None:
        for rank in self.ranks:
            rank.stdin.write(f"{name} {mode}\n")

    def answer(self, rank: int, timeout: float) -> dict:
        """Rank's answer, {"error": "no answer"} after the timeout, {"error": "died"} at its end."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.ranks[rank].stdout, selectors.EVENT_READ)
            if not selector.select(timeout):
                return {"error": f"no answer within {timeout} s"}
        line = self.ranks[rank].stdout.readline()
        return json.loads(line) if line else {"error": "died"}

    def run(self, name: str, mode: str = "strict", timeout: float = 90) -> list[dict]:
        self.start(name, mode)
        end = time.monotonic() + timeout
        return [self.answer(r, max(end - time.monotonic(), 1)) for r in range(len(self.ranks))]

    def close(self) -> list[int]:
        """Ends the ranks and gives their exit codes."""
        for rank in self.ranks:
            rank.stdin.close()
        codes = []
        for rank in self.ranks:
            try:
                codes.append(rank.wait(10))
            except subprocess.TimeoutExpired:
                rank.kill()
                codes.append(rank.wait())
            rank.stdout.close()
        self.folder.cleanup()
        return codes


_worlds: dict[int, World] = {}


def world(size: int) -> World:
    if size not in _worlds:
        _worlds[size] = World(size)
    return _worlds[size]


def drop(size: int) -> list[int]:
    gone = _worlds.pop(size, None)
    return gone.close() if gone else []


@pytest.fixture(scope="module", autouse=True)
def _no_rank_survives():
    close = lambda: [drop(size) for size in list(_worlds)]  # noqa: E731
    atexit.register(close)
    yield
    close()


def parameters() -> list:
    return [
        pytest.param(name, size, mode, id=f"{name}-{size}-{mode}")
        for name, entry in dist_worker.CASES.items()
        for size in entry["sizes"]
        for mode in entry["modes"]
        if size == entry["sizes"][0] or mode == "strict"
    ]


@pytest.mark.parametrize(("name", "size", "mode"), parameters())
def test_case(name: str, size: int, mode: str) -> None:
    answers = world(size).run(name, mode)
    errors = [f"rank {r}: {a['error']}" for r, a in enumerate(answers) if a["error"]]
    if errors:
        drop(size)
    assert not errors, "\n".join(errors)


def test_ranks_leave_in_peace() -> None:
    """Shutting a group down on every rank is no failure."""
    world(2).run("barriers")
    assert drop(2) == [0, 0]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("other_dtype", ("all_reduce", "f32", "bf16", "rank 0", "rank 1")),
        ("other_shape", ("4 x f32", "5 x f32", "rank 0", "rank 1")),
        ("other_collective", ("all_reduce", "broadcast", "rank 0", "rank 1")),
    ],
)
def test_ranks_disagree(name: str, words: tuple[str, ...]) -> None:
    for answer in world(2).run(name, timeout=40):
        assert not answer["error"], answer["error"]
        assert all(w in answer["value"] for w in words), answer["value"]


def test_stopped_rank() -> None:
    """A rank that is silent for the timeout is named; the world works on when it wakes up."""
    ranks = world(2)
    ranks.start("stopped")
    start = time.monotonic()
    answer = ranks.answer(0, 30)
    took = time.monotonic() - start
    os.kill(ranks.ranks[1].pid, signal.SIGCONT)
    ranks.answer(1, 30)
    assert not answer["error"], answer["error"]
    assert "rank 1 did not answer within the timeout of 2.0 s" in answer["value"], answer["value"]
    assert took < 10
    assert not any(a["error"] for a in ranks.run("all_reduce_views"))


@pytest.mark.parametrize("name", ["killed_all_reduce", "killed_barrier", "killed_receive_any"])
def test_killed_rank(name: str) -> None:
    """kill -9 of a rank is an error on the other one at once, not after the timeout of 30 s."""
    ranks = world(2)
    ranks.run("barriers")
    pid = ranks.ranks[1].pid
    start = time.monotonic()
    ranks.start(name)
    answer = ranks.answer(0, 30)
    took = time.monotonic() - start
    drop(2)
    assert not answer["error"], answer["error"]
    assert f"rank 1 (process {pid}) died" in answer["value"], answer["value"]
    assert took < 5, f"{took:.1f} s"
