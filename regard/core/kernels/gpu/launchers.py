"""Launchers of Triton kernels, loaded by several threads.

Triton up to 3.6 builds a Python module for each signature of a kernel, all of one name, and takes the module's `launch`
after loading it. When such a file is loaded again, for another kernel with the same signature, Python does not make a
new module: it overwrites the last one of that name (`sys.modules`). So a thread could get the launcher that another
thread has just loaded, and the launch fails: "function takes exactly 34 arguments (21 given)".
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType

_LOADING = threading.Lock()
_BUILDING = threading.Lock()


def protect_launchers() -> AbstractContextManager[object]:
    """Make Triton's loading of modules safe for threads; return the context in which a thread has to load them.

    It is a lock, which also makes builds wait for each other, only if Triton (before 3.4) cannot be given a loader.
    """
    from triton.runtime import build

    load = getattr(build, "_load_module_from_path", None)
    if load is None:
        return _BUILDING
    if not hasattr(load, "__wrapped__"):
        build._load_module_from_path = _copying(load)
    return nullcontext()


def _copying(load: Callable[[str, str], ModuleType]) -> Callable[[str, str], ModuleType]:
    """Return a loader whose modules are copies, which no later call changes."""

    def load_copy(name: str, path: str) -> ModuleType:
        module = ModuleType(name)
        with _LOADING:
            module.__dict__.update(load(name, path).__dict__)
        return module

    load_copy.__wrapped__ = load  # type: ignore[attr-defined]
    return load_copy
