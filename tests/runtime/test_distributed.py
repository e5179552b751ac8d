"""Processes that compute together: `python -m tests.runtime.test_distributed` is what each of three runs."""

from __future__ import annotations

import os

import pytest
import torch

from regard.runtime.distributed import ALONE, World, current_world, is_connection_error, joined_world, local_device
from regard.runtime.launch import LostProcessError, ReportedElsewhereError
from tests.launching import launch

LOST = 7  # the exit code of a process that ends without a word


def test_one_process_is_a_world_of_its_own() -> None:
    assert current_world() == ALONE and ALONE.is_first
    tensor = torch.ones(2)
    assert ALONE.sum_(tensor) is tensor and ALONE.total(3) == 3 and ALONE.any(True, False) == (True, False)
    assert ALONE.broadcast("x") == "x" and ALONE.gather("x") == ["x"]
    assert ALONE.map([3, 1, 2], lambda items: [2 * item for item in items]) == [6, 2, 4]
    with pytest.raises(OSError, match="x"), ALONE.shared_errors():
        raise OSError("x")


def test_shares_cover_everything_once() -> None:
    items = list(range(7))
    shares = [World(rank, 3, connected=True).share(items) for rank in range(3)]
    assert shares == [[0, 3, 6], [1, 4], [2, 5]]


@pytest.mark.parametrize(
    ("message", "lost"),
    [
        ("[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:1", True),
        ("NCCL communicator was aborted on rank 0.", True),
        ("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)", False),
    ],
)
def test_the_errors_of_a_lost_process(message: str, lost: bool) -> None:
    assert is_connection_error(RuntimeError(message)) == lost


def test_every_process_of_a_machine_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert local_device(torch.device("cuda")) == torch.device("cuda"), "alone"
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert local_device(torch.device("cpu")) == torch.device("cpu")
    assert local_device(torch.device("cuda")) == torch.device("cuda:1")
    with pytest.raises(ValueError, match=r"expected cpu or cuda with torchrun.*got cuda:0"):
        local_device(torch.device("cuda:0"))
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(ValueError, match="a GPU for each process, got process 3 on a machine with 2"):
        local_device(torch.device("cuda"))


def test_three_processes() -> None:
    ended = launch(3, "-m", "tests.runtime.test_distributed")
    assert [code for code, _ in ended] == [0, 0, LOST], "\n".join(error for _, error in ended)


def main() -> None:
    """Check each method in a process of three; then the last one ends, and the others hear of it in a sentence."""
    sentence = r"another of the 3 processes has ended, and process . ends too"
    with pytest.raises(LostProcessError, match=sentence) as error:
        _compute()
    assert "\n" not in str(error.value)


@joined_world()
def _compute() -> None:
    world = current_world()
    _check(world)
    if world.rank == 2:
        os._exit(LOST)
    world.total(1.0)


def _check(world: World) -> None:
    rank = world.rank
    assert world == World(rank, 3, connected=True)
    assert world.sum_(torch.tensor([1.0, float(rank)])).tolist() == [3.0, 3.0]
    assert world.total(rank) == 3.0
    assert world.any(rank == 1, False, True) == (True, False, True)
    assert world.broadcast({"rank": rank}) == {"rank": 0}
    assert world.gather(f"process {rank}") == ["process 0", "process 1", "process 2"]
    for count in (7, 2, 0):
        seen: list[int] = []
        items = list(range(count))
        assert world.map(items, lambda part, seen=seen: [seen.append(item) or 2 * item for item in part]) == [
            2 * item for item in items
        ]
        assert seen == items[rank::3], "each process computes its share only"
    for failing in ((1,), (0, 1, 2), (2,)):
        expected = ValueError if rank == failing[0] else ReportedElsewhereError
        with pytest.raises(expected):
            _fail(world, rank in failing)
    _fail(world, False)


def _fail(world: World, fails: bool) -> None:
    with world.shared_errors():
        if fails:
            raise ValueError("a mistake")


if __name__ == "__main__":
    main()
