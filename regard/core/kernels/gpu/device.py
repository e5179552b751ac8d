"""Where kernels are launched, and compiled before they are needed.

Triton compiles a kernel when it is first launched, for seconds, one behind the other. So when a combination is met for
the first time, all kernels that it needs, forward and backward, are compiled at once on other threads (Triton releases
the GIL for most of it), and a launch waits for its own alone. What Triton does once in a process before it compiles
anything, half a second, begins on other threads when the first fused kernel is chosen (`start_triton`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import torch

from regard.runtime.device_cache import records
from regard.runtime.device_guard import device_guard

LEAST_SHARED = 101_376
"""bytes of shared memory of the smallest GPUs that have kernels of our own"""
THREADS = 8
"""on which kernels are compiled"""


@lru_cache(maxsize=16)
def shared_memory(device: torch.device) -> int:
    """Return the bytes of shared memory that a kernel may use on the device."""
    if device.type != "cuda":
        return 1 << 30  # Triton's interpreter has no limit
    return int(getattr(torch.cuda.get_device_properties(device), "shared_memory_per_block_optin", LEAST_SHARED))


def start_triton(device: torch.device) -> None:
    """Begin on other threads what Triton does once before its first compilation: it builds its driver, and computes a
    hash of itself, which is part of every key in its cache."""
    if device.type == "cuda" and not records():
        _COMPILER.start(device)


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """Launch a Triton kernel; inside of `compile_ahead` only compile it, on another thread."""
    if _COMPILER.only_compiles:
        _COMPILER.submit(kernel, arguments, options)
        return
    _COMPILER.wait(kernel)
    kernel[grid](*arguments, **options)


def compile_ahead(combination: Hashable, device: torch.device, run: Callable[[], object]) -> None:
    """Compile what `run` launches, in parallel, if this combination is new.

    `run` computes on uninitialized results, so nothing in it may depend on them.
    """
    if device.type != "cuda" or not _COMPILER.is_new((device, combination)) or records():
        return
    with _COMPILER.only_compiling(), torch.no_grad(), device_guard(device):
        run()


class _Compiler:
    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pending: dict[Any, list[Future[None]]] = {}
        self._met: set[Hashable] = set()
        self._started: list[Future[None]] = []
        self._thread = threading.local()
        self._lock = threading.Lock()

    @property
    def only_compiles(self) -> bool:
        return getattr(self._thread, "only_compiles", False)

    @contextmanager
    def only_compiling(self) -> Iterator[None]:
        self._thread.only_compiles = True
        try:
            yield
        finally:
            self._thread.only_compiles = False

    def is_new(self, combination: Hashable) -> bool:
        """Has the combination not been met before?"""
        if combination in self._met:
            return False
        self._met.add(combination)
        return True

    def start(self, device: torch.device) -> None:
        """Prepare Triton for its first compilation, unless that has begun."""
        if self._pool is not None:
            return
        with self._lock:
            if self._pool is None:
                pool = ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1), "regard-compile")
                self._started = [pool.submit(_build_driver, device), pool.submit(_hash_triton)]
                self._pool = pool

    def submit(self, kernel: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Compile a kernel for such arguments on another thread, unless that was asked for already."""
        device = torch.cuda.current_device()
        if not self.is_new((device, kernel, *specialization(kernel, arguments, options))):
            return
        self.start(torch.device("cuda", device))
        pool, started = self._pool, self._started
        assert pool is not None

        def compiled() -> None:
            wait(started)  # they are in the pool before this
            with torch.cuda.device(device):  # which is a thread's own
                found = kernel.run(*arguments, grid=(1,), warmup=True, **options)
                found._init_handles()

        with self._lock:
            self._pending.setdefault(kernel, []).append(pool.submit(compiled))

    def wait(self, kernel: Any) -> None:
        """Wait until nothing of the kernel is being compiled any more."""
        if self._started:
            wait(self._started)
            self._started = []
        if kernel not in self._pending:
            return
        with self._lock:
            pending = self._pending.pop(kernel, [])
        for future in pending:
            with suppress(Exception):  # the launch raises it again
                future.result()


def specialization(kernel: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Iterator[Hashable]:
    """Yield what Triton compiles a kernel for: dtypes, whether numbers are 1 or multiples of 16, and constants."""
    constant = {each.name: each.is_constexpr for each in kernel.params}
    any_number = {each.name for each in kernel.params if each.do_not_specialize}
    given = zip(kernel.arg_names, arguments, strict=False)
    for name, argument in (*given, *options.items()):
        if isinstance(argument, torch.Tensor):
            yield name, argument.dtype
        elif constant.get(name, True):
            yield name, argument
        elif isinstance(argument, int) and name not in any_number:
            yield name, argument == 1, argument % 16 == 0


def _build_driver(device: torch.device) -> None:
    """Make Triton's driver, which it does when it is first asked for, and in several threads several times."""
    from triton.runtime import driver

    with torch.cuda.device(device):
        driver.active.get_current_device()


def _hash_triton() -> None:
    """Compute Triton's hash of its own files, hundreds of megabytes, which it caches for the life of the process."""
    from triton.compiler import compiler
    from triton.runtime import cache

    triton_key = getattr(cache, "triton_key", None) or getattr(compiler, "triton_key", None)  # before Triton 3.5
    if triton_key is not None:
        triton_key()


_COMPILER = _Compiler()
