"""Launching Triton kernels, and compiling them in parallel before they are needed.

Triton compiles a kernel when it is first launched, which takes seconds, one kernel after the other. So when a
combination is new, all kernels that it needs, forward and backward, are compiled at once on other threads (Triton
releases the GIL for most of the time), and each launch waits only for its own kernel. Triton's initialization, half a
second once per process, starts on other threads when the first fused kernel is chosen (`start_triton`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.flat import FlatRows
from regard.core.kernels.gpu.launchers import protect_launchers
from regard.runtime.caches import cached
from regard.runtime.device_cache import is_capturing
from regard.runtime.device_guard import device_guard

MIN_SHARED_MEMORY = 101_376  # bytes of shared memory of the smallest GPUs that our kernels support
COMPILE_THREADS = 8  # the most threads that compile kernels
MAX_SEEN = 8192  # combinations that are remembered; one that is forgotten is submitted again, and found compiled


@cached(maxsize=16, reason="each kernel that may refuse a request asks torch for them, and so does each launch")
def gpu_properties(device: torch.device) -> Any:
    """Return torch's properties of a GPU."""
    return torch.cuda.get_device_properties(device)


def shared_memory(device: torch.device) -> int:
    """Return the bytes of shared memory that a kernel may use on the device."""
    if device.type != "cuda":
        return 1 << 30  # Triton's interpreter has no limit
    return int(getattr(gpu_properties(device), "shared_memory_per_block_optin", MIN_SHARED_MEMORY))


def start_triton(device: torch.device) -> None:
    """Start Triton's initialization on other threads: it builds its driver, and hashes its own files, because that hash
    is part of every key in its cache."""
    if device.type == "cuda" and not is_capturing():
        _COMPILER.start(device)


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """Launch a Triton kernel, unless the grid is empty; inside `compile_ahead`, only compile it, on another thread."""
    if 0 in grid:
        return
    if _COMPILER.only_compiles:
        _COMPILER.submit(kernel, arguments, options)
        return
    _COMPILER.wait(kernel)
    kernel[grid](*arguments, **options)


def mask_arguments(mask: FlatRows | None, rows: int, placeholder: Tensor) -> tuple[Tensor, Tensor]:
    """Return a kernel's arguments for a mask: the mask, and its row for each of the `rows` rows of the batch."""
    return (placeholder, placeholder) if mask is None else (mask.tensor.to(torch.uint8), mask.numbers(rows))


def compile_ahead(combination: Hashable, device: torch.device, run: Callable[[], object]) -> None:
    """Compile the kernels that `run` launches, in parallel, if this combination is new. Inside `run` no kernel writes
    its results, so nothing in it may depend on their values."""
    if device.type != "cuda" or not _COMPILER.is_new((device, combination)) or is_capturing():
        return
    with _COMPILER.only_compiling(), torch.no_grad(), device_guard(device):
        run()


class _Compiler:
    """The threads that compile kernels, and the kernels that are being compiled."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pending: dict[Any, list[Future[None]]] = {}
        self._seen: set[Hashable] = set()
        self._startup: list[Future[None]] = []
        self._thread = threading.local()
        self._lock = threading.Lock()
        self._launchers: AbstractContextManager[object] = nullcontext()

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
        """Is this the first time that the combination is seen?"""
        if combination in self._seen:
            return False
        if len(self._seen) >= MAX_SEEN:
            self._seen.clear()
        self._seen.add(combination)
        return True

    def start(self, device: torch.device) -> None:
        """Start Triton's initialization, unless that has been done."""
        if self._pool is not None:
            return
        with self._lock:
            if self._pool is None:
                pool = ThreadPoolExecutor(min(COMPILE_THREADS, os.cpu_count() or 1), "regard-compile")
                self._launchers = protect_launchers()
                self._startup = [pool.submit(_build_driver, device), pool.submit(_hash_triton)]
                self._pool = pool

    def submit(self, kernel: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Compile a kernel for such arguments on another thread, unless that was submitted before."""
        device = torch.cuda.current_device()
        if not self.is_new((device, kernel, *specialization(kernel, arguments, options))):
            return
        self.start(torch.device("cuda", device))
        pool, startup = self._pool, self._startup
        assert pool is not None

        def compile_kernel() -> None:
            wait(startup)  # submitted to the pool before this, so there is no deadlock
            with torch.cuda.device(device):  # the current device is a property of the thread
                variant = kernel.run(*arguments, grid=(1,), warmup=True, **options)
                with self._launchers:
                    variant._init_handles()

        with self._lock:
            self._pending.setdefault(kernel, []).append(pool.submit(compile_kernel))

    def wait(self, kernel: Any) -> None:
        """Wait until no variant of the kernel is being compiled."""
        if self._startup:
            wait(self._startup)
            self._startup = []
        if kernel not in self._pending:
            return
        with self._lock:
            pending = self._pending.pop(kernel, [])
        for future in pending:
            with suppress(Exception):  # the launch raises the error again
                future.result()


def specialization(kernel: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Iterator[Hashable]:
    """Yield what Triton specializes a kernel on: dtypes, whether integers are 1 or multiples of 16, and constants."""
    constant = {param.name: param.is_constexpr for param in kernel.params}
    unspecialized = {param.name for param in kernel.params if param.do_not_specialize}
    positional = zip(kernel.arg_names, arguments, strict=False)
    for name, argument in (*positional, *options.items()):
        if isinstance(argument, Tensor):
            yield name, argument.dtype
        elif constant.get(name, True):
            yield name, argument
        elif isinstance(argument, int) and name not in unspecialized:
            yield name, argument == 1, argument % 16 == 0


def _build_driver(device: torch.device) -> None:
    """Build Triton's driver. Triton does so on first use, and with several threads at once several times."""
    from triton.runtime import driver

    with torch.cuda.device(device):
        driver.active.get_current_device()


def _hash_triton() -> None:
    """Compute Triton's hash of its own files, hundreds of megabytes; Triton caches it for the life of the process."""
    from triton.compiler import compiler
    from triton.runtime import cache

    triton_key = getattr(cache, "triton_key", None) or getattr(compiler, "triton_key", None)  # before Triton 3.5
    if triton_key is not None:
        triton_key()


_COMPILER = _Compiler()
