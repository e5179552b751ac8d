"""The environment says how a process was launched."""

from __future__ import annotations

import pytest

from regard.runtime import launch

TORCHRUN = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*TORCHRUN, "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def launched(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)


def test_a_process_alone(alone: None) -> None:
    assert not launch.is_distributed()
    assert (launch.rank(), launch.local_rank(), launch.restarts(), launch.launch_id()) == (0, None, 0, "")
    assert launch.reports_errors()
    launch.refuse("best", "never")


def test_one_of_several(launched: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert launch.is_distributed()
    assert (launch.rank(), launch.local_rank(), launch.restarts()) == (3, 1, 0)
    assert not launch.reports_errors(), "before it is connected, the first process reports"
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    assert launch.restarts() == 2
    with pytest.raises(ValueError, match="best: has processes of its own; expected no torchrun"):
        launch.refuse("best", "has processes of its own")


def test_a_rank_that_is_no_number(launched: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(ValueError, match="RANK: expected a whole number in the environment, got 'first'"):
        launch.rank()


def test_a_rank_alone_does_not_make_several_processes(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    assert not launch.is_distributed() and launch.rank() == 0


def test_the_identity_of_a_launch(launched: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job-17")
    assert launch.launch_id() == "job-17"
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")  # what torchrun sets if it has no name
    assert launch.launch_id() not in ("", "none") and launch.launch_id() == launch.launch_id()
