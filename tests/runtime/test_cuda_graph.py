"""Recording, with a GPU that only notes what it is asked for."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard.runtime import cuda_graph
from regard.runtime.cuda_graph import GraphCapturer, temporary_capturer

DEVICE = torch.device("cpu")


class Graph:
    def __init__(self) -> None:
        self.asked: list[Any] = []

    def capture_begin(self, pool: object, capture_error_mode: str) -> None:
        assert capture_error_mode == "thread_local"
        self.asked.append(("begin", pool))

    def capture_end(self) -> None:
        self.asked.append("end")


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = iter(range(100))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(cuda_graph, "CapturedGraph", Graph)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device, priority=0: SimpleNamespace(priority=priority))
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(synchronize=lambda: None))
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: next(pools))
    monkeypatch.setattr(cuda_graph, "_THREAD", SimpleNamespace())


def test_recordings_share_their_memory_and_no_others() -> None:
    one, other = GraphCapturer(DEVICE), GraphCapturer(DEVICE)
    with one.capture() as first:
        pass
    with one.capture() as second:
        pass
    with other.capture() as third:
        pass
    assert first.asked == second.asked == [("begin", 0), "end"] and third.asked == [("begin", 1), "end"]  # type: ignore[attr-defined]


def test_what_goes_wrong_ends_the_recording_and_the_next_one_works() -> None:
    recorder = GraphCapturer(DEVICE)
    with pytest.raises(KeyError), recorder.capture() as graph:
        raise KeyError
    assert graph.asked == [("begin", 0), "end"]  # type: ignore[attr-defined]
    with recorder.capture():
        pass


def test_recordings_that_come_and_go_have_one_place_whose_memory_is_kept() -> None:
    recorder = temporary_capturer(DEVICE)
    assert temporary_capturer(DEVICE) is recorder
    with recorder.capture() as graph:
        pass
    keeper = recorder._pool_keeper
    assert keeper is not None and keeper.asked == graph.asked == [("begin", 0), "end"]  # type: ignore[attr-defined]
    assert recorder.stream.priority == -1 and GraphCapturer(DEVICE).stream.priority == 0  # type: ignore[attr-defined]
