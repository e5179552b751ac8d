"""Launchers that threads load at the same time."""

import threading
from types import ModuleType

import pytest

pytest.importorskip("triton")

from triton.runtime import build

from regard.core.kernels.gpu.launchers import protect_launchers

THREADS = 4


def test_a_thread_gets_its_own_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python does with extension modules, the loader has one module for a name and overwrites it."""
    shared, before_reading = ModuleType("launcher"), threading.Barrier(THREADS)

    def load(name: str, path: str) -> ModuleType:
        shared.__dict__["launch"] = path
        return shared

    monkeypatch.setattr(build, "_load_module_from_path", load)
    launched: dict[str, str] = {}

    def read(path: str) -> None:
        with protect_launchers():
            module = build._load_module_from_path("launcher", path)
        before_reading.wait()
        launched[path] = module.launch

    threads = [threading.Thread(target=read, args=(str(number),)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert launched == {str(number): str(number) for number in range(THREADS)}


def test_it_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_load_module_from_path", lambda name, path: ModuleType(name))
    protect_launchers()
    loader = build._load_module_from_path
    protect_launchers()
    assert build._load_module_from_path is loader


def test_without_such_a_loader_threads_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(build, "_load_module_from_path")
    with protect_launchers():
        assert not protect_launchers().acquire(blocking=False)  # type: ignore[attr-defined]
