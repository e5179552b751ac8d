"""Several processes that train one model together (`torchrun`): a `World` value, which is trivial for one process.

Every method that communicates must be called by all processes in the same order. What depends on the clock or on a
signal may differ between them, so one process decides (`broadcast`), or all decide together (`any`).

CPU tensors are reduced by gloo, GPU tensors by NCCL. Flags and Python objects always go through gloo, so that reading
them does not wait for a GPU.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from regard.runtime import launch
from regard.runtime.launch import LostProcessError, ReportedElsewhereError

T = TypeVar("T")
R = TypeVar("R")
CONNECTION_ERRORS = ("gloo", "nccl", "connection closed by peer", "connection reset by peer", "broken pipe", "tcpstore")
"""parts of the messages, in lower case, by which torch reports that another process has ended"""
REPORTING_RANKS = (0, 1)  # processes that report a lost one: the first, or the second if the first is lost


@dataclass(frozen=True)
class World:
    """The processes of a run, and the place of this one among them."""

    rank: int = 0
    size: int = 1
    connected: bool = False  # whether there is a process group; there is none without `torchrun`

    @property
    def is_first(self) -> bool:
        """whether this process writes the files and the screen"""
        return self.rank == 0

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """Return this process's share of the items: one of every `size`."""
        return items[self.rank :: self.size]

    # Communication

    def sum_(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its sum over all processes, and return it."""
        if self.connected:
            dist.all_reduce(tensor)
        return tensor

    def total(self, value: float) -> float:
        """Return the sum of a number over all processes."""
        return float(self.sum_(torch.tensor(value, dtype=torch.float64))) if self.connected else value

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Return for each flag whether it is set in any process."""
        if not self.connected:
            return flags
        return tuple(self.sum_(torch.tensor(flags, dtype=torch.float64)).gt(0).tolist())

    def broadcast(self, value: T) -> T:
        """Return the value that the first process has."""
        if not self.connected:
            return value
        objects: list[Any] = [value if self.is_first else None]
        dist.broadcast_object_list(objects, src=0)
        return objects[0]  # type: ignore[no-any-return]

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, by rank."""
        if not self.connected:
            return [value]
        objects: list[Any] = [None] * self.size
        dist.all_gather_object(objects, value)
        return objects

    def map(self, items: Sequence[T], function: Callable[[Sequence[T]], Sequence[R]]) -> list[R]:
        """Return what the function returns for the items, one result for each; every process computes its share."""
        if self.size == 1:
            return list(function(items))
        own = self.share(items)
        parts = self.gather(list(function(own)) if own else [])
        return [parts[index % self.size][index // self.size] for index in range(len(items))]

    # Errors

    @contextmanager
    def shared_errors(self) -> Iterator[None]:
        """Run a block in which processes do not communicate; if it fails in any of them, all end and one reports why.

        All processes leave the block together.
        """
        if not self.connected:
            yield
            return
        error: Exception | None = None
        try:
            yield
        except Exception as caught:
            error = caught
        failed = next((rank for rank, has_failed in enumerate(self.gather(error is not None)) if has_failed), None)
        if error is not None and failed == self.rank:
            raise error
        if failed is not None:
            raise ReportedElsewhereError


ALONE = World()


def current_world() -> World:
    """Return the processes of this run."""
    connected = launch.is_distributed() and dist.is_initialized()
    return World(dist.get_rank(), dist.get_world_size(), connected=True) if connected else ALONE


@contextmanager
def joined_world() -> Iterator[None]:
    """Connect this process with the others that `torchrun` launched, if it did; a context, or the decorator of a
    function.

    If another process ends, the connection to it is lost, and this one raises a LostProcessError in one line. A process
    group that exists already is used, and left as it is.
    """
    if not launch.is_distributed():
        yield
        return
    created = not dist.is_initialized()
    if created:
        _connect()
    world, launch.connection.made = current_world(), True
    try:
        yield
    except RuntimeError as error:
        if world.size == 1 or not is_connection_error(error):
            raise
        if world.rank not in REPORTING_RANKS:
            raise ReportedElsewhereError from None
        raise LostProcessError(_lost(world)) from None
    finally:
        if created:
            # Threads of the group that are still there when Python ends would end the process with an error.
            dist.destroy_process_group()
            gc.collect()


def _connect() -> None:
    """Create the process group."""
    local, backend = launch.local_rank() or 0, "gloo"
    if torch.cuda.is_available() and dist.is_nccl_available():
        backend = "cpu:gloo,cuda:nccl"
        if local < torch.cuda.device_count():
            torch.cuda.set_device(local)
    try:
        store, rank, size = next(iter(dist.rendezvous("env://")))  # type: ignore[attr-defined]
        # Without an `--rdzv-backend`, torchrun keeps the store of processes that have died, whose addresses are in it.
        store = dist.PrefixStore(f"regard/{launch.restarts()}", store)  # type: ignore[attr-defined]
        dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    except RuntimeError as error:
        reason = str(error).strip().split("\n")[0]
        raise LostProcessError(f"the processes could not be connected: {reason}") from None


def is_connection_error(error: RuntimeError) -> bool:
    """Return whether torch reports by this error that the connection to another process was lost."""
    text = str(error).lower()
    return isinstance(error, dist.DistError) or any(part in text for part in CONNECTION_ERRORS)


def _lost(world: World) -> str:
    return (
        f"another of the {world.size} processes has ended, and process {world.rank} ends too; "
        "torchrun --max-restarts, or --resume, goes on from the last checkpoint"
    )


def local_device(device: torch.device) -> torch.device:
    """Return the device of this process: with `torchrun`, each process of a machine has a GPU of its own."""
    local = launch.local_rank()
    if device.type != "cuda" or local is None:
        return device
    if device.index is not None:
        raise ValueError(f"device: expected cpu or cuda with torchrun, which gives each process a GPU; got {device}")
    count = torch.cuda.device_count()
    if local >= count:
        raise ValueError(f"device: expected a GPU for each process, got process {local + 1} on a machine with {count}")
    return torch.device("cuda", local)
