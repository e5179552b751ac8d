"""Kernels are compiled ahead, each variant once, and a launch waits for its own."""

import time
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

pytest.importorskip("triton", minversion="3.4")
from regard.core.kernels.gpu import launch


@dataclass(frozen=True)
class Parameter:
    name: str
    is_constexpr: bool = False
    do_not_specialize: bool = False


@dataclass(eq=False)
class FakeKernel:
    """Notes what it is asked for, as a kernel of Triton is."""

    asked: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    params = (Parameter("states"), Parameter("length", do_not_specialize=True), Parameter("WIDTH", is_constexpr=True))
    arg_names = ("states", "length", "WIDTH")

    def run(self, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> "FakeKernel":
        time.sleep(0.05)
        self.asked.append(("compiled", (*arguments[1:], *options.values())))
        return self

    def _init_handles(self) -> None:
        pass

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *arguments, **options: self.asked.append(("launched", (*arguments[1:], *options.values())))


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_COMPILER", launch._Compiler())
    monkeypatch.setattr(launch, "_build_driver", lambda where: None)
    monkeypatch.setattr(launch, "_hash_triton", lambda: None)
    monkeypatch.setattr(launch, "device_guard", lambda where: torch.no_grad())
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "device", lambda where: torch.no_grad())


GPU = torch.device("cuda", 0)
STATES = torch.zeros(3)


@pytest.mark.usefixtures("compiler")
def test_each_variant_is_compiled_once_and_before_it_is_launched() -> None:
    kernel = FakeKernel()

    def run() -> None:
        for length, width in ((5, 16), (9, 16), (5, 32)):  # a length makes no other variant
            launch.launch(kernel, (1,), STATES, length, WIDTH=width)

    launch.compile_ahead("some", GPU, run)
    launch.launch(kernel, (1,), STATES, 5, WIDTH=16)
    assert sorted(kernel.asked[:2]) == [("compiled", (5, 16)), ("compiled", (5, 32))]
    assert kernel.asked[2:] == [("launched", (5, 16))]


@pytest.mark.usefixtures("compiler")
def test_a_combination_is_compiled_when_it_is_new() -> None:
    runs = []
    for combination in ("some", "some", "other"):
        launch.compile_ahead(combination, GPU, lambda name=combination: runs.append(name))
    launch.compile_ahead("some", torch.device("cpu"), lambda: runs.append("on a CPU"))
    assert runs == ["some", "other"]


@pytest.mark.usefixtures("compiler")
def test_combinations_are_forgotten_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "MAX_SEEN", 3)
    runs: list[int] = []
    for combination in (0, 1, 2, 3, 3, 0):
        launch.compile_ahead(combination, GPU, lambda number=combination: runs.append(number))
        assert len(launch._COMPILER._seen) <= 3
    assert runs == [0, 1, 2, 3, 0]


@pytest.mark.usefixtures("compiler")
def test_triton_is_started_once_and_before_anything_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = FakeKernel()

    def hash_slowly() -> None:
        time.sleep(0.1)
        kernel.asked.append(("hashed", ()))

    monkeypatch.setattr(launch, "_hash_triton", hash_slowly)
    launch.start_triton(GPU)
    launch.start_triton(GPU)
    launch.compile_ahead("some", GPU, lambda: launch.launch(kernel, (1,), STATES, 5, WIDTH=16))
    launch.launch(kernel, (1,), STATES, 5, WIDTH=16)
    assert [what for what, _ in kernel.asked] == ["hashed", "compiled", "launched"]


def test_the_hash_of_triton_is_found_where_this_version_has_it() -> None:
    from triton.compiler import compiler
    from triton.runtime import cache

    assert hasattr(cache, "triton_key") or hasattr(compiler, "triton_key")


@pytest.mark.usefixtures("compiler")
def test_a_kernel_that_cannot_be_compiled_says_so_when_it_is_launched() -> None:
    class Broken(FakeKernel):
        def run(self, *arguments: Any, **options: Any) -> FakeKernel:
            raise ValueError("no such instruction")

        def __getitem__(self, grid: tuple[int, ...]) -> Any:
            return lambda *arguments, **options: self.run()

    kernel = Broken()
    launch.compile_ahead("some", GPU, lambda: launch.launch(kernel, (1,), STATES, 5, WIDTH=16))
    with pytest.raises(ValueError, match="no such instruction"):
        launch.launch(kernel, (1,), STATES, 5, WIDTH=16)
