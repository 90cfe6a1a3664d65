"""Whatever happens to a rank, the others get a clear error within seconds, and nothing is left.

Nothing: no process, no file under /dev/shm, no mapping or descriptor of shared memory in the ranks
that live on. The cases: dist_fault_worker.py; ranks that disagree: test_dist.py.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

WORKER = pathlib.Path(__file__).with_name("dist_fault_worker.py")
PROMPT = 8.0  # seconds: far below the group's timeout of 30


def start(name: str, rank: int, store: str) -> subprocess.Popen:
    command = [sys.executable, str(WORKER), name, str(rank), store]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


def answer(rank: subprocess.Popen, timeout: float = 60) -> dict:
    out, err = rank.communicate(timeout=timeout)
    lines = [line for line in out.splitlines() if line.startswith("{")]
    assert lines, f"no answer: exit status {rank.returncode}\n{err[-3000:]}"
    return json.loads(lines[-1])


class Ranks:
    """Two ranks of a case; none survives the block."""

    def __init__(self, name: str, count: int = 2):
        self.folder = tempfile.TemporaryDirectory()
        store = f"{self.folder.name}/store"
        self.shm = set(os.listdir("/dev/shm"))
        self.ranks = [start(name, r, store) for r in range(count)]

    def __enter__(self) -> list[subprocess.Popen]:
        return self.ranks

    def __exit__(self, *_: object) -> None:
        for rank in self.ranks:
            rank.kill()
            rank.communicate()
        self.folder.cleanup()
        left = [f for f in set(os.listdir("/dev/shm")) - self.shm if "tpu" in f]
        assert not left, left


def check(told: dict, *words: str, within: float = PROMPT) -> None:
    assert told["error"], "no error"
    assert all(word in told["error"] for word in words), told["error"]
    assert told["seconds"] < within, told
    assert not told["remains"], told["remains"]


@pytest.mark.slow
def test_absent_rank() -> None:
    with Ranks("absent", count=1) as ranks:
        check(answer(ranks[0]), "rank 0 of 2", "no sign of rank 1 within 2.0 s", "world_size")


def test_killed_while_meeting() -> None:
    with Ranks("killed_while_meeting") as ranks:
        check(answer(ranks[0]), f"rank 1 (process {ranks[1].pid}) died while the group was made")


@pytest.mark.slow
def test_stopped_while_meeting() -> None:
    with Ranks("stopped_while_meeting") as ranks:
        check(answer(ranks[0]), "no sign of rank 1 within 2.0 s")


def test_no_shared_memory() -> None:
    """Both say how much could not be had, and which rank could not have it."""
    with Ranks("no_memory") as ranks:
        words = ("cannot reserve", "bytes of shared memory")
        check(answer(ranks[0]), "rank 1 failed", *words)
        check(answer(ranks[1]), *words)


def test_wrong_world_size() -> None:
    with Ranks("world_sizes") as ranks:
        for rank in ranks:
            check(answer(rank), "world size", "says 2", "says 3", "rank 0", "rank 1")


@pytest.mark.slow
def test_same_rank_twice() -> None:
    with Ranks("same_rank") as ranks:
        told = sorted((answer(rank)["error"] for rank in ranks), key=lambda e: "another" in e)
    assert "another process is rank 0 of 2 already" in told[1], told
    assert "no sign of rank 1" in told[0], told


def test_rank_that_ends() -> None:
    with Ranks("ended_by_exception") as ranks:
        told = answer(ranks[0])
        check(told, "all_reduce on rank 0", f"rank 1 (process {ranks[1].pid})")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("killed_ddp", "all_reduce"),
        pytest.param("killed_all_gather", "all_gather", marks=pytest.mark.slow),
        pytest.param("killed_send", "send", marks=pytest.mark.slow),
    ],
)
def test_killed_rank(name: str, what: str) -> None:
    with Ranks(name) as ranks:
        words = (f"{what} on rank 0", f"rank 1 (process {ranks[1].pid}) died")
        check(answer(ranks[0]), *words)


def test_port_in_use() -> None:
    """The launcher's port taken by another program: rank 0 says so at once."""
    script = "import torch.distributed as dist; dist.init_process_group()"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(taken.getsockname()[1])}
        rank = os.environ | where | {"RANK": "0", "WORLD_SIZE": "2"}
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", script], env=rank, capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 1
    assert "EADDRINUSE" in done.stderr, done.stderr[-2000:]
    assert time.monotonic() - begun < 30


def test_torchrun_ends_when_a_rank_is_killed(tmp_path: pathlib.Path) -> None:
    """The launcher returns an error, and no worker lives on."""
    script = tmp_path / "train.py"
    script.write_text(
        "import os, pathlib, signal, torch, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        f"pathlib.Path({str(tmp_path)!r}, str(os.getpid())).touch()\n"
        "dist.barrier()\n"
        "if dist.get_rank() == 1:\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "while True:\n"
        "    dist.all_reduce(torch.ones(1000, device='tpu'))\n"
    )
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run([*launcher, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "SIGKILL" in done.stderr
    workers = [int(f.name) for f in tmp_path.iterdir() if f.name.isdigit()]
    assert len(workers) == 2
    for pid in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, signal.SIG_DFL)


@pytest.mark.slow
def test_full_dev_shm() -> None:
    """The shared memory is no file under /dev/shm: that one may be full."""
    fill = "mount -t tmpfs -o size=4k none /dev/shm && head -c 4096 /dev/zero > /dev/shm/full"
    inside = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
    try:
        able = subprocess.run([*inside, fill], capture_output=True).returncode == 0
    except FileNotFoundError:
        able = False
    if not able:
        pytest.skip("needs unshare and a mount namespace of its own")
    both = fill + ' && for rank in 0 1; do "$@" $rank "$STORE" & done; wait'
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*inside, both, "sh", sys.executable, str(WORKER), "killed_all_gather"],
            env=os.environ | {"STORE": f"{folder}/store"},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.stdout, done.stderr[-3000:]
    check(json.loads(done.stdout), "all_gather on rank 0", "rank 1", "died")
