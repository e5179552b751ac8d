"""What is made once and kept."""

import weakref

import pytest
import torch
from torch import Tensor

from regard import Full, Window, attention, per_head
from regard.runtime import device_cache as module
from regard.runtime.caches import clear_caches
from regard.runtime.device_cache import device_cache, device_constant, retained_values


def counted() -> tuple[list[int], "module.DeviceCache[[int], Tensor]"]:
    made: list[int] = []

    @device_cache(maxsize=2, reason="a test")
    def numbers(count: int) -> Tensor:
        """So many."""
        made.append(count)
        return torch.arange(count)

    return made, numbers


def test_it_is_made_once_and_dropped_when_others_were_asked_for_since() -> None:
    made, numbers = counted()
    assert numbers.__doc__ == "So many."
    assert numbers(3) is numbers(3) and made == [3]
    numbers(4), numbers(5), numbers(3)
    assert made == [3, 4, 5, 3]
    clear_caches()
    numbers(3)
    assert made == [3, 4, 5, 3, 3]


def test_what_a_graph_reads_lives_as_long_as_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    _, numbers = counted()
    numbers(3)
    monkeypatch.setattr(module, "is_capturing", lambda: True)
    graph: list[object] = []
    with retained_values(graph):
        value = weakref.ref(numbers(3))
    monkeypatch.setattr(module, "is_capturing", lambda: False)
    numbers(4), numbers(5), numbers(6)
    assert value() is graph[0]
    graph.clear()
    assert value() is None


def test_what_a_graph_of_the_caller_reads_is_never_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    _, numbers = counted()
    monkeypatch.setattr(module, "_READ_BY_UNKNOWN_GRAPHS", {})
    monkeypatch.setattr(module, "is_capturing", lambda: True)
    value = weakref.ref(numbers(3))
    monkeypatch.setattr(module, "is_capturing", lambda: False)
    numbers(4), numbers(5), numbers(6)
    assert value() is not None


def test_made_in_inference_mode_it_serves_autograd() -> None:
    states = torch.randn(2, 300, 8, requires_grad=True)
    pattern = per_head([Window(3), Full()])
    with torch.inference_mode():
        attention(states, states, states, pattern=pattern)
    attention(states, states, states, pattern=pattern).context.sum().backward()  # type: ignore[no-untyped-call]
    assert states.grad is not None


def test_numbers_that_are_equal_in_python_differ_by_their_dtype() -> None:
    cpu = torch.device("cpu")
    assert device_constant((0, 1), torch.int64, cpu).dtype is torch.int64
    assert device_constant((0.0, 1.0), torch.float32, cpu).dtype is torch.float32
    assert device_constant((0, 1), torch.int64, cpu) is device_constant((0, 1), torch.int64, cpu)


def test_no_gpu_records_here() -> None:
    assert not module.is_capturing()
